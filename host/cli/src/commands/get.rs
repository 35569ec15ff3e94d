//! `get`: messages under leases, printed, and then acknowledged.
//!
//! A message is acknowledged only after it was handed to the reader, so a closed pipe or a kill
//! loses nothing.

use oncue_core::quantity::format_millis;
use serde_json::Value;

use super::Context;
use super::message::{body_of, print_body};
use crate::args::messages::GetArgs;
use crate::client::{Answer, Request};
use crate::exit::{Exit, Failure};
use crate::render::time::format_timestamp;
use crate::render::values::{at, plain};

/// Longest wait of one request, in milliseconds: the host's own bound.
const MAX_WAIT: u64 = 60_000;

/// Gets, prints and acknowledges.
pub(super) fn run(context: &Context, args: &GetArgs) -> Result<(), Failure> {
    let Some(answer) = wait_for(context, args)? else {
        return Err(nothing(args));
    };
    let json = answer.json()?;
    let got: Vec<&Value> = match &json {
        Value::Array(list) => list.iter().collect(),
        one => vec![one],
    };
    if context.screen.is_json() {
        context.screen.json(&json)?;
        context.screen.flush()?;
    }
    let mut first_failure = Ok(());
    for message in got {
        if !context.screen.is_json() {
            print(context, args, message)?;
            context.screen.flush()?;
        }
        if !args.keep {
            // The others were printed too, so one failure does not keep them from being settled.
            let acknowledged = acknowledge(context, message);
            first_failure = first_failure.and(acknowledged);
        }
    }
    first_failure
}

/// Asks until a message comes or the wait is over.
fn wait_for(context: &Context, args: &GetArgs) -> Result<Option<Answer>, Failure> {
    let mut left = args.wait;
    loop {
        let wait = left.min(MAX_WAIT);
        let request = Request::post(&["queues", args.queue.as_str(), "get"])
            .header("accept", "application/json")
            .query("wait", (wait > 0).then(|| format_millis(wait)))
            .query("max", (args.max > 1).then_some(args.max))
            .query("lease", args.lease.map(format_millis))
            .query("id", args.id)
            .query("correlation-id", args.correlation_id.as_ref())
            .wait(wait);
        let answer = context.client.send(request)?;
        if !answer.body.is_empty() {
            return Ok(Some(answer));
        }
        left -= wait;
        if left == 0 {
            return Ok(None);
        }
    }
}

fn nothing(args: &GetArgs) -> Failure {
    let queue = &args.queue;
    let which = match (&args.id, &args.correlation_id) {
        (Some(id), _) => format!("no message \"{id}\" that can be got"),
        (None, Some(id)) => format!("no message of correlation id \"{id}\" that can be got"),
        (None, None) => "no message that can be got".to_owned(),
    };
    let waited = match args.wait {
        0 => "; wait for one with --wait".to_owned(),
        wait => format!(" (waited {})", format_millis(wait)),
    };
    Failure::new(
        Exit::NotFound,
        format!("queue \"{queue}\" has {which}{waited}"),
    )
}

/// Prints one message for people: its token if it is kept, and its body.
fn print(context: &Context, args: &GetArgs, message: &Value) -> Result<(), Failure> {
    let screen = &context.screen;
    let id = plain(at(message, "id"));
    let body = if at(message, "body-omitted").as_bool() == Some(true) {
        // The list was too long; the message is ours under its lease, and can be read alone.
        let path = ["queues", args.queue.as_str(), "messages", &id];
        context.client.send(Request::get(&path))?.body
    } else {
        body_of(message)?
    };
    let token = plain(at(message, "lease.token"));
    if args.keep {
        let until = at(message, "lease.until")
            .as_u64()
            .map(format_timestamp)
            .unwrap_or_default();
        if args.raw {
            screen.say(&format!("message {id}: lease {token} until {until}"));
        } else {
            screen.line(&format!("lease {token}"))?;
            screen.say(&format!("message {id}: yours until {until}"));
        }
    }
    if args.raw {
        screen.raw(&body)
    } else {
        print_body(screen, &id, &body)
    }
}

fn acknowledge(context: &Context, message: &Value) -> Result<(), Failure> {
    let token = plain(at(message, "lease.token"));
    context
        .client
        .send(Request::post(&["leases", &token, "ack"]))
        .map(drop)
        .map_err(|failure| {
            let id = plain(at(message, "id"));
            let text = format!(
                "message \"{id}\" was printed, not acknowledged: {}",
                failure.message
            );
            Failure {
                message: text,
                ..failure
            }
        })
}
