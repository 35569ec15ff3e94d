//! The messages of one queue, their indexes and their counts, kept in step by `insert` and `remove`
//! alone.

use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;

use super::entry::{Entry, Outside};
use super::group::{Group, Stand};
use super::order::{Key, Order, merged, of_priority};
use super::{KnownKey, Selection, State, Want};
use crate::message::{MAX_PRIORITY, MessageId, Sequence};
use crate::queue::Counts;
use crate::quick_hash::QuickMap;
use crate::time::Timestamp;
use crate::unit_of_work::OwnerId;

/// A remembered idempotency key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Remembered {
    pub(super) stands_for: KnownKey,
    pub(super) until: Timestamp,
}

/// Who bears a correlation id of those that anyone may take. Mostly it is one: an order of its own
/// would cost more than the message.
#[derive(Debug)]
enum Bearers {
    One(Key),
    Many(Order),
}

impl Bearers {
    fn insert(&mut self, key: Key) {
        match self {
            Self::One(first) => {
                let mut order = Order::default();
                order.insert(*first);
                order.insert(key);
                *self = Self::Many(order);
            }
            Self::Many(order) => order.insert(key),
        }
    }

    /// Answers whether none is left.
    fn remove(&mut self, key: Key) -> bool {
        match self {
            Self::One(first) => *first == key,
            Self::Many(order) => {
                order.remove(key);
                order.is_empty()
            }
        }
    }
}

/// A queue.
#[derive(Debug, Default)]
pub(super) struct Contents {
    /// In boxes of their own: a map of a million that grows moves no messages.
    entries: QuickMap<Sequence, Box<Entry>>,
    /// Everything in order, for browsing. Made when somebody first browses and kept up until the
    /// queue is empty: few queues are looked at, and each message would pay for it twice.
    everything: Option<BTreeSet<Key>>,
    /// What anyone may take: free messages of no group, and the first of each free group.
    open: Order,
    /// The same, by correlation id. Made when one is first asked for and kept up until the queue is
    /// empty: few queues are ever asked so, and a table of very many texts is a pause for all
    /// whenever it grows.
    correlated: Option<HashMap<String, Bearers>>,
    /// What one owner may take besides: the next of the groups in its hand.
    own: QuickMap<OwnerId, BTreeSet<Key>>,
    /// Of each group and priority the first ready member.
    firsts: BTreeSet<Key>,
    groups: HashMap<String, Group>,
    pub(super) keys: HashMap<String, Remembered>,
    pub(super) counts: Counts,
    /// How the counts differ from what was told.
    untold: Counts,
    /// The counts may differ from what was told, and the model knows it.
    pub(super) is_touched: bool,
}

impl Contents {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn get(&self, sequence: Sequence) -> Option<&Entry> {
        self.entries.get(&sequence).map(AsRef::as_ref)
    }

    pub(super) fn entry(&self, sequence: Sequence) -> &Entry {
        self.get(sequence)
            .expect("an index names only messages that are there")
    }

    /// Every message, in no order.
    pub(super) fn all(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values().map(AsRef::as_ref)
    }

    pub(super) fn find(&self, id: MessageId) -> Option<&Entry> {
        self.get(id.sequence)
            .filter(|entry| entry.message.header.id == id)
    }

    pub(super) fn state(&self, entry: &Entry) -> State {
        let held = |group: &String| !self.groups[group].is_ready(entry.sequence());
        match entry.own_state() {
            State::Ready if entry.message.header.group.as_ref().is_some_and(held) => {
                State::GroupHeld
            }
            state => state,
        }
    }

