//! Every condition of a start with its present value, and the one that decides: what
//! `oncue explain` prints.
//!
//! The values are those the rule looked at, from the same facts, so the page cannot contradict what
//! happens. Where an attribute's value comes from (default, manifest, operator) is the definition's
//! to say; here stands only which attribute it is.

use crate::definition::TriggerType;
use crate::quantity::format_millis;
use crate::time::Timestamp;
use crate::trigger::gate::Control;
use crate::trigger::hold::HoldReason;
use crate::trigger::rule::{Facts, Verdict, evaluate, open_for_input, ripe_at, unsigned};

/// The condition of step 54; listed only when it does not hold.
const ELSEWHERE: &str = "not-in-process-elsewhere";

/// Where the value of a condition comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionSource {
    /// An attribute of the queue, by its permanent name.
    Attribute(&'static str),
    /// What operators and the depth trigger did.
    Operator,
    /// The messages on the queue.
    Messages,
    /// Outside consumers.
    Consumers,
    /// The tasks of the queue.
    Tasks,
    /// The process table and the last start.
    Process,
    /// The ledger, when the last start was asked for.
    Ledger,
    /// The host and its store.
    Host,
}

/// One condition of a start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// A permanent name.
    pub name: &'static str,
    /// Whether it allows a start.
    pub holds: bool,
    /// Its present value, for a person.
    pub value: String,
    /// Where the value comes from.
    pub source: ConditionSource,
    /// It is the one that keeps the queue from a start.
    pub decides: bool,
}

/// The whole answer to "why does nothing start?".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// Every condition, in the order in which they are asked.
    pub conditions: Vec<Condition>,
    /// What follows. Unlike [`evaluate`] it knows max-tasks and the last answer of the ledger.
    pub verdict: Verdict,
}

/// Explains one queue.
#[must_use]
pub fn explain(facts: &Facts<'_>, now: Timestamp) -> Explanation {
    Explanation {
        conditions: conditions(facts, now),
        verdict: verdict(facts, now),
    }
}

/// The rule's verdict, then that of step 12, then what step 50 last answered.
fn verdict(facts: &Facts<'_>, now: Timestamp) -> Verdict {
    let verdict = evaluate(facts, now);
    if matches!(verdict, Verdict::Hold { .. }) {
        return verdict;
    }
    let max = facts.attributes.max_tasks;
    if facts.running >= max {
        return Verdict::hold(HoldReason::AtMaxTasks {
            running: facts.running,
            max,
        });
    }
    match facts.held {
        Some(held) if held.reason.is_resources() => Verdict::Hold {
            reason: held.reason.clone(),
            until: Some(held.retry_at).filter(|retry| *retry > now),
        },
        _ if facts.elsewhere => Verdict::hold(HoldReason::AlreadyInProcess),
        _ => verdict,
    }
}

/// Lists every condition with its present value, and marks the one that decides.
#[must_use]
pub fn conditions(facts: &Facts<'_>, now: Timestamp) -> Vec<Condition> {
    let mut list = decided_by_people(facts);
    list.push(messages(facts));
    list.extend(pace(facts, now));
    list.extend(of_type(facts, now));
    list.push(max_tasks(facts));
    list.push(resources(facts));
    if facts.elsewhere {
        let source = ConditionSource::Tasks;
        list.push(condition(
            ELSEWHERE,
            false,
            "another host starts a task",
            source,
        ));
    }
    if let Verdict::Hold { reason, .. } = verdict(facts, now) {
        let by_step_54 = reason == HoldReason::AlreadyInProcess
            && matches!(evaluate(facts, now), Verdict::Fire(_));
        let name = if by_step_54 {
            ELSEWHERE
        } else {
            condition_of(&reason, facts.attributes.trigger)
        };
        list.iter_mut()
            .for_each(|condition| condition.decides = condition.name == name);
    }
    list
}

