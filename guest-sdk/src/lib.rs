//! Write a plug-in for the Plimsoll autoscaler in Rust: an [`Expander`] or a cloud [`Provider`].
//!
//! A plug-in is a WebAssembly component. The author writes a trait's methods; an export macro does the rest. Natively
//! nothing is exported, so `cargo test` runs the logic as ordinary code.
//!
//! # An expander in five minutes
//!
//! An expander says which of several ways to grow is best. Copy `guest-sdk/templates/expander`, and write one function:
//!
//! ```
//! use plimsoll_guest::{Expander, GrowthOption, Manifest, PluginError, RankRequest, Score, Verdict, export_expander};
//!
//! struct CheapestPod;
//!
//! impl Expander for CheapestPod {
//!     const MANIFEST: Manifest = Manifest::expander("cheapest-pod", env!("CARGO_PKG_VERSION"));
//!
//!     fn rank(request: &RankRequest) -> Result<Vec<Verdict>, PluginError> {
//!         Ok(request.score_each(score))
//!     }
//! }
//!
//! export_expander!(CheapestPod);
//!
//! /// Without a price, or without pods, an option is rejected.
//! fn score(option: &GrowthOption) -> Option<Score> {
//!     let cost = option.cost.as_ref()?.nodes_micros_per_hour as f64;
//!     let pods = option.pod_count();
//!     (pods > 0).then(|| Score::best_low(cost / pods as f64).because(format!("{pods} pods")))
//! }
//!
//! # use plimsoll_guest::{ClassCount, Cost, Resources};
//! let pods = vec![ClassCount { class_index: 0, count: 4 }];
//! let priced = GrowthOption { pods, cost: Some(Cost::new(400_000, None)), ..GrowthOption::growing("a", 1, Resources::default()) };
//! let free = GrowthOption::growing("b", 1, Resources::default());
//! let verdicts = CheapestPod::rank(&RankRequest::about(vec![priced, free])).unwrap();
//! assert_eq!((verdicts.len(), verdicts[0].score), (1, -100_000.0));
//! ```
//!
//! ```text
//! cargo test
//! cargo build --release --target wasm32-unknown-unknown
//! plimsoll plugin componentize target/wasm32-unknown-unknown/release/cheapest_pod.wasm -o cheapest-pod.wasm
//! ```
//!
//! # A provider in an hour
//!
//! A provider tells what a cloud has and changes it. Make its logic generic over the [`Transport`](http::Transport), so that
//! a test can play the cloud; the export macro names the real one.
//!
//! ```
//! use plimsoll_guest::http::{Client, Request, Transport, Wasi};
//! use plimsoll_guest::*;
//! use serde::{Deserialize, Serialize};
//!
//! /// The cloud configuration file, as JSON.
//! #[derive(Deserialize)]
//! struct Settings { endpoint: String }
//!
//! // What the cloud says.
//! #[derive(Serialize, Deserialize)]
//! struct Pool { id: String, min: u32, max: u32, count: u32, machines: Vec<Machine> }
//! #[derive(Serialize, Deserialize)]
//! struct Machine { id: String, ready: bool }
//! #[derive(Serialize)]
//! struct Resize { count: u32 }
//!
//! struct Example<T> { client: Client<T> }
//!
//! impl<T: Transport + Default + 'static> Provider for Example<T> {
//!     const MANIFEST: Manifest = Manifest::provider("example", env!("CARGO_PKG_VERSION"))
//!         .hosts(&["https://api.example.com"])
//!         .credentials(&[Credential::bearer("api", &["api.example.com"])]);
//!
//!     fn configure(setup: Setup) -> Result<Self, PluginError> {
//!         let settings: Settings = setup.json_config()?;
//!         let client = Client::new(&settings.endpoint, T::default())?.credential("api").user_agent(&setup.user_agent);
//!         Ok(Self { client })
//!     }
//!
//!     fn capabilities(&self) -> Capabilities {
//!         Capabilities::new("example", env!("CARGO_PKG_VERSION"), Features::INCREASE | Features::DELETE)
//!     }
//!
//!     fn refresh(&mut self, request: RefreshRequest) -> Result<RefreshAnswer, PluginError> {
//!         // A failure is returned, and the host keeps what it has. Never make an empty list of it.
//!         let pools: Vec<Pool> = self.client.json(&Request::get("/pools"), request.deadline())?;
//!         // Anything that is equal for equal states will do as a name of this state.
//!         let revision = pools.iter().map(|pool| format!("{}={}/{};", pool.id, pool.machines.len(), pool.count)).collect::<String>();
//!         Ok(RefreshAnswer::read(revision, pools.into_iter().map(group).collect(), true))
//!     }
//!
//!     fn templates(&mut self, groups: Vec<String>) -> Result<Vec<GroupTemplates>, PluginError> {
//!         let capacity = vec![Quantity::new("cpu", "4"), Quantity::new("memory", "16Gi"), Quantity::new("pods", "110")];
//!         let template = NodeTemplate::new("4x16", "c4", capacity);
//!         Ok(groups.into_iter().map(|group| GroupTemplates::of(group, "1", vec![template.clone()])).collect())
//!     }
//!
//!     fn increase_size(&mut self, call: Increase) -> Result<SizeOutcome, PluginError> {
//!         let deadline = call.options.deadline();
//!         let pool: Pool = self.client.json(&Request::get("/pools/{}").segment(&call.group), deadline)?;
//!         if pool.count != call.expected_target {
//!             return Err(PluginError::stale_target(&call.group, call.expected_target, pool.count));
//!         }
//!         let count = pool.count + call.delta;
//!         let resize = Request::post("/pools/{}/resize").segment(&call.group).json(&Resize { count })?;
//!         // A lost answer becomes an error with `outcome-unknown`: the host reads before it repeats.
//!         self.client.send(&resize.header("idempotency-key", &call.options.idempotency_key), deadline)?.success()?;
//!         Ok(SizeOutcome::accepted(call.delta, count))
//!     }
//!
//!     fn delete_instances(&mut self, call: Delete) -> Result<DeleteOutcome, PluginError> {
//!         let deadline = call.options.deadline();
//!         // This cloud lowers the count of the pool by itself. One that makes a new machine for each that goes must be told.
//!         let mut target = call.expected_target;
//!         let mut results = vec![];
//!         for id in call.ids {
//!             if target <= call.min_size {
//!                 results.push(DeleteResult::skipped(id, "the pool is at its least size"));
//!                 continue;
//!             }
//!             let key = format!("{}-{id}", call.options.idempotency_key);
//!             let request = Request::delete("/pools/{}/machines/{}").segment(&call.group).segment(&id).header("idempotency-key", &key);
//!             match self.client.send(&request, deadline).and_then(|answer| answer.success()) {
//!                 Ok(_) => {
//!                     target -= 1;
//!                     results.push(DeleteResult::accepted(id));
//!                 }
//!                 Err(error) if error.response().is_some_and(|answer| answer.status() == 404) => {
//!                     results.push(DeleteResult::already_gone(id));
//!                 }
//!                 // The others are tried all the same; the host looks before it asks for this one again.
//!                 Err(error) => results.push(DeleteResult::failed(id, error.into())),
//!             }
//!         }
//!         Ok(DeleteOutcome::new(target, results))
//!     }
//! }
//!
//! fn group(pool: Pool) -> NodeGroup {
//!     let state = |ready| if ready { InstanceState::Running } else { InstanceState::Creating };
//!     let instance = |machine: Machine| {
//!         let provider_id = format!("example://{}", machine.id);
//!         Instance::with_provider_id(machine.id, state(machine.ready), provider_id)
//!     };
//!     let instances = pool.machines.into_iter().map(instance).collect();
//!     NodeGroup { instances, ..NodeGroup::sized(pool.id, pool.min, pool.max, pool.count) }
//! }
//!
//! export_provider!(Example<Wasi>);
//!
//! # fn main() -> Result<(), PluginError> {
//! // In a test, a closure is the cloud.
//! use plimsoll_guest::http::Answer;
//! use plimsoll_guest::testing::FakeCloud;
//!
//! let cloud = FakeCloud::new(|request| Ok(match request.path_and_query.as_str() {
//!     "/pools/a/resize" | "/pools/a/machines/m-1" => Answer::text(204, ""),
//!     "/pools/a/machines/m-2" => Answer::text(404, "no such machine"),
//!     _ => Answer::json(200, &Pool { id: "a".into(), min: 0, max: 9, count: 3, machines: vec![] }),
//! }));
//! let mut provider = Example { client: Client::new("https://api.example.com", std::rc::Rc::new(cloud))? };
//! let options = CallOptions::with_key("intent-1");
//! let call = Increase { group: "a".into(), delta: 2, expected_target: 3, atomic: false, options };
//! assert_eq!(provider.increase_size(call.clone())?.target_size, 5);
//! let stale = provider.increase_size(Increase { expected_target: 4, ..call }).unwrap_err();
//! assert_eq!(stale.class, ErrorClass::Conflict);
//! let ids = ["m-1", "m-2", "m-3"].map(str::to_owned).into();
//! let options = CallOptions::with_key("intent-2");
//! let gone = provider.delete_instances(Delete { group: "a".into(), ids, expected_target: 3, min_size: 2, force: false, options })?;
//! let results = [DeleteResult::accepted("m-1"), DeleteResult::skipped("m-2", "the pool is at its least size")];
//! assert_eq!((gone.target_size, gone.results.len(), &gone.results[..2]), (2, 3, &results[..]));
//! # Ok(())
//! # }
//! ```
//!
//! What the host expects of a provider beyond the types is in the [`Provider`] trait's comments and in `wit/README.md`.
//! Three things matter most: what could not be read is never reported as empty, a write is never repeated with a fresh
//! delta, and a partial success is an outcome, not an error.
//!
//! # Map
//!
//! | to | use |
//! |---|---|
//! | say what it is and wishes for | [`Manifest`], [`Credential`] |
//! | export it | [`export_expander!`], [`export_provider!`] |
//! | score options | [`Score`], [`RankRequest::score_each`], [`text`] for reasons |
//! | talk to a cloud | [`http`] |
//! | report a failure | [`PluginError`] and its constructors |
//! | make long records | their `new`, `sized`, `read` and so on, with struct update syntax |
//! | know the time | [`clock`], [`Deadline`] |
//! | log, read settings, remember something | [`log`], [`config`], [`state`] |
//! | test | [`testing`] |
//! | reach a part of the contract that is not wrapped | [`bindings`] |

