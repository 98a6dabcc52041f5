//! What the component of AliCloud takes in front of a large cloud, and a day of keys that end.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_bundled::PROVIDERS;
use plimsoll_core::cloud::Refresh;
use plimsoll_plugins::clock::Clock;
use plimsoll_plugins::provider::RefreshRequest;
use plimsoll_plugins::{HostOptions, Provider, inspect};
use plimsoll_tests_clouds::alicloud::account::Role;
use plimsoll_tests_clouds::alicloud::{Group, Scenario, oidc_token};
use plimsoll_tests_clouds::{Cloud as _, Fault, Rule, UnixMs};

use crate::cloud::{Cloud, FIXED_KEY, ISSUER, ROLE, short_keys};
use crate::guests::source;

/// Most bytes of a provider's component.
const COMPONENT_BYTES: usize = 600_000;
/// Most bytes of memory of its instance.
const MEMORY_BYTES: usize = 32 << 20;

#[test]
fn the_providers_of_clouds_are_small_and_fit() {
    assert_eq!(PROVIDERS.len(), 2);
    for (name, bytes) in PROVIDERS {
        let report = inspect(&source(name, None, bytes.to_vec()), None).unwrap().report;
        assert!(report.is_usable() && report.version.is_some(), "{report}");
        assert!(report.size_bytes < COMPONENT_BYTES, "{report}");
    }
}

/// A clock by which each request takes so long that two of them are longer than a call may take; and how much faster than
/// the machine's it is.
struct Hasty(Cloud, u32);

impl Clock for Hasty {
    fn wall(&self) -> Duration {
        Duration::from_millis(self.0.world().now().0.unsigned_abs())
    }
    fn monotonic(&self) -> Duration {
        Duration::from_secs(130 * self.0.world().journal().calls.len() as u64)
    }
    fn pace(&self) -> u32 {
        self.1
    }
}

#[tokio::test]
async fn a_call_has_its_time_by_the_machines_clock_however_fast_the_plug_ins_runs() {
    for (pace, serves) in [(1, false), (60, true)] {
        let cloud = Cloud::start(Scenario::with_groups(vec![Group::new("asg-1", 0, 9).running(2)]));
        let options = HostOptions { clock: Arc::new(Hasty(cloud.clone(), pace)), ..HostOptions::default() };
        let provider = cloud.provider_with(FIXED_KEY, &["0:9:asg-1"], options).await;
        let answer = provider.refresh(RefreshRequest::default()).await;
        let fresh = answer.is_ok_and(|answer| {
            let groups = answer.snapshot.map(|snapshot| snapshot.groups).unwrap_or_default();
            !groups.is_empty() && groups.iter().all(|group| group.error.is_none())
        });
        assert_eq!(fresh, serves, "{pace} times as fast");
    }
}

async fn read(provider: &Provider) -> Refresh {
    provider.refresh(RefreshRequest::default()).await.unwrap()
}

#[rstest::rstest]
#[case::an_empty_group(&[0])]
#[case::one_page(&[50])]
#[case::a_page_and_one(&[51])]
#[case::many(&[1500])]
#[case::many_in_two_groups(&[1000, 500])]
#[tokio::test]
async fn a_refresh_takes_few_calls_and_little_memory(#[case] sizes: &[u32]) {
    let ids: Vec<String> = (1..=sizes.len()).map(|number| format!("asg-{number}")).collect();
    let groups = ids.iter().zip(sizes).map(|(id, &size)| Group::new(id, 0, 2000).desiring(size).running(size));
    let cloud = Cloud::start(Scenario::with_groups(groups.collect()));
    let specs: Vec<String> = ids.iter().map(|id| format!("0:2000:{id}")).collect();
    let specs: Vec<&str> = specs.iter().map(String::as_str).collect();
    let provider = cloud.provider(FIXED_KEY, &specs).await;
    let bound: u32 = sizes.iter().map(|size| size.div_ceil(50)).sum::<u32>() + 2;
    for round in 0..3 {
        let before = cloud.world().journal().calls.len();
        let snapshot = read(&provider).await.snapshot;
        if round == 0 {
            let groups = snapshot.expect("the first read tells everything").groups;
            let machines: BTreeSet<_> =
                groups.iter().flat_map(|group| &group.instances).map(|instance| &instance.id).collect();
            assert_eq!(machines.len(), sizes.iter().sum::<u32>() as usize);
        }
        let calls = cloud.world().journal().calls.len() - before;
        assert!(calls <= bound as usize, "{calls} calls, at most {bound}, in round {round}");
        cloud.advance(30);
    }
    provider.templates(ids.iter().map(|id| id.as_str().into()).collect()).await.unwrap();
    assert!(provider.prices().await.unwrap().is_some());
    let status = provider.status().await.unwrap();
    assert!(status.memory_bytes < MEMORY_BYTES, "{} bytes of memory", status.memory_bytes);
    assert_eq!((status.starts, cloud.world().journal().violations()), (1, vec![]));
}

