//! The memory store under the contract; the durable cases too, with restarts that are played.

use std::sync::Arc;

use oncue_store::memory::{MEMORY_STORE_MAX_BYTES, MemoryStore};
use oncue_store::{CommitError, Store};
use parking_lot::Mutex;

use crate::rig::{Ending, Harness, Rig, check_sink_is_let_go, remove};

/// The rig hands a store back as a trait object, so the harness keeps the one it made.
#[derive(Default)]
struct Memory {
    made: Mutex<Option<Arc<MemoryStore>>>,
}

impl Memory {
    fn keep(&self, store: MemoryStore) -> Arc<dyn Store> {
        let store = Arc::new(store);
        *self.made.lock() = Some(store.clone());
        store
    }
}

impl Harness for Memory {
    fn open(&self) -> Arc<dyn Store> {
        self.keep(MemoryStore::new(0x00c0_ffee, MEMORY_STORE_MAX_BYTES))
    }

    fn reopen(&self, store: Arc<dyn Store>, ending: Ending) -> Arc<dyn Store> {
        if ending == Ending::Close {
            store.close();
        }
        let made = self.made.lock().take().expect("a store was made");
        self.keep(made.restarted(ending == Ending::Kill))
    }
}

#[test]
fn a_closed_store_lets_go_of_its_sink() {
    check_sink_is_let_go(&Memory::default());
}

contract!(Memory::default());
durable_contract!(Memory::default());

/// A memory store of very little room.
struct Small;

impl Harness for Small {
    fn open(&self) -> Arc<dyn Store> {
        Arc::new(MemoryStore::new(1, 100))
    }
}

#[test]
fn beyond_the_bound_of_bytes_puts_are_refused() {
    let mut rig = Rig::new(Small);
    let q = rig.define("q");
    rig.draft(&q).body(vec![0; 60]).send();
    assert_eq!(
        rig.draft(&q).body(vec![0; 41]).try_send(),
        Err(CommitError::Full)
    );
    rig.draft(&q).body(vec![0; 40]).send();
    assert_eq!(
        rig.draft(&q).body(vec![0; 1]).try_send(),
        Err(CommitError::Full)
    );
    rig.draft(&q).body(vec![]).send();
    assert_eq!(rig.store().status().volatile_bytes, 100);
    rig.take_and(&q, remove());
    rig.draft(&q).body(vec![0; 60]).send();
    rig.check();
}
