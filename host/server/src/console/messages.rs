//! Messages of a queue, looked at without taking them: a page at a time, and one in full.

use askama::Template;
use axum::extract::State;
use oncue_core::message::{DeadLetter, Message};
use oncue_core::names::QueueName;
use oncue_core::time::Timestamp;
use oncue_manager::handle::{Browsed, Handle};

use super::format;
use super::frame::Frame;
use super::page::{Page, PageError, page};
use super::params::{Params, address};
use super::queues::ago;
use super::viewer::Viewer;
use crate::app::App;
use crate::content::off_the_loop;
use crate::error::Problem;
use crate::extract::{IdPath, QueuePath};
use crate::wire::message::{NO_END, state_words};

/// Messages of one page.
const ROWS: usize = 50;

/// Messages that a search looks at.
const MAX_LOOKED_AT: usize = 10_000;

/// Messages that are read at a time while searching.
const STEP: usize = 1_000;

/// Bytes of a body that are shown.
const MAX_SHOWN: u64 = 64 << 10;

/// Bytes of a body that are shown in hexadecimal.
const MAX_HEX: usize = 8 << 10;

/// Bytes of a line in hexadecimal.
const HEX_LINE: usize = 16;

/// Bodies up to so many bytes are read whole, so that JSON can be set out.
const MAX_JSON: u64 = 256 << 10;

/// A message in a list.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) id: String,
    pub(super) state: &'static str,
    pub(super) tone: &'static str,
    pub(super) until: Option<String>,
    pub(super) is_parked: bool,
    pub(super) priority: u8,
    pub(super) size: String,
    pub(super) content_type: String,
    pub(super) put: String,
    pub(super) put_at: String,
    pub(super) backouts: u32,
    pub(super) about: String,
    pub(super) why: Option<Why>,
}

/// Why a message is a dead letter.
#[derive(Debug)]
pub(super) struct Why {
    pub(super) reason: String,
    pub(super) queue: String,
    pub(super) process: String,
    pub(super) attempts: u32,
    pub(super) detail: String,
    pub(super) backtrace: Option<String>,
    pub(super) log: Option<String>,
    pub(super) task: Option<String>,
    pub(super) digest: String,
    pub(super) time: String,
    pub(super) time_at: String,
}

impl Why {
    /// A dead-letter record.
    pub(super) fn of(record: &DeadLetter, now: Timestamp) -> Self {
        Self {
            reason: reason_of(record).to_owned(),
            queue: record.queue.to_string(),
            process: record.process.clone().unwrap_or_default(),
            attempts: record.attempts,
            detail: record.detail.clone(),
            backtrace: record.backtrace.clone(),
            log: record.log_tail.clone(),
            task: record.task.clone(),
            digest: format::digest(record.digest.as_deref().unwrap_or_default()),
            time: ago(record.time, now),
            time_at: format::moment(record.time),
        }
    }
}

/// The one word for why a message is a dead letter: of a backout, how the last attempt ended.
pub(super) fn reason_of(record: &DeadLetter) -> &'static str {
    let (reason, outcome) = record.reason.words();
    outcome.unwrap_or(reason)
}

impl Row {
    /// A message's row.
    pub(super) fn of(browsed: &Browsed, now: Timestamp) -> Self {
        let Message {
            header,
            attempts,
            dead_letter,
            ..
        } = &browsed.message;
        let (state, until) = state_words(browsed.state);
        let mut about = Vec::new();
        let mut add = |name: &str, text: Option<String>| {
            about.extend(text.map(|text| format!("{name} {}", format::brief(&text, 40))));
        };
        add("correlation", header.correlation_id.clone());
        add("group", header.group.clone());
        for (name, text) in header.properties.iter().take(3) {
            add(name, Some(text.clone()));
        }
        Self {
            id: header.id.to_string(),
            state,
            tone: tone_of(state),
            until: until.map(|until| format::duration(Timestamp(until).since(now))),
            is_parked: state == "parked",
            priority: header.priority,
            size: format::bytes(header.size),
            content_type: header.content_type.clone().unwrap_or_default(),
            put: ago(header.put_time, now),
            put_at: format::moment(header.put_time),
            backouts: attempts.backout_count,
            about: about.join(" · "),
            why: dead_letter.as_deref().map(|record| Why::of(record, now)),
        }
    }
}

