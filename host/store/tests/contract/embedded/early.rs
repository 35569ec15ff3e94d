//! Messages that a task takes before they are durable.
//!
//! The cases say when units are written: in between, what was put waits and can be taken early.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::task::{Context, Wake, Waker};

use oncue_core::message::MessageId;
use oncue_core::names::QueueName;
use oncue_core::unit_of_work::{Chain, Disposition, OwnerId, Unit, Wait};
use oncue_store::embedded::EmbeddedStore;
use oncue_store::{Commit, CommitError, MessageState, Select, Store, Take};

use super::{new_home, open};
use crate::draft::Draft;
use crate::rig::{END, Ending, Harness, Rig, ids, later, next, record, remove, requeue, settle};

/// A store whose commits the case holds up.
struct Held {
    home: tempfile::TempDir,
    store: Arc<parking_lot::Mutex<Option<Arc<EmbeddedStore>>>>,
}

impl Harness for Held {
    fn open(&self) -> Arc<dyn Store> {
        let store = Arc::new(open(self.home.path()));
        *self.store.lock() = Some(store.clone());
        store
    }

    fn reopen(&self, store: Arc<dyn Store>, ending: Ending) -> Arc<dyn Store> {
        *self.store.lock() = None;
        if ending == Ending::Close {
            store.close();
        }
        drop(store);
        self.open()
    }
}

/// One queue, and a task that asks for its messages.
struct Case {
    rig: Rig,
    store: Arc<parking_lot::Mutex<Option<Arc<EmbeddedStore>>>>,
    q: QueueName,
    out: QueueName,
    owner: OwnerId,
    chain: Chain,
}

impl Case {
    /// With commits held up, and the queue followed.
    fn new() -> Self {
        let store = Arc::default();
        let mut rig = Rig::new(Held {
            home: new_home(),
            store: Arc::clone(&store),
        });
        let (q, out) = (rig.define("q"), rig.define("out"));
        let owner = rig.owner();
        let case = Self {
            rig,
            store,
            q,
            out,
            owner,
            chain: Chain::default(),
        };
        assert_eq!(case.take(1), []);
        // From the next unit on that is answered the queue is followed.
        case.rig.commit(Unit::default()).expect("it is empty");
        case.pause(true);
        case
    }

    fn pause(&self, paused: bool) {
        let store = self.store.lock();
        store.as_ref().expect("it is open").pause_commits(paused);
    }

    fn submit(&self, draft: Draft<'_>) -> (MessageId, Commit) {
        let put = draft.into_put();
        let id = put.header.id;
        let unit = Unit {
            puts: vec![put],
            ..Unit::default()
        };
        (id, self.rig.store().commit(unit))
    }

    fn put(&self) -> (MessageId, Commit) {
        self.submit(self.rig.draft(&self.q))
    }

    fn take_for(&self, owner: OwnerId, chain: &Chain, max: usize) -> Vec<MessageId> {
        let take = Take {
            max,
            ..next(&self.q, owner)
        };
        ids(&self.rig.store().take_early(&take, chain).expect("a take"))
    }

    fn take(&self, max: usize) -> Vec<MessageId> {
        self.take_for(self.owner, &self.chain, max)
    }

    fn unit(&self, id: MessageId, disposition: Disposition) -> Unit {
        Unit {
            owner: Some(self.owner),
            settles: vec![settle(&self.q, id, disposition)],
            chain: Some(self.chain.clone()),
            ..Unit::default()
        }
    }

    /// The unit of a handler that puts a message on.
    fn passes_on(&self, id: MessageId) -> Commit {
        let mut unit = self.unit(id, remove());
        unit.puts.push(self.rig.draft(&self.out).into_put());
        self.rig.store().commit(unit)
    }

    /// Holds commits up again once `commit` is answered, and tells then.
    fn pauses_after(&self, commit: &mut Commit) -> Receiver<()> {
        let (answered, answer) = sync_channel(1);
        let store = self.store.lock().clone().expect("it is open");
        let waker = Waker::from(Arc::new(Pauses { store, answered }));
        let polled = Pin::new(commit).poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
        answer
    }

