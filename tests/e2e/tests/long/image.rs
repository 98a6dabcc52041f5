//! What the image holds: the program and what tells of it. There is no container engine here, so its files are put together
//! by the script that the Containerfile runs.

use std::collections::BTreeMap;
use std::process::Command;

use plimsoll_tests_e2e::stage;
use serde_json::Value;

fn said(command: &mut Command) -> anyhow::Result<String> {
    let output = command.output()?;
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    anyhow::ensure!(output.status.success(), "{command:?}: {}\n{text}", output.status);
    Ok(text)
}

#[test]
fn the_image_is_small_and_says_what_is_in_it() -> anyhow::Result<()> {
    let folder = crate::folder("image");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder)?;
    // It fails if the image would be too large, or lack a library.
    let mut script = Command::new(stage::repository().join("scripts/image-files.sh"));
    print!("{}", said(script.arg(&folder).env("PROGRAM", crate::program()))?);

    // Both names, with nothing around them.
    let alone = |name: &str| {
        let mut command = Command::new(folder.join(name));
        command.env_clear().current_dir("/");
        command
    };
    assert!(said(alone("plimsoll").arg("--version"))?.starts_with("plimsoll "));
    assert!(said(alone("cluster-autoscaler").arg("--help"))?.contains("--scan-interval"));

    let bill: Value = serde_json::from_str(&std::fs::read_to_string(folder.join("sbom.cdx.json"))?)?;
    assert_eq!((&bill["bomFormat"], &bill["specVersion"]), (&"CycloneDX".into(), &"1.5".into()));
    assert_eq!(bill["metadata"]["component"]["name"], "plimsoll");
    let lock = std::fs::read_to_string(stage::repository().join("Cargo.lock"))?;
    let locked = locked(&lock);
    let mut listed = BTreeMap::new();
    for component in bill["components"].as_array().into_iter().flatten() {
        let text = |key: &str| component[key].as_str().unwrap_or_default().to_owned();
        let (name, version) = (text("name"), text("version"));
        assert_eq!(text("purl"), format!("pkg:cargo/{name}@{version}"));
        assert!(component["licenses"][0]["expression"].is_string(), "{name} has no licence");
        let hash = component["hashes"][0]["content"].as_str();
        assert_eq!(locked.get(&(&*name, &*version)).copied(), Some(hash), "{name} {version}");
        listed.insert(name, version);
    }
    // Of the program, of the components in it, and not of what only tests need.
    for name in ["wasmtime", "kube", "rustls", "plimsoll-core", "plimsoll-provider-alicloud", "plimsoll-guest"] {
        assert!(listed.contains_key(name), "{name} is not listed");
    }
    for name in ["proptest", "plimsoll-tests-e2e", "assert_cmd"] {
        assert!(!listed.contains_key(name), "{name} is listed");
    }
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}

/// Crates of a lock file, with their hashes.
fn locked(lock: &str) -> BTreeMap<(&str, &str), Option<&str>> {
    let blocks = lock.split("[[package]]").skip(1);
    blocks
        .filter_map(|block| Some(((field(block, "name")?, field(block, "version")?), field(block, "checksum"))))
        .collect()
}

/// A text of a package.
fn field<'a>(block: &'a str, key: &str) -> Option<&'a str> {
    block.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"'))
}
