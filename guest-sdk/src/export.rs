//! From the author's traits to the contract's exports.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::thread::LocalKey;

use crate::bindings::contract::types::{CallOptions, Diagnostic, ErrorClass, NodeGroup, Severity};
use crate::bindings::expander::ranking::{self, RankRequest, Verdict};
use crate::bindings::pricing::interface::{self as pricing, PriceBook};
use crate::bindings::provider::interface::{
    self as provider, Capabilities, DeleteOutcome, GroupTemplates, RefreshAnswer, RefreshRequest, Setup, SizeOutcome,
};
use crate::bindings::provisioning::interface::{self as provisioning, GroupSpec, MachineType};
use crate::{Decrease, Delete, Expander, Increase, PluginError, Pricing, Provider, Provisioning};

/// The one configured provider of an instance.
pub type Slot<P> = LocalKey<RefCell<Option<P>>>;

/// Where the export macro keeps the provider.
pub trait Hosted: Provider {
    /// The place.
    fn slot() -> &'static Slot<Self>;
}

/// An expander, seen from the host.
pub struct Ranked<E>(PhantomData<E>);

impl<E: Expander> ranking::Guest for Ranked<E> {
    fn rank(request: RankRequest) -> Result<Vec<Verdict>, PluginError> {
        report_panics();
        E::rank(&request)
    }
}

/// A provider, seen from the host.
pub struct Served<P>(PhantomData<P>);

fn with<P: Hosted, R>(call: impl FnOnce(&mut P) -> R) -> Result<R, PluginError> {
    P::slot().with(|slot| {
        let missing = || PluginError::new(ErrorClass::Config, "configure was not called").with_code("not-configured");
        let busy = |_| PluginError::conflict("another call is running").with_code("busy");
        slot.try_borrow_mut().map_err(busy)?.as_mut().map(call).ok_or_else(missing)
    })
}

impl<P: Hosted> provider::Guest for Served<P> {
    fn configure(setup: Setup) -> Result<Capabilities, PluginError> {
        report_panics();
        let configured = P::configure(setup)?;
        let capabilities = configured.capabilities();
        P::slot().set(Some(configured));
        Ok(capabilities)
    }

    fn self_test() -> Vec<Diagnostic> {
        let failed = |error: PluginError| vec![Diagnostic { severity: Severity::Error, ..error.into() }];
        with(P::self_test).unwrap_or_else(failed)
    }

    fn refresh(request: RefreshRequest) -> Result<RefreshAnswer, PluginError> {
        with(|provider: &mut P| provider.refresh(request))?
    }

    fn templates(groups: Vec<String>) -> Result<Vec<GroupTemplates>, PluginError> {
        with(|provider: &mut P| provider.templates(groups))?
    }

    fn increase_size(
        group: String,
        delta: u32,
        expected_target: u32,
        atomic: bool,
        options: CallOptions,
    ) -> Result<SizeOutcome, PluginError> {
        with(|provider: &mut P| provider.increase_size(Increase { group, delta, expected_target, atomic, options }))?
    }

    fn decrease_target(
        group: String,
        delta: u32,
        expected_target: u32,
        options: CallOptions,
    ) -> Result<SizeOutcome, PluginError> {
        with(|provider: &mut P| provider.decrease_target(Decrease { group, delta, expected_target, options }))?
    }

    fn delete_instances(
        group: String,
        ids: Vec<String>,
        expected_target: u32,
        min_size: u32,
        force: bool,
        options: CallOptions,
    ) -> Result<DeleteOutcome, PluginError> {
        let call = Delete { group, ids, expected_target, min_size, force, options };
        with(|provider: &mut P| provider.delete_instances(call))?
    }

    fn shutdown() {
        // Without a provider there is nothing to shut down.
        let _ = with(P::shutdown);
    }
}

impl<P: Hosted + Pricing> pricing::Guest for Served<P> {
    fn prices() -> Result<PriceBook, PluginError> {
        with(P::prices)?
    }
}

impl<P: Hosted + Provisioning> provisioning::Guest for Served<P> {
    fn machine_types() -> Result<Vec<MachineType>, PluginError> {
        with(P::machine_types)?
    }

    fn plan_group(spec: GroupSpec) -> Result<NodeGroup, PluginError> {
        with(|provider: &mut P| provider.plan_group(spec))?
    }

    fn create_group(spec: GroupSpec, options: CallOptions) -> Result<NodeGroup, PluginError> {
        with(|provider: &mut P| provider.create_group(spec, options))?
    }

    fn delete_group(group: String, options: CallOptions) -> Result<(), PluginError> {
        with(|provider: &mut P| provider.delete_group(group, options))?
    }
}

/// A panic ends the instance. Without this the host would see a bare trap; with it the log says where and why.
fn report_panics() {
    #[cfg(target_arch = "wasm32")]
    std::panic::set_hook(Box::new(|panic| crate::log::error(&panic.to_string())));
}

/// Makes a type that implements [`Expander`] the expander of this crate.
///
/// The crate must be a `cdylib`. In a native build nothing is exported, so that tests link; only the type is checked.
///
/// ```
/// use plimsoll_guest::{Expander, Manifest, PluginError, RankRequest, Score, Verdict};
///
/// struct FewestNodes;
///
/// impl Expander for FewestNodes {
///     const MANIFEST: Manifest = Manifest::expander("fewest-nodes", env!("CARGO_PKG_VERSION"));
///
///     fn rank(request: &RankRequest) -> Result<Vec<Verdict>, PluginError> {
///         Ok(request.score_each(|option| Some(Score::best_low(option.node_count.into()))))
///     }
/// }
///
/// plimsoll_guest::export_expander!(FewestNodes);
/// ```
#[macro_export]
macro_rules! export_expander {
    ($expander:ty) => {
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            type Component = $crate::__private::Ranked<$expander>;
    $crate::bindings::expander::export!(Component with_types_in $crate::bindings::expander);
            $crate::__export_manifest!(<$expander as $crate::Expander>::MANIFEST);
        };
        #[cfg(not(target_arch = "wasm32"))]
        const _: $crate::Manifest = <$expander as $crate::Expander>::MANIFEST;
    };
}

