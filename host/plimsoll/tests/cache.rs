//! `--plugin-cache`: compiled plug-ins are kept, and whatever is wrong with the folder costs time alone.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail by a panic"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

const INPUT: &str = "\
apiVersion: plimsoll.dev/v1alpha1
kind: NodeGroup
metadata: {name: small}
spec:
  minSize: 0
  maxSize: 10
  template:
    status: {allocatable: {cpu: '4', memory: 16Gi, pods: '110'}}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop}
spec: {containers: [{name: c, resources: {requests: {cpu: '1', memory: 1Gi}}}]}
status: {phase: Pending, conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable}]}
";

/// The plan with this folder, and its warnings.
fn plan(folder: &Path, cache: &Path) -> (Value, String) {
    let input = folder.join("input.yaml");
    std::fs::write(&input, INPUT).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .arg("simulate")
        .arg(&input)
        .args(["--expander=least-waste", "--output=json", "--plugin-cache"])
        .arg(cache)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let plan: Value = serde_json::from_slice(&output.stdout).unwrap();
    (plan["scaleUp"].clone(), plan["warnings"].to_string())
}

fn compiled(cache: &Path) -> PathBuf {
    let files: Vec<_> = std::fs::read_dir(cache).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "one expander was compiled: {files:?}");
    files[0].clone()
}

#[test]
fn a_broken_entry_is_compiled_again() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let first = plan(folder.path(), &cache);
    assert!(!first.1.contains("plugin-cache"), "{}", first.1);
    let file = compiled(&cache);
    let good = std::fs::read(&file).unwrap();
    assert_eq!(plan(folder.path(), &cache), first);
    for broken in [&good[..good.len() / 2], &[b"\0\0\0\0".as_slice(), &good[4..]].concat(), b""] {
        std::fs::write(&file, broken).unwrap();
        assert_eq!(plan(folder.path(), &cache), first);
        assert_eq!(std::fs::read(compiled(&cache)).unwrap(), good, "it is whole again");
    }
}

#[test]
fn a_folder_that_cannot_be_used_is_a_warning() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let expected = plan(folder.path(), &folder.path().join("good")).0;
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let open = folder.path().join("open");
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o777)).unwrap();
    for (bad, why) in [(&file, "cannot be used"), (&file.join("below"), "cannot be used"), (&open, "0700")] {
        let (found, warnings) = plan(folder.path(), bad);
        assert_eq!(found, expected);
        assert!(warnings.contains("--plugin-cache") && warnings.contains(why), "{warnings}");
    }
}
