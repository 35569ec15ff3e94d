//! Drains over a store whose commits are held back by the test, so that "not yet durable" is a
//! state that lasts.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use oncue_core::outcome::CallEnd;
use oncue_manager::ManagerConfig;
use oncue_manager::tasks::port::PortError;
use oncue_manager::tasks::record::TaskRecord;
use oncue_manager::tasks::{CallReport, Delivered, Handler, TaskCost, TaskSession, drain};
use oncue_store::faulty::Faulty;
use oncue_store::{CommitError, MessageState};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::rig::Rig;
use crate::values::{Pairs, plain, report, retry, text};

pub(crate) type Ending = Pin<Box<dyn Future<Output = CallEnd> + Send>>;

/// A handler that may wait.
struct Script<F> {
    session: Arc<TaskSession>,
    handler: F,
    calls: Arc<Mutex<Vec<String>>>,
    /// Told when it has waited long enough for the next message; without it, it never waits.
    patience: Option<Arc<Notify>>,
}

impl<F: FnMut(Arc<TaskSession>, String) -> Ending + Send> Handler for Script<F> {
    async fn call(&mut self, message: &Arc<Delivered>) -> CallReport {
        let body = text(&self.session, message);
        self.calls.lock().push(body.clone());
        report((self.handler)(self.session.clone(), body).await)
    }

    async fn patience(&mut self) {
        if let Some(over) = &self.patience {
            over.notified().await;
        }
    }
}

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A drain that the test steps.
pub(crate) struct Run {
    drain: Pin<Box<dyn Future<Output = ()> + Send>>,
    calls: Arc<Mutex<Vec<String>>>,
}

impl Run {
    /// Begins the oldest started task.
    pub(crate) fn of(
        rig: &mut Rig,
        handler: impl FnMut(Arc<TaskSession>, String) -> Ending + Send + 'static,
    ) -> Self {
        Self::begin(rig, handler, None)
    }

    /// The same for a task that waits for its next message until `over` is told.
    pub(crate) fn patient(
        rig: &mut Rig,
        handler: impl FnMut(Arc<TaskSession>, String) -> Ending + Send + 'static,
        over: Arc<Notify>,
    ) -> Self {
        Self::begin(rig, handler, Some(over))
    }

    fn begin(
        rig: &mut Rig,
        handler: impl FnMut(Arc<TaskSession>, String) -> Ending + Send + 'static,
        patience: Option<Arc<Notify>>,
    ) -> Self {
        let session = rig.next_task();
        let calls = Arc::new(Mutex::new(Vec::new()));
        let mut script = Script {
            session: session.clone(),
            handler,
            calls: calls.clone(),
            patience,
        };
        let own = session.clone();
        let drain = Box::pin(async move {
            drain::drain(&own, &mut script).await;
            own.finish(TaskCost::default());
        });
        Self { drain, calls }
    }

    /// Runs it until it waits for something; true when it has ended.
    pub(crate) fn go(&mut self, rig: &mut Rig) -> bool {
        let ended = self.go_alone(rig);
        rig.settle();
        ended
    }

    /// The same while the manager takes no turn.
    pub(crate) fn go_alone(&mut self, rig: &Rig) -> bool {
        for _ in 0..100_000 {
            if let Some(ended) = self.go_on(rig) {
                return ended;
            }
        }
        panic!("the drain does not come to rest");
    }

    /// Runs it until it gives way: none when it only did that, else whether it has ended. The
    /// manager takes no turn.
    pub(crate) fn go_on(&mut self, rig: &Rig) -> Option<bool> {
        let woken = Arc::new(Woken(AtomicBool::new(false)));
        let waker = Waker::from(woken.clone());
        let mut ended = false;
        rig.in_runtime(|| {
            let polled = self.drain.as_mut().poll(&mut Context::from_waker(&waker));
            ended = polled == Poll::Ready(());
        });
        (ended || !woken.0.load(Ordering::SeqCst)).then_some(ended)
    }

    /// The bodies that the handler was called with.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.calls.lock().clone()
    }
}

/// Puts the body to `out`; ends well.
pub(crate) fn pass_on(session: &TaskSession, body: &str) -> CallEnd {
    match session.put(plain("out", body)) {
        Ok(_) => CallEnd::Ok,
        Err(PortError::Full(_)) => retry(),
        Err(error) => panic!("the put is granted: {error}"),
    }
}

pub(crate) fn at_once(end: CallEnd) -> Ending {
    Box::pin(std::future::ready(end))
}

/// The plain handler of these tests.
pub(crate) fn plainly(session: Arc<TaskSession>, body: String) -> Ending {
    at_once(pass_on(&session, &body))
}

pub(crate) const GRANTS: &str = "out,in";

/// A queue `in` with these messages, whose handler may put to `out`; commits are held back from
/// now on.
pub(crate) fn gated(process: Pairs<'_>, queue: Pairs<'_>, bodies: &[&str]) -> (Rig, Arc<Faulty>) {
    let (mut rig, store) = Rig::faulty();
    store.set_pipelines(true);
    rig.define("out", &[]);
    let mut attributes = vec![("grants.put", GRANTS), ("grants.browse", "out")];
    attributes.extend_from_slice(process);
    rig.plugin("pipe", &attributes, &[("in", queue)]);
    let puts = bodies.iter().map(|body| plain("in", body)).collect();
    rig.put_all(puts).unwrap();
    store.stall();
    (rig, store)
}

pub(crate) fn conflict() -> CommitError {
    CommitError::Conflict("of the test".to_owned())
}

/// Each state of a queue's messages.
pub(crate) fn states(rig: &Rig, queue: &str) -> Vec<MessageState> {
    rig.browse(queue).into_iter().map(|one| one.state).collect()
}

/// The host dies with units pending; the next start of it finds what was left, over a store whose
/// commits are held back again.
pub(crate) fn kill(rig: Rig, run: Run, directory: &tempfile::TempDir) -> (Rig, Arc<Faulty>) {
    std::mem::forget(run);
    start_again(rig, directory)
}

pub(crate) fn start_again(rig: Rig, directory: &tempfile::TempDir) -> (Rig, Arc<Faulty>) {
    let memory = Arc::new(rig.memory.restarted(true));
    let clock = rig.clock.clone();
    std::mem::forget(rig);
    let store = Arc::new(Faulty::new(memory.clone()));
    store.set_pipelines(true);
    let config = ManagerConfig {
        in_hand: Some(directory.path().join("in-hand")),
        ..ManagerConfig::default()
    };
    let mut rig = Rig::over(config, store.clone(), memory, clock);
    rig.plugin("pipe", &[("grants.put", GRANTS)], &[("in", &[])]);
    (rig, store)
}

/// The newest record of a task that has ended.
pub(crate) fn ended(rig: &mut Rig) -> TaskRecord {
    let records = rig.records();
    let mut ended = records
        .into_iter()
        .filter(|record| record.outcome.is_some());
    ended.next().expect("a task has ended")
}
