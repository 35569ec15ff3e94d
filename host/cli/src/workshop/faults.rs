//! The faults that a case is tried under after it passed as it is.
//!
//! Each fault strikes once in a run. Right after it nothing half done may be seen; then what failed
//! comes again, and in the end everything must be as it is without the fault. Messages are given
//! one by one where that comes to the same as all at once, so that a retry changes no order.

use std::ops::Range;

use oncue_core::definition::TriggerType;
use oncue_core::outcome::Outcome;
use serde::{Deserialize, Serialize};

use super::bench::{Bench, Running};
use super::case::{Expected, WantedPut};
use super::diff::differences;
use super::job::Job;
use super::observed::Observed;
use super::probe::Order;
use super::suite::{Trial, told};
use super::{fuel, verdict};
use crate::exit::Failure;

/// Runs of one fault: calls, puts or commits at which it strikes. Of more, so many are taken at
/// equal distances.
const MAX_RUNS: usize = 200;

/// Failed runs of one fault that are told.
const MAX_FAILED: usize = 3;

/// How often what failed comes again.
const ROUNDS: usize = 3;

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FaultKind {
    /// The unit of work is undone at its commit, and the same message is handled again.
    Redelivery,
    /// Each put in turn is refused because its queue is full.
    RefusedPut,
    /// The handler is ended at each of its calls in turn.
    CutOff,
    /// The fuel is swept down to the least that passes.
    Fuel,
}

impl FaultKind {
    /// Every fault, in the order in which they are tried.
    pub(crate) const ALL: [Self; 4] =
        [Self::Redelivery, Self::RefusedPut, Self::CutOff, Self::Fuel];

    /// Its word.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Redelivery => "redelivery",
            Self::RefusedPut => "refused-put",
            Self::CutOff => "cut-off",
            Self::Fuel => "fuel",
        }
    }
}

/// A job under test, and what comes of it without a fault.
pub(super) struct Rig<'a> {
    pub(super) bench: &'a Bench,
    pub(super) job: Job,
    /// As the case expects it.
    pub(super) golden: Expected,
    /// Messages are given one by one.
    one_by_one: bool,
    /// What is put in each step without a fault.
    steps: Vec<Vec<WantedPut>>,
    calls: (Vec<String>, usize),
    puts: usize,
    commits: usize,
    /// Fuel of all messages together.
    pub(super) fuel: u64,
}

/// What was there before and after the fault, in which step.
pub(super) struct Struck {
    pub(super) step: usize,
    pub(super) before: Observed,
    pub(super) after: Observed,
}

/// A run with a fault.
pub(super) struct Driven {
    /// None: the fault did not come.
    pub(super) struck: Option<Struck>,
    /// What was there in the end.
    pub(super) last: Observed,
}

/// Tries a job under each fault. `seen` is what came of it as it is.
pub(super) fn try_out(
    bench: &Bench,
    job: &Job,
    seen: &Observed,
    kinds: &[FaultKind],
) -> Result<Vec<Trial>, Failure> {
    if kinds.is_empty() {
        return Ok(Vec::new());
    }
    let mut rig = Rig::new(bench, job, seen)?;
    let mut trials = Vec::new();
    for kind in kinds {
        trials.push(match kind {
            FaultKind::Fuel => fuel::sweep(&mut rig)?,
            kind => rig.strike(*kind)?,
        });
    }
    Ok(trials)
}

impl<'a> Rig<'a> {
    fn new(bench: &'a Bench, job: &Job, seen: &Observed) -> Result<Self, Failure> {
        let style = bench.plugin.version.style;
        let attributes = job.attributes();
        let here = job.puts.iter().all(|put| put.queue == job.queue);
        let mut rig = Self {
            bench,
            job: job.patient(),
            golden: seen.expected(),
            one_by_one: !style.works_the_queue()
                && attributes.trigger != TriggerType::Depth
                && here,
            steps: Vec::new(),
            calls: (Vec::new(), 0),
            puts: 0,
            commits: 0,
            fuel: 0,
        };
        if !rig.refer()? {
            // It matters that all are there at once.
            rig.one_by_one = false;
            rig.refer()?;
        }
        Ok(rig)
    }

    /// Runs the job in its steps without a fault, and notes what comes; false when it is not what
    /// comes of all at once.
    fn refer(&mut self) -> Result<bool, Failure> {
        let mut running = self.bench.begin(&self.job, Order::None)?;
        self.steps.clear();
        let mut known = 0;
        for step in self.ranges() {
            running.put(&self.job.puts[step])?;
            running.settle()?;
            let seen = running.observe()?.expected();
            self.steps.push(seen.puts[known..].to_vec());
            known = seen.puts.len();
        }
        let last = running.observe()?;
        self.calls = running.watch.calls();
        self.puts = running.watch.puts();
        self.commits = running.done_commits();
        self.fuel = last.tasks.iter().map(|task| task.cost.fuel).sum();
        Ok(differences(&self.golden, &last.expected()).is_empty())
    }

    fn ranges(&self) -> Vec<Range<usize>> {
        let count = self.job.puts.len();
        match self.one_by_one {
            true => (0..count).map(|index| index..index + 1).collect(),
            false => std::iter::once(0..count).collect(),
        }
    }

