//! `message`: one message of a queue.

use serde_json::Value;

use super::task::section;
use super::{Context, done};
use crate::args::messages::{MessageArgs, MessageCommand, RemoveMessageArgs, ShowMessageArgs};
use crate::client::Request;
use crate::exit::{Exit, Failure};
use crate::render::Screen;
use crate::render::text::{BodyText, from_base64};
use crate::render::values::{at, fields, plain};

/// What a dead letter keeps of the log.
const LOG_TAIL: &str = "dead-letter.log-tail";

/// Where in the handler the last attempt at a dead letter ended.
const BACKTRACE: &str = "dead-letter.backtrace";

/// Fields of several lines: shown below the others.
const APART: &[&str] = &["body", "body-base64", LOG_TAIL, BACKTRACE];

/// Runs a command about one message.
pub(super) fn run(context: &Context, command: &MessageCommand) -> Result<(), Failure> {
    match command {
        MessageCommand::Show(args) => show(context, args),
        MessageCommand::Remove(args) => remove(context, args),
        MessageCommand::Release(args) => release(context, args),
    }
}

fn path(args: &MessageArgs) -> (String, String) {
    (args.queue.to_string(), args.id.to_string())
}

fn show(context: &Context, args: &ShowMessageArgs) -> Result<(), Failure> {
    let (queue, id) = path(&args.message);
    show_one(context, &queue, &id, args.raw)
}

/// Shows one message: fields, what a dead letter left behind, body.
pub(super) fn show_one(context: &Context, queue: &str, id: &str, raw: bool) -> Result<(), Failure> {
    let request = Request::get(&["queues", queue, "messages", id]);
    if raw {
        return context.screen.raw(&context.client.send(request)?.body);
    }
    let message = context
        .client
        .ask(request.header("accept", "application/json"))?;
    if context.screen.is_json() {
        return context.screen.json(&message);
    }
    context.screen.table(&fields(&message, APART), "")?;
    let text = |path: &str| plain(at(&message, path));
    section(context, "log of the last attempt:", &text(LOG_TAIL))?;
    section(context, "backtrace of the last attempt:", &text(BACKTRACE))?;
    context.screen.line("")?;
    context.screen.headline("body:")?;
    print_body(&context.screen, id, &body_of(&message)?)
}

/// The body in a message's JSON.
pub(super) fn body_of(message: &Value) -> Result<Vec<u8>, Failure> {
    if let Some(text) = at(message, "body").as_str() {
        return Ok(text.as_bytes().to_vec());
    }
    let written = at(message, "body-base64").as_str().unwrap_or_default();
    from_base64(written).ok_or_else(|| {
        let id = plain(at(message, "id"));
        Failure::new(
            Exit::Failed,
            format!("message \"{id}\": its body came as broken base64"),
        )
    })
}

/// Prints a body and a line end: text as text, anything else in base64 with a note.
pub(super) fn print_body(screen: &Screen, id: &str, body: &[u8]) -> Result<(), Failure> {
    match BodyText::of(body) {
        BodyText::Text(text) => screen.line(&text),
        BodyText::Base64(text) => {
            screen.say(&format!(
                "message {id}: the body is no text; this is base64, see --raw"
            ));
            screen.line(&text)
        }
    }
}

fn remove(context: &Context, args: &RemoveMessageArgs) -> Result<(), Failure> {
    let (queue, id) = path(&args.message);
    let what = format!("removing message \"{id}\" from queue \"{queue}\"");
    context.screen.confirm(&what, &id, args.yes)?;
    let answer = context
        .client
        .ask(Request::delete(&["queues", &queue, "messages", &id]))?;
    done(
        context,
        &answer,
        &format!("message {id} is removed from queue \"{queue}\""),
    )
}

fn release(context: &Context, args: &MessageArgs) -> Result<(), Failure> {
    let (queue, id) = path(args);
    let request = Request::post(&["queues", &queue, "messages", &id, "release"]);
    let answer = context.client.ask(request)?;
    done(
        context,
        &answer,
        &format!("message {id} is free again on queue \"{queue}\""),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::render::Format;
    use crate::render::tests::Shared;

    #[test]
    fn bodies_come_as_text_or_base64() {
        assert_eq!(
            body_of(&json!({ "body": "ö" })).expect("text"),
            "ö".as_bytes()
        );
        assert_eq!(
            body_of(&json!({ "body-base64": "/wA=" })).expect("bytes"),
            [0xff, 0]
        );
        assert_eq!(body_of(&json!({})).expect("empty"), b"");
        assert!(body_of(&json!({ "body-base64": "?" })).is_err());
    }

    #[test]
    fn a_body_never_reaches_the_terminal_as_it_is() {
        let shared = Shared::default();
        let screen = Screen::buffer(Format::Table, Box::new(shared.clone()));
        print_body(&screen, "1", b"red \x1b[31m").expect("printed");
        print_body(&screen, "2", &[0xff, 0x1b]).expect("printed");
        assert_eq!(shared.text(), "red \\u{1b}[31m\n/xs=\n");
    }
}
