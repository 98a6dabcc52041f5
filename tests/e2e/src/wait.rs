//! Waiting for something to become true in a system that works at its own pace.

use std::time::{Duration, Instant};

/// How often a condition is looked at.
const PAUSE: Duration = Duration::from_millis(200);

/// Ask again and again until `look` finds something.
///
/// # Errors
/// It found nothing in `limit`; the error says what was waited for and what `look` said last.
pub async fn until<T, F>(what: &str, limit: Duration, mut look: impl FnMut() -> F) -> anyhow::Result<T>
where
    F: Future<Output = anyhow::Result<Result<T, String>>>,
{
    let begun = Instant::now();
    loop {
        let last = match look().await {
            Ok(Ok(found)) => return Ok(found),
            Ok(Err(not_yet)) => not_yet,
            Err(error) => format!("{error:#}"),
        };
        anyhow::ensure!(begun.elapsed() < limit, "waited {limit:?} for {what}; last seen: {last}");
        tokio::time::sleep(PAUSE).await;
    }
}
