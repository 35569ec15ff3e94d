//! The bounds of every attribute, each with its unit. Nothing here is a default.

/// Most faults listed for one input; the rest are counted.
pub const MAX_FAULTS: usize = 100;

/// Highest message and trigger priority.
pub const MAX_PRIORITY: u64 = 9;
/// Highest trigger-depth and max-depth, messages.
pub const MAX_DEPTH: u64 = 999_999_999;
/// Largest max-message-length, bytes: a message must fit beside its copy in a handler's memory.
pub const MAX_MESSAGE_LENGTH: u64 = 1 << 30;
/// Most tasks of one queue at a time.
pub const MAX_TASKS: u64 = 1_000;
/// Highest backout-threshold, attempts.
pub const MAX_BACKOUT_THRESHOLD: u64 = 1_000_000;
/// Highest hop-limit, hops; the count is one byte in a message.
pub const MAX_HOP_LIMIT: u64 = 255;
/// Highest jitter of the retry delay, percent.
pub const MAX_JITTER: u64 = 100;
/// Longest refire-interval, back-off and input-linger, milliseconds (one hour).
pub const MAX_INTERVAL: u64 = 3_600_000;
/// Longest retry delay and idempotency-window, milliseconds (seven days).
pub const MAX_WINDOW: u64 = 7 * 86_400_000;
/// Longest max-wait, expiry and age, milliseconds (ten years).
pub const MAX_AGE: u64 = 3_650 * 86_400_000;

/// Most fuel for one message, units of fuel: days of work, so a finite number in all sums.
pub const MAX_FUEL: u64 = 1_000_000_000_000_000;
/// Least memory of an instance, bytes: one page of WASM.
pub const MIN_MEMORY: u64 = 64 << 10;
/// Most memory of an instance, bytes: all that 32-bit WASM can address.
pub const MAX_MEMORY: u64 = 4 << 30;
/// Most table elements of an instance.
pub const MAX_TABLE_ELEMENTS: u64 = 10_000_000;
/// Longest deadline for one message, milliseconds (one hour).
pub const MAX_DEADLINE: u64 = 3_600_000;
/// Longest deadline for one task, milliseconds (one day).
pub const MAX_TASK_DEADLINE: u64 = 86_400_000;
/// Longest log tail kept for one task, bytes.
pub const MAX_LOG_LIMIT: u64 = 16 << 20;
/// Most puts and gets of one unit of work, and most resource handles, each.
pub const MAX_UNIT: u64 = 1_000_000;
/// Most messages for one instance.
pub const MAX_REUSE: u64 = 1_000_000;
/// Most messages for one durable write.
pub const MAX_BATCH: u64 = 1_000;

/// Below this fuel a warning is given, units of fuel: interpreters need millions for a message.
pub const LOW_FUEL: u64 = 50_000_000;
/// Below this memory a warning is given, bytes: garbage-collected guests fail to start.
pub const LOW_MEMORY: u64 = 32 << 20;

/// Longest description and data text, bytes.
pub const MAX_TEXT: usize = 4_096;
/// Longest file name of a component, bytes: what file systems take.
pub const MAX_FILE_NAME: usize = 255;
/// Most entries of a list or a table.
pub const MAX_ENTRIES: usize = 1_000;
/// Longest key of a table, bytes.
pub const MAX_KEY: usize = 256;
/// Longest value of a configuration entry, bytes.
pub const MAX_VALUE: usize = 65_536;

const _: () = assert!(LOW_MEMORY > MIN_MEMORY && LOW_MEMORY < MAX_MEMORY);
const _: () = assert!(LOW_FUEL < MAX_FUEL);
const _: () = assert!(MAX_DEADLINE <= MAX_TASK_DEADLINE);
