//! Tells open pages when to ask for themselves again: one stream for each page, at most one event
//! in a second.
//!
//! The stream says only *that* something is different. What, the page finds out by asking, so a
//! page that was asleep misses nothing.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::response::sse::{Event, KeepAlive};
use axum::response::{IntoResponse, Response, Sse};
use oncue_manager::status::HostEvent;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::TryRecvError;
use tokio::sync::mpsc;

use super::page::PageError;
use super::viewer::Viewer;
use crate::app::App;
use crate::auth::Standing;
use crate::auth::identity::Right;
use crate::stream::Parts;

/// Where the stream is.
pub(crate) const PATH: &str = "/live";

/// The shortest time between two events.
const PACE: Duration = Duration::from_secs(1);

/// After so many looks without a change the page is told all the same: ages grow.
const LOOKS: u32 = 5;

/// How often a comment is sent when nothing else is.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The stream of a page.
pub(super) async fn watch(
    State(app): State<App>,
    viewer: Viewer,
    standing: Standing,
) -> Result<Response, PageError> {
    let place = app.admit_waiting()?;
    // One event may wait: it says the same as any that would follow.
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        let _place = place;
        tokio::select! {
            () = tell(&app, &viewer, &sender) => {}
            () = standing.lost() => {}
            // The page has gone, or the server stops: the stream ends.
            () = sender.closed() => {}
            () = app.stopped() => {}
        }
    });
    let stream = Sse::new(Parts(receiver)).keep_alive(KeepAlive::new().interval(KEEP_ALIVE));
    Ok(stream.into_response())
}

/// Looks once in a while, and tells the page when something is different that it may show. That
/// something was committed somewhere is for those who see the whole host.
async fn tell(app: &App, viewer: &Viewer, sender: &mpsc::Sender<Result<Event, Infallible>>) {
    let sees_all = viewer.may(Right::Observe);
    let mut events = app.handle.events();
    let mut commits = app.handle.store_status().commits;
    let mut quiet = 0;
    let mut clock = tokio::time::interval(PACE);
    clock.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        clock.tick().await;
        let committed = app.handle.store_status().commits;
        let changed = happened(&mut events, viewer) | (sees_all && committed != commits);
        commits = committed;
        quiet = if changed { 0 } else { quiet + 1 };
        let due = changed || quiet % LOOKS == 0;
        if due
            && sender
                .send(Ok(Event::default().event("changed").data("1")))
                .await
                .is_err()
        {
            return;
        }
    }
}

/// Whether there was any event for whoever looks since the last time.
fn happened(events: &mut Receiver<HostEvent>, viewer: &Viewer) -> bool {
    let mut any = false;
    loop {
        match events.try_recv() {
            Ok(event) => any |= viewer.may_hear(&event),
            Err(TryRecvError::Lagged(_)) => any = true,
            Err(TryRecvError::Empty | TryRecvError::Closed) => return any,
        }
    }
}
