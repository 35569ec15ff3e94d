//! Messages that a running task takes before their put is durable, over the store on disk, whose
//! commits the test holds up.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use oncue_core::outcome::CallEnd;
use oncue_core::time::Timestamp;
use oncue_core::unit_of_work::{RecordChange, RecordKind, Unit};
use oncue_manager::tasks::TaskSession;
use oncue_manager::tasks::port::PortError;
use oncue_manager::{ManagerConfig, ManualClock};
use oncue_store::embedded::EmbeddedStore;
use oncue_store::memory::MemoryStore;
use oncue_store::{MessageState, Store};
use tokio::sync::Notify;

use crate::gated::{Ending, GRANTS, Run, at_once, ended, pass_on, plainly, states};
use crate::rig::Rig;
use crate::values::{Pairs, name, on_disk, plain, retry};

/// A put under way.
type Put = Pin<Box<dyn Future<Output = Result<(), String>>>>;

/// A queue `in` with one durable message, `first`, and its task about to begin.
struct Case {
    rig: Rig,
    store: Arc<EmbeddedStore>,
    _home: tempfile::TempDir,
}

impl Case {
    fn new(process: Pairs<'_>, queue: Pairs<'_>) -> Self {
        let (home, store) = on_disk();
        let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
        let unused = Arc::new(MemoryStore::new(1, 1 << 30));
        let rig = Rig::over(ManagerConfig::default(), store.clone(), unused, clock);
        let mut case = Self {
            rig,
            store,
            _home: home,
        };
        case.rig.define("out", &[]);
        let mut attributes = vec![("grants.put", GRANTS), ("grants.browse", "out")];
        attributes.extend_from_slice(process);
        case.rig.plugin("pipe", &attributes, &[("in", queue)]);
        let put = case.submit("first");
        case.ends(put);
        case
    }

    fn submit(&mut self, body: &str) -> Put {
        let handle = self.rig.handle.clone();
        let puts = vec![plain("in", body)];
        Box::pin(async move {
            let answer = handle.put(puts, None).await;
            answer.map(drop).map_err(|error| error.to_string())
        })
    }

    /// Submits a put while commits are held up.
    fn put(&mut self, body: &str) -> Put {
        let mut put = self.submit(body);
        assert_eq!(self.rig.poll(&mut put), None, "it waits for the disk");
        put
    }

    fn ends(&mut self, put: Put) {
        self.rig.drive(put).expect("the put is accepted");
    }

    /// Everything that was submitted is durable.
    fn written(&mut self) {
        let handle = self.rig.handle.clone();
        let puts = vec![plain("out", "last")];
        let put = async move { handle.put(puts, None).await };
        self.rig.drive(put).expect("the put is accepted");
    }
}

#[test]
fn a_running_task_handles_a_message_before_its_put_is_durable() {
    let mut case = Case::new(&[], &[]);
    let over = Arc::new(Notify::new());
    let mut run = Run::patient(&mut case.rig, plainly, over.clone());
    run.go(&mut case.rig);
    case.written();
    run.go(&mut case.rig);
    case.store.pause_commits(true);
    let before = case.store.status();
    let mut puts = Vec::new();
    for body in ["a", "b"] {
        puts.push(case.put(body));
        assert!(!run.go(&mut case.rig), "it waits for the next");
    }
    assert_eq!(run.calls(), ["first", "a", "b"]);
    // Neither the messages nor what came of them can be seen.
    assert_eq!(case.rig.bodies("out"), ["first", "last"]);
    assert_eq!((case.rig.depth("in"), case.rig.waiting()), (0, 0));
    for put in &mut puts {
        assert_eq!(case.rig.poll(put), None, "it is not durable yet");
    }
    case.store.pause_commits(false);
    for put in puts {
        case.ends(put);
    }
    case.written();
    let syncs = case.store.status().syncs - before.syncs;
    assert!(syncs <= 3, "{syncs} syncs for two messages and one more");
    assert_eq!(case.rig.bodies("out"), ["first", "last", "a", "b", "last"]);
    over.notify_one();
    assert!(run.go(&mut case.rig));
    assert_eq!((case.rig.depth("in"), case.rig.waiting()), (0, 0));
    let record = ended(&mut case.rig);
    assert_eq!((record.committed, record.failed), (3, 0));
    case.rig.assert_ledger_empty();
}

#[test]
fn a_task_that_waits_for_its_units_looks_at_what_is_put_meanwhile() {
    let mut case = Case::new(&[], &[]);
    case.store.pause_commits(true);
    let mut run = Run::of(&mut case.rig, plainly);
    assert!(!run.go(&mut case.rig), "its first unit is not durable");
    let put = case.put("a");
    run.go(&mut case.rig);
    assert_eq!(run.calls(), ["first", "a"]);
    case.store.pause_commits(false);
    case.ends(put);
    case.written();
    while !run.go(&mut case.rig) {}
    assert_eq!(case.rig.bodies("out"), ["first", "a", "last"]);
}

