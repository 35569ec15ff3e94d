//! A store that fails on request: for tests of whoever stands above a store. Everything else goes
//! to the store behind it. It never fails by chance, so a test that uses it says when.
//!
//! Neighbours: [`crate::memory`] usually stands behind it. What a real disk does is shown
//! elsewhere, by fail points.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use oncue_core::message::{Body, Message, MessageId, Sequence};
use oncue_core::names::QueueName;
use oncue_core::time::Timestamp;
use oncue_core::unit_of_work::{Chain, LeaseToken, OwnerId, Revision, Unit};
use parking_lot::Mutex;

use crate::{
    Browse, Browsed, ChangeSink, Commit, CommitAnswer, CommitError, Due, KnownKey, Page, Recovered,
    StopReason, Store, StoreError, StoreStatus, Take,
};

/// A store with another behind it, and the faults that were ordered.
pub struct Faulty {
    behind: Arc<dyn Store>,
    orders: Mutex<Orders>,
}

#[derive(Default)]
struct Orders {
    sink: Option<Arc<dyn ChangeSink>>,
    /// Fates of the next commits, one each, in order.
    fates: VecDeque<Fate>,
    /// Commits that wait, when commits stall.
    stalled: Option<VecDeque<(Unit, CommitAnswer)>>,
    reads: Option<StoreError>,
    full: bool,
    pipelines: bool,
    /// What happens right after the next take that finds nothing.
    after_empty: Option<Box<dyn FnOnce() + Send>>,
}

enum Fate {
    Refused(CommitError),
    AnswerLost,
}

impl Faulty {
    /// Nothing fails until it is told to.
    pub fn new(behind: Arc<dyn Store>) -> Self {
        Self {
            behind,
            orders: Mutex::new(Orders::default()),
        }
    }

    /// The next commit that has no fate yet is refused with `error` and not applied.
    pub fn refuse_commit(&self, error: CommitError) {
        self.orders.lock().fates.push_back(Fate::Refused(error));
    }

    /// The next commit that has no fate yet is applied, but answered [`CommitError::Unknown`], as
    /// after a failed sync of what turns out to be there.
    pub fn lose_answer(&self) {
        self.orders.lock().fates.push_back(Fate::AnswerLost);
    }

    /// From now on it says that it pays to submit units ahead ([`Store::pipelines`]), or does not.
    pub fn set_pipelines(&self, pipelines: bool) {
        self.orders.lock().pipelines = pipelines;
    }

    /// From now on commits wait: they are neither applied nor answered.
    pub fn stall(&self) {
        self.orders.lock().stalled.get_or_insert_default();
    }

    /// How many commits wait.
    pub fn stalled(&self) -> usize {
        self.orders.lock().stalled.as_ref().map_or(0, VecDeque::len)
    }

    /// Applies and answers the first commit that waits. False when none does. Blocks for as long as
    /// the store behind needs; not for use inside an async runtime unless that is the memory store.
    pub fn resume_one(&self) -> bool {
        let first = self
            .orders
            .lock()
            .stalled
            .as_mut()
            .and_then(VecDeque::pop_front);
        let Some((unit, answer)) = first else {
            return false;
        };
        answer.send(self.apply(unit).wait());
        true
    }

    /// Commits wait no longer; those that did are applied and answered in their order. Blocks as
    /// [`Faulty::resume_one`].
    pub fn resume(&self) {
        while self.resume_one() {}
        self.orders.lock().stalled = None;
    }

    /// From now on every read and take fails with `error`; `None` ends that.
    pub fn fail_reads(&self, error: Option<StoreError>) {
        self.orders.lock().reads = error;
    }

    /// Calls `then` once, right after the next take that finds nothing: for what happens before
    /// whoever took knows it.
    pub fn after_empty_take(&self, then: impl FnOnce() + Send + 'static) {
        self.orders.lock().after_empty = Some(Box::new(then));
    }

    /// What a take has found; an empty one calls what was ordered for it.
    fn found(&self, taken: Vec<Message>) -> Vec<Message> {
        let then = match taken.is_empty() {
            true => self.orders.lock().after_empty.take(),
            false => None,
        };
        if let Some(then) = then {
            then();
        }
        taken
    }

    /// From now on the disk is full, or has room again: units that put are refused, and
    /// the sink is told.
    pub fn set_full(&self, full: bool) {
        let sink = {
            let mut orders = self.orders.lock();
            if std::mem::replace(&mut orders.full, full) == full {
                return;
            }
            orders.sink.clone()
        };
        if let Some(sink) = sink {
            sink.stopped(full.then_some(StopReason::Full));
        }
    }

