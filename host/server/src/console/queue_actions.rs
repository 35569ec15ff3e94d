//! What can be done to a queue from its page.

use axum::extract::{FromRequest, FromRequestParts as _, Request, State};
use axum::response::Response;
use oncue_core::code::Code;
use oncue_core::definition::{QueuePatch, Raw};
use oncue_core::names::QueueName;

use super::form::{Form, back, confirmed, return_path};
use super::format;
use super::page::PageError;
use crate::app::App;
use crate::audit::Told;
use crate::error::Problem;
use crate::extract::{IdPath, QueuePath};

/// A form that was sent to do something to the queue in its path.
pub(super) struct OnQueue {
    pub(super) app: App,
    pub(super) queue: QueueName,
    pub(super) form: Form,
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
    pub(super) fn back<E: Into<PageError>>(&self, done: Result<String, E>) -> Response {
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
    let messages = done.as_ref().ok().copied();
    let said = |count| format!("{} removed from \"{queue}\".", format::of(count, "message"));
    let told = Told {
        messages,
        ..Told::default()
    };
    told.with(it.back(done.map(said)))
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