/// A role that the service account's token in the file may assume.
fn with_role(folder: &tempfile::TempDir) -> (Scenario, String) {
    let role = Role {
        arn: ROLE.to_owned(),
        allow: vec!["*".to_owned()],
        max_session_s: 3600,
        oidc_provider: Some(ISSUER.to_owned()),
    };
    let groups = vec![Group::new("asg-1", 0, 9).desiring(3).running(3)];
    let scenario = Scenario { roles: vec![role], keys: vec![], ..Scenario::with_groups(groups) };
    let begun = UnixMs::parse(&scenario.start).unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, oidc_token(&scenario.oidc_secret, "sts.aliyuncs.com", UnixMs(begun.0 + 90_000_000))).unwrap();
    (scenario, short_keys(&file))
}

#[tokio::test]
async fn a_day_with_keys_of_a_quarter_of_an_hour_has_no_error_and_few_calls_to_sts() {
    let folder = tempfile::tempdir().unwrap();
    let (scenario, keys) = with_role(&folder);
    let cloud = Cloud::start(scenario);
    let provider = cloud.provider(&keys, &["0:9:asg-1"]).await;
    let minutes = 24 * 60;
    for minute in (0..minutes).step_by(2) {
        let refresh = provider.refresh(RefreshRequest::default()).await;
        let refresh = refresh.unwrap_or_else(|error| panic!("minute {minute}: {error}"));
        let snapshot = refresh.snapshot.expect("without a known revision everything is told");
        assert!(snapshot.complete && snapshot.groups[0].error.is_none(), "minute {minute}: {snapshot:?}");
        cloud.advance(120);
    }
    let world = cloud.world();
    let refused: Vec<_> = world.journal().calls.iter().filter(|call| !call.succeeded()).collect();
    assert!(refused.is_empty(), "{refused:?}");
    let callers: BTreeSet<_> =
        world.journal().of("DescribeScalingInstances").map(|call| call.caller.as_str()).collect();
    let (fetched, lifetimes) = (world.journal().count("AssumeRoleWithOIDC"), minutes / 15);
    assert!((lifetimes..=2 * lifetimes).contains(&fetched), "{fetched} calls in {lifetimes} lifetimes");
    assert!(callers.len() >= lifetimes - 1, "{} keys signed", callers.len());
}

#[tokio::test]
async fn a_key_that_the_cloud_refuses_is_renewed_once() {
    let folder = tempfile::tempdir().unwrap();
    let (scenario, keys) = with_role(&folder);
    let cloud = Cloud::start(scenario);
    let provider = cloud.provider(&keys, &["0:9:asg-1"]).await;
    let refused = |times: u32| {
        let code = "InvalidSecurityToken.Expired".to_owned();
        let fault = Fault::Error { status: 400, code, message: "Specified SecurityToken is expired.".to_owned() };
        let rule = Rule::new("refused", fault).on("DescribeScalingGroups");
        if times == 1 { rule.times(1) } else { rule }
    };
    read(&provider).await;
    cloud.advance(60);
    cloud.world().faults().add(refused(1));
    assert!(read(&provider).await.snapshot.is_some_and(|snapshot| snapshot.complete));
    assert_eq!(cloud.world().journal().count("AssumeRoleWithOIDC"), 2);

    cloud.advance(60);
    cloud.world().faults().add(refused(u32::MAX));
    let error = provider.refresh(RefreshRequest::default()).await;
    let told = match error {
        Ok(refresh) => format!("{:?} {:?}", refresh.snapshot, refresh.diagnostics),
        Err(error) => format!("{error:?}"),
    };
    assert!(told.contains("InvalidSecurityToken.Expired"), "{told}");
    assert_eq!(cloud.world().journal().count("AssumeRoleWithOIDC"), 3, "one more, and then the error");
}