    fn apply(&self, unit: Unit) -> Commit {
        // One that is undone with its chain has no fate of its own.
        if unit.is_undone() {
            return Commit::done(Err(CommitError::Undone));
        }
        let (fate, full) = {
            let mut orders = self.orders.lock();
            (orders.fates.pop_front(), orders.full)
        };
        match fate {
            Some(Fate::Refused(error)) => Commit::refused(&unit, error),
            Some(Fate::AnswerLost) => {
                let chain = unit.chain.clone();
                let applied = self.behind.commit(unit).wait();
                if let Some(chain) = chain {
                    chain.cut();
                }
                let lost = CommitError::Unknown("the sync failed".to_owned());
                Commit::done(applied.and(Err(lost)))
            }
            None if full && !unit.puts.is_empty() => Commit::refused(&unit, CommitError::Full),
            None => self.behind.commit(unit),
        }
    }

    fn readable(&self) -> Result<&dyn Store, StoreError> {
        self.orders
            .lock()
            .reads
            .clone()
            .map_or(Ok(&*self.behind), Err)
    }
}

impl Store for Faulty {
    fn attach(&self, sink: Arc<dyn ChangeSink>) {
        self.orders.lock().sink = Some(sink.clone());
        self.behind.attach(sink);
    }

    fn recovered(&self) -> Recovered {
        self.behind.recovered()
    }

    fn take_recovered(&self) -> Recovered {
        self.behind.take_recovered()
    }

    fn next_id(&self) -> MessageId {
        self.behind.next_id()
    }

    fn take(&self, take: &Take) -> Result<Vec<Message>, StoreError> {
        let taken = self.readable()?.take(take)?;
        Ok(self.found(taken))
    }

    fn take_early(&self, take: &Take, chain: &Chain) -> Result<Vec<Message>, StoreError> {
        let taken = self.readable()?.take_early(take, chain)?;
        Ok(self.found(taken))
    }

    fn has_early(&self, owner: OwnerId) -> bool {
        self.behind.has_early(owner)
    }

    fn release(&self, owner: OwnerId, messages: &[(QueueName, Sequence)]) {
        self.behind.release(owner, messages);
    }

    fn commit(&self, unit: Unit) -> Commit {
        if let Some(stalled) = &mut self.orders.lock().stalled {
            let (answer, commit) = Commit::pending(&unit);
            stalled.push_back((unit, answer));
            return commit;
        }
        self.apply(unit)
    }

    fn pipelines(&self) -> bool {
        self.orders.lock().pipelines
    }

    fn claim_due(
        &self,
        owner: OwnerId,
        now: Timestamp,
        max: usize,
    ) -> Result<Vec<Due>, StoreError> {
        self.readable()?.claim_due(owner, now, max)
    }

    fn next_due(&self) -> Option<Timestamp> {
        self.behind.next_due()
    }

    fn take_leased(
        &self,
        owner: OwnerId,
        token: LeaseToken,
    ) -> Result<(QueueName, Message), StoreError> {
        self.readable()?.take_leased(owner, token)
    }

    fn take_any(
        &self,
        owner: OwnerId,
        queue: &QueueName,
        id: MessageId,
    ) -> Result<Option<Message>, StoreError> {
        self.readable()?.take_any(owner, queue, id)
    }

    fn browse(&self, browse: &Browse) -> Result<Page, StoreError> {
        self.readable()?.browse(browse)
    }

    fn find(&self, queue: &QueueName, id: MessageId) -> Result<Option<Browsed>, StoreError> {
        self.readable()?.find(queue, id)
    }

    fn read_body(&self, body: &Body, offset: u64, length: u64) -> Result<Bytes, StoreError> {
        self.readable()?.read_body(body, offset, length)
    }

    fn oldest(&self, queue: &QueueName, priority: u8) -> Option<Timestamp> {
        self.behind.oldest(queue, priority)
    }

    fn key(
        &self,
        queue: &QueueName,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<KnownKey>, StoreError> {
        self.readable()?.key(queue, key, now)
    }

    fn state(&self, namespace: &str, key: &str) -> Result<Option<(Bytes, Revision)>, StoreError> {
        self.readable()?.state(namespace, key)
    }

    fn state_keys(
        &self,
        namespace: &str,
        after: Option<&str>,
        max: usize,
    ) -> Result<Vec<String>, StoreError> {
        self.readable()?.state_keys(namespace, after, max)
    }

    fn tasks(&self, before: Option<u64>, max: usize) -> Result<Vec<(u64, Bytes)>, StoreError> {
        self.readable()?.tasks(before, max)
    }

    fn status(&self) -> StoreStatus {
        let mut status = self.behind.status();
        if self.orders.lock().full {
            status.stopped = status.stopped.or(Some(StopReason::Full));
        }
        status
    }

    fn close(&self) {
        self.resume();
        self.behind.close();
    }
}

#[cfg(test)]
mod tests {
    use oncue_core::message::Header;
    use oncue_core::unit_of_work::{Put, RecordChange, RecordKind, StateWrite};

