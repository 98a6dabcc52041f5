use super::*;
use plimsoll_guest::TaintEffect;
use rstest::rstest;

fn kind(cores: u32, memory_gib: f64, arch: &'static str, gpus: u32) -> InstanceType {
    InstanceType {
        cores,
        memory_gib,
        arch,
        gpus,
        gpu_model: if gpus > 0 { "NVIDIA A10".into() } else { String::new() },
    }
}

fn known() -> BTreeMap<String, InstanceType> {
    [
        ("ecs.t5.small", kind(1, 0.5, "amd64", 0)),
        ("ecs.g7.xlarge", kind(4, 16.0, "amd64", 0)),
        ("ecs.c7.2xlarge", kind(8, 8.0, "amd64", 0)),
        ("ecs.g8y.xlarge", kind(4, 16.0, "arm64", 0)),
        ("ecs.gn7i.2xlarge", kind(8, 30.0, "amd64", 1)),
        ("ecs.gn7i.4xlarge", kind(16, 60.0, "amd64", 2)),
    ]
    .map(|(name, kind)| (name.to_owned(), kind))
    .into()
}

fn source(types: &[&str]) -> Source {
    Source { types: types.iter().map(|kind| (*kind).to_owned()).collect(), system_disk_gib: 40, ..Source::default() }
}

fn made(settings: &Settings, source: &Source, zones: &[&str]) -> Vec<NodeTemplate> {
    let zones: Vec<_> = zones.iter().map(|zone| (*zone).to_owned()).collect();
    let group = ScalingGroup { id: "asg-1".into(), ..ScalingGroup::default() };
    templates(settings, "cn-hangzhou", &known(), &group, source, &zones).unwrap()
}

fn amount<'a>(list: &'a [Quantity], name: &str) -> Option<&'a str> {
    list.iter().find(|one| one.name == name).map(|one| one.amount.as_str())
}

fn label<'a>(template: &'a NodeTemplate, key: &str) -> Option<&'a str> {
    template.labels.iter().find(|label| label.key == key).map(|label| label.value.as_str())
}

#[rstest]
#[case::plain(&["ecs.g7.xlarge"], "4", "16777216Ki", None, "amd64", Some("ecs.g7.xlarge"))]
#[case::half_a_gib(&["ecs.t5.small"], "1", "524288Ki", None, "amd64", Some("ecs.t5.small"))]
#[case::arm(&["ecs.g8y.xlarge"], "4", "16777216Ki", None, "arm64", Some("ecs.g8y.xlarge"))]
#[case::gpu(&["ecs.gn7i.2xlarge"], "8", "31457280Ki", Some("1"), "amd64", Some("ecs.gn7i.2xlarge"))]
#[case::least_of_two(&["ecs.g7.xlarge", "ecs.c7.2xlarge"], "4", "8388608Ki", None, "amd64", None)]
#[case::least_gpus(&["ecs.gn7i.4xlarge", "ecs.gn7i.2xlarge"], "8", "31457280Ki", Some("1"), "amd64", None)]
#[case::one_without_gpu(&["ecs.gn7i.2xlarge", "ecs.g7.xlarge"], "4", "16777216Ki", None, "amd64", None)]
#[case::one_unknown(&["ecs.gone.large", "ecs.g7.xlarge"], "4", "16777216Ki", None, "amd64", Some("ecs.g7.xlarge"))]
#[case::other_architecture(&["ecs.g7.xlarge", "ecs.g8y.xlarge"], "4", "16777216Ki", None, "amd64", Some("ecs.g7.xlarge"))]
fn shapes(
    #[case] types: &[&str],
    #[case] cpu: &str,
    #[case] memory: &str,
    #[case] gpus: Option<&str>,
    #[case] arch: &str,
    #[case] type_label: Option<&str>,
) {
    let template = &made(&Settings::default(), &source(types), &[])[0];
    assert_eq!(amount(&template.capacity, "cpu"), Some(cpu));
    assert_eq!(amount(&template.capacity, "memory"), Some(memory));
    assert_eq!(amount(&template.capacity, "pods"), Some("110"));
    assert_eq!(amount(&template.capacity, GPU_RESOURCE), gpus);
    assert_eq!(template.accelerator.as_ref().map(|found| found.count.to_string()).as_deref(), gpus);
    assert_eq!((template.arch.as_str(), label(template, "kubernetes.io/arch")), (arch, Some(arch)));
    assert_eq!(label(template, "node.kubernetes.io/instance-type"), type_label);
    assert_eq!(label(template, "topology.kubernetes.io/zone"), None);
    assert!(template.allocatable.is_empty(), "all of the capacity");
}

