//! Untrusted text on a terminal: shown, never obeyed.
//!
//! Bodies, properties, log tails and the sentences of guests may hold control characters that
//! move the cursor, retitle the window or hide what follows. They are written out as `\u{1b}`.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Characters that turn the direction of what follows, so that a reader sees another text.
fn turns_direction(character: char) -> bool {
    matches!(
        character,
        '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

/// Before the end of a guest's standard error in a detail.
const LAST_WORDS: &str = "; its last words: ";

/// Between the name of a thread, and where and why it panicked.
const PANICKED: &str = " panicked at ";

fn escape(text: &str, keep: &[char]) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        let is_plain = !character.is_control() && !turns_direction(character);
        if is_plain || keep.contains(&character) {
            escaped.push(character);
        } else if character == '\n' {
            escaped.push_str("\\n");
        } else if character == '\t' {
            escaped.push_str("\\t");
        } else if character == '\r' {
            escaped.push_str("\\r");
        } else {
            write!(escaped, "\\u{{{:x}}}", u32::from(character))
                .expect("writing to a String cannot fail");
        }
    }
    escaped
}

/// A text of several lines: line ends and tabs stay.
pub(crate) fn escape_text(text: &str) -> String {
    escape(text, &['\n', '\t'])
}

/// A text for one line or one cell: nothing breaks the line.
pub(crate) fn escape_line(text: &str) -> String {
    escape(text, &[])
}

/// A text for one cell, cut to a number of characters.
pub(crate) fn cut_line(text: &str, length: usize) -> String {
    let escaped = escape_line(text);
    if escaped.chars().count() <= length {
        return escaped;
    }
    let mut cut: String = escaped.chars().take(length.saturating_sub(3)).collect();
    cut.push_str("...");
    cut
}

/// What a guest said last before it trapped, if the detail of its failure tells; else all of it.
///
/// A list has room for the start of a detail only, and that every trap has in common; the
/// outcome beside it says the same.
pub(crate) fn last_words(detail: &str) -> &str {
    let Some((_, words)) = detail.split_once(LAST_WORDS) else {
        return detail;
    };
    match words.split_once(PANICKED) {
        Some((thread, said)) if thread.starts_with("thread ") => said,
        _ => words,
    }
}

/// A body as it is printed: text as text, anything else in base64.
pub(crate) enum BodyText {
    /// UTF-8, with control characters written out.
    Text(String),
    /// Not UTF-8.
    Base64(String),
}

impl BodyText {
    /// The form in which these bytes are shown.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text(escape_text(text)),
            Err(_) => Self::Base64(to_base64(bytes)),
        }
    }
}

/// Bytes in base64, with padding.
pub(crate) fn to_base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Bytes from base64, if it is any.
pub(crate) fn from_base64(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_written_out() {
        let check = |text: &str, line: &str, lines: &str| {
            assert_eq!(escape_line(text), line, "{text:?}");
            assert_eq!(escape_text(text), lines, "{text:?}");
        };
        check("plain, Größe 1€", "plain, Größe 1€", "plain, Größe 1€");
        check("a\nb\tc", "a\\nb\\tc", "a\nb\tc");
        check(
            "\x1b]0;title\x07",
            "\\u{1b}]0;title\\u{7}",
            "\\u{1b}]0;title\\u{7}",
        );
        check("over\rwrite", "over\\rwrite", "over\\rwrite");
        check("c1 \u{9b}31m", "c1 \\u{9b}31m", "c1 \\u{9b}31m");
        check("\u{202e}exe.txt", "\\u{202e}exe.txt", "\\u{202e}exe.txt");
        check("\x7f\0", "\\u{7f}\\u{0}", "\\u{7f}\\u{0}");
    }

    #[test]
    fn a_long_cell_is_cut() {
        assert_eq!(cut_line("abcdefgh", 8), "abcdefgh");
        assert_eq!(cut_line("abcdefghi", 8), "abcde...");
        assert_eq!(cut_line("äöüäöüäöü", 8), "äöüäö...");
    }

    #[test]
    fn a_detail_gives_its_last_words() {
        let check = |detail: &str, words: &str| assert_eq!(last_words(detail), words);
        check("amount -5 is below 0", "amount -5 is below 0");
        check(
            "panicked or aborted; its last words: thread 'main' (1) panicked at src/lib.rs:1:2: no",
            "src/lib.rs:1:2: no",
        );
        check(
            "exited; its last words: nothing panicked at all",
            "nothing panicked at all",
        );
    }

    #[test]
    fn bytes_that_are_no_text_become_base64() {
        assert!(matches!(BodyText::of(b"text"), BodyText::Text(text) if text == "text"));
        let BodyText::Base64(written) = BodyText::of(&[0xff, 0, 1]) else {
            panic!("0xff is not UTF-8");
        };
        assert_eq!(written, "/wAB");
        assert_eq!(from_base64(&written), Some(vec![0xff, 0, 1]));
    }
}
