//! How a call into a guest ended, from what wasmtime says of it: an outcome with a sentence for
//! people.
//!
//! Guest failures and host failures are told apart here and nowhere else, because only the first
//! charge a message. It decides nothing about the message.

use oncue_core::outcome::{CallEnd, Outcome};
use oncue_core::quantity::{format_bytes, format_count};
use wasmtime::component::ResourceTableError;
use wasmtime::{PoolConcurrencyLimitError, Trap, WasmBacktrace};
use wasmtime_wasi::I32Exit;

use crate::interfaces::Guest;
use crate::limiter::Denied;
use crate::sink::cut;
use crate::task::limits::Limits;

/// The most of a backtrace that is kept, in bytes.
const MAX_BACKTRACE: usize = 4 << 10;

/// The most of a sentence about a trap that is kept, in bytes.
const MAX_DETAIL: usize = 1 << 10;

/// Frames of one function in a backtrace from which on it is called a recursion.
const RECURSION_FRAMES: usize = 8;

/// Wasmtime has no type for these three; their texts are stable within the pinned version, and a
/// test holds them.
const HOST_CALL_FUEL: &str = "too much data is being copied between the host and the guest";
const HANDLE_LIMIT: &str = "store handle limit exceeded";
const ENTER: &str = "cannot enter component instance";

/// Ends a guest from within a host function: the error that the function answers instead of a
/// value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Stop {
    /// The guest is to blame.
    #[error("{detail}")]
    Limit {
        /// Which limit.
        outcome: Outcome,
        /// The sentence.
        detail: String,
    },
    /// The host is to blame: nothing is charged.
    #[error("{0}")]
    Host(String),
}

impl Stop {
    /// A limit was reached.
    pub(crate) fn limit(outcome: Outcome, detail: String) -> Self {
        Self::Limit { outcome, detail }
    }

    /// The guest did what it may not.
    pub(crate) fn trap(detail: String) -> Self {
        Self::limit(Outcome::Trapped, detail)
    }
}

/// What is known of a guest when its call has ended.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    /// Fuel that it was given.
    pub(crate) fuel: u64,
    /// The last growth that it was denied.
    pub(crate) denied: Option<Denied>,
    /// Most handles.
    pub(crate) handles: usize,
    /// Most bytes in one call to the host.
    pub(crate) host_call_bytes: u64,
    /// The end of its standard error.
    pub(crate) last_words: String,
}

impl Facts {
    /// What is known of a guest under these limits.
    pub(crate) fn new(limits: &Limits, guest: &Guest) -> Self {
        Self {
            fuel: limits.fuel,
            denied: guest.limiter.denied(),
            handles: limits.handles,
            host_call_bytes: limits.host_call_bytes(),
            last_words: guest.log.last_words(),
        }
    }
}

/// What the guest did or the host lacked, as the rest of a sentence.
pub(crate) fn sentence(end: &CallEnd) -> String {
    match end {
        CallEnd::Stopped { detail, .. } => detail.clone(),
        CallEnd::HostFailed(reason) => format!("could not be given its place: {reason}"),
        CallEnd::Ok | CallEnd::Failed(_) => "ended".to_owned(),
    }
}

/// The end of a call that failed in the sandbox.
pub(crate) fn classify(error: &wasmtime::Error, facts: &Facts) -> CallEnd {
    if let Some(reason) = host_failure(error) {
        return CallEnd::HostFailed(reason);
    }
    let backtrace = error.downcast_ref::<WasmBacktrace>();
    let (outcome, detail) = guest_failure(error, backtrace, facts);
    let backtrace = backtrace.filter(|trace| !trace.frames().is_empty());
    CallEnd::Stopped {
        outcome,
        detail: cut(&detail, MAX_DETAIL),
        backtrace: backtrace.map(|trace| cut(&trace.to_string(), MAX_BACKTRACE)),
    }
}

/// Why the host could not run the guest, if that is what happened.
fn host_failure(error: &wasmtime::Error) -> Option<String> {
    if let Some(Stop::Host(reason)) = error.downcast_ref::<Stop>() {
        return Some(reason.clone());
    }
    if error.is::<PoolConcurrencyLimitError>() {
        return Some(format!(
            "no slot is free in the pool of instances: {}",
            error.root_cause()
        ));
    }
    let failed = error.downcast_ref::<std::io::Error>()?;
    Some(format!(
        "the operating system refused memory for an instance: {failed}"
    ))
}

