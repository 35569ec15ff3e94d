//! From a case's input to what the queue manager takes: puts, definitions, state. Every fault of
//! the input at once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use bytes::Bytes;
use oncue_core::definition::{
    Layered, Patch as _, ProcessPatch, QueueAttributes, QueuePatch, Raw, TriggerType,
};
use oncue_core::names::QueueName;
use oncue_core::time::Timestamp;
use oncue_manager::put;
use oncue_manager::tasks::port::{PutOptions, PutRequest};
use oncue_runtime::plugin::SinglePlugin;
use serde_json::{Map, Value};

use super::case::{Fields, Input};

/// What time it is in a test: 2026-01-01T00:00:00Z. It stands still while a handler runs, so that
/// put times are the same in every run.
pub(super) const TEST_TIME: Timestamp = Timestamp(1_767_225_600_000);

/// Attempts that a message has in a run with a fault, at least: the fault must not use it up.
const PATIENCE: u32 = 10;

/// What a run is given.
#[derive(Clone, Debug)]
pub(super) struct Job {
    /// The triggered queue.
    pub(super) queue: QueueName,
    /// That queue's attributes from the manifest.
    pub(super) base: QueuePatch,
    /// What the case and the workshop change of them.
    pub(super) overlay: QueuePatch,
    /// What they change of the process.
    pub(super) process: ProcessPatch,
    /// The messages, in order.
    pub(super) puts: Vec<PutRequest>,
    /// The plugin's state before.
    pub(super) state: BTreeMap<String, Bytes>,
    /// Answers to requests, in order, by the queue that is asked.
    pub(super) replies: BTreeMap<QueueName, Vec<(Bytes, PutOptions)>>,
    /// Queues that are there.
    pub(super) queues: BTreeSet<QueueName>,
    /// What time it is.
    pub(super) time: Timestamp,
}

impl Job {
    /// Reads an input. `folder` is where its files lie.
    ///
    /// # Errors
    /// Every fault, one sentence each.
    pub(super) fn new(
        input: &Input,
        folder: &Path,
        plugin: &SinglePlugin,
        time: Timestamp,
    ) -> Result<Self, Vec<String>> {
        let mut faults = Vec::new();
        let served = &plugin.definitions.queues;
        let first = served.first().map(|(name, _)| name.clone());
        let Some(queue) = input.queue.clone().or(first) else {
            return Err(vec!["the plugin serves no queue; name one".to_owned()]);
        };
        let base = served.iter().find(|(name, _)| *name == queue);
        let base = base.map(|(_, patch)| patch.clone()).unwrap_or_default();
        let mut job = Self {
            overlay: QueuePatch::default(),
            process: ProcessPatch::default(),
            puts: Vec::new(),
            state: BTreeMap::new(),
            replies: BTreeMap::new(),
            queues: BTreeSet::new(),
            time,
            queue,
            base,
        };
        job.read_messages(input, folder, &mut faults);
        job.read_state(input, folder, &mut faults);
        job.read_trigger(&input.trigger, &mut faults);
        job.read_config(input, plugin, &mut faults);
        job.find_queues(plugin);
        if faults.is_empty() {
            Ok(job)
        } else {
            Err(faults)
        }
    }

    /// The attributes that hold for the queue.
    pub(super) fn attributes(&self) -> QueueAttributes {
        let mut layers = Layered::from_manifest(self.base.clone());
        layers.alter(&self.overlay);
        layers.resolve()
    }

    /// The same with enough attempts for a fault.
    pub(super) fn patient(&self) -> Self {
        let mut job = self.clone();
        let threshold = self.attributes().backout_threshold.max(PATIENCE);
        job.set_queue("backout-threshold", &threshold.to_string());
        job
    }

    /// The same with other fuel for a message.
    pub(super) fn with_fuel(&self, fuel: u64) -> Self {
        let mut job = self.clone();
        job.process.merge(&fuel_patch(fuel));
        job
    }

    fn set_queue(&mut self, name: &str, value: &str) {
        let flags = [(name.to_owned(), value.to_owned())];
        let patch = QueuePatch::parse_flags(&flags).expect("an attribute that there is");
        self.overlay.merge(&patch);
    }

    fn read_messages(&mut self, input: &Input, folder: &Path, faults: &mut Vec<String>) {
        for (index, message) in input.messages.iter().enumerate() {
            let mut fault = |text: String| faults.push(format!("\"messages[{index}]\" {text}"));
            let body = message.body.bytes(folder);
            let options = options(&message.fields);
            match (body, options) {
                (Ok(body), Ok(options)) => self.puts.push(PutRequest {
                    queue: message.queue.clone().unwrap_or_else(|| self.queue.clone()),
                    body,
                    options,
                }),
                (body, options) => {
                    body.err().into_iter().for_each(&mut fault);
                    options.err().into_iter().flatten().for_each(&mut fault);
                }
            }
        }
        for (index, reply) in input.replies.iter().enumerate() {
            let fields = Fields {
                content_type: reply.content_type.clone(),
                properties: reply.properties.clone(),
                ..Fields::default()
            };
            let mut fault = |text: String| faults.push(format!("\"replies[{index}]\" {text}"));
            match (reply.body.bytes(folder), options(&fields)) {
                (Ok(body), Ok(options)) => {
                    let answers = self.replies.entry(reply.queue.clone()).or_default();
                    answers.push((body, options));
                }
                (body, options) => {
                    body.err().into_iter().for_each(&mut fault);
                    options.err().into_iter().flatten().for_each(&mut fault);
                }
            }
        }
    }

