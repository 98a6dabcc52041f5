//! Devices and claims to them (Dynamic Resource Allocation with structured parameters, kube-scheduler 1.37).
//!
//! The devices of running pods are known from their claims. Those of pods that are only placed in thought are not: the real
//! scheduler will choose them one pod after another. Here such pods fit together if there is *some* way to give each what
//! it asks for, so that a verdict hangs on which pods are where, and not on the order in which they came.
//!
//! | file | |
//! |---|---|
//! | `cel` | selectors of devices |
//! | `pools` | which devices a node can use |
//! | `held` | which devices claims have already |
//! | `wants` | what the claims of a pod come to |
//! | `shares` | devices that are given in parts |
//! | `problem` | pods on nodes with devices, as one question |
//! | `search` | the answer |

pub(crate) mod cel;
pub(crate) mod held;
pub(crate) mod pools;
pub(crate) mod problem;
pub(crate) mod search;
pub(crate) mod shares;
pub(crate) mod wants;

use std::sync::{Mutex, PoisonError};

use plimsoll_model::devices::Device;
use plimsoll_model::{Symbol, Symbols};
use rustc_hash::FxHashMap;

/// Namespace and name of a claim.
pub(crate) type ClaimKey = (Symbol, Symbol);

/// A claim has at most so many devices.
pub(crate) const MOST_DEVICES: usize = 32;

/// A claim has at most so many consumers.
pub(crate) const MOST_CONSUMERS: usize = 256;

/// Every selector, compiled once.
#[derive(Debug, Default)]
pub(crate) struct Selectors(Mutex<FxHashMap<Symbol, cel::Expression>>);

impl Selectors {
    /// What a selector says of a device.
    pub(crate) fn ask(&self, selector: Symbol, driver: Symbol, device: &Device, symbols: &Symbols) -> cel::Answer {
        let mut expressions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let expression = expressions.entry(selector).or_insert_with(|| cel::Expression::new(symbols.text(selector)));
        expression.ask(driver, device, symbols)
    }
}
