//! What plug-ins do, as metrics.

use std::sync::Arc;

use plimsoll_plugins::observer::{Called, Event, Observer, Requested};

use super::families;
use super::registry::Metrics;

/// Counts what plug-ins do and hands everything on.
#[derive(Clone)]
pub struct PluginMetrics {
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) next: Arc<dyn Observer>,
}

impl Observer for PluginMetrics {
    fn notice(&self, event: Event) {
        let (plugin, kind) = match &event {
            Event::Log { .. } => return self.next.notice(event),
            Event::Denied { denial } => (denial.plugin.as_str(), "denied"),
            Event::CallFailed { plugin, .. } => (plugin.as_str(), "call-failed"),
            Event::Started { plugin, .. } => (plugin.as_str(), "started"),
            Event::Recovered { plugin, .. } => (plugin.as_str(), "recovered"),
            Event::BackingOff { plugin, .. } => (plugin.as_str(), "backing-off"),
            Event::Quarantined { plugin, .. } => (plugin.as_str(), "quarantined"),
            Event::Loaded { plugin, .. } => (plugin.as_str(), "loaded"),
            Event::Rejected { plugin, .. } => (plugin.as_str(), "rejected"),
            Event::FellBack { plugin, .. } => (plugin.as_str(), "fell-back"),
            Event::Warning { plugin, .. } => (plugin.as_str(), "warning"),
        };
        self.metrics.add(&families::PLUGIN_EVENTS, &[plugin, kind], 1.0);
        self.next.notice(event);
    }

    fn called(&self, called: Called) {
        let outcome = called.outcome.name();
        let (plugin, call) = (called.plugin.as_str(), called.call.name());
        self.metrics.add(&families::PLUGIN_CALLS, &[plugin, call, outcome], 1.0);
        self.metrics.observe(&families::PLUGIN_CALL_DURATION, &[plugin, call], called.took.as_secs_f64());
        self.next.called(called);
    }

    fn requested(&self, request: Requested) {
        let status = request.status.map_or_else(String::new, |status| status.to_string());
        let labels = [request.plugin.as_str(), &request.host, &status, request.outcome.name()];
        self.metrics.add(&families::PLUGIN_REQUESTS, &labels, 1.0);
        let labels = [request.plugin.as_str(), request.host.as_str()];
        self.metrics.observe(&families::PLUGIN_REQUEST_DURATION, &labels, request.took.as_secs_f64());
        self.next.requested(request);
    }
}
