//! What can be done to a queue from its page.

use axum::extract::{FromRequest, FromRequestParts as _, Request, State};
use axum::response::Response;
use bytes::Bytes;
use oncue_core::code::Code;
use oncue_core::definition::{Fault, QueuePatch, Raw};
use oncue_core::names::QueueName;
use oncue_manager::tasks::port::{PutOptions, PutRequest};

use super::form::{Form, back, confirmed, return_path};
use super::format;
use super::page::PageError;
use crate::app::App;
use crate::auth::Who;
use crate::error::Problem;
use crate::extract::{IdPath, QueuePath};
use crate::wire::put;

/// Fields of the form for a put that are fields of a message too.
const PUT_FIELDS: [&str; 7] = [
    "content-type",
    "correlation-id",
    "reply-to",
    "group",
    "priority",
    "persistence",
    "delay",
];

/// A form that was sent to do something to the queue in its path.
pub(super) struct OnQueue {
    app: App,
    queue: QueueName,
    form: Form,
}

impl FromRequest<App> for OnQueue {
    type Rejection = PageError;

    async fn from_request(request: Request, app: &App) -> Result<Self, PageError> {
        let (mut parts, body) = request.into_parts();
        let QueuePath(queue) = QueuePath::from_request_parts(&mut parts, app).await?;
        let form = Form::from_request(Request::from_parts(parts, body), app).await?;
        let app = app.clone();
        Ok(Self { app, queue, form })
    }
}

impl OnQueue {
    /// Whether the form asks for the one state and not for the other.
    fn asks_for(&self, state: &str) -> bool {
        self.form.text(state) == "true"
    }

    /// Back to the queue's page.
    fn back<E: Into<PageError>>(&self, done: Result<String, E>) -> Response {
        let path = format!("/queues/{}", self.queue);
        back(&self.app, &path, done.map_err(Into::into))
    }
}

/// Turns the trigger on or off.
pub(super) async fn trigger(it: OnQueue) -> Response {
    let queue = &it.queue;
    let on = it.asks_for("on");
    let done = it.app.handle.trigger(queue.clone(), on).await;
    let word = if on { "on" } else { "off" };
    it.back(done.map(|_| format!("The trigger of \"{queue}\" is {word}.")))
}

/// Pauses or resumes the queue.
pub(super) async fn pause(it: OnQueue) -> Response {
    let queue = &it.queue;
    let paused = it.asks_for("paused");
    let done = it.app.handle.pause_queue(queue.clone(), paused).await;
    it.back(done.map(|()| {
        if paused {
            format!("Queue \"{queue}\" is paused: no task starts for it.")
        } else {
            format!("Queue \"{queue}\" is resumed.")
        }
    }))
}

/// Enables or disables get or put.
pub(super) async fn enable(it: OnQueue) -> Response {
    let done = alter(&it.app, &it.queue, &it.form).await;
    it.back(done)
}

async fn alter(app: &App, queue: &QueueName, form: &Form) -> Result<String, PageError> {
    let named = ["get", "put"]
        .into_iter()
        .find_map(|what| Some((what, form.get(what)?)));
    let Some((what, on)) = named else {
        let detail = "nothing was done: the form names neither get nor put";
        return Err(Problem::new(Code::InvalidParameter, detail).into());
    };
    let word = if on == "true" { "enabled" } else { "disabled" };
    let raw = Raw::Table(vec![(what.to_owned(), Raw::Text(word.to_owned()))]);
    let patch = QueuePatch::parse(&raw)
        .map_err(|faults| Problem::with_faults(Code::InvalidDefinition, faults))?;
    app.handle.alter_queue(queue.clone(), patch).await?;
    Ok(format!("{what} is {word} for \"{queue}\"."))
}

/// Removes all messages, once the queue's name is typed.
pub(super) async fn clear(it: OnQueue) -> Response {
    let queue = &it.queue;
    let done = match confirmed(&it.form, queue.as_str()) {
        Ok(()) => it.app.handle.clear(queue).await.map_err(PageError::from),
        Err(error) => Err(error),
    };
    it.back(done.map(|count| format!("{} removed from \"{queue}\".", format::of(count, "message"))))
}

/// Puts a message.
pub(super) async fn put(who: Who, it: OnQueue) -> Response {
    let done = put_one(&it.app, &it.queue, &it.form, who.putter()).await;
    it.back(done)
}

