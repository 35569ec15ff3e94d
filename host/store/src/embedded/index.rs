//! What the store knows in memory: queues with their counts, the fronts of the indexes, who holds
//! what.
//!
//! Its size follows queues, messages in hand and window bounds, never the number of messages on
//! disk. It is exactly as new as `view`, the engine's snapshot taken when the last batch was
//! applied: rows that a batch under way has written are not met. Neighbours: `group.rs` (groups),
//! `select.rs` (takes and claims), `look.rs` (single messages), `apply.rs` (what commits change).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use fjall::Snapshot;
use oncue_core::message::{DeadLetter, Header, PRIORITIES, Sequence};
use oncue_core::names::QueueName;
use oncue_core::queue::{Counts, SparseCounts};
use oncue_core::time::Timestamp;
use oncue_core::unit_of_work::OwnerId;

use super::codec::{Address, Home, IndexRow};
use super::engine::Engine;
use super::facts::{Facts, Held, Standing, own_counts};
use super::group::Group;
use super::layout::{self, Key, QueueNo, Space};
use super::recent::Recent;
use super::sealed::Numbers;
use super::warm::Warm;
use super::window::Window;
use crate::{ChangeSink, KnownKey, StoreError};
use oncue_core::quick_hash::{QuickMap, QuickSet};

/// Rows in memory in all windows of lanes together, about; each takes some 150 bytes.
const LOADED_ROWS_MAX: usize = 512 * 1024;

/// What a window may hold when there are more.
const NARROW_ROWS: usize = 16;

/// A message that is not persistent.
#[derive(Clone, Debug)]
pub(super) struct LooseMessage {
    pub(super) facts: Facts,
    pub(super) standing: Standing,
    pub(super) header: Header,
    pub(super) body: Bytes,
    pub(super) dead_letter: Option<Box<DeadLetter>>,
}

/// All that is not persistent.
#[derive(Debug, Default)]
pub(super) struct Loose {
    pub(super) messages: QuickMap<u64, LooseMessage>,
    pub(super) due: BTreeSet<(u64, u64)>,
    pub(super) tokens: HashMap<u128, u64>,
    pub(super) bytes: u64,
    pub(super) keys: HashMap<(QueueNo, String), (KnownKey, Timestamp)>,
    pub(super) key_ends: BTreeSet<(Timestamp, QueueNo, String)>,
}

/// The indexes of one queue and priority.
#[derive(Debug, Default)]
pub(super) struct Lane {
    pub(super) ready: Window<u64, IndexRow>,
    pub(super) straggler: Window<u64, IndexRow>,
    pub(super) member: Window<u64, IndexRow>,
    /// Free messages that are not persistent.
    pub(super) loose: BTreeMap<u64, IndexRow>,
}

/// An index of a lane that is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Ready,
    Straggler,
    Member,
}

impl Lane {
    pub(super) fn window(&mut self, kind: Kind) -> &mut Window<u64, IndexRow> {
        match kind {
            Kind::Ready => &mut self.ready,
            Kind::Straggler => &mut self.straggler,
            Kind::Member => &mut self.member,
        }
    }
}

/// A queue.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) name: QueueName,
    /// As everybody sees them.
    pub(super) counts: SparseCounts,
    /// Of persistent messages, as if nobody had taken any: what a restart would find.
    pub(super) durable: SparseCounts,
    pub(super) lanes: [Option<Box<Lane>>; PRIORITIES],
    /// Every message that is not persistent, in the order of a browse.
    pub(super) loose: BTreeSet<(u8, u64)>,
    /// The row on disk has older cursors than memory.
    pub(super) stale: bool,
}

impl Queue {
    pub(super) fn new(name: QueueName) -> Self {
        Self {
            name,
            counts: SparseCounts::default(),
            durable: SparseCounts::default(),
            lanes: [const { None }; PRIORITIES],
            loose: BTreeSet::new(),
            stale: false,
        }
    }

    pub(super) fn lane(&mut self, priority: u8) -> &mut Lane {
        let slot = self
            .lanes
            .get_mut(usize::from(priority))
            .expect("priorities were bounded at the put");
        slot.get_or_insert_default()
    }

    pub(super) fn has_lane(&self, priority: u8) -> bool {
        self.lanes
            .get(usize::from(priority))
            .is_some_and(Option::is_some)
    }
}

