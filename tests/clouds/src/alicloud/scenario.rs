//! The beginning: what there is when the clock starts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::account::{Key, Role};
use super::actions::metadata::Metadata;
use super::probes::Probes;
use super::quirks::Quirks;
use super::world::{Configuration, Group, InstanceType, LaunchTemplate, Timing, VSwitch};

/// The beginning of an AliCloud. A small one is ready: region `cn-hangzhou`, key `testid` with secret `testsecret`,
/// three zones, a few types, one configuration, no group.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scenario {
    /// Region.
    pub region: String,
    /// Time at the beginning.
    pub start: String,
    /// Seed of all chance.
    pub seed: u64,
    /// Keys.
    pub keys: Vec<Key>,
    /// Roles.
    pub roles: Vec<Role>,
    /// Secret that signs OIDC tokens.
    pub oidc_secret: String,
    /// What a machine can ask about itself.
    pub metadata: Metadata,
    /// Most requests in a minute, by operation; `*` is for the others.
    pub budgets: BTreeMap<String, u32>,
    /// Requests that are not encrypted are handled.
    pub plain_http: bool,
    /// Groups.
    pub groups: Vec<Group>,
    /// Scaling configurations.
    pub configurations: Vec<Configuration>,
    /// Versions of launch templates.
    pub launch_templates: Vec<LaunchTemplate>,
    /// Subnets.
    pub vswitches: Vec<VSwitch>,
    /// Types.
    pub types: Vec<InstanceType>,
    /// Machines in stock, by `zone/type`; what is not here is without end.
    pub stock: BTreeMap<String, u32>,
    /// Machines that the account may have, by type; what is not here is without end.
    pub quota: BTreeMap<String, u32>,
    /// Code of the account's trouble with money.
    pub billing: Option<String>,
    /// How long things take.
    pub timing: Timing,
    /// Open choices.
    pub probes: Probes,
    /// Variations in answers; none: by chance from the seed.
    pub quirks: Option<Quirks>,
}

fn kind(name: &str, cpu: u32, memory_gib: f64) -> InstanceType {
    InstanceType { name: name.to_owned(), cpu, memory_gib, ..InstanceType::default() }
}

impl Default for Scenario {
    fn default() -> Self {
        let vswitch =
            |letter: &str| VSwitch { id: format!("vsw-{letter}"), zone: format!("cn-hangzhou-{letter}"), free: 4000 };
        let key = Key {
            id: "testid".to_owned(),
            secret: "testsecret".to_owned(),
            active: true,
            allow: vec!["*".to_owned()],
            session: None,
        };
        let gpu = InstanceType { gpu: 1, gpu_name: "NVIDIA A10".to_owned(), ..kind("ecs.gn7i-c8g1.2xlarge", 8, 30.0) };
        let arm = InstanceType { architecture: "ARM".to_owned(), ..kind("ecs.g8y.large", 2, 8.0) };
        Self {
            region: "cn-hangzhou".to_owned(),
            start: "2024-06-01T08:30:00Z".to_owned(),
            seed: 1,
            keys: vec![key],
            roles: vec![],
            oidc_secret: "oidc-test-secret".to_owned(),
            metadata: Metadata::default(),
            budgets: BTreeMap::new(),
            plain_http: false,
            groups: vec![],
            configurations: vec![Configuration::default()],
            launch_templates: vec![],
            vswitches: ["a", "b", "c"].map(vswitch).to_vec(),
            types: vec![
                kind("ecs.g7.xlarge", 4, 16.0),
                kind("ecs.g6.xlarge", 4, 16.0),
                kind("ecs.t6-c4m1.large", 2, 0.5),
                gpu,
                arm,
            ],
            stock: BTreeMap::new(),
            quota: BTreeMap::new(),
            billing: None,
            timing: Timing::default(),
            probes: Probes::default(),
            quirks: Some(Quirks::default()),
        }
    }
}

impl Scenario {
    /// The small one with these groups.
    pub fn with_groups(groups: Vec<Group>) -> Self {
        Self { groups, ..Self::default() }
    }
}
