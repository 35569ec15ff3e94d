//! A message as an answer shows it: as headers around its body, or as JSON.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use oncue_core::message::{DeadLetter, Header, Message};
use oncue_core::names::QueueName;
use oncue_core::quantity::format_millis;
use oncue_core::time::Timestamp;
use oncue_core::trace;
use oncue_core::unit_of_work::{LeaseToken, Wait};
use oncue_manager::handle::MessageState;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::cloud_event::SPEC_VERSION;
use super::{NON_PERSISTENT, PERSISTENT, header, lease, text};

/// A lifetime with no end, as a putter's `never` is kept.
pub(crate) const NO_END: Timestamp = Timestamp(u64::MAX);

/// What stands around a message: where it is, and what is known of it there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    /// Its queue.
    pub(crate) queue: &'a QueueName,
    /// Whether it may be taken. Not said of a message that was just got.
    pub(crate) state: Option<MessageState>,
    /// The lease under which it was got.
    pub(crate) lease: Option<(LeaseToken, Timestamp)>,
}

/// A message. Times are milliseconds since the Unix epoch.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = Message)]
pub(crate) struct MessageJson {
    /// Its identity: 24 hexadecimal digits.
    id: String,
    /// The queue it is in.
    queue: String,
    /// `ready`, `in-unit`, `leased`, `delayed`, `retrying`, `deferred`, `group-held` or `parked`.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
    /// When the state ends: of a lease, a delay, a retry or a deferral.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<u64>,
    /// Ties a reply to its request.
    #[serde(skip_serializing_if = "Option::is_none")]
    correlation_id: Option<String>,
    /// The queue where a reply is wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    reply_to: Option<String>,
    /// Members of a group are never handled two at once, and keep their order.
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    /// The putter's own number within the group.
    #[serde(skip_serializing_if = "Option::is_none")]
    group_sequence: Option<u32>,
    /// 0 to 9; higher is got first.
    priority: u8,
    /// `persistent` or `non-persistent`.
    persistence: &'static str,
    /// The media type of the body.
    #[serde(skip_serializing_if = "Option::is_none")]
    content_type: Option<String>,
    /// Free names and texts; a name given several times has a list of texts.
    #[schema(value_type = std::collections::BTreeMap<String, PropertySchema>)]
    properties: Map<String, Value>,
    /// When it was put.
    put_time: u64,
    /// When it will be removed unread.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<u64>,
    /// Failed attempts charged to it.
    backout_count: u32,
    /// Unclean ends of the host while it was in hand.
    interrupted_count: u32,
    /// Handlers between it and an outside putter.
    hop_count: u8,
    /// Who put it: `process/NAME` for a handler.
    #[serde(skip_serializing_if = "Option::is_none")]
    put_by: Option<String>,
    /// Length of the body in bytes.
    size: u64,
    /// Why it is in a backout or dead-letter queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    dead_letter: Option<DeadLetterJson>,
    /// The lease under which it was got.
    #[serde(skip_serializing_if = "Option::is_none")]
    lease: Option<LeaseJson>,
    /// The body, if it is UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    /// The body in base64, if it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    body_base64: Option<String>,
    /// True when the body was left out, because it or the bodies of the list together are longer
    /// than 16 MiB: `GET /v1/queues/{queue}/messages/{id}` has it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    body_omitted: bool,
}

/// The values of one property.
#[derive(ToSchema)]
#[schema(as = Property)]
#[serde(untagged)]
#[expect(
    dead_code,
    reason = "only describes; the values are made as serde_json's"
)]
pub(crate) enum PropertySchema {
    One(String),
    Several(Vec<String>),
}

/// A lease: the message comes back when it ends.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = Lease)]
pub(crate) struct LeaseJson {
    /// What it is settled by, at `/v1/leases/{token}`.
    token: String,
    /// When it ends.
    until: u64,
}

