//! What can be done to a queue from its page.

use axum::extract::State;
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

/// What an action answers with: the way back, or why there is none.
pub(super) type Action = Result<Response, PageError>;

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

fn page_of(queue: &QueueName) -> String {
    format!("/queues/{queue}")
}

/// Turns the trigger on or off.
pub(super) async fn trigger(
    State(app): State<App>,
    queue: Result<QueuePath, Problem>,
    form: Form,
) -> Action {
    let QueuePath(queue) = queue?;
    let on = form.text("on") == "true";
    let done = app.handle.trigger(queue.clone(), on).await;
    let word = if on { "on" } else { "off" };
    let done = done.map(|_| format!("The trigger of \"{queue}\" is {word}."));
    Ok(back(&app, &page_of(&queue), done.map_err(Into::into)))
}

/// Pauses or resumes the queue.
pub(super) async fn pause(
    State(app): State<App>,
    queue: Result<QueuePath, Problem>,
    form: Form,
) -> Action {
    let QueuePath(queue) = queue?;
    let paused = form.text("paused") == "true";
    let done = app.handle.pause_queue(queue.clone(), paused).await;
    let done = done.map(|()| {
        if paused {
            format!("Queue \"{queue}\" is paused: no task starts for it.")
        } else {
            format!("Queue \"{queue}\" is resumed.")
        }
    });
    Ok(back(&app, &page_of(&queue), done.map_err(Into::into)))
}

/// Enables or disables get or put.
pub(super) async fn enable(
    State(app): State<App>,
    queue: Result<QueuePath, Problem>,
    form: Form,
) -> Action {
    let QueuePath(queue) = queue?;
    let done = alter(&app, &queue, &form).await;
    Ok(back(&app, &page_of(&queue), done))
}

async fn alter(app: &App, queue: &QueueName, form: &Form) -> Result<String, PageError> {
    let what = if form.text("what") == "get" {
        "get"
    } else {
        "put"
    };
    let word = if form.text("on") == "true" {
        "enabled"
    } else {
        "disabled"
    };
    let raw = Raw::Table(vec![(what.to_owned(), Raw::Text(word.to_owned()))]);
    let patch = QueuePatch::parse(&raw)
        .map_err(|faults| Problem::with_faults(Code::InvalidDefinition, faults))?;
    app.handle.alter_queue(queue.clone(), patch).await?;
    Ok(format!("{what} is {word} for \"{queue}\"."))
}

/// Removes all messages, once the queue's name is typed.
pub(super) async fn clear(
    State(app): State<App>,
    queue: Result<QueuePath, Problem>,
    form: Form,
) -> Action {
    let QueuePath(queue) = queue?;
    let done = match confirmed(&form, queue.as_str()) {
        Ok(()) => app.handle.clear(&queue).await.map_err(PageError::from),
        Err(error) => Err(error),
    };
    let done =
        done.map(|count| format!("{} removed from \"{queue}\".", format::of(count, "message")));
    Ok(back(&app, &page_of(&queue), done))
}

/// Puts a message.
pub(super) async fn put(
    State(app): State<App>,
    who: Who,
    queue: Result<QueuePath, Problem>,
    form: Form,
) -> Action {
    let QueuePath(queue) = queue?;
    let done = put_one(&app, &queue, &form, who.putter()).await;
    Ok(back(&app, &page_of(&queue), done))
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
    State(app): State<App>,
    queue: Result<QueuePath, Problem>,
    id: Result<IdPath, Problem>,
    form: Form,
) -> Action {
    let (QueuePath(queue), IdPath(id)) = (queue?, id?);
    let done = app.handle.release(&queue, id).await;
    let done = done.map(|()| format!("Message {id} is released: it may be taken at once."));
    let otherwise = format!("/queues/{queue}/messages");
    Ok(back(
        &app,
        return_path(&form, &otherwise),
        done.map_err(Into::into),
    ))
}

/// Removes a message for good, once `remove` is typed.
pub(super) async fn remove(
    State(app): State<App>,
    queue: Result<QueuePath, Problem>,
    id: Result<IdPath, Problem>,
    form: Form,
) -> Action {
    let (QueuePath(queue), IdPath(id)) = (queue?, id?);
    let list = format!("/queues/{queue}/messages");
    if let Err(error) = confirmed(&form, "remove") {
        return Ok(back(&app, &format!("{list}/{id}"), Err(error)));
    }
    let done = app.handle.remove(&queue, id).await;
    let done = done.map(|()| format!("Message {id} is removed."));
    Ok(back(&app, &list, done.map_err(Into::into)))
}

/// Pauses or resumes the host.
pub(super) async fn pause_host(State(app): State<App>, form: Form) -> Action {
    let paused = form.text("paused") == "true";
    let done = app.handle.pause_host(paused).await;
    let word = if paused {
        "paused: no task starts."
    } else {
        "resumed."
    };
    let done = done.map(|()| format!("The host is {word}"));
    Ok(back(
        &app,
        return_path(&form, "/"),
        done.map_err(Into::into),
    ))
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
