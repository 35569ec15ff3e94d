//! The attributes of a queue.

use super::attributes::{AttributeInfo, Change, Patch, attributes, flatten, nest};
use super::fault::{Fault, Reader, list_faults};
use super::kind::{
    Integer, Kind, Millis, MillisOrNever, OptionalName, PercentOrNever, Size, Switch, Text, Unit,
    Word,
};
use super::limits::{
    MAX_AGE, MAX_BACKOUT_THRESHOLD, MAX_DEPTH, MAX_HOP_LIMIT, MAX_INTERVAL, MAX_JITTER,
    MAX_MESSAGE_LENGTH, MAX_PRIORITY, MAX_TASKS, MAX_TEXT, MAX_WINDOW,
};
use super::raw::Raw;
use super::schedule::OptionalSchedule;
use super::words::{Delivery, Rearm, TriggerType, Usage};
use crate::names::{ProcessName, QueueName};
use crate::quantity::{format_bytes, format_millis};
use crate::schedule::Schedule;

/// Delays between starts that make no progress; each doubles the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Backoff {
    /// The first delay, milliseconds.
    pub initial: u64,
    /// The longest delay, milliseconds.
    pub max: u64,
}

/// Delays before a failed message counts again; each doubles the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Retry {
    /// The first delay, milliseconds.
    pub initial: u64,
    /// The longest delay, milliseconds.
    pub max: u64,
    /// How far a delay is varied at random, percent of it.
    pub jitter: u8,
}

/// The resolved attributes of a queue. [`QUEUE_ATTRIBUTES`] has their meanings and ranges.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QueueAttributes {
    /// The process definition that is started for the queue.
    pub process: Option<ProcessName>,
    /// What the queue is for, in words for people.
    pub description: String,
    /// When the queue asks for a task.
    pub trigger: TriggerType,
    /// Whether the operator wants the trigger on.
    pub trigger_control: bool,
    /// How many counted messages fire a depth trigger.
    pub trigger_depth: u64,
    /// The age of the oldest counted message that fires a depth trigger early, milliseconds.
    pub trigger_max_wait: Option<u64>,
    /// The least priority that counts.
    pub trigger_priority: u8,
    /// Free text for the trigger message.
    pub trigger_data: String,
    /// Who turns a fired depth trigger on again.
    pub rearm: Rearm,
    /// Most tasks at a time.
    pub max_tasks: u32,
    /// The pace of repeats of a held start, milliseconds.
    pub refire_interval: u64,
    /// Delays between starts without progress.
    pub backoff: Backoff,
    /// Delays of failed messages.
    pub retry: Retry,
    /// Failed attempts after which a message leaves the queue.
    pub backout_threshold: u32,
    /// Where it goes; the dead-letter queue if none.
    pub backout_queue: Option<QueueName>,
    /// Most messages on the queue.
    pub max_depth: u64,
    /// Longest body, bytes.
    pub max_message_length: u64,
    /// In which order messages are got.
    pub delivery: Delivery,
    /// Most handlers a message may pass through.
    pub hop_limit: u8,
    /// How long an idempotency key is remembered, milliseconds; 0 is not at all.
    pub idempotency_window: u64,
    /// How long after its put a message may still be deferred, milliseconds.
    pub defer_max_age: u64,
    /// How long an outside reader counts as present after its last get, milliseconds.
    pub input_linger: u64,
    /// When the queue manager itself puts a message.
    pub schedule: Option<Box<Schedule>>,
    /// After how long without a get an alarm is raised, milliseconds; 0 is never.
    pub service_interval: u64,
    /// The age of a message that nothing is started for at which an alarm is raised, milliseconds.
    pub alarm_oldest: Option<u64>,
    /// The percent of max-depth from which on an alarm is raised.
    pub alarm_depth_high: Option<u8>,
    /// The percent of max-depth down to which it lasts.
    pub alarm_depth_low: Option<u8>,
    /// Whether gets are enabled.
    pub get: bool,
    /// Whether puts are enabled.
    pub put: bool,
    /// What the queue is for, in words for the manager.
    pub usage: Usage,
    /// The priority of a message put without one.
    pub default_priority: u8,
    /// Whether a message put without saying is persistent.
    pub default_persistent: bool,
    /// How long a message put without saying lives, milliseconds.
    pub default_expiry: Option<u64>,
}

