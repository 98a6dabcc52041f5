//! The memory of the loop in a ConfigMap, so that it outlives the process.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::Client;
use plimsoll_core::{Memory, saved};
use plimsoll_driver::Store;
use serde_json::Map;

use crate::config_map::{ConfigMap, ConfigMapError, Content};
use crate::live::Fence;

/// Key of the saved form.
const KEY: &str = "memory";

/// What was found at the start.
#[derive(Debug)]
pub enum Restored {
    /// Nothing: this is the first start here.
    Nothing,
    /// What the process before left.
    Memory(Box<Memory>),
    /// Something that is not what this program saves; it will be replaced.
    Unreadable(String),
    /// This process may not read it. As with the Go autoscaler, nothing is kept then beyond the process.
    Forbidden(String),
}

/// A right that was just given, or an API server that just started, may take a moment: so often reading is refused before
/// that is believed.
const REFUSALS: u32 = 5;

/// The memory could not be read.
#[derive(Debug, thiserror::Error)]
#[error("the memory of the loop cannot be read: {0}")]
pub struct RestoreError(String);

/// Where the memory is kept.
pub struct MemoryStore {
    map: ConfigMap,
    fence: Fence,
    /// What was saved last.
    last: Vec<u8>,
    left_out: usize,
    /// Somebody else writes it.
    displaced: Option<String>,
    /// How often reading was refused, at the start.
    refusals: u32,
}

impl MemoryStore {
    /// In the ConfigMap of this name, which nobody but `writer` writes while the fence lets it.
    pub fn new(client: Client, namespace: &str, name: &str, writer: &str, fence: Fence) -> Self {
        Self {
            map: ConfigMap::new(client, namespace, name, writer),
            fence,
            last: vec![],
            left_out: 0,
            displaced: None,
            refusals: 0,
        }
    }

    /// Why this process can keep nothing any more, if another one has written what is its own to write. What that one wrote
    /// is not known here, so there is nothing but to end.
    pub fn displaced(&self) -> Option<&str> {
        self.displaced.as_deref()
    }

    /// What the process before left.
    ///
    /// # Errors
    ///
    /// If the API server does not tell. Without an answer nothing may be decided: it would forget what is under way.
    pub async fn restore(&mut self) -> Result<Restored, RestoreError> {
        let content = match self.map.read().await {
            Ok(content) => content,
            Err(error @ ConfigMapError::Forbidden(..)) => {
                self.refusals += 1;
                let why = error.to_string();
                return if self.refusals < REFUSALS { Err(RestoreError(why)) } else { Ok(Restored::Forbidden(why)) };
            }
            Err(error) => return Err(RestoreError(error.to_string())),
        };
        let Some(content) = content else { return Ok(Restored::Nothing) };
        let Some(text) = content.binary_data.get(KEY).and_then(|value| value.as_str()) else {
            return Ok(Restored::Unreadable(format!("it has no binaryData {KEY:?}")));
        };
        let restored = STANDARD.decode(text).map_err(|error| error.to_string());
        let restored = restored.and_then(|bytes| saved::restore(&bytes).map_err(|error| error.to_string()));
        Ok(match restored {
            Ok(memory) => Restored::Memory(Box::new(memory)),
            Err(why) => Restored::Unreadable(why),
        })
    }
}

