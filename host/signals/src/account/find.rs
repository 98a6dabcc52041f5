//! Answers about one pod, node or group.

use serde::{Deserialize, Serialize};

use super::{Account, Class, Group, Growth, Node, Pod, Removal};

/// There is nothing of this name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "camelCase")]
#[error("{message}")]
pub struct Unknown {
    /// What was looked for, and what is most like it.
    pub message: String,
}

/// All about a pod.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodDetail {
    /// The time of the loop.
    pub at: String,
    /// Nodes that the loop saw.
    pub nodes: usize,
    /// What becomes of it.
    #[serde(flatten)]
    pub pod: Pod,
    /// Its class with the reasons, if nothing helps it.
    pub helpless: Option<Class>,
    /// The node that it is on, with what holds that.
    pub runs_on: Option<Node>,
}

/// All about a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeDetail {
    /// The time of the loop.
    pub at: String,
    /// What the loop thinks of it.
    #[serde(flatten)]
    pub node: Node,
    /// How it goes, if it does.
    pub removal: Option<Removal>,
    /// Pods on it.
    pub running: Vec<String>,
}

/// Pods that a group does not help.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Unhelped {
    /// One of them.
    pub example: String,
    /// How many.
    pub pods: usize,
    /// Why not.
    pub message: String,
}

/// All about a group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupDetail {
    /// The time of the loop.
    pub at: String,
    /// Sizes and state.
    #[serde(flatten)]
    pub group: Group,
    /// How it grows, if it does.
    pub growth: Option<Growth>,
    /// Other groups that grew instead of it.
    pub passed_over_for: Vec<String>,
    /// Its nodes.
    pub members: Vec<Node>,
    /// Its nodes that go.
    pub removals: Vec<Removal>,
    /// Pods that it does not help.
    pub unhelped: Vec<Unhelped>,
}

impl Account {
    /// A pod by `namespace/name`, or by its name alone if no other pod has it.
    ///
    /// # Errors
    ///
    /// If there is none, or several.
    pub fn pod(&self, name: &str) -> Result<PodDetail, Unknown> {
        let is = |full: &str| full == name || (!name.contains('/') && full.rsplit('/').next() == Some(name));
        let waiting = self.pods.iter().filter(|pod| is(&pod.pod)).map(|pod| pod.pod.as_str());
        let running = self.running.iter().filter(|(pod, _)| is(pod)).map(|(pod, _)| pod.as_str());
        let found: Vec<&str> = waiting.chain(running).collect();
        let full = match found.as_slice() {
            [one] => *one,
            [] => return Err(self.unknown_pod(name)),
            several => {
                let several = several.iter().take(5).copied().collect::<Vec<_>>().join(", ");
                return Err(Unknown { message: format!("there are several pods {name:?}: {several}") });
            }
        };
        let at = self.at.clone();
        if let Some(pod) = self.pods.iter().find(|pod| pod.pod == full) {
            let helpless = pod.class.and_then(|class| self.classes.get(class)).cloned();
            return Ok(PodDetail { at, nodes: self.totals.nodes, pod: pod.clone(), helpless, runs_on: None });
        }
        let on = self.running.iter().find(|(pod, _)| pod == full).map(|(_, node)| node.clone()).unwrap_or_default();
        let runs_on = self.nodes.iter().find(|node| node.node == on).cloned();
        let pod = Pod {
            pod: full.to_owned(),
            outcome: "has-node".to_owned(),
            on: Some(on),
            ignored: None,
            class: None,
            since: None,
        };
        Ok(PodDetail { at, nodes: self.totals.nodes, pod, helpless: None, runs_on })
    }

    fn unknown_pod(&self, name: &str) -> Unknown {
        let known = self.pods.iter().map(|pod| pod.pod.as_str());
        let known = known.chain(self.running.iter().map(|(pod, _)| pod.as_str()));
        let short = |full: &str| match name.contains('/') {
            true => full.to_owned(),
            false => full.rsplit('/').next().unwrap_or(full).to_owned(),
        };
        let mut message = format!("there was no pod {name:?} in the loop of {}", self.at);
        if self.left_out.pods + self.left_out.running > 0 {
            message.push_str(&format!(
                " among the {} that were kept; of {} others only the number is known",
                self.pods.len() + self.running.len(),
                self.left_out.pods + self.left_out.running
            ));
        }
        Unknown { message: message + &suggestion(name, known, short) }
    }

    /// A node by its name.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn node(&self, name: &str) -> Result<NodeDetail, Unknown> {
        let node = self.nodes.iter().find(|node| node.node == name).cloned().ok_or_else(|| {
            let known = self.nodes.iter().map(|node| node.node.as_str());
            self.unknown("node", name, known)
        })?;
        let on = self.running.iter().filter(|(_, on)| on == name).map(|(pod, _)| pod.clone());
        Ok(NodeDetail {
            at: self.at.clone(),
            node,
            removal: self.scale_down.iter().find(|removal| removal.node == name).cloned(),
            running: on.collect(),
        })
    }

    /// A node group by its name.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn group(&self, name: &str) -> Result<GroupDetail, Unknown> {
        let group = self.groups.iter().find(|group| group.group == name).cloned().ok_or_else(|| {
            let known = self.groups.iter().map(|group| group.group.as_str());
            self.unknown("node group", name, known)
        })?;
        let lost = |growth: &&Growth| growth.against.iter().any(|rival| rival.group == name);
        let unhelped = self.classes.iter().filter_map(|class| {
            let reason = class.reasons.iter().find(|reason| reason.group == name)?;
            Some(Unhelped { example: class.example.clone(), pods: class.pods, message: reason.message.clone() })
        });
        Ok(GroupDetail {
            at: self.at.clone(),
            growth: self.scale_up.iter().find(|growth| growth.group == name).cloned(),
            passed_over_for: self.scale_up.iter().filter(lost).map(|growth| growth.group.clone()).collect(),
            members: self.nodes.iter().filter(|node| node.group.as_deref() == Some(name)).cloned().collect(),
            removals: self.scale_down.iter().filter(|removal| removal.group == name).cloned().collect(),
            unhelped: unhelped.collect(),
            group,
        })
    }

    fn unknown<'a>(&self, what: &str, name: &str, known: impl Iterator<Item = &'a str>) -> Unknown {
        let nearest = suggestion(name, known, str::to_owned);
        Unknown { message: format!("there was no {what} {name:?} in the loop of {}{nearest}", self.at) }
    }
}

/// The known name that is most like an unknown one, if any is like it.
fn suggestion<'a>(name: &str, known: impl Iterator<Item = &'a str>, compared: impl Fn(&str) -> String) -> String {
    let scored = known.map(|known| (strsim::jaro_winkler(name, &compared(known)), known));
    let nearest = scored.filter(|(score, _)| *score > 0.8).max_by(|a, b| a.0.total_cmp(&b.0));
    nearest.map_or_else(String::new, |(_, known)| format!("; did you mean {known}?"))
}