    /// The queue's deletion.
    fn delete(&self) -> Commit {
        self.rig.store().commit(Unit {
            records: vec![record(&self.q, None)],
            ..Unit::default()
        })
    }

    fn syncs(&self) -> u64 {
        self.rig.store().status().syncs
    }
}

#[test]
fn a_put_and_its_settle_share_one_sync_and_the_put_leaves_no_row() {
    let mut case = Case::new();
    let (id, put) = case.put();
    assert_eq!(case.take(9), [id]);
    assert_eq!(case.take(9), [], "it is taken once");
    let passed = case.passes_on(id);
    let (syncs, changes) = (case.syncs(), case.rig.changes());
    case.pause(false);
    put.wait().expect("the put is durable");
    passed.wait().expect("the unit is durable");
    assert_eq!(case.syncs(), syncs + 1);
    assert_eq!(case.rig.changes(), changes + 1, "only of the other queue");
    assert!(case.rig.everything(&case.q).is_empty());
    assert_eq!(case.rig.everything(&case.out).len(), 1);
    assert!(!case.rig.store().has_early(case.owner));
    case.rig.check();
    case.rig.reopen(Ending::Kill);
    assert!(case.rig.everything(&case.q).is_empty());
    assert_eq!(case.rig.everything(&case.out).len(), 1);
}

#[test]
fn what_is_in_hand_when_it_becomes_durable_stays_in_hand() {
    let mut case = Case::new();
    let (id, put) = case.put();
    assert_eq!(case.take(1), [id]);
    assert!(case.rig.store().has_early(case.owner));
    case.pause(false);
    put.wait().expect("the put is durable");
    assert!(!case.rig.store().has_early(case.owner));
    assert_eq!(case.rig.state(&case.q, id), Some(MessageState::InUnit));
    assert_eq!(case.rig.counts(&case.q).in_unit, 1);
    case.rig.check();
    assert_eq!(case.take_for(case.rig.owner(), &Chain::default(), 1), []);
    case.rig.release(case.owner, &case.q, id);
    assert_eq!(case.rig.state(&case.q, id), Some(MessageState::Ready));
    assert_eq!(case.take(1), [id]);
    case.passes_on(id).wait().expect("it can be settled");
    case.rig.check();
    case.rig.reopen(Ending::Kill);
    assert!(case.rig.everything(&case.q).is_empty());
}

#[test]
fn a_message_with_a_correlation_id_is_taken_early_like_any_other() {
    let case = Case::new();
    let draft = || case.rig.draft(&case.q).correlation("c");
    let by_correlation = || {
        let take = Take {
            select: Select::Correlation("c".to_owned()),
            ..next(&case.q, case.rig.owner())
        };
        ids(&case.rig.store().take(&take).expect("a take"))
    };
    let (settled, put) = case.submit(draft());
    let (kept, other) = case.submit(draft());
    assert_eq!(by_correlation(), [], "it is not durable");
    assert_eq!(case.take(9), [settled, kept]);
    let passed = case.passes_on(settled);
    case.pause(false);
    for commit in [put, passed, other] {
        commit.wait().expect("it is durable");
    }
    case.rig.check();
    assert_eq!(by_correlation(), [], "one is gone, the other in hand");
    case.rig.release(case.owner, &case.q, kept);
    assert_eq!(by_correlation(), [kept]);
}

#[test]
fn a_put_in_hand_lets_one_batch_go_first_and_no_more() {
    let case = Case::new();
    let (id, put) = case.put();
    assert_eq!(case.take(1), [id]);
    let (_, other) = case.submit(case.rig.draft(&case.out));
    let before = case.syncs();
    case.pause(false);
    other.wait().expect("the put is durable");
    put.wait().expect("it is durable, though nobody settles it");
    assert_eq!(case.syncs(), before + 2);
    case.rig.check();
}

/// Holds commits up again as soon as the answer that it waits for is there.
struct Pauses {
    store: Arc<EmbeddedStore>,
    answered: SyncSender<()>,
}

