//! `trigger`, `pause` and `resume`.

use super::{Context, done};
use crate::args::operations::{OnOff, PauseArgs, TriggerArgs};
use crate::client::Request;
use crate::exit::Failure;

/// Turns a trigger on or off.
pub(super) fn run(context: &Context, args: &TriggerArgs) -> Result<(), Failure> {
    let name = args.queue.as_str();
    let is_on = args.state == OnOff::On;
    let request = Request::post(&["queues", name, "trigger"]);
    let answer = context
        .client
        .ask(request.json(&serde_json::json!({ "on": is_on })))?;
    let word = if is_on { "on" } else { "off" };
    done(
        context,
        &answer,
        &format!("queue \"{name}\": trigger is {word}"),
    )
}

/// Pauses or resumes the host, a queue or a process; `verb` is the path's last step.
pub(super) fn pause(context: &Context, args: &PauseArgs, verb: &str) -> Result<(), Failure> {
    let (request, what) = match (&args.queue, &args.process) {
        (Some(queue), _) => {
            let request = Request::post(&["queues", queue.as_str(), verb]);
            (request, format!("queue \"{queue}\""))
        }
        (None, Some(process)) => {
            let request = Request::post(&["processes", process.as_str(), verb]);
            (request, format!("process \"{process}\""))
        }
        (None, None) => (Request::post(&[verb]), "the host".to_owned()),
    };
    let answer = context.client.ask(request)?;
    let state = if verb == "pause" {
        "is paused: running tasks end, no new ones start"
    } else {
        "is resumed"
    };
    done(context, &answer, &format!("{what} {state}"))
}