/// Why a message was moved to a backout or dead-letter queue.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = DeadLetter)]
pub(crate) struct DeadLetterJson {
    /// `backout`, `rejected`, `consumer`, `deferred` or `hop-limit`.
    reason: &'static str,
    /// How the last attempt ended, for `backout`.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<&'static str>,
    /// The queue it was taken from, where a redrive puts it back.
    queue: String,
    /// The process definition that failed on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<String>,
    /// The digest of the component that failed on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    /// Charged attempts.
    attempts: u32,
    /// The handler's own words, or the trap's.
    detail: String,
    /// The backtrace of a trap.
    #[serde(skip_serializing_if = "Option::is_none")]
    backtrace: Option<String>,
    /// The end of what the task wrote to its log.
    #[serde(skip_serializing_if = "Option::is_none")]
    log_tail: Option<String>,
    /// The task that failed last.
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<String>,
    /// When it was moved.
    time: u64,
}

impl From<&DeadLetter> for DeadLetterJson {
    fn from(record: &DeadLetter) -> Self {
        let (reason, outcome) = record.reason.words();
        Self {
            reason,
            outcome,
            queue: record.queue.to_string(),
            process: record.process.clone(),
            digest: record.digest.clone(),
            attempts: record.attempts,
            detail: record.detail.clone(),
            backtrace: record.backtrace.clone(),
            log_tail: record.log_tail.clone(),
            task: record.task.clone(),
            time: record.time.0,
        }
    }
}

/// The state's word and its end.
pub(crate) fn state_words(state: MessageState) -> (&'static str, Option<u64>) {
    match state {
        MessageState::Ready => ("ready", None),
        MessageState::InUnit => ("in-unit", None),
        MessageState::Leased(until) => ("leased", Some(until.0)),
        MessageState::Waiting(Wait::Delay, until) => ("delayed", Some(until.0)),
        MessageState::Waiting(Wait::Retry, until) => ("retrying", Some(until.0)),
        MessageState::Waiting(Wait::Defer, until) => ("deferred", Some(until.0)),
        MessageState::GroupHeld => ("group-held", None),
        MessageState::Parked => ("parked", None),
    }
}

fn persistence(header: &Header) -> &'static str {
    if header.persistent {
        PERSISTENT
    } else {
        NON_PERSISTENT
    }
}

/// Properties as an object: a name that stands for several values has a list of them.
pub(super) fn properties(header: &Header) -> Map<String, Value> {
    let mut map: Map<String, Value> = Map::new();
    for (name, value) in &header.properties {
        let value = Value::from(value.as_str());
        match map.get_mut(name) {
            None => {
                map.insert(name.clone(), value);
            }
            Some(Value::Array(values)) => values.push(value),
            Some(first) => *first = Value::Array(vec![first.take(), value]),
        }
    }
    map
}

impl MessageJson {
    /// The message without its body.
    pub(crate) fn new(message: &Message, place: Place<'_>) -> Self {
        let Message {
            header,
            attempts,
            dead_letter,
            ..
        } = message;
        let (state, until) = place.state.map(state_words).unzip();
        Self {
            id: header.id.to_string(),
            queue: place.queue.to_string(),
            state,
            until: until.flatten(),
            correlation_id: header.correlation_id.clone(),
            reply_to: header.reply_to.as_ref().map(ToString::to_string),
            group: header.group.clone(),
            group_sequence: header.group_sequence,
            priority: header.priority,
            persistence: persistence(header),
            content_type: header.content_type.clone(),
            properties: properties(header),
            put_time: header.put_time.0,
            expires: header.expires.filter(|end| *end != NO_END).map(|end| end.0),
            backout_count: attempts.backout_count,
            interrupted_count: attempts.interrupted_count,
            hop_count: header.hop_count,
            put_by: header.put_by.clone(),
            size: header.size,
            dead_letter: dead_letter.as_deref().map(DeadLetterJson::from),
            lease: place.lease.map(|(token, until)| LeaseJson {
                token: lease::write(token),
                until: until.0,
            }),
            body: None,
            body_base64: None,
            body_omitted: false,
        }
    }