impl Default for QueueAttributes {
    fn default() -> Self {
        Self {
            process: None,
            description: String::new(),
            trigger: TriggerType::First,
            trigger_control: true,
            trigger_depth: 100,
            trigger_max_wait: None,
            trigger_priority: 0,
            trigger_data: String::new(),
            rearm: Rearm::Auto,
            max_tasks: 1,
            refire_interval: 1_000,
            backoff: Backoff {
                initial: 100,
                max: 60_000,
            },
            retry: Retry {
                initial: 1_000,
                max: 300_000,
                jitter: 20,
            },
            backout_threshold: 5,
            backout_queue: None,
            max_depth: 1_000_000,
            max_message_length: 16 << 20,
            delivery: Delivery::Priority,
            hop_limit: 16,
            idempotency_window: 600_000,
            defer_max_age: 86_400_000,
            input_linger: 2_000,
            schedule: None,
            service_interval: 0,
            alarm_oldest: Some(300_000),
            alarm_depth_high: Some(80),
            alarm_depth_low: Some(20),
            get: true,
            put: true,
            usage: Usage::Normal,
            default_priority: 0,
            default_persistent: true,
            default_expiry: None,
        }
    }
}

impl QueueAttributes {
    /// Rules between attributes. Empty when all is well.
    #[must_use]
    pub fn check(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        for (name, initial, max) in [
            ("backoff", self.backoff.initial, self.backoff.max),
            ("retry", self.retry.initial, self.retry.max),
        ] {
            if initial > max {
                let (initial, max) = (format_millis(initial), format_millis(max));
                let message = format!("is {initial}, past {name}.max {max}; lower it or raise max");
                faults.push(Fault::new(&format!("{name}.initial"), message));
            }
        }
        if self.trigger == TriggerType::Depth && self.trigger_depth > self.max_depth {
            let message = format!(
                "is {}, never reached with max-depth {}; lower it or raise max-depth",
                self.trigger_depth, self.max_depth
            );
            faults.push(Fault::new("trigger-depth", message));
        }
        // With `none` the values of a depth trigger may stay, so that it can be turned off and on.
        if let Some(wait) = self.trigger_max_wait
            && matches!(self.trigger, TriggerType::First | TriggerType::Every)
        {
            let message = format!(
                "is {}, which only trigger \"depth\" uses, not \"{}\"; set it to \"never\"",
                format_millis(wait),
                self.trigger
            );
            faults.push(Fault::new("trigger-max-wait", message));
        }
        if let (Some(low), Some(high)) = (self.alarm_depth_low, self.alarm_depth_high)
            && low >= high
        {
            let message = format!("is {low}, not below alarm-depth-high {high}; lower it");
            faults.push(Fault::new("alarm-depth-low", message));
        }
        if let Some(schedule) = &self.schedule
            && schedule.body.len() as u64 > self.max_message_length
        {
            let message = format!(
                "has {} bytes, past max-message-length {}; shorten it",
                schedule.body.len(),
                format_bytes(self.max_message_length)
            );
            faults.push(Fault::new("schedule.body", message));
        }
        faults
    }
}

const PRIORITY: Integer = Integer {
    min: 0,
    max: MAX_PRIORITY,
};
const ENABLED: Switch = Switch {
    yes: "enabled",
    no: "disabled",
};
const DELAY: Millis = Millis {
    min: 1,
    max: MAX_INTERVAL,
};
const TEXT: Text = Text { max: MAX_TEXT };

