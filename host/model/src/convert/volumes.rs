//! Volumes of pods, as far as scheduling and draining look at them.

use k8s_openapi::api::core::v1 as core;

use crate::pod::{ClaimReference, InlineDisk, Volume};
use crate::symbol::{Symbol, Symbols};

/// Names of the in-tree plug-ins whose volumes CSI drivers have taken over.
pub(super) mod plugin {
    pub(in crate::convert) const AWS_EBS: &str = "kubernetes.io/aws-ebs";
    pub(in crate::convert) const AZURE_DISK: &str = "kubernetes.io/azure-disk";
    pub(in crate::convert) const AZURE_FILE: &str = "kubernetes.io/azure-file";
    pub(in crate::convert) const CINDER: &str = "kubernetes.io/cinder";
    pub(in crate::convert) const GCE_PD: &str = "kubernetes.io/gce-pd";
    pub(in crate::convert) const PORTWORX: &str = "kubernetes.io/portworx-volume";
    pub(in crate::convert) const VSPHERE: &str = "kubernetes.io/vsphere-volume";
}

/// The volumes that scheduling looks at. `pod` and `uid` are the pod's; they name and own the claims of its ephemeral
/// volumes.
pub(super) fn volumes(spec: &core::PodSpec, pod: &str, uid: &str, symbols: &mut Symbols) -> Box<[Volume]> {
    spec.volumes.iter().flatten().filter_map(|volume| self::volume(volume, pod, uid, symbols)).collect()
}

fn volume(volume: &core::Volume, pod: &str, uid: &str, symbols: &mut Symbols) -> Option<Volume> {
    if let Some(claim) = &volume.persistent_volume_claim {
        return Some(Volume::Claim(symbols.intern(&claim.claim_name)));
    }
    if volume.ephemeral.is_some() {
        let claim = symbols.intern(&format!("{pod}-{}", volume.name));
        return Some(Volume::Ephemeral { claim, pod: symbols.intern(pod), pod_uid: symbols.intern(uid) });
    }
    if let Some(csi) = &volume.csi {
        return Some(Volume::InlineCsi(symbols.intern(&csi.driver)));
    }
    inline_disk(volume, symbols).map(Volume::Disk)
}

fn inline_disk(volume: &core::Volume, symbols: &mut Symbols) -> Option<InlineDisk> {
    if let Some(disk) = &volume.gce_persistent_disk {
        let name = symbols.intern(&disk.pd_name);
        return Some(InlineDisk::GcePersistentDisk { name, read_only: disk.read_only.unwrap_or(false) });
    }
    if let Some(disk) = &volume.aws_elastic_block_store {
        return Some(InlineDisk::AwsElasticBlockStore { id: symbols.intern(&disk.volume_id) });
    }
    if let Some(disk) = &volume.iscsi {
        return Some(InlineDisk::Iscsi { iqn: symbols.intern(&disk.iqn), read_only: disk.read_only.unwrap_or(false) });
    }
    if let Some(disk) = &volume.rbd {
        let mut monitors: Vec<_> = disk.monitors.iter().map(|monitor| symbols.intern(monitor)).collect();
        monitors.sort_unstable();
        return Some(InlineDisk::Rbd {
            monitors: monitors.into(),
            // The API server's default.
            pool: symbols.intern(disk.pool.as_deref().unwrap_or("rbd")),
            image: symbols.intern(&disk.image),
            read_only: disk.read_only.unwrap_or(false),
        });
    }
    let (plugin, handle) = if let Some(disk) = &volume.azure_disk {
        (plugin::AZURE_DISK, &disk.disk_uri)
    } else if let Some(disk) = &volume.cinder {
        (plugin::CINDER, &disk.volume_id)
    } else if let Some(disk) = &volume.vsphere_volume {
        (plugin::VSPHERE, &disk.volume_path)
    } else if let Some(disk) = &volume.portworx_volume {
        (plugin::PORTWORX, &disk.volume_id)
    } else if let Some(share) = &volume.azure_file {
        (plugin::AZURE_FILE, &share.share_name)
    } else {
        return None;
    };
    Some(InlineDisk::Migratable { plugin: symbols.intern(plugin), handle: symbols.intern(handle) })
}

/// First volume that would lose data of the node, if no annotation says that it may (`safe-to-evict-local-volumes`: names
/// between commas, without trimming, as the peer reads it).
pub(super) fn local_storage(spec: &core::PodSpec, safe: Option<&str>, symbols: &mut Symbols) -> Option<Symbol> {
    let is_safe = |name: &str| safe.is_some_and(|safe| safe.split(',').any(|safe| safe == name));
    let mut volumes = spec.volumes.iter().flatten();
    let blocking = volumes.find(|volume| is_local(volume) && !is_safe(&volume.name))?;
    Some(symbols.intern(&blocking.name))
}

fn is_local(volume: &core::Volume) -> bool {
    volume.host_path.is_some()
        || volume.empty_dir.as_ref().is_some_and(|directory| directory.medium.as_deref() != Some("Memory"))
}

/// Resource claims: by name, or as the pod's status names the ones that were made from templates.
pub(super) fn claims(
    spec: &core::PodSpec,
    status: Option<&core::PodStatus>,
    pod: &str,
    uid: &str,
    symbols: &mut Symbols,
) -> Box<[ClaimReference]> {
    let made = |entry: &str| {
        let mut statuses = status.and_then(|status| status.resource_claim_statuses.as_ref()).into_iter().flatten();
        statuses.find(|status| status.name == entry)
    };
    let mut convert = |claim: &core::PodResourceClaim| {
        if let Some(name) = &claim.resource_claim_name {
            return ClaimReference::Named(symbols.intern(name));
        }
        match made(&claim.name).map(|status| status.resource_claim_name.as_deref()) {
            Some(Some(name)) => ClaimReference::Made {
                claim: symbols.intern(name),
                pod: symbols.intern(pod),
                pod_uid: symbols.intern(uid),
            },
            Some(None) => ClaimReference::Unneeded,
            None => ClaimReference::Awaited { pod: symbols.intern(pod) },
        }
    };
    spec.resource_claims.iter().flatten().map(&mut convert).collect()
}

/// Resource claims of a pod that does not exist yet, or of one like it on another node: what was made from a template for
/// a pod is made anew for each.
pub(super) fn fresh_claims(
    spec: &core::PodSpec,
    claims: &[ClaimReference],
    symbols: &mut Symbols,
) -> Box<[ClaimReference]> {
    let entries = spec.resource_claims.iter().flatten();
    let fresh = entries.zip(claims).map(|(entry, claim)| {
        let template = entry.resource_claim_template_name.as_deref().map(|template| symbols.intern(template));
        match *claim {
            ClaimReference::Made { claim, .. } => ClaimReference::Fresh { like: Some(claim), template },
            ClaimReference::Awaited { .. } => ClaimReference::Fresh { like: None, template },
            other => other,
        }
    });
    fresh.collect()
}

/// The claim that the scheduler made for the extended resources of a pod.
pub(super) fn claim_for_resources(status: Option<&core::PodStatus>, symbols: &mut Symbols) -> Option<ClaimReference> {
    let claim = status?.extended_resource_claim_status.as_ref()?;
    Some(ClaimReference::ForResources(symbols.intern(&claim.resource_claim_name)))
}
