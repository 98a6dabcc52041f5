//! What expressions say of one device.

use plimsoll_model::Cluster;
use plimsoll_model::convert::Kind;

use super::{Answer, Expression};

#[test]
fn expressions() {
    let slice = serde_json::json!({"metadata": {"name": "s"}, "spec": {
        "driver": "d.io", "nodeName": "n", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "x", "allowMultipleAllocations": true,
            "attributes": {"model": {"string": "a100"}, "index": {"int": 3}, "ecc": {"bool": true},
                "version": {"version": "1.10.0-rc.1"}, "pci.io/root": {"string": "r0"}, "d.io/own": {"int": 1}},
            "capacity": {"memory": {"value": "40Gi"}}}]}});
    let mut cluster = Cluster::default();
    Kind::ResourceSlice.import_value(slice, &mut cluster).unwrap();
    let slice = cluster.devices.slices[0].clone();
    let (yes, no, error) = ("yes", "no", "error");
    for (expression, expected) in [
        ("true", yes),
        ("device.driver == 'd.io'", yes),
        ("device.driver.startsWith('x')", no),
        ("device.allowMultipleAllocations", yes),
        ("device.attributes['d.io'].model == 'a100'", yes),
        ("device.attributes['d.io'].model in ['h100', 'a100']", yes),
        ("device.attributes['d.io'].index % 2 == 1", yes),
        ("device.attributes['d.io'].index < 3", no),
        ("device.attributes['d.io'].ecc", yes),
        ("device.attributes['d.io'].own == 1", yes),
        ("device.attributes['pci.io'].root == 'r0'", yes),
        ("device.attributes['d.io'].absent == 'x'", error),
        ("device.attributes['other.io'].absent == 'x'", error),
        ("has(device.attributes['d.io'].model)", yes),
        ("has(device.attributes['d.io'].absent)", no),
        ("has(device.attributes['other.io'].absent)", no),
        ("'d.io' in device.attributes", yes),
        ("'other.io' in device.attributes", no),
        ("device.attributes['d.io'].?absent.orValue('x') == 'x'", yes),
        ("device.attributes['d.io'].exists(name, name == 'model')", yes),
        ("device.attributes['d.io'].model.lowerAscii() == 'a100'", yes),
        ("device.attributes['d.io'].model.matches('^a[0-9]+$')", yes),
        ("device.capacity['d.io'].memory.compareTo(quantity('40Gi')) == 0", yes),
        ("device.capacity['d.io'].memory == quantity('40960Mi')", yes),
        ("device.capacity['d.io'].memory.isGreaterThan(quantity('40Gi'))", no),
        ("device.capacity['d.io'].memory.isLessThan(quantity('41Gi'))", yes),
        ("device.capacity['d.io'].memory.sub(quantity('40Gi')).sign() == 0", yes),
        ("device.capacity['d.io'].memory.add(1).asInteger() == 42949672961", yes),
        ("quantity('1500m').isInteger()", no),
        ("quantity('1500m').asApproximateFloat() == 1.5", yes),
        ("isQuantity('much')", no),
        ("quantity('much').sign() == 0", error),
        ("device.attributes['d.io'].version.major() == 1", yes),
        ("device.attributes['d.io'].version.minor() == 10", yes),
        ("device.attributes['d.io'].version.isLessThan(semver('1.10.0'))", yes),
        ("device.attributes['d.io'].version.compareTo(semver('1.9.0')) > 0", yes),
        ("device.attributes['d.io'].version == semver('1.10.0-rc.1')", yes),
        ("semver('v1.02', true) == semver('1.2.0')", yes),
        ("isSemver('v1.2')", no),
        ("isSemver('v1.2', true)", yes),
        ("device.attributes['d.io'].model", error),
        ("device.nothing == 1", error),
        ("nothing == 1", error),
        ("false && nothing == 1", error),
        ("device.driver ==", error),
        ("device.driver == 'x' || device.attributes['d.io'].ecc", yes),
    ] {
        let found = match Expression::new(expression).ask(slice.driver, &slice.devices[0], &cluster.symbols) {
            Answer::Yes => yes,
            Answer::No => no,
            Answer::Error(_) => error,
        };
        assert_eq!(found, expected, "{expression}");
    }
}

#[test]
fn devices_that_look_alike_are_evaluated_once() {
    let slice = serde_json::json!({"metadata": {"name": "s"}, "spec": {
        "driver": "d.io", "nodeName": "n", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "x", "attributes": {"model": {"string": "a"}, "uuid": {"string": "1"}}},
            {"name": "y", "attributes": {"model": {"string": "a"}, "uuid": {"string": "2"}}},
            {"name": "z", "attributes": {"model": {"string": "b"}, "uuid": {"string": "3"}}}]}});
    let mut cluster = Cluster::default();
    Kind::ResourceSlice.import_value(slice, &mut cluster).unwrap();
    let slice = cluster.devices.slices[0].clone();
    for (text, looks) in [
        ("device.driver == 'd.io'", 1),
        ("device.attributes['d.io'].model == 'a'", 2),
        ("device.attributes['d.io'].all(name, name != 'x')", 3),
    ] {
        let mut expression = Expression::new(text);
        for device in &slice.devices {
            expression.ask(slice.driver, device, &cluster.symbols);
        }
        assert_eq!(expression.answers.len(), looks, "{text}");
    }
}