/// Makes a type that implements [`Provider`] the provider of this crate, with the optional interfaces that are named:
/// `pricing` for [`Pricing`], `provisioning` for [`Provisioning`].
///
/// The crate must be a `cdylib` (and an `rlib` too, if other crates use its logic). In a native build nothing is exported,
/// so that tests link; only the type is checked.
#[macro_export]
macro_rules! export_provider {
    ($provider:ty $(, $option:ident)* $(,)?) => {
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            ::std::thread_local! {
                static PROVIDER: ::std::cell::RefCell<::std::option::Option<$provider>> =
                    const { ::std::cell::RefCell::new(::std::option::Option::None) };
            }
            impl $crate::__private::Hosted for $provider {
                fn slot() -> &'static $crate::__private::Slot<Self> {
                    &PROVIDER
                }
            }
            type Component = $crate::__private::Served<$provider>;
            $crate::bindings::provider::export!(Component with_types_in $crate::bindings::provider);
            $($crate::bindings::$option::export!(Component with_types_in $crate::bindings::$option);)*
            $crate::__export_manifest!(
                <$provider as $crate::Provider>::MANIFEST.optional(&[$(::std::stringify!($option)),*])
            );
        };
        #[cfg(not(target_arch = "wasm32"))]
        const _: $crate::Manifest = <$provider as $crate::Provider>::MANIFEST;
        #[cfg(not(target_arch = "wasm32"))]
        const _: () = { $($crate::__private::$option::<$provider>();)* };
    };
}

/// Writes the manifest into the custom section that the host reads before it compiles anything.
#[doc(hidden)]
#[macro_export]
macro_rules! __export_manifest {
    ($manifest:expr) => {
        const MANIFEST: $crate::Manifest = $manifest;
        #[used]
        #[unsafe(link_section = "autoscaler:plugin")]
        static SECTION: [u8; MANIFEST.json_len()] = MANIFEST.json();
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Features, Manifest};
    use provider::Guest;

    thread_local! {
        static SLOT: RefCell<Option<Counter>> = const { RefCell::new(None) };
    }

    /// Counts its refreshes in the revision, and calls itself when asked for templates.
    struct Counter {
        refreshes: u32,
    }

    impl Provider for Counter {
        const MANIFEST: Manifest = Manifest::provider("counter", "1");

        fn configure(setup: Setup) -> Result<Self, PluginError> {
            Ok(Self { refreshes: setup.json_config()? })
        }

        fn capabilities(&self) -> Capabilities {
            Capabilities::new("counter", self.refreshes.to_string(), Features::empty())
        }

        fn refresh(&mut self, _: RefreshRequest) -> Result<RefreshAnswer, PluginError> {
            self.refreshes += 1;
            Ok(RefreshAnswer::unchanged(self.refreshes.to_string()))
        }

        fn templates(&mut self, _: Vec<String>) -> Result<Vec<GroupTemplates>, PluginError> {
            Served::<Self>::refresh(RefreshRequest::everything()).map(|_| vec![])
        }
    }

    impl Hosted for Counter {
        fn slot() -> &'static Slot<Self> {
            &SLOT
        }
    }

    type Component = Served<Counter>;

    fn revision() -> Result<String, String> {
        let answer = Component::refresh(RefreshRequest::everything());
        answer.map(|answer| answer.revision).map_err(|error| error.code)
    }

    #[test]
    fn calls_before_configure_are_refused() {
        assert_eq!(revision(), Err("not-configured".into()));
        assert_eq!(Component::self_test().first().unwrap().code, "not-configured");
        Component::shutdown();
    }

    #[test]
    fn the_provider_is_kept_between_calls_and_replaced_by_configure() {
        assert_eq!(Component::configure(Setup::with_config("5")).unwrap().plugin_version, "5");
        assert_eq!((revision(), revision()), (Ok("6".into()), Ok("7".into())));
        assert_eq!(Component::configure(Setup::with_config("broken")).unwrap_err().code, "bad-config");
        assert_eq!(revision(), Ok("8".into()), "a failed configure changes nothing");
        Component::configure(Setup::with_config("0")).unwrap();
        assert_eq!(revision(), Ok("1".into()));
    }

    #[test]
    fn a_call_within_a_call_is_an_error_and_no_panic() {
        Component::configure(Setup::with_config("0")).unwrap();
        assert_eq!(Component::templates(vec![]).unwrap_err().code, "busy");
    }

    #[test]
    fn what_is_not_written_is_unsupported() {
        Component::configure(Setup::with_config("0")).unwrap();
        let options = || CallOptions::with_key("k");
        let errors = [
            Component::increase_size("a".into(), 1, 0, false, options()).unwrap_err(),
            Component::decrease_target("a".into(), 1, 1, options()).unwrap_err(),
            Component::delete_instances("a".into(), vec![], 1, 0, false, options()).unwrap_err(),
        ];
        assert!(errors.iter().all(|error| error.class == ErrorClass::Unsupported && !error.message.is_empty()));
    }
}
