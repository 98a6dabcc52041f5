//! The embedded components are what the host expects to load.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use plimsoll_bundled::{EXPANDERS, SIMULATED_PROVIDER, componentize};
use rstest::rstest;
use wasmparser::{Parser, Payload};

/// What can be read from a component without running it.
#[derive(Default, Debug)]
struct Outline {
    imports: Vec<String>,
    exports: Vec<String>,
    manifest: Option<String>,
}

fn outline(component: &[u8]) -> Outline {
    assert!(Parser::is_component(component));
    let mut outline = Outline::default();
    let mut depth = 0;
    for payload in Parser::new(0).parse_all(component) {
        match payload.unwrap() {
            Payload::Version { .. } => depth += 1,
            Payload::End(_) => depth -= 1,
            Payload::ComponentImportSection(section) if depth == 1 => {
                outline.imports.extend(section.into_iter().map(|import| import.unwrap().name.name.to_owned()));
            }
            Payload::ComponentExportSection(section) if depth == 1 => {
                outline.exports.extend(section.into_iter().map(|export| export.unwrap().name.name.to_owned()));
            }
            Payload::CustomSection(section) if section.name() == "autoscaler:plugin" => {
                outline.manifest = Some(String::from_utf8(section.data().to_vec()).unwrap());
            }
            _ => {}
        }
    }
    outline
}

#[test]
fn expanders_are_small_and_import_nothing_but_log_and_types() {
    assert_eq!(EXPANDERS.len(), 6);
    for (name, component) in EXPANDERS {
        assert!(component.len() < 60_000, "{name} has {} bytes", component.len());
        let outline = outline(component);
        assert_eq!(outline.exports, ["autoscaler:plugin/ranking@0.1.0"], "{name}");
        for import in &outline.imports {
            assert!(
                ["autoscaler:plugin/types@0.1.0", "autoscaler:plugin/log@0.1.0"].contains(&import.as_str()),
                "{name} imports {import}"
            );
        }
    }
}

#[test]
fn the_provider_is_small_and_imports_only_what_its_world_has() {
    assert!(SIMULATED_PROVIDER.len() < 600_000, "{} bytes", SIMULATED_PROVIDER.len());
    let mut outline = outline(SIMULATED_PROVIDER);
    outline.exports.sort();
    assert_eq!(outline.exports, ["autoscaler:plugin/pricing@0.1.0", "autoscaler:plugin/provider@0.1.0"]);
    let allowed = ["autoscaler:plugin/", "wasi:http/", "wasi:io/", "wasi:clocks/"];
    for import in &outline.imports {
        assert!(allowed.iter().any(|prefix| import.starts_with(prefix)), "it imports {import}");
    }
    assert!(outline.imports.contains(&"wasi:http/outgoing-handler@0.2.12".to_owned()), "{:?}", outline.imports);
}

#[test]
fn each_brings_its_manifest() {
    let version = env!("CARGO_PKG_VERSION");
    for (name, component) in EXPANDERS {
        let expected = format!(r#"{{"kind":"expander","name":"{name}","version":"{version}","api":"0.1"}}"#);
        assert_eq!(outline(component).manifest.as_deref(), Some(expected.as_str()));
    }
    let manifest = outline(SIMULATED_PROVIDER).manifest.unwrap();
    for part in [
        r#""kind":"cloud-provider","name":"simulated""#,
        r#""hosts":["https://sim.plimsoll.internal"]"#,
        r#""optional":["pricing"]"#,
    ] {
        assert!(manifest.contains(part), "{manifest}");
    }
}

#[rstest]
#[case::a_component(EXPANDERS[0].1.to_vec(), "component already")]
#[case::not_wasm(b"#!/bin/sh\n".to_vec(), "no WebAssembly module")]
#[case::nothing(vec![], "no WebAssembly module")]
#[case::half(b"\0asm\x01\0\0\0\x01\x7f".to_vec(), "cannot become a component")]
#[case::foreign_import(wat::parse_str(r#"(module (import "env" "gettimeofday" (func)))"#).unwrap(), "gettimeofday")]
fn what_is_no_guest_is_refused(#[case] bytes: Vec<u8>, #[case] part: &str) {
    let error = componentize(&bytes).unwrap_err().to_string();
    assert!(error.contains(part), "{error}");
}
