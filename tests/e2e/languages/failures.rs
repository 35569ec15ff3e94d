//! How handlers of other languages fail, and what their authors find of it in `oncue task show`:
//! the language's own words, and where it happened as far as the language says.

use super::cases::MOST_FUEL;
use super::project::{build, has, large_plugin};
use crate::host::{Home, Host, oncue};
use crate::work::{outcome_of, task};

/// Long enough to show what a language's text costs; half of it are characters of two bytes.
const HUGE: usize = 1 << 20;

/// What one way to fail must leave.
struct Failure<'a> {
    body: &'a [u8],
    outcome: &'a str,
    /// Words that `task show` prints.
    words: &'a [&'a str],
}

impl Failure<'_> {
    fn check(&self, host: &Host) {
        let id = host.put("fails", self.body);
        let record = host.record_of("fails", &id);
        let (code, shown, errors) = oncue(host, &["task", "show", &task(&record).to_string()]);
        assert_eq!(code, 0, "{errors}");
        assert_eq!(outcome_of(&record, &id), self.outcome, "{shown}");
        for word in self.words {
            assert!(shown.contains(word), "no {word:?} in\n{shown}");
        }
        // Charged once, it goes with the same words.
        let letter = host.dead_letter(&id);
        assert_eq!(letter["outcome"], self.outcome, "{letter}");
    }
}

/// A body of text of which every character and byte is looked at.
fn huge(host: &Host, language: &str) {
    let text = format!("huge{}", "é".repeat((HUGE - 4) / 2));
    let id = host.put("fails", text.as_bytes());
    let record = host.record_of("fails", &id);
    assert_eq!(outcome_of(&record, &id), "committed", "{record}");
    let sum: u64 = text.bytes().map(u64::from).sum();
    let weighed = format!("{} characters, sum {sum}", text.chars().count());
    assert_eq!(host.bodies("fails.out"), [weighed]);
    let fuel = record["cost"]["fuel"].as_u64().expect("fuel");
    let peak = record["cost"]["peak-memory"].as_u64().expect("memory");
    eprintln!("{language}: 1 MiB of text: fuel {fuel}, peak memory {peak}");
    assert!(fuel < MOST_FUEL, "{fuel}");
}

fn check(language: &str, tools: &[&str], failures: &[Failure<'_>]) {
    if !has(tools) {
        return;
    }
    let project = build(&format!("{language}/fails"));
    let home = Home::new();
    project.drop_into(&home);
    let host = home.start();
    host.define_plain("fails.out");
    large_plugin(&host, "fails");
    for failure in failures {
        failure.check(&host);
    }
    huge(&host, language);
    host.wait_for_capacity();
}

#[test]
fn the_rust_failures_are_readable() {
    let failures = [
        Failure {
            body: b"panic",
            outcome: "trapped",
            words: &[
                "boom from Rust",
                "src/lib.rs:",
                "backtrace:",
                "fails::panics",
            ],
        },
        Failure {
            body: b"\xff\xfe",
            outcome: "trapped",
            words: &["the body is text: Error::NotText", "backtrace:"],
        },
        Failure {
            body: b"oom",
            outcome: "over-memory",
            words: &["may have 64 MiB", "raise memory", "memory allocation of"],
        },
    ];
    check("rust", &["cargo"], &failures);
}

#[test]
fn the_c_failures_are_readable() {
    let failures = [
        Failure {
            body: b"panic",
            outcome: "trapped",
            words: &["boom from C", "backtrace:", "panics"],
        },
        Failure {
            body: b"\xff\xfe",
            outcome: "trapped",
            words: &["the body is no text", "backtrace:"],
        },
        Failure {
            body: b"oom",
            outcome: "over-memory",
            words: &["may have 64 MiB", "raise memory", "out of memory after"],
        },
    ];
    check("c", &["clang-19"], &failures);
}

#[test]
fn the_go_failures_are_readable() {
    let failures = [
        Failure {
            body: b"panic",
            outcome: "retry",
            words: &["panic: boom from Go", "goroutine 1", "fails/main.go:"],
        },
        Failure {
            body: b"\xff\xfe",
            outcome: "retry",
            words: &["the body is no text"],
        },
        Failure {
            // Its memory has an end of its own, below the limit; it ends as a program does.
            body: b"oom",
            outcome: "retry",
            words: &["out of memory", "goroutine", "main.hoards"],
        },
    ];
    check("go", &["go"], &failures);
}

#[test]
fn the_javascript_failures_are_readable() {
    let failures = [
        Failure {
            body: b"panic",
            outcome: "trapped",
            words: &[
                "boom from JavaScript",
                "at panics (/handler.js:",
                "backtrace:",
            ],
        },
        Failure {
            body: b"\xff\xfe",
            outcome: "trapped",
            words: &["not-text"],
        },
        Failure {
            body: b"oom",
            outcome: "over-memory",
            words: &["may have 64 MiB", "raise memory"],
        },
    ];
    check("javascript", &["componentize-qjs"], &failures);
}

#[test]
fn the_typescript_failures_are_readable() {
    let failures = [
        Failure {
            body: b"panic",
            outcome: "trapped",
            words: &[
                "boom from TypeScript",
                "at panics (/out/handler.js:",
                "backtrace:",
            ],
        },
        Failure {
            body: b"\xff\xfe",
            outcome: "trapped",
            words: &["not-text"],
        },
        Failure {
            body: b"oom",
            outcome: "over-memory",
            words: &["may have 64 MiB", "raise memory"],
        },
    ];
    check("typescript", &["tsc", "componentize-qjs"], &failures);
}

#[test]
fn the_python_failures_are_readable() {
    let failures = [
        Failure {
            body: b"panic",
            outcome: "trapped",
            words: &[
                "its last words: ValueError: boom from Python",
                "Traceback (most recent call last):",
                "in panics",
                "backtrace:",
            ],
        },
        Failure {
            body: b"\xff\xfe",
            outcome: "trapped",
            words: &["Error_NotText"],
        },
        Failure {
            body: b"oom",
            outcome: "over-memory",
            words: &["may have 64 MiB", "raise memory", "MemoryError"],
        },
    ];
    check("python", &["componentize-py"], &failures);
}
