//! The audit log, for administrators: who changed what, and who was refused; the newest first.

use askama::Template;
use axum::extract::State;
use oncue_core::names::QueueName;
use oncue_core::time::Timestamp;
use serde_json::Value;

use super::format;
use super::frame::Frame;
use super::page::{Page, page};
use super::params::{Params, address};
use super::queues::ago;
use super::viewer::Viewer;
use crate::app::App;
use crate::audit::{AuditQuery, Cursor, DONE, Wanted};
use crate::routes::audit::look;

/// Where the page is.
const PATH: &str = "/audit";

/// Entries of one page.
const ROWS: usize = 100;

/// An entry.
#[derive(Debug)]
struct Row {
    time: String,
    ago: String,
    /// Who; nobody where the request named none.
    identity: String,
    from: String,
    action: String,
    object: String,
    /// The page of what it was on, where that may still be there.
    address: Option<String>,
    result: String,
    is_done: bool,
    /// Which message of it, or how many.
    messages: String,
    /// Refusals before it that were not written.
    unwritten: u64,
    request: String,
}

impl Row {
    fn of(entry: &Value, now: Timestamp) -> Self {
        let field = |name: &str| {
            let text = entry.get(name).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        let count = |name: &str| entry.get(name).and_then(Value::as_u64);
        let time = Timestamp(count("time").unwrap_or_default());
        let (action, object, result) = (field("action"), field("object"), field("result"));
        Self {
            time: format::moment(time),
            ago: ago(time, now),
            identity: field("identity"),
            from: field("address"),
            address: page_of(&action, &object),
            is_done: result == DONE,
            messages: match (count("messages"), field("message")) {
                (Some(count), _) => format::of(count, "message"),
                (None, message) => message,
            },
            unwritten: count("unwritten").unwrap_or_default(),
            request: field("request-id"),
            action,
            object,
            result,
        }
    }
}

/// The page of what an action was on.
fn page_of(action: &str, object: &str) -> Option<String> {
    let (what, _) = action.split_once('-')?;
    let section = match what {
        "queue" | "message" => "queues",
        "process" | "plugin" => "plugins",
        _ => return None,
    };
    // All names are of one form; what was asked for may have been none.
    QueueName::new(object).ok()?;
    Some(format!("/{section}/{object}"))
}

#[derive(Template)]
#[template(path = "audit.html")]
struct AuditPage {
    frame: Frame,
    is_kept: bool,
    rows: Vec<Row>,
    wanted: Wanted,
    is_filtered: bool,
    older: Option<String>,
    newest: Option<String>,
}

/// The address of entries that are wanted, before a point.
fn here(wanted: &Wanted, before: &str) -> String {
    let refused = if wanted.refused { "1" } else { "" };
    let fields = [
        ("identity", wanted.identity.as_str()),
        ("action", &wanted.action),
        ("object", &wanted.object),
        ("refused", refused),
        ("before", before),
    ];
    address(PATH, &fields)
}

/// A page of the log.
pub(super) async fn show(State(app): State<App>, viewer: Viewer, params: Params) -> Page {
    let text = |name: &str| params.text(name).trim().to_owned();
    let wanted = Wanted {
        identity: text("identity"),
        action: text("action"),
        object: text("object"),
        refused: params.is_on("refused"),
    };
    let before: Option<Cursor> = params.number("before");
    let is_kept = app.options.security.audit.is_some();
    let query = AuditQuery {
        before,
        wanted: wanted.clone(),
        max: ROWS,
        ..AuditQuery::default()
    };
    let found = if is_kept {
        Some(look(&app, query).await?)
    } else {
        None
    };
    let (mut entries, older) = found.map_or_else(Default::default, |found| {
        let previous = found
            .previous
            .map(|point| here(&wanted, &point.to_string()));
        (found.entries, previous)
    });
    entries.reverse();
    let now = app.handle.now();
    page(&AuditPage {
        frame: Frame::new(&app, PATH, &params, &viewer).await?.still(),
        is_kept,
        rows: entries.iter().map(|entry| Row::of(entry, now)).collect(),
        is_filtered: wanted != Wanted::default(),
        older,
        newest: before.map(|_| here(&wanted, "")),
        wanted,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_action_was_on_has_a_page() {
        let page = |action, object| page_of(action, object).unwrap_or_default();
        assert_eq!(page("queue-alter", "orders"), "/queues/orders");
        assert_eq!(page("plugin-rollback", "orders"), "/plugins/orders");
        assert_eq!(page("queue-alter", "a/b"), "");
        assert_eq!(page("login", "orders"), "");
        assert_eq!(page("GET /v1/status", "orders"), "");
    }
}
