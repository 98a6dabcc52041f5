//! What there is at the beginning.

use serde::Deserialize;

use crate::chance::Chance;
use crate::clock::UnixMs;
use crate::fake::Fake;
use crate::nodes::Script;

use super::serve::Utho;
use super::settings::{Quirks, Switches};
use super::world::World;

/// A cluster, as JSON for the binary `clouds`.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scenario {
    /// Where the clock stands, such as `2026-01-01T00:00:00Z`.
    pub start: String,
    /// Seed of all chance.
    pub seed: u64,
    /// Number of the cluster.
    pub cluster: String,
    /// How the cloud behaves; left out: by chance.
    pub switches: Option<Switches>,
    /// How answers look; left out: by chance.
    pub quirks: Option<Quirks>,
    /// How machines become nodes.
    pub script: Script,
    /// Node pools.
    pub pools: Vec<ScenarioPool>,
}

/// A node pool at the beginning; its machines are up.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioPool {
    /// Id.
    pub id: String,
    /// Id of its plan.
    pub plan: String,
    /// Least size.
    pub min: u32,
    /// Greatest size.
    pub max: u32,
    /// Size.
    pub count: u32,
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            start: "2026-01-01T00:00:00Z".to_owned(),
            seed: 0,
            cluster: "1111".to_owned(),
            switches: None,
            quirks: None,
            script: Script::default(),
            pools: vec![],
        }
    }
}

/// Why a scenario is none.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ScenarioError {
    /// Not a time.
    #[error("start is {0:?}, expected a time such as 2026-01-01T00:00:00Z")]
    Start(String),
    /// A pool of a plan that does not exist.
    #[error("pool {pool} has plan {plan}, expected one of {known}")]
    Plan {
        /// The pool.
        pool: String,
        /// Its plan.
        plan: String,
        /// Plans that there are.
        known: String,
    },
}

impl Utho {
    /// A cloud as the scenario describes it.
    ///
    /// # Errors
    /// The start is no time, or a plan is not known.
    pub fn start(scenario: Scenario) -> Result<Fake<Self>, ScenarioError> {
        let now = UnixMs::parse(&scenario.start).ok_or_else(|| ScenarioError::Start(scenario.start.clone()))?;
        let mut chance = Chance::new(scenario.seed ^ 0x07);
        let switches = scenario.switches.unwrap_or_else(|| Switches::random(&mut chance));
        let quirks = scenario.quirks.unwrap_or_else(|| Quirks::random(&mut chance));
        let mut cloud = Self::new(World::new(&scenario.cluster), switches, quirks);
        cloud.script = scenario.script;
        let named = cloud.named();
        for pool in scenario.pools {
            let plans = &cloud.world().plans;
            if !plans.contains_key(&pool.plan) {
                let known = plans.keys().cloned().collect::<Vec<_>>().join(", ");
                return Err(ScenarioError::Plan { pool: pool.id, plan: pool.plan, known });
            }
            cloud.world_mut().add_pool(&pool.id, &pool.plan, (pool.min, pool.max), pool.count, named);
        }
        Ok(Fake::new(cloud, now, scenario.seed))
    }
}