fn guest_failure(
    error: &wasmtime::Error,
    backtrace: Option<&WasmBacktrace>,
    facts: &Facts,
) -> (Outcome, String) {
    if let Some(Stop::Limit { outcome, detail }) = error.downcast_ref::<Stop>() {
        return (*outcome, detail.clone());
    }
    if error.downcast_ref::<Trap>() == Some(&Trap::OutOfFuel) {
        let fuel = format_count(facts.fuel);
        let detail = format!("burnt its fuel: {fuel} of {fuel}; raise fuel if it needs more");
        return (Outcome::OutOfFuel, detail);
    }
    let text = error.root_cause().to_string();
    if matches!(error.downcast_ref(), Some(ResourceTableError::Full)) || text.contains(HANDLE_LIMIT)
    {
        let most = facts.handles;
        let detail = format!(
            "held {most} resource handles of {most} and asked for another; drop handles that are \
             no longer needed or raise max-handles"
        );
        return (Outcome::HandleLimit, detail);
    }
    if text.contains(HOST_CALL_FUEL) {
        let most = format_bytes(facts.host_call_bytes);
        let detail = format!("passed more than {most} to the host in one call");
        return (Outcome::HostCallLimit, detail);
    }
    let trap = with_last_words(trap_sentence(error, backtrace, &text), &facts.last_words);
    match facts.denied {
        None => (Outcome::Trapped, trap),
        Some(denied) => (
            Outcome::OverMemory,
            format!("{}; then it {trap}", denial(denied)),
        ),
    }
}

/// The denied growth in words.
fn denial(denied: Denied) -> String {
    match denied {
        Denied::Memory { wanted, limit } => {
            let (wanted, limit) = (format_bytes(wanted), format_bytes(limit));
            format!("wanted {wanted} of memory and may have {limit}; raise memory if it needs more")
        }
        Denied::Table { wanted, limit } => format!(
            "wanted {wanted} table elements and may have {limit}; raise table-elements if it needs \
             more"
        ),
    }
}

/// What the guest did, as the rest of a sentence about it.
fn trap_sentence(error: &wasmtime::Error, backtrace: Option<&WasmBacktrace>, text: &str) -> String {
    if let Some(I32Exit(status)) = error.downcast_ref() {
        return format!("exited with status {status}");
    }
    let recursion = backtrace.and_then(recursion);
    let trap = error.downcast_ref::<Trap>();
    match (trap, recursion) {
        (Some(Trap::StackOverflow), None) => "ran out of stack: it recursed too deeply".to_owned(),
        (Some(Trap::StackOverflow | Trap::MemoryOutOfBounds), Some(function)) => {
            format!("ran out of stack: {function} calls itself too deeply")
        }
        (Some(Trap::MemoryOutOfBounds), None) => {
            "read or wrote outside its memory, or ran out of stack".to_owned()
        }
        (Some(Trap::UnreachableCodeReached), _) => {
            "panicked or aborted (it reached an unreachable instruction)".to_owned()
        }
        (Some(trap), _) => {
            let trap = trap.to_string();
            format!(
                "trapped: {}",
                trap.strip_prefix("wasm trap: ").unwrap_or(&trap)
            )
        }
        (None, _) if text.contains(ENTER) => "was called again after it had trapped".to_owned(),
        (None, _) => format!("was ended by the sandbox: {text}"),
    }
}

/// The function that fills the backtrace, if one does.
fn recursion(backtrace: &WasmBacktrace) -> Option<String> {
    let frames = backtrace.frames();
    let times = |index: u32| {
        frames
            .iter()
            .filter(|frame| frame.func_index() == index)
            .count()
    };
    // The innermost frame may be a leaf that the recursion happened to be in.
    let frame = frames
        .iter()
        .take(4)
        .find(|f| times(f.func_index()) >= RECURSION_FRAMES)?;
    let name = frame.func_name().map_or_else(
        || format!("function {}", frame.func_index()),
        |name| format!("\"{}\"", cut(&demangled(name), 100)),
    );
    Some(name)
}

