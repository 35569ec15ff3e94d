//! Properties of the model under random calls: its counts are those of the letter of the rule, a
//! take gives and a browse shows what the letter of the rule does, and nothing is lost or doubled.

mod literal;

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;

use self::literal::{group_of, literal_browse, literal_take};
use super::contents::Contents;
use super::entry::Entry;
use super::{Model, Selection, State, Want};
use crate::message::{Attempts, Header, MessageId, Sequence};
use crate::names::QueueName;
use crate::queue::Counts;
use crate::time::Timestamp;
use crate::unit_of_work::{
    Disposition, LeaseToken, OwnerId, Put, RecordChange, RecordKind, Settle, Unit, Wait,
};

const QUEUES: [&str; 2] = ["a", "b"];

/// What a random step may do. The numbers choose among what there is.
#[derive(Clone, Copy, Debug)]
enum Step {
    Put {
        queue: usize,
        group: u8,
        priority: u8,
        delay: u64,
        life: u64,
    },
    Take {
        owner: u64,
        queue: usize,
        select: u8,
        max: usize,
        flags: u8,
    },
    TakeAny {
        owner: u64,
        pick: usize,
    },
    TakeLeased {
        owner: u64,
        pick: usize,
    },
    Settle {
        pick: usize,
        fate: u8,
        number: u64,
    },
    Release {
        pick: usize,
    },
    Claim {
        owner: u64,
        max: usize,
    },
    Pass {
        millis: u64,
    },
    Browse {
        queue: usize,
        max: usize,
        ready_only: bool,
    },
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..2usize, 0..4u8, 0..10u8, 0..60u64, 0..200u64)
            .prop_map(|(queue, group, priority, delay, life)| {
                Step::Put { queue, group, priority, delay, life }
            }),
        6 => (0..3u64, 0..2usize, 0..8u8, 0..4usize, 0..4u8)
            .prop_map(|(owner, queue, select, max, flags)| {
                Step::Take { owner, queue, select, max, flags }
            }),
        1 => (0..3u64, 0..99usize).prop_map(|(owner, pick)| Step::TakeAny { owner, pick }),
        1 => (0..3u64, 0..99usize).prop_map(|(owner, pick)| Step::TakeLeased { owner, pick }),
        6 => (0..99usize, 0..9u8, 0..50u64)
            .prop_map(|(pick, fate, number)| Step::Settle { pick, fate, number }),
        2 => (0..99usize).prop_map(|pick| Step::Release { pick }),
        2 => (0..3u64, 1..9usize).prop_map(|(owner, max)| Step::Claim { owner, max }),
        2 => (0..40u64).prop_map(|millis| Step::Pass { millis }),
        1 => (0..2usize, 1..5usize, any::<bool>())
            .prop_map(|(queue, max, ready_only)| Step::Browse { queue, max, ready_only }),
        1 => Just(Step::Restart),
    ]
}

/// The model, and a ledger of what the steps must have left in it.
struct Run {
    model: Model,
    queues: Vec<QueueName>,
    now: Timestamp,
    there: BTreeMap<MessageId, QueueName>,
    held: Vec<(OwnerId, MessageId)>,
    sums: BTreeMap<QueueName, Counts>,
    tokens: u128,
}