/// The condition that a reason belongs to.
fn condition_of(reason: &HoldReason, trigger: TriggerType) -> &'static str {
    match reason {
        HoldReason::StoreStopped => "store-writes",
        HoldReason::Draining => "host-runs",
        HoldReason::TriggerTypeNone => "trigger-type",
        HoldReason::TriggerOffByOperator | HoldReason::TriggerOffByDepth => "trigger-control",
        HoldReason::Paused(_) => "not-paused",
        HoldReason::GetDisabled => "get-enabled",
        HoldReason::Empty
        | HoldReason::BelowTriggerPriority { .. }
        | HoldReason::Delayed { .. }
        | HoldReason::Leased(_)
        | HoldReason::InOpenUnit(_)
        | HoldReason::GroupBusy(_)
        | HoldReason::RetryDelay(_)
        | HoldReason::ParkedMessage(_) => "messages-count",
        HoldReason::NoProcess(_)
        | HoldReason::ComponentMissing(_)
        | HoldReason::ComponentCompiling(_)
        | HoldReason::ComponentQuarantined(_)
        | HoldReason::StartFailed(_) => "start-not-held",
        HoldReason::BackingOff { .. } => "not-backing-off",
        HoldReason::AlreadyInProcess if trigger == TriggerType::Every => "starts-owed",
        HoldReason::AlreadyInProcess | HoldReason::TriggerPending => "no-start-under-way",
        HoldReason::ConsumerOpen { .. } => "no-consumer-open",
        HoldReason::WaitingForDepth { .. } => "depth-reached",
        HoldReason::AtMaxTasks { .. } => "below-max-tasks",
        HoldReason::InsufficientMemory { .. }
        | HoldReason::InsufficientHostMemory { .. }
        | HoldReason::InsufficientFuel { .. }
        | HoldReason::NoTaskSlot { .. } => "resources",
    }
}

fn condition(
    name: &'static str,
    holds: bool,
    value: impl Into<String>,
    source: ConditionSource,
) -> Condition {
    Condition {
        name,
        holds,
        value: value.into(),
        source,
        decides: false,
    }
}

fn decided_by_people(facts: &Facts<'_>) -> Vec<Condition> {
    let attributes = facts.attributes;
    let control = match (facts.control, facts.start_owed) {
        (Control::OffByDepth, true) => "off by depth, a start is owed".to_owned(),
        (Control::OffByDepth, false) if facts.running > 0 => {
            "off by depth, its task is in process".to_owned()
        }
        (control, _) => control.as_str().to_owned(),
    };
    let may_fire = match facts.control {
        Control::On => true,
        Control::OffByOperator => false,
        Control::OffByDepth => facts.start_owed || attributes.trigger != TriggerType::Depth,
    };
    let paused = facts.paused.map_or_else(
        || "not paused".to_owned(),
        |by| format!("the {} is paused", by.as_str()),
    );
    let get = if attributes.get {
        "enabled"
    } else {
        "disabled"
    };
    let either = |is_so: bool, yes, no| if is_so { yes } else { no };
    vec![
        condition(
            "store-writes",
            !facts.store_stopped,
            either(!facts.store_stopped, "writing", "stopped"),
            ConditionSource::Host,
        ),
        condition(
            "host-runs",
            !facts.draining,
            either(!facts.draining, "running", "stopping"),
            ConditionSource::Host,
        ),
        condition(
            "trigger-type",
            attributes.trigger != TriggerType::None,
            attributes.trigger.as_str(),
            ConditionSource::Attribute("trigger"),
        ),
        condition(
            "trigger-control",
            may_fire,
            control,
            ConditionSource::Operator,
        ),
        condition(
            "not-paused",
            facts.paused.is_none(),
            paused,
            ConditionSource::Operator,
        ),
        condition(
            "get-enabled",
            attributes.get,
            get,
            ConditionSource::Attribute("get"),
        ),
    ]
}

