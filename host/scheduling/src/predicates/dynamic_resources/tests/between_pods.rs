//! What pods do to each other by their claims: cases in which the engine once said other than the oracle.

use plimsoll_model::convert::Kind;

use super::{exactly, own, slice, with_claim};
use crate::testing::Scene;
use crate::{Candidates, NodeId, Run};

/// The class of all devices of the driver.
fn class(scene: &mut Scene) {
    scene.add(Kind::DeviceClass, super::GPU);
}

/// A claim that pods name.
fn shared(scene: &mut Scene, name: &str, devices: &str, status: &str) {
    scene.add(
        Kind::ResourceClaim,
        &format!("{{metadata: {{name: {name}, namespace: default}}, spec: {{devices: {devices}}}, status: {status}}}"),
    );
}

/// A pod that names these claims.
fn naming(claims: &[&str]) -> String {
    let claims: Vec<String> =
        claims.iter().map(|claim| format!("{{name: {claim}, resourceClaimName: {claim}}}")).collect();
    format!("{{spec: {{resourceClaims: [{}]}}}}", claims.join(", "))
}

fn selected(expression: &str) -> String {
    exactly(&format!("count: 1, selectors: [{{cel: {{expression: '{expression}'}}}}]"))
}

#[test]
fn a_pod_is_a_consumer_of_a_claim_whatever_its_other_claims_are() {
    let reserved: Vec<String> = (0..255).map(|index| format!("{{resource: pods, name: x, uid: x{index}}}")).collect();
    let status = format!("{{allocation: {{devices: {{results: []}}}}, reservedFor: [{}]}}", reserved.join(", "));
    for (name, claims, expected) in [
        ("no other pod", None, ""),
        ("a pod", Some(&["c"][..]), "DynamicResources: resourceclaim \"c\" has no room for another consumer"),
        (
            "a pod with a claim that does not exist",
            Some(&["c", "absent"]),
            "DynamicResources: resourceclaim \"c\" has no room for another consumer",
        ),
        (
            "the same in the other order",
            Some(&["absent", "c"]),
            "DynamicResources: resourceclaim \"c\" has no room for another consumer",
        ),
    ] {
        let mut scene = Scene::new();
        scene.node("n1", "{}");
        class(&mut scene);
        shared(&mut scene, "c", &exactly("count: 1"), &status);
        if let Some(claims) = claims {
            scene.resident("n1", &naming(claims));
        }
        let pod = scene.pod(&naming(&["c"]));
        assert_eq!(scene.verdict(pod), expected, "{name}");
    }
}

#[test]
fn the_first_user_of_a_shared_claim_can_open_a_node_for_the_next() {
    // Of n1's own device the selector cannot tell anything, which is an error as long as the claim may get it. On n2 there
    // is only the device that both can use; once the claim is wanted there, n1's own device is out of the question.
    let mut scene = Scene::new();
    scene.node("n1", "{}");
    scene.node("n2", "{}");
    class(&mut scene);
    scene.add(Kind::ResourceSlice, &slice("s1", "nodeName: n1", "a", "devices: [{name: a}]"));
    let wide = "devices: [{name: b, attributes: {model: {string: x}}}]";
    scene.add(Kind::ResourceSlice, &slice("s2", "allNodes: true", "b", wide));
    shared(&mut scene, "c", &selected("device.attributes[\"gpu.example.com\"].model == \"x\""), "{}");
    let pod = scene.pod(&naming(&["c"]));
    assert_eq!(scene.fitting(pod), ["n2"]);
    let mut snapshot = scene.snapshot();
    let class = snapshot.class(pod);
    let runs = snapshot.pack(class, 2, Candidates::All);
    assert_eq!(runs, [1, 0].map(|node| Run { node: NodeId::new(node), count: 1 }));
    scene.resident("n2", &naming(&["c"]));
    assert_eq!(scene.fitting(pod), ["n1", "n2"]);
}

#[test]
fn the_reason_does_not_hang_on_who_came_first() {
    let verdicts = [["c", "d"], ["d", "c"]].map(|order| {
        let mut scene = Scene::new();
        scene.node("n1", "{}");
        class(&mut scene);
        scene.add(Kind::ResourceSlice, &slice("s1", "nodeName: n1", "a", "devices: [{name: a}]"));
        for name in ["c", "d"] {
            shared(&mut scene, name, &selected(&format!("device.attributes[\"gpu.example.com\"].{name} == 1")), "{}");
        }
        own(&mut scene, "mine", "pod", &exactly("count: 1"), "{}");
        for claim in order {
            scene.resident("n1", &naming(&[claim]));
        }
        let pod = scene.pod(&naming(&["c", "d"]));
        scene.verdict(pod)
    });
    assert!(verdicts[0].contains("CEL error"), "{}", verdicts[0]);
    assert_eq!(verdicts[0], verdicts[1]);
}

#[test]
fn devices_that_look_alike_are_not_alike_before_and_behind_one_that_cannot_be_judged() {
    // The first pod may have a or c. With a gone, the search for the second comes to b, of which its selector cannot tell
    // anything; with c gone it finds a first.
    let mut scene = Scene::new();
    scene.node("n1", "{}");
    class(&mut scene);
    let model = "attributes: {model: {string: x}}";
    let devices = format!("devices: [{{name: a, {model}}}, {{name: b}}, {{name: c, {model}}}]");
    scene.add(Kind::ResourceSlice, &slice("s1", "nodeName: n1", "a", &devices));
    own(&mut scene, "any", "pod", &selected("\"model\" in device.attributes[\"gpu.example.com\"]"), "{}");
    own(&mut scene, "x", "pod", &selected("device.attributes[\"gpu.example.com\"].model == \"x\""), "{}");
    scene.resident("n1", &with_claim("any"));
    let pod = scene.pod(&with_claim("x"));
    assert_eq!(scene.verdict(pod), "");
}
