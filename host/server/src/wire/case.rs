//! A failed unit of work as a golden case: what `oncue test` takes in and what it expects, the
//! same on the wire as in the files.
//!
//! Nothing in `input` and `expected` changes from run to run: no id of a message, no time, no
//! cost. What a case cannot say is said in `notes`, in a sentence each.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use oncue_core::definition::TriggerType;
use oncue_core::message::{Header, MessageId};
use oncue_core::names::QueueName;
use oncue_core::outcome::Outcome;
use oncue_manager::handle::Failure;
use oncue_manager::tasks::failures::{FailedUnit, KeptBody, KeptMessage, KeptPut};
use serde::Serialize;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use utoipa::ToSchema;

use super::message::{PropertySchema, properties};

/// Priority of a message when a case says nothing.
const USUAL_PRIORITY: u8 = 0;

/// Longer values are expected by their digest, in bytes.
const MAX_WHOLE: usize = 64 << 10;

/// A failed unit of work, to be run again with `oncue test`.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = Case)]
pub(crate) struct CaseJson {
    /// The task.
    task: u64,
    /// The message that its handler failed on; null when it had none in hand.
    message: Option<String>,
    /// The process definition.
    process: String,
    /// The plugin whose version failed.
    plugin: String,
    /// Digest of the component that failed.
    digest: String,
    /// When it failed.
    time: u64,
    /// How it ended.
    #[schema(value_type = String)]
    outcome: &'static str,
    /// Why, in a sentence.
    detail: String,
    /// What it was given: the content of `input.json`.
    input: InputJson,
    /// How it ended: the content of `expected.json`.
    expected: ExpectedJson,
    /// What it had put before it failed, which was undone.
    undone: Vec<PutJson>,
    /// What the case has not, or not whole.
    notes: Vec<String>,
    /// Messages of the task's other kept failures: ask for them with `message`.
    others: Vec<String>,
}

