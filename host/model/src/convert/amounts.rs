//! Lists of amounts by resource name: which names count, and exact sums that are rounded once.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;

use crate::quantity::Quantity;
use crate::resources::Resources;
use crate::symbol::{Symbol, Symbols};

use super::error::{ConvertError, Within};
use super::syntax::is_qualified_name;

/// Amounts by resource name, as Kubernetes writes them.
pub(super) type ResourceList = BTreeMap<String, Text>;

/// Where a resource is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Column {
    Cpu,
    Memory,
    EphemeralStorage,
    Pods,
    Scalar,
    /// A name that the scheduler does not count, such as `storage`.
    None,
}

/// kube-scheduler `Resource.Add` with `IsScalarResourceName`.
fn column(name: &str) -> Column {
    match name {
        "cpu" => Column::Cpu,
        "memory" => Column::Memory,
        "ephemeral-storage" => Column::EphemeralStorage,
        "pods" => Column::Pods,
        _ if is_huge_page(name) || name.starts_with("attachable-volumes-") || is_extended(name) => Column::Scalar,
        _ => Column::None,
    }
}

fn is_huge_page(name: &str) -> bool {
    name.starts_with("hugepages-")
}

/// A name with a prefix: a resource of somebody else's, or of a sub-domain of `kubernetes.io`. The former must also be a
/// valid name of a quota, which puts `requests.` in front.
fn is_extended(name: &str) -> bool {
    const NATIVE: &str = "kubernetes.io/";
    const QUOTA: &str = "requests.";
    name.contains(NATIVE)
        || (name.contains('/') && !name.starts_with(QUOTA) && is_qualified_name(&format!("{QUOTA}{name}")))
}

/// Whether requests of the pod as a whole may name this resource (component-helpers `IsSupportedPodLevelResource`).
pub(super) fn is_pod_level(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || is_huge_page(name)
}

/// Whether a half of it is none: extended resources, and pods (apimachinery `IsIntegerResourceName`).
pub(super) fn is_counted_in_whole(name: &str) -> bool {
    name == "pods" || is_extended(name)
}

/// Whether a pod may use more of it than it asks for (component-helpers `IsOvercommitAllowed`).
pub(super) fn is_overcommitted(name: &str) -> bool {
    !is_huge_page(name) && !is_extended(name)
}

/// Exact amounts.
#[derive(Clone, Debug, Default)]
pub(super) struct Amounts {
    cpu: Quantity,
    memory: Quantity,
    ephemeral_storage: Quantity,
    pods: Quantity,
    scalars: Vec<(Symbol, Quantity)>,
}

impl Amounts {
    fn slot(&mut self, column: Column, name: &str, symbols: &mut Symbols) -> Option<&mut Quantity> {
        Some(match column {
            Column::Cpu => &mut self.cpu,
            Column::Memory => &mut self.memory,
            Column::EphemeralStorage => &mut self.ephemeral_storage,
            Column::Pods => &mut self.pods,
            Column::Scalar => self.scalar(symbols.intern(name)),
            Column::None => return None,
        })
    }

    fn scalar(&mut self, name: Symbol) -> &mut Quantity {
        let at = self.scalars.iter().position(|&(other, _)| other == name).unwrap_or_else(|| {
            self.scalars.push((name, Quantity::default()));
            self.scalars.len() - 1
        });
        // The fallback is never reached: `at` was found or pushed just now.
        self.scalars.get_mut(at).map_or(&mut self.pods, |(_, amount)| amount)
    }

    /// Adds a list.
    pub(super) fn add_list(&mut self, list: Option<&ResourceList>, symbols: &mut Symbols) -> Result<(), ConvertError> {
        for (name, text) in list.into_iter().flatten() {
            if let Some(slot) = self.slot(column(name), name, symbols) {
                *slot = slot.plus(text.0.parse::<Quantity>().map_err(ConvertError::from).key(name)?);
            }
        }
        Ok(())
    }

    /// Adds amounts.
    pub(super) fn add(&mut self, other: &Amounts) {
        self.combine(other, Quantity::plus);
    }

    /// Takes the greater one of each amount.
    pub(super) fn raise_to(&mut self, other: &Amounts) {
        self.combine(other, Quantity::max);
    }

    fn combine(&mut self, other: &Amounts, combine: fn(Quantity, Quantity) -> Quantity) {
        self.cpu = combine(self.cpu, other.cpu);
        self.memory = combine(self.memory, other.memory);
        self.ephemeral_storage = combine(self.ephemeral_storage, other.ephemeral_storage);
        self.pods = combine(self.pods, other.pods);
        for &(name, amount) in &other.scalars {
            let slot = self.scalar(name);
            *slot = combine(*slot, amount);
        }
    }

    /// Takes the amounts of `list` for those names of it that a pod as a whole may ask for.
    pub(super) fn replace(&mut self, names: &ResourceList, by: &Amounts, symbols: &mut Symbols) {
        for name in names.keys().filter(|name| is_pod_level(name)) {
            let column = column(name);
            let amount = by.clone().slot(column, name, symbols).map(|slot| *slot);
            if let (Some(slot), Some(amount)) = (self.slot(column, name, symbols), amount) {
                *slot = amount;
            }
        }
    }

    /// What a pod asks for: rounded up once, never negative, `pods` 1, nothing of a scalar it asks 0 of.
    pub(super) fn into_requests(self) -> Resources {
        let whole = |amount: Quantity| amount.units().max(0);
        let scalars =
            self.scalars.iter().map(|&(name, amount)| (name, whole(amount))).filter(|&(_, amount)| amount != 0);
        Resources {
            cpu_milli: self.cpu.milli().max(0),
            memory_bytes: whole(self.memory),
            ephemeral_storage_bytes: whole(self.ephemeral_storage),
            pods: 1,
            ..Resources::default()
        }
        .with_scalars(scalars)
    }

    /// What a node has. Scalars of amount 0 stay: that they are named at all makes nodes differ.
    fn into_supply(self) -> Resources {
        Resources {
            cpu_milli: self.cpu.milli(),
            memory_bytes: self.memory.units(),
            ephemeral_storage_bytes: self.ephemeral_storage.units(),
            pods: self.pods.units(),
            ..Resources::default()
        }
        .with_scalars(self.scalars.iter().map(|&(name, amount)| (name, amount.units())))
    }
}

/// Capacity or allocatable of a node.
pub(super) fn supply(list: Option<&ResourceList>, symbols: &mut Symbols) -> Result<Resources, ConvertError> {
    let mut amounts = Amounts::default();
    amounts.add_list(list, symbols)?;
    Ok(amounts.into_supply())
}

/// One amount that is counted in whole units, such as bytes of a volume.
pub(super) fn units(text: Option<&Text>) -> Result<Option<i64>, ConvertError> {
    text.map(|text| Ok(text.0.parse::<Quantity>()?.units())).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_count() {
        for (name, expected) in [
            ("cpu", Column::Cpu),
            ("memory", Column::Memory),
            ("ephemeral-storage", Column::EphemeralStorage),
            ("pods", Column::Pods),
            ("storage", Column::None),
            ("foo", Column::None),
            ("nvidia.com/gpu", Column::Scalar),
            ("hugepages-2Mi", Column::Scalar),
            ("attachable-volumes-csi-x", Column::Scalar),
            ("example.kubernetes.io/x", Column::Scalar),
            ("kubernetes.io/batch-cpu", Column::Scalar),
            ("requests.example.com/a", Column::None),
            ("Example.com/a", Column::None),
            ("example.com/", Column::None),
        ] {
            assert_eq!(column(name), expected, "{name}");
        }
    }
}
