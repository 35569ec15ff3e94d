//! Groups as everybody sees them: the durable tally, and over it who has members in hand and which
//! members are not persistent. The rule is that of the reference model
//! (`oncue_core::queue::model`).
//!
//! A group is in memory while somebody has a member in hand or a member is not persistent, and
//! otherwise only for speed. Counts move by the numbers of the tally; members are walked only where
//! a set-back member that is not persistent stands between persistent ones.

use std::collections::{BTreeMap, BTreeSet};

use fjall::Snapshot;
use oncue_core::message::PRIORITIES;
use oncue_core::queue::Counts;
use oncue_core::unit_of_work::OwnerId;

use super::codec::{Home, IndexRow, TallyRow};
use super::engine::Engine;
use super::facts::{Facts, Standing};
use super::fill::read_sequences;
use super::index::Index;
use super::layout::{self, Key, QueueNo, Space, Stand};
use super::window::Window;
use crate::StoreError;

/// Groups kept in memory for speed only.
const IDLE_GROUPS: usize = 4096;

/// A group of a queue.
#[derive(Debug)]
pub(super) struct Group {
    queue: QueueNo,
    name: std::sync::Arc<str>,
    /// Persistent members, as if nobody had taken any.
    pub(super) tally: TallyRow,
    /// Persistent free members by arrival.
    pub(super) free: Window<u64, IndexRow>,
    /// Persistent members that are set back, by arrival.
    pub(super) set_back: Window<u64, ()>,
    hands: BTreeMap<OwnerId, usize>,
    /// Of the persistent free members, those in hand.
    taken_free: i64,
    /// Of the persistent leased members, those in hand.
    taken_leased: i64,
    loose_free: BTreeMap<u64, u8>,
    loose_set_back: BTreeSet<u64>,
    loose_leased: i64,
    /// What it adds to its queue's counts.
    listed: Counts,
}

impl Group {
    fn new(queue: QueueNo, name: std::sync::Arc<str>, tally: TallyRow) -> Self {
        let listed = tally.counts();
        Self {
            queue,
            name,
            free: Window::unread_from(tally.first.map(|(first, _)| first)),
            set_back: Window::unread_from(tally.barrier),
            tally,
            hands: BTreeMap::new(),
            taken_free: 0,
            taken_leased: 0,
            loose_free: BTreeMap::new(),
            loose_set_back: BTreeSet::new(),
            loose_leased: 0,
            listed,
        }
    }

    fn leases(&self) -> i64 {
        self.tally.leased - self.taken_leased + self.loose_leased
    }

    /// True when a member is taken, claimed or leased.
    fn is_in_hand(&self) -> bool {
        !self.hands.is_empty() || self.leases() > 0
    }

    fn is_idle(&self) -> bool {
        self.hands.is_empty()
            && self.loose_free.is_empty()
            && self.loose_set_back.is_empty()
            && self.loose_leased == 0
    }

    /// The first member that is set back, nothing being in hand.
    fn barrier(&self) -> u64 {
        let loose = self.loose_set_back.first().copied();
        [self.tally.barrier, loose]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(u64::MAX)
    }

    /// The member that anyone may take.
    pub(super) fn open(&self) -> Option<u64> {
        if self.is_in_hand() {
            return None;
        }
        let persistent = self.tally.first.map(|(first, _)| first);
        let loose = self.loose_free.first_key_value().map(|(first, _)| *first);
        let first = [persistent, loose].into_iter().flatten().min();
        first.filter(|first| *first < self.barrier())
    }

    /// Whether a free member is ready; else it is held.
    pub(super) fn is_ready(&self, sequence: u64) -> bool {
        !self.is_in_hand() && sequence < self.barrier()
    }

    /// What it adds to its queue's counts now.
    fn list(&self, engine: &Engine, view: &Snapshot) -> Result<Counts, StoreError> {
        let loose_free = i64::try_from(self.loose_free.len()).unwrap_or(i64::MAX);
        let free = self.tally.free.iter().sum::<i64>() - self.taken_free + loose_free;
        if self.is_in_hand() {
            return Ok(Counts {
                group_held: free,
                ..Counts::default()
            });
        }
        let barrier = self.barrier();
        let mut ready = if Some(barrier) == self.tally.barrier || barrier == u64::MAX {
            self.tally.ahead
        } else {
            count_ahead(
                engine,
                view,
                self.queue,
                &self.name,
                &self.tally.free,
                barrier,
            )?
        };
        for (_, priority) in self.loose_free.range(..barrier) {
            add(&mut ready, *priority, 1);
        }
        let held = free - ready.iter().sum::<i64>();
        Ok(Counts {
            ready,
            group_held: held,
            ..Counts::default()
        })
    }
}

