//! Command style: any program that exports `wasi:cli/run`, run once for each message. The body is
//! its standard input, what it writes to standard output is put on, its end decides.
//!
//! An end without failure (return, or exit with status 0) is a success. A failure (an error, or an
//! exit with another status) is another attempt, with the end of standard error as the reason; a
//! failure or a trap whose last line on standard error is `oncue-reject: REASON` rejects the
//! message. A success stays a success whatever was written: text that came in with a message and is
//! written to standard error must not lose it. The limits' own ends are theirs. A program gets no
//! message but the one it is run for. Neighbours: [`environment`] is what it is told, [`pipes`]
//! what it reads and writes, [`super::output`] puts what it wrote.

use std::sync::Arc;

use oncue_core::definition::Style;
use oncue_core::outcome::Failure;
use oncue_manager::tasks::Delivered;
use oncue_manager::tasks::port::PutOptions;
use wasmtime::component::{Instance, InstancePre};
use wasmtime::{Store, StoreContextMut, Trap, format_err};
use wasmtime_wasi::I32Exit;
use wasmtime_wasi::p2::bindings::exports::wasi::cli::run::GuestIndices;

use self::pipes::{Body, Capture};
use super::{Answer, Bound, Caller, Calling, Dressing, StyleDef, Wanted, output};
use crate::interfaces::Guest;
use crate::plugin::contract::{Function, Type};
use crate::sink::Log;

mod environment;
mod pipes;

pub(super) const DEF: StyleDef = StyleDef {
    style: Style::Command,
    world: "command",
    exports: &[Wanted {
        name: "wasi:cli/run",
        version: "0.2",
        function: "run",
        contract: Some(run),
    }],
    offers: &[],
    link: |_| Ok(()),
    bind,
    // A program is over when it has run.
    fresh: true,
};

/// How the last line of standard error begins that rejects the message.
const REJECT: &str = "oncue-reject:";

/// The reason of a failure that gave none.
const NO_WORDS: &str = "ended with a failure and wrote nothing to standard error";

/// `run: func() -> result`.
fn run() -> Function {
    Function {
        asynchronous: false,
        parameters: Vec::new(),
        result: Some(Type::Result(None, None)),
    }
}

fn bind(pre: &InstancePre<Guest>) -> wasmtime::Result<Bound> {
    Ok(Bound::EachMessage(Box::new(Command(GuestIndices::new(
        pre,
    )?))))
}

struct Command(GuestIndices);

impl Caller for Command {
    fn check(
        &self,
        store: StoreContextMut<'_, Guest>,
        instance: &Instance,
    ) -> wasmtime::Result<()> {
        self.0.load(store, instance).map(drop)
    }

    fn dress(&self, guest: &mut Dressing<'_>) {
        let (session, message) = (guest.session, guest.message);
        let wasi = guest.wasi();
        wasi.args(&environment::arguments(session.spec()));
        for (name, value) in environment::variables(session.spec(), message) {
            wasi.env(name, value);
        }
        wasi.stdin(Body::new(session, message));
        // With nowhere to put it, standard output stays a part of the log.
        if let Some(room) = session.output_room(message) {
            let capture = Capture::new(room);
            wasi.stdout(capture.clone());
            guest.kept.set(capture);
        }
    }

    fn call<'a>(
        &'a self,
        store: &'a mut Store<Guest>,
        instance: &'a Instance,
        message: &'a Arc<Delivered>,
    ) -> Calling<'a> {
        Box::pin(call(&self.0, store, instance, message))
    }
}

async fn call(
    indices: &GuestIndices,
    store: &mut Store<Guest>,
    instance: &Instance,
    message: &Arc<Delivered>,
) -> Answer {
    let written = Written {
        capture: store.data_mut().kept.take(),
        log: store.data().log.clone(),
    };
    let program = indices.load(&mut *store, instance)?;
    let ended = program.call_run(&mut *store).await;
    let starved = store.data().limiter.denied().is_some();
    match verdict(ended, &written.log, starved)? {
        Ok(()) => {}
        Err(failure) => return Ok(Err(failure)),
    }
    let body = written.capture.as_ref().map(Capture::take);
    match body.filter(|body| !body.is_empty()) {
        Some(body) => output::put(store.data(), message, body, PutOptions::default()),
        None => Ok(Ok(())),
    }
}

/// What the end of a run means for its message. `starved`: it was denied memory on the way.
fn verdict(ended: wasmtime::Result<Result<(), ()>>, log: &Log, starved: bool) -> Answer {
    let error = match ended {
        Ok(Ok(())) => None,
        Ok(Err(())) => Some(format_err!(I32Exit(1))),
        Err(error) if matches!(error.downcast_ref(), Some(I32Exit(0))) => None,
        Err(error) => Some(error),
    };
    let rejects = rejection(log);
    let Some(error) = error else {
        if rejects.is_some() {
            log.line("[the last line asks for a rejection; the run succeeded, so it is committed]");
        }
        return Ok(Ok(()));
    };
    let failed = error.is::<I32Exit>();
    let trapped = error
        .downcast_ref::<Trap>()
        .is_some_and(|trap| *trap != Trap::OutOfFuel);
    // A limit that was reached says more than the program's last words.
    if starved || !(failed || trapped) {
        return Err(error);
    }
    match rejects {
        Some(reason) => Ok(Err(Failure::Reject(reason))),
        None if failed => Ok(Err(Failure::Retry {
            reason: reason(log),
            after: None,
        })),
        None => Err(error),
    }
}

