//! Groups of every kind: templates, weights, spot, stopped machines.

use std::collections::BTreeMap;

use plimsoll_guest::{NodeTemplate, Provider, TemplateChoice};
use plimsoll_tests_clouds::alicloud::world::{Configuration, LaunchTemplate, Source, TypeChoice};
use plimsoll_tests_clouds::alicloud::{Group, Scenario};

use crate::bench::{Bench, SEEDS, Signing, scenario, setup};

fn amount<'a>(template: &'a NodeTemplate, name: &str) -> &'a str {
    template.capacity.iter().find(|one| one.name == name).map_or("", |one| one.amount.as_str())
}

fn label<'a>(template: &'a NodeTemplate, key: &str) -> &'a str {
    template.labels.iter().find(|label| label.key == key).map_or("", |label| label.value.as_str())
}

fn choice(instance_type: &str, weight: u32) -> TypeChoice {
    TypeChoice { instance_type: instance_type.into(), weight }
}

fn start(group: Group, seed: u64, change: impl FnOnce(&mut Scenario)) -> Bench {
    let mut start = scenario(vec![group], seed);
    change(&mut start);
    Bench::with(start, setup(&["0:20:asg-1"]), Signing::V3)
}

fn templates(bench: &mut Bench) -> Vec<NodeTemplate> {
    let group = bench.group("asg-1");
    let mut found = bench.provider.templates(vec!["asg-1".into()]).unwrap().remove(0);
    assert_eq!(found.error, None);
    assert_eq!(found.version, group.template_version);
    assert_eq!(
        group.template_choice,
        if found.templates.len() > 1 { TemplateChoice::AnyOf } else { TemplateChoice::Single }
    );
    found.templates.sort_by(|one, other| one.zone.cmp(&other.zone));
    found.templates
}

#[test]
fn a_configuration_makes_a_template_for_each_zone() {
    for seed in SEEDS {
        let mut group = Group::new("asg-1", 0, 20).desiring(0);
        group.vswitches = vec!["vsw-a".into(), "vsw-b".into()];
        let mut bench = start(group, seed, |start| {
            start.configurations[0].tags = BTreeMap::from([
                ("k8s.io/cluster-autoscaler/node-template/label/team".to_owned(), "a".to_owned()),
                ("k8s.io/cluster-autoscaler/node-template/taint/dedicated".to_owned(), "x:NoSchedule".to_owned()),
                ("plain".to_owned(), "tag".to_owned()),
            ]);
        });
        let templates = templates(&mut bench);
        let zones: Vec<_> = templates.iter().map(|one| one.zone.clone().unwrap_or_default()).collect();
        assert_eq!(zones, ["cn-hangzhou-a", "cn-hangzhou-b"], "seed {seed}");
        for one in &templates {
            assert_eq!((amount(one, "cpu"), amount(one, "memory")), ("4", "16777216Ki"));
            assert_eq!((label(one, "team"), label(one, "plain")), ("a", ""));
            assert_eq!(label(one, "node.kubernetes.io/instance-type"), "ecs.g7.xlarge");
            assert_eq!((one.taints.len(), amount(one, "nvidia.com/gpu")), (1, ""));
        }
        // What does not change is not asked again.
        let before = bench.calls("DescribeInstanceTypes") + bench.calls("DescribeVSwitches");
        self::templates(&mut bench);
        assert_eq!(bench.calls("DescribeInstanceTypes") + bench.calls("DescribeVSwitches"), before);
        bench.clean(&format!("seed {seed}"));
    }
}

#[test]
fn machines_of_other_kinds() {
    for seed in SEEDS {
        for (kind, cpu, memory, arch, gpus) in [
            ("ecs.g8y.large", "2", "8388608Ki", "arm64", ""),
            ("ecs.gn7i-c8g1.2xlarge", "8", "31457280Ki", "amd64", "1"),
            ("ecs.t6-c4m1.large", "2", "524288Ki", "amd64", ""),
        ] {
            let mut bench = start(Group::new("asg-1", 0, 20).desiring(0), seed, |start| {
                start.configurations[0] = Configuration { types: vec![choice(kind, 1)], ..Configuration::default() };
            });
            let template = templates(&mut bench).remove(0);
            let found = (
                amount(&template, "cpu"),
                amount(&template, "memory"),
                template.arch.as_str(),
                amount(&template, "nvidia.com/gpu"),
            );
            assert_eq!(found, (cpu, memory, arch, gpus), "seed {seed}");
            assert_eq!(template.accelerator.is_some(), !gpus.is_empty());
        }
    }
}