impl Store for MemoryStore {
    async fn save(&mut self, memory: &Memory) -> Result<(), String> {
        let (bytes, left_out) = saved::save(memory).map_err(|error| error.to_string())?;
        if left_out.unneeded != self.left_out {
            self.left_out = left_out.unneeded;
            tracing::warn!(nodes = left_out.unneeded, "the memory is full: unneeded times of some nodes are left out");
        }
        if bytes == self.last || self.refusals >= REFUSALS {
            return Ok(());
        }
        (self.fence)()?;
        if let Some(why) = &self.displaced {
            return Err(why.clone());
        }
        let binary_data = Map::from_iter([(KEY.to_owned(), STANDARD.encode(&bytes).into())]);
        let content = Content { binary_data, ..Content::default() };
        let written = self.map.write(&content, &[]).await;
        if let Err(error) = written {
            let why = error.to_string();
            if matches!(error, ConfigMapError::Foreign(_)) {
                self.displaced = Some(why.clone());
            }
            return Err(why);
        }
        self.last = bytes;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{self, Asked, Says};

    /// An API server with one ConfigMap.
    #[derive(Clone, Default)]
    struct Server(Arc<Mutex<State>>);

    #[derive(Default)]
    struct State {
        map: Option<Value>,
        version: u64,
        writes: u32,
        /// The next write is done, but its answer is lost.
        lossy: bool,
        down: bool,
    }

    impl State {
        fn answer(&mut self, asked: &Asked) -> Says {
            let stale = asked.body["metadata"]["resourceVersion"].as_str() != Some(self.version.to_string().as_str());
            match asked.method.as_str() {
                _ if self.down => Says::Fails(500),
                "GET" => self.map.clone().map_or(Says::Fails(404), Says::Object),
                "POST" if self.map.is_some() => Says::Fails(409),
                "PUT" if self.map.is_none() => Says::Fails(404),
                "PUT" if stale => Says::Fails(409),
                _ => {
                    self.version += 1;
                    self.writes += 1;
                    let mut map = asked.body.clone();
                    map["metadata"]["resourceVersion"] = self.version.to_string().into();
                    self.map = Some(map.clone());
                    if std::mem::take(&mut self.lossy) { Says::Fails(504) } else { Says::Object(map) }
                }
            }
        }
    }

    impl Server {
        fn state<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
            look(&mut self.0.lock().unwrap())
        }

        fn store(&self, writer: &str) -> MemoryStore {
            self.fenced(writer, Arc::new(|| Ok(())))
        }

        fn fenced(&self, writer: &str, fence: Fence) -> MemoryStore {
            let state = self.0.clone();
            let (client, _) = testing::client(move |asked| state.lock().unwrap().answer(asked));
            MemoryStore::new(client, "kube-system", "cluster-autoscaler-state", writer, fence)
        }
    }

    fn memory(scale_up: i64) -> Memory {
        Memory { last_scale_up_ms: Some(scale_up), ..Memory::default() }
    }

    async fn restored(store: &mut MemoryStore) -> Option<i64> {
        match store.restore().await.unwrap() {
            Restored::Memory(memory) => memory.last_scale_up_ms,
            _ => None,
        }
    }

    #[tokio::test]
    async fn the_next_process_finds_what_this_one_kept() {
        let server = Server::default();
        let mut one = server.store("one");
        assert!(matches!(one.restore().await.unwrap(), Restored::Nothing));
        one.save(&memory(1)).await.unwrap();
        one.save(&memory(1)).await.unwrap();
        assert_eq!(server.state(|state| state.writes), 1, "what did not change is not written");
        one.save(&memory(2)).await.unwrap();
        let mut two = server.store("two");
        assert_eq!(restored(&mut two).await, Some(2));
        two.save(&memory(3)).await.unwrap();
        let foreign = one.save(&memory(4)).await.unwrap_err();
        assert!(foreign.contains("another process"), "{foreign}");
        one.save(&memory(5)).await.unwrap_err();
        assert!(one.displaced().is_some() && two.displaced().is_none());
        assert_eq!(restored(&mut server.store("three")).await, Some(3));
    }

    #[tokio::test]
    async fn a_lost_answer_to_a_write_of_ones_own_is_no_other_process() {
        let server = Server::default();
        let mut one = server.store("one");
        one.save(&memory(1)).await.unwrap();
        server.state(|state| state.lossy = true);
        one.save(&memory(2)).await.unwrap_err();
        one.save(&memory(2)).await.unwrap();
        assert_eq!(restored(&mut server.store("two")).await, Some(2));
        server.state(|state| state.map = None);
        one.save(&memory(3)).await.unwrap();
        assert_eq!(restored(&mut server.store("two")).await, Some(3), "one that was deleted is made anew");
    }

    #[tokio::test]
    async fn nothing_is_kept_behind_the_fence() {
        let server = Server::default();
        let mut one = server.fenced("one", Arc::new(|| Err("not the leader".to_owned())));
        assert_eq!(one.save(&memory(1)).await.unwrap_err(), "not the leader");
        assert_eq!(server.state(|state| state.writes), 0);
    }

    #[tokio::test]
    async fn what_cannot_be_read() {
        let server = Server::default();
        for (name, data) in [
            ("nothing", json!({})),
            ("no text", json!({"memory": 5})),
            ("no base64", json!({"memory": "!"})),
            ("no memory", json!({"memory": "aGVsbG8="})),
        ] {
            server.state(|state| {
                state.map = Some(json!({"metadata": {"resourceVersion": "0"}, "binaryData": data}));
            });
            assert!(matches!(server.store("one").restore().await.unwrap(), Restored::Unreadable(_)), "{name}");
        }
        server.state(|state| state.down = true);
        assert!(server.store("one").restore().await.is_err(), "no answer is no memory of nothing");
    }
}