fn tone_of(state: &str) -> &'static str {
    match state {
        "ready" => "calm",
        "parked" => "bad",
        "retrying" => "warn",
        _ => "live",
    }
}

#[derive(Template)]
#[template(path = "messages.html")]
struct MessagesPage {
    frame: Frame,
    queue: String,
    depth: u64,
    rows: Vec<Row>,
    find: String,
    looked_at: usize,
    only_ready: bool,
    next: Option<String>,
    first: Option<String>,
}

/// A page of messages.
pub(super) async fn browse(
    State(app): State<App>,
    queue: Result<QueuePath, Problem>,
    viewer: Viewer,
    params: Params,
) -> Page {
    let QueuePath(queue) = queue?;
    let view = app.handle.queue(queue.clone()).await?;
    let find = params.text("find").to_owned();
    let only_ready = params.is_on("ready");
    let cursor = params.get("cursor").map(str::to_owned);
    let (handle, name, wanted) = (app.handle.clone(), queue.clone(), find.clone());
    let from = cursor.clone();
    let found = off_the_loop(move || search(&handle, &name, from, only_ready, &wanted)).await??;
    let now = app.handle.now();
    let path = format!("/queues/{queue}/messages");
    let to = |cursor: &str| {
        let ready = if only_ready { "1" } else { "" };
        address(
            &path,
            &[("find", &find), ("ready", ready), ("cursor", cursor)],
        )
    };
    page(&MessagesPage {
        depth: view.depth,
        rows: found.rows.iter().map(|row| Row::of(row, now)).collect(),
        looked_at: found.looked_at,
        next: found.next.as_deref().map(&to),
        first: cursor.map(|_| to("")),
        frame: Frame::new(&app, "/queues", &params, &viewer).await?,
        queue: queue.to_string(),
        find,
        only_ready,
    })
}

/// What a look at messages found.
struct Found {
    rows: Vec<Browsed>,
    next: Option<String>,
    looked_at: usize,
}

/// The next messages that bear the text; any, where there is none.
fn search(
    handle: &Handle,
    queue: &QueueName,
    mut cursor: Option<String>,
    only_ready: bool,
    text: &str,
) -> Result<Found, oncue_manager::error::ApiError> {
    if text.is_empty() {
        let found = handle.browse(queue, cursor, ROWS, only_ready)?;
        return Ok(Found {
            looked_at: found.messages.len(),
            rows: found.messages,
            next: found.next,
        });
    }
    let text = text.to_lowercase();
    let mut found = Found {
        rows: Vec::new(),
        next: None,
        looked_at: 0,
    };
    while found.looked_at < MAX_LOOKED_AT && found.rows.len() < ROWS {
        let part = handle.browse(queue, cursor, STEP, only_ready)?;
        found.looked_at += part.messages.len();
        let bearing = part
            .messages
            .into_iter()
            .filter(|row| bears(&row.message, &text));
        found.rows.extend(bearing);
        cursor = part.next;
        if cursor.is_none() {
            break;
        }
    }
    found.next = cursor;
    Ok(found)
}

/// Whether a message bears the text, in lower case, in any of its headers.
fn bears(message: &Message, text: &str) -> bool {
    let header = &message.header;
    let has = |field: &str| field.to_lowercase().contains(text);
    let maybe = |field: &Option<String>| field.as_deref().is_some_and(has);
    header.id.to_string().contains(text)
        || maybe(&header.correlation_id)
        || maybe(&header.group)
        || maybe(&header.content_type)
        || maybe(&header.put_by)
        || header
            .properties
            .iter()
            .any(|(name, value)| has(name) || has(value))
        || message.dead_letter.as_ref().is_some_and(|record| {
            has(&record.detail) || has(record.queue.as_str()) || has(reason_of(record))
        })
}

/// A body as it is shown.
#[derive(Debug)]
pub(super) struct Body {
    /// `text`, `json` or `hex`.
    pub(super) kind: &'static str,
    pub(super) text: String,
    pub(super) size: String,
    /// What is not shown, in bytes.
    pub(super) cut: u64,
}

