use super::*;
use rstest::rstest;

fn setup(config: Option<&str>) -> Setup {
    Setup { config: config.map(str::to_owned), node_groups: vec!["0:10:asg-1".into()], ..Setup::with_config("") }
}

#[test]
fn json_is_read() {
    let text = r#"{"region": "cn-hangzhou", "endpoints": {"network": "vpc", "ess": "ess.example"},
        "template": {"legacy_tag_labels": true, "disk": "largest-data", "max-pods": "64", "reserved-cpu-milli": 100},
        "ack": {"cluster-id": "c1"}, "errors": {"New.Code*": "quota"}, "discovery": {"tags": ["a=b", "c"]},
        "auth": {"mode": "rrsa", "role-arn": "acs:ram::1:role/x"}}"#;
    let settings = Settings::read(&setup(Some(text))).unwrap();
    assert_eq!(settings.region, "cn-hangzhou");
    assert_eq!(settings.endpoints.network, Network::Vpc);
    assert_eq!(settings.endpoints.written["ess"], "ess.example");
    assert!(settings.template.legacy_tag_labels);
    assert_eq!((settings.template.disk, settings.template.max_pods), (PodDisk::LargestData, 64));
    assert_eq!(settings.template.reserved_cpu_milli, 100);
    assert_eq!(settings.ack_cluster.as_deref(), Some("c1"));
    assert_eq!(settings.errors, [("New.Code*".to_owned(), ErrorClass::Quota)]);
    assert_eq!(settings.rules[0].tags, [("a".to_owned(), Some("b".to_owned())), ("c".to_owned(), None)]);
}

#[test]
fn sections_are_read() {
    let text = "# ours\nregion = \"cn-beijing\"  # near\n[endpoints]\nlookup = location\n[template]\nmax_pods=30\n[errors]\nX.Y = config\n[discovery]\ntags = [\"a=b\"]\n";
    let settings = Settings::read(&setup(Some(text))).unwrap();
    assert_eq!((settings.region.as_str(), settings.template.max_pods), ("cn-beijing", 30));
    assert_eq!(settings.endpoints.lookup, Lookup::Location);
    assert_eq!(settings.errors, [("X.Y".to_owned(), ErrorClass::Config)]);
    assert_eq!(settings.rules.len(), 1);
    let global = Settings::read(&setup(Some("[Global]\nRegion = cn-beijing"))).unwrap();
    assert_eq!(global.region, "cn-beijing");
}

#[test]
fn the_region_has_three_sources_in_order() {
    let attribute = |config| {
        let mut setup = setup(config);
        setup.attributes.push(("region", "cn-shanghai").into());
        Settings::read(&setup).unwrap().region
    };
    assert_eq!(attribute(None), "cn-shanghai");
    plimsoll_guest::testing::set_config("region", Some("cn-beijing"));
    assert_eq!(attribute(None), "cn-beijing");
    assert_eq!(attribute(Some(r#"{"region": "cn-hangzhou"}"#)), "cn-hangzhou");
    plimsoll_guest::testing::set_config("region", None);
    let error = Settings::read(&setup(None)).unwrap_err();
    assert!(error.message.contains("region"), "{}", error.message);
}

#[rstest]
#[case::broken("{\"region\": }", "line 1")]
#[case::line("region = cn-hangzhou\nnonsense", "line 2")]
#[case::unknown_key(r#"{"region": "cn-hangzhou", "endpoints": {"sls": "x"}}"#, "\"sls\" in \"endpoints\"")]
#[case::unknown_section("[nat]\nx = 1", "no section \"nat\"")]
#[case::unknown_top(r#"{"zone": "x"}"#, "no key \"zone\"")]
#[case::network(r#"{"region": "cn-hangzhou", "endpoints": {"network": "lan"}}"#, "endpoints.network is \"lan\"")]
#[case::class(r#"{"region": "cn-hangzhou", "errors": {"A": "bad"}}"#, "errors.A is \"bad\"")]
#[case::number(r#"{"region": "cn-hangzhou", "template": {"max-pods": "many"}}"#, "template.max-pods is \"many\"")]
#[case::region(r#"{"region": "cn hangzhou"}"#, "the region is \"cn hangzhou\"")]
#[case::secret("[Global]\nAccessKeySecret = hush", "bind the credential slot")]
#[case::secret_in_auth(
    r#"{"region": "cn-hangzhou", "auth": {"access_key_secret": "hush"}}"#,
    "bind the credential slot"
)]
fn bad_configurations_are_named(#[case] text: &str, #[case] part: &str) {
    let error = Settings::read(&setup(Some(text))).unwrap_err();
    assert_eq!((error.class, error.code.as_str()), (ErrorClass::Config, "bad-config"));
    assert!(error.message.contains(part), "{}", error.message);
    assert!(!error.message.contains("hush"), "{}", error.message);
}

#[test]
fn without_groups_there_is_nothing_to_do() {
    let setup = Setup { node_groups: vec![], ..setup(Some(r#"{"region": "cn-hangzhou"}"#)) };
    assert!(Settings::read(&setup).unwrap_err().message.contains("node group specs must be specified"));
}