    /// True when everything must come in the same order: nothing else is tried meanwhile.
    pub(super) fn is_exact(&self) -> bool {
        self.one_by_one || self.job.puts.len() == 1
    }

    /// What is put in a step without a fault.
    pub(super) fn step(&self, step: usize) -> &[WantedPut] {
        self.steps.get(step).map_or(&[], Vec::as_slice)
    }

    /// Runs the job with a fault. What failed by it comes again, unless `again` is false.
    pub(super) fn drive(&mut self, order: Order, again: bool) -> Result<Driven, Failure> {
        loop {
            let mut running = self.bench.begin(&self.job, order)?;
            let driven = self.drive_once(&mut running, again)?;
            // A fault may lead the handler to queues that it did not name before.
            let mut job = self.job.clone();
            if !running.finds_queues(&mut job) {
                return Ok(driven);
            }
            drop(running);
            self.job = job;
        }
    }

    fn drive_once(&self, running: &mut Running<'_>, again: bool) -> Result<Driven, Failure> {
        let mut struck = None;
        for (step, range) in self.ranges().into_iter().enumerate() {
            let before = running.observe()?;
            running.put(&self.job.puts[range.clone()])?;
            running.settle()?;
            if struck.is_none() && running.has_struck() {
                let after = running.observe()?;
                struck = Some(Struck {
                    step,
                    before,
                    after,
                });
                if again {
                    self.come_again(running, range)?;
                }
            }
        }
        Ok(Driven {
            struck,
            last: running.observe()?,
        })
    }

    /// Lets the messages of a step that are still there come again, until they end as without the
    /// fault.
    pub(super) fn come_again(
        &self,
        running: &Running<'_>,
        range: Range<usize>,
    ) -> Result<(), Failure> {
        for round in 0..ROUNDS {
            let seen = running.observe()?;
            // One that fails without the fault too shows it by failing once more.
            let owed = |index: usize| {
                let (golden, got) = (self.golden.messages.get(index), seen.messages.get(index));
                let left = got.is_some_and(|got| got.waits);
                let word = golden.map(|it| it.outcome.as_str());
                left && (round == 0 || word != got.map(|it| it.word()))
            };
            if !range.clone().any(owed) {
                return Ok(());
            }
            running.come_again()?;
        }
        Ok(())
    }

    /// Lets one kind of fault strike at each of its places in turn.
    fn strike(&mut self, kind: FaultKind) -> Result<Trial, Failure> {
        let (count, of) = match kind {
            FaultKind::Redelivery => (self.commits, "commits"),
            FaultKind::RefusedPut => (self.puts, "puts"),
            FaultKind::CutOff | FaultKind::Fuel => (self.calls.1, "calls"),
        };
        let mut trial = Trial {
            fault: Some(kind),
            note: note(count, of),
            wrong: Vec::new(),
        };
        let (mut failed, mut notes) = (0, Vec::new());
        for number in places(count) {
            let (order, place) = match kind {
                FaultKind::Redelivery => (Order::Redeliver(number), format!("commit {number}")),
                FaultKind::RefusedPut => (Order::RefusePut(number), format!("put {number}")),
                FaultKind::CutOff | FaultKind::Fuel => {
                    let call = self.calls.0.get(number - 1).map_or("", String::as_str);
                    (Order::CutAt(number), format!("call {number}, {call}"))
                }
            };
            let driven = self.drive(order, true)?;
            match verdict::judge(self, kind, &driven) {
                Ok(note) => notes.extend(note),
                Err(lines) => {
                    failed += 1;
                    trial.wrong.push(format!("at {place}:"));
                    trial
                        .wrong
                        .extend(lines.iter().map(|line| format!("  {line}")));
                }
            }
            if failed == MAX_FAILED {
                break;
            }
        }
        notes.sort();
        notes.dedup();
        notes.into_iter().for_each(|more| {
            trial.note.push_str("; ");
            trial.note.push_str(&more);
        });
        Ok(trial)
    }

    /// Where the end of a run differs from the golden one, in lines.
    pub(super) fn differs(&self, last: &Observed) -> Vec<String> {
        told(&differences(&self.golden, &last.expected()), last)
    }
}

/// The places at which a fault strikes, from 1.
fn places(count: usize) -> impl Iterator<Item = usize> {
    let runs = count.min(MAX_RUNS);
    (0..runs).map(move |run| run * count / runs + 1)
}

fn note(count: usize, of: &str) -> String {
    match count {
        0 => format!("no {of}"),
        count if count > MAX_RUNS => format!("at {MAX_RUNS} of {count} {of}"),
        1 => format!("at 1 {}", of.trim_end_matches('s')),
        count => format!("at {count} {of}"),
    }
}

/// True when a message of a run ended so.
pub(super) fn any_ended(seen: &Observed, outcome: Outcome) -> bool {
    seen.messages.iter().any(|it| it.outcome == Some(outcome))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_strikes_everywhere_or_at_equal_distances() {
        let check = |count: usize, length: usize, last: usize| {
            let found: Vec<usize> = places(count).collect();
            assert_eq!((found.len(), found.last().copied()), (length, Some(last)));
            assert!(found.windows(2).all(|two| two[0] < two[1]) && found[0] == 1);
        };
        check(1, 1, 1);
        check(7, 7, 7);
        check(200, 200, 200);
        check(1_000, 200, 996);
        assert_eq!(places(0).count(), 0);
    }
}