impl Body {
    /// A body, of which `bytes` is the beginning, in the form that is asked for: JSON or text where
    /// it is that, hexadecimal otherwise.
    pub(super) fn read(bytes: &[u8], size: u64, asked: &str) -> Self {
        let is_whole = bytes.len() as u64 == size;
        let shown = usize::try_from(MAX_SHOWN)
            .unwrap_or(usize::MAX)
            .min(bytes.len());
        let text = text_of(bytes.get(..shown).unwrap_or_default(), shown as u64 == size);
        let json = || {
            is_whole
                .then(|| std::str::from_utf8(bytes).ok().and_then(set_out))
                .flatten()
        };
        let (kind, text, shown) = match asked {
            "hex" => hex(bytes),
            "text" => match text {
                Some(text) => ("text", text.to_owned(), text.len()),
                None => (
                    "text",
                    String::from_utf8_lossy(&bytes[..shown]).into_owned(),
                    shown,
                ),
            },
            _ => match (json(), text) {
                (Some(json), _) => ("json", json, bytes.len()),
                (None, Some(text)) => ("text", text.to_owned(), text.len()),
                (None, None) => hex(bytes),
            },
        };
        Self {
            kind,
            text,
            size: format::bytes(size),
            cut: size.saturating_sub(shown as u64),
        }
    }
}

/// The text that bytes are; a character that the end cuts is left out.
fn text_of(bytes: &[u8], is_whole: bool) -> Option<&str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(error) if !is_whole && error.error_len().is_none() => {
            std::str::from_utf8(bytes.get(..error.valid_up_to())?).ok()
        }
        Err(_) => None,
    }
}

fn hex(bytes: &[u8]) -> (&'static str, String, usize) {
    let shown = bytes.get(..MAX_HEX.min(bytes.len())).unwrap_or_default();
    let lines = shown.chunks(HEX_LINE).enumerate().map(|(number, line)| {
        let digits: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        let plain = line.iter().map(|byte| match byte {
            0x20..=0x7e => char::from(*byte),
            _ => '·',
        });
        let plain: String = plain.collect();
        format!(
            "{:06x}  {:<47}  {plain}",
            number * HEX_LINE,
            digits.join(" ")
        )
    });
    ("hex", lines.collect::<Vec<_>>().join("\n"), shown.len())
}

