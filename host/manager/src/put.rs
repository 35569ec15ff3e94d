//! From what a putter said to a message: defaults of the queue, bounds of the header, every fault
//! at once.
//!
//! Used alike by applications and by handlers; who may put where is checked before.

use oncue_core::code::Code;
use oncue_core::definition::{Fault, QueueAttributes};
use oncue_core::message::{Header, MAX_PRIORITY, MessageId};
use oncue_core::time::Timestamp;
use oncue_core::unit_of_work::Put;

use crate::error::ApiError;
use crate::tasks::port::{PutOptions, PutRequest};
use crate::tasks::puts::key_for;

/// Longest correlation id, group, content type or idempotency key, in bytes.
pub const MAX_TEXT: usize = 256;

/// Most properties of one message.
pub const MAX_PROPERTIES: usize = 256;

/// Bytes of all property names and values of one message.
pub const MAX_PROPERTY_BYTES: usize = 64 << 10;

/// Longest delay, in milliseconds: a year. A later one is a calendar's work, not a queue's.
pub const MAX_DELAY: u64 = 366 * 24 * 3_600_000;

/// Builds the put of a message. A trace context in its properties that cannot be understood is
/// dropped: what only watches a message never makes its put fail.
///
/// # Errors
/// All faults of the options at once, code `invalid-message`.
pub fn build(
    mut request: PutRequest,
    attributes: &QueueAttributes,
    now: Timestamp,
    id: MessageId,
    put_by: Option<String>,
) -> Result<Put, ApiError> {
    crate::traces::clean(&mut request.options.properties);
    let faults = faults(&request.options);
    if !faults.is_empty() {
        return Err(ApiError::with_faults(
            Code::InvalidMessage,
            "the message is not valid",
            faults,
        ));
    }
    let key = key_for(&request, attributes.idempotency_window, now);
    let PutRequest {
        queue,
        body,
        options,
    } = request;
    let expiry = options.expiry.or(attributes.default_expiry);
    let header = Header {
        id,
        correlation_id: options.correlation_id,
        reply_to: options.reply_to,
        group: options.group,
        group_sequence: options.group_sequence,
        priority: options.priority.unwrap_or(attributes.default_priority),
        persistent: options.persistent.unwrap_or(attributes.default_persistent),
        content_type: options.content_type,
        properties: options.properties,
        put_time: now,
        expires: expiry.map(|millis| now.after(millis)),
        hop_count: 0,
        put_by,
        size: body.len() as u64,
    };
    let due = options
        .delay
        .filter(|delay| *delay > 0)
        .map(|delay| now.after(delay));
    Ok(Put {
        queue,
        header,
        body,
        due,
        dead_letter: None,
        key,
        max_depth: None,
    })
}

/// Everything that is wrong with what a putter said of a message, whatever the queue.
#[must_use]
pub fn faults(options: &PutOptions) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut fault = |name: &str, message: String| {
        faults.push(Fault {
            path: vec![name.to_owned()],
            message,
        });
    };
    let texts = [
        ("correlation-id", &options.correlation_id),
        ("group", &options.group),
        ("content-type", &options.content_type),
        ("idempotency-key", &options.idempotency_key),
    ];
    for (name, text) in texts {
        let Some(text) = text else { continue };
        if text.is_empty() || text.len() > MAX_TEXT {
            fault(
                name,
                format!("has {} bytes; 1 to {MAX_TEXT} are allowed", text.len()),
            );
        }
    }
    if let Some(priority) = options.priority.filter(|priority| *priority > MAX_PRIORITY) {
        fault(
            "priority",
            format!("is {priority}; 0 to {MAX_PRIORITY} are allowed"),
        );
    }
    if let Some(delay) = options.delay.filter(|delay| *delay > MAX_DELAY) {
        fault(
            "delay",
            format!("is {delay} ms; at most {MAX_DELAY} (a year) is allowed"),
        );
    }
    // A trace context is bounded by itself, and may have been added here.
    let own = |(name, _): &&(String, String)| !crate::traces::is_ours(name);
    let count = options.properties.iter().filter(own).count();
    if count > MAX_PROPERTIES {
        fault(
            "properties",
            format!("there are {count}; at most {MAX_PROPERTIES} are allowed"),
        );
    }
    let bytes: usize = options
        .properties
        .iter()
        .filter(own)
        .map(|(n, v)| n.len() + v.len())
        .sum();
    if bytes > MAX_PROPERTY_BYTES {
        fault(
            "properties",
            format!("take {bytes} bytes; at most {MAX_PROPERTY_BYTES} are allowed"),
        );
    }
    if options.properties.iter().any(|(name, _)| name.is_empty()) {
        fault(
            "properties",
            "one has an empty name; give it one".to_owned(),
        );
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_context_counts_among_no_properties() {
        let named = |number: usize| (format!("p{number}"), String::new());
        let mut options = PutOptions {
            properties: (0..MAX_PROPERTIES).map(named).collect(),
            ..PutOptions::default()
        };
        let context = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let context = ("traceparent".to_owned(), context.to_owned());
        options.properties.push(context);
        assert_eq!(faults(&options).len(), 0);
        options.properties.push(named(MAX_PROPERTIES));
        assert_eq!(faults(&options).len(), 1);
    }

    #[test]
    fn every_fault_of_the_options_is_named_at_once() {
        let options = PutOptions {
            correlation_id: Some("x".repeat(300)),
            group: Some(String::new()),
            priority: Some(10),
            delay: Some(MAX_DELAY + 1),
            properties: vec![(String::new(), "y".repeat(MAX_PROPERTY_BYTES + 1))],
            ..PutOptions::default()
        };
        let named: Vec<String> = faults(&options).into_iter().flat_map(|f| f.path).collect();
        assert_eq!(
            named,
            [
                "correlation-id",
                "group",
                "priority",
                "delay",
                "properties",
                "properties"
            ]
        );
    }
}
