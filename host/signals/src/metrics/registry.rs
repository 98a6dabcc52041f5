//! The values of all families, and their text.
//!
//! `prometheus-client` holds and writes what it knows. Two counters of the Go autoscaler lack the suffix that it always
//! writes, and it has no summaries: these three are written here, in the same text format.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use prometheus_client::encoding::prometheus_text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family as Series;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::families;
use super::family::{Family, Kind, When};

type Labels = Vec<(&'static str, String)>;
type Histograms = Series<Labels, Histogram, fn() -> Histogram>;

/// Type of the text.
pub(crate) use prometheus_client::encoding::prometheus_text::CONTENT_TYPE;

const SUFFIX: &str = "_total";
const QUANTILES: [f64; 3] = [0.5, 0.9, 0.99];
/// How long a summary looks back.
const MAX_AGE: Duration = Duration::from_secs(3600);
/// Most samples that a summary keeps; the oldest go first. An hour of loops a second fits.
const MOST_SAMPLES: usize = 4096;

#[derive(Debug)]
enum Values {
    Counter(Series<Labels, Counter<f64, AtomicU64>>),
    Gauge(Series<Labels, Gauge<f64, AtomicU64>>),
    Histogram(Histograms),
    /// A counter without the suffix.
    Bare(Mutex<BTreeMap<Vec<String>, f64>>),
    Summary(Mutex<BTreeMap<Vec<String>, Samples>>),
}

#[derive(Debug, Default)]
struct Samples {
    latest: VecDeque<(Instant, f64)>,
    sum: f64,
    count: u64,
}

/// All families with their values.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    values: BTreeMap<&'static str, (Family, Values)>,
}

/// 150 buckets from 0.1 s to 1800 s, as the Go autoscaler has them.
fn of_functions() -> Histogram {
    Histogram::new(exponential(0.1, 1800.0, 150))
}

/// From half a millisecond to a minute.
fn fine() -> Histogram {
    Histogram::new((0..18).map(|power| 0.000_5 * f64::from(1_u32 << power)))
}

fn of_classes() -> Histogram {
    Histogram::new([1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
}

fn exponential(least: f64, greatest: f64, count: i32) -> impl Iterator<Item = f64> {
    let growth = (greatest / least).powf(1.0 / f64::from(count - 1));
    (0..count).map(move |power| least * growth.powi(power))
}

impl Metrics {
    /// All families that are there, those that hang on a flag if `flagged` says so.
    pub fn new(flagged: impl Fn(&str) -> bool) -> Self {
        let mut registry = Registry::default();
        let mut values = BTreeMap::new();
        for &family in families::ALL {
            let wanted = match family.when {
                When::Always => true,
                When::Flag(flag) => flagged(flag),
                When::Never => false,
            };
            if wanted {
                values.insert(family.name, (family, register(&mut registry, family)));
            }
        }
        Self { registry, values }
    }

    fn of(&self, family: &Family, labels: &[&str]) -> Option<(&Values, Labels)> {
        debug_assert_eq!(family.labels.len(), labels.len(), "labels of {}", family.name);
        let (_, values) = self.values.get(family.name)?;
        Some((values, family.labels.iter().copied().zip(labels.iter().map(|&label| label.to_owned())).collect()))
    }

    /// Adds to a counter.
    pub(crate) fn add(&self, family: &Family, labels: &[&str], more: f64) {
        match self.of(family, labels) {
            Some((Values::Counter(series), labels)) => {
                series.get_or_create(&labels).inc_by(more);
            }
            Some((Values::Bare(series), labels)) => {
                let labels = labels.into_iter().map(|(_, value)| value).collect();
                *held(series).entry(labels).or_default() += more;
            }
            _ => {}
        }
    }

    /// Sets a gauge.
    pub(crate) fn set(&self, family: &Family, labels: &[&str], value: f64) {
        if let Some((Values::Gauge(series), labels)) = self.of(family, labels) {
            series.get_or_create(&labels).set(value);
        }
    }

    /// Forgets every series of a gauge, before those that are there are set again.
    pub(crate) fn clear(&self, family: &Family) {
        if let Some((_, Values::Gauge(series))) = self.values.get(family.name) {
            series.clear();
        }
    }

    /// Takes note of a size or a duration in seconds.
    pub(crate) fn observe(&self, family: &Family, labels: &[&str], value: f64) {
        match self.of(family, labels) {
            Some((Values::Histogram(series), labels)) => series.get_or_create(&labels).observe(value),
            Some((Values::Summary(series), labels)) => {
                let labels = labels.into_iter().map(|(_, value)| value).collect();
                let mut series = held(series);
                let samples = series.entry(labels).or_default();
                samples.sum += value;
                samples.count += 1;
                if samples.latest.len() == MOST_SAMPLES {
                    samples.latest.pop_front();
                }
                samples.latest.push_back((Instant::now(), value));
            }
            _ => {}
        }
    }

    /// Everything in the Prometheus text format, version 0.0.4.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = prometheus_text::encode(&mut text, &self.registry);
        for (family, values) in self.values.values() {
            let _ = match values {
                Values::Bare(series) => write_counter(&mut text, family, &held(series)),
                Values::Summary(series) => write_summary(&mut text, family, &held(series), Instant::now()),
                Values::Counter(_) | Values::Gauge(_) | Values::Histogram(_) => Ok(()),
            };
        }
        text
    }
}

fn held<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn register(registry: &mut Registry, family: Family) -> Values {
    match family.kind {
        Kind::Counter => match family.name.strip_suffix(SUFFIX) {
            Some(stem) => {
                let series = Series::<Labels, Counter<f64, AtomicU64>>::default();
                if family.labels.is_empty() {
                    drop(series.get_or_create(&vec![]));
                }
                registry.register(stem, family.help, series.clone());
                Values::Counter(series)
            }
            None => {
                let alone = family.labels.is_empty().then(|| (vec![], 0.0));
                Values::Bare(Mutex::new(alone.into_iter().collect()))
            }
        },
        Kind::Gauge => {
            let series = Series::<Labels, Gauge<f64, AtomicU64>>::default();
            if family.labels.is_empty() {
                drop(series.get_or_create(&vec![]));
            }
            registry.register(family.name, family.help, series.clone());
            Values::Gauge(series)
        }
        Kind::Histogram => {
            let buckets: fn() -> Histogram = match family.name {
                name if name == families::DURATION.name => of_functions,
                name if name == families::BINPACKING_HETEROGENEITY.name => of_classes,
                _ => fine,
            };
            let series = Histograms::new_with_constructor(buckets);
            registry.register(family.name, family.help, series.clone());
            Values::Histogram(series)
        }
        Kind::Summary => Values::Summary(Mutex::default()),
    }
}

fn head(text: &mut String, family: &Family) -> std::fmt::Result {
    writeln!(text, "# HELP {} {}.", family.name, family.help)?;
    writeln!(text, "# TYPE {} {}", family.name, family.kind.name())
}

fn write_counter(text: &mut String, family: &Family, series: &BTreeMap<Vec<String>, f64>) -> std::fmt::Result {
    if series.is_empty() {
        return Ok(());
    }
    head(text, family)?;
    for (labels, value) in series {
        writeln!(text, "{}{} {value}", family.name, braces(family, labels, None))?;
    }
    Ok(())
}

fn write_summary(
    text: &mut String,
    family: &Family,
    series: &BTreeMap<Vec<String>, Samples>,
    now: Instant,
) -> std::fmt::Result {
    if series.is_empty() {
        return Ok(());
    }
    head(text, family)?;
    for (labels, samples) in series {
        let young = |(at, _): &&(Instant, f64)| now.saturating_duration_since(*at) <= MAX_AGE;
        let mut sorted: Vec<f64> = samples.latest.iter().filter(young).map(|&(_, value)| value).collect();
        sorted.sort_by(f64::total_cmp);
        for quantile in QUANTILES {
            let value = at_quantile(&sorted, quantile).unwrap_or(f64::NAN);
            writeln!(text, "{}{} {value}", family.name, braces(family, labels, Some(quantile)))?;
        }
        let braces = braces(family, labels, None);
        writeln!(text, "{}_sum{braces} {}", family.name, samples.sum)?;
        writeln!(text, "{}_count{braces} {}", family.name, samples.count)?;
    }
    Ok(())
}

/// The smallest value that at least this share of the sorted values does not exceed.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a few thousand values, and a share from 0 to 1"
)]
fn at_quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

