//! Descriptions of what the manager's views look like as JSON, for the OpenAPI document.
//!
//! The views serialise themselves; these types are never made. A test compares the two.
#![expect(dead_code, reason = "only describes; the views are the manager's")]

use std::collections::BTreeMap;

use oncue_core::definition::{AttributeInfo, PROCESS_ATTRIBUTES, QUEUE_ATTRIBUTES};
use utoipa::openapi::schema::AdditionalProperties;
use utoipa::openapi::{ObjectBuilder, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// An object of attributes, from the one list of them.
fn attributes(table: &[AttributeInfo], what: &str) -> RefOr<Schema> {
    let mut object = ObjectBuilder::new()
        .schema_type(Type::Object)
        .additional_properties(Some(AdditionalProperties::FreeForm(false)))
        .description(Some(what));
    let mut groups: BTreeMap<&str, ObjectBuilder> = BTreeMap::new();
    for info in table {
        let accepts = (info.accepts)();
        let text = format!(
            "{} Default: `{}`. Use {accepts}.",
            info.meaning, info.default
        );
        // Of any type: a size may be a number or a text, and null resets.
        let value = ObjectBuilder::new()
            .schema_type(utoipa::openapi::schema::SchemaType::AnyValue)
            .description(Some(text))
            .build();
        match info.name.split_once('.') {
            None => object = object.property(info.name, value),
            Some((group, name)) => {
                let inner = groups.remove(group).unwrap_or_else(|| {
                    ObjectBuilder::new().schema_type(utoipa::openapi::schema::SchemaType::AnyValue)
                });
                groups.insert(group, inner.property(name, value));
            }
        }
    }
    for (group, inner) in groups {
        object = object.property(group, inner.build());
    }
    object.build().into()
}

macro_rules! attribute_schema {
    ($(#[$doc:meta])* $name:ident = $schema:literal, $table:ident, $what:literal) => {
        $(#[$doc])*
        pub(crate) struct $name;

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                attributes($table, $what)
            }
        }

        impl ToSchema for $name {
            fn name() -> std::borrow::Cow<'static, str> {
                $schema.into()
            }
        }
    };
}

attribute_schema!(
    /// Attributes of a queue.
    QueueAttributesSchema = "QueueAttributes",
    QUEUE_ATTRIBUTES,
    "Attributes of a queue. In a request, those left out stay; null takes an operator's value away."
);
attribute_schema!(
    /// Attributes of a process definition.
    ProcessAttributesSchema = "ProcessAttributes",
    PROCESS_ATTRIBUTES,
    "Attributes of a process. In a request, those left out stay; null takes an operator's value \
     away."
);

/// A queue.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = Queue)]
pub(crate) struct QueueSchema {
    /// Its name.
    name: String,
    /// All committed messages.
    depth: u64,
    /// Messages that applications and handlers put since the host started.
    puts: u64,
    /// Messages that count for the trigger rule.
    counted: u64,
    /// Tasks in process.
    running: u32,
    /// Starts that the rule still owes.
    owed: u64,
    /// `fire` or `hold`.
    verdict: String,
    /// The code of the reason to hold.
    reason: Option<String>,
    /// The reason in a sentence.
    reason_text: Option<String>,
    /// `on`, `off by operator` or `off by depth`.
    control: String,
    /// A depth trigger owes a start.
    start_owed: bool,
    /// An operator paused this queue.
    paused: bool,
    /// Unselective gets that wait now.
    waiting_inputs: u32,
    /// Age of the oldest ready message, in milliseconds.
    oldest_age: Option<u64>,
    /// When the queue manager itself puts the next message.
    next_scheduled: Option<u64>,
    /// Messages by state.
    counts: CountsSchema,
    /// The attributes that hold.
    attributes: QueueAttributesSchema,
    /// Where each attribute's value comes from, when it is not the default.
    origins: BTreeMap<String, String>,
}

/// Messages of one queue by state.
#[derive(ToSchema)]
#[schema(as = Counts, rename_all = "kebab-case")]
pub(crate) struct CountsSchema {
    /// Free to take, by priority from 0 to 9.
    ready: Vec<i64>,
    /// In a task's open unit of work.
    in_unit: i64,
    /// Under a lease.
    leased: i64,
    /// Those of `leased` that an unselective get took.
    leased_open: i64,
    /// Put with a delay that has not passed.
    delayed: i64,
    /// Failed, waiting to be retried.
    retrying: i64,
    /// Deferred by a handler.
    deferred: i64,
    /// Waiting for another member of the group.
    group_held: i64,
    /// Set aside; an operator must act.
    parked: i64,
    /// Bytes of all bodies.
    bytes: i64,
}