fn messages(facts: &Facts<'_>) -> Condition {
    let counts = facts.counts;
    let counted = facts.counted();
    let ready: i64 = counts.ready.iter().sum();
    let mut value = format!("{counted} of {}", unsigned(counts.depth()));
    let priority = facts.attributes.trigger_priority;
    if priority > 0 {
        value.push_str(&format!(" (trigger-priority {priority})"));
    }
    let others = [
        (
            "below the trigger priority",
            unsigned(ready) - counted.min(unsigned(ready)),
        ),
        ("in open units", unsigned(counts.in_unit)),
        ("leased", unsigned(counts.leased)),
        ("delayed", unsigned(counts.delayed)),
        ("waiting to be retried", unsigned(counts.retrying)),
        ("deferred", unsigned(counts.deferred)),
        ("in busy groups", unsigned(counts.group_held)),
        ("parked", unsigned(counts.parked)),
    ];
    for (what, count) in others.into_iter().filter(|(_, count)| *count > 0) {
        value.push_str(&format!(", {count} {what}"));
    }
    condition(
        "messages-count",
        counted > 0,
        value,
        ConditionSource::Messages,
    )
}

fn pace(facts: &Facts<'_>, now: Timestamp) -> [Condition; 2] {
    let held = facts
        .held
        .filter(|held| !held.reason.is_resources() && now < held.retry_at);
    let held_value = held.map_or_else(
        || "not held".to_owned(),
        |held| {
            let again = format_millis(held.retry_at.since(now));
            format!(
                "held at step {}: {}; again in {again}",
                held.step, held.reason
            )
        },
    );
    let backoff = facts.backoff.filter(|backoff| now < backoff.until);
    let backoff_value = backoff.map_or_else(
        || "not backing off".to_owned(),
        |backoff| {
            let again = format_millis(backoff.until.since(now));
            format!(
                "{} in a row without progress; again in {again}",
                backoff.failures
            )
        },
    );
    [
        condition(
            "start-not-held",
            held.is_none(),
            held_value,
            ConditionSource::Process,
        ),
        condition(
            "not-backing-off",
            backoff.is_none(),
            backoff_value,
            ConditionSource::Tasks,
        ),
    ]
}

fn of_type(facts: &Facts<'_>, now: Timestamp) -> Vec<Condition> {
    let counted = facts.counted();
    let starting = facts.starting;
    match facts.attributes.trigger {
        TriggerType::First => {
            let open = open_for_input(facts, now);
            let value = match &open {
                None => "no consumer".to_owned(),
                Some((_, Some(end))) => {
                    format!("left; lingers for {}", format_millis(end.since(now)))
                }
                Some((_, None)) => format!(
                    "{} waiting gets, {} unsettled leases",
                    facts.waiting_inputs,
                    unsigned(facts.counts.leased_open)
                ),
            };
            vec![
                condition(
                    "no-start-under-way",
                    starting == 0,
                    format!("{starting} under way"),
                    ConditionSource::Tasks,
                ),
                condition(
                    "no-consumer-open",
                    open.is_none(),
                    value,
                    ConditionSource::Consumers,
                ),
            ]
        }
        TriggerType::Every => {
            let owed = counted.saturating_sub(u64::from(starting));
            let value = format!("{owed} ({counted} counted, {starting} starts under way)");
            vec![condition(
                "starts-owed",
                owed > 0,
                value,
                ConditionSource::Messages,
            )]
        }
        TriggerType::Depth => {
            let depth = facts.attributes.trigger_depth;
            let ripe = ripe_at(facts);
            let mut value = format!("{counted} of {depth}");
            if let Some(ripe) = ripe {
                let wait = format_millis(ripe.since(now));
                value.push_str(&format!(", or max-wait in {wait}"));
            }
            let reached = counted >= depth
                || ripe.is_some_and(|ripe| ripe <= now)
                || (facts.control == Control::OffByDepth && facts.start_owed);
            let source = ConditionSource::Attribute("trigger-depth");
            vec![condition("depth-reached", reached, value, source)]
        }
        TriggerType::None => Vec::new(),
    }
}

fn max_tasks(facts: &Facts<'_>) -> Condition {
    let max = facts.attributes.max_tasks;
    let value = format!("{} of {max} in process", facts.running);
    let source = ConditionSource::Attribute("max-tasks");
    condition("below-max-tasks", facts.running < max, value, source)
}

fn resources(facts: &Facts<'_>) -> Condition {
    let held = facts.held.filter(|held| held.reason.is_resources());
    let value = held.map_or_else(|| "not lacking".to_owned(), |held| held.reason.to_string());
    condition("resources", held.is_none(), value, ConditionSource::Ledger)
}

#[cfg(test)]
mod tests;