    /// Adds the body, as text if it is one.
    pub(crate) fn with_body(mut self, body: &[u8]) -> Self {
        match std::str::from_utf8(body) {
            Ok(text) => self.body = Some(text.to_owned()),
            Err(_) => self.body_base64 = Some(STANDARD.encode(body)),
        }
        self
    }

    /// Says that the body was left out of a list.
    pub(crate) fn without_body(mut self) -> Self {
        self.body_omitted = true;
        self
    }
}

/// The message's fields as headers of an answer whose body is the message's body.
pub(crate) fn headers(message: &Message, place: Place<'_>) -> HeaderMap {
    let Message {
        header,
        attempts,
        dead_letter,
        ..
    } = message;
    let mut map = HeaderMap::new();
    let mut add = |name: &'static str, value: Option<HeaderValue>| {
        if let Some(value) = value {
            map.insert(HeaderName::from_static(name), value);
        }
    };
    let text = |value: &Option<String>| value.as_deref().map(text::encode);
    let (state, until) = place.state.map(state_words).unzip();
    add(header::ID, Some(text::encode(&header.id.to_string())));
    add(header::QUEUE, Some(text::encode(place.queue.as_str())));
    add(header::STATE, state.map(HeaderValue::from_static));
    add(header::STATE_UNTIL, until.flatten().map(HeaderValue::from));
    add("oncue-correlation-id", text(&header.correlation_id));
    add(
        "oncue-reply-to",
        header
            .reply_to
            .as_ref()
            .map(|queue| text::encode(queue.as_str())),
    );
    add("oncue-group", text(&header.group));
    add(
        "oncue-group-sequence",
        header.group_sequence.map(HeaderValue::from),
    );
    add("oncue-priority", Some(u16::from(header.priority).into()));
    add(
        "oncue-persistence",
        Some(HeaderValue::from_static(persistence(header))),
    );
    add("oncue-expiry", expiry(header));
    add("content-type", text(&header.content_type));
    add(header::PUT_TIME, Some(header.put_time.0.into()));
    add(header::BACKOUT_COUNT, Some(attempts.backout_count.into()));
    add(header::HOP_COUNT, Some(u16::from(header.hop_count).into()));
    add(header::PUT_BY, text(&header.put_by));
    if let Some((token, until)) = place.lease {
        add(header::LEASE, Some(text::encode(&lease::write(token))));
        add(header::LEASE_UNTIL, Some(until.0.into()));
    }
    if let Some(record) = dead_letter {
        let (reason, outcome) = record.reason.words();
        let reason = HeaderValue::from_static(outcome.unwrap_or(reason));
        add(header::DEAD_LETTER_REASON, Some(reason));
        add(
            header::DEAD_LETTER_QUEUE,
            Some(text::encode(record.queue.as_str())),
        );
    }
    add_properties(&mut map, header);
    map
}

/// The lifetime from the put on, so that a message put again with its headers lives as long.
fn expiry(header: &Header) -> Option<HeaderValue> {
    let end = header.expires?;
    if end == NO_END {
        return Some(HeaderValue::from_static("never"));
    }
    let life = format_millis(end.since(header.put_time));
    Some(text::encode(&life))
}