/// A process definition.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = Process)]
pub(crate) struct ProcessSchema {
    /// Its name.
    name: String,
    /// `ready`, `compiling`, `quarantined` or `missing`.
    component: String,
    /// Why, when not ready.
    component_reason: Option<String>,
    /// Digest of the version that serves.
    digest: Option<String>,
    /// An operator paused it.
    paused: bool,
    /// Tasks in process.
    running: u32,
    /// Queues that name it.
    queues: Vec<String>,
    /// The attributes that hold.
    attributes: ProcessAttributesSchema,
    /// Where each attribute's value comes from, when it is not the default.
    origins: BTreeMap<String, String>,
    /// Values that are accepted and probably not meant.
    warnings: Vec<String>,
}

/// Why a queue does or does not trigger.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = Explanation)]
pub(crate) struct ExplanationSchema {
    /// Which queue.
    queue: String,
    /// `fire` or `hold`.
    verdict: String,
    /// The code of the one reason that holds it.
    reason: Option<String>,
    /// The verdict in a sentence.
    sentence: String,
    /// Every condition with its present value, in the order in which they are asked.
    conditions: Vec<ConditionSchema>,
    /// Steps of the last trigger, as numbers.
    last_trace: Vec<u8>,
    /// When it last fired.
    last_fired: Option<u64>,
    /// When the queue is looked at again by itself.
    next_check: Option<u64>,
    /// When the queue manager itself puts the next message.
    next_scheduled: Option<u64>,
    /// When this was true.
    now: u64,
}

/// One condition of the trigger rule.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = Condition)]
pub(crate) struct ConditionSchema {
    /// What is asked.
    name: String,
    /// It lets the trigger pass.
    holds: bool,
    /// It is the one that decides.
    decides: bool,
    /// Its present value.
    value: String,
    /// Where the value comes from.
    source: String,
}

/// What the host may run, and what it runs.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = Ledger)]
pub(crate) struct LedgerSchema {
    /// All there is.
    capacity: ResourcesSchema,
    /// Reserved by running tasks.
    reserved: ResourcesSchema,
    /// Starts refused for want of resources, since the start of the host.
    refused: u64,
    /// The same, by what was wanting.
    refusals: RefusalsSchema,
    /// Reserved by each process definition.
    by_process: BTreeMap<String, ResourcesSchema>,
    /// Queues held for want of resources now, longest first.
    waiting: Vec<String>,
}

/// Starts refused, by what was wanting.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = Refusals)]
pub(crate) struct RefusalsSchema {
    /// Task slots.
    slots: u64,
    /// Memory in the ledger.
    memory: u64,
    /// Fuel.
    fuel: u64,
    /// Free memory of the machine, whatever the ledger says.
    headroom: u64,
}

/// Slots, memory and fuel.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = Resources)]
pub(crate) struct ResourcesSchema {
    /// Task slots.
    slots: u64,
    /// Bytes.
    memory: u64,
    /// Units of fuel.
    fuel: u64,
}

/// The host in numbers.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = Status)]
pub(crate) struct StatusSchema {
    /// The queue manager's name.
    name: String,
    /// This program's version.
    version: String,
    /// What it was built from.
    build: BuildSchema,
    /// `running` or `draining`.
    phase: String,
    /// An operator paused the host.
    paused: bool,
    /// When it started.
    started: u64,
    /// The time now.
    now: u64,
    /// Queues defined.
    queues: u64,
    /// Messages on all of them.
    depth: u64,
    /// Tasks in process.
    running: u64,
    /// Triggers fired since the start.
    triggers: u64,
    /// How often the trigger rule was asked since the start.
    asked: u64,
    /// Tasks ended since the start, by outcome.
    outcomes: BTreeMap<String, u64>,
    /// Messages in the dead-letter queue.
    dead_letters: u64,
    /// Alarms that are raised now.
    alarms: u64,
    /// `ok`, or why the store does not write.
    store: String,
    /// Bytes on disk.
    disk_used: u64,
    /// Bytes free on that disk.
    disk_free: Option<u64>,
    /// Commits since the start.
    commits: u64,
    /// Syncs since the start.
    syncs: u64,
}

/// All raised alarms.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = Alarms)]
pub(crate) struct AlarmsSchema {
    /// How many there are, those included that are not listed.
    active: u64,
    /// The newest first, up to 10 000.
    alarms: Vec<AlarmSchema>,
}

/// An alarm that is raised.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = Alarm)]
pub(crate) struct AlarmSchema {
    /// Its permanent name, such as `oldest-waiting`.
    alarm: String,
    /// The queue that it is about, if it is about one.
    queue: Option<String>,
    /// The plugin, if it is about one.
    plugin: Option<String>,
    /// When it was raised.
    since: u64,
    /// What was then, in a sentence.
    detail: String,
    /// What to do.
    cure: String,
    /// It does not end by itself.
    needs_a_person: bool,
}