pub mod bindings;
pub mod clock;
pub mod config;
mod error;
mod expander;
mod export;
pub mod http;
pub mod log;
mod manifest;
mod provider;
mod records;
pub mod state;
#[cfg(not(target_arch = "wasm32"))]
pub mod testing;
pub mod text;

pub use clock::Deadline;
pub use expander::{Expander, Score};
pub use manifest::{API, Credential, Kind, Manifest};
pub use provider::{Decrease, Delete, Increase, Pricing, Provider, Provisioning};

pub use bindings::contract::types::*;
pub use bindings::expander::ranking::{
    ClassCount, Cost, ExtendedAmount, GrowthOption, PodClass, RankRequest, Resources, SimilarGroup, TemplateShape,
    Usage, Verdict,
};
pub use bindings::pricing::interface::{PriceBook, TemplatePrice, UnitPrice};
pub use bindings::provider::interface::{
    Capabilities, DeleteOutcome, DeleteResult, DeleteStatus, Features, GroupTemplates, NodeHint, RefreshAnswer,
    RefreshRequest, Setup, SizeOutcome, Snapshot,
};
pub use bindings::provisioning::interface::{GroupSpec, MachineType};

/// Used by the macros of this crate.
#[doc(hidden)]
pub mod __private {
    pub use crate::export::{Hosted, Ranked, Served, Slot};

    /// Checks natively that a provider has prices.
    pub const fn pricing<P: crate::Pricing>() {}

    /// Checks natively that a provider makes groups.
    pub const fn provisioning<P: crate::Provisioning>() {}
}