fn add_properties(map: &mut HeaderMap, header: &Header) {
    let is_event = header
        .properties
        .iter()
        .any(|(name, _)| name == SPEC_VERSION);
    for (name, value) in &header.properties {
        let attribute = name.strip_prefix(header::EVENT_PREFIX).filter(|_| is_event);
        let name = match attribute {
            // As it came, and as every program that traces reads it.
            None if name == trace::PARENT || name == trace::STATE => name.clone(),
            Some(attribute) => format!("{}{}", header::EVENT_PREFIX, text::encode_name(attribute)),
            None => format!("{}{}", header::PROPERTY_PREFIX, text::encode_name(name)),
        };
        // A name past the bound of the header library cannot be sent; the JSON form has it.
        if let Ok(name) = HeaderName::try_from(name) {
            map.append(name, text::encode(value));
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use oncue_core::message::{Attempts, Body, MessageId, Sequence};

    use super::super::put::from_headers;
    use super::*;

    fn message() -> Message {
        let header = Header {
            id: MessageId {
                origin: 1,
                sequence: Sequence(2),
            },
            correlation_id: Some("c 1%".to_owned()),
            reply_to: Some(QueueName::new("replies").expect("a name")),
            group: Some("Größe".to_owned()),
            group_sequence: Some(7),
            priority: 3,
            persistent: false,
            content_type: Some("text/plain".to_owned()),
            properties: [("b", "1"), ("A", "2"), ("b", "3")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .to_vec(),
            put_time: Timestamp(1_000),
            expires: Some(Timestamp(61_000)),
            hop_count: 1,
            put_by: Some("process/p".to_owned()),
            size: 2,
        };
        Message {
            header,
            attempts: Attempts {
                backout_count: 4,
                ..Attempts::default()
            },
            body: Body::Whole(Bytes::from_static(b"hi")),
            dead_letter: None,
        }
    }

    fn place(queue: &QueueName) -> Place<'_> {
        Place {
            queue,
            state: None,
            lease: Some((LeaseToken(66), Timestamp(9_000))),
        }
    }

    #[test]
    fn headers_of_an_answer_make_the_same_put_again() {
        let queue = QueueName::new("orders").expect("a name");
        let message = message();
        let mut answered = headers(&message, place(&queue));
        assert_eq!(answered[header::LEASE], format!("{:032x}", 66));
        assert_eq!(answered[header::LEASE_UNTIL], "9000");
        assert_eq!(answered[header::PUT_TIME], "1000");
        assert_eq!(answered[header::BACKOUT_COUNT], "4");
        for name in header::ANSWER_ONLY.iter().chain([&header::ID]) {
            answered.remove(*name);
        }
        let options = from_headers(&answered).expect("no faults");
        assert_eq!(options.correlation_id, message.header.correlation_id);
        assert_eq!(options.reply_to, message.header.reply_to);
        assert_eq!(options.group, message.header.group);
        assert_eq!(options.group_sequence, Some(7));
        assert_eq!(options.priority, Some(3));
        assert_eq!(options.persistent, Some(false));
        assert_eq!(options.expiry, Some(60_000));
        assert_eq!(options.content_type, message.header.content_type);
        let mut properties = options.properties;
        let mut wanted = message.header.properties;
        properties.sort();
        wanted.sort();
        assert_eq!(properties, wanted);
    }

    #[test]
    fn json_has_the_same_names() {
        let queue = QueueName::new("orders").expect("a name");
        let json = MessageJson::new(&message(), place(&queue)).with_body(b"hi");
        let json = serde_json::to_value(json).expect("serialises");
        assert_eq!(json["id"], "000000010000000000000002");
        assert_eq!(json["persistence"], "non-persistent");
        assert_eq!(
            json["properties"],
            serde_json::json!({"b": ["1", "3"], "A": "2"})
        );
        assert_eq!(json["body"], "hi");
        assert_eq!(json["lease"]["until"], 9_000);
        assert_eq!(json["expires"], 61_000);
        assert_eq!(json.get("body-base64"), None);
        let json = MessageJson::new(&message(), place(&queue)).with_body(b"\xff\x00");
        assert_eq!(
            serde_json::to_value(json).expect("serialises")["body-base64"],
            "/wA="
        );
    }

    #[test]
    fn an_event_is_written_as_one() {
        let queue = QueueName::new("orders").expect("a name");
        let mut message = message();
        let property = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        message.header.properties = vec![property("ce-id", "1"), property("x", "y")];
        let plain = headers(&message, place(&queue));
        assert_eq!(plain["oncue-property-ce-id"], "1");
        message
            .header
            .properties
            .push(property(SPEC_VERSION, "1.0"));
        let event = headers(&message, place(&queue));
        assert_eq!(event["ce-id"], "1");
        assert_eq!(event["ce-specversion"], "1.0");
        assert_eq!(event["oncue-property-x"], "y");
    }
}
