//! Memory and tables of one instance: growth past the limit is denied, the peak and the denial are
//! kept.
//!
//! It never ends a guest. A guest that survives a denied growth goes on; if it traps afterwards,
//! the denial kept here makes the outcome `over-memory` ([`crate::classify`]).

use wasmtime::ResourceLimiter;

/// Core instances of one component: an interpreter with its adapters has some twenty.
const MAX_INSTANCES: usize = 64;
/// Linear memories of one component, as many as the pool gives.
pub(crate) const MAX_MEMORIES: usize = 4;
/// Tables of one component, as many as the pool gives.
pub(crate) const MAX_TABLES: usize = 32;

/// A growth that was denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Denied {
    /// Linear memory, in bytes, all memories of the instance together.
    Memory {
        /// What it would have had.
        wanted: u64,
        /// What it may have.
        limit: u64,
    },
    /// Table elements, all tables of the instance together.
    Table {
        /// What it would have had.
        wanted: u64,
        /// What it may have.
        limit: u64,
    },
}

/// Counts what an instance has, and says no.
#[derive(Debug)]
pub(crate) struct Limiter {
    memory_limit: u64,
    table_limit: u64,
    memory: u64,
    tables: u64,
    /// The last growth that was allowed: taken back when it failed for another reason.
    last: u64,
    peak_memory: u64,
    denied: Option<Denied>,
}

impl Limiter {
    /// A limiter for one instance: bytes of memory, elements of tables.
    pub(crate) fn new(memory_limit: u64, table_limit: u64) -> Self {
        Self {
            memory_limit,
            table_limit,
            memory: 0,
            tables: 0,
            last: 0,
            peak_memory: 0,
            denied: None,
        }
    }

    /// Forgets a denial that the last message lived through.
    pub(crate) fn begin_call(&mut self) {
        self.denied = None;
    }

    /// The most linear memory it had, in bytes.
    pub(crate) fn peak_memory(&self) -> u64 {
        self.peak_memory
    }

    /// The last growth that was denied.
    pub(crate) fn denied(&self) -> Option<Denied> {
        self.denied
    }
}

/// The total after one part grows from `current` to `desired`.
fn total(total: u64, current: usize, desired: usize) -> u64 {
    total
        .saturating_sub(current as u64)
        .saturating_add(desired as u64)
}

impl ResourceLimiter for Limiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let (wanted, limit) = (total(self.memory, current, desired), self.memory_limit);
        if wanted > limit {
            self.denied = Some(Denied::Memory { wanted, limit });
            return Ok(false);
        }
        self.last = wanted - self.memory;
        self.memory = wanted;
        self.peak_memory = self.peak_memory.max(wanted);
        Ok(true)
    }

    fn memory_grow_failed(&mut self, _error: wasmtime::Error) -> wasmtime::Result<()> {
        self.memory -= std::mem::take(&mut self.last);
        Ok(())
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let (wanted, limit) = (total(self.tables, current, desired), self.table_limit);
        if wanted > limit {
            self.denied = Some(Denied::Table { wanted, limit });
            return Ok(false);
        }
        self.tables = wanted;
        Ok(true)
    }

    fn instances(&self) -> usize {
        MAX_INSTANCES
    }

    fn tables(&self) -> usize {
        MAX_TABLES
    }

    fn memories(&self) -> usize {
        MAX_MEMORIES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: usize = 64 << 10;

    #[test]
    fn memories_of_one_instance_count_together() {
        let mut limiter = Limiter::new(4 * PAGE as u64, 10);
        let mut grow = |from: usize, to: usize| {
            limiter
                .memory_growing(from * PAGE, to * PAGE, None)
                .expect("never fails")
        };
        assert!(grow(0, 1), "the first memory");
        assert!(grow(0, 1), "a second one");
        assert!(grow(1, 3), "four pages in all");
        assert!(!grow(1, 2), "a fifth");
        let (wanted, limit) = (5 * PAGE as u64, 4 * PAGE as u64);
        assert_eq!(limiter.denied(), Some(Denied::Memory { wanted, limit }));
        assert_eq!(limiter.peak_memory(), limit);
    }

    #[test]
    fn a_growth_that_failed_for_another_reason_is_taken_back() {
        let mut limiter = Limiter::new(4 * PAGE as u64, 10);
        assert!(
            limiter
                .memory_growing(0, 3 * PAGE, None)
                .expect("never fails")
        );
        limiter
            .memory_grow_failed(wasmtime::format_err!("no"))
            .expect("never fails");
        assert!(
            limiter
                .memory_growing(0, 4 * PAGE, None)
                .expect("never fails")
        );
        assert_eq!(limiter.denied(), None);
    }

    #[test]
    fn tables_are_denied_past_their_limit() {
        let mut limiter = Limiter::new(0, 10);
        assert!(limiter.table_growing(0, 10, None).expect("never fails"));
        assert!(!limiter.table_growing(10, 11, None).expect("never fails"));
        assert_eq!(
            limiter.denied(),
            Some(Denied::Table {
                wanted: 11,
                limit: 10
            })
        );
    }
}
