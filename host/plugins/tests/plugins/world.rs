//! Files that are no plug-in, or no plug-in for this host: each is told in words that say what to do.

use plimsoll_plugins::config::PluginConfig;
use plimsoll_plugins::{Kind, LoadError, Report, inspect};

use crate::guests::{Guest, host, source};

const PROVIDER: Option<Kind> = Some(Kind::CloudProvider);
const EXPANDER: Option<Kind> = Some(Kind::Expander);

fn refusal(kind: Option<Kind>, bytes: Vec<u8>) -> String {
    match inspect(&source("hetzner", kind, bytes), None) {
        Ok(inspected) => {
            assert!(!inspected.report.is_usable(), "{}", inspected.report);
            LoadError {
                plugin: "hetzner".into(),
                origin: plimsoll_plugins::Origin::BuiltIn,
                problem: plimsoll_plugins::load::Problem::Mismatch(Box::new(inspected.report)),
            }
            .to_string()
        }
        Err(error) => error.to_string(),
    }
}

#[rstest::rstest]
#[case::empty(b"", "hetzner.wasm is empty; expected a WebAssembly component")]
#[case::script(
    b"#!/bin/sh\necho hi\n",
    "hetzner.wasm is a text file that begins with \"#!/bin/sh\"; expected a WebAssembly component (.wasm)"
)]
#[case::page(
    b"\n<!DOCTYPE html>\n<title>404",
    "hetzner.wasm is a text file that begins with \"<!DOCTYPE html>\"; expected a WebAssembly component (.wasm)"
)]
#[case::gzip(b"\x1f\x8b\x08\x00\x00", "hetzner.wasm is a gzip archive; expected a WebAssembly component (.wasm)")]
#[case::program(b"\x7fELF\x02\x01\x01", "hetzner.wasm is a native program; expected a WebAssembly component (.wasm)")]
#[case::noise(
    b"\xde\xad\xbe\xef\x00\xff",
    "hetzner.wasm is no WebAssembly; it begins with the bytes deadbeef; expected a WebAssembly component (.wasm)"
)]
#[case::magic_only(b"\0asm", "hetzner.wasm ends in the middle, after 4 bytes; it was probably not copied to the end")]
#[case::core_module(
    b"\0asm\x01\0\0\0",
    "hetzner.wasm is a core WebAssembly module, not a component; convert it with: plimsoll plugin componentize \
     hetzner.wasm -o hetzner.component.wasm"
)]
fn files_that_are_no_component(#[case] bytes: &[u8], #[case] expected: &str) {
    assert_eq!(refusal(None, bytes.to_vec()), format!("plugin \"hetzner\" cannot be used: {expected}"));
}

#[test]
fn a_file_that_ends_early_is_told_wherever_it_ends() {
    let whole = Guest::provider().build();
    // Behind the last section everything is there; names and other notes follow.
    let last = whole.len() - 1;
    for cut in (1..last).step_by(97) {
        let error = refusal(PROVIDER, whole[..cut].to_vec());
        let told =
            error.contains("ends in the middle") || error.contains("is no WebAssembly") || error.contains("text file");
        // A cut between two sections leaves a smaller component, which cannot be told from one that was meant.
        let smaller = error.contains("does not export") || error.contains("is a broken WebAssembly component");
        assert!(told || smaller, "cut at {cut} of {}: {error}", whole.len());
    }
}

#[test]
fn a_damaged_component_is_told() {
    let mut bytes = Guest::provider().build();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 64].fill(0xff);
    let error = refusal(PROVIDER, bytes);
    let prefix = "plugin \"hetzner\" cannot be used: hetzner.wasm is a broken WebAssembly component: ";
    assert!(error.starts_with(prefix) || error.contains("ends in the middle"), "{error}");
}

#[test]
fn a_huge_file_is_not_looked_at() {
    let mut bytes = b"\0asm\x0d\0\x01\0".to_vec();
    bytes.resize((64 << 20) + 1, 0);
    assert_eq!(
        refusal(None, bytes),
        "plugin \"hetzner\" cannot be used: hetzner.wasm is 64 MiB large; at most 64 MiB are loaded"
    );
}

