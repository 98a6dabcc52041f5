//! Cloud providers: what a cloud has, and how to change it.

use crate::bindings::contract::types::{CallOptions, Diagnostic, NodeGroup};
use crate::bindings::pricing::interface::PriceBook;
use crate::bindings::provider::interface::{
    Capabilities, DeleteOutcome, GroupTemplates, RefreshAnswer, RefreshRequest, Setup, SizeOutcome,
};
use crate::bindings::provisioning::interface::{GroupSpec, MachineType};
use crate::clock::Deadline;
use crate::{Manifest, PluginError};

/// What the author of a cloud provider writes. Export it with [`export_provider!`](crate::export_provider).
///
/// Calls come one at a time. Any call may find a fresh instance that has only been configured: keep caches in `self`, but
/// let nothing depend on them.
pub trait Provider: Sized + 'static {
    /// Name and version, and the hosts and credentials that it wishes for.
    const MANIFEST: Manifest;

    /// First call of every instance: read the settings. Do not go to the network here.
    ///
    /// # Errors
    /// A setting is missing or wrong (class `config`); say which one and what was expected.
    fn configure(setup: Setup) -> Result<Self, PluginError>;

    /// What works and what the host must know. Asked once, after `configure`.
    fn capabilities(&self) -> Capabilities;

    /// Checks settings, permissions and reachability without changing anything. No findings: all is well.
    fn self_test(&mut self) -> Vec<Diagnostic> {
        vec![]
    }

    /// Reads everything that the host needs for one loop, or only `request.only_groups`.
    ///
    /// # Errors
    /// Nothing could be read: the host keeps what it has, and removes no node meanwhile. If only one group could not be
    /// read, put the error into that group instead. Never report as empty what could not be read.
    fn refresh(&mut self, request: RefreshRequest) -> Result<RefreshAnswer, PluginError>;

    /// The nodes that these groups would create next, one entry for each group.
    ///
    /// # Errors
    /// None of them could be read; the trouble of one group goes into its entry.
    fn templates(&mut self, groups: Vec<String>) -> Result<Vec<GroupTemplates>, PluginError>;

    /// Asks for more machines. Set [`Features::INCREASE`](crate::Features::INCREASE) if it works.
    ///
    /// # Errors
    /// Nothing was accepted. [`PluginError::stale_target`] if the target is not the expected one; never lower a target. A
    /// part that was accepted is an outcome with a shortfall, not an error.
    fn increase_size(&mut self, call: Increase) -> Result<SizeOutcome, PluginError> {
        let _ = call;
        Err(PluginError::unsupported("an increase"))
    }

    /// Wishes for fewer machines that do not exist yet; never deletes one that does. Set
    /// [`Features::DECREASE_TARGET`](crate::Features::DECREASE_TARGET) if it works.
    ///
    /// # Errors
    /// As for an increase; `conflict` if a machine would have to go.
    fn decrease_target(&mut self, call: Decrease) -> Result<SizeOutcome, PluginError> {
        let _ = call;
        Err(PluginError::unsupported("lowering the target"))
    }

    /// Deletes machines by id and lowers the target by as many. One result for each id. Set
    /// [`Features::DELETE`](crate::Features::DELETE) if it works.
    ///
    /// # Errors
    /// Nothing was tried. What happened to single machines goes into the results.
    fn delete_instances(&mut self, call: Delete) -> Result<DeleteOutcome, PluginError> {
        let _ = call;
        Err(PluginError::unsupported("deleting machines"))
    }

    /// Last call, if there is time for one.
    fn shutdown(&mut self) {}
}

/// Optional: what machines cost. Name it in the export macro: `export_provider!(MyCloud, pricing)`.
pub trait Pricing: Provider {
    /// All prices that are known now; the host multiplies.
    ///
    /// # Errors
    /// They could not be read; the host keeps those that it has until they end.
    fn prices(&mut self) -> Result<PriceBook, PluginError>;
}

/// Optional: making and removing whole groups. Name it in the export macro: `export_provider!(MyCloud, provisioning)`.
pub trait Provisioning: Provider {
    /// What can be had.
    ///
    /// # Errors
    /// It could not be read.
    fn machine_types(&mut self) -> Result<Vec<MachineType>, PluginError>;

    /// The group that `create_group` would make; makes nothing.
    ///
    /// # Errors
    /// No such group can be made.
    fn plan_group(&mut self, spec: GroupSpec) -> Result<NodeGroup, PluginError>;

    /// Makes a group.
    ///
    /// # Errors
    /// It was not made.
    fn create_group(&mut self, spec: GroupSpec, options: CallOptions) -> Result<NodeGroup, PluginError>;

    /// Removes an empty group.
    ///
    /// # Errors
    /// It was not removed, for instance because it is not empty.
    fn delete_group(&mut self, group: String, options: CallOptions) -> Result<(), PluginError>;
}

/// Ask for more machines.
#[derive(Clone, PartialEq, Debug)]
pub struct Increase {
    /// The group.
    pub group: String,
    /// How many more.
    pub delta: u32,
    /// Target that the host believes in; if it is not so, answer [`PluginError::stale_target`].
    pub expected_target: u32,
    /// All or nothing.
    pub atomic: bool,
    /// Key, deadline, dry run, reason.
    pub options: CallOptions,
}

/// Wish for fewer machines.
#[derive(Clone, PartialEq, Debug)]
pub struct Decrease {
    /// The group.
    pub group: String,
    /// How many fewer.
    pub delta: u32,
    /// Target that the host believes in.
    pub expected_target: u32,
    /// Key, deadline, dry run, reason.
    pub options: CallOptions,
}

/// Delete machines.
#[derive(Clone, PartialEq, Debug)]
pub struct Delete {
    /// The group.
    pub group: String,
    /// Which machines.
    pub ids: Vec<String>,
    /// Target that the host believes in.
    pub expected_target: u32,
    /// Do not go below this size.
    pub min_size: u32,
    /// Do not wait for the machine.
    pub force: bool,
    /// Key, deadline, dry run, reason.
    pub options: CallOptions,
}

impl CallOptions {
    /// The end of the time for this call. Ask once, when the call begins.
    pub fn deadline(&self) -> Deadline {
        Deadline::after_ms(self.deadline_ms)
    }
}

impl RefreshRequest {
    /// The end of the time for this call. Ask once, when the call begins.
    pub fn deadline(&self) -> Deadline {
        Deadline::after_ms(self.deadline_ms)
    }
}
