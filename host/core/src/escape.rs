//! Text as the value or the end of the name of an HTTP header: any text goes in and comes out as it
//! was.
//!
//! A header holds visible ASCII. Everything else, and `%` itself, is written as `%` and two
//! hexadecimal digits of a byte of the UTF-8 form, as the HTTP binding of CloudEvents does. Which
//! headers there are is not known here.

use std::fmt::Write as _;

/// Writes a text as a header value: visible ASCII and inner spaces.
#[must_use]
pub fn encode(text: &str) -> String {
    let last = text.len().saturating_sub(1);
    let mut value = String::with_capacity(text.len());
    for (index, byte) in text.bytes().enumerate() {
        // A space at an end would be trimmed on the way.
        let inner_space = byte == b' ' && index != 0 && index != last;
        if inner_space || (byte.is_ascii_graphic() && byte != b'%') {
            value.push(char::from(byte));
        } else {
            write_escape(&mut value, byte);
        }
    }
    value
}

/// Writes a property's name as the end of a header name. Header names are lower-case, so capitals
/// are escaped too.
#[must_use]
pub fn encode_name(text: &str) -> String {
    let mut name = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_' | b'.')
        {
            name.push(char::from(byte));
        } else {
            write_escape(&mut name, byte);
        }
    }
    name
}

fn write_escape(text: &mut String, byte: u8) {
    write!(text, "%{byte:02x}").expect("writing to a String cannot fail");
}

/// Reads a header value. A `%` that no two hexadecimal digits follow stands for itself.
///
/// # Errors
/// The fact and the cure, when the bytes are not UTF-8.
pub fn decode(bytes: &[u8]) -> Result<String, String> {
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, after)) = rest.split_first() {
        if *first == b'%'
            && let Some((digits, after)) = after.split_at_checked(2)
            && let Some(byte) = from_hex(digits)
        {
            decoded.push(byte);
            rest = after;
        } else {
            decoded.push(*first);
            rest = after;
        }
    }
    String::from_utf8(decoded)
        .map_err(|_bytes| "is not UTF-8; write other bytes as % and two digits".to_owned())
}

fn from_hex(digits: &[u8]) -> Option<u8> {
    let mut value = 0_u8;
    for digit in digits {
        let digit = char::from(*digit).to_digit(16)?;
        value = value << 4 | u8::try_from(digit).ok()?;
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, written: &str) {
        let value = encode(text);
        assert_eq!(value, written, "{text:?}");
        assert_eq!(decode(value.as_bytes()).as_deref(), Ok(text), "{written}");
        let name = encode_name(text);
        assert_eq!(decode(name.as_bytes()).as_deref(), Ok(text), "{name}");
    }

    #[test]
    fn every_text_comes_back() {
        check("", "");
        check("order 66", "order 66");
        check(" order ", "%20order%20");
        check("100%", "100%25");
        check("%41", "%2541");
        check("Größe\n", "Gr%c3%b6%c3%9fe%0a");
        check("a=\"b\", c;d", "a=\"b\", c;d");
    }

    #[test]
    fn a_name_is_a_header_name() {
        assert_eq!(encode_name("Region.eu"), "%52egion.eu");
        assert_eq!(encode_name("a b"), "a%20b");
    }

    #[test]
    fn plain_clients_are_understood() {
        assert_eq!(decode(b"100%").as_deref(), Ok("100%"));
        assert_eq!(decode(b"5%zz").as_deref(), Ok("5%zz"));
        assert_eq!(decode("Größe".as_bytes()).as_deref(), Ok("Größe"));
        assert_eq!(decode(b"%C3%B6").as_deref(), Ok("ö"));
        assert!(decode(b"\xff").is_err());
        assert!(decode(b"%ff").is_err());
    }
}
