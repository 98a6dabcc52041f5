//! The files in `deploy/` against a real API server.

use plimsoll_tests_e2e::plane::{self, Plane};
use plimsoll_tests_e2e::{cluster, stage};

use crate::LIMIT;

/// What a cluster with the Prometheus Operator knows.
const SERVICE_MONITORS: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: servicemonitors.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  names: {kind: ServiceMonitor, plural: servicemonitors, singular: servicemonitor}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
";

#[tokio::test(flavor = "multi_thread")]
async fn chart_and_manifests_apply() -> anyhow::Result<()> {
    let folder = crate::folder("deploy");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    let plane = Plane::start(&folder, &plane::Options::default())?;
    let client = plane.client().await?;
    plane.apply(SERVICE_MONITORS)?;
    plane.kubectl(&[
        "wait",
        "--for=condition=Established",
        "--timeout=60s",
        "crd/servicemonitors.monitoring.coreos.com",
    ])?;

    let manifests = stage::repository().join("deploy/manifests");
    let mut count = 0;
    for file in std::fs::read_dir(&manifests)? {
        let file = file?.path();
        let applied = plane.kubectl_with(
            &["apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-"],
            &std::fs::read_to_string(&file)?,
        )?;
        anyhow::ensure!(
            applied.contains("deployment.apps/plimsoll serverside-applied"),
            "{}: {applied}",
            file.display()
        );
        count += 1;
    }
    assert!(count >= 5, "{count} manifests");

    // The strictest of the Pod Security Standards takes the pods: not root, nothing to write, no capabilities.
    plane.kubectl(&["create", "namespace", "strict"])?;
    plane.kubectl(&["label", "namespace", "strict", "pod-security.kubernetes.io/enforce=restricted"])?;
    let values =
        ["--namespace=strict", "--set=cloudProvider=utho", "--set=utho.token=secret", "--set=utho.clusterId=1111"];
    plane.apply(&stage::chart(&values)?)?;
    let pods = cluster::all_there(&client, "app.kubernetes.io/name=plimsoll", 2, LIMIT);
    for pod in pods.await? {
        let spec = pod.spec.unwrap_or_default();
        let container =
            spec.containers.first().and_then(|container| container.security_context.clone()).unwrap_or_default();
        assert_eq!(container.read_only_root_filesystem, Some(true));
        assert_eq!(spec.security_context.and_then(|context| context.run_as_non_root), Some(true));
    }
    drop(plane);
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}

#[test]
fn the_chart_says_what_is_missing() {
    for (values, complaint) in [
        (&[][..], "cloudProvider is needed"),
        (&["--set=cloudProvider=alicloud", "--set=alicloud.existingSecret=x"], "alicloud.region is needed"),
        (&["--set=cloudProvider=alicloud", "--set=alicloud.region=r"], "alicloud.existingSecret, or"),
        (
            &["--set=cloudProvider=alicloud", "--set=alicloud.region=r", "--set=alicloud.auth=sts"],
            "expected access-key",
        ),
        (
            &["--set=cloudProvider=alicloud", "--set=alicloud.region=r", "--set=alicloud.auth=rrsa"],
            "alicloud.roleArn is needed",
        ),
        (&["--set=cloudProvider=utho"], "utho.existingSecret or utho.token"),
    ] {
        let error = stage::chart(values).expect_err("Helm took it").to_string();
        assert!(error.contains(complaint), "{values:?}: {error}");
    }
}