impl Wake for Pauses {
    fn wake(self: Arc<Self>) {
        self.store.pause_commits(true);
        let _ = self.answered.try_send(());
    }
}

#[test]
fn an_empty_unit_of_the_chain_is_answered_after_the_messages_that_it_follows() {
    let case = Case::new();
    let (id, put) = case.put();
    assert_eq!(case.take(1), [id]);
    let mut asked = case.rig.store().commit(Unit {
        chain: Some(case.chain.clone()),
        ..Unit::default()
    });
    let answer = case.pauses_after(&mut asked);
    case.pause(false);
    answer.recv().expect("it is answered");
    asked.wait().expect("nothing was refused");
    assert!(!case.rig.store().has_early(case.owner), "it is durable");
    assert_eq!(case.rig.state(&case.q, id), Some(MessageState::InUnit));
    case.pause(false);
    put.wait().expect("the put is durable");
    case.rig.check();
}

#[test]
fn nothing_overtakes_a_put_that_waits_for_who_has_its_message() {
    let case = Case::new();
    let (one, first) = case.put();
    assert_eq!(case.take(1), [one]);
    let (two, mut second) = case.submit(case.rig.draft(&case.q).key("k", None, END));
    let answer = case.pauses_after(&mut second);
    case.pause(false);
    answer.recv().expect("it is answered");
    case.rig.release(case.owner, &case.q, one);
    assert_eq!(case.rig.take_ids(&case.q, case.owner, 9), [one, two]);
    case.pause(false);
    first.wait().expect("the put is durable");
    case.rig.check();
}

#[test]
fn what_was_put_before_the_first_early_take_is_not_overtaken() {
    let case = Case::new();
    let draft = || case.rig.draft(&case.out);
    let take = || {
        let take = Take {
            max: 9,
            ..next(&case.out, case.owner)
        };
        ids(&case
            .rig
            .store()
            .take_early(&take, &case.chain)
            .expect("a take"))
    };
    let (one, first) = case.submit(draft());
    assert_eq!(take(), [], "the queue was not followed");
    let (two, second) = case.submit(draft());
    assert_eq!(take(), [], "the first one comes before it");
    case.pause(false);
    first.wait().expect("the put is durable");
    second.wait().expect("the put is durable");
    case.pause(true);
    let (three, third) = case.submit(draft());
    assert_eq!(take(), [one, two, three]);
    case.pause(false);
    third.wait().expect("the put is durable");
    case.rig.check();
}

#[test]
fn what_is_given_back_before_it_is_durable_is_the_next_again() {
    let mut case = Case::new();
    let (one, first) = case.put();
    let (two, second) = case.put();
    assert_eq!(case.take(1), [one]);
    let stranger = case.rig.owner();
    case.rig.release(stranger, &case.q, one);
    assert_eq!(case.take_for(stranger, &case.chain, 1), [two]);
    case.rig.release(case.owner, &case.q, one);
    assert_eq!(case.take_for(stranger, &case.chain, 1), [one]);
    case.rig.release(stranger, &case.q, one);
    case.rig.release(stranger, &case.q, two);
    case.pause(false);
    first.wait().expect("the put is durable");
    second.wait().expect("the put is durable");
    case.rig.check();
    assert_eq!(case.rig.counts(&case.q).ready[4], 2);
    case.rig.reopen(Ending::Kill);
    assert_eq!(case.rig.take_ids(&case.q, stranger, 9), [one, two]);
}

#[test]
fn a_refused_put_undoes_the_chain_of_who_has_taken_it() {
    let case = Case::new();
    let gone = case.delete();
    let (id, put) = case.put();
    assert_eq!(case.take(1), [id]);
    let passed = case.passes_on(id);
    case.pause(false);
    gone.wait().expect("the queue was empty");
    let refused = put.wait();
    assert_eq!(refused, Err(CommitError::UnknownQueue(case.q.clone())));
    assert_eq!(passed.wait(), Err(CommitError::Undone));
    assert!(case.chain.is_cut() && !case.rig.store().has_early(case.owner));
    assert!(case.rig.everything(&case.out).is_empty());
    case.rig.check();
}

