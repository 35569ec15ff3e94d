//! Random units, takes, claims and restarts, done to a store and to the reference model side by
//! side.

mod compare;
mod steps;

use std::collections::BTreeMap;

use bytes::Bytes;
use oncue_core::message::{Attempts, Message, MessageId};
use oncue_core::names::QueueName;
use oncue_core::queue::model::{Model, Selection, Want};
use oncue_core::time::Timestamp;
use oncue_core::unit_of_work::{
    Disposition, LeaseToken, OwnerId, Put, StateRead, StateWrite, Unit, Wait,
};
use oncue_store::{CommitError, DueWhat, Select, Take};
use proptest::collection::vec;
use proptest::test_runner::{Config, RngSeed, TestRunner};

use self::compare::assert_same;
use self::steps::{Draft, Fate, Pick, State, Step, Which, step};
use crate::rig::{ENDINGS, Ending, NOW, Rig, record, settle};

/// Runs, and the longest of them. Small, because a durable store syncs each commit.
const RUNS: u32 = 64;
/// Fewer, because to open a durable store takes much longer than a commit.
const RUNS_WITH_RESTARTS: u32 = 16;
const STEPS: usize = 40;

const QUEUES: [&str; 2] = ["a", "b"];

/// Set it to the number that a failure printed to run the same again.
const SEED: &str = "ONCUE_CONTRACT_SEED";

pub fn model_and_store_agree(rig: &mut Rig) {
    agree(rig, false);
}

pub fn model_and_store_agree_over_restarts(rig: &mut Rig) {
    agree(rig, true);
}

fn agree(rig: &Rig, restarts: bool) {
    let seed = std::env::var(SEED).ok().and_then(|text| text.parse().ok());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    let config = Config {
        cases: if restarts { RUNS_WITH_RESTARTS } else { RUNS },
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(seed),
        ..Config::default()
    };
    let result = TestRunner::new(config).run(&vec(step(restarts), 1..=STEPS), |steps| {
        let mut run = Run::new(rig.fresh());
        for step in &steps {
            run.step(step);
            run.compare();
        }
        Ok(())
    });
    if let Err(fault) = result {
        panic!("{fault}\nrun it again with {SEED}={seed}");
    }
}

/// A store and the model, and what the caller of both knows.
struct Run {
    rig: Rig,
    model: Model,
    queues: [QueueName; 2],
    now: Timestamp,
    ids: Vec<MessageId>,
    held: BTreeMap<OwnerId, Vec<(QueueName, MessageId)>>,
}

impl Run {
    fn new(mut rig: Rig) -> Self {
        let mut model = Model::new(rig.store().recovered().origin, u64::MAX);
        let queues = QUEUES.map(|name| {
            let queue = rig.define(name);
            let records = vec![record(&queue, Some("definition"))];
            model
                .commit(Unit {
                    records,
                    ..Unit::default()
                })
                .expect("a queue can be defined");
            queue
        });
        Self {
            rig,
            model,
            queues,
            now: NOW,
            ids: Vec::new(),
            held: BTreeMap::new(),
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Commit {
                owner,
                settles,
                puts,
                state,
                handler,
            } => {
                let mut unit = Unit {
                    key_taken_is_conflict: *handler,
                    ..Unit::default()
                };
                unit.owner = Some(OwnerId(*owner));
                unit.puts = puts.iter().map(|draft| self.put(draft)).collect();
                self.settle(&mut unit, settles);
                self.commit(unit, state.as_ref());
            }
            Step::Take {
                owner,
                queue,
                which,
                max,
                fifo,
                skip_suspects,
            } => self.take(&Take {
                queue: self.queues[*queue].clone(),
                owner: OwnerId(*owner),
                select: self.select(which),
                max: *max,
                fifo: *fifo,
                skip_suspects: *skip_suspects,
                now: self.now,
            }),
            Step::TakeAny { owner, queue, pick } => self.take_any(OwnerId(*owner), *queue, pick),
            Step::TakeLeased { owner, token } => self.take_leased(OwnerId(*owner), *token),
            Step::Release { owner, pick } => {
                let held = self.held.get(&OwnerId(*owner)).cloned().unwrap_or_default();
                if !held.is_empty() {
                    self.release(OwnerId(*owner), &[pick.get(&held).clone()]);
                }
            }
            Step::ReleaseAll { owner } => {
                let held = self.held.remove(&OwnerId(*owner)).unwrap_or_default();
                self.release(OwnerId(*owner), &held);
            }
            Step::Claim { owner } => self.claim(OwnerId(*owner)),
            Step::Pass { millis } => self.now = self.now.after(*millis),
            Step::Delete { queue } => self.define(*queue, None),
            Step::Define { queue } => self.define(*queue, Some("definition")),
            Step::Restart { ending } => self.restart(ENDINGS[*ending]),
        }
    }