#[test]
fn machine_code_is_refused() {
    let engine = wasmtime::Engine::default();
    let code = engine.precompile_component(&Guest::expander().build()).unwrap();
    assert_eq!(
        refusal(None, code),
        "plugin \"hetzner\" cannot be used: hetzner.wasm is compiled machine code (.cwasm), which could do anything; give \
         the .wasm component that it was made from, the host compiles it itself"
    );
}

#[test]
fn a_contract_without_code_is_refused() {
    let mut resolve = wit_parser::Resolve::default();
    let package = resolve.push_str("a.wit", "package a:b; interface c { d: func(); }").unwrap();
    let bytes = wit_component::encode(&resolve, package).unwrap();
    assert_eq!(
        refusal(None, bytes),
        "plugin \"hetzner\" cannot be used: hetzner.wasm holds a WIT package, a contract without code; expected a \
         WebAssembly component"
    );
}

#[rstest::rstest]
#[case::expander_as_provider(
    PROVIDER,
    Guest::expander(),
    "plugin \"hetzner\" cannot be used as a cloud provider
  it is an expander: it exports autoscaler:plugin/ranking
  fix: name it in --expander instead"
)]
#[case::provider_as_expander(
    EXPANDER,
    Guest::provider(),
    "plugin \"hetzner\" cannot be used as an expander
  it is a cloud provider: it exports autoscaler:plugin/provider
  fix: name it in --cloud-provider instead"
)]
#[case::from_the_future(
    PROVIDER,
    Guest::provider().contract_edit("package autoscaler:plugin@0.1.0", "package autoscaler:plugin@0.3.0"),
    "plugin \"hetzner\" cannot be used as a cloud provider
  it was built for autoscaler:plugin 0.3, this host serves 0.1
  fix: rebuild it with plimsoll-guest 0.1, or run a host that serves 0.3"
)]
#[case::another_field(
    PROVIDER,
    Guest::provider().contract_edit("record node-group {", "record node-group { zone: string,"),
    "plugin \"hetzner\" cannot be used as a cloud provider
  its export provider.refresh returns record node-group with a field `zone` that 0.1 does not have
  fix: rebuild it with plimsoll-guest 0.1"
)]
#[case::no_such_field(
    PROVIDER,
    Guest::provider().contract_edit("    complete: bool,", ""),
    "plugin \"hetzner\" cannot be used as a cloud provider
  its export provider.refresh returns record snapshot without the field `complete` that 0.1 has
  fix: rebuild it with plimsoll-guest 0.1"
)]
#[case::another_type(
    PROVIDER,
    Guest::provider().contract_edit("    provider-name: string,", "    provider-name: list<string>,"),
    "plugin \"hetzner\" cannot be used as a cloud provider
  its export provider.configure returns record capabilities whose field `provider-name` is list<string>, 0.1 says string
  fix: rebuild it with plimsoll-guest 0.1"
)]
#[case::another_case(
    PROVIDER,
    Guest::provider().contract_edit("    bootstrap,", "    bootstrap, weather,"),
    "plugin \"hetzner\" cannot be used as a cloud provider
  its export provider.configure returns enum error-class with a case `weather` that 0.1 does not have
  fix: rebuild it with plimsoll-guest 0.1"
)]
#[case::no_such_function(
    PROVIDER,
    Guest::provider().contract_edit("  shutdown: func();", ""),
    "plugin \"hetzner\" cannot be used as a cloud provider
  it does not export provider.shutdown, which 0.1 has
  fix: rebuild it with plimsoll-guest 0.1"
)]
#[case::other_parameters(
    PROVIDER,
    Guest::provider().contract_edit("templates: func(groups:", "templates: func(pools:"),
    "plugin \"hetzner\" cannot be used as a cloud provider
  its export provider.templates takes (pools), 0.1 says (groups)
  fix: rebuild it with plimsoll-guest 0.1"
)]
#[case::other_order(
    EXPANDER,
    Guest::expander().contract_edit("  record class-count {", "  record class-count { count: u32,").contract_edit(
        "    /// How many of them.\n    count: u32,",
        ""
    ),
    "plugin \"hetzner\" cannot be used as an expander
  its export ranking.rank takes record class-count with its fields in another order than 0.1 has them
  fix: rebuild it with plimsoll-guest 0.1"
)]
#[case::a_log_that_we_do_not_have(
    EXPANDER,
    Guest::expander()
        .contract_edit("  enabled: func(", "  shout: func(); enabled: func(")
        .import(r#"(import "autoscaler:plugin/log@0.1.0" "shout" (func))"#),
    "plugin \"hetzner\" cannot be used as an expander
  it imports log.shout, which 0.1 does not have
  fix: rebuild it with plimsoll-guest 0.1"
)]
#[case::an_expander_with_memory(
    EXPANDER,
    Guest::expander()
        .contract_edit("  import config;\n  export ranking;", "  import config; import state; export ranking;")
        .import(r#"(import "autoscaler:plugin/state@0.1.0" "remove" (func (param i32 i32)))"#),
    "plugin \"hetzner\" cannot be used as an expander
  it imports autoscaler:plugin/state@0.1.0, which an expander is not offered; offered are \
     autoscaler:plugin/types@0.1.0, autoscaler:plugin/log@0.1.0, autoscaler:plugin/config@0.1.0
  fix: rebuild it with plimsoll-guest 0.1"
)]
#[case::an_expander_with_network(
    EXPANDER,
    Guest::expander()
        .contract_edit("  include expander-host;", "  include expander-host; import wasi:http/outgoing-handler@0.2.12;")
        .import(r#"(import "wasi:http/outgoing-handler@0.2.12" "handle" (func (param i32 i32 i32 i32)))"#),
    "plugin \"hetzner\" cannot be used as an expander
  it imports wasi:http/types@0.2.12, but an expander has no network
  it imports wasi:http/outgoing-handler@0.2.12, but an expander has no network
  fix: rebuild it with plimsoll-guest 0.1"
)]
#[case::something_else(
    EXPANDER,
    Guest::expander()
        .contract_edit("  include expander-host;", "  include expander-host; import mine: interface { x: func(); }")
        .import(r#"(import "mine" "x" (func))"#),
    "plugin \"hetzner\" cannot be used as an expander
  it imports mine, which this host does not offer
  fix: rebuild it with plimsoll-guest 0.1"
)]
#[case::prices_of_another_shape(
    PROVIDER,
    Guest::provider().mixin("pricing-mixin").contract_edit("    currency: string,", "    coin: string,"),
    "plugin \"hetzner\" cannot be used as a cloud provider
  its optional ability pricing does not fit
  its export pricing.prices returns record price-book with a field `coin` that 0.1 does not have
  its export pricing.prices returns record price-book without the field `currency` that 0.1 has
  fix: rebuild it with plimsoll-guest 0.1, or without that ability"
)]
#[tokio::test]
async fn components_that_do_not_fit(#[case] kind: Option<Kind>, #[case] guest: Guest, #[case] expected: &str) {
    let bytes = guest.build();
    assert_eq!(refusal(kind, bytes.clone()), expected);
    // Loading says the same, and does so before anything is compiled.
    let error = host().0.load(source("hetzner", kind, bytes), None).await.unwrap_err();
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_component_without_a_role_is_told_what_it_could_be() {
    assert_eq!(
        refusal(None, wat::parse_str("(component)").unwrap()),
        "plugin \"hetzner\" cannot be used as a plugin
  it exports neither autoscaler:plugin/provider nor autoscaler:plugin/ranking; it exports nothing
  fix: build it for one of the worlds autoscaler:plugin/cloud-provider and autoscaler:plugin/expander"
    );
    assert_eq!(
        refusal(PROVIDER, wat::parse_str("(component)").unwrap()),
        "plugin \"hetzner\" cannot be used as a cloud provider
  it does not export autoscaler:plugin/provider; it exports nothing
  fix: build it for the world autoscaler:plugin/cloud-provider"
    );
}

#[rstest::rstest]
#[case::patch(Guest::provider().contract_edit("package autoscaler:plugin@0.1.0", "package autoscaler:plugin@0.1.7"))]
#[case::plain(Guest::provider())]
#[case::prices(Guest::provider().mixin("pricing-mixin"))]
#[case::groups(Guest::provider().mixin("provisioning-mixin").mixin("pricing-mixin"))]
#[case::expander(Guest::expander())]
#[tokio::test]
async fn components_that_fit(#[case] guest: Guest) {
    let plugin = host().0.load(source("good", None, guest.build()), None).await.unwrap();
    assert!(plugin.report().is_usable(), "{}", plugin.report());
}

const MANIFEST: &str = r#"{
  "kind": "cloud-provider", "name": "hetzner", "version": "1.3.0", "api": "0.1", "colour": "red",
  "hosts": ["https://api.hetzner.cloud", "https://*.hetzner.com"],
  "credentials": [{"slot": "api", "kind": "bearer", "hosts": ["api.hetzner.cloud"]}],
  "settings-schema": {"properties": {"dc": {"type": "string"}}}
}"#;

