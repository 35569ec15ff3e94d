//! Exit codes, and the failure that carries one to the end of the program.
//!
//! Every command ends in one of six codes, whatever went wrong. A [`Failure`] is printed here and
//! nowhere else, so that all errors look the same. It does not log: what the user did not ask for
//! is no talk of the command line. Neighbours: `client` makes failures from answers, `render`
//! from a closed output.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use oncue_core::code::{Class, Code};

use crate::render::text::escape_text;

/// How the program ends. The numbers are a promise to scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// What was asked is done.
    Done = 0,
    /// It failed for a reason that none of the others names.
    Failed = 1,
    /// The command line, a setting or the input is wrong.
    Usage = 2,
    /// What was named is not there; a get found no message.
    NotFound = 3,
    /// Understood, and not allowed or not possible now.
    Refused = 4,
    /// No host answers, or it is starting or stopping.
    Unreachable = 5,
}

impl Exit {
    /// The exit code of a permanent error code.
    pub(crate) fn of_code(code: Code) -> Self {
        match code {
            Code::Unreachable | Code::Starting | Code::Draining | Code::TimedOut => {
                Self::Unreachable
            }
            // Done or not done: neither "refused" nor "repeat it" would be true.
            Code::CommitUnknown => Self::Failed,
            _ => match code.class() {
                Class::Absent => Self::NotFound,
                Class::Conflict | Class::Refused | Class::Unavailable => Self::Refused,
                Class::Invalid => Self::Usage,
                Class::Corrupt | Class::Internal => Self::Failed,
            },
        }
    }

    /// The exit code of an HTTP status, for an answer whose code this version does not know.
    pub(crate) fn of_status(status: u16) -> Self {
        match status {
            404 | 410 => Self::NotFound,
            400 | 405 | 406 | 411 | 414 | 415 | 422 | 431 => Self::Usage,
            408 | 502..=504 => Self::Unreachable,
            401..=499 | 507 => Self::Refused,
            _ => Self::Failed,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

/// Why a command was not done.
#[derive(Debug)]
pub(crate) struct Failure {
    /// How the program ends.
    pub(crate) exit: Exit,
    /// For people: object, fact, what to do, code. Empty: there is nothing to say.
    pub(crate) message: String,
    /// Everything that is wrong with the input, one sentence each.
    pub(crate) faults: Vec<String>,
}

impl Failure {
    /// A failure without a permanent code.
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self {
            exit,
            message: message.into(),
            faults: Vec::new(),
        }
    }

    /// A failure with a permanent code, which ends the sentence and decides the exit code.
    pub(crate) fn coded(code: Code, message: impl fmt::Display) -> Self {
        Self::new(Exit::of_code(code), format!("{message} [{code}]"))
    }

    /// The same failure with all faults of the input.
    pub(crate) fn with_faults(mut self, faults: Vec<String>) -> Self {
        self.faults = faults;
        self
    }

    /// The reader of our output went away: it has seen enough, so all is well.
    pub(crate) fn reader_gone() -> Self {
        Self::new(Exit::Done, "")
    }

    /// A failure to write the output.
    pub(crate) fn output(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::reader_gone();
        }
        Self::new(
            Exit::Failed,
            format!("the output cannot be written: {error}"),
        )
    }

    /// Prints the failure: the one place where errors are printed.
    pub(crate) fn report(&self, mut talk: impl Write) {
        if self.message.is_empty() {
            return;
        }
        let mut text = format!("oncue: {}\n", escape_text(&self.message));
        for fault in &self.faults {
            // A fault with a look at the input has several lines.
            let shown = escape_text(fault).replace('\n', "\n  ");
            text.push_str("  ");
            text.push_str(&shown);
            text.push('\n');
        }
        // With nowhere left to say it, the exit code still tells.
        let _ = talk.write_all(text.as_bytes());
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl From<anyhow::Error> for Failure {
    /// The whole chain as one sentence: contexts in the present tense, outermost first.
    fn from(error: anyhow::Error) -> Self {
        Self::new(Exit::Failed, format!("{error:#}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_the_promised_numbers() {
        let promised = [
            (Exit::Done, 0),
            (Exit::Failed, 1),
            (Exit::Usage, 2),
            (Exit::NotFound, 3),
            (Exit::Refused, 4),
            (Exit::Unreachable, 5),
        ];
        for (exit, number) in promised {
            assert_eq!(exit as u8, number);
        }
    }

    #[test]
    fn every_code_has_the_exit_of_its_meaning() {
        let check = |code: Code, wanted: Exit| assert_eq!(Exit::of_code(code), wanted, "{code}");
        check(Code::UnknownQueue, Exit::NotFound);
        check(Code::UnknownLease, Exit::NotFound);
        check(Code::QueueFull, Exit::Refused);
        check(Code::QueueNotEmpty, Exit::Refused);
        check(Code::LeaseExpired, Exit::Refused);
        check(Code::StoreFull, Exit::Refused);
        check(Code::NotAuthorized, Exit::Refused);
        check(Code::InvalidDefinition, Exit::Usage);
        check(Code::InvalidConfiguration, Exit::Usage);
        check(Code::Unreachable, Exit::Unreachable);
        check(Code::Draining, Exit::Unreachable);
        check(Code::CommitUnknown, Exit::Failed);
        check(Code::StoreCorrupt, Exit::Failed);
        check(Code::Internal, Exit::Failed);
        for code in Code::ALL {
            assert_ne!(Exit::of_code(*code), Exit::Done, "{code} is no success");
        }
    }

    #[test]
    fn a_status_alone_has_an_exit_too() {
        let check = |status: u16, wanted: Exit| {
            assert_eq!(Exit::of_status(status), wanted, "{status}");
        };
        check(400, Exit::Usage);
        check(401, Exit::Refused);
        check(404, Exit::NotFound);
        check(409, Exit::Refused);
        check(413, Exit::Refused);
        check(415, Exit::Usage);
        check(422, Exit::Usage);
        check(429, Exit::Refused);
        check(500, Exit::Failed);
        check(503, Exit::Unreachable);
        check(507, Exit::Refused);
    }

    fn printed(failure: &Failure) -> String {
        let mut talk = Vec::new();
        failure.report(&mut talk);
        String::from_utf8(talk).expect("text")
    }

    #[test]
    fn a_failure_is_one_sentence_and_a_line_for_each_fault() {
        let failure =
            Failure::coded(Code::InvalidDefinition, "queue \"orders\" has faults").with_faults(
                vec!["\"trigger\" is \x1b[31m".into(), "\"depth\" is 0".into()],
            );
        assert_eq!(
            printed(&failure),
            "oncue: queue \"orders\" has faults [invalid-definition]\n  \
             \"trigger\" is \\u{1b}[31m\n  \"depth\" is 0\n"
        );
        assert_eq!(failure.exit, Exit::Usage);
    }

    #[test]
    fn a_fault_of_several_lines_keeps_them() {
        let faults = vec!["it is no TOML:\n  |\n1 | x y".to_owned()];
        let failure = Failure::new(Exit::Usage, "file \"f\" has faults").with_faults(faults);
        assert_eq!(
            printed(&failure),
            "oncue: file \"f\" has faults\n  it is no TOML:\n    |\n  1 | x y\n"
        );
    }

    #[test]
    fn a_closed_pipe_is_no_error() {
        let failure = Failure::output(&io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!(failure.exit, Exit::Done);
        assert_eq!(printed(&failure), "");
        let failure = Failure::output(&io::Error::from(io::ErrorKind::StorageFull));
        assert_eq!(failure.exit, Exit::Failed);
    }
}