/// What a handler is given.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = CaseInput)]
struct InputJson {
    /// The triggered queue.
    queue: String,
    /// The trigger type, or attributes of the queue.
    #[schema(value_type = CaseTriggerSchema)]
    trigger: TriggerJson,
    /// The messages in hand.
    messages: Vec<InputMessageJson>,
    /// The state that it read.
    state: BTreeMap<String, BodyJson>,
    /// Its configuration.
    config: BTreeMap<String, String>,
    /// Answers to its requests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    replies: Vec<ReplyJson>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum TriggerJson {
    Word(&'static str),
    Attributes(TriggerAttributesJson),
}

/// A trigger type, or attributes of the triggered queue.
#[derive(ToSchema)]
#[schema(as = CaseTrigger)]
#[serde(untagged)]
#[expect(dead_code, reason = "only describes; the value is a TriggerJson")]
enum CaseTriggerSchema {
    Word(String),
    Attributes(TriggerAttributesJson),
}

/// Attributes of the triggered queue.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = CaseTriggerAttributes)]
struct TriggerAttributesJson {
    /// `first`, `every` or `depth`.
    #[schema(value_type = String)]
    trigger: &'static str,
    /// How many messages make a depth trigger fire: those of the case.
    #[serde(skip_serializing_if = "Option::is_none")]
    trigger_depth: Option<u64>,
    /// The queue's text for its handler.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    trigger_data: String,
}

/// A body: as text, or in base64 if it is not UTF-8.
#[derive(Default, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = CaseBody)]
struct BodyJson {
    /// The body, if it is UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// The body, if it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
}

/// What is said of a message in a case.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = CaseFields)]
struct FieldsJson {
    /// Ties a reply to its request.
    #[serde(skip_serializing_if = "Option::is_none")]
    correlation_id: Option<String>,
    /// Where a reply is wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    reply_to: Option<String>,
    /// Its group.
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    /// The putter's own number within the group.
    #[serde(skip_serializing_if = "Option::is_none")]
    group_sequence: Option<u32>,
    /// The media type of the body.
    #[serde(skip_serializing_if = "Option::is_none")]
    content_type: Option<String>,
    /// 0 to 9; 0 when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<u8>,
    /// Free names and texts.
    #[serde(skip_serializing_if = "Map::is_empty")]
    #[schema(value_type = BTreeMap<String, PropertySchema>, required = false)]
    properties: Map<String, Value>,
}

/// A message to be handled.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = CaseMessage)]
struct InputMessageJson {
    #[serde(flatten)]
    body: BodyJson,
    /// Where it was got, when not from the triggered queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<String>,
    #[serde(flatten)]
    fields: FieldsJson,
}

/// The answer to a request.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = CaseReply)]
struct ReplyJson {
    /// The queue that was asked.
    queue: String,
    #[serde(flatten)]
    body: BodyJson,
}

/// What is expected.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = CaseExpected)]
struct ExpectedJson {
    /// How each message ends.
    messages: Vec<EndJson>,
    /// What is put: nothing, since a failed unit is undone.
    puts: Vec<PutJson>,
    /// The state afterwards: as it was.
    state: BTreeMap<String, WantedJson>,
}

/// Bytes as they are expected.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = CaseWanted)]
struct WantedJson {
    #[serde(flatten)]
    body: BodyJson,
    /// Of more than 64 KiB, their digest.
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    /// Of more than 64 KiB, their length.
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
}

/// How a message ends.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = CaseEnd)]
struct EndJson {
    /// The outcome.
    #[schema(value_type = String)]
    outcome: &'static str,
    /// The handler's own words, when it refused the message itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// A message that a handler puts.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = CasePut)]
struct PutJson {
    /// Where to.
    queue: String,
    #[serde(flatten)]
    body: BodyJson,
    #[serde(flatten)]
    fields: FieldsJson,
}

impl BodyJson {
    fn new(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self {
                text: Some(text.to_owned()),
                base64: None,
            },
            Err(_) => Self {
                text: None,
                base64: Some(STANDARD.encode(bytes)),
            },
        }
    }
}

impl WantedJson {
    fn new(bytes: &[u8]) -> Self {
        if bytes.len() <= MAX_WHOLE {
            return Self {
                body: BodyJson::new(bytes),
                sha256: None,
                size: None,
            };
        }
        let digest = Sha256::digest(bytes);
        let digits = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        Self {
            body: BodyJson::default(),
            sha256: Some(digits),
            size: Some(bytes.len() as u64),
        }
    }
}

impl FieldsJson {
    fn new(header: &Header) -> Self {
        Self {
            correlation_id: header.correlation_id.clone(),
            reply_to: header.reply_to.as_ref().map(QueueName::to_string),
            group: header.group.clone(),
            group_sequence: header.group_sequence,
            content_type: header.content_type.clone(),
            priority: Some(header.priority).filter(|priority| *priority != USUAL_PRIORITY),
            properties: properties(header),
        }
    }
}

impl PutJson {
    fn new(put: &KeptPut) -> Self {
        Self {
            queue: put.queue.to_string(),
            body: BodyJson::new(&put.body.bytes),
            fields: FieldsJson::new(&put.header),
        }
    }
}

impl From<&Failure> for CaseJson {
    fn from(failure: &Failure) -> Self {
        let unit = &failure.unit;
        // A trap's words are the sandbox's, and not what a case holds a handler to.
        let own_words = matches!(unit.outcome, Outcome::Retry | Outcome::Rejected);
        let ends = unit.messages.iter().map(|_| EndJson {
            outcome: unit.outcome.as_str(),
            reason: own_words.then(|| unit.detail.clone()),
        });
        Self {
            task: unit.task.0,
            message: unit.message().map(|id| id.to_string()),
            process: unit.process.to_string(),
            plugin: unit.component.plugin.to_string(),
            digest: unit.component.digest.clone(),
            time: unit.time.0,
            outcome: unit.outcome.as_str(),
            detail: unit.detail.clone(),
            input: InputJson {
                queue: unit.queue.to_string(),
                trigger: trigger(unit),
                messages: unit.messages.iter().map(|kept| input(unit, kept)).collect(),
                state: state(unit, BodyJson::new),
                config: unit.attributes.config.clone(),
                replies: unit.replies.iter().map(reply).collect(),
            },
            expected: ExpectedJson {
                messages: ends.collect(),
                puts: Vec::new(),
                state: state(unit, WantedJson::new),
            },
            undone: unit.puts.iter().map(PutJson::new).collect(),
            notes: notes(unit),
            others: failure.others.iter().map(MessageId::to_string).collect(),
        }
    }
}

fn trigger(unit: &FailedUnit) -> TriggerJson {
    let message = &unit.trigger;
    let is_depth = message.trigger_type == TriggerType::Depth;
    let trigger = message.trigger_type.as_str();
    if !is_depth && message.trigger_data.is_empty() {
        return TriggerJson::Word(trigger);
    }
    let own = unit.messages.iter().filter(|kept| kept.queue == unit.queue);
    TriggerJson::Attributes(TriggerAttributesJson {
        trigger,
        trigger_depth: is_depth.then_some(own.count().max(1) as u64),
        trigger_data: message.trigger_data.clone(),
    })
}

fn input(unit: &FailedUnit, kept: &KeptMessage) -> InputMessageJson {
    let elsewhere = kept.queue != unit.queue;
    InputMessageJson {
        body: BodyJson::new(&kept.body.bytes),
        queue: elsewhere.then(|| kept.queue.to_string()),
        fields: FieldsJson::new(&kept.header),
    }
}

fn reply(kept: &KeptMessage) -> ReplyJson {
    ReplyJson {
        queue: kept.queue.to_string(),
        body: BodyJson::new(&kept.body.bytes),
    }
}

/// The state that was there, each value made by `body`.
fn state<T>(unit: &FailedUnit, body: impl Fn(&[u8]) -> T) -> BTreeMap<String, T> {
    let kept = unit.state.iter();
    kept.filter_map(|kept| {
        let value = kept.value.as_ref()?;
        Some((kept.key.clone(), body(&value.bytes)))
    })
    .collect()
}

/// What the case has not, or not whole.
fn notes(unit: &FailedUnit) -> Vec<String> {
    let mut notes = Vec::new();
    let mut cut = |what: String, body: &KeptBody| {
        if !body.is_whole() {
            let kept = body.bytes.len();
            let size = body.size;
            notes.push(format!(
                "{what} has {size} bytes, the first {kept} were kept"
            ));
        }
    };
    for kept in &unit.messages {
        cut(format!("message \"{}\"", kept.header.id), &kept.body);
    }
    for kept in &unit.state {
        if let Some(value) = &kept.value {
            cut(format!("state \"{}\"", kept.key), value);
        }
    }
    for kept in &unit.replies {
        cut(
            format!("the answer of queue \"{}\"", kept.queue),
            &kept.body,
        );
    }
    for kept in &unit.puts {
        cut(format!("an undone put to \"{}\"", kept.queue), &kept.body);
    }
    for kept in &unit.messages {
        let (id, count) = (kept.header.id, kept.attempts.backout_count);
        if count > 0 {
            notes.push(format!(
                "message \"{id}\" had failed {count} times before; in the case it is new"
            ));
        }
    }
    if unit.not_kept > 0 {
        notes.push(format!(
            "{} more messages, puts or state keys were not kept",
            unit.not_kept
        ));
    }
    if unit.messages.is_empty() {
        notes.push("the handler had no message in hand".to_owned());
    }
    if unit.listed_keys {
        notes.push("it listed the keys of its state; the case has those that it read".to_owned());
    }
    if unit.browsed {
        notes.push("it browsed a queue or asked for a depth; the case has none of it".to_owned());
    }
    notes
}
