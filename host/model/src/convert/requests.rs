//! What a pod asks for as a whole (component-helpers `resource.PodRequests`, 1.37).

use k8s_openapi::api::core::v1 as core;

use crate::pod::OfContainers;
use crate::resources::Resources;
use crate::symbol::Symbols;

use super::amounts::{Amounts, ResourceList, is_pod_level};
use super::error::{ConvertError, Within};

/// What the scheduler asks a node for: containers, init containers, pod level and overhead.
pub(super) fn requested(spec: &core::PodSpec, symbols: &mut Symbols) -> Result<Resources, ConvertError> {
    let mut total = of_containers(spec, None, from_spec, symbols)?;
    if let Some(requests) = pod_level(spec) {
        let own = amounts(Some(requests), symbols).field("requests").field("resources").field("spec")?;
        total.replace(requests, &own, symbols);
    }
    add_overhead(&mut total, spec, symbols)?;
    Ok(total.into_requests())
}

/// What the containers alone ask for, if that is something else than what the scheduler asks a node for.
pub(super) fn of_containers_alone(
    spec: &core::PodSpec,
    requested: &Resources,
    symbols: &mut Symbols,
) -> Result<Option<OfContainers>, ConvertError> {
    if spec.init_containers.is_none() && spec.overhead.is_none() && pod_level(spec).is_none() {
        return Ok(None);
    }
    let mut total = Amounts::default();
    for (index, container) in spec.containers.iter().enumerate() {
        let asked = container.resources.as_ref().and_then(|resources| resources.requests.as_ref());
        let added = total.add_list(asked, symbols);
        added.field("requests").field("resources").index(index).field("containers").field("spec")?;
    }
    let Resources { cpu_milli, memory_bytes, .. } = total.into_requests();
    let differs = (cpu_milli, memory_bytes) != (requested.cpu_milli, requested.memory_bytes);
    Ok(differs.then_some(OfContainers { cpu_milli, memory_bytes }))
}

/// What the pod holds on its node while its resources are being changed in place; none: the same as [`requested`].
pub(super) fn held(
    spec: &core::PodSpec,
    status: &core::PodStatus,
    symbols: &mut Symbols,
) -> Result<Option<Resources>, ConvertError> {
    let infeasible = resize_is_infeasible(status);
    if !infeasible && agrees(spec, status) {
        return Ok(None);
    }
    let mut total = Amounts::default();
    let pod_status = status.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    if let (Some(allocated), Some(actuated)) = (&status.allocated_resources, pod_status) {
        total.raise_to(&status_amounts(Some(allocated), "allocatedResources", symbols)?);
        total.raise_to(&status_amounts(Some(actuated), "resources", symbols)?);
    } else {
        for pick in [from_allocated, from_actuated] {
            total.raise_to(&of_containers(spec, Some((status, infeasible)), pick, symbols)?);
        }
    }
    if !infeasible {
        total.raise_to(&of_containers(spec, None, from_spec, symbols)?);
    }
    if let Some(requests) = pod_level(spec) {
        apply_pod_level(&mut total, requests, status, infeasible, symbols)?;
    }
    add_overhead(&mut total, spec, symbols)?;
    Ok(Some(total.into_requests()))
}

/// Requests of the pod as a whole stand for those of its containers, as the status has changed them.
fn apply_pod_level(
    total: &mut Amounts,
    requests: &ResourceList,
    status: &core::PodStatus,
    infeasible: bool,
    symbols: &mut Symbols,
) -> Result<(), ConvertError> {
    let own = amounts(Some(requests), symbols).field("requests").field("resources").field("spec")?;
    let Some(reported) = &status.resources else {
        total.replace(requests, &own, symbols);
        return Ok(());
    };
    let mut effective = if infeasible { Amounts::default() } else { own };
    effective.raise_to(&status_amounts(reported.requests.as_ref(), "resources", symbols)?);
    effective.raise_to(&status_amounts(status.allocated_resources.as_ref(), "allocatedResources", symbols)?);
    let specified = (!infeasible).then_some(requests);
    for names in [specified, reported.requests.as_ref(), status.allocated_resources.as_ref()].into_iter().flatten() {
        total.replace(names, &effective, symbols);
    }
    Ok(())
}

fn status_amounts(
    list: Option<&ResourceList>,
    field: &'static str,
    symbols: &mut Symbols,
) -> Result<Amounts, ConvertError> {
    let found = amounts(list, symbols);
    let found = if field == "resources" { found.field("requests") } else { found };
    found.field(field).field("status")
}

fn amounts(list: Option<&ResourceList>, symbols: &mut Symbols) -> Result<Amounts, ConvertError> {
    let mut amounts = Amounts::default();
    amounts.add_list(list, symbols)?;
    Ok(amounts)
}

fn pod_level(spec: &core::PodSpec) -> Option<&ResourceList> {
    let requests = spec.resources.as_ref()?.requests.as_ref()?;
    requests.keys().any(|name| is_pod_level(name)).then_some(requests)
}

fn add_overhead(total: &mut Amounts, spec: &core::PodSpec, symbols: &mut Symbols) -> Result<(), ConvertError> {
    total.add_list(spec.overhead.as_ref(), symbols).field("overhead").field("spec")
}