#[test]
fn a_refused_put_undoes_who_has_submitted_nothing_yet() {
    let case = Case::new();
    let gone = case.delete();
    let (id, put) = case.put();
    assert_eq!(case.take(1), [id]);
    case.pause(false);
    gone.wait().expect("the queue was empty");
    put.wait().expect_err("there is no such queue");
    assert!(case.chain.is_cut());
    case.rig.release(case.owner, &case.q, id);
    assert_eq!(case.passes_on(id).wait(), Err(CommitError::Undone));
    case.rig.check();
}

#[test]
fn a_queue_is_not_deleted_under_a_put_that_waits_for_who_has_its_message() {
    let case = Case::new();
    let (id, put) = case.put();
    assert_eq!(case.take(1), [id]);
    let gone = case.delete();
    case.pause(false);
    assert_eq!(gone.wait(), Err(CommitError::QueueNotEmpty(case.q.clone())));
    put.wait().expect("the put is durable");
    assert!(!case.chain.is_cut());
    case.rig.check();
}

#[test]
fn an_early_message_that_failed_is_retried_parked_or_moved_like_any_other() {
    let case = Case::new();
    let to_out = Disposition::Move {
        to: case.out.clone(),
        record: None,
        attempts: oncue_core::message::Attempts::default(),
    };
    let retry = later(Wait::Retry, END);
    let park = Disposition::Park(oncue_core::message::Attempts::default());
    for disposition in [retry, park, requeue(), to_out] {
        case.pause(true);
        let (id, put) = case.put();
        assert_eq!(case.take(1), [id]);
        let unit = case.unit(id, disposition.clone());
        let settled = case.rig.store().commit(unit);
        let (other, behind) = case.submit(case.rig.draft(&case.out));
        case.pause(false);
        put.wait().expect("the put is durable");
        settled.wait().expect("the unit is durable");
        behind.wait().expect("what stands behind it is durable");
        case.rig.check();
        let queue = match &disposition {
            Disposition::Move { to, .. } => to,
            _ => &case.q,
        };
        let state = case.rig.state(queue, id);
        let wanted = match disposition {
            Disposition::Later { .. } => MessageState::Waiting(Wait::Retry, END),
            Disposition::Park(_) => MessageState::Parked,
            _ => MessageState::Ready,
        };
        assert_eq!(state, Some(wanted), "{disposition:?}");
        assert!(case.rig.state(&case.out, other).is_some());
        if wanted == MessageState::Ready && *queue == case.q {
            assert_eq!(case.rig.take_and(&case.q, remove()), id);
        }
    }
}

/// Submits a put of one kind.
type Kind<'a> = &'a dyn Fn(&Case) -> (MessageId, Commit);

#[test]
fn only_plain_messages_are_taken_early_and_none_overtakes_another() {
    let key = |case: &Case| {
        let draft = case.rig.draft(&case.q);
        case.submit(draft.key("k", None, END))
    };
    let group = |case: &Case| case.submit(case.rig.draft(&case.q).group("g"));
    let delayed = |case: &Case| case.submit(case.rig.draft(&case.q).due(END));
    let loose = |case: &Case| case.submit(case.rig.draft(&case.q).volatile());
    let large = |case: &Case| {
        let draft = case.rig.draft(&case.q);
        case.submit(draft.body(vec![0_u8; (1 << 20) + 1]))
    };
    let kinds: [Kind; 5] = [&key, &group, &delayed, &loose, &large];
    for kind in kinds {
        let case = Case::new();
        let (before, first) = case.put();
        let (_, special) = kind(&case);
        let (_, behind) = case.put();
        assert_eq!(case.take(9), [before]);
        case.pause(false);
        for commit in [first, special, behind] {
            commit.wait().expect("the put is durable");
        }
        case.rig.check();
        assert_eq!(case.rig.everything(&case.q).len(), 3);
    }
}

