//! The names of headers, in one list.

/// Before every field of a message that HTTP does not know itself.
pub(crate) const PREFIX: &str = "oncue-";
/// Before the name of a property.
pub(crate) const PROPERTY_PREFIX: &str = "oncue-property-";
/// Before an attribute of a CloudEvent.
pub(crate) const EVENT_PREFIX: &str = "ce-";
/// Names a request in logs and problems; taken from the request if it has one.
pub(crate) const REQUEST_ID: &str = "oncue-request-id";

/// The message's identity.
pub(crate) const ID: &str = "oncue-id";
/// How often a handler or consumer failed on it.
pub(crate) const BACKOUT_COUNT: &str = "oncue-backout-count";
/// When it was put, in milliseconds since the Unix epoch.
pub(crate) const PUT_TIME: &str = "oncue-put-time";
/// The token by which its lease is settled.
pub(crate) const LEASE: &str = "oncue-lease";
/// When the lease ends, in milliseconds since the Unix epoch.
pub(crate) const LEASE_UNTIL: &str = "oncue-lease-until";
/// The queue it was got from.
pub(crate) const QUEUE: &str = "oncue-queue";
/// Handlers between it and an outside putter.
pub(crate) const HOP_COUNT: &str = "oncue-hop-count";
/// Who put it.
pub(crate) const PUT_BY: &str = "oncue-put-by";
/// Whether it may be taken, and if not, why.
pub(crate) const STATE: &str = "oncue-state";
/// When that state ends, in milliseconds since the Unix epoch.
pub(crate) const STATE_UNTIL: &str = "oncue-state-until";
/// Why it was moved to a backout or dead-letter queue.
pub(crate) const DEAD_LETTER_REASON: &str = "oncue-dead-letter-reason";
/// Where it was moved from.
pub(crate) const DEAD_LETTER_QUEUE: &str = "oncue-dead-letter-queue";

/// Headers that only an answer carries.
pub(crate) const ANSWER_ONLY: [&str; 11] = [
    BACKOUT_COUNT,
    PUT_TIME,
    LEASE,
    LEASE_UNTIL,
    QUEUE,
    HOP_COUNT,
    PUT_BY,
    STATE,
    STATE_UNTIL,
    DEAD_LETTER_REASON,
    DEAD_LETTER_QUEUE,
];

/// The header of a field that a put may carry.
pub(crate) fn of(field: &str) -> String {
    match field {
        "idempotency-key" | "content-type" => field.to_owned(),
        _ => format!("{PREFIX}{field}"),
    }
}