/// Adds to the count of one priority.
pub(super) fn add(counts: &mut [i64; PRIORITIES], priority: u8, change: i64) {
    *counts
        .get_mut(usize::from(priority))
        .expect("priorities were bounded at the put") += change;
}

/// Of the free members on disk (`all`, by priority) those before `barrier`. Walks from both ends of
/// the shorter side's luck: in the usual cases the barrier stands before the first member or behind
/// the last.
pub(super) fn count_ahead(
    engine: &Engine,
    view: &Snapshot,
    queue: QueueNo,
    name: &str,
    all: &[i64; PRIORITIES],
    barrier: u64,
) -> Result<[i64; PRIORITIES], StoreError> {
    let key = |sequence| layout::in_group(Stand::Free, queue, name, sequence);
    let mut before = engine
        .scan(view, Space::Group, &key(0), &key(barrier))
        .rev();
    let mut behind = engine.scan(view, Space::Group, &key(barrier), &key(u64::MAX));
    let mut ahead = [0; PRIORITIES];
    let mut rest = *all;
    loop {
        match before.next() {
            None => return Ok(ahead),
            Some(row) => {
                let (key, record) = row?;
                add(
                    &mut ahead,
                    record.decode::<IndexRow>(Space::Group, &key)?.priority,
                    1,
                );
            }
        }
        match behind.next() {
            None => return Ok(rest),
            Some(row) => {
                let (key, record) = row?;
                add(
                    &mut rest,
                    record.decode::<IndexRow>(Space::Group, &key)?.priority,
                    -1,
                );
            }
        }
    }
}

impl Index {
    /// Brings a message's group into memory, if it has one.
    ///
    /// # Errors
    /// A failed read.
    pub(super) fn load_group(&mut self, engine: &Engine, facts: &Facts) -> Result<(), StoreError> {
        match &facts.group {
            Some(name) => self.group(engine, facts.queue, name).map(drop),
            None => Ok(()),
        }
    }

    /// A group, brought into memory.
    ///
    /// # Errors
    /// A failed read.
    pub(super) fn group(
        &mut self,
        engine: &Engine,
        queue: QueueNo,
        name: &std::sync::Arc<str>,
    ) -> Result<&mut Group, StoreError> {
        let key = layout::tally(queue, name);
        if !self.groups.contains_key(&key) {
            let row = engine.get(&self.view, Space::Group, &key)?;
            let tally = match row {
                Some(record) => record.decode(Space::Group, &key)?,
                None => TallyRow::default(),
            };
            self.groups
                .insert(key.clone(), Group::new(queue, name.clone(), tally));
        }
        Ok(self
            .groups
            .get_mut(&key)
            .expect("it was there or was inserted"))
    }

    fn loaded_group(&mut self, facts: &Facts) -> Option<(Key, &mut Group)> {
        let key = layout::tally(facts.queue, facts.group.as_ref()?);
        let group = self
            .groups
            .get_mut(&key)
            .expect("the caller has loaded the group");
        Some((key, group))
    }

    /// A member comes into the hand of `owner`.
    pub(super) fn join_hand(&mut self, owner: OwnerId, facts: &Facts, standing: &Standing) {
        self.leave_group_loose(facts, standing);
        let Some((key, group)) = self.loaded_group(facts) else {
            return;
        };
        *group.hands.entry(owner).or_default() += 1;
        if facts.persistent {
            group.taken_free += i64::from(standing.home == Home::Free);
            group.taken_leased += i64::from(matches!(standing.home, Home::Leased { .. }));
        }
        self.hands.entry(owner).or_default().insert(key);
    }

    /// A member leaves the hand of `owner`.
    pub(super) fn leave_hand(&mut self, owner: OwnerId, facts: &Facts, standing: &Standing) {
        let Some((key, group)) = self.loaded_group(facts) else {
            return;
        };
        if facts.persistent {
            group.taken_free -= i64::from(standing.home == Home::Free);
            group.taken_leased -= i64::from(matches!(standing.home, Home::Leased { .. }));
        }
        let count = group
            .hands
            .get_mut(&owner)
            .expect("the member came into this hand");
        *count -= 1;
        if *count == 0 {
            group.hands.remove(&owner);
            if let Some(keys) = self.hands.get_mut(&owner) {
                keys.remove(&key);
                if keys.is_empty() {
                    self.hands.remove(&owner);
                }
            }
        }
    }

    /// A member that is not persistent is in nobody's hand.
    pub(super) fn join_group_loose(&mut self, facts: &Facts, standing: &Standing) {
        self.change_group_loose(facts, standing, true);
    }

    fn leave_group_loose(&mut self, facts: &Facts, standing: &Standing) {
        if !facts.persistent {
            self.change_group_loose(facts, standing, false);
        }
    }

