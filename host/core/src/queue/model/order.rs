//! Sets of messages in the two orders in which they can be taken.

use std::collections::BTreeSet;

use crate::message::{MAX_PRIORITY, Sequence};

/// A message's place in the order of priority: the inverse priority, then the sequence.
pub(super) type Key = (u8, Sequence);

/// The key of a message of that priority. A priority past the highest counts as the highest.
pub(super) fn key(priority: u8, sequence: Sequence) -> Key {
    (MAX_PRIORITY - priority.min(MAX_PRIORITY), sequence)
}

/// The priority in a key.
pub(super) fn priority(key: Key) -> usize {
    usize::from(MAX_PRIORITY - key.0)
}

/// The keys of one priority.
pub(super) fn of_priority(set: &BTreeSet<Key>, priority: u8) -> impl Iterator<Item = &Key> {
    set.range(key(priority, Sequence(0))..=key(priority, Sequence(u64::MAX)))
}

/// Messages by priority, and within one by arrival.
#[derive(Debug, Default)]
pub(super) struct Order {
    pub(super) by_priority: BTreeSet<Key>,
}

impl Order {
    pub(super) fn insert(&mut self, key: Key) {
        self.by_priority.insert(key);
    }

    pub(super) fn remove(&mut self, key: Key) {
        self.by_priority.remove(&key);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_priority.is_empty()
    }

    fn iter(&self, fifo: bool) -> impl Iterator<Item = Key> {
        let by_priority = (!fifo).then(|| self.by_priority.iter().copied());
        let by_arrival = fifo.then(|| self.by_arrival());
        by_priority
            .into_iter()
            .flatten()
            .chain(by_arrival.into_iter().flatten())
    }

    /// All by arrival alone: of each priority the next, and of those the first.
    fn by_arrival(&self) -> impl Iterator<Item = Key> {
        let mut priorities: Vec<_> = (0..=MAX_PRIORITY)
            .map(|priority| of_priority(&self.by_priority, priority).peekable())
            .collect();
        std::iter::from_fn(move || {
            let first = priorities
                .iter_mut()
                .filter_map(|keys| Some((keys.peek()?.1, keys)));
            let (sequence, keys) = first.min_by_key(|(sequence, _)| *sequence)?;
            keys.next();
            Some((0, sequence))
        })
    }
}

/// The messages of `order` and `more` together, in one of the two orders.
pub(super) fn merged<'a>(
    order: Option<&'a Order>,
    mut more: Vec<Key>,
    fifo: bool,
) -> impl Iterator<Item = Sequence> + 'a {
    if fifo {
        for key in &mut more {
            key.0 = 0;
        }
    }
    more.sort_unstable();
    let mut left = order
        .into_iter()
        .flat_map(move |order| order.iter(fifo))
        .peekable();
    let mut right = more.into_iter().peekable();
    std::iter::from_fn(move || {
        let from_left = match (left.peek(), right.peek()) {
            (Some(l), Some(r)) => l < r,
            (l, _) => l.is_some(),
        };
        let next = if from_left { left.next() } else { right.next() };
        next.map(|key| key.1)
    })
}