/// JSON with a line for each member, in its own order and its own writing; nothing for what is not
/// an object or a list.
fn set_out(text: &str) -> Option<String> {
    let trimmed = text.trim();
    if !trimmed.starts_with(['{', '[']) {
        return None;
    }
    serde_json::from_str::<serde::de::IgnoredAny>(trimmed).ok()?;
    let mut out = String::with_capacity(trimmed.len() * 2);
    let (mut depth, mut is_text, mut is_escaped) = (0_usize, false, false);
    let mut rest = trimmed.chars().peekable();
    while let Some(c) = rest.next() {
        if is_text {
            out.push(c);
            is_text = is_escaped || c != '"';
            is_escaped = c == '\\' && !is_escaped;
            continue;
        }
        match c {
            '"' => {
                is_text = true;
                out.push(c);
            }
            '{' | '[' => {
                out.push(c);
                while rest.next_if(|c| c.is_ascii_whitespace()).is_some() {}
                if let Some(end) = rest.next_if(|c| matches!(c, '}' | ']')) {
                    out.push(end);
                } else {
                    depth += 1;
                    new_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                new_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c if c.is_ascii_whitespace() => {}
            c => out.push(c),
        }
    }
    Some(out)
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    // Nobody reads what is set in further.
    out.extend(std::iter::repeat_n("  ", depth.min(32)));
}

#[derive(Template)]
#[template(path = "message.html")]
struct MessagePage {
    frame: Frame,
    queue: String,
    row: Row,
    fields: Vec<(&'static str, String)>,
    properties: Vec<(String, String)>,
    body: Body,
}

/// One message.
pub(super) async fn show(
    State(app): State<App>,
    queue: Result<QueuePath, Problem>,
    id: Result<IdPath, Problem>,
    viewer: Viewer,
    params: Params,
) -> Page {
    let (QueuePath(queue), IdPath(id)) = (queue?, id?);
    let (handle, name) = (app.handle.clone(), queue.clone());
    let asked = params.text("as").to_owned();
    let read = move || -> Result<_, PageError> {
        let browsed = handle.message(&name, id)?;
        let body = &browsed.message.body;
        let size = body.len();
        let length = if size <= MAX_JSON { size } else { MAX_SHOWN };
        let bytes = handle.read_body(body, 0, length)?;
        let body = Body::read(&bytes, size, &asked);
        Ok((browsed, body))
    };
    let (browsed, body) = off_the_loop(read).await??;
    let now = app.handle.now();
    let row = Row::of(&browsed, now);
    page(&MessagePage {
        frame: Frame::new(&app, "/queues", &params, &viewer).await?,
        queue: queue.to_string(),
        fields: fields(&browsed.message, now),
        properties: browsed.message.header.properties.clone(),
        row,
        body,
    })
}

/// What was said of a message, and what happened to it.
fn fields(message: &Message, now: Timestamp) -> Vec<(&'static str, String)> {
    let header = &message.header;
    let mut fields = vec![
        ("Priority", header.priority.to_string()),
        (
            "Persistence",
            if header.persistent {
                "persistent"
            } else {
                "non-persistent"
            }
            .to_owned(),
        ),
        (
            "Put",
            format!(
                "{} UTC ({} ago)",
                format::moment(header.put_time),
                ago(header.put_time, now)
            ),
        ),
        ("Backout count", message.attempts.backout_count.to_string()),
    ];
    let mut add = |name, text: Option<String>| fields.extend(text.map(|text| (name, text)));
    add("Put by", header.put_by.clone());
    add("Content type", header.content_type.clone());
    add("Correlation id", header.correlation_id.clone());
    add(
        "Reply to",
        header.reply_to.as_ref().map(ToString::to_string),
    );
    add("Group", header.group.clone());
    add(
        "Group sequence",
        header.group_sequence.map(|number| number.to_string()),
    );
    let expires = header.expires.filter(|end| *end != NO_END);
    add("Expires", expires.map(format::moment));
    let interrupted = message.attempts.interrupted_count;
    add(
        "Interrupted count",
        (interrupted > 0).then(|| interrupted.to_string()),
    );
    add(
        "Hop count",
        (header.hop_count > 0).then(|| header.hop_count.to_string()),
    );
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], asked: &str, kind: &str, text: &str) {
        let body = Body::read(bytes, bytes.len() as u64, asked);
        assert_eq!((body.kind, body.text.as_str(), body.cut), (kind, text, 0));
    }

    #[test]
    fn a_body_is_shown_as_what_it_is() {
        check(
            br#"{"b":[1,2],"a":{}}"#,
            "",
            "json",
            "{\n  \"b\": [\n    1,\n    2\n  ],\n  \"a\": {}\n}",
        );
        check(
            br#"{"a":"x,\"{y"}"#,
            "json",
            "json",
            "{\n  \"a\": \"x,\\\"{y\"\n}",
        );
        check(br#"{"a":1}"#, "text", "text", r#"{"a":1}"#);
        check(b"{not json", "", "text", "{not json");
        check("wörter".as_bytes(), "", "text", "wörter");
        check(b"", "", "text", "");
        check(
            b"\xff\x00A",
            "",
            "hex",
            &format!("000000  {:<47}  ··A", "ff 00 41"),
        );
        check(b"A", "hex", "hex", &format!("000000  {:<47}  A", "41"));
        check(b"\xff", "text", "text", "\u{fffd}");
    }

    #[test]
    fn a_long_body_is_cut_between_characters() {
        let bytes = "ä".repeat(40_000).into_bytes();
        let body = Body::read(&bytes, 90_000, "");
        assert_eq!((body.kind, body.text.len()), ("text", 65_536));
        assert_eq!(body.cut, 90_000 - 65_536);
        let odd = Body::read(&bytes[..65_535], 90_000, "");
        assert_eq!((odd.kind, odd.text.len()), ("text", 65_534));
        let hex = Body::read(&bytes, 80_000, "hex");
        assert_eq!(hex.cut, 80_000 - MAX_HEX as u64);
    }
}
