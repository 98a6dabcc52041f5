//! How much one plug-in may take, and the gauge that notes when it asked for more.

use std::time::Duration;

use plimsoll_grants::config::Entry;
use serde::Serialize;
use wasmtime::ResourceLimiter;

const MIB: usize = 1 << 20;

/// What one instance of a plug-in may take. Bytes and counts are for one store, durations for one call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Linear memory of all its memories together.
    pub memory_bytes: usize,
    /// Elements of all its tables together.
    pub table_elements: usize,
    /// Core instances.
    pub instances: usize,
    /// Tables.
    pub tables: usize,
    /// Memories.
    pub memories: usize,
    /// Handles to resources that live at the same time.
    pub handles: usize,
    /// Objects that the host keeps for it: requests, responses, streams, pollables.
    pub host_objects: usize,
    /// Bytes that cross from the guest to the host in one call or answer.
    pub transfer_bytes: usize,
    /// Size of one set of HTTP headers.
    pub header_bytes: usize,
    /// Random bytes asked for at once.
    pub random_bytes: u64,
    /// Body of one HTTP request.
    pub request_body_bytes: usize,
    /// Body of one HTTP response.
    pub response_body_bytes: usize,
    /// HTTP exchanges at the same time.
    pub exchanges: usize,
    /// How long a call may take that changes nothing.
    pub read: Duration,
    /// How long a call may take that changes the cloud.
    pub write: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_bytes: 128 * MIB,
            table_elements: 100_000,
            instances: 64,
            tables: 64,
            memories: 8,
            handles: 4096,
            host_objects: 1024,
            transfer_bytes: 32 * MIB,
            header_bytes: 32 << 10,
            random_bytes: 1 << 20,
            request_body_bytes: MIB,
            response_body_bytes: 16 * MIB,
            exchanges: 16,
            read: Duration::from_secs(10),
            write: Duration::from_secs(60),
        }
    }
}

impl Limits {
    /// What the operator's file says about a plug-in, and else the defaults.
    pub fn of(entry: &Entry) -> Self {
        let mut limits = Self::default();
        if let Some(mib) = entry.memory_mib.and_then(|mib| usize::try_from(mib).ok()) {
            limits.memory_bytes = mib << 20;
        }
        let size =
            |value: Option<u32>, shift: u32| value.and_then(|value| usize::try_from(value).ok()?.checked_shl(shift));
        limits.request_body_bytes = size(entry.request_kib, 10).unwrap_or(limits.request_body_bytes);
        limits.response_body_bytes = size(entry.response_mib, 20).unwrap_or(limits.response_body_bytes);
        if let Some(seconds) = entry.call_seconds {
            (limits.read, limits.write) = (Duration::from_secs(seconds.into()), Duration::from_secs(seconds.into()));
        }
        limits
    }
}

/// Which limit a plug-in ran into.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, thiserror::Error)]
#[serde(rename_all = "kebab-case", tag = "what")]
pub enum Limit {
    /// Linear memory.
    #[error("needed more than {} MiB of memory", limit_bytes >> 20)]
    Memory {
        /// What is allowed.
        limit_bytes: usize,
        /// What it would have had after growing.
        wanted_bytes: usize,
    },
    /// Table elements.
    #[error("needed more than {limit} table elements")]
    Table {
        /// What is allowed.
        limit: usize,
    },
    /// Core instances, tables or memories.
    #[error("needs more core instances, tables or memories than the host gives ({detail})")]
    Parts {
        /// What the engine said.
        detail: String,
    },
    /// Handles.
    #[error("held more than {limit} handles")]
    Handles {
        /// What is allowed.
        limit: usize,
    },
    /// Objects kept by the host.
    #[error("kept more than {limit} requests, responses or streams open")]
    HostObjects {
        /// What is allowed.
        limit: usize,
    },
    /// Bytes from guest to host.
    #[error("handed more than {} MiB to the host at once", limit_bytes >> 20)]
    Transfer {
        /// What is allowed.
        limit_bytes: usize,
    },
    /// Call stack.
    #[error("ran out of stack: it recursed too deep")]
    Stack,
}

/// Watches a store grow, and remembers what was refused, so that a trap that follows can be explained.
#[derive(Debug)]
pub(crate) struct Gauge {
    memory_limit: usize,
    table_limit: usize,
    instances: usize,
    tables: usize,
    memories: usize,
    memory: usize,
    elements: usize,
    refused: Option<Limit>,
}

impl Gauge {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            memory_limit: limits.memory_bytes,
            table_limit: limits.table_elements,
            instances: limits.instances,
            tables: limits.tables,
            memories: limits.memories,
            memory: 0,
            elements: 0,
            refused: None,
        }
    }

    /// What was refused since the last time this was asked.
    pub(crate) fn take_refused(&mut self) -> Option<Limit> {
        self.refused.take()
    }

    /// Bytes of linear memory in use. Memories never shrink, so this is the peak as well.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.memory
    }
}

impl ResourceLimiter for Gauge {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        let growth = desired.saturating_sub(current);
        let total = self.memory.saturating_add(growth);
        if total > self.memory_limit {
            self.refused = Some(Limit::Memory { limit_bytes: self.memory_limit, wanted_bytes: total });
            return Ok(false);
        }
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        self.memory = total;
        Ok(true)
    }

    fn table_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        let growth = desired.saturating_sub(current);
        let total = self.elements.saturating_add(growth);
        if total > self.table_limit {
            self.refused = Some(Limit::Table { limit: self.table_limit });
            return Ok(false);
        }
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        self.elements = total;
        Ok(true)
    }

    fn instances(&self) -> usize {
        self.instances
    }
    fn tables(&self) -> usize {
        self.tables
    }
    fn memories(&self) -> usize {
        self.memories
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gauge() -> Gauge {
        Gauge::new(&Limits { memory_bytes: 4 * MIB, table_elements: 10, ..Limits::default() })
    }

    #[test]
    fn memory_is_counted_over_all_memories() {
        let mut gauge = gauge();
        assert!(gauge.memory_growing(0, 3 * MIB, None).unwrap());
        assert!(!gauge.memory_growing(0, 2 * MIB, None).unwrap());
        assert_eq!(
            gauge.take_refused(),
            Some(Limit::Memory { limit_bytes: 4 * MIB, wanted_bytes: 5 * MIB }),
            "a second memory must not get what the first has"
        );
        assert!(gauge.memory_growing(3 * MIB, 4 * MIB, None).unwrap());
        assert_eq!((gauge.memory_bytes(), gauge.take_refused()), (4 * MIB, None));
    }

    #[test]
    fn growth_beyond_the_guests_own_maximum_is_no_limit_of_ours() {
        let mut gauge = gauge();
        assert!(!gauge.memory_growing(0, 2 * MIB, Some(MIB)).unwrap());
        assert_eq!(gauge.take_refused(), None);
    }

    #[test]
    fn tables_are_counted_together() {
        let mut gauge = gauge();
        assert!(gauge.table_growing(0, 6, None).unwrap());
        assert!(!gauge.table_growing(0, 6, None).unwrap());
        assert_eq!(gauge.take_refused(), Some(Limit::Table { limit: 10 }));
    }
}