#[test]
fn a_guest_that_looks_around_waits_until_its_message_is_durable() {
    fn browses(looked: Arc<AtomicUsize>, session: Arc<TaskSession>, body: String) -> Ending {
        Box::pin(async move {
            let page = session.browse(&name("out"), None, 10).await;
            looked.fetch_add(1, Ordering::SeqCst);
            match page {
                Ok(page) => {
                    let count = page.messages.len().to_string();
                    pass_on(&session, &format!("{body} saw {count}"))
                }
                Err(PortError::Cancelled(_)) => retry(),
                Err(error) => panic!("the browse is granted: {error}"),
            }
        })
    }
    let mut case = Case::new(&[], &[]);
    let over = Arc::new(Notify::new());
    let looked = Arc::new(AtomicUsize::new(0));
    let counts = looked.clone();
    let browses = move |session, body| browses(counts.clone(), session, body);
    let mut run = Run::patient(&mut case.rig, browses, over.clone());
    // The first unit looked around, so it is awaited.
    while run.calls().is_empty() || case.rig.bodies("out").is_empty() {
        run.go(&mut case.rig);
    }
    run.go(&mut case.rig);
    case.store.pause_commits(true);
    let put = case.put("a");
    run.go(&mut case.rig);
    assert_eq!(run.calls(), ["first", "a"]);
    assert_eq!(looked.load(Ordering::SeqCst), 1, "its look waits");
    case.store.pause_commits(false);
    case.ends(put);
    while case.rig.bodies("out").len() < 2 {
        run.go(&mut case.rig);
    }
    assert_eq!(case.rig.bodies("out"), ["first saw 0", "a saw 1"]);
    over.notify_one();
    while !run.go(&mut case.rig) {}
}

#[test]
fn a_guest_whose_message_was_refused_sees_no_more() {
    let mut case = Case::new(&[], &[]);
    let go = Arc::new(Notify::new());
    let seen = Arc::new(AtomicUsize::new(0));
    let (goes, sees) = (go.clone(), seen.clone());
    let looks = move |session: Arc<TaskSession>, body: String| -> Ending {
        if body == "first" {
            return plainly(session, body);
        }
        let (go, seen) = (goes.clone(), sees.clone());
        Box::pin(async move {
            go.notified().await;
            match session.browse(&name("out"), None, 10).await {
                Ok(_) => seen.fetch_add(1, Ordering::SeqCst),
                Err(PortError::Cancelled(_)) => seen.fetch_add(10, Ordering::SeqCst),
                Err(error) => panic!("the browse is granted: {error}"),
            };
            retry()
        })
    };
    let over = Arc::new(Notify::new());
    let mut run = Run::patient(&mut case.rig, looks, over.clone());
    run.go(&mut case.rig);
    case.written();
    run.go(&mut case.rig);
    case.store.pause_commits(true);
    // Beside the manager, so that the put is refused.
    let gone = case.store.commit(Unit {
        records: vec![RecordChange {
            kind: RecordKind::Queue,
            name: "in".to_owned(),
            value: None,
        }],
        ..Unit::default()
    });
    let put = case.put("a");
    run.go(&mut case.rig);
    assert_eq!(run.calls(), ["first", "a"]);
    case.store.pause_commits(false);
    gone.wait().expect("the queue is empty");
    case.rig.drive(put).expect_err("there is no such queue");
    go.notify_one();
    while !run.go(&mut case.rig) {}
    assert_eq!(seen.load(Ordering::SeqCst), 10, "its look is refused");
    let record = ended(&mut case.rig);
    assert_eq!((record.committed, record.failed), (1, 0), "nothing failed");
}

#[test]
fn a_failure_of_an_early_message_is_charged_once_it_is_durable() {
    let fails = |session: Arc<TaskSession>, body: String| match body.as_str() {
        "first" => plainly(session, body),
        _ => at_once(retry()),
    };
    let mut case = Case::new(&[], &[]);
    case.store.pause_commits(true);
    let mut run = Run::of(&mut case.rig, fails);
    run.go(&mut case.rig);
    let put = case.put("a");
    assert!(
        !run.go(&mut case.rig),
        "it counts only after what is under way"
    );
    assert_eq!(run.calls(), ["first", "a"]);
    case.store.pause_commits(false);
    case.ends(put);
    while !run.go(&mut case.rig) {}
    assert!(matches!(
        states(&case.rig, "in").as_slice(),
        [MessageState::Waiting(..)]
    ));
    assert_eq!(case.rig.attempts("in"), (1, 0));
    assert_eq!(case.rig.bodies("out"), ["first"]);
}

#[test]
fn a_task_that_ends_gives_back_what_it_took_early() {
    let mut case = Case::new(&[], &[]);
    case.store.pause_commits(true);
    let stops = |session: Arc<TaskSession>, body: String| {
        if body == "a" {
            session.stop_at_boundary();
            return at_once(CallEnd::HostFailed("of the test".to_owned()));
        }
        plainly(session, body)
    };
    let mut run = Run::of(&mut case.rig, stops);
    run.go(&mut case.rig);
    let put = case.put("a");
    run.go(&mut case.rig);
    case.store.pause_commits(false);
    case.ends(put);
    while !run.go(&mut case.rig) {}
    assert_eq!(states(&case.rig, "in"), [MessageState::Ready]);
    assert_eq!(case.rig.attempts("in"), (0, 0));
}

#[test]
fn tasks_that_must_not_see_ahead_do_not_begin_early() {
    let network: Pairs<'_> = &[("grants.http", "https://example.org")];
    let depth: Pairs<'_> = &[("trigger", "depth"), ("trigger-depth", "1")];
    let every: Pairs<'_> = &[("trigger", "every")];
    for (process, queue) in [(network, &[][..]), (&[][..], depth), (&[][..], every)] {
        let mut case = Case::new(process, queue);
        let mut run = Run::of(&mut case.rig, plainly);
        case.store.pause_commits(true);
        run.go(&mut case.rig);
        let put = case.put("a");
        run.go(&mut case.rig);
        assert_eq!(run.calls(), ["first"], "{process:?} {queue:?}");
        case.store.pause_commits(false);
        case.ends(put);
        while !run.go(&mut case.rig) {}
    }
}
