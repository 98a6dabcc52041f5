//! The demo to its end, and with plug-ins that misbehave.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail by a panic"
)]

use std::path::Path;
use std::process::Command;

use plimsoll_bundled::{Guest, Workspace};

fn headless(arguments: &[&str]) -> String {
    let output =
        Command::new(env!("CARGO_BIN_EXE_plimsoll")).args(["demo", "--headless"]).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_story_is_told() {
    let text = headless(&[]);
    for (what, expected) in [
        ("the rollout makes a group grow", "UP       workers-a"),
        ("the decision has a reason", "least-waste"),
        ("the stock-out is told", "OutOfStock"),
        ("another group takes over", "UP       workers-b"),
        ("GPUs come from zero", "UP       gpu-t4 0 →"),
        ("only one group helps", "only group that helps"),
        ("empty nodes go", "goes: empty"),
        ("a node is drained", "goes: drained, its pod finds another place"),
        ("its pod is moved", "shop/search-1 is evicted"),
        ("all that holds a node is told", "system pod without a PodDisruptionBudget"),
        ("a node that does not drain says why", "local volume buffer"),
        ("a summary ends it", "node-hours"),
    ] {
        assert!(text.contains(expected), "{what}: {expected:?} is missing in\n{text}");
    }
    let after =
        |text: &str, what: &str| text.split_once(what).unwrap_or_else(|| panic!("no {what:?} in {text}")).1.to_owned();
    let off = after(&text, "The collector is turned off");
    let holder = after(&text, "kept     workers-b-00").chars().next().unwrap();
    for expected in [format!("DOWN     workers-b-00{holder}"), format!("workers-b-00{holder} is gone")] {
        assert!(off.contains(&expected), "without the collector its node goes: {expected:?} is missing in\n{off}");
    }
    let last = text.trim_end().lines().last().unwrap();
    for size in ["workers-a 2", "workers-b 0", "big-mem 0", "gpu-t4 0"] {
        assert!(last.contains(size), "at the end only what is needed stays: {last}");
    }
}

#[test]
fn the_story_is_the_same_every_time() {
    assert_eq!(headless(&[]), headless(&[]));
}

/// Plug-ins that spin, trap, ask for four gigabytes and call a host that nobody granted: the story goes on to the same
/// end, and says which of them did what.
#[test]
fn hostile_plugins_do_not_stop_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let workspace = Workspace::new(&root, &std::env::current_exe().unwrap()).unwrap();
    let built = workspace.build(&[Guest::hostile("expander"), Guest::hostile("provider")]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut config = String::from("plugins:\n");
    for misdeed in ["spin", "trap", "hog"] {
        std::fs::copy(&built[0], folder.path().join(format!("{misdeed}.wasm"))).unwrap();
        config += &format!("  {misdeed}:\n    settings: {{misdeed: {misdeed}}}\n    limits: {{call-seconds: 1}}\n");
    }
    std::fs::copy(&built[1], folder.path().join("stray.wasm")).unwrap();
    std::fs::write(folder.path().join("plugins.yaml"), config).unwrap();
    let text = headless(&[
        "--expander=spin,trap,hog,least-waste",
        &format!("--plugin-dir={}", folder.path().display()),
        &format!("--plugin-config={}", folder.path().join("plugins.yaml").display()),
    ]);
    for (plugin, what) in
        [("spin", "took longer"), ("trap", "bug in the plug-in"), ("hog", "memory"), ("stray", "elsewhere.example")]
    {
        let said = text.lines().any(|line| line.contains("warning") && line.contains(plugin) && line.contains(what));
        assert!(said, "{plugin}: nothing is said of {what:?} in\n{text}");
    }
    let last = text.trim_end().lines().last().unwrap();
    assert!(last.contains("workers-a 2") && last.contains("gpu-t4 0"), "{last}");
}
