//! The least fuel that a case passes with, found by halving; and that with less nothing half done
//! is seen.

use oncue_core::outcome::Outcome;
use oncue_core::quantity::format_count;

use super::diff::differences;
use super::faults::{FaultKind, Rig, any_ended};
use super::job::Job;
use super::observed::Observed;
use super::probe::Order;
use super::suite::Trial;
use super::verdict::missing;
use crate::exit::Failure;
use crate::render::time::format_number;

/// How near the least is found: to so many parts of itself.
const PARTS: u64 = 256;

/// Halvings at most: from the largest fuel to one part.
const MAX_HALVINGS: usize = 64;

/// Sweeps the fuel down.
pub(super) fn sweep(rig: &mut Rig<'_>) -> Result<Trial, Failure> {
    let mut trial = Trial {
        fault: Some(FaultKind::Fuel),
        note: String::new(),
        wrong: Vec::new(),
    };
    if rig
        .golden
        .messages
        .iter()
        .any(|it| it.outcome == Outcome::OutOfFuel.as_str())
    {
        trial.note = "the case itself ends out-of-fuel".to_owned();
        return Ok(trial);
    }
    let given = rig.bench.plugin.attributes.fuel;
    let job = rig.job.clone();
    // No message burnt more than all together; a tick more, since a retry may burn another amount.
    let mut high = given.min(rig.fuel.saturating_add(rig.fuel / PARTS).max(1));
    let seen = run(rig, &job, high)?;
    if !passes(rig, &seen) {
        high = given;
    }
    let mut low = 0;
    for _ in 0..MAX_HALVINGS {
        if high - low <= (high / PARTS).max(1) {
            break;
        }
        let middle = low + (high - low) / 2;
        let seen = run(rig, &job, middle)?;
        if passes(rig, &seen) {
            high = middle;
            continue;
        }
        low = middle;
        trial.wrong = judge(rig, &seen, middle);
        if !trial.wrong.is_empty() {
            break;
        }
    }
    if low > 0 && trial.wrong.is_empty() {
        trial.wrong = with_more(rig, &job, low, given)?;
    }
    rig.job = job;
    trial.note = format!("least {} of {}", format_number(high), format_count(given));
    Ok(trial)
}

fn run(rig: &mut Rig<'_>, job: &Job, fuel: u64) -> Result<Observed, Failure> {
    rig.job = job.with_fuel(fuel);
    Ok(rig.drive(Order::None, false)?.last)
}

fn passes(rig: &Rig<'_>, seen: &Observed) -> bool {
    differences(&rig.golden, &seen.expected()).is_empty()
}

/// A run with too little fuel: it ends out-of-fuel, or as the handler says, and nothing else is
/// seen.
fn judge(rig: &Rig<'_>, seen: &Observed, fuel: u64) -> Vec<String> {
    let ended = |outcome| {
        any_ended(seen, outcome) || seen.tasks.iter().any(|task| task.outcome == Some(outcome))
    };
    let failed = [
        Outcome::OutOfFuel,
        Outcome::Retry,
        Outcome::Deferred,
        Outcome::Rejected,
        Outcome::Trapped,
    ];
    let mut lines = Vec::new();
    if !failed.into_iter().any(ended) {
        lines.push("it did not end out-of-fuel, and did not do its work either:".to_owned());
        lines.extend(rig.differs(seen));
    }
    let new = missing(&seen.expected().puts, &rig.golden.puts);
    if rig.is_exact() && !new.is_empty() {
        lines.push("it put what it does not put with enough fuel:".to_owned());
        lines.extend(rig.differs(seen));
    }
    if !lines.is_empty() {
        lines.insert(0, format!("with fuel {}:", format_number(fuel)));
    }
    lines
}

/// What ran out of fuel comes again with enough: all must be as ever. Enough is what the manifest
/// gives, since interpreters burn a little more or less from run to run.
fn with_more(rig: &mut Rig<'_>, job: &Job, low: u64, enough: u64) -> Result<Vec<String>, Failure> {
    if !rig.is_exact() {
        return Ok(Vec::new());
    }
    // The last message runs out of fuel; those before have had enough.
    rig.job = job.with_fuel(enough);
    let (last, before) = rig.job.puts.split_last().expect("a job has messages");
    let mut running = rig.bench.begin(&rig.job, Order::None)?;
    for put in before {
        running.put(std::slice::from_ref(put))?;
        running.settle()?;
    }
    let known = running.observe()?;
    running.set_fuel(low)?;
    running.put(std::slice::from_ref(last))?;
    running.settle()?;
    let after = running.observe()?;
    let failed = after.messages.last().is_some_and(|it| it.waits);
    let mut lines = Vec::new();
    if failed && (after.puts.len() > known.puts.len() || after.state != known.state) {
        lines.push(format!(
            "with fuel {} it fails, and something of its unit is visible",
            format_number(low)
        ));
    }
    running.set_fuel(enough)?;
    let count = rig.job.puts.len();
    rig.come_again(&running, count - 1..count)?;
    let wrong = rig.differs(&running.observe()?);
    if !wrong.is_empty() {
        lines.push("after it ran out of fuel and came again with enough:".to_owned());
        lines.extend(wrong);
    }
    Ok(lines)
}