#[test]
fn a_launch_template_with_several_types() {
    for seed in SEEDS {
        let version = ["Default", "Latest", "2"][(seed % 3) as usize];
        let mut group = Group::new("asg-1", 0, 20).desiring(0);
        group.spot = seed.is_multiple_of(2);
        group.source = Some(Source::LaunchTemplate {
            id: "lt-1".into(),
            version: version.into(),
            overrides: if seed % 4 < 2 {
                vec![choice("ecs.g7.xlarge", 1), choice("ecs.t6-c4m1.large", 1)]
            } else {
                vec![]
            },
        });
        let mut bench = start(group, seed, |start| {
            let one = |version, instance_type: &str, default| LaunchTemplate {
                id: "lt-1".into(),
                version,
                default,
                instance_type: instance_type.into(),
                system_disk_gib: 60,
                data_disks: vec![],
                tags: BTreeMap::new(),
            };
            start.launch_templates = vec![one(1, "ecs.g8y.large", true), one(2, "ecs.gn7i-c8g1.2xlarge", false)];
        });
        let template = templates(&mut bench).remove(0);
        if seed % 4 < 2 {
            assert_eq!((amount(&template, "cpu"), amount(&template, "memory")), ("2", "524288Ki"), "seed {seed}");
            assert_eq!(label(&template, "node.kubernetes.io/instance-type"), "");
            assert_eq!(template.attributes[0].value, "ecs.g7.xlarge,ecs.t6-c4m1.large");
        } else {
            let kind = if version == "Default" { "ecs.g8y.large" } else { "ecs.gn7i-c8g1.2xlarge" };
            assert_eq!(template.instance_type, kind, "seed {seed}, {version}");
        }
        bench.clean(&format!("seed {seed}"));
    }
}

#[test]
fn weights_are_machines() {
    for seed in SEEDS {
        let mut group = Group::new("asg-1", 0, 40).desiring(4).running(1);
        group.weighted = true;
        group.source = Some(Source::LaunchTemplate {
            id: "lt-1".into(),
            version: "Default".into(),
            overrides: vec![choice("ecs.g7.xlarge", 4)],
        });
        let mut bench = start(group, seed, |start| {
            start.launch_templates = vec![LaunchTemplate {
                id: "lt-1".into(),
                version: 1,
                default: true,
                instance_type: "ecs.g7.xlarge".into(),
                system_disk_gib: 40,
                data_disks: vec![],
                tags: BTreeMap::new(),
            }];
        });
        let found = bench.group("asg-1");
        assert_eq!((found.target_size, found.max_size, found.instances.len()), (1, 10, 1), "seed {seed}");
        bench.increase("asg-1", 2, 1, "k").unwrap();
        assert_eq!(bench.group("asg-1").target_size, 3, "seed {seed}");
        bench.advance(200);
        let found = bench.group("asg-1");
        assert_eq!((found.target_size, found.instances.len()), (3, 3), "seed {seed}");
        bench.delete("asg-1", &[found.instances[0].id.clone()], 0, "k2").unwrap();
        bench.advance(100);
        let found = bench.group("asg-1");
        assert_eq!((found.target_size, found.instances.len()), (2, 2), "seed {seed}");
        bench.clean(&format!("seed {seed}"));
    }
}

#[test]
fn machines_kept_for_later_are_no_machines() {
    for seed in SEEDS {
        let mut group = Group::new("asg-1", 0, 20).running(3);
        group.recycles = true;
        let mut bench = Bench::new(vec![group], &["0:20:asg-1"], seed);
        let id = bench.group("asg-1").instances[0].id.clone();
        bench.world.borrow_mut().with(|cloud, _| {
            let machine = cloud.kept.world.machines.get_mut(&id).unwrap();
            machine.state = plimsoll_tests_clouds::alicloud::world::State::Stopped;
        });
        let found = bench.group("asg-1");
        assert_eq!((found.instances.len(), found.target_size), (2, 2), "seed {seed}");
        assert!(found.instances.iter().all(|instance| instance.id != id));
    }
}

#[test]
fn groups_are_found_by_their_tags() {
    for seed in SEEDS {
        let tagged = |id: &str, owner: &str, max: Option<&str>| {
            let mut group = Group::new(id, 1, 20).desiring(1).running(1);
            group.tags = BTreeMap::from([
                ("k8s.io/cluster-autoscaler/enabled".to_owned(), "true".to_owned()),
                ("owner".to_owned(), owner.to_owned()),
            ]);
            group.tags.extend(max.map(|max| ("k8s.io/cluster-autoscaler/max-size".to_owned(), max.to_owned())));
            group
        };
        let groups = vec![
            tagged("asg-1", "a", None),
            tagged("asg-2", "a", Some("7")),
            tagged("asg-3", "b", None),
            Group::new("asg-4", 0, 5),
        ];
        let mut found = setup(&[]);
        found.discovery = vec!["asg:tag=k8s.io/cluster-autoscaler/enabled,owner=a".into()];
        let mut bench = Bench::with(scenario(groups, seed), found, Signing::V3);
        let sizes: Vec<_> =
            bench.refresh().iter().map(|group| (group.id.clone(), group.min_size, group.max_size)).collect();
        assert_eq!(sizes, [("asg-1".to_owned(), 1, 20), ("asg-2".to_owned(), 1, 7)], "seed {seed}");
        // A plug-in that has just started finds the group that it is asked to change.
        bench.restart();
        assert_eq!(bench.increase("asg-2", 1, 1, "k").unwrap().accepted, 1);
        assert_eq!(bench.increase("asg-3", 1, 1, "k").unwrap_err().code, "unknown-group");
        bench.clean(&format!("seed {seed}"));
    }
}