    use super::*;
    use crate::memory::MemoryStore;

    fn store() -> Faulty {
        Faulty::new(Arc::new(MemoryStore::new(1, u64::MAX)))
    }

    fn write(key: &str) -> Unit {
        let write = StateWrite {
            namespace: "n".to_owned(),
            key: key.to_owned(),
            value: Some(Bytes::from("v")),
        };
        Unit {
            writes: vec![write],
            ..Unit::default()
        }
    }

    fn is_there(store: &Faulty, key: &str) -> bool {
        store.state("n", key).expect("reads work").is_some()
    }

    #[test]
    fn a_refused_commit_is_not_applied_and_the_next_one_is() {
        let store = store();
        store.refuse_commit(CommitError::Fenced);
        assert_eq!(store.commit(write("a")).wait(), Err(CommitError::Fenced));
        assert!(!is_there(&store, "a"));
        assert!(store.commit(write("a")).wait().is_ok());
        assert!(is_there(&store, "a"));
    }

    #[test]
    fn a_commit_whose_answer_is_lost_is_applied() {
        let store = store();
        store.lose_answer();
        let answer = store.commit(write("a")).wait();
        assert!(matches!(answer, Err(CommitError::Unknown(_))), "{answer:?}");
        assert!(is_there(&store, "a"));
    }

    #[test]
    fn stalled_commits_are_applied_in_order_when_resumed() {
        let store = store();
        store.stall();
        let commits = ["a", "b", "c"].map(|key| store.commit(write(key)));
        assert_eq!((store.stalled(), is_there(&store, "a")), (3, false));
        assert!(store.resume_one());
        assert_eq!(
            (is_there(&store, "a"), is_there(&store, "b")),
            (true, false)
        );
        store.resume();
        let numbers = commits.map(|commit| commit.wait().expect("they are applied").commit);
        assert_eq!(numbers, [1, 2, 3]);
        assert!(!store.resume_one());
        assert!(
            store.commit(write("d")).wait().is_ok(),
            "commits wait no longer"
        );
    }

    #[test]
    fn reads_fail_until_they_are_told_not_to() {
        let store = store();
        let error = StoreError::Unavailable("the disk is away".to_owned());
        store.fail_reads(Some(error.clone()));
        assert_eq!(store.state("n", "a"), Err(error.clone()));
        assert_eq!(store.tasks(None, 1), Err(error));
        store.fail_reads(None);
        assert_eq!(store.state("n", "a"), Ok(None));
    }

    fn put_of(id: MessageId) -> Put {
        let header = Header {
            id,
            correlation_id: None,
            reply_to: None,
            group: None,
            group_sequence: None,
            priority: 4,
            persistent: true,
            content_type: None,
            properties: Vec::new(),
            put_time: Timestamp(1),
            expires: None,
            hop_count: 0,
            put_by: None,
            size: 0,
        };
        Put {
            queue: "q".parse().expect("a name"),
            header,
            body: Bytes::new(),
            due: None,
            dead_letter: None,
            key: None,
            max_depth: None,
        }
    }

    #[derive(Default)]
    struct Stops(Mutex<Vec<Option<StopReason>>>);

    impl ChangeSink for Stops {
        fn changed(&self, _: &QueueName, _: &oncue_core::queue::Counts) {}

        fn stopped(&self, why: Option<StopReason>) {
            self.0.lock().push(why);
        }
    }

    #[test]
    fn a_full_store_refuses_puts_only_and_says_so() {
        let store = store();
        let sink = Arc::new(Stops::default());
        store.attach(sink.clone());
        let row = RecordChange {
            kind: RecordKind::Queue,
            name: "q".to_owned(),
            value: Some(Bytes::new()),
        };
        let made = store
            .commit(Unit {
                records: vec![row],
                ..Unit::default()
            })
            .wait();
        assert!(made.is_ok());
        let put = |store: &Faulty| Unit {
            puts: vec![put_of(store.next_id())],
            ..Unit::default()
        };
        store.set_full(true);
        store.set_full(true);
        assert_eq!(store.commit(put(&store)).wait(), Err(CommitError::Full));
        assert!(store.commit(write("a")).wait().is_ok());
        assert_eq!(store.status().stopped, Some(StopReason::Full));
        store.set_full(false);
        assert!(store.commit(put(&store)).wait().is_ok());
        assert_eq!(*sink.0.lock(), [Some(StopReason::Full), None]);
    }
}
