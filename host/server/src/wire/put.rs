//! What a putter says of a message, from headers or from JSON, into [`PutOptions`].
//!
//! The fields bear the same names in both; a header's name is the field's with `oncue-` before it,
//! except for the two that HTTP knows itself. What only an answer carries is refused in a put.

use std::str::FromStr;

use axum::http::HeaderMap;
use oncue_core::definition::{Fault, Raw, nearest};
use oncue_core::message::MAX_PRIORITY;
use oncue_core::names::QueueName;
use oncue_core::time::Millis;
use oncue_core::trace;
use oncue_manager::tasks::port::PutOptions;

use super::fields::{Faults, integer, join, millis, millis_or_never, shown, text};
use super::text::decode;
use super::{NON_PERSISTENT, PERSISTENT, cloud_event, header};

/// Fields of a put, by their names in JSON.
pub(crate) const FIELDS: [&str; 10] = [
    "correlation-id",
    "reply-to",
    "group",
    "group-sequence",
    "priority",
    "persistence",
    "expiry",
    "delay",
    "idempotency-key",
    "content-type",
];

/// `expiry = "never"` in a put: it wins over the queue's default-expiry.
const NEVER: Millis = Millis::MAX;

/// Sets one field.
///
/// # Errors
/// The fact and the cure, without the field's name.
pub(crate) fn set(options: &mut PutOptions, field: &str, raw: &Raw) -> Result<(), String> {
    match field {
        "correlation-id" => options.correlation_id = Some(text(raw)?.to_owned()),
        "reply-to" => options.reply_to = Some(queue_name(raw)?),
        "group" => options.group = Some(text(raw)?.to_owned()),
        "group-sequence" => {
            options.group_sequence = Some(integer(raw, 0, u64::from(u32::MAX))?);
        }
        "priority" => options.priority = Some(integer(raw, 0, u64::from(MAX_PRIORITY))?),
        "persistence" => options.persistent = Some(persistence(raw)?),
        "expiry" => options.expiry = Some(millis_or_never(raw)?.unwrap_or(NEVER)),
        "delay" => options.delay = Some(millis(raw)?),
        "idempotency-key" => options.idempotency_key = Some(text(raw)?.to_owned()),
        "content-type" => options.content_type = Some(text(raw)?.to_owned()),
        _ => return Err("is not a field of a message; remove it".to_owned()),
    }
    Ok(())
}

/// Reads a queue's name.
pub(crate) fn queue_name(raw: &Raw) -> Result<QueueName, String> {
    let name = text(raw)?;
    QueueName::from_str(name).map_err(|error| format!("is {}, which {}", shown(raw), error.fact()))
}

fn persistence(raw: &Raw) -> Result<bool, String> {
    match raw {
        Raw::Text(word) if word == PERSISTENT => Ok(true),
        Raw::Text(word) if word == NON_PERSISTENT => Ok(false),
        _ => Err(format!(
            "is {}; use \"{PERSISTENT}\" or \"{NON_PERSISTENT}\"",
            shown(raw)
        )),
    }
}

/// Reads properties from JSON: an object of texts; a name that stands for several has a list.
pub(crate) fn set_properties(options: &mut PutOptions, raw: &Raw, path: &str, faults: &mut Faults) {
    let Raw::Table(entries) = raw else {
        faults.add(path, format!("is {}; use an object of texts", shown(raw)));
        return;
    };
    for (name, value) in entries {
        let values = match value {
            Raw::List(values) => values.as_slice(),
            one => std::slice::from_ref(one),
        };
        for value in values {
            match text(value) {
                Ok(value) => options.properties.push((name.clone(), value.to_owned())),
                Err(message) => faults.add(&join(path, name), message),
            }
        }
    }
}

/// Reads the headers of a put. Headers that do not start with `oncue-` or `ce-` and are not known
/// by name belong to HTTP and are passed over.
///
/// # Errors
/// All faults at once, each under the header's name.
pub(crate) fn from_headers(headers: &HeaderMap) -> Result<PutOptions, Vec<Fault>> {
    let mut options = PutOptions::default();
    let mut faults = Faults::default();
    for name in headers.keys() {
        let values = headers.get_all(name);
        let name = name.as_str();
        if let Some(property) = name.strip_prefix(header::PROPERTY_PREFIX) {
            let property = faults.keep(name, decode(property.as_bytes()));
            for value in values {
                let value = faults.keep(name, decode(value.as_bytes()));
                options.properties.extend(property.clone().zip(value));
            }
            continue;
        }
        if name == trace::PARENT || name == trace::STATE {
            // Only carried: the manager drops what it cannot understand.
            let texts: Vec<&str> = values.iter().filter_map(|it| it.to_str().ok()).collect();
            let given = (name.to_owned(), texts.join(","));
            options.properties.push(given);
            continue;
        }
        let Some(field) = field_of(name, &mut faults) else {
            continue;
        };
        let mut values = values.iter();
        let first = values.next().map(|value| decode(value.as_bytes()));
        if values.next().is_some() {
            faults.add(name, "is given twice; remove one");
        } else if let Some(value) = first.and_then(|value| faults.keep(name, value)) {
            let read = set(&mut options, field, &Raw::Text(value));
            faults.keep(name, read);
        }
    }
    cloud_event::from_headers(headers, &mut options, &mut faults);
    faults.finish(options)
}