async fn put_one(
    app: &App,
    queue: &QueueName,
    form: &Form,
    putter: Option<String>,
) -> Result<String, PageError> {
    let (options, body) = read_put(form)
        .map_err(|faults| PageError::from(Problem::with_faults(Code::InvalidMessage, faults)))?;
    let request = PutRequest {
        queue: queue.clone(),
        body,
        options,
    };
    let answers = app.handle.put(vec![request], putter).await?;
    let ids: Vec<String> = answers.iter().map(|answer| answer.id.to_string()).collect();
    Ok(format!("Message {} is on \"{queue}\".", ids.join(", ")))
}

/// Reads the form of a put; all its faults at once.
fn read_put(form: &Form) -> Result<(PutOptions, Bytes), Vec<Fault>> {
    let mut options = PutOptions::default();
    let mut faults = Vec::new();
    for field in PUT_FIELDS {
        if let Some(text) = form.get(field) {
            let set = put::set(&mut options, field, &Raw::Text(text.trim().to_owned()));
            faults.extend(set.err().map(|message| Fault::new(field, message)));
        }
    }
    for line in form
        .text("properties")
        .lines()
        .filter(|line| !line.trim().is_empty())
    {
        match line.split_once(['=', ':']) {
            Some((name, text)) if !name.trim().is_empty() => {
                options
                    .properties
                    .push((name.trim().to_owned(), text.trim().to_owned()));
            }
            _ => faults.push(Fault::new(
                "properties",
                "has a line without \"=\"; write each as name=value",
            )),
        }
    }
    // Browsers send the ends of lines as two characters, which nobody typed.
    let body = form
        .all("body")
        .next()
        .unwrap_or_default()
        .replace("\r\n", "\n");
    if faults.is_empty() {
        Ok((options, Bytes::from(body)))
    } else {
        Err(faults)
    }
}

/// Frees a parked message, or one that waits.
pub(super) async fn release(
    id: Result<IdPath, Problem>,
    it: OnQueue,
) -> Result<Response, PageError> {
    let IdPath(id) = id?;
    let done = it.app.handle.release(&it.queue, id).await;
    let done = done.map(|()| format!("Message {id} is released: it may be taken at once."));
    let list = format!("/queues/{}/messages", it.queue);
    let path = return_path(&it.form, &list);
    Ok(back(&it.app, path, done.map_err(Into::into)))
}

/// Removes a message for good, once `remove` is typed.
pub(super) async fn remove(
    id: Result<IdPath, Problem>,
    it: OnQueue,
) -> Result<Response, PageError> {
    let IdPath(id) = id?;
    let list = format!("/queues/{}/messages", it.queue);
    if let Err(error) = confirmed(&it.form, "remove") {
        return Ok(back(&it.app, &format!("{list}/{id}"), Err(error)));
    }
    let done = it.app.handle.remove(&it.queue, id).await;
    let done = done.map(|()| format!("Message {id} is removed."));
    Ok(back(&it.app, &list, done.map_err(Into::into)))
}

/// Pauses or resumes the host.
pub(super) async fn pause_host(State(app): State<App>, form: Form) -> Response {
    let paused = form.text("paused") == "true";
    let done = app.handle.pause_host(paused).await;
    let word = if paused {
        "paused: no task starts."
    } else {
        "resumed."
    };
    let done = done.map(|()| format!("The host is {word}"));
    back(&app, return_path(&form, "/"), done.map_err(Into::into))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_put_is_read_from_its_form() {
        let form = "body=a%0D%0Ab&content-type=text%2Fplain&priority=7&group=&\
                    properties=x%3D1%0D%0A\
                    y%3A+2";
        let (options, body) = read_put(&Form::of(form)).expect("a put");
        assert_eq!(body, "a\nb");
        assert_eq!(options.content_type.as_deref(), Some("text/plain"));
        assert_eq!((options.priority, options.group), (Some(7), None));
        let pair = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        assert_eq!(options.properties, [pair("x", "1"), pair("y", "2")]);
    }

    #[test]
    fn every_fault_of_a_put_is_named() {
        let faults = read_put(&Form::of("priority=x&delay=soon&properties=bare"));
        let faults = faults.expect_err("three faults");
        assert_eq!(faults.len(), 3, "{faults:?}");
    }
}