/// Whether the status says nothing of resources, or the same as the spec, word for word. It nearly always does.
fn agrees(spec: &core::PodSpec, status: &core::PodStatus) -> bool {
    let same = |reported: Option<&ResourceList>, container: &core::Container| {
        reported.is_none_or(|reported| {
            let asked = container.resources.as_ref().and_then(|resources| resources.requests.as_ref());
            asked.map_or(reported.is_empty(), |asked| asked == reported)
        })
    };
    let of_container = |container: &core::Container| {
        status_of(status, &container.name).is_none_or(|(status, ..)| {
            let actuated = status.resources.as_ref().and_then(|resources| resources.requests.as_ref());
            same(status.allocated_resources.as_ref(), container) && same(actuated, container)
        })
    };
    let mut containers = spec.containers.iter().chain(spec.init_containers.iter().flatten());
    status.allocated_resources.is_none() && status.resources.is_none() && containers.all(of_container)
}

fn resize_is_infeasible(status: &core::PodStatus) -> bool {
    let pending = status.conditions.iter().flatten().find(|condition| condition.type_ == "PodResizePending");
    pending.is_some_and(|condition| condition.reason.as_deref() == Some("Infeasible"))
}

/// Which list of amounts a container's part is read from.
#[derive(Clone, Copy)]
enum Origin {
    /// `resources.requests` of the container.
    Spec,
    /// `allocatedResources` of its status.
    Allocated,
    /// `resources.requests` of its status.
    Actuated,
}

/// A container with its status, if its status is asked for and there.
#[derive(Clone, Copy)]
struct Container<'a> {
    spec: &'a core::Container,
    status: Option<&'a core::ContainerStatus>,
    spec_is_infeasible: bool,
}

type Picked<'a> = Option<(&'a ResourceList, Origin)>;

fn from_spec(container: Container<'_>) -> Picked<'_> {
    if container.spec_is_infeasible {
        return None;
    }
    Some((container.spec.resources.as_ref()?.requests.as_ref()?, Origin::Spec))
}

fn from_allocated(container: Container<'_>) -> Picked<'_> {
    let allocated = container.status.and_then(|status| status.allocated_resources.as_ref());
    allocated.map(|list| (list, Origin::Allocated)).or_else(|| from_spec(container))
}

fn from_actuated(container: Container<'_>) -> Picked<'_> {
    let actuated = container.status.and_then(|status| status.resources.as_ref()?.requests.as_ref());
    actuated.map(|list| (list, Origin::Actuated)).or_else(|| from_allocated(container))
}

/// The greater of what the containers ask for together and of what each init container asks for beside the sidecars that
/// were started before it. `status` comes with whether the spec asks for what its node can never give.
fn of_containers(
    spec: &core::PodSpec,
    status: Option<(&core::PodStatus, bool)>,
    pick: for<'a> fn(Container<'a>) -> Picked<'a>,
    symbols: &mut Symbols,
) -> Result<Amounts, ConvertError> {
    let mut asked = |container: &core::Container, list: &'static str, index: usize| {
        let own = status.and_then(|(status, _)| status_of(status, &container.name));
        let spec_is_infeasible = status.is_some_and(|(_, infeasible)| infeasible);
        let mut asked = Amounts::default();
        let container = Container { spec: container, status: own.map(|(status, ..)| status), spec_is_infeasible };
        let Some((amounts, origin)) = pick(container) else { return Ok(asked) };
        let added = asked.add_list(Some(amounts), symbols);
        match (origin, own) {
            (Origin::Allocated, Some((_, list, index))) => {
                added.field("allocatedResources").index(index).field(list).field("status")
            }
            (Origin::Actuated, Some((_, list, index))) => {
                added.field("requests").field("resources").index(index).field(list).field("status")
            }
            _ => added.field("requests").field("resources").index(index).field(list).field("spec"),
        }?;
        Ok::<_, ConvertError>(asked)
    };
    let mut total = Amounts::default();
    for (index, container) in spec.containers.iter().enumerate() {
        total.add(&asked(container, "containers", index)?);
    }
    let mut sidecars = Amounts::default();
    let mut most = Amounts::default();
    for (index, container) in spec.init_containers.iter().flatten().enumerate() {
        let mut own = asked(container, "initContainers", index)?;
        if is_sidecar(container) {
            total.add(&own);
            sidecars.add(&own);
            most.raise_to(&sidecars);
        } else {
            own.add(&sidecars);
            most.raise_to(&own);
        }
    }
    total.raise_to(&most);
    Ok(total)
}

/// Whether an init container keeps running beside the others.
pub(super) fn is_sidecar(container: &core::Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

/// The status of a container by its name, with the list that it is in and its place there.
fn status_of<'a>(status: &'a core::PodStatus, name: &str) -> Option<(&'a core::ContainerStatus, &'static str, usize)> {
    [("containerStatuses", &status.container_statuses), ("initContainerStatuses", &status.init_container_statuses)]
        .into_iter()
        .flat_map(|(list, all)| all.iter().flatten().enumerate().map(move |(index, status)| (status, list, index)))
        .find(|(status, ..)| status.name == name)
}
