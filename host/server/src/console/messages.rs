//! Messages of a queue, looked at without taking them: a page at a time.

use askama::Template;
use axum::extract::State;
use oncue_core::message::Message;
use oncue_core::names::QueueName;
use oncue_manager::error::ApiError;
use oncue_manager::handle::{Browsed, Handle};

use super::frame::Frame;
use super::message::{Row, reason_of};
use super::page::{Page, page};
use super::params::{Params, address};
use super::viewer::{Offers, Viewer};
use crate::app::App;
use crate::content::off_the_loop;
use crate::error::Problem;
use crate::extract::QueuePath;

/// Messages of one page.
const ROWS: usize = 50;

/// Messages that a search looks at.
const MAX_LOOKED_AT: usize = 10_000;

/// Messages that are read at a time while searching.
const STEP: usize = 1_000;

#[derive(Template)]
#[template(path = "messages.html")]
struct MessagesPage {
    frame: Frame,
    offers: Offers,
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
        offers: viewer.offers(&queue),
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
) -> Result<Found, ApiError> {
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