fn braces(family: &Family, labels: &[String], quantile: Option<f64>) -> String {
    let pairs = family.labels.iter().zip(labels).map(|(name, value)| format!("{name}=\"{}\"", escaped(value)));
    let pairs: Vec<String> = pairs.chain(quantile.map(|quantile| format!("quantile=\"{quantile}\""))).collect();
    if pairs.is_empty() { String::new() } else { format!("{{{}}}", pairs.join(",")) }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_were_seen() {
        let ten: Vec<f64> = (1..=10).map(f64::from).collect();
        for (name, sorted, share, expected) in [
            ("none", &[][..], 0.5, None),
            ("one", &[7.0], 0.99, Some(7.0)),
            ("half of ten", &ten, 0.5, Some(5.0)),
            ("nine of ten", &ten, 0.9, Some(9.0)),
            ("nearly all of ten", &ten, 0.99, Some(10.0)),
        ] {
            assert_eq!(at_quantile(sorted, share), expected, "{name}");
        }
    }

    #[test]
    fn buckets_of_functions_span_the_range_of_the_peer() {
        let bounds: Vec<f64> = exponential(0.1, 1800.0, 150).collect();
        assert_eq!(bounds.len(), 150);
        assert!((bounds[0] - 0.1).abs() < 1e-9 && (bounds[149] - 1800.0).abs() < 1e-6);
    }

    #[test]
    fn a_counter_without_the_suffix_and_a_summary_are_written_like_the_others() {
        let metrics = Metrics::new(|_| true);
        metrics.add(&families::SKIPPED_SCALE_EVENTS, &["up", "a\"b\\c\nd"], 2.0);
        for value in [1.0, 2.0, 3.0, 4.0] {
            metrics.observe(&families::DURATION_QUANTILE, &["main"], value);
        }
        let text = metrics.text();
        for line in [
            "# TYPE cluster_autoscaler_skipped_scale_events_count counter",
            r#"cluster_autoscaler_skipped_scale_events_count{direction="up",reason="a\"b\\c\nd"} 2"#,
            "cluster_autoscaler_old_unregistered_nodes_removed_count 0",
            "# TYPE cluster_autoscaler_function_duration_quantile_seconds summary",
            r#"cluster_autoscaler_function_duration_quantile_seconds{function="main",quantile="0.5"} 2"#,
            r#"cluster_autoscaler_function_duration_quantile_seconds{function="main",quantile="0.99"} 4"#,
            r#"cluster_autoscaler_function_duration_quantile_seconds_sum{function="main"} 10"#,
            r#"cluster_autoscaler_function_duration_quantile_seconds_count{function="main"} 4"#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }

    #[test]
    fn what_hangs_on_a_flag_is_there_with_it_only() {
        for (flagged, there) in [(true, true), (false, false)] {
            let metrics = Metrics::new(|_| flagged);
            metrics.set(&families::GROUP_MIN, &["a"], 1.0);
            assert_eq!(metrics.text().contains("cluster_autoscaler_node_group_min_count"), there);
        }
    }
}