#[test]
fn there_is_a_template_for_each_zone() {
    let templates = made(&Settings::default(), &source(&["ecs.g7.xlarge"]), &["cn-hangzhou-h", "cn-hangzhou-i"]);
    let zones: Vec<_> = templates.iter().map(|template| label(template, "topology.kubernetes.io/zone")).collect();
    assert_eq!(zones, [Some("cn-hangzhou-h"), Some("cn-hangzhou-i")]);
    assert_ne!(templates[0].key, templates[1].key);
    assert_eq!(made(&Settings::default(), &source(&["ecs.g7.xlarge"]), &["cn-hangzhou-h"])[0].key, templates[0].key);
}

#[test]
fn the_disk_for_pods_is_chosen_and_a_part_kept_back() {
    let source = Source { data_disks_gib: vec![20, 100], ..source(&["ecs.g7.xlarge"]) };
    let disk = |disk| {
        let mut settings = Settings::default();
        settings.template.disk = disk;
        amount(&made(&settings, &source, &[])[0].capacity, "ephemeral-storage").map(str::to_owned)
    };
    assert_eq!(disk(PodDisk::System), Some(format!("{}Ki", 40 * KI_PER_GI * 85 / 100)));
    assert_eq!(disk(PodDisk::LargestData), Some(format!("{}Ki", 100 * KI_PER_GI * 85 / 100)));
}

#[test]
fn a_configured_reserve_becomes_allocatable() {
    let mut settings = Settings::default();
    settings.template.reserved_cpu_milli = 80;
    settings.template.reserved_memory_mib = 1024;
    let template = &made(&settings, &source(&["ecs.g7.xlarge"]), &[])[0];
    assert_eq!(amount(&template.allocatable, "cpu"), Some("3920m"));
    assert_eq!(amount(&template.allocatable, "memory"), Some("15728640Ki"));
    assert_eq!(amount(&template.allocatable, "pods"), Some("110"));
}

#[test]
fn tags_speak_and_the_groups_tags_louder() {
    let prefix = "k8s.io/cluster-autoscaler/node-template/";
    let tag = |key: &str, value: &str| (format!("{prefix}{key}"), value.to_owned());
    let source = Source {
        tags: vec![
            tag("label/team", "a"),
            tag("taint/dedicated", "x:NoSchedule"),
            tag("resources/example.com/fpga", "2"),
            ("plain".into(), "y".into()),
        ],
        ..source(&["ecs.gn7i.2xlarge"])
    };
    let group = ScalingGroup {
        id: "asg-1".into(),
        tags: Some(vec![tag("label/team", "b"), tag("label/aliyun.accelerator/nvidia_name", "A10")]),
        ..ScalingGroup::default()
    };
    let template = |legacy| {
        let mut settings = Settings::default();
        settings.template.legacy_tag_labels = legacy;
        templates(&settings, "cn-hangzhou", &known(), &group, &source, &[]).unwrap().remove(0)
    };
    let found = template(false);
    assert_eq!((label(&found, "team"), label(&found, "plain")), (Some("b"), None));
    assert_eq!(found.taints, [plimsoll_guest::Taint::new("dedicated", "x", TaintEffect::NoSchedule)]);
    assert_eq!(amount(&found.capacity, "example.com/fpga"), Some("2"));
    assert_eq!(found.accelerator.unwrap().model, "A10");
    assert_eq!(label(&template(true), "plain"), Some("y"));
}

#[test]
fn numbers_will_do_where_there_are_no_types() {
    let by_numbers = Source { shape: Some((2, 4.0)), ..source(&[]) };
    let template = &made(&Settings::default(), &by_numbers, &[])[0];
    assert_eq!((amount(&template.capacity, "cpu"), template.instance_type.as_str()), (Some("2"), ""));
}

#[test]
fn a_type_that_nobody_knows_is_an_error() {
    let group = ScalingGroup { id: "asg-1".into(), ..ScalingGroup::default() };
    let error = templates(&Settings::default(), "cn-hangzhou", &known(), &group, &source(&["ecs.gone.large"]), &[])
        .unwrap_err();
    assert!(
        error.message.contains("failed to find the specific instance type by Id: ecs.gone.large"),
        "{}",
        error.message
    );
}
