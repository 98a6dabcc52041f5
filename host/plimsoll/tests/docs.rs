//! What the README and the guides show is what the program does.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail by a panic"
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use plimsoll_sim::scenario::Scenario;
use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

/// Contents of the fenced blocks of a language, in order.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut open: Option<(bool, String)> = None;
    for line in text.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(name)) => open = Some((name == language, String::new())),
            (Some(_), Some(_)) => found.extend(open.take().filter(|(wanted, _)| *wanted).map(|(_, block)| block)),
            (Some((_, block)), None) => *block += &format!("{line}\n"),
            (None, None) => {}
        }
    }
    assert!(!found.is_empty(), "there is no block of {language:?}");
    found
}

fn plimsoll(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_plimsoll")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_readme_shows_lines_that_the_demo_prints() {
    let output = plimsoll(&["demo", "--headless"]);
    let printed: BTreeSet<&str> = output.lines().map(str::trim_end).collect();
    let shown = blocks(&read("README.md"), "").remove(0);
    let shown: Vec<&str> = shown.lines().filter(|line| !line.trim().is_empty()).collect();
    assert!(shown.len() > 10, "{shown:?}");
    for line in shown {
        assert!(printed.contains(line.trim_end()), "the demo does not print {line:?}; it prints\n{output}");
    }
}

#[test]
fn the_expander_of_the_readme_is_the_template() {
    let template = read("guest-sdk/templates/expander/src/lib.rs");
    let code = &template[template.find("use plimsoll_guest").unwrap()..template.find("\n#[cfg(test)]").unwrap()];
    assert_eq!(blocks(&read("README.md"), "rust").remove(0).trim(), code.trim());
}

#[test]
fn the_path_that_the_readme_edits_is_in_the_template() {
    let readme = read("README.md");
    let pattern = "path = \\\"../..\\\"";
    assert!(readme.contains(pattern), "the sed line");
    assert!(read("guest-sdk/templates/expander/Cargo.toml").contains(&pattern.replace('\\', "")));
}

/// Three pods that want a GPU: the group has a node on its way for one of them and grows for the others.
#[test]
fn the_node_group_of_the_guide_grows() {
    let guide = read("docs/nodegroup.md");
    let group = blocks(&guide, "yaml").remove(0);
    let folder = tempfile::tempdir().unwrap();
    let (groups, pods) = (folder.path().join("groups.yaml"), folder.path().join("pods.yaml"));
    std::fs::write(&groups, &group).unwrap();
    let pod = |index: u32| {
        format!(
            "---\n{{apiVersion: v1, kind: Pod, metadata: {{namespace: batch, name: train-{index}}}, spec: {{nodeSelector: \
             {{pool: gpu-t4}}, tolerations: [{{key: nvidia.com/gpu, operator: Exists}}], containers: [{{name: c, resources: \
             {{requests: {{cpu: '1', memory: 1Gi, nvidia.com/gpu: '1'}}}}}}]}}}}\n"
        )
    };
    std::fs::write(&pods, (0..3).map(pod).collect::<String>()).unwrap();
    let output = plimsoll(&["simulate", groups.to_str().unwrap(), pods.to_str().unwrap(), "--output=json"]);
    let plan: Value = serde_json::from_str(&output).unwrap();
    let growth = &plan["scaleUp"][0];
    assert_eq!((&growth["group"], &growth["from"], &growth["to"]), (&"gpu-t4".into(), &1.into(), &3.into()), "{plan}");
    assert_eq!(plan["warnings"], serde_json::json!([]), "{plan}");
    // What the example sets, the tables explain.
    for line in group.lines().filter(|line| line.starts_with("  ") && !line.trim_start().starts_with(['-', '#'])) {
        let (key, indent) = (line.trim().split(':').next().unwrap(), line.len() - line.trim_start().len());
        let explained = match indent {
            2 if key != "name" => guide.contains(&format!("| `spec.{key}` |")),
            4 if key.starts_with(|letter: char| letter.is_ascii_lowercase()) && key.contains('-') => {
                guide.contains(&format!("| `{key}` |"))
            }
            _ => continue,
        };
        assert!(explained, "{key} is in the example and in no table");
    }
}

#[test]
fn the_scenario_of_the_guide_can_be_played() {
    let scenario = blocks(&read("docs/nodegroup.md"), "yaml").remove(1);
    let scenario = Scenario::parse("docs/nodegroup.md", &scenario).unwrap();
    assert_eq!(scenario.length.as_secs(), 90 * 60);
    let mut world = plimsoll_sim::World::new(plimsoll_model::Time::from_millis(0));
    scenario.set_up(&mut world).unwrap();
    assert_eq!(world.workloads.len(), 1);
}

#[test]
fn the_help_points_to_the_guide() {
    assert!(plimsoll(&["simulate", "--help"]).contains("docs/nodegroup.md"));
    assert!(read("README.md").contains("](docs/nodegroup.md)"));
}
