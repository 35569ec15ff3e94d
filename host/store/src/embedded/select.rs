//! Which messages a take or a claim gets, in which order. The rules are those of the reference
//! model.

use oncue_core::message::{Body, MAX_PRIORITY, Message, PRIORITIES};
use oncue_core::time::Timestamp;

use super::codec::{Home, IndexRow};
use super::engine::Engine;
use super::facts::{Facts, Standing};
use super::index::{Index, Kind};
use super::layout::{self, QueueNo, Space};
use super::look::{Found, loose_message};
use crate::{Select, StoreError, Take};

/// Rows that one call passes over at most (expired, suspect, damaged, of groups in hand): bounds
/// its time. Those that expired are removed by the claims, so the next calls get further.
pub(super) const PASSED_OVER_MAX: usize = 100_000;

/// Messages of one correlation id that one take looks at.
const CORRELATED_MAX: usize = 10_000;

/// A chosen message: its row, and whether its body is still to be read.
pub(super) struct Chosen {
    pub(super) sequence: u64,
    pub(super) standing: Standing,
    /// Known already when it is not persistent, was put lately, or was found by id.
    pub(super) message: Option<Message>,
}

/// The tests on time and suspicion that every take makes.
struct Sieve {
    now: Timestamp,
    skip_suspects: bool,
    suspects: usize,
}

impl Sieve {
    fn passes(&mut self, expires: Option<Timestamp>, is_suspect: bool) -> bool {
        if expires.is_some_and(|time| time <= self.now) {
            return false;
        }
        if is_suspect {
            if self.skip_suspects || self.suspects > 0 {
                return false;
            }
            self.suspects += 1;
        }
        true
    }
}

impl Index {
    /// Chooses and holds messages. Those without a message are to be read without the lock.
    ///
    /// # Errors
    /// [`StoreError::UnknownQueue`], or a failed read; nothing is held then.
    pub(super) fn take(&mut self, engine: &Engine, take: &Take) -> Result<Vec<Chosen>, StoreError> {
        let number = self
            .number(&take.queue)
            .ok_or_else(|| StoreError::UnknownQueue(take.queue.clone()))?;
        let mut own = self.own_firsts(engine, take.owner, number)?;
        let key = |(priority, sequence): &(u8, u64)| {
            let inverse = if take.fifo {
                0
            } else {
                MAX_PRIORITY - priority
            };
            (inverse, *sequence)
        };
        own.sort_unstable_by_key(key);
        let mut sieve = Sieve {
            now: take.now,
            skip_suspects: take.skip_suspects,
            suspects: self.suspects_in_hand,
        };
        let chosen: Vec<(Facts, Chosen)> = match &take.select {
            Select::Next => self.choose_next(engine, take, number, &own, &mut sieve)?,
            Select::Id(id) => {
                let found = self.locate(engine, number, id.sequence.0)?;
                let found = found.filter(|found| found.message.header.id == *id);
                self.choose_found(engine, take, &own, &mut sieve, found)?
            }
            Select::Correlation(wanted) => {
                let mut sequences = self.correlated(engine, number, wanted)?;
                sequences.sort_unstable_by_key(key);
                let mut chosen = Vec::new();
                for (_, sequence) in sequences {
                    if chosen.len() >= take.max {
                        break;
                    }
                    let found = self.locate(engine, number, sequence)?;
                    let found = found.filter(|found| {
                        found.message.header.correlation_id.as_deref() == Some(wanted.as_str())
                    });
                    chosen.extend(self.choose_found(engine, take, &own, &mut sieve, found)?);
                }
                chosen
            }
        };
        let mut done: Vec<Chosen> = Vec::with_capacity(chosen.len());
        for (facts, one) in chosen {
            if let Err(error) = self.hold(engine, take.owner, facts, one.standing) {
                for one in &done {
                    self.let_go(engine, one.sequence);
                }
                return Err(error);
            }
            done.push(one);
        }
        Ok(done)
    }

    fn choose_next(
        &mut self,
        engine: &Engine,
        take: &Take,
        number: QueueNo,
        own: &[(u8, u64)],
        sieve: &mut Sieve,
    ) -> Result<Vec<(Facts, Chosen)>, StoreError> {
        let mut chosen = Vec::new();
        let mut walk = Walk {
            positions: [None; PRIORITIES],
            own,
            fifo: take.fifo,
        };
        for _ in 0..PASSED_OVER_MAX.saturating_add(take.max) {
            if chosen.len() >= take.max {
                break;
            }
            let Some(step) = walk.next(self, engine, number)? else {
                break;
            };
            let row = match step.row {
                Some(row) => row,
                None => match self.row_of(engine, number, step.sequence)? {
                    Some(row) => row,
                    None => continue,
                },
            };
            if self.damaged.contains(&step.sequence) {
                continue;
            }
            if !step.own
                && let Some(name) = &row.group
                && self.group(engine, number, name)?.open() != Some(step.sequence)
            {
                continue;
            }
            if sieve.passes(row.expires, row.attempts.interrupted_count > 0) {
                chosen.push(self.choose_row(number, step.sequence, &row));
            }
        }
        Ok(chosen)
    }

    /// The row of a free message that is met out of its lane's order.
    fn row_of(
        &self,
        engine: &Engine,
        number: QueueNo,
        sequence: u64,
    ) -> Result<Option<IndexRow>, StoreError> {
        let found = self.locate(engine, number, sequence)?;
        Ok(found.map(|found| found.standing.index_row(&found.facts)))
    }

