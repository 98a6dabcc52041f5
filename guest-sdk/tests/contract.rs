//! The contract is what its README says: it parses, nothing is missing, and every item is explained.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use std::path::Path;

use wit_parser::{Docs, FunctionKind, PackageId, Resolve, TypeDefKind, TypeId, WorldItem};

const INTERFACES: &[&str] = &["types", "log", "config", "state", "provider", "pricing", "provisioning", "ranking"];

/// World, what it imports of the contract, what it exports.
const WORLDS: &[(&str, &[&str], &[&str])] = &[
    ("cloud-provider", &["types", "log", "config", "state"], &["provider"]),
    ("cloud-provider-host", &["types", "log", "config", "state"], &["provider"]),
    ("pricing-mixin", &["types"], &["pricing"]),
    ("provisioning-mixin", &["types"], &["provisioning"]),
    ("expander", &["types", "log", "config"], &["ranking"]),
    ("expander-host", &["types", "log", "config"], &["ranking"]),
];

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../wit/v0")
}

fn contract() -> (Resolve, PackageId) {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(folder()).unwrap();
    (resolve, package)
}

#[test]
fn it_is_the_package_that_the_sdk_is_built_for() {
    let (resolve, package) = contract();
    let name = &resolve.packages[package].name;
    assert_eq!(name.to_string(), format!("autoscaler:plugin@{}.0", plimsoll_guest::API));
}

#[test]
fn no_interface_is_missing() {
    let (resolve, package) = contract();
    let mut found: Vec<_> = resolve.packages[package].interfaces.keys().map(String::as_str).collect();
    let mut expected = INTERFACES.to_vec();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

#[test]
fn every_world_imports_and_exports_what_it_should() {
    let (resolve, package) = contract();
    let mut found: Vec<_> = resolve.packages[package].worlds.keys().map(String::as_str).collect();
    let mut expected: Vec<_> = WORLDS.iter().map(|&(name, ..)| name).collect();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);

    for &(name, imports, exports) in WORLDS {
        let world = &resolve.worlds[resolve.packages[package].worlds[name]];
        let ours = |items: &mut dyn Iterator<Item = &WorldItem>| {
            let mut names: Vec<_> = items
                .filter_map(|item| match item {
                    WorldItem::Interface { id, .. } if resolve.interfaces[*id].package == Some(package) => {
                        resolve.interfaces[*id].name.clone()
                    }
                    _ => None,
                })
                .collect();
            names.sort();
            names
        };
        let sorted = |names: &[&str]| {
            let mut names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
            names.sort();
            names
        };
        assert_eq!(ours(&mut world.imports.values()), sorted(imports), "imports of {name}");
        assert_eq!(ours(&mut world.exports.values()), sorted(exports), "exports of {name}");
    }
}

#[test]
fn only_authors_of_providers_see_wasi() {
    let (resolve, package) = contract();
    for &(name, ..) in WORLDS {
        let world = &resolve.worlds[resolve.packages[package].worlds[name]];
        let foreign = world.imports.values().any(|item| match item {
            WorldItem::Interface { id, .. } => resolve.interfaces[*id].package != Some(package),
            _ => true,
        });
        assert_eq!(foreign, name == "cloud-provider", "{name}");
    }
}

#[test]
fn guests_own_no_resources_and_no_function_is_async() {
    let (resolve, package) = contract();
    for &interface in resolve.packages[package].interfaces.values() {
        let interface = &resolve.interfaces[interface];
        for (name, function) in &interface.functions {
            assert!(matches!(function.kind, FunctionKind::Freestanding), "{name} is not a plain function");
        }
        for (name, &id) in &interface.types {
            assert!(!matches!(resolve.types[id].kind, TypeDefKind::Resource), "{name} is a resource");
        }
    }
}

#[test]
fn every_item_is_explained() {
    let (resolve, package) = contract();
    let mut silent = Vec::new();
    let mut look = |docs: &Docs, item: String| {
        if docs.contents.as_deref().is_none_or(|text| text.trim().is_empty()) {
            silent.push(item);
        }
    };
    look(&resolve.packages[package].docs, "the package".to_owned());
    for (name, &id) in &resolve.packages[package].worlds {
        look(&resolve.worlds[id].docs, format!("world {name}"));
    }
    for (interface, &id) in &resolve.packages[package].interfaces {
        let definition = &resolve.interfaces[id];
        look(&definition.docs, format!("interface {interface}"));
        for (function, definition) in &definition.functions {
            look(&definition.docs, format!("{interface}.{function}"));
        }
        for (name, &id) in &definition.types {
            // A `use` has its explanation where the type is defined.
            if !is_use(&resolve, id) {
                look(&resolve.types[id].docs, format!("{interface}.{name}"));
                for (member, docs) in members(&resolve, id) {
                    look(docs, format!("{interface}.{name}.{member}"));
                }
            }
        }
    }
    assert!(silent.is_empty(), "no doc comment on: {}", silent.join(", "));
}

fn is_use(resolve: &Resolve, id: TypeId) -> bool {
    let definition = &resolve.types[id];
    match definition.kind {
        TypeDefKind::Type(wit_parser::Type::Id(other)) => resolve.types[other].owner != definition.owner,
        _ => false,
    }
}

fn members(resolve: &Resolve, id: TypeId) -> Vec<(&str, &Docs)> {
    match &resolve.types[id].kind {
        TypeDefKind::Record(record) => record.fields.iter().map(|field| (field.name.as_str(), &field.docs)).collect(),
        TypeDefKind::Variant(variant) => variant.cases.iter().map(|case| (case.name.as_str(), &case.docs)).collect(),
        TypeDefKind::Enum(cases) => cases.cases.iter().map(|case| (case.name.as_str(), &case.docs)).collect(),
        TypeDefKind::Flags(flags) => flags.flags.iter().map(|flag| (flag.name.as_str(), &flag.docs)).collect(),
        _ => vec![],
    }
}

#[test]
fn the_readme_names_every_file_and_world() {
    let readme = std::fs::read_to_string(folder().join("../README.md")).unwrap();
    for entry in folder().read_dir().unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(readme.contains(&format!("`{name}")), "{name} is not in the README");
    }
    for (world, ..) in WORLDS {
        assert!(readme.contains(&format!("`{world}`")), "world {world} is not in the README");
    }
}