    fn read_state(&mut self, input: &Input, folder: &Path, faults: &mut Vec<String>) {
        for (key, value) in &input.state {
            match value.bytes(folder) {
                Ok(bytes) => {
                    self.state.insert(key.clone(), bytes);
                }
                Err(text) => faults.push(format!("\"state.{key}\" {text}")),
            }
        }
    }

    fn read_trigger(&mut self, trigger: &Raw, faults: &mut Vec<String>) {
        let given = match trigger {
            Raw::Null => Raw::Table(Vec::new()),
            Raw::Table(entries) => Raw::Table(entries.clone()),
            word => Raw::Table(vec![("trigger".to_owned(), word.clone())]),
        };
        match QueuePatch::parse(&given) {
            Ok(patch) => self.overlay.merge(&patch),
            Err(found) => {
                faults.extend(found.iter().map(|fault| format!("\"trigger\": {fault}")));
            }
        }
        // One task at a time, so that the order of puts is the same in every run.
        self.set_queue("max-tasks", "1");
        if self.attributes().trigger == TriggerType::None {
            self.set_queue("trigger", "first");
        }
        // Fewer messages than the trigger waits for would never be handled.
        let here = |put: &&PutRequest| put.queue == self.queue;
        let count = self.puts.iter().filter(here).count() as u64;
        if self.attributes().trigger_depth > count && count > 0 {
            self.set_queue("trigger-depth", &count.to_string());
        }
    }

    fn read_config(&mut self, input: &Input, plugin: &SinglePlugin, faults: &mut Vec<String>) {
        if input.config.is_empty() {
            return;
        }
        let mut config = plugin.attributes.config.clone();
        config.extend(input.config.clone());
        let pairs = config
            .into_iter()
            .map(|(name, value)| (name, Raw::Text(value)));
        let table = Raw::Table(vec![("config".to_owned(), Raw::Table(pairs.collect()))]);
        match ProcessPatch::parse(&table) {
            Ok(patch) => self.process.merge(&patch),
            Err(found) => faults.extend(found.iter().map(|fault| format!("\"config\": {fault}"))),
        }
    }

    /// Every queue that is named: granted, asked, written to, or where failed messages go. Those
    /// that a pattern grants are found when the handler names them.
    fn find_queues(&mut self, plugin: &SinglePlugin) {
        let grants = &plugin.attributes.grants;
        let granted = grants.put.iter().chain(&grants.get).chain(&grants.browse);
        let mut queues: BTreeSet<QueueName> = granted
            .filter_map(|pattern| QueueName::new(pattern.as_str()).ok())
            .collect();
        queues.extend(self.replies.keys().cloned());
        queues.extend(self.puts.iter().map(|put| put.queue.clone()));
        let reply_to = |put: &PutRequest| put.options.reply_to.clone();
        queues.extend(self.puts.iter().filter_map(reply_to));
        queues.extend(self.attributes().backout_queue);
        queues.extend(plugin.attributes.output.clone());
        queues.remove(&self.queue);
        queues.retain(|queue| !queue.is_reserved());
        self.queues = queues;
    }
}

/// A change of the fuel for one message.
pub(super) fn fuel_patch(fuel: u64) -> ProcessPatch {
    let fuel = i64::try_from(fuel.max(1)).unwrap_or(i64::MAX);
    let table = Raw::Table(vec![("fuel".to_owned(), Raw::Integer(fuel))]);
    ProcessPatch::parse(&table).expect("fuel within its bounds")
}

/// The fields of a message as the queue manager takes them.
fn options(fields: &Fields) -> Result<PutOptions, Vec<String>> {
    let mut faults = Vec::new();
    let reply_to = fields.reply_to.as_deref().map(QueueName::new);
    let reply_to = reply_to.transpose().unwrap_or_else(|error| {
        faults.push(format!("has a bad reply-to: {error}"));
        None
    });
    let properties = properties(&fields.properties).unwrap_or_else(|text| {
        faults.push(text);
        Vec::new()
    });
    let options = PutOptions {
        correlation_id: fields.correlation_id.clone(),
        reply_to,
        group: fields.group.clone(),
        group_sequence: fields.group_sequence,
        priority: fields.priority,
        persistent: None,
        content_type: fields.content_type.clone(),
        properties,
        delay: fields.delay,
        expiry: fields.expiry,
        idempotency_key: None,
    };
    let found = put::faults(&options);
    faults.extend(
        found
            .iter()
            .map(|fault| format!("has a bad field: {fault}")),
    );
    if faults.is_empty() {
        Ok(options)
    } else {
        Err(faults)
    }
}

/// Properties: a text, or a list of texts for a name that stands several times.
fn properties(given: &Map<String, Value>) -> Result<Vec<(String, String)>, String> {
    let mut properties = Vec::new();
    for (name, value) in given {
        let values = match value {
            Value::Array(values) => values.as_slice(),
            one => std::slice::from_ref(one),
        };
        for value in values {
            let Value::String(text) = value else {
                return Err(format!(
                    "has a property \"{name}\" that is {value}; write texts"
                ));
            };
            properties.push((name.clone(), text.clone()));
        }
    }
    Ok(properties)
}
