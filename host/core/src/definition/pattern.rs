//! Queue names with wildcards, for grants.

use std::fmt;

use super::raw::shown_text;
use crate::names::{MAX_NAME_LENGTH, QueueName, RESERVED_PREFIX, is_name_character};

/// A queue name in which each `*` stands for any run of characters, also an empty one.
///
/// A pattern reaches the manager's own queues (`oncue.*`) only when it names them so itself: `*`
/// alone never grants the dead-letter queue.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pattern(String);

impl Pattern {
    /// Checks a pattern: 1 to 128 of the characters of names and `*`.
    ///
    /// # Errors
    /// What is wrong and what to do, without the object.
    pub fn new(text: &str) -> Result<Self, String> {
        let known = |character| is_name_character(character) || character == '*';
        if text.is_empty() || text.len() > MAX_NAME_LENGTH || !text.chars().all(known) {
            return Err(format!(
                "is {}; use 1 to {MAX_NAME_LENGTH} of A-Z a-z 0-9 . _ - and *",
                shown_text(text)
            ));
        }
        Ok(Self(text.to_owned()))
    }

    /// The pattern as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the pattern covers the queue.
    #[must_use]
    pub fn matches(&self, queue: &QueueName) -> bool {
        if queue.is_reserved() && !self.0.starts_with(RESERVED_PREFIX) {
            return false;
        }
        matches_wildcards(self.0.as_bytes(), queue.as_str().as_bytes())
    }
}

/// Matches with one point of return (the last `*`), so the work is at most pattern x text.
fn matches_wildcards(mut pattern: &[u8], mut text: &[u8]) -> bool {
    // What is left of both when the last `*` is tried with one more character.
    let mut last_star: Option<(&[u8], &[u8])> = None;
    loop {
        match (pattern.split_first(), text.split_first()) {
            (Some((b'*', rest)), _) => {
                last_star = Some((rest, text));
                pattern = rest;
            }
            (Some((wanted, rest)), Some((got, rest_of_text))) if wanted == got => {
                (pattern, text) = (rest, rest_of_text);
            }
            (None, None) => return true,
            _ => {
                let Some((after_star, [_, shorter @ ..])) = last_star else {
                    return false;
                };
                last_star = Some((after_star, shorter));
                (pattern, text) = (after_star, shorter);
            }
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.0)
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(pattern: &str, queue: &str, wanted: bool) {
        let pattern = Pattern::new(pattern).expect("a valid pattern");
        let queue = QueueName::new(queue).expect("a valid name");
        assert_eq!(pattern.matches(&queue), wanted, "{pattern} on {queue}");
    }

    #[test]
    fn patterns_match_whole_names() {
        check("invoices", "invoices", true);
        check("invoices", "invoices2", false);
        check("invoices", "Invoices", false);
        check("audit.*", "audit.eu", true);
        check("audit.*", "audit.", true);
        check("audit.*", "audit", false);
        check("*", "anything.at.all", true);
        check("*.eu", "audit.eu", true);
        check("*.eu", "eu.us", false);
        check("a*b*c", "a-b-b-c", true);
        check("a*b*c", "acb", false);
        check("**", "x", true);
    }

    #[test]
    fn reserved_queues_must_be_named() {
        check("*", "oncue.dead-letter", false);
        check("*dead-letter", "oncue.dead-letter", false);
        check("oncue.dead-letter", "oncue.dead-letter", true);
        check("oncue.*", "oncue.dead-letter", true);
    }

    #[test]
    fn a_malformed_pattern_is_refused() {
        for text in ["", "a b", "a?", "größe", &"x".repeat(129)] {
            assert!(Pattern::new(text).is_err(), "{text:?}");
        }
    }

    /// The definition of a wildcard, without any cleverness.
    fn plainly(pattern: &[u8], text: &[u8]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some((b'*', rest)) => (0..=text.len()).any(|skip| plainly(rest, &text[skip..])),
            Some((wanted, rest)) => text.first() == Some(wanted) && plainly(rest, &text[1..]),
        }
    }

    proptest! {
        #[test]
        fn it_agrees_with_the_plain_definition(pattern in "[ab*]{1,8}", text in "[ab]{1,8}") {
            let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
            prop_assert_eq!(matches_wildcards(pattern, text), plainly(pattern, text));
        }
    }
}
