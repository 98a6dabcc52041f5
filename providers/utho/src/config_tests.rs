use plimsoll_guest::ErrorClass;
use rstest::rstest;

use super::*;

fn read(config: &str) -> Result<Config, PluginError> {
    Config::read(&Setup::with_config(config))
}

fn with_nodes(nodes: &[&str], discovery: &[&str]) -> Result<Config, PluginError> {
    let list = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
    let setup = Setup::with_config(r#"{"cluster_id": "1111"}"#);
    Config::read(&Setup { node_groups: list(nodes), discovery: list(discovery), ..setup })
}

#[test]
fn the_cluster_is_enough() {
    for id in ["\"1111\"", "1111"] {
        let config = read(&format!("{{\"cluster_id\": {id}}}")).unwrap();
        assert_eq!((config.cluster.as_str(), config.base_url.as_str()), ("1111", "https://api.utho.com/v2"));
        assert_eq!((config.timeout, config.payload), (Duration::from_secs(30), Payload::CountOnly));
        assert!(config.discovers && config.named.is_empty());
    }
}

#[test]
fn everything_can_be_said() {
    let config = read(
        r#"{"cluster_id": "1111", "base_url": "https://utho.internal/v2", "request_timeout_s": 10,
            "update_payload": "documented", "error_classes": {"sold out": "out-of-resources"},
            "pool_templates": {"pool-a": {"labels": {"team": "ml"}, "taints": ["gpu=yes:NoSchedule", "only:NoExecute"],
                "zone": "z1", "arch": "arm64", "capacity": {"nvidia.com/gpu": "1"}}}}"#,
    )
    .unwrap();
    assert_eq!((config.timeout, config.payload), (Duration::from_secs(10), Payload::Documented));
    assert_eq!(config.words["sold out"], ErrorClass::OutOfResources);
    let template = &config.templates["pool-a"];
    let taints = [Taint::new("gpu", "yes", TaintEffect::NoSchedule), Taint::new("only", "", TaintEffect::NoExecute)];
    assert_eq!(template.taints, taints);
    assert_eq!((template.zone.as_deref(), template.arch.as_deref()), (Some("z1"), Some("arm64")));
}

#[rstest]
#[case::empty("{}", "has no cluster_id")]
#[case::no_number(r#"{"cluster_id": "my-cluster"}"#, "cluster_id is \"my-cluster\"")]
#[case::climbing(r#"{"cluster_id": "../1"}"#, "cluster_id is \"../1\"")]
#[case::token(r#"{"cluster_id": "1111", "token": "hunter2"}"#, "credential \"api\"")]
#[case::token_file(r#"{"cluster_id": "1111", "token_file": "/x"}"#, "credential \"api\"")]
#[case::spelling(r#"{"clusterid": "1111"}"#, "unknown field `clusterid`")]
#[case::ini("[Global]\ncluster_id=1111", "line 1")]
#[case::payload(r#"{"cluster_id": "1", "update_payload": "all"}"#, "unknown variant `all`")]
#[case::timeout(r#"{"cluster_id": "1", "request_timeout_s": 0}"#, "expected 1 to 300")]
#[case::class(r#"{"cluster_id": "1", "error_classes": {"x": "sad"}}"#, "\"sad\"")]
#[case::arch(r#"{"cluster_id": "1", "pool_templates": {"p": {"arch": "x86"}}}"#, "pool_templates.p.arch")]
#[case::effect(r#"{"cluster_id": "1", "pool_templates": {"p": {"taints": ["a=b:No"]}}}"#, "key=value:Effect")]
#[case::taint(r#"{"cluster_id": "1", "pool_templates": {"p": {"taints": ["NoSchedule"]}}}"#, "key=value:Effect")]
fn mistakes_are_named(#[case] config: &str, #[case] expected: &str) {
    let error = read(config).unwrap_err();
    assert_eq!((error.class, error.code.as_str()), (ErrorClass::Config, "bad-config"));
    assert!(error.message.contains(expected), "{}", error.message);
    assert!(!error.message.contains("hunter2"), "{}", error.message);
}

#[test]
fn a_missing_file_is_named() {
    let error = Config::read(&Setup { config: None, ..Setup::with_config("") }).unwrap_err();
    assert!(error.message.contains("there is no cloud configuration"), "{}", error.message);
}

#[test]
fn named_pools_replace_discovery_unless_both_are_asked_for() {
    let config = with_nodes(&["0:5:pool-a", "2:2:pool:b"], &[]).unwrap();
    assert!(!config.discovers);
    assert_eq!(config.named["pool-a"], Limits { min: 0, max: 5 });
    assert_eq!(config.named["pool:b"], Limits { min: 2, max: 2 });
    assert!(with_nodes(&["0:5:pool-a"], &["utho:regexp=.*"]).unwrap().discovers);
}

#[rstest]
#[case::two_parts("1:5", "fewer than three parts")]
#[case::no_min(":5:p", "min size \"\" is no number")]
#[case::no_max("1:many:p", "max size \"many\" is no number")]
#[case::negative("-1:5:p", "min size \"-1\" is no number")]
#[case::crossed("5:1:p", "max size is below min size")]
#[case::never("0:0:p", "max size is 0")]
#[case::nameless("1:5:", "the pool is not named")]
fn bad_node_groups_are_named(#[case] spec: &str, #[case] expected: &str) {
    let error = with_nodes(&[spec], &[]).unwrap_err();
    assert!(error.message.contains(expected) && error.message.contains(spec), "{}", error.message);
}

#[test]
fn a_pool_is_named_once_and_only_one_rule_is_known() {
    assert!(with_nodes(&["0:5:p", "1:4:p"], &[]).unwrap_err().message.contains("twice"));
    let error = with_nodes(&[], &["utho:regexp=pool-.*"]).unwrap_err();
    assert!(error.message.contains("--nodes"), "{}", error.message);
}