    /// What the owner of `want` may take, in order, before time and suspicion are looked at.
    pub(super) fn candidates<'a>(
        &'a self,
        want: &Want<'a>,
    ) -> Box<dyn Iterator<Item = Sequence> + 'a> {
        let own = self.own.get(&want.owner);
        let own_keys = || own.into_iter().flatten().copied();
        match want.selection {
            Selection::Next if own.is_none() && !want.fifo => {
                Box::new(self.open.by_priority.iter().map(|key| key.1))
            }
            Selection::Next => Box::new(merged(Some(&self.open), own_keys().collect(), want.fifo)),
            Selection::Id(id) => {
                let may = |key| {
                    self.open.by_priority.contains(&key)
                        || own.is_some_and(|own| own.contains(&key))
                };
                let found = self.find(id).filter(|entry| may(entry.key()));
                Box::new(found.map(Entry::sequence).into_iter())
            }
            Selection::Correlation(wanted) => {
                let bears = |key: &Key| {
                    let header = &self.entry(key.1).message.header;
                    header.correlation_id.as_deref() == Some(wanted)
                };
                let mut keys: Vec<_> = own_keys().filter(bears).collect();
                let correlated = self.correlated.as_ref();
                let correlated = correlated.expect("who takes so has had it made");
                let order = match correlated.get(wanted) {
                    Some(Bearers::One(key)) => {
                        keys.push(*key);
                        None
                    }
                    Some(Bearers::Many(order)) => Some(order),
                    None => None,
                };
                Box::new(merged(order, keys, want.fifo))
            }
        }
    }

    pub(super) fn oldest(&self, from_priority: u8) -> Option<Timestamp> {
        let firsts = (from_priority..=MAX_PRIORITY).flat_map(|priority| {
            let alone = of_priority(&self.open.by_priority, priority).next();
            let grouped = of_priority(&self.firsts, priority).next();
            alone.into_iter().chain(grouped)
        });
        firsts
            .map(|key| self.entry(key.1).message.header.put_time)
            .min()
    }

    pub(super) fn insert(&mut self, entry: Box<Entry>) {
        let (key, stand) = (entry.key(), entry.stand());
        if let Some(everything) = &mut self.everything {
            everything.insert(key);
        }
        let group = entry.message.header.group.clone();
        self.count(&entry, 1);
        self.entries.insert(key.1, entry);
        match group {
            Some(name) => {
                self.groups
                    .entry(name.clone())
                    .or_default()
                    .insert(key, stand);
                self.relist(&name);
            }
            None if stand == Stand::Free => self.open(key),
            None => {}
        }
    }

    pub(super) fn remove(&mut self, sequence: Sequence) -> Box<Entry> {
        let entry = self.entry(sequence);
        let (key, stand) = (entry.key(), entry.stand());
        match entry.message.header.group.clone() {
            Some(name) => {
                self.groups
                    .entry(name.clone())
                    .or_default()
                    .remove(key, stand);
                self.relist(&name);
            }
            None if stand == Stand::Free => self.close(key),
            None => {}
        }
        if let Some(everything) = &mut self.everything {
            everything.remove(&key);
        }
        let entry = self
            .entries
            .remove(&sequence)
            .expect("it was looked up above");
        if self.entries.is_empty() {
            (self.everything, self.correlated) = (None, None);
        }
        self.count(&entry, -1);
        entry
    }

    /// Changes who has a message in hand; answers what is to be known of it before and after.
    pub(super) fn hold(
        &mut self,
        sequence: Sequence,
        holder: Option<OwnerId>,
    ) -> (Outside, Outside) {
        let entry = self.entries.get_mut(&sequence);
        let entry = entry.expect("an index names only messages that are there");
        let before = entry.outside();
        if entry.message.header.group.is_some() {
            let mut entry = self.remove(sequence);
            entry.holder = holder;
            let after = entry.outside();
            self.insert(entry);
            return (before, after);
        }
        // Of no group: it stays where it is, and only its own place in the order changes.
        let (key, was_free) = (entry.key(), entry.stand() == Stand::Free);
        for counts in [&mut self.counts, &mut self.untold] {
            entry.count(counts, entry.own_state(), -1);
        }
        entry.holder = holder;
        for counts in [&mut self.counts, &mut self.untold] {
            entry.count(counts, entry.own_state(), 1);
        }
        let (after, is_free) = (entry.outside(), entry.stand() == Stand::Free);
        match (was_free, is_free) {
            (true, false) => self.close(key),
            (false, true) => self.open(key),
            _ => {}
        }
        (before, after)
    }

    /// Adds a message to the counts, or takes it from them. Free members are counted by their
    /// group's listing.
    fn count(&mut self, entry: &Entry, sign: i64) {
        let is_counted = entry.message.header.group.is_none() || entry.stand() != Stand::Free;
        for counts in [&mut self.counts, &mut self.untold] {
            counts.bytes += sign * entry.bytes();
            if is_counted {
                entry.count(counts, entry.own_state(), sign);
            }
        }
    }

    /// Brings indexes and counts up to a group's present members.
    fn relist(&mut self, name: &str) {
        let group = self
            .groups
            .get_mut(name)
            .expect("the caller has changed it");
        let new = group.list();
        let old = std::mem::replace(&mut group.listed, new.clone());
        if group.is_empty() {
            self.groups.remove(name);
        }
        for counts in [&mut self.counts, &mut self.untold] {
            let ready = counts.ready.iter_mut();
            for (count, (new, old)) in ready.zip(new.ready.iter().zip(old.ready)) {
                *count += new - old;
            }
            counts.group_held += new.held - old.held;
        }
        if new.open != old.open {
            old.open.into_iter().for_each(|key| self.close(key));
            new.open.into_iter().for_each(|key| self.open(key));
        }
        if new.own != old.own {
            if let Some((owner, key)) = old.own
                && let Some(keys) = self.own.get_mut(&owner)
            {
                keys.remove(&key);
                if keys.is_empty() {
                    self.own.remove(&owner);
                }
            }
            if let Some((owner, key)) = new.own {
                self.own.entry(owner).or_default().insert(key);
            }
        }
        if new.firsts != old.firsts {
            for key in &old.firsts {
                self.firsts.remove(key);
            }
            self.firsts.extend(new.firsts);
        }
    }

    /// Has the order for browsing, from now on.
    pub(super) fn line_up(&mut self) {
        let all = || self.entries.values().map(|entry| entry.key()).collect();
        self.everything.get_or_insert_with(all);
    }

    /// Every message behind a place, in the order for browsing.
    pub(super) fn behind(&self, place: Bound<Key>) -> impl Iterator<Item = &Key> {
        let everything = self.everything.as_ref();
        let everything = everything.expect("who browses has had it made");
        everything.range((place, Bound::Unbounded))
    }

    /// Has the index by correlation id, from now on.
    pub(super) fn correlate(&mut self) {
        if self.correlated.is_some() {
            return;
        }
        let mut correlated = HashMap::new();
        for key in &self.open.by_priority {
            if let Some(id) = &self.entry(key.1).message.header.correlation_id {
                bear(&mut correlated, id, *key);
            }
        }
        self.correlated = Some(correlated);
    }

    fn open(&mut self, key: Key) {
        self.open.insert(key);
        if let Some(correlated) = &mut self.correlated
            && let Some(id) = &self.entries[&key.1].message.header.correlation_id
        {
            bear(correlated, id, key);
        }
    }

    fn close(&mut self, key: Key) {
        self.open.remove(key);
        if let Some(correlated) = &mut self.correlated
            && let Some(id) = &self.entries[&key.1].message.header.correlation_id
            && let Some(bearers) = correlated.get_mut(id)
            && bearers.remove(key)
        {
            correlated.remove(id);
        }
    }

    /// How the counts differ from what was last told, which they are from now on.
    pub(super) fn take_untold(&mut self) -> Counts {
        std::mem::take(&mut self.untold)
    }

    /// The counts by the letter of the rule, from the messages alone.
    pub(super) fn recount(&self) -> Counts {
        let mut sum = Counts::default();
        for entry in self.all() {
            let others = || {
                let group = entry.message.header.group.as_ref();
                self.all().filter(move |other| {
                    group.is_some() && other.message.header.group.as_ref() == group
                })
            };
            let held = others().any(|other| match other.stand() {
                Stand::Free => false,
                Stand::InHand(_) => true,
                Stand::SetBack => other.sequence() < entry.sequence(),
            });
            let state = match entry.own_state() {
                State::Ready if held => State::GroupHeld,
                state => state,
            };
            entry.count(&mut sum, state, 1);
            sum.bytes += entry.bytes();
        }
        sum
    }
}

/// Notes that a message bears a correlation id.
fn bear(correlated: &mut HashMap<String, Bearers>, id: &str, key: Key) {
    match correlated.get_mut(id) {
        Some(bearers) => bearers.insert(key),
        None => {
            correlated.insert(id.to_owned(), Bearers::One(key));
        }
    }
}
