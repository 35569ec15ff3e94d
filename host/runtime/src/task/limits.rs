//! The limits of a task, from its process definition, in the units that the sandbox takes.

use std::time::Duration;

use oncue_core::definition::ProcessAttributes;

/// What one call into the host may bring with it beside a body that fills the guest's memory, in
/// bytes.
const HOST_CALL_SPARE: u64 = 64 << 10;

/// Handles that the host itself gives: the message in hand, standard streams and what hangs on
/// them.
const SPARE_HANDLES: usize = 8;

/// Every limit of one task.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// Fuel of one message or unit.
    pub(crate) fuel: u64,
    /// Linear memory of one instance, in bytes.
    pub(crate) memory: u64,
    /// Table elements of one instance.
    pub(crate) table_elements: u64,
    /// Time for one message or unit.
    pub(crate) deadline: Duration,
    /// Time for the task.
    pub(crate) task_deadline: Duration,
    /// The tail of the log that is kept, in bytes.
    pub(crate) log: u64,
    /// Resource handles at a time.
    pub(crate) handles: usize,
    /// Messages that one instance handles.
    pub(crate) reuse: u32,
}

impl Limits {
    /// The limits that a definition sets.
    pub(crate) fn new(attributes: &ProcessAttributes) -> Self {
        Self {
            fuel: attributes.fuel,
            memory: attributes.memory,
            table_elements: attributes.table_elements,
            deadline: Duration::from_millis(attributes.deadline),
            task_deadline: Duration::from_millis(attributes.task_deadline),
            log: attributes.log_limit,
            handles: attributes.max_handles as usize,
            // A batch is handled by one instance, so that its savepoints see one state.
            reuse: attributes.reuse.max(attributes.batch),
        }
    }

    /// Handles with those that the host gives unasked.
    pub(crate) fn all_handles(&self) -> usize {
        self.handles.saturating_add(SPARE_HANDLES)
    }

    /// The most bytes that one call may bring into the host. A body comes out of the guest's memory
    /// and is no larger; lists that name one string many times could be, and are stopped by this.
    pub(crate) fn host_call_bytes(&self) -> u64 {
        self.memory.saturating_add(HOST_CALL_SPARE)
    }
}
