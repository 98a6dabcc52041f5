//! Dependencies point one way, generated types stay in `plugins/abi`, Kubernetes' types stay in `model`'s conversion.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail by a panic"
)]

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, PackageId};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// For one platform only, so that nothing has to be fetched beyond what the build has fetched.
fn metadata() -> Metadata {
    let options = ["--locked", "--filter-platform", "x86_64-unknown-linux-gnu"].map(str::to_owned);
    MetadataCommand::new().current_dir(root()).other_options(options).exec().unwrap()
}

/// Everything that a package is built from, by name.
fn closure(metadata: &Metadata, package: &str) -> BTreeSet<String> {
    let resolve = metadata.resolve.as_ref().unwrap();
    let name: BTreeMap<&PackageId, &str> =
        metadata.packages.iter().map(|package| (&package.id, package.name.as_str())).collect();
    let nodes: BTreeMap<&PackageId, _> = resolve.nodes.iter().map(|node| (&node.id, node)).collect();
    let start = metadata.packages.iter().find(|candidate| candidate.name.as_str() == package);
    let mut queue = VecDeque::from([&start.unwrap_or_else(|| panic!("there is no package {package}")).id]);
    let mut seen = BTreeSet::new();
    while let Some(id) = queue.pop_front() {
        for dependency in &nodes[id].deps {
            let built = dependency.dep_kinds.iter().any(|kind| kind.kind == DependencyKind::Normal);
            if built && seen.insert(name[&dependency.pkg].to_owned()) {
                queue.push_back(&dependency.pkg);
            }
        }
    }
    seen
}

/// What must never be below the drivers: I/O, runtimes, the plug-in machinery.
const FORBIDDEN: &[&str] =
    &["wasmtime", "wasmtime-wasi", "kube", "kube-client", "tokio", "reqwest", "hyper", "wit-bindgen"];

#[test]
fn model_scheduling_and_core_are_free_of_io() {
    let metadata = metadata();
    for package in ["plimsoll-model", "plimsoll-scheduling", "plimsoll-core", "plimsoll-grants"] {
        let closure = closure(&metadata, package);
        for forbidden in FORBIDDEN {
            assert!(!closure.contains(*forbidden), "{package} depends on {forbidden}");
        }
    }
    // The check itself sees what it looks for.
    assert!(closure(&metadata, "plimsoll-plugins").contains("wasmtime"));
}

#[test]
fn dependencies_point_one_way() {
    let order = [
        "plimsoll-model",
        "plimsoll-scheduling",
        "plimsoll-core",
        "plimsoll-grants",
        "plimsoll-plugins",
        "plimsoll-driver",
        "plimsoll-kubernetes",
        "plimsoll",
    ];
    let metadata = metadata();
    for (level, package) in order.iter().enumerate() {
        let closure = closure(&metadata, package);
        for above in &order[level + 1..] {
            assert!(!closure.contains(*above), "{package} depends on {above}, which is above it");
        }
    }
    assert!(
        !closure(&metadata, "plimsoll-driver").contains("kube-client"),
        "the driver must not know of the API server"
    );
    assert!(closure(&metadata, "plimsoll-kubernetes").contains("kube-client"));
    let sim = closure(&metadata, "plimsoll-sim");
    assert!(!sim.contains("plimsoll-plugins"), "the simulator must not know of the plug-in runtime");
}

/// Rust files below a folder of the repository, with their paths from the root and their texts.
fn sources(folder: &str) -> Vec<(String, String)> {
    let root = root();
    let mut found = Vec::new();
    let mut folders = vec![root.join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                if path.file_name().is_some_and(|name| name != "target") {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
                found.push((name, std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    assert!(!found.is_empty(), "{folder} holds no Rust files");
    found
}

/// Lines of code: comments may name what code may not.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(index, line)| (index + 1, line.split("//").next().unwrap_or_default()))
}

#[test]
fn generated_types_stay_in_the_abi() {
    let marks = ["bindgen!", "bindings::", "exports::autoscaler", "autoscaler::plugin::", "_generated"];
    let mut inside = 0;
    for (name, text) in sources("host") {
        for (line, code) in code(&text) {
            if let Some(mark) = marks.iter().find(|mark| code.contains(**mark)) {
                if name.starts_with("host/plugins/src/abi/") {
                    inside += 1;
                } else {
                    panic!(
                        "{name}:{line} names a type generated from the contract ({mark}); convert it in host/plugins/src/abi"
                    );
                }
            }
        }
    }
    assert!(inside > 0, "the check finds no generated types at all");
}

#[test]
fn the_abi_module_is_private() {
    let (_, text) =
        sources("host/plugins/src").into_iter().find(|(name, _)| name == "host/plugins/src/lib.rs").unwrap();
    assert!(
        code(&text).any(|(_, line)| line.trim() == "mod abi;"),
        "host/plugins/src/lib.rs must keep `mod abi` private"
    );
}

#[test]
fn kubernetes_types_stay_in_the_conversion() {
    let mut inside = 0;
    for folder in
        ["host/model", "host/scheduling", "host/core", "host/sim", "host/plugins", "host/driver", "host/kubernetes"]
    {
        for (name, text) in sources(folder) {
            for (line, code) in code(&text) {
                if code.contains("k8s_openapi") {
                    let allowed = name.starts_with("host/model/src/convert") || name.starts_with("host/model/src/read");
                    assert!(allowed, "{name}:{line} names a Kubernetes API type; only the model's conversion may");
                    inside += 1;
                }
            }
        }
    }
    assert!(inside > 0, "the check finds no Kubernetes types at all");
}