const GRANTS: &str = "
plugins:
  hetzner:
    hosts: [https://api.hetzner.cloud, https://mirror.example]
    limits: {memory-mib: 64, call-seconds: 20}
";

fn report(grants: Option<&str>) -> Report {
    let bytes =
        Guest::provider().manifest(MANIFEST).asks(1, "api.hetzner.cloud", None).body("refresh", "(call $ask)").build();
    let source = source("hetzner", None, bytes);
    let config = grants.map(|text| PluginConfig::parse("plugins.yaml", text).unwrap());
    let entry = config.as_ref().map(|config| config.entry("hetzner"));
    inspect(&source, entry.as_ref().map(|entry| ("plugins.yaml", entry))).unwrap().report
}

#[test]
fn a_report_compares_wishes_with_grants() {
    let report = report(Some(GRANTS));
    let mut lines = report.to_string().lines().map(str::to_owned).collect::<Vec<_>>();
    let head = lines.remove(0);
    assert!(head.starts_with("hetzner 1.3.0   cloud-provider   autoscaler:plugin 0.1   "), "{head}");
    assert!(head.ends_with(&format!("   sha256:{}…", &report.sha256[..12])), "{head}");
    assert_eq!(
        lines,
        [
            "  wishes     https://api.hetzner.cloud                               granted by plugins.yaml: yes",
            "             https://*.hetzner.com                                   granted by plugins.yaml: no  → what needs it \
         will be refused",
            "             credential \"api\" (bearer), only for api.hetzner.cloud   granted by plugins.yaml: no  → what needs it \
         will be refused",
            "             https://mirror.example                                  granted by plugins.yaml, though it does not \
         wish for it",
            "  imports    wasi:http/outgoing-handler, wasi:io/poll",
            "  exports    autoscaler:plugin/provider",
            "  limits     64 MiB memory, 20 s a read, 20 s a write",
            "  note       its manifest has a field \"colour\" that this host does not know; it has no effect",
        ]
    );
}

#[test]
fn a_report_is_data_too() {
    let report = serde_json::to_value(report(Some(GRANTS))).unwrap();
    assert_eq!(report["kind"], "cloud-provider");
    assert_eq!(report["contract"], "0.1");
    assert_eq!(report["hosts"][1], serde_json::json!({"host": "https://*.hetzner.com", "granted": false}));
    assert_eq!(report["credentials"][0]["slot"], "api");
    assert_eq!(report["problems"], serde_json::json!([]));
}

#[test]
fn without_grants_a_report_lists_wishes_only() {
    let text = report(None).to_string();
    assert!(text.contains("\n  wishes     https://api.hetzner.cloud\n"), "{text}");
    assert!(!text.contains("granted"), "{text}");
}

#[tokio::test]
async fn settings_that_the_plugin_does_not_know_are_refused() {
    let bytes = Guest::provider().manifest(MANIFEST).build();
    let config = PluginConfig::parse("plugins.yaml", "plugins: {hetzner: {settings: {region: x}}}").unwrap();
    let entry = config.entry("hetzner");
    let error = host().0.load(source("hetzner", None, bytes), Some(("plugins.yaml", &entry))).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "plugin \"hetzner\" cannot be used: it has no setting \"region\"; its settings are: dc"
    );
}