/// A plugin.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = Plugin)]
pub(crate) struct PluginSchema {
    /// Its name.
    name: String,
    /// The component's file.
    file: String,
    /// `compiling`, `ready`, `quarantined` or `missing`.
    state: String,
    /// Why it is quarantined.
    reason: Option<String>,
    /// Digest of the version that serves.
    digest: Option<String>,
    /// How it is called: `message`, `trigger`, `command` or another word of the attribute `style`.
    style: Option<String>,
    /// Its process definition.
    process: String,
    /// Queues bound to it by its manifest.
    queues: Vec<String>,
    /// Digests of earlier good versions, newest first.
    previous: Vec<String>,
    /// Size, imports, exports, compile time: pairs of a name and a text.
    facts: Vec<Vec<String>>,
}

/// How many messages a task put to one queue.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = PutCount)]
pub(crate) struct PutCountSchema {
    /// Which queue.
    queue: String,
    /// Messages that are committed there.
    messages: u64,
}

/// A task, running or ended.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = Task)]
pub(crate) struct TaskSchema {
    /// Which task.
    id: u64,
    /// The triggered queue.
    queue: String,
    /// Its process definition.
    process: String,
    /// The plugin whose version ran.
    plugin: String,
    /// Digest of the component that ran.
    digest: String,
    /// How it ended; null while it runs.
    outcome: Option<String>,
    /// Why, in a sentence.
    detail: Option<String>,
    /// Backtrace of the last trap.
    backtrace: Option<String>,
    /// When it was started.
    started: u64,
    /// When it ended.
    ended: Option<u64>,
    /// Messages settled well.
    committed: u64,
    /// Messages that failed.
    failed: u64,
    /// The first messages, one by one.
    messages: Vec<MessageOutcomeSchema>,
    /// What it put, by queue.
    puts: Vec<PutCountSchema>,
    /// Steps that led to its start.
    steps: Vec<u8>,
    /// Milliseconds from the event that fired the trigger to the start.
    start_latency: u64,
    /// The trace of its first recorded message; absent when it is in none.
    #[schema(required = false)]
    trace: Option<String>,
    /// What it cost.
    cost: TaskCostSchema,
}

/// How one message ended in a task.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = MessageOutcome)]
pub(crate) struct MessageOutcomeSchema {
    /// Which message.
    id: String,
    /// How it ended.
    outcome: String,
    /// The handler's words, or the trap's.
    detail: Option<String>,
}

/// What a task cost.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = TaskCost)]
pub(crate) struct TaskCostSchema {
    /// Fuel burnt.
    fuel: u64,
    /// Largest linear memory of any instance, in bytes.
    peak_memory: u64,
    /// Time inside the guest, in microseconds.
    guest_micros: u64,
    /// The end of what it wrote.
    log_tail: String,
    /// Bytes of log that were cut.
    log_cut: u64,
    /// What was asked for without a grant.
    refused: Vec<RefusalSchema>,
}

/// Something asked for without a grant.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = Refusal)]
pub(crate) struct RefusalSchema {
    /// What was asked for.
    what: String,
    /// How often.
    times: u64,
}

/// What the program was built from.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = Build)]
pub(crate) struct BuildSchema {
    /// The source's revision, if whoever built it said so.
    revision: Option<String>,
    /// Processor and system.
    target: String,
    /// The version of the sandbox's engine.
    wasmtime: String,
}

/// The dead letters of a queue, by groups.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = DeadLetters)]
pub(crate) struct DeadLettersSchema {
    /// The dead-letter or backout queue.
    queue: String,
    /// The groups, the largest first.
    groups: Vec<DeadLetterGroupSchema>,
    /// Messages looked at, 10 000 at most.
    scanned: u64,
    /// Of them, those that were put there and failed nowhere: they have no dead-letter record.
    without_record: u64,
    /// There are more messages than were looked at.
    more: bool,
    /// When this was true.
    now: u64,
}

/// Dead letters that have origin, reason and process in common.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = DeadLetterGroup)]
pub(crate) struct DeadLetterGroupSchema {
    /// `backout`, `rejected`, `consumer`, `deferred` or `hop-limit`.
    reason: String,
    /// How the last attempt ended, for `backout`.
    outcome: Option<String>,
    /// The queue they came from.
    queue: String,
    /// The process definition that failed on them.
    process: Option<String>,
    /// How many.
    count: u64,
    /// When the oldest was put.
    oldest: u64,
    /// When the newest was put.
    newest: u64,
    /// When the last one was moved here.
    last: u64,
    /// That one.
    message: String,
    /// Its detail, the start of it.
    detail: String,
}
