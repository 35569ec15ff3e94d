//! Dead letters: by groups, one by one, back to where they came from, away for good, or out as a
//! file.

use askama::Template;
use axum::body::Body;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use oncue_core::code::Code;
use oncue_core::message::MessageId;
use oncue_core::names::QueueName;
use oncue_core::time::Timestamp;
use oncue_manager::handle::{Browsed, Handle};
use tokio::sync::mpsc;

use super::form::{Form, back, confirmed};
use super::format;
use super::frame::Frame;
use super::letters::{self, Done, Filter, MAX_LOOKED_AT};
use super::message::Row;
use super::page::{Page, PageError, page};
use super::params::{Params, address};
use super::queues::ago;
use super::viewer::Viewer;
use crate::app::App;
use crate::audit::Told;
use crate::auth::Who;
use crate::auth::identity::Right;
use crate::content::{MAX_JSON_BODIES, as_json, off_the_loop};
use crate::error::Problem;
use crate::stream::Parts;
use crate::wire::message::Place;

/// Where the page is.
const PATH: &str = "/dead-letters";

/// Dead letters of one page.
const ROWS: usize = 50;

/// Dead letters that are read at a time.
const STEP: usize = 500;

/// Lines of a file that wait for a slow client.
const WAITING_LINES: usize = 16;

/// Characters of a sentence in a list.
const BRIEF: usize = 200;

/// A group.
#[derive(Debug)]
struct Group {
    reason: &'static str,
    queue: String,
    process: String,
    count: String,
    oldest: String,
    last: String,
    detail: String,
    address: String,
    is_chosen: bool,
}

/// Which dead letters are meant: the queue they are on, where they came from and why.
#[derive(Debug)]
struct Asked {
    queue: QueueName,
    from: Option<QueueName>,
    reason: Option<String>,
    detail: Option<String>,
}

impl Asked {
    fn of(params: &Params) -> Result<Self, PageError> {
        let name = |text: &str| QueueName::new(text).map_err(Problem::from);
        let queue = params.get("queue").map(name).transpose()?;
        let text = |field| params.get(field).map(str::to_owned);
        Ok(Self {
            queue: queue.unwrap_or_else(QueueName::dead_letter),
            from: params.get("from").map(name).transpose()?,
            reason: text("reason"),
            detail: text("detail"),
        })
    }

    fn filter(&self) -> Filter {
        Filter {
            from: self.from.clone(),
            reason: self.reason.clone(),
            detail: self.detail.clone(),
            ..Filter::default()
        }
    }

    fn is_all(&self) -> bool {
        self.from.is_none() && self.reason.is_none() && self.detail.is_none()
    }

    fn address(&self, path: &str, from: Option<&str>, reason: &str, cursor: &str) -> String {
        let queue = if self.queue == QueueName::dead_letter() {
            ""
        } else {
            self.queue.as_str()
        };
        let detail = self.detail.as_deref().unwrap_or_default();
        let fields = [
            ("queue", queue),
            ("from", from.unwrap_or_default()),
            ("reason", reason),
            ("detail", detail),
            ("cursor", cursor),
        ];
        address(path, &fields)
    }

    /// The address of what is asked for, at another path or further on.
    fn here(&self, path: &str, cursor: &str) -> String {
        let from = self.from.as_ref().map(QueueName::as_str);
        self.address(
            path,
            from,
            self.reason.as_deref().unwrap_or_default(),
            cursor,
        )
    }

    fn group(&self, group: &letters::Group, now: Timestamp) -> Group {
        let reason = group.reason;
        Group {
            reason,
            queue: group.queue.to_string(),
            process: group.process.clone().unwrap_or_default(),
            count: format::number(group.count),
            oldest: ago(group.oldest, now),
            last: ago(group.last, now),
            detail: format::brief(&group.detail, BRIEF),
            address: self.address(PATH, Some(group.queue.as_str()), reason, ""),
            is_chosen: self.from.as_ref() == Some(&group.queue)
                && self.reason.as_deref() == Some(reason),
        }
    }
}