#[test]
fn durable_messages_come_before_early_ones_and_a_full_queue_gives_none() {
    let case = Case::new();
    case.pause(false);
    let durable = case.rig.put(&case.q);
    case.pause(true);
    let (early, first) = case.put();
    let (_, second) = case.submit(case.rig.draft(&case.q).max_depth(2));
    assert_eq!(case.take(9), [durable, early]);
    case.pause(false);
    first.wait().expect("the put is durable");
    let refused = second.wait();
    assert!(matches!(refused, Err(CommitError::QueueFull { .. })));
    assert!(!case.chain.is_cut());
    case.rig.check();
}

#[test]
fn takes_by_id_and_closed_stores_know_nothing_of_early_messages() {
    let mut case = Case::new();
    let (id, put) = case.put();
    let take = Take {
        select: Select::Id(id),
        ..next(&case.q, case.owner)
    };
    let found = case.rig.store().take_early(&take, &case.chain);
    assert!(found.expect("a take").is_empty());
    assert_eq!(case.take(1), [id]);
    case.rig.reopen(Ending::Close);
    put.wait().expect("a clean end writes what was submitted");
    assert_eq!(case.rig.take_ids(&case.q, case.owner, 9), [id]);
}

/// What one message of the walk below is to be at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Ready,
    Taken,
    Retried,
}

/// Many orders of puts, takes, settles and returns, with commits held up and let go between them.
#[test]
fn any_order_of_early_takes_leaves_what_it_should() {
    for seed in 0..40 {
        let mut case = Case::new();
        let mut random = fastrand::Rng::with_seed(seed);
        let mut fates: BTreeMap<MessageId, Fate> = BTreeMap::new();
        let mut commits = Vec::new();
        for _ in 0..120 {
            let taken: Vec<_> = fates
                .iter()
                .filter_map(|(id, fate)| (*fate == Fate::Taken).then_some(*id))
                .collect();
            let chosen = random.choice(&taken).copied();
            match (random.u8(0..10), chosen) {
                (0..=3, _) => {
                    let (id, commit) = case.put();
                    fates.insert(id, Fate::Ready);
                    commits.push(commit);
                }
                (4, _) => {
                    let keyed = case
                        .rig
                        .draft(&case.q)
                        .key(&random.u64(..).to_string(), None, END);
                    let (id, commit) = case.submit(keyed);
                    fates.insert(id, Fate::Ready);
                    commits.push(commit);
                }
                (5..=6, _) => {
                    for id in case.take(random.usize(1..4)) {
                        let before = fates.insert(id, Fate::Taken);
                        assert_eq!(before, Some(Fate::Ready), "{id} was taken twice");
                    }
                }
                (7, Some(id)) => {
                    fates.insert(id, Fate::Ready);
                    case.rig.release(case.owner, &case.q, id);
                }
                (8, Some(id)) => match random.bool() {
                    true => {
                        fates.remove(&id);
                        commits.push(case.passes_on(id));
                    }
                    false => {
                        fates.insert(id, Fate::Retried);
                        let unit = case.unit(id, later(Wait::Retry, END));
                        commits.push(case.rig.store().commit(unit));
                    }
                },
                (9, _) => {
                    case.pause(false);
                    for commit in commits.drain(..) {
                        commit.wait().expect("nothing is refused");
                    }
                    case.rig.check();
                    case.pause(random.u8(0..4) > 0);
                }
                _ => {}
            }
        }
        case.pause(false);
        for commit in commits {
            commit.wait().expect("nothing is refused");
        }
        case.rig.check();
        let ending = random.choice([Ending::Kill, Ending::Close]).expect("two");
        case.rig.reopen(ending);
        let found: Vec<_> = case.rig.everything(&case.q);
        assert_eq!(found.len(), fates.len(), "seed {seed}");
        for browsed in found {
            let wanted = match fates.get(&browsed.message.header.id) {
                Some(Fate::Retried) => MessageState::Waiting(Wait::Retry, END),
                Some(_) => MessageState::Ready,
                None => panic!("seed {seed}: a message came back"),
            };
            assert_eq!(browsed.state, wanted, "seed {seed}");
        }
    }
}
