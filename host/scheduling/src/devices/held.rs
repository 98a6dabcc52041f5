//! Devices that claims have already.

use plimsoll_model::Quantity;
use plimsoll_model::devices::{Allocation, DeviceName};
use plimsoll_model::{Cluster, Symbol};
use rustc_hash::{FxHashMap, FxHashSet};

use super::ClaimKey;

/// Claims that have devices, and these devices. Devices that are held with admin access alone are free for others.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held {
    /// How many users each claim has, among those that are given back when their pod goes.
    users: FxHashMap<ClaimKey, i64>,
    /// How many claims have the whole device.
    whole: FxHashMap<DeviceName, u32>,
    /// How many claims have a share, and what they took of each capacity.
    shares: FxHashMap<DeviceName, Vec<Vec<(Symbol, Quantity)>>>,
}

/// Claims that were made for a pod and go with it: allocated, and held by some pod that has a node.
pub(crate) fn given_back(cluster: &Cluster) -> FxHashSet<ClaimKey> {
    use plimsoll_model::pod::ClaimReference::{ForResources, Made};
    let mut claims = FxHashSet::default();
    if cluster.devices.claims.is_empty() {
        return claims;
    }
    for pod in cluster.pods.iter().filter(|pod| pod.counts_on().is_some()) {
        let spec = &cluster.specs[pod.held];
        claims.extend(spec.claims.iter().filter_map(|claim| match *claim {
            Made { claim, .. } | ForResources(claim) => Some((spec.namespace, claim)),
            _ => None,
        }));
    }
    claims
}

impl Held {
    /// What all claims have but those that are given back.
    pub(crate) fn lasting(cluster: &Cluster, given_back: &FxHashSet<ClaimKey>) -> Self {
        let mut held = Self::default();
        for (key, claim) in &cluster.devices.claims {
            if let Some(allocation) = claim.allocation.as_ref().filter(|_| !given_back.contains(key)) {
                held.add(allocation);
            }
        }
        held
    }

    /// A claim that is given back has more users, or fewer. True if it got its first or lost its last.
    pub(crate) fn shift(&mut self, key: ClaimKey, allocation: &Allocation, delta: i64) -> bool {
        let users = self.users.entry(key).or_default();
        let before = *users;
        *users += delta;
        let (had, has) = (before > 0, *users > 0);
        if *users == 0 {
            self.users.remove(&key);
        }
        match (had, has) {
            (false, true) => self.add(allocation),
            (true, false) => self.remove(allocation),
            _ => return false,
        }
        true
    }

    fn add(&mut self, allocation: &Allocation) {
        for device in allocation.devices.iter().filter(|device| !device.admin) {
            if device.shared {
                self.shares.entry(device.device).or_default().push(device.consumed.to_vec());
            } else {
                *self.whole.entry(device.device).or_default() += 1;
            }
        }
    }

    fn remove(&mut self, allocation: &Allocation) {
        for device in allocation.devices.iter().filter(|device| !device.admin) {
            if device.shared {
                let shares = self.shares.entry(device.device).or_default();
                if let Some(at) = shares.iter().position(|share| **share == *device.consumed) {
                    shares.swap_remove(at);
                }
                if shares.is_empty() {
                    self.shares.remove(&device.device);
                }
            } else if let Some(claims) = self.whole.get_mut(&device.device) {
                *claims -= 1;
                if *claims == 0 {
                    self.whole.remove(&device.device);
                }
            }
        }
    }

    /// Claims that are given back, with their users, in no particular order.
    pub(crate) fn users(&self) -> impl Iterator<Item = (ClaimKey, i64)> {
        self.users.iter().map(|(key, users)| (*key, *users))
    }

    /// Whether some claim has the whole device.
    pub(crate) fn is_taken(&self, device: DeviceName) -> bool {
        self.whole.contains_key(&device)
    }

    /// What claims took of a device that is given in shares.
    pub(crate) fn shares(&self, device: DeviceName) -> &[Vec<(Symbol, Quantity)>] {
        self.shares.get(&device).map_or(&[], Vec::as_slice)
    }
}
