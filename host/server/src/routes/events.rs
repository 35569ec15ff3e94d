//! What happens, as server-sent events.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures_core::Stream;
use oncue_core::names::QueueName;
use oncue_manager::status::HostEvent;
use serde_json::{Value, json};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Answer;
use crate::app::App;
use crate::auth::identity::{Identity, Right};
use crate::auth::{Standing, Who};
use crate::extract::Query;
use crate::openapi::Common;
use crate::stream::Parts;

/// How often a comment is sent when nothing happens, so that both ends notice a dead connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Events that wait for one slow client, beside the manager's own backlog.
const WAITING_EVENTS: usize = 64;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::default().routes(routes!(watch_events))
}

/// What happens from now on, as server-sent events: the event's name is its kind, its data JSON.
/// Whoever sees some queues only is told of these. A client that lags behind gets an event `lagged`
/// with `missed`, the number of events it did not get. The stream ends with the token that asked
/// for it.
#[utoipa::path(
    get, path = "/v1/events", tag = "host",
    responses(
        (status = 200, description = "Events until one end closes", body = String,
            content_type = "text/event-stream"),
        Common
    )
)]
async fn watch_events(
    State(app): State<App>,
    Who(identity): Who,
    standing: Standing,
    query: Query,
) -> Answer<Sse<impl Stream<Item = Result<Event, Infallible>>>> {
    query.nothing()?;
    let place = app.admit_waiting()?;
    let (sender, receiver) = mpsc::channel(WAITING_EVENTS);
    let events = app.handle.events();
    tokio::spawn(async move {
        let _place = place;
        tokio::select! {
            () = pass_on(events, &identity, &sender) => {}
            () = standing.lost() => {}
            // The client has gone, or the server stops: the stream ends.
            () = sender.closed() => {}
            () = app.stopped() => {}
        }
    });
    Ok(Sse::new(Parts(receiver)).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

/// Passes events on until the manager ends or the client is gone.
async fn pass_on(
    mut events: Receiver<HostEvent>,
    identity: &Arc<Identity>,
    sender: &mpsc::Sender<Result<Event, Infallible>>,
) {
    loop {
        let event = match events.recv().await {
            Ok(event) if !is_for(identity, &event) => continue,
            Ok(event) => serde_json::to_value(&event)
                .ok()
                .and_then(|value| written(&value)),
            Err(RecvError::Lagged(missed)) => {
                let lag = json!({ "kind": "lagged", "missed": missed });
                written(&lag)
            }
            Err(RecvError::Closed) => return,
        };
        let Some(event) = event else {
            tracing::error!("an event could not be written as JSON");
            continue;
        };
        if sender.send(Ok(event)).await.is_err() {
            return;
        }
    }
}

/// Whether an identity may know of an event.
pub(crate) fn is_for(identity: &Identity, event: &HostEvent) -> bool {
    if identity.may(Right::Observe) {
        return true;
    }
    match event {
        HostEvent::TaskStarted { queue, .. }
        | HostEvent::TaskEnded { queue, .. }
        | HostEvent::Held { queue, .. }
        | HostEvent::Parked { queue, .. } => identity.sees(queue),
        HostEvent::Defined { what, name, .. } => {
            *what == "queue" && QueueName::new(name).is_ok_and(|queue| identity.sees(&queue))
        }
        HostEvent::Alarm { queue, .. } => queue.as_ref().is_some_and(|queue| identity.sees(queue)),
        HostEvent::Plugin { .. } | HostEvent::Store { .. } => false,
    }
}

/// An event of the stream: the name is the kind, the data all of it.
fn written(value: &Value) -> Option<Event> {
    let kind = value.get("kind")?.as_str()?;
    Some(Event::default().event(kind).data(value.to_string()))
}
