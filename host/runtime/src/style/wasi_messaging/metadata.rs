//! Metadata: a message's properties by their own names, and what the host knows beside them under
//! names that begin with `oncue-`, the same as in the HTTP interface.
//!
//! Of those, a component may set what ties a message to others and how it is to be delivered; the
//! rest is for reading and never becomes a property.

use oncue_core::message::Header;
use oncue_core::names::QueueName;
use oncue_manager::tasks::Delivered;
use oncue_manager::tasks::port::{PortError, PutOptions};

use super::super::sending::queue_name;

/// Names and values, in order.
pub(super) type Metadata = Vec<(String, String)>;

/// Begins the names that are the host's.
const OURS: &str = "oncue-";

// Those that a component may set.
const CORRELATION_ID: &str = "oncue-correlation-id";
const REPLY_TO: &str = "oncue-reply-to";
const GROUP: &str = "oncue-group";
const PRIORITY: &str = "oncue-priority";

// Those that are only told.
const ID: &str = "oncue-id";
const PUT_TIME: &str = "oncue-put-time";
const PUT_BY: &str = "oncue-put-by";
const BACKOUT_COUNT: &str = "oncue-backout-count";
const ATTEMPTS_LEFT: &str = "oncue-attempts-left";
const HOP_COUNT: &str = "oncue-hop-count";

/// What a pair takes of the host's memory beside its bytes: many empty ones are not free.
const PAIR_BYTES: usize = 64;

/// Bytes that the host keeps of a pair.
pub(super) fn bytes_of((name, value): &(String, String)) -> usize {
    name.len() + value.len() + PAIR_BYTES
}

/// All that is known of a received message.
pub(super) fn of(delivered: &Delivered) -> Metadata {
    let Header {
        id,
        correlation_id,
        reply_to,
        group,
        priority,
        properties,
        put_time,
        hop_count,
        put_by,
        ..
    } = &delivered.message.header;
    let always = [
        (ID, id.to_string()),
        (PRIORITY, priority.to_string()),
        (PUT_TIME, put_time.0.to_string()),
        (
            BACKOUT_COUNT,
            delivered.message.attempts.backout_count.to_string(),
        ),
        (ATTEMPTS_LEFT, delivered.attempts_left.to_string()),
        (HOP_COUNT, hop_count.to_string()),
    ];
    let sometimes = [
        (CORRELATION_ID, correlation_id.clone()),
        (REPLY_TO, reply_to.as_ref().map(ToString::to_string)),
        (GROUP, group.clone()),
        (PUT_BY, put_by.clone()),
    ];
    let sometimes = sometimes
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)));
    let ours = always.into_iter().chain(sometimes);
    let ours = ours.map(|(name, value)| (name.to_owned(), value));
    properties.iter().cloned().chain(ours).collect()
}

/// What a message that goes to `queue` says of itself. Where a reply to it is wanted is left out
/// when it goes there itself: a reply that was made of its request wants none.
///
/// # Errors
/// A value that cannot be.
pub(super) fn options(
    metadata: Metadata,
    content_type: Option<String>,
    queue: &QueueName,
) -> Result<PutOptions, PortError> {
    let mut options = PutOptions {
        content_type,
        ..PutOptions::default()
    };
    for (name, value) in metadata {
        match name.as_str() {
            CORRELATION_ID => options.correlation_id = Some(value),
            REPLY_TO => options.reply_to = Some(queue_name(&value)?),
            GROUP => options.group = Some(value),
            PRIORITY => {
                let priority = value.parse().map_err(|_| {
                    let shown: String = value.chars().take(MAX_SHOWN).collect();
                    PortError::Other(format!(
                        "metadata \"{PRIORITY}\" is {shown:?}; give a number from 0 to 9 \
                         [invalid-message]"
                    ))
                })?;
                options.priority = Some(priority);
            }
            ours if ours.starts_with(OURS) => {}
            _ => options.properties.push((name, value)),
        }
    }
    if options.reply_to.as_ref() == Some(queue) {
        options.reply_to = None;
    }
    Ok(options)
}

/// The most of a wrong value that is shown, in characters.
const MAX_SHOWN: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(pairs: &[(&str, &str)]) -> Metadata {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        pairs.iter().map(owned).collect()
    }

    fn check(metadata: &[(&str, &str)], wanted: &PutOptions) {
        let queue = QueueName::new("out").expect("a name");
        let found = options(pairs(metadata), None, &queue).expect("valid");
        assert_eq!(format!("{found:?}"), format!("{wanted:?}"));
    }

    #[test]
    fn what_is_the_hosts_never_becomes_a_property() {
        let properties = pairs(&[("colour", "red"), ("oncue", "no prefix")]);
        let wanted = PutOptions {
            properties,
            ..PutOptions::default()
        };
        check(
            &[
                ("colour", "red"),
                ("oncue-id", "7-1"),
                ("oncue-backout-count", "3"),
                ("oncue-anything", "else"),
                ("oncue", "no prefix"),
            ],
            &wanted,
        );
    }

    #[test]
    fn what_may_be_set_is_set() {
        let wanted = PutOptions {
            correlation_id: Some("c".to_owned()),
            reply_to: QueueName::new("back").ok(),
            group: Some("g".to_owned()),
            priority: Some(9),
            ..PutOptions::default()
        };
        check(
            &[
                ("oncue-correlation-id", "c"),
                ("oncue-reply-to", "back"),
                ("oncue-group", "g"),
                ("oncue-priority", "9"),
            ],
            &wanted,
        );
        // A reply made of its request.
        check(&[("oncue-reply-to", "out")], &PutOptions::default());
    }

    #[test]
    fn what_cannot_be_is_said() {
        let queue = QueueName::new("out").expect("a name");
        for (name, value, text) in [
            ("oncue-priority", "high", "is \"high\"; give a number"),
            ("oncue-reply-to", "a b", "[unknown-queue]"),
        ] {
            let error = options(pairs(&[(name, value)]), None, &queue).expect_err("refused");
            assert!(error.to_string().contains(text), "{error}");
        }
    }
}
