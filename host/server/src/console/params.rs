//! The query of a page, and the fields of a form: names and texts, percent-encoded. What a page
//! does not know it passes over, so that an old bookmark still opens.

use std::convert::Infallible;
use std::fmt::Write as _;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

/// Most fields that are read; a list of messages to redrive has one for each.
const MAX_FIELDS: usize = 2_000;

/// Names and texts.
#[derive(Debug, Default)]
pub(crate) struct Params(Vec<(String, String)>);

impl Params {
    /// Names and texts that were read elsewhere.
    pub(super) fn of(fields: Vec<(String, String)>) -> Self {
        Self(fields)
    }

    /// Takes `a=1&b=2` apart.
    pub(super) fn parse(text: &[u8]) -> Self {
        let fields = text.split(|byte| *byte == b'&');
        let fields = fields.filter(|field| !field.is_empty()).take(MAX_FIELDS);
        let read = fields.map(|field| {
            let middle = field.iter().position(|byte| *byte == b'=');
            let (name, value) = match middle {
                Some(middle) => (&field[..middle], &field[middle + 1..]),
                None => (field, &[][..]),
            };
            (decoded(name), decoded(value))
        });
        Self(read.collect())
    }

    /// The first text of that name, if it is not empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next().filter(|text| !text.is_empty())
    }

    /// The same, or nothing.
    pub(super) fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }

    /// All texts of that name.
    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        let named = self.0.iter().filter(move |(known, _)| known == name);
        named.map(|(_, text)| text.as_str())
    }

    /// Whether a box of that name is ticked.
    pub(super) fn is_on(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// A number of that name, if it is one.
    pub(super) fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.get(name)?.parse().ok()
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Params {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        let query = parts.uri.query().unwrap_or_default();
        Ok(Self::parse(query.as_bytes()))
    }
}

fn decoded(text: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [byte, after @ ..] = rest {
        rest = after;
        match (byte, after) {
            (b'+', _) => bytes.push(b' '),
            (b'%', [high, low, after @ ..]) => match (digit(*high), digit(*low)) {
                (Some(high), Some(low)) => {
                    bytes.push(high << 4 | low);
                    rest = after;
                }
                _ => bytes.push(b'%'),
            },
            _ => bytes.push(*byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn digit(byte: u8) -> Option<u8> {
    let digit = char::from(byte).to_digit(16)?;
    u8::try_from(digit).ok()
}

/// An address with a query: what is empty is left out.
pub(super) fn address(path: &str, fields: &[(&str, &str)]) -> String {
    let mut address = path.to_owned();
    let mut mark = '?';
    for (name, text) in fields.iter().filter(|(_, text)| !text.is_empty()) {
        address.push(mark);
        mark = '&';
        address.push_str(name);
        address.push('=');
        encode(text, &mut address);
    }
    address
}

fn encode(text: &str, into: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            into.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(into, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_as_browsers_write_them() {
        let params = Params::parse(b"a=1+2&b=%C3%A4%26&id=x&id=y&c&d=%zz%4");
        assert_eq!(params.get("a"), Some("1 2"));
        assert_eq!(params.get("b"), Some("ä&"));
        assert_eq!(params.all("id").collect::<Vec<_>>(), ["x", "y"]);
        assert_eq!(params.get("c"), None);
        assert_eq!(params.get("d"), Some("%zz%4"));
        assert_eq!(params.number::<u32>("a"), None);
    }

    #[test]
    fn addresses_read_back() {
        let text = "a&b=c d/ä\"<";
        let address = address("/queues", &[("search", text), ("sort", "")]);
        assert_eq!(address, "/queues?search=a%26b%3Dc%20d%2F%C3%A4%22%3C");
        let query = address.split_once('?').expect("a query").1;
        assert_eq!(Params::parse(query.as_bytes()).get("search"), Some(text));
    }
}