    fn choose_row(&mut self, number: QueueNo, sequence: u64, row: &IndexRow) -> (Facts, Chosen) {
        if let Some(loose) = self.loose.messages.get(&sequence) {
            let message = Some(loose_message(loose));
            return (
                loose.facts.clone(),
                Chosen {
                    sequence,
                    standing: loose.standing,
                    message,
                },
            );
        }
        let standing = Standing {
            home: Home::Free,
            attempts: row.attempts,
            placed: row.placed,
            dead: row.dead,
        };
        if !row.placed
            && let Some((header, body)) = self.warm.take(sequence)
        {
            let facts = Facts::new(number, &header, 0);
            let message = Some(Message {
                header,
                attempts: row.attempts,
                body: Body::Whole(body),
                dead_letter: None,
            });
            return (
                facts,
                Chosen {
                    sequence,
                    standing,
                    message,
                },
            );
        }
        // What only the header says is filled in when the body has been read; nothing needs it
        // before.
        let facts = Facts {
            sequence,
            queue: number,
            priority: row.priority,
            group: row.group.clone(),
            correlation: None,
            size: 0,
            put_time: row.put_time,
            expires: row.expires,
            persistent: true,
            parts: 0,
        };
        (
            facts,
            Chosen {
                sequence,
                standing,
                message: None,
            },
        )
    }

    fn choose_found(
        &mut self,
        engine: &Engine,
        take: &Take,
        own: &[(u8, u64)],
        sieve: &mut Sieve,
        found: Option<Found>,
    ) -> Result<Vec<(Facts, Chosen)>, StoreError> {
        let Some(Found {
            facts,
            standing,
            holder: None,
            message,
        }) = found
        else {
            return Ok(Vec::new());
        };
        if standing.home != Home::Free || take.max == 0 {
            return Ok(Vec::new());
        }
        if let Some(name) = &facts.group {
            let is_open = self.group(engine, facts.queue, name)?.open() == Some(facts.sequence);
            if !is_open && !own.contains(&(facts.priority, facts.sequence)) {
                return Ok(Vec::new());
            }
        }
        if !sieve.passes(facts.expires, standing.is_suspect()) {
            return Ok(Vec::new());
        }
        let sequence = facts.sequence;
        Ok(vec![(
            facts,
            Chosen {
                sequence,
                standing,
                message: Some(message),
            },
        )])
    }

    /// Priorities and sequences of messages with a correlation id, whatever their state.
    fn correlated(
        &self,
        engine: &Engine,
        number: QueueNo,
        wanted: &str,
    ) -> Result<Vec<(u8, u64)>, StoreError> {
        let start = layout::correlation_prefix(number, wanted);
        let end = layout::after_prefix(&start);
        let mut sequences = Vec::new();
        for row in engine
            .scan(&self.view, Space::Correlation, &start, &end)
            .take(CORRELATED_MAX)
        {
            let (key, _) = row?;
            let inverse = key.get(start.len()).copied().unwrap_or(0);
            if let Some(sequence) = layout::last_number(&key) {
                sequences.push((MAX_PRIORITY.saturating_sub(inverse), sequence));
            }
        }
        for (inverse, sequence) in self
            .queues
            .get(&number)
            .into_iter()
            .flat_map(|queue| &queue.loose)
        {
            let message = self.loose.messages.get(sequence);
            if message.is_some_and(|loose| loose.facts.correlation.as_deref() == Some(wanted)) {
                sequences.push((MAX_PRIORITY - inverse, *sequence));
            }
        }
        Ok(sequences)
    }
}

/// The merged order of a queue's lanes and of what the owner may take besides.
struct Walk<'a> {
    /// The last sequence met in each lane.
    positions: [Option<u64>; PRIORITIES],
    own: &'a [(u8, u64)],
    fifo: bool,
}

struct Step {
    sequence: u64,
    own: bool,
    row: Option<IndexRow>,
}

impl Walk<'_> {
    fn next(
        &mut self,
        index: &mut Index,
        engine: &Engine,
        number: QueueNo,
    ) -> Result<Option<Step>, StoreError> {
        let mut best: Option<(u8, u64, IndexRow)> = None;
        for priority in (0..=MAX_PRIORITY).rev() {
            let position = self.position(priority);
            let kinds = [Kind::Ready, Kind::Straggler];
            if let Some((sequence, row)) =
                index.peek(engine, number, priority, *position, &kinds)?
                && best.as_ref().is_none_or(|(_, first, _)| sequence < *first)
            {
                best = Some((priority, sequence, row));
                if !self.fifo {
                    break;
                }
            }
        }
        if let Some((priority, sequence)) = self.own.first().copied() {
            let is_first = best.as_ref().is_none_or(|(other, first, _)| {
                let (mine, theirs) = if self.fifo {
                    (0, 0)
                } else {
                    (priority, *other)
                };
                mine > theirs || (mine == theirs && sequence < *first)
            });
            if is_first {
                self.own = self.own.get(1..).unwrap_or_default();
                return Ok(Some(Step {
                    sequence,
                    own: true,
                    row: None,
                }));
            }
        }
        Ok(best.map(|(priority, sequence, row)| {
            *self.position(priority) = Some(sequence);
            Step {
                sequence,
                own: false,
                row: Some(row),
            }
        }))
    }

    fn position(&mut self, priority: u8) -> &mut Option<u64> {
        self.positions
            .get_mut(usize::from(priority))
            .expect("priorities are bounded")
    }
}
