//! Stands in for the host in native tests: log, settings and state of the current thread, and a cloud made of a closure.
//!
//! Only in native builds.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::bindings::contract::types::KeyValue;
use crate::http::{Answer, Outgoing, SendError, Transport};
use crate::log::Level;

/// One kept log message.
#[derive(Clone, PartialEq, Debug)]
pub struct Logged {
    /// How important it is.
    pub level: Level,
    /// The text.
    pub message: String,
    /// Its fields.
    pub fields: Vec<(String, String)>,
}

thread_local! {
    static LOG: RefCell<Vec<Logged>> = const { RefCell::new(Vec::new()) };
    static CONFIG: RefCell<BTreeMap<String, String>> = const { RefCell::new(BTreeMap::new()) };
    static STATE: RefCell<BTreeMap<String, Vec<u8>>> = const { RefCell::new(BTreeMap::new()) };
}

/// Takes the messages that this thread has logged since the last call.
pub fn logged() -> Vec<Logged> {
    LOG.take()
}

/// Gives a setting to this thread; none unsets it.
pub fn set_config(key: &str, value: Option<&str>) {
    CONFIG.with_borrow_mut(|config| match value {
        Some(value) => config.insert(key.to_owned(), value.to_owned()),
        None => config.remove(key),
    });
}

/// A cloud for tests: a closure that answers, and the requests that it was asked.
///
/// ```
/// use plimsoll_guest::http::{Answer, Client, Request};
/// use plimsoll_guest::testing::FakeCloud;
/// use plimsoll_guest::Deadline;
///
/// let cloud = FakeCloud::new(|request| match request.path_and_query.as_str() {
///     "/v2/pools" => Ok(Answer::json(200, &["pool-a"])),
///     _ => Ok(Answer::text(404, "no such page")),
/// });
/// let client = Client::new("https://api.example/v2", &cloud)?;
/// let pools: Vec<String> = client.json(&Request::get("/pools"), Deadline::after_ms(1000))?;
/// assert_eq!(pools, ["pool-a"]);
/// assert_eq!(cloud.requests().len(), 1);
/// # Ok::<(), plimsoll_guest::PluginError>(())
/// ```
pub struct FakeCloud {
    answer: Box<Behaviour>,
    requests: RefCell<Vec<Outgoing>>,
}

type Behaviour = dyn Fn(&Outgoing) -> Result<Answer, SendError>;

impl FakeCloud {
    /// A cloud that answers like this.
    pub fn new(answer: impl Fn(&Outgoing) -> Result<Answer, SendError> + 'static) -> Self {
        Self { answer: Box::new(answer), requests: RefCell::default() }
    }

    /// What it was asked so far.
    pub fn requests(&self) -> Vec<Outgoing> {
        self.requests.borrow().clone()
    }
}

impl Default for FakeCloud {
    /// A cloud that cannot be reached.
    fn default() -> Self {
        Self::new(|request| Err(SendError::NotSent(format!("{} cannot be reached", request.authority))))
    }
}

impl Transport for FakeCloud {
    fn send(&self, request: &Outgoing) -> Result<Answer, SendError> {
        self.requests.borrow_mut().push(request.clone());
        (self.answer)(request)
    }
}

pub(crate) mod log {
    use super::{KeyValue, LOG, Level, Logged};

    pub(crate) fn enabled(_: Level) -> bool {
        true
    }

    pub(crate) fn write(level: Level, message: &str, fields: &[KeyValue]) {
        let fields = fields.iter().map(|field| (field.key.clone(), field.value.clone())).collect();
        LOG.with_borrow_mut(|log| log.push(Logged { level, message: message.to_owned(), fields }));
    }
}

pub(crate) mod config {
    use super::CONFIG;

    pub(crate) fn get(key: &str) -> Option<String> {
        CONFIG.with_borrow(|config| config.get(key).cloned())
    }
}

pub(crate) mod state {
    use super::STATE;
    use crate::state::StateError;

    const LONGEST_KEY: usize = 128;

    pub(crate) fn get(key: &str) -> Option<Vec<u8>> {
        STATE.with_borrow(|state| state.get(key).cloned())
    }

    pub(crate) fn set(key: &str, value: &[u8]) -> Result<(), StateError> {
        if key.is_empty() || key.len() > LONGEST_KEY {
            return Err(StateError::InvalidKey);
        }
        STATE.with_borrow_mut(|state| state.insert(key.to_owned(), value.to_owned()));
        Ok(())
    }

    pub(crate) fn remove(key: &str) {
        STATE.with_borrow_mut(|state| state.remove(key));
    }
}