    fn define(&mut self, queue: usize, row: Option<&'static str>) {
        let records = vec![record(&self.queues[queue], row)];
        self.commit(
            Unit {
                records,
                ..Unit::default()
            },
            None,
        );
    }

    fn take_any(&mut self, owner: OwnerId, queue: usize, pick: &Pick) {
        if self.ids.is_empty() {
            return;
        }
        let (queue, id) = (self.queues[queue].clone(), *pick.get(&self.ids));
        let taken = self
            .rig
            .store()
            .take_any(owner, &queue, id)
            .expect("a take works");
        let expected = self.model.take_any(owner, &queue, id);
        assert_same(taken.as_slice(), expected.as_slice());
        self.hold(owner, &queue, taken.as_slice());
    }

    fn take_leased(&mut self, owner: OwnerId, token: u8) {
        let token = LeaseToken(u128::from(token));
        let taken = self.rig.store().take_leased(owner, token).ok();
        let expected = self.model.take_leased(owner, token);
        let places = (
            taken.as_ref().map(|t| &t.0),
            expected.as_ref().map(|t| &t.0),
        );
        assert_eq!(places.0, places.1, "whose lease is it?");
        if let (Some((queue, message)), Some((_, expected))) = (taken, expected) {
            assert_same(std::slice::from_ref(&message), &[expected]);
            self.hold(owner, &queue, &[message]);
        }
    }

    fn put(&mut self, draft: &Draft) -> Put {
        let name = |prefix: &str, n: Option<u8>| n.map(|n| format!("{prefix}{n}"));
        let mut put = self
            .rig
            .draft(&self.queues[draft.queue])
            .body(vec![0; draft.size])
            .into_put();
        put.header.group = name("g", draft.group);
        put.header.correlation_id = name("c", draft.correlation);
        put.header.priority = draft.priority;
        put.header.persistent = draft.persistent;
        put.header.put_time = self.now;
        put.header.expires = draft.life.map(|life| self.now.after(life));
        put.due = draft.delay.map(|delay| self.now.after(delay));
        put.max_depth = draft.max_depth;
        put.key = draft.key.map(
            |(key, digest, life)| oncue_core::unit_of_work::IdempotencyKey {
                key: format!("k{key}"),
                body_digest: digest.map(|byte| [byte; 32]),
                until: self.now.after(life),
            },
        );
        self.ids.push(put.header.id);
        put
    }

    fn settle(&self, unit: &mut Unit, settles: &[(Pick, Fate)]) {
        let Some(held) = unit
            .owner
            .and_then(|owner| self.held.get(&owner))
            .filter(|h| !h.is_empty())
        else {
            return;
        };
        for (pick, fate) in settles {
            let (queue, id) = pick.get(held);
            let is_repeated = unit
                .settles
                .iter()
                .any(|settle| settle.sequence == id.sequence);
            if !is_repeated {
                unit.settles
                    .push(settle(queue, *id, self.disposition(fate)));
            }
        }
    }

    fn disposition(&self, fate: &Fate) -> Disposition {
        let attempts = Attempts {
            backout_count: 1,
            ..Attempts::default()
        };
        match fate {
            Fate::Remove => Disposition::Remove,
            Fate::Requeue { interrupted } => Disposition::Requeue(Attempts {
                interrupted_count: *interrupted,
                ..attempts
            }),
            Fate::Later { wait, millis } => Disposition::Later {
                until: self.now.after(*millis),
                wait: [Wait::Delay, Wait::Retry, Wait::Defer][*wait],
                attempts,
            },
            Fate::Lease {
                millis,
                token,
                selective,
            } => Disposition::Lease {
                until: self.now.after(*millis),
                // Tokens are unique in life; here a new one each time that can still be met again.
                token: LeaseToken(u128::from(*token)),
                selective: *selective,
                attempts,
            },
            Fate::Move { queue } => Disposition::Move {
                to: self.queues[*queue].clone(),
                record: None,
                attempts,
            },
            Fate::Park => Disposition::Park(attempts),
        }
    }