attributes! {
    /// Some attributes of a queue: one layer of its definition, or changes to one.
    QueueAttributes, QueuePatch, QUEUE_ATTRIBUTES, "a queue";

    process = process: Option<ProcessName>, "process", OptionalName, "",
        "The process definition that is started when the trigger fires.";
    description = description: String, "description", TEXT, "",
        "What the queue is for, for people to read.";
    trigger = trigger: TriggerType, "trigger", Word, "first",
        "When the queue asks for a task: at the first message, for every message, at a depth, \
         or never.";
    trigger_control = trigger_control: bool, "trigger-control", Switch { yes: "on", no: "off" },
        "on", "Whether the trigger may fire at all. Turned off, messages wait.";
    trigger_depth = trigger_depth: u64, "trigger-depth", Integer { min: 1, max: MAX_DEPTH }, "100",
        "With trigger depth: how many messages must count before it fires.";
    trigger_max_wait = trigger_max_wait: Option<u64>, "trigger-max-wait",
        MillisOrNever { min: 1, max: MAX_AGE }, "never",
        "With trigger depth: it also fires when the oldest message that counts is this old.";
    trigger_priority = trigger_priority: u8, "trigger-priority", PRIORITY, "0",
        "Messages of a lower priority do not count for the trigger. A task gets them all the same.";
    trigger_data = trigger_data: String, "trigger-data", TEXT, "",
        "Free text that the handler finds in the trigger message.";
    rearm = rearm: Rearm, "rearm", Word, "auto",
        "With trigger depth: whether the manager or the operator turns the trigger on again after \
         it fired.";
    max_tasks = max_tasks: u32, "max-tasks", Integer { min: 1, max: MAX_TASKS }, "1",
        "How many tasks may work on the queue at a time.";
    refire_interval = refire_interval: u64, "refire-interval", DELAY, "1s",
        "How long to wait before a start that was held is tried again.";
    backoff_initial = backoff.initial: u64, "backoff.initial", DELAY, "100ms",
        "The first delay after a task made no progress or could not start. It doubles each time.";
    backoff_max = backoff.max: u64, "backoff.max", DELAY, "1m",
        "The longest delay after tasks without progress.";
    retry_initial = retry.initial: u64, "retry.initial", Millis { min: 0, max: MAX_WINDOW }, "1s",
        "The first delay before a failed message is tried again. It doubles each time.";
    retry_max = retry.max: u64, "retry.max", Millis { min: 0, max: MAX_WINDOW }, "5m",
        "The longest delay before a failed message is tried again.";
    retry_jitter = retry.jitter: u8, "retry.jitter", Integer { min: 0, max: MAX_JITTER }, "20",
        "How far the retry delay is varied at random, in percent.";
    backout_threshold = backout_threshold: u32, "backout-threshold",
        Integer { min: 1, max: MAX_BACKOUT_THRESHOLD }, "5",
        "After so many failed attempts a message goes to the backout queue.";
    backout_queue = backout_queue: Option<QueueName>, "backout-queue", OptionalName, "",
        "Where messages go that failed too often. If empty, to the dead-letter queue.";
    max_depth = max_depth: u64, "max-depth", Integer { min: 1, max: MAX_DEPTH }, "1000000",
        "How many messages the queue holds. Further puts are refused.";
    max_message_length = max_message_length: u64, "max-message-length",
        Size { unit: Unit::Bytes, min: 1, max: MAX_MESSAGE_LENGTH }, "16 MiB",
        "The longest body. A longer put is refused.";
    delivery = delivery: Delivery, "delivery", Word, "priority",
        "The order of gets: by priority and then arrival, or by arrival alone.";
    hop_limit = hop_limit: u8, "hop-limit", Integer { min: 1, max: MAX_HOP_LIMIT }, "16",
        "How many handlers a message may pass through. A put past it is a dead letter: the loop \
         ends.";
    idempotency_window = idempotency_window: u64, "idempotency-window",
        Millis { min: 0, max: MAX_WINDOW }, "10m",
        "How long an idempotency key is remembered. 0s turns it off.";
    defer_max_age = defer_max_age: u64, "defer-max-age", Millis { min: 1, max: MAX_AGE }, "1d",
        "How long after its put a message may still be deferred by its handler without an attempt \
         being counted.";
    input_linger = input_linger: u64, "input-linger", Millis { min: 0, max: MAX_INTERVAL }, "2s",
        "How long an outside reader counts as present after its last get, so that trigger first \
         leaves the queue to it.";
    schedule = schedule: Option<Box<Schedule>>, "schedule", OptionalSchedule, "",
        "Times at which the queue manager itself puts a message: a cron expression with a time \
         zone (UTC if none is named), or a table of cron, zone, missed, body, content-type and \
         properties.";
    service_interval = service_interval: u64, "service-interval",
        Millis { min: 0, max: MAX_AGE }, "0s",
        "Raise an alarm when messages wait and none was got for so long. 0s turns it off.";
    alarm_oldest = alarm_oldest: Option<u64>, "alarm-oldest",
        MillisOrNever { min: 1, max: MAX_AGE }, "5m",
        "Raise an alarm when the oldest message that counts is older and nothing is started for \
         it.";
    alarm_depth_high = alarm_depth_high: Option<u8>, "alarm-depth-high", PercentOrNever, "80",
        "Raise an alarm when the queue holds so many percent of its max-depth.";
    alarm_depth_low = alarm_depth_low: Option<u8>, "alarm-depth-low", PercentOrNever, "20",
        "The alarm of alarm-depth-high ends, and is told of, when the queue is down to so many \
         percent.";
    get = get: bool, "get", ENABLED, "enabled",
        "Whether messages can be got. Disabled, no task starts.";
    put = put: bool, "put", ENABLED, "enabled",
        "Whether messages can be put. Disabled, tasks still drain the queue.";
    usage = usage: Usage, "usage", Word, "normal",
        "What the queue is for: normal, or transmission to another manager (not supported yet).";
    default_priority = default_priority: u8, "default-priority", PRIORITY, "0",
        "The priority of a message that is put without one.";
    default_persistent = default_persistent: bool, "default-persistence",
        Switch { yes: "persistent", no: "non-persistent" }, "persistent",
        "Whether a message that is put without saying survives a restart.";
    default_expiry = default_expiry: Option<u64>, "default-expiry",
        MillisOrNever { min: 1, max: MAX_AGE }, "never",
        "How long a message lives that is put without saying.";
}
