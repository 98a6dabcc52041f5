//! What random pods ask for, added up a second time straight from the rules (component-helpers `PodRequests`, 1.37):
//! containers, init containers, sidecars, pod level, overhead, and resources that are changed in place.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::config;
use super::random::Dice;
use super::scene::Scene;

/// Thousandths of a core, bytes, and pieces of an extended resource.
type Amounts = [i64; 3];

const NAMES: [&str; 3] = ["cpu", "memory", "example.com/gpu"];

/// A container as it was drawn.
#[derive(Clone)]
struct Container {
    sidecar: bool,
    spec: [Option<i64>; 3],
    allocated: Option<[Option<i64>; 3]>,
    actuated: Option<[Option<i64>; 3]>,
}

fn list(amounts: &[Option<i64>; 3]) -> Value {
    let pairs = NAMES.iter().zip(amounts).filter_map(|(name, amount)| Some((name, (*amount)?)));
    let text = |name: &str, amount: i64| if name == "cpu" { format!("{amount}m") } else { amount.to_string() };
    pairs.map(|(name, amount)| ((*name).to_owned(), Value::from(text(name, amount)))).collect::<Map<_, _>>().into()
}

fn amounts(dice: &mut Dice, names: usize) -> [Option<i64>; 3] {
    let mut amounts = [None; 3];
    for amount in &mut amounts[..names] {
        *amount = (!dice.one_in(3)).then(|| i64::try_from(dice.below(9)).unwrap());
    }
    amounts
}

fn container(dice: &mut Dice, sidecar: bool) -> Container {
    Container {
        sidecar,
        spec: amounts(dice, 3),
        // Only cpu and memory are changed in place, but what the status says is what counts.
        allocated: dice.one_in(2).then(|| amounts(dice, 3)),
        actuated: dice.one_in(2).then(|| amounts(dice, 3)),
    }
}

fn plain(amounts: [Option<i64>; 3]) -> Amounts {
    amounts.map(|amount| amount.unwrap_or(0))
}

fn sum(one: Amounts, other: Amounts) -> Amounts {
    std::array::from_fn(|at| one[at] + other[at])
}

fn most(one: Amounts, other: Amounts) -> Amounts {
    std::array::from_fn(|at| one[at].max(other[at]))
}

/// All containers together, by what one of them counts for.
fn together(containers: &[Container], inits: &[Container], of: impl Fn(&Container) -> Amounts) -> Amounts {
    let mut total = containers.iter().map(&of).fold([0; 3], sum);
    let (mut sidecars, mut highest) = ([0; 3], [0; 3]);
    for init in inits {
        if init.sidecar {
            total = sum(total, of(init));
            sidecars = sum(sidecars, of(init));
            highest = most(highest, sidecars);
        } else {
            highest = most(highest, sum(of(init), sidecars));
        }
    }
    most(total, highest)
}

fn object(name: &str, container: &Container) -> Value {
    let mut object = json!({"name": name, "resources": {"requests": list(&container.spec)}});
    if container.sidecar {
        object["restartPolicy"] = "Always".into();
    }
    object
}

fn status(name: &str, container: &Container) -> Value {
    let mut status = json!({"name": name, "image": "", "imageID": "", "ready": true, "restartCount": 0});
    if let Some(allocated) = &container.allocated {
        status["allocatedResources"] = list(allocated);
    }
    if let Some(actuated) = &container.actuated {
        status["resources"] = json!({"requests": list(actuated)});
    }
    status
}

fn check(seed: u64) {
    let dice = &mut Dice::new(seed);
    let containers: Vec<Container> = (0..1 + dice.below(3)).map(|_| container(dice, false)).collect();
    let inits: Vec<Container> = (0..dice.below(4))
        .map(|_| {
            let sidecar = dice.one_in(2);
            container(dice, sidecar)
        })
        .collect();
    let pod_level = dice.one_in(3).then(|| amounts(dice, 2));
    let overhead = dice.one_in(3).then(|| amounts(dice, 2));
    let infeasible = dice.one_in(4);
    let named = |prefix: &str, all: &[Container], of: fn(&str, &Container) -> Value| -> Vec<Value> {
        all.iter().enumerate().map(|(at, container)| of(&format!("{prefix}{at}"), container)).collect()
    };
    let mut spec = json!({
        "containers": named("c", &containers, object), "initContainers": named("i", &inits, object), "nodeName": "n1",
    });
    if let Some(amounts) = &pod_level {
        spec["resources"] = json!({"requests": list(amounts)});
    }
    if let Some(amounts) = &overhead {
        spec["overhead"] = list(amounts);
    }
    let mut told = json!({
        "phase": "Running", "containerStatuses": named("c", &containers, status),
        "initContainerStatuses": named("i", &inits, status),
    });
    if infeasible {
        told["conditions"] = json!([{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]);
    }
    let mut scene = Scene::new();
    let (asked, held) = scene.amounts(json!({"metadata": {"name": "p"}, "spec": spec, "status": told}));

    let finish = |mut total: Amounts| {
        for (amount, of_pod) in total.iter_mut().zip(pod_level.unwrap_or_default()) {
            *amount = of_pod.unwrap_or(*amount);
        }
        sum(total, plain(overhead.unwrap_or_default()))
    };
    let by_spec = together(&containers, &inits, |container| plain(container.spec));
    assert_eq!(asked, finish(by_spec), "what it asks for, {spec}");
    let of_spec = |container: &Container| if infeasible { [0; 3] } else { plain(container.spec) };
    let allocated = |container: &Container| container.allocated.map_or_else(|| of_spec(container), plain);
    let actuated = |container: &Container| container.actuated.map_or_else(|| allocated(container), plain);
    let mut on_node = most(together(&containers, &inits, allocated), together(&containers, &inits, actuated));
    if !infeasible {
        on_node = most(on_node, by_spec);
    }
    assert_eq!(held, finish(on_node), "what it holds, infeasible: {infeasible}, {spec} {told}");
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn pods_are_added_up_as_kubernetes_does(seed: u64) {
        check(seed);
    }
}
