//! What `simulate --output json` answers.

use serde::Deserialize;

/// The parts of an answer that are looked at.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Answer {
    scale_up: Vec<Growth>,
    scale_down: Vec<serde::de::IgnoredAny>,
    pods: Vec<Pod>,
    pub(crate) stats: Stats,
}

#[derive(Debug, Deserialize)]
struct Growth {
    from: u32,
    to: u32,
}

#[derive(Debug, Deserialize)]
struct Pod {
    outcome: String,
}

/// Figures.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Stats {
    pub(crate) nodes: usize,
    pub(crate) pods: usize,
    pub(crate) groups: usize,
    pub(crate) loop_ms: f64,
    pub(crate) loop_cpu_ms: f64,
    pub(crate) peak_rss_mib: f64,
    #[serde(default)]
    pub(crate) read_ms: f64,
}

impl Answer {
    fn new_nodes(&self) -> u32 {
        self.scale_up.iter().map(|growth| growth.to - growth.from).sum()
    }

    fn count(&self, outcome: &str) -> usize {
        self.pods.iter().filter(|pod| pod.outcome == outcome).count()
    }

    /// So many pods get new nodes, and no more than so many of these are asked for.
    pub(crate) fn helped(&self, pods: usize, most_nodes: u32) -> Result<String, String> {
        let (helped, nodes) = (self.count("scale-up"), self.new_nodes());
        let told = format!("{helped} pods on {nodes} new nodes of {} groups", self.scale_up.len());
        if helped == pods && nodes <= most_nodes { Ok(told) } else { Err(told) }
    }

    /// So many pods get a place, on nodes that are there or new ones.
    pub(crate) fn placed(&self, pods: usize) -> Result<String, String> {
        let (helped, fit) = (self.count("scale-up"), self.count("fits-existing"));
        let told = format!("{helped} pods on {} new nodes, {fit} on others", self.new_nodes());
        if helped + fit == pods { Ok(told) } else { Err(told) }
    }

    /// So many nodes go.
    pub(crate) fn removed(&self, nodes: usize) -> Result<String, String> {
        let told = format!("{} nodes removed", self.scale_down.len());
        if self.scale_down.len() >= nodes { Ok(told) } else { Err(told) }
    }

    /// Nothing is to be done.
    pub(crate) fn nothing(&self) -> Result<String, String> {
        let told = format!("{} groups grow, {} nodes go", self.scale_up.len(), self.scale_down.len());
        if self.scale_up.is_empty() && self.scale_down.is_empty() { Ok("nothing to do".to_owned()) } else { Err(told) }
    }
}
