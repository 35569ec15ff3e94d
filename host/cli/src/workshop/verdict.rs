//! What a run with a fault must come to. A handler that fails leaves nothing; one that goes on has
//! done all of its work, or something of its own instead.

use oncue_core::outcome::Outcome;

use super::case::{Expected, WantedPut};
use super::faults::{Driven, FaultKind, Rig, Struck};
use super::observed::Observed;

/// Judges a run: a note for people, or what is wrong in lines.
pub(super) fn judge(
    rig: &Rig<'_>,
    kind: FaultKind,
    driven: &Driven,
) -> Result<Option<String>, Vec<String>> {
    let Some(struck) = &driven.struck else {
        // After an earlier difference the place was not reached.
        return Ok(Some("not reached in some runs".to_owned()));
    };
    if kind == FaultKind::RefusedPut {
        return refused_put(rig, driven, struck);
    }
    if kind == FaultKind::CutOff {
        nothing_half_done(rig, struck)?;
    }
    same_end(rig, &driven.last)
}

/// A put was refused: the handler fails, or copes with it.
fn refused_put(
    rig: &Rig<'_>,
    driven: &Driven,
    struck: &Struck,
) -> Result<Option<String>, Vec<String>> {
    let news = news(struck);
    if step_is_committed(struck) {
        let wanted = rig.step(struck.step);
        let (lost, new) = (missing(wanted, &news), missing(&news, wanted));
        if lost.is_empty() {
            return Ok(Some("put again by the handler".to_owned()));
        }
        if !new.is_empty() {
            return Ok(Some("handled otherwise by the handler".to_owned()));
        }
        let mut lines = vec![
            "commits half: the put was refused as full, and the handler returned ok without it"
                .to_owned(),
        ];
        lines.extend(lost.iter().map(|put| format!("lost: {}", shown(put))));
        return Err(lines);
    }
    nothing_half_done(rig, struck)?;
    let gave_up = struck
        .after
        .messages
        .iter()
        .any(|it| it.outcome == Some(Outcome::Rejected) && !was_there(struck, it.id));
    if gave_up {
        // Its own decision: nothing is lost, the message is in the backout queue.
        return Ok(Some("rejected by the handler".to_owned()));
    }
    same_end(rig, &driven.last)
}

/// Of a unit that failed nothing is visible.
fn nothing_half_done(rig: &Rig<'_>, struck: &Struck) -> Result<(), Vec<String>> {
    let news = news(struck);
    let all: Vec<WantedPut>;
    let may_be: &[WantedPut] = if rig.is_exact() && !works_the_queue(rig) {
        &[]
    } else {
        // Units that were committed before the fault.
        all = rig.golden.puts.clone();
        &all
    };
    let half = missing(&news, may_be);
    let mut lines: Vec<String> = half
        .iter()
        .map(|put| format!("visible though its unit failed: {}", shown(put)))
        .collect();
    let state = |seen: &Observed| seen.expected().state;
    if !works_the_queue(rig) && rig.is_exact() && state(&struck.before) != state(&struck.after) {
        lines.push("its state was changed though its unit failed".to_owned());
    }
    if lines.is_empty() { Ok(()) } else { Err(lines) }
}

/// In the end all is as it is without the fault.
fn same_end(rig: &Rig<'_>, last: &Observed) -> Result<Option<String>, Vec<String>> {
    let wrong = rig.differs(last);
    if wrong.is_empty() {
        return Ok(None);
    }
    if rig.is_exact() {
        return Err(in_words(
            "in the end it is not as without the fault:",
            wrong,
        ));
    }
    // Several messages at once: a retry changes the order, and after a failed unit the next ones
    // are smaller. What was done must be there all the same, once.
    let got = last.expected();
    let (lost, new) = (
        missing(&rig.golden.puts, &got.puts),
        missing(&got.puts, &rig.golden.puts),
    );
    match (lost.as_slice(), new.as_slice()) {
        ([], []) if outcomes(&rig.golden) == outcomes(&got) => Ok(None),
        ([], []) => Err(in_words("in the end messages end otherwise:", wrong)),
        (lost, []) => Err(lost
            .iter()
            .map(|put| format!("lost: {}", shown(put)))
            .collect()),
        ([], new) if new.iter().all(|put| rig.golden.puts.contains(put)) => Err(new
            .iter()
            .map(|put| format!("put twice: {}", shown(put)))
            .collect()),
        _ => Ok(Some("comes out otherwise in smaller units".to_owned())),
    }
}

fn in_words(what: &str, lines: Vec<String>) -> Vec<String> {
    std::iter::once(what.to_owned()).chain(lines).collect()
}

fn works_the_queue(rig: &Rig<'_>) -> bool {
    rig.bench.plugin.version.style.works_the_queue()
}

/// What was put in the step in which the fault struck.
fn news(struck: &Struck) -> Vec<WantedPut> {
    let known = struck.before.puts.len();
    let puts = struck.after.puts.iter().skip(known);
    puts.map(|put| struck.after.put(put)).collect()
}

fn was_there(struck: &Struck, id: oncue_core::message::MessageId) -> bool {
    struck.before.messages.iter().any(|it| it.id == id)
}

/// True when every message of the step was committed.
fn step_is_committed(struck: &Struck) -> bool {
    let mut step = struck
        .after
        .messages
        .iter()
        .filter(|it| !was_there(struck, it.id));
    step.all(|it| it.outcome == Some(Outcome::Committed))
}

fn outcomes(of: &Expected) -> Vec<&str> {
    of.messages.iter().map(|it| it.outcome.as_str()).collect()
}

/// Those of `wanted` that are not in `got`, each as often as it is short.
pub(super) fn missing(wanted: &[WantedPut], got: &[WantedPut]) -> Vec<WantedPut> {
    let mut left: Vec<&WantedPut> = got.iter().collect();
    let mut missing = Vec::new();
    for put in wanted {
        match left.iter().position(|other| *other == put) {
            Some(index) => {
                left.swap_remove(index);
            }
            None => missing.push(put.clone()),
        }
    }
    missing
}

/// A put in a line.
fn shown(put: &WantedPut) -> String {
    const SHOWN: usize = 200;
    let text = serde_json::to_string(put).expect("a put can be written");
    crate::render::text::cut_line(&text, SHOWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_counted() {
        let put = |queue: &str| WantedPut {
            queue: queue.to_owned(),
            ..WantedPut::default()
        };
        let check = |wanted: &[&str], got: &[&str], lost: &[&str]| {
            let puts = |names: &[&str]| names.iter().map(|name| put(name)).collect::<Vec<_>>();
            let found = missing(&puts(wanted), &puts(got));
            let found: Vec<&str> = found.iter().map(|put| put.queue.as_str()).collect();
            assert_eq!(found, lost);
        };
        check(&["a", "b"], &["b", "a"], &[]);
        check(&["a", "a"], &["a"], &["a"]);
        check(&["a"], &["a", "b"], &[]);
        check(&["a", "c"], &["b"], &["a", "c"]);
    }
}
