//! The attributes of a process: which component runs, how, within which limits and grants.

use std::collections::BTreeMap;

use super::attributes::{AttributeInfo, Change, Patch, attributes, flatten, nest};
use super::collection::{Origins, Patterns, SecretNames, TextTable};
use super::fault::{Fault, Reader, list_faults};
use super::kind::{FileName, Integer, Kind, Millis, OptionalName, Size, Text, Unit, Word};
use super::limits::{
    LOW_FUEL, LOW_MEMORY, MAX_BATCH, MAX_DEADLINE, MAX_FUEL, MAX_LOG_LIMIT, MAX_MEMORY, MAX_REUSE,
    MAX_TABLE_ELEMENTS, MAX_TASK_DEADLINE, MAX_TEXT, MAX_UNIT, MIN_MEMORY,
};
use super::origin::WebOrigin;
use super::pattern::Pattern;
use super::raw::Raw;
use super::words::Style;
use crate::names::QueueName;
use crate::quantity::{format_bytes, format_count, format_millis};

/// What a handler may reach beside its own queue. Nothing, unless it is named here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants {
    /// Queues it may put to.
    pub put: Vec<Pattern>,
    /// Queues it may get from.
    pub get: Vec<Pattern>,
    /// Queues it may browse.
    pub browse: Vec<Pattern>,
    /// Origins it may call over HTTP.
    pub http: Vec<WebOrigin>,
    /// Environment variables it sees.
    pub environment: BTreeMap<String, String>,
    /// Names of the secrets it may read.
    pub secrets: Vec<String>,
}

impl Grants {
    /// Whether the handler may put to the queue.
    #[must_use]
    pub fn may_put(&self, queue: &QueueName) -> bool {
        self.put.iter().any(|pattern| pattern.matches(queue))
    }

    /// Whether the handler may get from the queue. Its own queue needs no grant.
    #[must_use]
    pub fn may_get(&self, queue: &QueueName) -> bool {
        self.get.iter().any(|pattern| pattern.matches(queue))
    }

    /// Whether the handler may browse the queue. Its own queue needs no grant.
    #[must_use]
    pub fn may_browse(&self, queue: &QueueName) -> bool {
        self.browse.iter().any(|pattern| pattern.matches(queue))
    }

    /// Whether the handler may send a request there: the scheme, the host as a URI has it, and the
    /// port, none for the scheme's own.
    #[must_use]
    pub fn may_request(&self, https: bool, host: &str, port: Option<u16>) -> bool {
        let mut origins = self.http.iter();
        origins.any(|origin| origin.covers(https, host, port))
    }
}

/// The resolved attributes of a process. [`PROCESS_ATTRIBUTES`] has their meanings and ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessAttributes {
    /// The component's file name; empty is the process's own name with `.wasm`.
    pub component: String,
    /// What the process does, in words for people.
    pub description: String,
    /// How the component is called.
    pub style: Style,
    /// Fuel for one message (message style) or unit (trigger style).
    pub fuel: u64,
    /// Linear memory of one instance, bytes.
    pub memory: u64,
    /// Table elements of one instance.
    pub table_elements: u64,
    /// Time for one message or unit, milliseconds.
    pub deadline: u64,
    /// Time for one task, milliseconds.
    pub task_deadline: u64,
    /// The tail of the guest's log kept for one task, bytes.
    pub log_limit: u64,
    /// Most puts of one unit of work.
    pub max_puts: u32,
    /// Most resource handles at a time.
    pub max_handles: u32,
    /// Most messages got in one unit (trigger style).
    pub max_unit: u32,
    /// Messages for one instance.
    pub reuse: u32,
    /// Messages for one durable write.
    pub batch: u32,
    /// Where stdout (command style) or the response (wasi-http style) is put; none: where the
    /// message wants its reply, else to the log.
    pub output: Option<QueueName>,
    /// Free text for the trigger message.
    pub environment_data: String,
    /// Free text for the trigger message.
    pub user_data: String,
    /// What the handler may reach.
    pub grants: Grants,
    /// What it reads through `wasi:config`.
    pub config: BTreeMap<String, String>,
}

impl Default for ProcessAttributes {
    fn default() -> Self {
        Self {
            component: String::new(),
            description: String::new(),
            style: Style::Auto,
            fuel: 10_000_000_000,
            memory: 64 << 20,
            table_elements: 20_000,
            deadline: 30_000,
            task_deadline: 300_000,
            log_limit: 64 << 10,
            max_puts: 10_000,
            max_handles: 10_000,
            max_unit: 10_000,
            reuse: 1,
            batch: 1,
            output: None,
            environment_data: String::new(),
            user_data: String::new(),
            grants: Grants::default(),
            config: BTreeMap::new(),
        }
    }
}

impl ProcessAttributes {
    /// Rules between attributes. Empty when all is well.
    #[must_use]
    pub fn check(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        if self.deadline > self.task_deadline {
            let (deadline, task) = (
                format_millis(self.deadline),
                format_millis(self.task_deadline),
            );
            let message = format!(
                "is {deadline}, past task-deadline {task}; lower it or raise task-deadline"
            );
            faults.push(Fault::new("deadline", message));
        }
        faults
    }