    fn commit(&mut self, mut unit: Unit, state: Option<&State>) {
        // A token stands for one message at a time.
        let mut tokens: Vec<LeaseToken> = Vec::new();
        unit.settles.retain(|settle| match settle.disposition {
            Disposition::Lease { token, .. } => {
                let is_free = !tokens.contains(&token) && !self.model.has_lease(token);
                tokens.push(token);
                is_free
            }
            _ => true,
        });
        let mut same = unit.clone();
        if let Some(State { key, stale, value }) = state {
            let (namespace, key) = ("n".to_owned(), format!("s{key}"));
            let value = value.map(|value| Bytes::from(vec![value]));
            let write = StateWrite {
                namespace: namespace.clone(),
                key: key.clone(),
                value,
            };
            // Each has its own numbers; both are told the present one, or one that never was.
            let here = self
                .rig
                .store()
                .state(&namespace, &key)
                .expect("a read works")
                .map(|(_, r)| r);
            let there = self
                .model
                .state(&namespace, &key)
                .map(|(_, revision)| *revision);
            let never = oncue_core::unit_of_work::Revision(u64::MAX);
            for (unit, revision) in [(&mut unit, here), (&mut same, there)] {
                let revision = if *stale { Some(never) } else { revision };
                let (namespace, key) = (namespace.clone(), key.clone());
                unit.reads.push(StateRead {
                    namespace,
                    key,
                    revision,
                });
                unit.writes.push(write.clone());
            }
        }
        let (owner, settles) = (unit.owner, unit.settles.clone());
        let answer = self.rig.commit(unit).map(|receipt| receipt.puts);
        let expected = self.model.commit(same).map(|receipt| receipt.puts);
        let is_done = answer.is_ok();
        assert_eq!(answer, expected.map_err(CommitError::from));
        if let Some(held) = owner
            .and_then(|owner| self.held.get_mut(&owner))
            .filter(|_| is_done)
        {
            held.retain(|(_, id)| settles.iter().all(|settle| settle.sequence != id.sequence));
        }
    }

    fn select(&self, which: &Which) -> Select {
        match which {
            Which::Id(pick) if !self.ids.is_empty() => Select::Id(*pick.get(&self.ids)),
            Which::Correlation(n) => Select::Correlation(format!("c{n}")),
            _ => Select::Next,
        }
    }

    fn take(&mut self, take: &Take) {
        let selection = match &take.select {
            Select::Next => Selection::Next,
            Select::Id(id) => Selection::Id(*id),
            Select::Correlation(id) => Selection::Correlation(id),
        };
        let Take {
            queue,
            owner,
            select: _,
            max,
            fifo,
            skip_suspects,
            now,
        } = take.clone();
        let want = Want {
            queue: &queue,
            owner,
            selection,
            max,
            fifo,
            skip_suspects,
            now,
        };
        let taken = self.rig.store().take(take).ok();
        let expected = self.model.take(&want);
        assert_eq!(
            taken.is_some(),
            expected.is_some(),
            "is there such a queue?"
        );
        let (taken, expected) = (taken.unwrap_or_default(), expected.unwrap_or_default());
        assert_same(&taken, &expected);
        self.hold(owner, &queue, &taken);
    }

    fn claim(&mut self, owner: OwnerId) {
        let claimed = self.rig.claim(owner, self.now);
        let mut expected = self.model.claim_due(owner, self.now, usize::MAX);
        expected.sort_by_key(|(_, message, _)| message.header.id);
        let what: Vec<_> = claimed.iter().map(|due| (&due.queue, due.what)).collect();
        let expected_what: Vec<_> = expected
            .iter()
            .map(|(queue, _, over)| (queue, DueWhat::from(*over)))
            .collect();
        assert_eq!(what, expected_what);
        for (due, (queue, message, _)) in claimed.into_iter().zip(expected) {
            assert_same(std::slice::from_ref(&due.message), &[message]);
            self.hold(owner, &queue, &[due.message]);
        }
    }

    fn release(&mut self, owner: OwnerId, held: &[(QueueName, MessageId)]) {
        let places: Vec<_> = held
            .iter()
            .map(|(queue, id)| (queue.clone(), id.sequence))
            .collect();
        self.rig.store().release(owner, &places);
        for (queue, sequence) in &places {
            self.model.release(owner, queue, *sequence);
        }
        if let Some(all) = self.held.get_mut(&owner) {
            all.retain(|one| !held.contains(one));
        }
    }

    fn restart(&mut self, ending: Ending) {
        self.rig.reopen(ending);
        self.model.restart();
        self.held.clear();
    }

    fn hold(&mut self, owner: OwnerId, queue: &QueueName, messages: &[Message]) {
        let held = self.held.entry(owner).or_default();
        held.extend(
            messages
                .iter()
                .map(|message| (queue.clone(), message.header.id)),
        );
    }
}