#[derive(Template)]
#[template(path = "dead_letters.html")]
struct DeadLettersPage {
    frame: Frame,
    /// Whoever looks may redrive and discard.
    operates: bool,
    queue: String,
    from: String,
    reason: String,
    detail: String,
    is_all: bool,
    groups: Vec<Group>,
    scanned: String,
    more_unscanned: bool,
    without_record: u64,
    rows: Vec<Row>,
    next: Option<String>,
    first: Option<String>,
    export: String,
    all: String,
}

/// The page of dead letters.
pub(super) async fn show(State(app): State<App>, who: Who, viewer: Viewer, params: Params) -> Page {
    let asked = Asked::of(&params)?;
    who.must(Right::Browse, &asked.queue)?;
    let cursor = params.get("cursor").map(str::to_owned);
    let (handle, queue, filter) = (app.handle.clone(), asked.queue.clone(), asked.filter());
    let from = cursor.clone();
    let read = move || -> Result<_, PageError> {
        let view = letters::groups(&handle, &queue)?;
        let (rows, next) = find(&handle, &queue, &filter, from, ROWS)?;
        Ok((view, rows, next))
    };
    let (view, rows, next) = off_the_loop(read).await??;
    let now = app.handle.now();
    page(&DeadLettersPage {
        frame: Frame::new(&app, PATH, &params, &viewer).await?,
        operates: viewer.may(Right::Operate),
        queue: asked.queue.to_string(),
        from: asked
            .from
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        reason: asked.reason.clone().unwrap_or_default(),
        detail: asked.detail.clone().unwrap_or_default(),
        is_all: asked.is_all(),
        groups: view
            .groups
            .iter()
            .map(|group| asked.group(group, now))
            .collect(),
        scanned: format::number(view.looked_at),
        more_unscanned: view.more,
        without_record: view.without_record,
        rows: rows.iter().map(|row| Row::of(row, now)).collect(),
        next: next.map(|next| asked.here(PATH, &next)),
        first: cursor.map(|_| asked.here(PATH, "")),
        export: asked.here("/dead-letters/export", ""),
        all: asked.address(PATH, None, "", ""),
    })
}

/// The next dead letters that are meant, and where to go on.
fn find(
    handle: &Handle,
    queue: &QueueName,
    filter: &Filter,
    mut cursor: Option<String>,
    max: usize,
) -> Result<(Vec<Browsed>, Option<String>), PageError> {
    let mut found: Vec<Browsed> = Vec::new();
    let mut looked_at = 0;
    while looked_at < MAX_LOOKED_AT && found.len() < max {
        // Never more than fit, so that the next page begins where this one ends.
        let part = handle.browse(queue, cursor, STEP.min(max - found.len()), false)?;
        looked_at += part.messages.len();
        cursor = part.next;
        found.extend(part.messages.into_iter().filter(|row| filter.wants(row)));
        if cursor.is_none() {
            break;
        }
    }
    Ok((found, cursor))
}

/// What a form means: those that are ticked, or all that the page was asked for. The path does not
/// name the queue, so the right on it is asked for here.
fn meant(form: &Form, who: &Who) -> Result<(Asked, Filter), PageError> {
    let asked = Asked::of(form)?;
    who.must(Right::Operate, &asked.queue)?;
    let mut filter = asked.filter();
    if form.text("scope") == "picked" {
        let ids: Result<Vec<MessageId>, _> = form.all("id").map(str::parse).collect();
        filter.ids = ids.map_err(|error| Problem::new(Code::InvalidParameter, error))?;
        if filter.ids.is_empty() {
            let detail = "nothing was done: no dead letter is ticked";
            return Err(Problem::new(Code::InvalidParameter, detail).into());
        }
    }
    Ok((asked, filter))
}

/// Puts dead letters back where they came from.
pub(super) async fn redrive(
    State(app): State<App>,
    who: Who,
    form: Form,
) -> Result<Response, PageError> {
    let done = match meant(&form, &who) {
        Ok((asked, filter)) => letters::redrive(&app.handle, &asked.queue, &filter)
            .await
            .map_err(PageError::from),
        Err(error) => Err(error),
    };
    Ok(settled(
        &app,
        &form,
        done,
        "went back to where they came from",
    ))
}