    /// Values that are accepted and probably not meant.
    #[must_use]
    pub fn warnings(&self) -> Vec<Fault> {
        let mut warnings = Vec::new();
        if self.fuel < LOW_FUEL {
            let message = format!(
                "is {}, below {}: interpreted languages may not finish one message; raise it if \
                 tasks end out-of-fuel",
                format_count(self.fuel),
                format_count(LOW_FUEL)
            );
            warnings.push(Fault::new("fuel", message));
        }
        if self.memory < LOW_MEMORY {
            let message = format!(
                "is {}, below {}: components with a large stack or a garbage collector may not \
                 start; raise it if they end start-failed or over-memory",
                format_bytes(self.memory),
                format_bytes(LOW_MEMORY)
            );
            warnings.push(Fault::new("memory", message));
        }
        warnings
    }

    /// The component's file name: as given, or else the process's own name with `.wasm`.
    #[must_use]
    pub fn component_for(&self, process: &crate::names::ProcessName) -> String {
        if self.component.is_empty() {
            format!("{process}.wasm")
        } else {
            self.component.clone()
        }
    }
}

const TEXT: Text = Text { max: MAX_TEXT };
const UNIT_COUNT: Integer = Integer {
    min: 1,
    max: MAX_UNIT,
};

attributes! {
    /// Some attributes of a process: one layer of its definition, or changes to one.
    ProcessAttributes, ProcessPatch, PROCESS_ATTRIBUTES, "a process";

    component = component: String, "component", FileName, "",
        "The component's file in the plugins directory. If empty, the manifest's own name with \
         .wasm.";
    description = description: String, "description", TEXT, "",
        "What the process does, for people to read.";
    style = style: Style, "style", Word, "auto",
        "How the component is called. auto finds it by the component's exports.";
    fuel = fuel: u64, "fuel", Size { unit: Unit::Count, min: 1, max: MAX_FUEL }, "10 G",
        "How much work one message may cost: about one unit for each WASM instruction.";
    memory = memory: u64, "memory", Size { unit: Unit::Bytes, min: MIN_MEMORY, max: MAX_MEMORY },
        "64 MiB", "How much linear memory one instance may have, all its memories together.";
    table_elements = table_elements: u64, "table-elements",
        Integer { min: 1, max: MAX_TABLE_ELEMENTS }, "20000",
        "How many table elements one instance may have, all its tables together.";
    deadline = deadline: u64, "deadline", Millis { min: 1, max: MAX_DEADLINE }, "30s",
        "How long one message may take, waits included.";
    task_deadline = task_deadline: u64, "task-deadline", Millis { min: 1, max: MAX_TASK_DEADLINE },
        "5m", "How long one task may take, over all its messages.";
    log_limit = log_limit: u64, "log-limit",
        Size { unit: Unit::Bytes, min: 0, max: MAX_LOG_LIMIT }, "64 KiB",
        "How much of a task's log and stderr is kept: the tail.";
    max_puts = max_puts: u32, "max-puts", Integer { min: 0, max: MAX_UNIT }, "10000",
        "How many messages one unit of work may put.";
    max_handles = max_handles: u32, "max-handles", UNIT_COUNT, "10000",
        "How many resource handles a handler may hold at a time.";
    max_unit = max_unit: u32, "max-unit", UNIT_COUNT, "10000",
        "Trigger style: how many messages one unit of work may get.";
    reuse = reuse: u32, "reuse", Integer { min: 1, max: MAX_REUSE }, "1",
        "How many messages one instance handles. More is faster, and state may leak from one \
         message to the next.";
    batch = batch: u32, "batch", Integer { min: 1, max: MAX_BATCH }, "1",
        "Message style: how many messages share one durable write.";
    output = output: Option<QueueName>, "output", OptionalName, "",
        "Command and wasi-http style: the queue that stdout or the response becomes a message in. \
         If empty, the queue that the message wants its reply in, else the log.";
    environment_data = environment_data: String, "environment-data", TEXT, "",
        "Free text that the handler finds in the trigger message.";
    user_data = user_data: String, "user-data", TEXT, "",
        "More free text that the handler finds in the trigger message.";
    grants_put = grants.put: Vec<Pattern>, "grants.put", Patterns, "[]",
        "Queues the handler may put to. * stands for any characters.";
    grants_get = grants.get: Vec<Pattern>, "grants.get", Patterns, "[]",
        "Queues the handler may get from, beside its own.";
    grants_browse = grants.browse: Vec<Pattern>, "grants.browse", Patterns, "[]",
        "Queues the handler may browse, beside its own.";
    grants_http = grants.http: Vec<WebOrigin>, "grants.http", Origins, "[]",
        "Origins the handler may call over HTTP: scheme, host, port. *. stands for any host below \
         a domain.";
    grants_environment = grants.environment: BTreeMap<String, String>, "grants.environment",
        TextTable { environment: true }, "{}",
        "Environment variables the handler sees. It sees no others.";
    grants_secrets = grants.secrets: Vec<String>, "grants.secrets", SecretNames, "[]",
        "Secrets the handler may read, by name, through wasi:config and as variables of its \
         environment.";
    config = config: BTreeMap<String, String>, "config", TextTable { environment: false }, "{}",
        "What the handler reads through wasi:config.";
}