impl Run {
    fn new() -> Self {
        let mut model = Model::new(7, u64::MAX);
        let queues: Vec<QueueName> = QUEUES
            .iter()
            .map(|name| name.parse().expect("a name"))
            .collect();
        let row = |queue: &QueueName| RecordChange {
            kind: RecordKind::Queue,
            name: queue.to_string(),
            value: Some(Bytes::new()),
        };
        let records = queues.iter().map(row).collect();
        model
            .commit(Unit {
                records,
                ..Unit::default()
            })
            .expect("queues can be made");
        let (there, held, sums) = Default::default();
        Self {
            model,
            queues,
            now: Timestamp(1000),
            there,
            held,
            sums,
            tokens: 0,
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Put {
                queue,
                group,
                priority,
                delay,
                life,
            } => self.put(queue, group, priority, delay, life),
            Step::Take {
                owner,
                queue,
                select,
                max,
                flags,
            } => self.take(OwnerId(owner), queue, select, max, flags),
            Step::TakeAny { owner, pick } => {
                if let Some((id, queue)) = self.there.iter().nth(pick % self.there.len().max(1)) {
                    let (id, queue, is_held) = (*id, queue.clone(), self.is_held(*id));
                    let taken = self.model.take_any(OwnerId(owner), &queue, id);
                    assert_eq!(taken.is_some(), !is_held);
                    self.held
                        .extend(taken.map(|message| (OwnerId(owner), message.header.id)));
                }
            }
            Step::TakeLeased { owner, pick } => {
                let token = LeaseToken(pick as u128 % (self.tokens + 1));
                let taken = self.model.take_leased(OwnerId(owner), token);
                self.held
                    .extend(taken.map(|(_, message)| (OwnerId(owner), message.header.id)));
            }
            Step::Settle { pick, fate, number } => self.settle(pick, fate, number),
            Step::Release { pick } => {
                if !self.held.is_empty() {
                    let (owner, id) = self.held.remove(pick % self.held.len());
                    self.model.release(owner, &self.there[&id], id.sequence);
                }
            }
            Step::Claim { owner, max } => {
                let claimed = self.model.claim_due(OwnerId(owner), self.now, max);
                for (queue, message, _) in claimed {
                    assert_eq!(self.there[&message.header.id], queue);
                    assert!(!self.is_held(message.header.id));
                    self.held.push((OwnerId(owner), message.header.id));
                }
            }
            Step::Pass { millis } => self.now = self.now.after(millis),
            Step::Browse {
                queue,
                max,
                ready_only,
            } => self.browse(queue, max, ready_only),
            Step::Restart => {
                self.model.restart();
                self.held.clear();
                let queues = &self.queues;
                self.sums = queues
                    .iter()
                    .map(|q| (q.clone(), self.model.recount(q).expect("it is there")))
                    .collect();
            }
        }
    }

    fn is_held(&self, id: MessageId) -> bool {
        self.held.iter().any(|(_, held)| *held == id)
    }

    fn put(&mut self, queue: usize, group: u8, priority: u8, delay: u64, life: u64) {
        let id = self.model.next_id();
        let queue = self.queues[queue].clone();
        let header = Header {
            id,
            correlation_id: priority.is_multiple_of(2).then(|| "c".to_owned()),
            reply_to: None,
            group: (group > 0).then(|| format!("g{group}")),
            group_sequence: None,
            priority,
            persistent: true,
            content_type: None,
            properties: Vec::new(),
            put_time: self.now,
            // Most numbers mean neither delay nor end.
            expires: (life < 30).then(|| self.now.after(life)),
            hop_count: 0,
            put_by: None,
            size: 3,
        };
        let due = (delay < 10).then(|| self.now.after(delay));
        let body = Bytes::from_static(b"abc");
        let put = Put {
            queue: queue.clone(),
            header,
            body,
            due,
            dead_letter: None,
            key: None,
            max_depth: None,
        };
        self.model
            .commit(Unit {
                puts: vec![put],
                ..Unit::default()
            })
            .expect("a put is accepted");
        self.there.insert(id, queue);
    }

    fn take(&mut self, owner: OwnerId, queue: usize, select: u8, max: usize, flags: u8) {
        let queue = self.queues[queue].clone();
        let some_id = self
            .there
            .keys()
            .nth(usize::from(flags) % self.there.len().max(1))
            .copied();
        let selection = match (select, some_id) {
            (0, Some(id)) => Selection::Id(id),
            (1, _) => Selection::Correlation("c"),
            _ => Selection::Next,
        };
        let (fifo, skip_suspects) = (flags & 1 == 1, flags & 2 == 2);
        let want = Want {
            queue: &queue,
            owner,
            selection,
            max,
            fifo,
            skip_suspects,
            now: self.now,
        };
        let expected = literal_take(&self.model, &want);
        let taken = self.model.take(&want).expect("the queue is there");
        let taken: Vec<Sequence> = taken
            .iter()
            .map(|message| message.header.id.sequence)
            .collect();
        assert_eq!(taken, expected, "{want:?}");
        for sequence in taken {
            let entry = self.model.queues[&queue].entry(sequence).clone();
            for other in group_of(&self.model.queues[&queue], &entry) {
                assert!(
                    !other.is_in_hand() || other.holder == Some(owner),
                    "a group is in two hands"
                );
            }
            self.held.push((owner, entry.message.header.id));
        }
    }