/// Removes dead letters for good, once `discard` is typed.
pub(super) async fn discard(
    State(app): State<App>,
    who: Who,
    form: Form,
) -> Result<Response, PageError> {
    let done = match confirmed(&form, "discard").and_then(|()| meant(&form, &who)) {
        Ok((asked, filter)) => letters::discard(&app.handle, &asked.queue, &filter)
            .await
            .map_err(PageError::from),
        Err(error) => Err(error),
    };
    Ok(settled(&app, &form, done, "are discarded for good"))
}

/// The way back after an action on dead letters; the audit log is told of which queue, how many.
fn settled(app: &App, form: &Form, done: Result<Done, PageError>, what: &str) -> Response {
    let messages = done.as_ref().ok().map(|done| done.done);
    let said = done.map(|done| said(done, what));
    let response = back(app, &page_after(form), said);
    let named = form.get("queue").map(QueueName::new);
    let queue = match named {
        Some(Ok(queue)) => queue,
        _ => QueueName::dead_letter(),
    };
    let told = Told {
        object: Some(queue.to_string()),
        messages,
    };
    told.with(response)
}

/// What became of those that were meant.
fn said(done: Done, what: &str) -> String {
    let stayed = match done.stayed {
        0 => String::new(),
        stayed => format!(
            " {} stayed: the queue they came from is gone, or somebody has them in hand.",
            format::number(stayed)
        ),
    };
    let compiling = done.compiling.iter().map(|plugin| {
        format!(
            " The next version of plugin \"{plugin}\" is still being compiled: until it is ready, \
             the version before it gets them."
        )
    });
    let compiling: String = compiling.collect();
    let letters = format::of(done.done, "dead letter");
    format!("{letters} {what}.{stayed}{compiling}")
}

/// The page without what was just settled.
fn page_after(form: &Form) -> String {
    let queue = form.text("queue");
    let is_usual = queue == QueueName::dead_letter().as_str();
    let queue = if is_usual || QueueName::new(queue).is_err() {
        ""
    } else {
        queue
    };
    address(PATH, &[("queue", queue)])
}

/// The dead letters that are meant as a file: one a line, in JSON, with their bodies.
pub(super) async fn export(State(app): State<App>, who: Who, params: Params) -> Page {
    let asked = Asked::of(&params)?;
    who.must(Right::Browse, &asked.queue)?;
    // Says that the queue is unknown while that can still be said.
    app.handle.queue(asked.queue.clone()).await?;
    let (sender, receiver) = mpsc::channel::<Result<String, std::io::Error>>(WAITING_LINES);
    let name = format!("attachment; filename=\"{}.jsonl\"", asked.queue);
    tokio::spawn(async move {
        if let Err(error) = write(&app, &asked, &sender).await {
            // The file breaks off, which the browser tells.
            let error = std::io::Error::other(error.text().to_owned());
            let _ = sender.send(Err(error)).await;
        }
    });
    let headers = [
        (header::CONTENT_TYPE, "application/jsonl".to_owned()),
        (header::CONTENT_DISPOSITION, name),
    ];
    Ok((headers, Body::from_stream(Parts(receiver))).into_response())
}

async fn write(
    app: &App,
    asked: &Asked,
    sender: &mpsc::Sender<Result<String, std::io::Error>>,
) -> Result<(), PageError> {
    let filter = asked.filter();
    let mut cursor = None;
    let mut looked_at = 0;
    while looked_at < MAX_LOOKED_AT {
        let (handle, queue, from) = (app.handle.clone(), asked.queue.clone(), cursor);
        let part = off_the_loop(move || handle.browse(&queue, from, STEP, false)).await??;
        looked_at += part.messages.len();
        for row in part.messages.iter().filter(|row| filter.wants(row)) {
            let place = Place {
                queue: &asked.queue,
                state: Some(row.state),
                lease: None,
            };
            let mut left = MAX_JSON_BODIES;
            let json = as_json(app, &row.message, place, &mut left).await?;
            let Ok(mut line) = serde_json::to_string(&json) else {
                return Err(Problem::internal().into());
            };
            line.push('\n');
            if sender.send(Ok(line)).await.is_err() {
                return Ok(());
            }
        }
        cursor = part.next;
        if cursor.is_none() {
            break;
        }
    }
    Ok(())
}