/// A Rust symbol without the hash and with `::`; any other name as it is.
fn demangled(name: &str) -> String {
    match name.rfind("::h") {
        Some(hash) if name.len() - hash == 19 => name[..hash].to_owned(),
        _ => name.to_owned(),
    }
}

fn with_last_words(sentence: String, last_words: &str) -> String {
    if last_words.is_empty() {
        return sentence;
    }
    format!("{sentence}; its last words: {last_words}")
}

#[cfg(test)]
mod tests {
    use wasmtime::{Error, format_err};

    use super::*;

    fn facts() -> Facts {
        Facts {
            fuel: 20_000_000,
            denied: None,
            handles: 10,
            host_call_bytes: 1 << 20,
            last_words: String::new(),
        }
    }

    fn check(error: impl Into<Error>, facts: &Facts, outcome: Outcome, sentence: &str) {
        match classify(&error.into(), facts) {
            CallEnd::Stopped {
                outcome: found,
                detail,
                ..
            } => {
                assert_eq!(found, outcome, "{detail}");
                assert_eq!(detail, sentence);
            }
            end => panic!("wanted {outcome:?}, got {end:?}"),
        }
    }

    #[test]
    fn each_limit_has_its_outcome_and_its_numbers() {
        let fuel = "burnt its fuel: 20 M of 20 M; raise fuel if it needs more";
        check(Trap::OutOfFuel, &facts(), Outcome::OutOfFuel, fuel);
        let handles = "held 10 resource handles of 10 and asked for another; drop handles that are \
                       no longer needed or raise max-handles";
        check(
            ResourceTableError::Full,
            &facts(),
            Outcome::HandleLimit,
            handles,
        );
        check(
            format_err!("{HANDLE_LIMIT}"),
            &facts(),
            Outcome::HandleLimit,
            handles,
        );
        let bytes = "passed more than 1 MiB to the host in one call";
        check(
            format_err!("{HOST_CALL_FUEL}: x"),
            &facts(),
            Outcome::HostCallLimit,
            bytes,
        );
        let stop = Stop::limit(Outcome::OutputLimit, "too much".to_owned());
        check(stop, &facts(), Outcome::OutputLimit, "too much");
    }

    #[test]
    fn a_trap_after_a_denied_growth_is_over_memory() {
        let denied = Denied::Memory {
            wanted: 70 << 20,
            limit: 64 << 20,
        };
        let facts = Facts {
            denied: Some(denied),
            ..facts()
        };
        let sentence = "wanted 70 MiB of memory and may have 64 MiB; raise memory if it needs \
                        more; then it panicked or aborted (it reached an unreachable instruction)";
        check(
            Trap::UnreachableCodeReached,
            &facts,
            Outcome::OverMemory,
            sentence,
        );
        let fuel = "burnt its fuel: 20 M of 20 M; raise fuel if it needs more";
        check(Trap::OutOfFuel, &facts, Outcome::OutOfFuel, fuel);
    }

    #[test]
    fn a_trap_says_what_the_guest_said_last() {
        let words = "thread 'x' panicked at src/lib.rs:7:37: boom".to_owned();
        let facts = Facts {
            last_words: words,
            ..facts()
        };
        let sentence = "panicked or aborted (it reached an unreachable instruction); its last \
                        words: thread 'x' panicked at src/lib.rs:7:37: boom";
        check(
            Trap::UnreachableCodeReached,
            &facts,
            Outcome::Trapped,
            sentence,
        );
    }

    #[test]
    fn an_exit_is_a_trap_with_its_status() {
        check(
            I32Exit(1),
            &facts(),
            Outcome::Trapped,
            "exited with status 1",
        );
        check(
            I32Exit(0),
            &facts(),
            Outcome::Trapped,
            "exited with status 0",
        );
    }

    #[test]
    fn a_failure_of_the_host_charges_nobody() {
        let failed = classify(&Stop::Host("stopping".to_owned()).into(), &facts());
        assert_eq!(failed, CallEnd::HostFailed("stopping".to_owned()));
        let failed = classify(&std::io::Error::other("no memory").into(), &facts());
        assert!(matches!(failed, CallEnd::HostFailed(_)), "{failed:?}");
    }
}