    fn change_group_loose(&mut self, facts: &Facts, standing: &Standing, joins: bool) {
        let (sequence, priority) = (facts.sequence, facts.priority);
        let Some((_, group)) = self.loaded_group(facts) else {
            return;
        };
        match standing.home {
            Home::Leased { .. } => group.loose_leased += if joins { 1 } else { -1 },
            Home::Free if joins => {
                group.loose_free.insert(sequence, priority);
            }
            Home::Free => {
                group.loose_free.remove(&sequence);
            }
            Home::Waiting(..) | Home::Parked if joins => {
                group.loose_set_back.insert(sequence);
            }
            Home::Waiting(..) | Home::Parked => {
                group.loose_set_back.remove(&sequence);
            }
        }
    }

    /// Brings the queue's counts up to a group's present members.
    pub(super) fn relist(&mut self, engine: &Engine, facts: &Facts) {
        if let Some(name) = &facts.group {
            self.relist_group(engine, &layout::tally(facts.queue, name));
        }
    }

    /// As [`Index::relist`], by key.
    pub(super) fn relist_group(&mut self, engine: &Engine, key: &[u8]) {
        let Some(group) = self.groups.get_mut(key) else {
            return;
        };
        let new = match group.list(engine, &self.view) {
            Ok(counts) => counts,
            Err(error) => {
                // The counts stay as they were: wrong by this group until the restart that the
                // damage calls for.
                tracing::error!(%error, group = &*group.name, "a group cannot be counted");
                return;
            }
        };
        let mut delta = new;
        delta -= &group.listed;
        group.listed = new;
        let queue = group.queue;
        if !delta.is_zero() {
            self.count(queue, &delta);
        }
    }

    /// What `owner` may take of the groups of which it alone has members in hand: priority,
    /// sequence, row.
    ///
    /// # Errors
    /// A failed read.
    pub(super) fn own_firsts(
        &mut self,
        engine: &Engine,
        owner: OwnerId,
        queue: QueueNo,
    ) -> Result<Vec<(u8, u64)>, StoreError> {
        let keys: Vec<Key> = self
            .hands
            .get(&owner)
            .into_iter()
            .flatten()
            .cloned()
            .collect();
        let mut firsts = Vec::new();
        for key in keys {
            let Some(group) = self.groups.get_mut(&key) else {
                continue;
            };
            if group.queue != queue || group.leases() > 0 || group.hands.len() != 1 {
                continue;
            }
            let persistent = first_in(
                engine,
                &self.view,
                queue,
                &group.name,
                Stand::Free,
                &mut group.free,
            )?;
            let persistent = persistent.map(|(sequence, row)| (sequence, row.priority));
            let loose = group
                .loose_free
                .first_key_value()
                .map(|(sequence, priority)| (*sequence, *priority));
            let barrier = first_in(
                engine,
                &self.view,
                queue,
                &group.name,
                Stand::SetBack,
                &mut group.set_back,
            )?;
            let barrier = barrier.map(|(sequence, ())| sequence);
            let barrier = [barrier, group.loose_set_back.first().copied()]
                .into_iter()
                .flatten()
                .min();
            let first = [persistent, loose].into_iter().flatten().min();
            if let Some((sequence, priority)) = first
                && barrier.is_none_or(|barrier| sequence < barrier)
            {
                firsts.push((priority, sequence));
            }
        }
        Ok(firsts)
    }

    /// Drops groups that are in memory for speed only, when there are many. Only between batches.
    pub(super) fn forget_idle_groups(&mut self) {
        if self.groups.len() > IDLE_GROUPS {
            self.groups.retain(|_, group| !group.is_idle());
        }
    }
}

trait FromRecord: Clone {
    fn from_record(key: &[u8], record: &super::codec::Record) -> Result<Self, StoreError>;
}

impl FromRecord for IndexRow {
    fn from_record(key: &[u8], record: &super::codec::Record) -> Result<Self, StoreError> {
        record.decode(Space::Group, key)
    }
}

impl FromRecord for () {
    fn from_record(_: &[u8], _: &super::codec::Record) -> Result<Self, StoreError> {
        Ok(())
    }
}

/// The first member in a window that nobody has taken, read from disk when the window is empty.
fn first_in<V: FromRecord>(
    engine: &Engine,
    view: &Snapshot,
    queue: QueueNo,
    name: &str,
    stand: Stand,
    window: &mut Window<u64, V>,
) -> Result<Option<(u64, V)>, StoreError> {
    loop {
        if let Some((sequence, value)) = window.after(None) {
            return Ok(Some((sequence, value.clone())));
        }
        let Some(unread) = window.unread() else {
            return Ok(None);
        };
        let start = layout::in_group(stand, queue, name, unread);
        let end = layout::in_group(stand, queue, name, u64::MAX);
        let (rows, next) =
            read_sequences(engine, view, Space::Group, &start, &end, V::from_record)?;
        window.fill(rows, next);
    }
}