/// Everything in memory.
pub(super) struct Index {
    /// Boxed: a table has room for twice as many as there are.
    pub(super) queues: QuickMap<QueueNo, Box<Queue>>,
    pub(super) numbers: Numbers,
    pub(super) held: QuickMap<u64, Held>,
    pub(super) groups: HashMap<Key, Group>,
    /// The groups of which each owner has members in hand.
    pub(super) hands: QuickMap<OwnerId, BTreeSet<Key>>,
    pub(super) due: Window<(u64, u64), Address>,
    pub(super) expiry: Window<(u64, u64), Address>,
    pub(super) loose: Loose,
    /// Given back while the engine was closed; bounded by what is in hand.
    pub(super) late: Vec<(OwnerId, (QueueName, Sequence))>,
    /// The engine as of the last batch that was applied here.
    pub(super) view: Snapshot,
    pub(super) suspects_in_hand: usize,
    /// The highest sequence put since the store was opened.
    pub(super) highest_put: u64,
    /// The latest of them.
    pub(super) recent: Recent,
    pub(super) warm: Warm,
    /// Messages whose rows cannot be read: takes and claims pass over them, looking at them says
    /// why.
    pub(super) damaged: QuickSet<u64>,
    /// Keys that end at or before it are forgotten.
    pub(super) forgotten: Timestamp,
    /// Rows that each window may hold while there is room.
    window_rows: usize,
    /// Rows in the windows of lanes.
    loaded_rows: usize,
    pub(super) sink: Option<Arc<dyn ChangeSink>>,
    untold: BTreeMap<QueueNo, Counts>,
}

impl Index {
    pub(super) fn new(view: Snapshot, window_rows: usize) -> Self {
        Self {
            queues: QuickMap::default(),
            numbers: Numbers::default(),
            held: QuickMap::default(),
            groups: HashMap::new(),
            hands: QuickMap::default(),
            due: Window::default(),
            expiry: Window::default(),
            loose: Loose::default(),
            late: Vec::new(),
            view,
            suspects_in_hand: 0,
            highest_put: 0,
            recent: Recent::default(),
            warm: Warm::default(),
            damaged: QuickSet::default(),
            forgotten: Timestamp(0),
            window_rows: window_rows.max(1),
            loaded_rows: 0,
            sink: None,
            untold: BTreeMap::new(),
        }
    }

    /// Rows that a window may hold now. When all windows together hold many, each keeps little more
    /// than the next take needs: many queues must not bring all their messages into memory.
    pub(super) fn window_rows(&self) -> usize {
        match self.loaded_rows < LOADED_ROWS_MAX {
            true => self.window_rows,
            false => self.window_rows.min(NARROW_ROWS),
        }
    }

    /// Changes a lane's window, and keeps count of the rows in memory.
    pub(super) fn change_window(
        &mut self,
        (number, priority, kind): (QueueNo, u8, Kind),
        change: impl FnOnce(&mut Window<u64, IndexRow>),
    ) {
        let window = self.queue(number).lane(priority).window(kind);
        let before = window.loaded();
        change(window);
        let after = window.loaded();
        self.loaded_rows = (self.loaded_rows + after).saturating_sub(before);
    }

    pub(super) fn queue(&mut self, number: QueueNo) -> &mut Queue {
        self.queues
            .get_mut(&number)
            .map(Box::as_mut)
            .expect("a queue with messages cannot be deleted")
    }

    pub(super) fn number(&self, name: &QueueName) -> Option<QueueNo> {
        self.numbers.get(name)
    }

    /// Changes a queue's counts; the sink hears of it at the next [`Index::tell`].
    pub(super) fn count(&mut self, number: QueueNo, delta: &Counts) {
        self.queue(number).counts += delta;
        *self.untold.entry(number).or_default() += delta;
    }

    /// Tells the sink what has changed since the last time.
    pub(super) fn tell(&mut self) {
        let untold = std::mem::take(&mut self.untold);
        let Some(sink) = &self.sink else { return };
        for (number, delta) in untold {
            if let Some(queue) = self.queues.get(&number)
                && !delta.is_zero()
            {
                sink.changed(&queue.name, &delta);
            }
        }
    }

    /// Takes a message for `owner`: out of what can be taken and of what can come due.
    ///
    /// # Errors
    /// When the group's row cannot be read. Nothing has changed then.
    pub(super) fn hold(
        &mut self,
        engine: &Engine,
        owner: OwnerId,
        facts: Facts,
        standing: Standing,
    ) -> Result<(), StoreError> {
        self.load_group(engine, &facts)?;
        let mut delta = own_counts(&facts, None);
        delta -= &own_counts(&facts, Some(standing.home));
        self.count(facts.queue, &delta);
        if facts.persistent {
            self.warm.remove(facts.sequence);
            self.mark_taken(&facts, &standing);
        } else {
            self.lift_loose(&facts, &standing);
        }
        self.join_hand(owner, &facts, &standing);
        self.suspects_in_hand += usize::from(standing.is_suspect());
        self.relist(engine, &facts);
        let sequence = facts.sequence;
        self.held.insert(
            sequence,
            Held {
                owner,
                committing: false,
                facts,
                standing,
            },
        );
        Ok(())
    }