    fn settle(&mut self, pick: usize, fate: u8, number: u64) {
        if self.held.is_empty() {
            return;
        }
        let (owner, id) = self.held.remove(pick % self.held.len());
        let queue = self.there[&id].clone();
        let until = self.now.after(number);
        let attempts = Attempts {
            interrupted_count: u32::from(number < 10),
            ..Attempts::default()
        };
        let disposition = match fate {
            0..=2 => {
                self.there.remove(&id);
                Disposition::Remove
            }
            3 => Disposition::Requeue(attempts),
            4 => Disposition::Later {
                until,
                wait: Wait::Retry,
                attempts,
            },
            5 => Disposition::Later {
                until,
                wait: Wait::Defer,
                attempts,
            },
            6 => {
                self.tokens += 1;
                let token = LeaseToken(self.tokens);
                Disposition::Lease {
                    until,
                    token,
                    selective: number.is_multiple_of(2),
                    attempts,
                }
            }
            7 => {
                let to = self.queues[usize::from(queue == self.queues[0])].clone();
                self.there.insert(id, to.clone());
                Disposition::Move {
                    to,
                    record: None,
                    attempts,
                }
            }
            _ => Disposition::Park(attempts),
        };
        let settles = vec![Settle {
            queue,
            sequence: id.sequence,
            disposition,
        }];
        let unit = Unit {
            owner: Some(owner),
            settles,
            ..Unit::default()
        };
        self.model
            .commit(unit)
            .expect("what is held can be settled");
    }

    fn browse(&mut self, queue: usize, max: usize, ready_only: bool) {
        let queue = &self.queues[queue];
        let expected = literal_browse(&self.model, queue, self.now, ready_only);
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let page = self.model.browse(queue, after, max, self.now, ready_only);
            let (messages, next) = page.expect("the queue is there");
            let ids = messages
                .iter()
                .map(|(message, _)| message.header.id.sequence);
            seen.extend(ids);
            after = next;
            if next.is_none() {
                break;
            }
        }
        assert_eq!(seen, expected, "of {queue}");
    }

    fn check(&mut self) {
        for (queue, change) in self.model.drain_changes() {
            assert!(!change.is_zero());
            *self.sums.entry(queue).or_default() += &change;
        }
        for queue in &self.queues {
            let counts = self.model.counts(queue).expect("the queue is there");
            assert_eq!(
                self.model.recount(queue),
                Some(counts),
                "kept up is not from scratch"
            );
            assert_eq!(
                self.sums.get(queue).copied().unwrap_or_default(),
                counts,
                "told is not so"
            );
            let depth = self.there.values().filter(|name| *name == queue).count();
            assert_eq!(
                counts.depth(),
                depth as i64,
                "the states do not add up to the messages"
            );
            assert_eq!(counts.bytes, 3 * depth as i64);
            let contents = &self.model.queues[queue];
            let states = contents.all().map(|entry| contents.state(entry));
            let held = states.filter(|state| *state == State::GroupHeld).count();
            assert_eq!(
                counts.group_held, held as i64,
                "a state is not the one counted"
            );
        }
        for (id, queue) in &self.there {
            assert!(self.model.find(queue, *id).is_some(), "{id} is lost");
        }
        let due = self
            .model
            .queues
            .values()
            .flat_map(Contents::all)
            .filter_map(Entry::due)
            .min();
        assert_eq!(self.model.next_due(), due);
        let in_hand = |entry: &&Entry| entry.is_suspect_in_hand();
        let suspects = self
            .model
            .queues
            .values()
            .flat_map(Contents::all)
            .filter(in_hand)
            .count();
        assert_eq!(self.model.suspects_in_hand, suspects);
    }
}

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 256,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn counts_and_takes_are_those_of_the_letter_of_the_rule(steps in vec(step(), 1..120)) {
        let mut run = Run::new();
        for step in steps {
            run.step(step);
            run.check();
        }
    }
}
