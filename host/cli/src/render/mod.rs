//! Everything the command line prints: data on stdout, talk on stderr.
//!
//! A [`Screen`] knows whether people read (a terminal) or programs (a pipe), whether colours are
//! wanted (`NO_COLOR`), and whether talk is (`--quiet`). Commands build tables and values and know
//! none of that. Errors are not printed here but in `exit`.

pub(crate) mod table;
pub(crate) mod text;
pub(crate) mod time;
pub(crate) mod values;

use std::cell::RefCell;
use std::io::{self, BufRead, IsTerminal, Write};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use serde_json::Value;

use crate::exit::{Exit, Failure};
use table::Table;
use text::escape_text;

/// The least time between two updates of a progress line.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// Longest line read as an answer to a question, in bytes.
const MAX_ANSWER: u64 = 1_024;

/// What stdout carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Tables and texts for people.
    #[default]
    Table,
    /// The same JSON as over HTTP, for programs.
    Json,
}

/// Where output goes, and in which form.
pub(crate) struct Screen {
    out: RefCell<Box<dyn Write>>,
    format: Format,
    quiet: bool,
    /// The terminal's width when people read stdout.
    width: Option<u16>,
    colour: bool,
    talk_to_terminal: bool,
    last_progress: RefCell<Option<Instant>>,
}