/// The reason on the last line of standard error, if it rejects.
fn rejection(log: &Log) -> Option<String> {
    let text = log.error_tail();
    let line = text.trim_end().lines().next_back()?;
    let reason = line.trim_start().strip_prefix(REJECT)?.trim();
    let unsaid = "rejected without a reason";
    Some(if reason.is_empty() { unsaid } else { reason }.to_owned())
}

/// The end of standard error.
fn reason(log: &Log) -> String {
    let text = log.error_tail();
    match text.trim() {
        "" => NO_WORDS.to_owned(),
        words => words.to_owned(),
    }
}

/// Standard output of a run until it is put. What is not goes to the log, however the run ends:
/// its author will look for it there.
struct Written {
    capture: Option<Capture>,
    log: Log,
}

impl Drop for Written {
    fn drop(&mut self) {
        if let Some(capture) = &self.capture {
            capture.tell(&self.log);
        }
    }
}

#[cfg(test)]
mod tests {
    use wasmtime::Error;
    use wasmtime_wasi::p2::OutputStream as _;

    use super::*;

    fn failed() -> wasmtime::Result<Result<(), ()>> {
        Ok(Err(()))
    }

    fn exit(status: i32) -> wasmtime::Result<Result<(), ()>> {
        Err(format_err!(I32Exit(status)))
    }

    fn trap(trap: Trap) -> wasmtime::Result<Result<(), ()>> {
        Err(Error::from(trap))
    }

    /// The verdict on an end after so much on standard error, in words.
    fn said(ended: wasmtime::Result<Result<(), ()>>, errors: &[u8], starved: bool) -> String {
        let log = Log::new(64 << 10);
        let errors = bytes::Bytes::copy_from_slice(errors);
        log.error().write(errors.clone()).expect("never fails");
        let errors = &errors[..];
        match verdict(ended, &log, starved) {
            Ok(Ok(())) => format!("ok{}", log.tail().0.trim_end().len() - trimmed(errors)),
            Ok(Err(Failure::Retry { reason, .. })) => format!("retry: {reason}"),
            Ok(Err(Failure::Reject(reason))) => format!("reject: {reason}"),
            Ok(Err(Failure::Defer(_))) => "defer".to_owned(),
            Err(error) => format!("{error}"),
        }
    }

    fn trimmed(errors: &[u8]) -> usize {
        errors.trim_ascii_end().len()
    }

    #[test]
    fn the_end_of_a_run_decides() {
        let line = b"loading\noncue-reject: no such order \n\n";
        assert_eq!(said(Ok(Ok(())), b"", false), "ok0");
        assert_eq!(said(exit(0), b"warning", false), "ok0");
        assert_eq!(said(failed(), b" a\nb\n", false), "retry: a\nb");
        assert_eq!(said(exit(3), b"", false), format!("retry: {NO_WORDS}"));
        assert_eq!(said(failed(), line, false), "reject: no such order");
        assert_eq!(said(exit(1), line, false), "reject: no such order");
        let unreachable = || trap(Trap::UnreachableCodeReached);
        assert_eq!(said(unreachable(), line, false), "reject: no such order");
        assert!(said(unreachable(), b"boom", false).contains("unreachable"));
        let bare = said(failed(), b"oncue-reject:", false);
        assert_eq!(bare, "reject: rejected without a reason");
        let earlier = said(failed(), b"oncue-reject: a\nlater", false);
        assert_eq!(earlier, "retry: oncue-reject: a\nlater");
    }

    #[test]
    fn a_limit_is_not_overruled_by_the_last_line() {
        let line = b"oncue-reject: too hard\n";
        assert!(said(trap(Trap::OutOfFuel), line, false).contains("fuel"));
        assert!(said(exit(1), line, true).contains("Exited with i32 exit status 1"));
        assert!(said(failed(), line, true).contains("Exited with i32 exit status 1"));
    }

    #[test]
    fn a_success_is_not_overruled_by_what_was_written() {
        let text = said(Ok(Ok(())), b"oncue-reject: an order said so", false);
        assert!(
            text.starts_with("ok") && text != "ok0",
            "a line is added to the log: {text}"
        );
    }

    #[test]
    fn wrong_utf8_is_replaced_and_a_long_reason_is_cut_between_characters() {
        assert_eq!(said(failed(), b"caf\xe9!", false), "retry: caf\u{fffd}!");
        let long = "\u{e9}".repeat(5000);
        let text = said(failed(), format!("{long}x").as_bytes(), false);
        assert!(
            !text.contains('\u{fffd}') && text.ends_with("\u{e9}x"),
            "{text}"
        );
        assert!(text.len() < 2100, "{}", text.len());
    }
}