/// The field that a header stands for. Notes a header of ours that stands for none.
fn field_of(name: &str, faults: &mut Faults) -> Option<&'static str> {
    let written = match name {
        "idempotency-key" | "content-type" => name,
        header::REQUEST_ID => return None,
        _ => name.strip_prefix(header::PREFIX)?,
    };
    let known = FIELDS.iter().find(|field| **field == written).copied();
    if known.is_none_or(|field| header::of(field) != name) {
        faults.add(name, unknown_header(name));
        return None;
    }
    known
}

fn unknown_header(name: &str) -> String {
    if name == header::ID {
        let cure = "leave it out, and make a repeat harmless by idempotency-key";
        return format!("is given by the queue manager; {cure}");
    }
    if header::ANSWER_ONLY.contains(&name) {
        return "is only in answers; leave it out".to_owned();
    }
    let names: Vec<String> = FIELDS.iter().map(|field| header::of(field)).collect();
    let bare = name
        .strip_prefix(header::PREFIX)
        .filter(|bare| names.iter().any(|n| n == bare));
    match bare.or_else(|| nearest(name, names.iter().map(String::as_str))) {
        Some(meant) => format!("is not a header of a put; did you mean \"{meant}\"?"),
        None => format!("is not a header of a put; use {}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    fn headers(lines: &[(&str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in lines {
            let name = HeaderName::from_bytes(name.as_bytes()).expect("a header name");
            map.append(
                name,
                HeaderValue::from_bytes(value.as_bytes()).expect("a value"),
            );
        }
        map
    }

    #[test]
    fn every_field_is_read_from_its_header() {
        let options = from_headers(&headers(&[
            ("oncue-correlation-id", "c 1%25"),
            ("oncue-reply-to", "replies"),
            ("oncue-group", "g"),
            ("oncue-group-sequence", "7"),
            ("oncue-priority", "9"),
            ("oncue-persistence", "non-persistent"),
            ("oncue-expiry", "10m"),
            ("oncue-delay", "5s"),
            ("idempotency-key", "k"),
            ("content-type", "text/plain"),
            ("oncue-property-region", "eu"),
            ("Oncue-Property-%52ow", "Größe"),
            ("oncue-property-region", "us"),
            ("oncue-request-id", "r-1"),
            ("user-agent", "curl"),
        ]))
        .expect("no faults");
        assert_eq!(options.correlation_id.as_deref(), Some("c 1%"));
        assert_eq!(
            options.reply_to.as_ref().map(QueueName::as_str),
            Some("replies")
        );
        assert_eq!(options.group.as_deref(), Some("g"));
        assert_eq!(options.group_sequence, Some(7));
        assert_eq!(options.priority, Some(9));
        assert_eq!(options.persistent, Some(false));
        assert_eq!(options.expiry, Some(600_000));
        assert_eq!(options.delay, Some(5_000));
        assert_eq!(options.idempotency_key.as_deref(), Some("k"));
        assert_eq!(options.content_type.as_deref(), Some("text/plain"));
        let mut properties = options.properties;
        properties.sort();
        let wanted = [("Row", "Größe"), ("region", "eu"), ("region", "us")];
        assert_eq!(
            properties,
            wanted.map(|(n, v)| (n.to_owned(), v.to_owned()))
        );
    }

    #[test]
    fn all_faults_of_the_headers_are_listed() {
        let faults = from_headers(&headers(&[
            ("oncue-priority", "12"),
            ("oncue-prority", "1"),
            ("oncue-expiry", "10"),
            ("oncue-id", "00c0ffee0000000000000042"),
            ("oncue-put-time", "1"),
            ("oncue-reply-to", "a b"),
            ("oncue-group", "a"),
            ("oncue-group", "b"),
            ("oncue-idempotency-key", "k"),
        ]))
        .expect_err("faults");
        let mut texts: Vec<String> = faults.iter().map(ToString::to_string).collect();
        texts.sort();
        let wanted = [
            "\"oncue-expiry\" is \"10\", which has no unit",
            "\"oncue-group\" is given twice",
            "\"oncue-id\" is given by the queue manager",
            "\"oncue-idempotency-key\" is not a header of a put; did you mean \"idempotency-key\"?",
            "\"oncue-priority\" is \"12\"; use a whole number from 0 to 9",
            "\"oncue-prority\" is not a header of a put; did you mean \"oncue-priority\"?",
            "\"oncue-put-time\" is only in answers",
            "\"oncue-reply-to\" is \"a b\", which has ' ' at position 2",
        ];
        assert_eq!(texts.len(), wanted.len(), "{texts:#?}");
        for (text, wanted) in texts.iter().zip(wanted) {
            assert!(text.starts_with(wanted), "{text}, wanted {wanted}");
        }
    }

    #[test]
    fn a_trace_context_is_a_property() {
        let options = from_headers(&headers(&[
            ("traceparent", "00-x"),
            ("tracestate", "a=1"),
            ("tracestate", "b=2"),
        ]))
        .expect("no faults");
        let mut properties = options.properties;
        properties.sort();
        let wanted = [("traceparent", "00-x"), ("tracestate", "a=1,b=2")];
        assert_eq!(
            properties,
            wanted.map(|(n, v)| (n.to_owned(), v.to_owned()))
        );
    }

    #[test]
    fn never_wins_over_the_default_expiry() {
        let options = from_headers(&headers(&[("oncue-expiry", "never")])).expect("no faults");
        assert_eq!(options.expiry, Some(Millis::MAX));
    }
}
