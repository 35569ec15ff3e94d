//! A message: in a line of a list, and in full.

use askama::Template;
use axum::extract::State;
use oncue_core::message::{DeadLetter, Message};
use oncue_core::time::Timestamp;
use oncue_manager::handle::Browsed;

use super::body::{self, Body};
use super::format;
use super::frame::Frame;
use super::page::{Page, PageError, page};
use super::params::Params;
use super::queues::ago;
use super::viewer::{Offers, Viewer};
use crate::app::App;
use crate::content::off_the_loop;
use crate::error::Problem;
use crate::extract::{IdPath, QueuePath};
use crate::wire::message::{NO_END, state_words};

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
            detail: format::plain(&record.detail),
            backtrace: record.backtrace.as_deref().map(format::plain),
            log: record.log_tail.as_deref().map(format::plain),
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
            content_type: format::plain(header.content_type.as_deref().unwrap_or_default()),
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
#[template(path = "message.html")]
struct MessagePage {
    frame: Frame,
    offers: Offers,
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
        let kept = &browsed.message.body;
        let size = kept.len();
        let bytes = handle.read_body(kept, 0, body::wanted(size))?;
        let body = Body::read(&bytes, size, &asked);
        Ok((browsed, body))
    };
    let (browsed, body) = off_the_loop(read).await??;
    let now = app.handle.now();
    let row = Row::of(&browsed, now);
    page(&MessagePage {
        frame: Frame::new(&app, "/queues", &params, &viewer).await?,
        offers: viewer.offers(&queue),
        queue: queue.to_string(),
        fields: fields(&browsed.message, now),
        properties: plain_pairs(&browsed.message.header.properties),
        row,
        body,
    })
}

/// Properties as a page may show them.
pub(super) fn plain_pairs(pairs: &[(String, String)]) -> Vec<(String, String)> {
    let pairs = pairs.iter();
    pairs
        .map(|(name, text)| (format::plain(name), format::plain(text)))
        .collect()
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
    let mut add = |name, text: Option<String>| {
        fields.extend(text.map(|text| (name, format::plain(&text))));
    };
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
