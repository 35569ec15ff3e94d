//! The rules of the model by their letter: every message is asked, whatever time it takes.

use super::super::contents::Contents;
use super::super::entry::{Entry, Home};
use super::super::{Model, Selection, State, Want};
use crate::message::{MAX_PRIORITY, Sequence};
use crate::names::QueueName;
use crate::time::Timestamp;

impl Entry {
    pub(super) fn is_in_hand(&self) -> bool {
        self.holder.is_some() || matches!(self.home, Home::Leased { .. })
    }

    fn is_free(&self) -> bool {
        self.holder.is_none() && self.home == Home::Free
    }
}

/// The other members of a message's group.
pub(super) fn group_of<'a>(
    contents: &'a Contents,
    entry: &'a Entry,
) -> impl Iterator<Item = &'a Entry> {
    let group = entry.message.header.group.as_ref();
    contents.all().filter(move |other| {
        group.is_some()
            && other.message.header.group.as_ref() == group
            && other.sequence() != entry.sequence()
    })
}

/// What a take gives, by the letter of the rule: every message is asked, then they are put in
/// order.
pub(super) fn literal_take(model: &Model, want: &Want<'_>) -> Vec<Sequence> {
    let contents = &model.queues[want.queue];
    let may_be_taken = |entry: &&Entry| {
        let others = || group_of(contents, entry);
        let wanted = match want.selection {
            Selection::Next => true,
            Selection::Id(id) => entry.message.header.id == id,
            Selection::Correlation(id) => {
                entry.message.header.correlation_id.as_deref() == Some(id)
            }
        };
        // In hand of nobody, or of this owner only; and nobody stands before it who could come
        // first.
        wanted
            && entry.is_free()
            && others().all(|other| !other.is_in_hand() || other.holder == Some(want.owner))
            && others().all(|other| other.is_in_hand() || other.sequence() > entry.sequence())
            && !entry.has_expired(want.now)
            && !(want.skip_suspects && entry.is_suspect())
    };
    let mut takeable: Vec<&Entry> = contents.all().filter(may_be_taken).collect();
    takeable.sort_by_key(|entry| {
        let level = if want.fifo {
            0
        } else {
            MAX_PRIORITY - entry.message.header.priority
        };
        (level, entry.sequence())
    });
    let mut suspects = model.suspects_in_hand;
    takeable.retain(|entry| {
        suspects += usize::from(entry.is_suspect());
        !entry.is_suspect() || suspects == 1
    });
    takeable
        .into_iter()
        .map(Entry::sequence)
        .take(want.max)
        .collect()
}

/// What a browse shows, by the letter of the rule: all that has not expired, by state, priority and
/// arrival.
pub(super) fn literal_browse(
    model: &Model,
    queue: &QueueName,
    now: Timestamp,
    ready_only: bool,
) -> Vec<Sequence> {
    let contents = &model.queues[queue];
    let section = |entry: &Entry| match contents.state(entry) {
        State::Ready => 0,
        State::InUnit => 1,
        State::Leased(_) => 2,
        State::Waiting(..) => 3,
        State::GroupHeld => 4,
        State::Parked => 5,
    };
    let shown = |entry: &&Entry| !entry.has_expired(now) && (!ready_only || section(entry) == 0);
    let mut shown: Vec<&Entry> = contents.all().filter(shown).collect();
    shown.sort_by_key(|entry| {
        let inverse = MAX_PRIORITY - entry.message.header.priority;
        (section(entry), inverse, entry.sequence())
    });
    shown.into_iter().map(Entry::sequence).collect()
}
