use super::services::{Mood, Services};
use super::sts::{role, rrsa, token_file};
use crate::credentials::{CredentialError, KeySource};

/// Lets tasks of the host run until nothing changes any more.
async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
        tokio::task::spawn_blocking(|| ()).await.unwrap();
    }
}

async fn id(keys: &dyn KeySource) -> Result<String, CredentialError> {
    keys.key().await.map(|key| key.id.clone())
}

#[tokio::test]
async fn a_key_serves_until_it_is_renewed_ahead_of_its_end() {
    let services = Services::new();
    let file = token_file("t");
    let keys = services.broker().keys(&rrsa(&file, role()));
    assert_eq!(id(&*keys).await.unwrap(), "STS.id1");
    // An hour: renewed after 48 minutes, which is 80 %.
    services.advance(48 * 60 - 1);
    assert_eq!(id(&*keys).await.unwrap(), "STS.id1");
    settle().await;
    assert_eq!(services.lines().len(), 1);
    services.advance(1);
    assert_eq!(id(&*keys).await.unwrap(), "STS.id1", "the old one serves while the new one is fetched");
    settle().await;
    assert_eq!(id(&*keys).await.unwrap(), "STS.id2");
    assert_eq!(services.lines().len(), 2);
}

#[tokio::test]
async fn many_requests_at_once_make_one_fetch() {
    let services = Services::new();
    let file = token_file("t");
    let keys = services.broker().keys(&rrsa(&file, role()));
    let ids = futures_util::future::join_all((0..100).map(|_| id(&*keys))).await;
    assert!(ids.iter().all(|id| id.as_deref() == Ok("STS.id1")));
    services.advance(50 * 60);
    futures_util::future::join_all((0..100).map(|_| id(&*keys))).await;
    settle().await;
    assert_eq!(services.lines().len(), 2);
}

#[tokio::test]
async fn a_caller_that_gives_up_does_not_break_off_the_fetch_of_others() {
    let services = Services::new();
    let file = token_file("t");
    let keys = services.broker().keys(&rrsa(&file, role()));
    {
        let mut first = Box::pin(keys.key());
        std::future::poll_fn(|context| {
            assert!(first.as_mut().poll(context).is_pending());
            std::task::Poll::Ready(())
        })
        .await;
    }
    assert_eq!(id(&*keys).await.unwrap(), "STS.id1");
    assert_eq!(services.lines().len(), 1);
}

#[tokio::test]
async fn a_day_of_short_lives_has_no_gap_and_few_fetches() {
    let services = Services::new();
    services.set(|state| state.life_seconds = 900);
    let file = token_file("t");
    let keys = services.broker().keys(&rrsa(&file, role()));
    let day = 24 * 3600;
    for _ in 0..day / 10 {
        let key = keys.key().await.unwrap();
        let now = crate::clock::Clock::wall(&services.clock);
        assert!(key.life.unwrap().until > now);
        settle_quickly().await;
        services.advance(10);
    }
    let (fetches, lives) = (services.lines().len(), day as usize / 900);
    assert!(fetches <= 2 * lives, "{fetches} fetches in {lives} lives");
}

/// Enough for a fetch that waits for nothing but a small file.
async fn settle_quickly() {
    tokio::task::spawn_blocking(|| ()).await.unwrap();
    tokio::task::yield_now().await;
}

#[tokio::test]
async fn a_service_that_is_down_is_survived_while_the_old_key_is_valid() {
    let services = Services::new();
    let file = token_file("t");
    let keys = services.broker().keys(&rrsa(&file, role()));
    id(&*keys).await.unwrap();
    services.set(|state| state.sts = Mood::Down);
    services.advance(50 * 60);
    for _ in 0..59 {
        assert_eq!(id(&*keys).await.unwrap(), "STS.id1");
        settle().await;
        services.advance(10);
    }
    let tries = services.lines().len() - 1;
    assert!((5..=15).contains(&tries), "{tries} tries in ten minutes: neither given up nor hammered");
    services.advance(10);
    let error = id(&*keys).await.unwrap_err();
    assert_eq!(error.to_string(), "https://sts.aliyuncs.com does not answer: the connection was refused");
    services.set(|state| state.sts = Mood::Fine);
    services.advance(60);
    assert_eq!(id(&*keys).await.unwrap(), "STS.id2");
}

#[tokio::test]
async fn a_failure_is_remembered_for_a_moment() {
    let services = Services::new();
    services.set(|state| state.sts = Mood::Down);
    let file = token_file("t");
    let keys = services.broker().keys(&rrsa(&file, role()));
    for _ in 0..10 {
        assert!(matches!(id(&*keys).await, Err(CredentialError::Unreachable { .. })));
    }
    assert_eq!(services.lines().len(), 1);
    services.advance(1);
    assert!(id(&*keys).await.is_err());
    assert_eq!(services.lines().len(), 2);
}

#[rstest::rstest]
#[case::an_hour(3600, 2880)]
#[case::a_quarter(900, 600)]
#[case::five_minutes(300, 150)]
#[case::a_second(1, 0)]
fn renewal_is_ahead_but_not_early(#[case] life: u64, #[case] after: u64) {
    use std::time::Duration;
    let life = crate::credentials::Life { since: Duration::from_secs(7), until: Duration::from_secs(7 + life) };
    assert_eq!(life.renew_at().as_secs() - 7, after);
}
