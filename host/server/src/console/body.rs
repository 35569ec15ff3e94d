//! Bodies of messages as a page shows them: as text, as JSON with a line for each member, or in
//! hexadecimal; the beginning of those that are long.

use super::format;

/// Bytes of a body that are shown.
const MAX_SHOWN: u64 = 64 << 10;

/// Bytes of a body that are shown in hexadecimal.
const MAX_HEX: usize = 8 << 10;

/// Bytes of a line in hexadecimal.
const HEX_LINE: usize = 16;

/// Bodies up to so many bytes are read whole, so that JSON can be set out.
const MAX_JSON: u64 = 256 << 10;

/// Bytes of JSON that is set out; what would be longer is shown as text.
const MAX_SET_OUT: usize = 256 << 10;

/// Bytes of a body of that size that [`Body::read`] wants.
pub(super) fn wanted(size: u64) -> u64 {
    if size <= MAX_JSON { size } else { MAX_SHOWN }
}

/// A body as it is shown.
#[derive(Debug)]
pub(super) struct Body {
    /// `text`, `json` or `hex`.
    pub(super) kind: &'static str,
    pub(super) text: String,
    pub(super) size: String,
    /// What is not shown, in bytes.
    pub(super) cut: u64,
}

impl Body {
    /// A body, of which `bytes` is the beginning, in the form that is asked for: JSON or text where
    /// it is that, hexadecimal otherwise.
    pub(super) fn read(bytes: &[u8], size: u64, asked: &str) -> Self {
        let is_whole = bytes.len() as u64 == size;
        let shown = usize::try_from(MAX_SHOWN)
            .unwrap_or(usize::MAX)
            .min(bytes.len());
        let text = text_of(bytes.get(..shown).unwrap_or_default(), shown as u64 == size);
        let json = || {
            is_whole
                .then(|| std::str::from_utf8(bytes).ok().and_then(set_out))
                .flatten()
        };
        let (kind, text, shown) = match asked {
            "hex" => hex(bytes),
            "text" => match text {
                Some(text) => ("text", text.to_owned(), text.len()),
                None => (
                    "text",
                    String::from_utf8_lossy(&bytes[..shown]).into_owned(),
                    shown,
                ),
            },
            _ => match (json(), text) {
                (Some(json), _) => ("json", json, bytes.len()),
                (None, Some(text)) => ("text", text.to_owned(), text.len()),
                (None, None) => hex(bytes),
            },
        };
        Self {
            kind,
            text: format::plain(&text),
            size: format::bytes(size),
            cut: size.saturating_sub(shown as u64),
        }
    }
}

/// The text that bytes are; a character that the end cuts is left out.
fn text_of(bytes: &[u8], is_whole: bool) -> Option<&str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(error) if !is_whole && error.error_len().is_none() => {
            std::str::from_utf8(bytes.get(..error.valid_up_to())?).ok()
        }
        Err(_) => None,
    }
}

fn hex(bytes: &[u8]) -> (&'static str, String, usize) {
    let shown = bytes.get(..MAX_HEX.min(bytes.len())).unwrap_or_default();
    let lines = shown.chunks(HEX_LINE).enumerate().map(|(number, line)| {
        let digits: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        let plain = line.iter().map(|byte| match byte {
            0x20..=0x7e => char::from(*byte),
            _ => '·',
        });
        let plain: String = plain.collect();
        format!(
            "{:06x}  {:<47}  {plain}",
            number * HEX_LINE,
            digits.join(" ")
        )
    });
    ("hex", lines.collect::<Vec<_>>().join("\n"), shown.len())
}

/// JSON with a line for each member, in its own order and its own writing; nothing for what is not
/// an object or a list.
fn set_out(text: &str) -> Option<String> {
    let trimmed = text.trim();
    if !trimmed.starts_with(['{', '[']) {
        return None;
    }
    serde_json::from_str::<serde::de::IgnoredAny>(trimmed).ok()?;
    let mut out = String::with_capacity(trimmed.len() * 2);
    let (mut depth, mut is_text, mut is_escaped) = (0_usize, false, false);
    let mut rest = trimmed.chars().peekable();
    while let Some(c) = rest.next() {
        if out.len() > MAX_SET_OUT {
            return None;
        }
        if is_text {
            out.push(c);
            is_text = is_escaped || c != '"';
            is_escaped = c == '\\' && !is_escaped;
            continue;
        }
        match c {
            '"' => {
                is_text = true;
                out.push(c);
            }
            '{' | '[' => {
                out.push(c);
                while rest.next_if(|c| c.is_ascii_whitespace()).is_some() {}
                if let Some(end) = rest.next_if(|c| matches!(c, '}' | ']')) {
                    out.push(end);
                } else {
                    depth += 1;
                    new_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                new_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c if c.is_ascii_whitespace() => {}
            c => out.push(c),
        }
    }
    Some(out)
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    // Nobody reads what is set in further.
    out.extend(std::iter::repeat_n("  ", depth.min(32)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], asked: &str, kind: &str, text: &str) {
        let body = Body::read(bytes, bytes.len() as u64, asked);
        assert_eq!((body.kind, body.text.as_str(), body.cut), (kind, text, 0));
    }

    #[test]
    fn a_body_is_shown_as_what_it_is() {
        check(
            br#"{"b":[1,2],"a":{}}"#,
            "",
            "json",
            "{\n  \"b\": [\n    1,\n    2\n  ],\n  \"a\": {}\n}",
        );
        check(
            br#"{"a":"x,\"{y"}"#,
            "json",
            "json",
            "{\n  \"a\": \"x,\\\"{y\"\n}",
        );
        check(br#"{"a":1}"#, "text", "text", r#"{"a":1}"#);
        check(b"{not json", "", "text", "{not json");
        check("wörter".as_bytes(), "", "text", "wörter");
        check(b"", "", "text", "");
        check(
            b"\xff\x00A",
            "",
            "hex",
            &format!("000000  {:<47}  ··A", "ff 00 41"),
        );
        check(b"A", "hex", "hex", &format!("000000  {:<47}  A", "41"));
        check(b"\xff", "text", "text", "\u{fffd}");
        check("a\0\u{202e}b".as_bytes(), "", "text", "a⟨U+0000⟩⟨U+202E⟩b");
    }

    #[test]
    fn json_that_would_grow_without_end_is_shown_as_text() {
        let deep = format!("{}{}{}", "[".repeat(100), "1,".repeat(100_000), "1");
        let deep = deep + &"]".repeat(100);
        let body = Body::read(deep.as_bytes(), deep.len() as u64, "");
        assert_eq!((body.kind, body.text.len()), ("text", 65_536));
    }

    #[test]
    fn a_long_body_is_cut_between_characters() {
        let bytes = "ä".repeat(40_000).into_bytes();
        let body = Body::read(&bytes, 90_000, "");
        assert_eq!((body.kind, body.text.len()), ("text", 65_536));
        assert_eq!(body.cut, 90_000 - 65_536);
        let odd = Body::read(&bytes[..65_535], 90_000, "");
        assert_eq!((odd.kind, odd.text.len()), ("text", 65_534));
        let hex = Body::read(&bytes, 80_000, "hex");
        assert_eq!(hex.cut, 80_000 - MAX_HEX as u64);
    }
}