    /// Ends a hold. The message is in no index until somebody puts it into one.
    pub(super) fn end_hold(&mut self, sequence: u64) -> Option<Held> {
        let held = self.held.remove(&sequence)?;
        self.suspects_in_hand -= usize::from(held.standing.is_suspect());
        self.leave_hand(held.owner, &held.facts, &held.standing);
        Some(held)
    }

    /// Gives a taken message back, as it was and where it was.
    pub(super) fn let_go(&mut self, engine: &Engine, sequence: u64) {
        let Some(Held {
            facts, standing, ..
        }) = self.end_hold(sequence)
        else {
            return;
        };
        let mut delta = own_counts(&facts, Some(standing.home));
        delta -= &own_counts(&facts, None);
        self.count(facts.queue, &delta);
        if facts.persistent {
            self.mark_given_back(&facts, &standing);
        } else {
            self.set_down_loose(&facts, &standing);
        }
        self.relist(engine, &facts);
    }

    pub(super) fn timed(&mut self, space: Space) -> &mut Window<(u64, u64), Address> {
        if space == Space::Due {
            &mut self.due
        } else {
            &mut self.expiry
        }
    }

    fn mark_taken(&mut self, facts: &Facts, standing: &Standing) {
        let sequence = facts.sequence;
        if let Some((space, time)) = standing.due(facts) {
            self.timed(space).take(time);
        }
        let free = standing.home == Home::Free;
        let Some(name) = &facts.group else {
            if free {
                let kind = match standing.placed {
                    true => Kind::Straggler,
                    false => Kind::Ready,
                };
                self.change_window((facts.queue, facts.priority, kind), |window| {
                    window.take(sequence);
                });
            }
            return;
        };
        let group = self
            .groups
            .get_mut(&layout::tally(facts.queue, name))
            .expect("it was loaded");
        if !free {
            if !matches!(standing.home, Home::Leased { .. }) {
                group.set_back.take(sequence);
            }
            return;
        }
        group.free.take(sequence);
        let is_head = group.tally.open().is_some_and(|(head, _)| head == sequence);
        let kind = match is_head {
            true => Kind::Straggler,
            false => Kind::Member,
        };
        self.change_window((facts.queue, facts.priority, kind), |window| {
            window.take(sequence);
        });
    }

    fn mark_given_back(&mut self, facts: &Facts, standing: &Standing) {
        let (sequence, limit) = (facts.sequence, self.window_rows());
        if let Some((space, time)) = standing.due(facts) {
            self.timed(space).give_back(time, facts.address(), limit);
        }
        let row = standing.index_row(facts);
        if let Some(name) = &facts.group {
            let group = self
                .groups
                .get_mut(&layout::tally(facts.queue, name))
                .expect("it was loaded");
            group.set_back.give_back(sequence, (), limit);
            group.free.give_back(sequence, row.clone(), limit);
        }
        if standing.home == Home::Free {
            // Only the index that had it takes it back.
            for kind in [Kind::Ready, Kind::Straggler, Kind::Member] {
                self.change_window((facts.queue, facts.priority, kind), |window| {
                    window.give_back(sequence, row.clone(), limit);
                });
            }
        }
    }

    /// Takes a loose message out of what can be taken or come due.
    pub(super) fn lift_loose(&mut self, facts: &Facts, standing: &Standing) {
        if let Some((_, time)) = standing.due(facts) {
            self.loose.due.remove(&time);
        }
        if standing.home == Home::Free {
            self.queue(facts.queue)
                .lane(facts.priority)
                .loose
                .remove(&facts.sequence);
        }
    }

    /// Puts a loose message where it can be taken or come due.
    pub(super) fn set_down_loose(&mut self, facts: &Facts, standing: &Standing) {
        if let Some((_, time)) = standing.due(facts) {
            self.loose.due.insert(time);
        }
        if standing.home == Home::Free {
            let row = standing.index_row(facts);
            self.queue(facts.queue)
                .lane(facts.priority)
                .loose
                .insert(facts.sequence, row);
        }
        self.join_group_loose(facts, standing);
    }
}
