//! Calls of an expander.

use std::time::Duration;

use plimsoll_core::cloud::CloudError;
use plimsoll_core::ranking::{RankRequest, Verdict};
use wasmtime::Store;
use wasmtime::component::{Component, Linker};

use super::bindings::expander::ExpanderHostPre;
use super::ranking;
use crate::store::PluginState;

/// An expander with its imports resolved; makes instances quickly.
#[derive(Clone)]
pub(crate) struct LinkedExpander(ExpanderHostPre<PluginState>);

impl LinkedExpander {
    /// # Errors
    /// The engine's words if imports or exports do not fit. Records are only compared when an instance is made.
    pub(crate) fn link(linker: &Linker<PluginState>, component: &Component) -> wasmtime::Result<Self> {
        Ok(Self(ExpanderHostPre::new(linker.instantiate_pre(component)?)?))
    }

    /// Makes an instance and throws it away.
    pub(crate) async fn bind(&self, store: &mut Store<PluginState>) -> wasmtime::Result<()> {
        self.0.instantiate_async(store).await.map(drop)
    }

    /// One decision in a fresh instance.
    pub(crate) async fn rank(
        &self,
        store: &mut Store<PluginState>,
        request: &RankRequest,
        wanted_labels: &[String],
        deadline: Duration,
    ) -> wasmtime::Result<Result<Vec<Verdict>, CloudError>> {
        let request = ranking::request(request, wanted_labels, deadline);
        let expander = self.0.instantiate_async(&mut *store).await?;
        let answer = expander.autoscaler_plugin_ranking().call_rank(store, &request).await?;
        Ok(answer.map(|verdicts| verdicts.into_iter().map(Into::into).collect()).map_err(Into::into))
    }
}