impl Screen {
    /// The process's own stdout and stderr.
    pub(crate) fn standard(format: Format, quiet: bool) -> Self {
        let is_terminal = io::stdout().is_terminal();
        let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            out: RefCell::new(Box::new(io::BufWriter::new(io::stdout()))),
            format,
            quiet,
            width: is_terminal
                .then(|| comfy_table::Table::new().width())
                .flatten(),
            colour: is_terminal && !no_colour,
            talk_to_terminal: io::stderr().is_terminal(),
            last_progress: RefCell::new(None),
        }
    }

    /// Prints into a buffer, as to a pipe.
    #[cfg(test)]
    pub(crate) fn buffer(format: Format, out: Box<dyn Write>) -> Self {
        Self {
            out: RefCell::new(out),
            format,
            quiet: true,
            width: None,
            colour: false,
            talk_to_terminal: false,
            last_progress: RefCell::new(None),
        }
    }

    /// Whether programs read.
    pub(crate) fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// Prints JSON: indented for people, on one line for programs.
    pub(crate) fn json(&self, value: &Value) -> Result<(), Failure> {
        let text = if self.width.is_some() {
            serde_json::to_string_pretty(value)
        } else {
            serde_json::to_string(value)
        };
        // The indented form escapes control characters as JSON demands, so it needs no other care.
        self.line(&text.expect("a JSON value can be written"))
    }

    /// Prints a table, or the sentence when it has no rows.
    pub(crate) fn table(&self, table: &Table, when_empty: &str) -> Result<(), Failure> {
        if table.is_empty() {
            self.say(when_empty);
            return Ok(());
        }
        self.raw(table.render(self.width, self.colour).as_bytes())
    }

    /// Prints one line as it is: the caller has escaped what is untrusted.
    pub(crate) fn line(&self, text: &str) -> Result<(), Failure> {
        self.raw(text.as_bytes())?;
        self.raw(b"\n")
    }

    /// Prints lines of untrusted text.
    pub(crate) fn text(&self, text: &str) -> Result<(), Failure> {
        self.line(escape_text(text).trim_end_matches('\n'))
    }

    /// Prints a line in bold where colours are wanted.
    pub(crate) fn headline(&self, text: &str) -> Result<(), Failure> {
        let text = escape_text(text);
        if self.colour {
            self.line(&format!("\x1b[1m{text}\x1b[0m"))
        } else {
            self.line(&text)
        }
    }

    /// Prints bytes.
    pub(crate) fn raw(&self, bytes: &[u8]) -> Result<(), Failure> {
        self.out
            .borrow_mut()
            .write_all(bytes)
            .map_err(|error| Failure::output(&error))
    }

    /// Hands everything printed to the reader. Called before a message is acknowledged, and at
    /// the end.
    pub(crate) fn flush(&self) -> Result<(), Failure> {
        self.out
            .borrow_mut()
            .flush()
            .map_err(|error| Failure::output(&error))
    }

    /// Says something about the work on stderr, unless it shall be quiet.
    pub(crate) fn say(&self, text: &str) {
        if !self.quiet && !text.is_empty() {
            self.end_progress();
            // On a terminal both streams meet: what was printed before comes before. A failure
            // shows again at the next print.
            let _ = self.flush();
            let _ = writeln!(io::stderr(), "{}", escape_text(text));
        }
    }

    /// Shows how far a long work has come, on a terminal only and not at every step.
    pub(crate) fn progress(&self, text: impl FnOnce() -> String) {
        let mut last = self.last_progress.borrow_mut();
        let is_due = last.is_none_or(|last| last.elapsed() >= PROGRESS_INTERVAL);
        if self.quiet || !self.talk_to_terminal || !is_due {
            return;
        }
        *last = Some(Instant::now());
        let mut talk = io::stderr();
        let _ = write!(talk, "\r\x1b[K{}", text::escape_line(&text()));
        let _ = talk.flush();
    }

    /// Removes the progress line, if there is one.
    pub(crate) fn end_progress(&self) {
        if self.last_progress.borrow_mut().take().is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }

    /// Makes sure of something that cannot be undone: `--yes`, or the typed name on a terminal.
    ///
    /// # Errors
    /// Refused when the name was not typed; usage when there is no terminal to ask at.
    pub(crate) fn confirm(&self, what: &str, name: &str, yes: bool) -> Result<(), Failure> {
        if yes {
            return Ok(());
        }
        if !io::stdin().is_terminal() || !self.talk_to_terminal {
            let message = format!("{what} cannot be undone; add --yes to do it without asking");
            return Err(Failure::new(Exit::Usage, message));
        }
        let _ = write!(
            io::stderr(),
            "{what} cannot be undone. Type its name to go on: "
        );
        let mut answer = String::new();
        let mut limited = io::Read::take(io::stdin().lock(), MAX_ANSWER);
        let read = limited.read_line(&mut answer);
        if read.is_ok() && answer.trim() == name {
            return Ok(());
        }
        Err(Failure::new(
            Exit::Refused,
            format!("nothing was done: \"{name}\" was not typed"),
        ))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::rc::Rc;

    use super::*;

    /// A buffer that can be read after the screen has it.
    #[derive(Clone, Default)]
    pub(crate) struct Shared(Rc<RefCell<Vec<u8>>>);

    impl Shared {
        pub(crate) fn text(&self) -> String {
            String::from_utf8(self.0.borrow().clone()).expect("text")
        }
    }

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn json_for_programs_is_one_line() {
        let shared = Shared::default();
        let screen = Screen::buffer(Format::Json, Box::new(shared.clone()));
        screen
            .json(&serde_json::json!({ "b": "\u{1b}", "a": [1, 2] }))
            .expect("printed");
        assert_eq!(shared.text(), "{\"b\":\"\\u001b\",\"a\":[1,2]}\n");
    }

    #[test]
    fn untrusted_text_is_escaped_and_raw_is_not() {
        let shared = Shared::default();
        let screen = Screen::buffer(Format::Table, Box::new(shared.clone()));
        screen.text("a\x1bb\n").expect("printed");
        screen.raw(b"\x1b").expect("printed");
        assert_eq!(shared.text(), "a\\u{1b}b\n\x1b");
    }

    #[test]
    fn without_a_terminal_destruction_needs_yes() {
        let screen = Screen::buffer(Format::Table, Box::new(io::sink()));
        let failure = screen
            .confirm("clear", "orders", false)
            .expect_err("not asked");
        assert_eq!(failure.exit, Exit::Usage);
        screen.confirm("clear", "orders", true).expect("confirmed");
    }
}
