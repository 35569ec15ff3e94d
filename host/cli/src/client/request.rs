//! One request: method, path, query, headers, body; and how text becomes part of an address or of
//! a header.

use std::time::Duration;

use serde_json::Value;
use ureq::http;

/// What is asked.
pub(crate) struct Request {
    pub(super) method: http::Method,
    path: String,
    query: Vec<(&'static str, String)>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Option<Vec<u8>>,
    pub(super) wait: Duration,
    pub(super) when_unknown: Option<String>,
}

impl Request {
    fn new(method: http::Method, path: &[&str]) -> Self {
        let mut written = String::from("/v1");
        for step in path {
            written.push('/');
            written.push_str(&encode(step, is_unreserved));
        }
        Self {
            method,
            path: written,
            query: Vec::new(),
            headers: Vec::new(),
            body: None,
            wait: Duration::ZERO,
            when_unknown: None,
        }
    }

    /// A `GET` of a path below `/v1`, given step by step.
    pub(crate) fn get(path: &[&str]) -> Self {
        Self::new(http::Method::GET, path)
    }

    /// A `GET` of one of the host's own paths, which stand beside `/v1`.
    pub(crate) fn of_host(path: &str) -> Self {
        Self {
            path: format!("/{path}"),
            ..Self::new(http::Method::GET, &[])
        }
    }

    /// A `POST`.
    pub(crate) fn post(path: &[&str]) -> Self {
        Self {
            body: Some(Vec::new()),
            ..Self::new(http::Method::POST, path)
        }
    }

    /// A `PUT` of JSON.
    pub(crate) fn put(path: &[&str], json: &Value) -> Self {
        Self::new(http::Method::PUT, path).json(json)
    }

    /// A `PATCH` with JSON.
    pub(crate) fn patch(path: &[&str], json: &Value) -> Self {
        Self::new(http::Method::PATCH, path).json(json)
    }

    /// A `DELETE`.
    pub(crate) fn delete(path: &[&str]) -> Self {
        Self::new(http::Method::DELETE, path)
    }

    /// Adds a parameter, if there is one.
    pub(crate) fn query(mut self, name: &'static str, value: Option<impl ToString>) -> Self {
        self.query
            .extend(value.map(|value| (name, value.to_string())));
        self
    }

    /// Adds a header; text that a header cannot hold is encoded.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), encode_header(value)));
        self
    }

    /// Sets the body.
    pub(crate) fn body(mut self, body: Vec<u8>) -> Self {
        self.body = Some(body);
        self
    }

    /// Sets a JSON body.
    pub(crate) fn json(mut self, json: &Value) -> Self {
        let body = serde_json::to_vec(json).expect("a JSON value can be written");
        self.headers
            .push(("content-type".to_owned(), "application/json".to_owned()));
        self.body = Some(body);
        self
    }

    /// The host may take so much longer to answer, because it was asked to wait.
    pub(crate) fn wait(mut self, millis: u64) -> Self {
        self.wait = Duration::from_millis(millis);
        self
    }

    /// What to say if the connection ends before the answer, so that it is not known whether the
    /// request was done: the fact, and how it is repeated safely.
    pub(crate) fn when_unknown(mut self, text: impl Into<String>) -> Self {
        self.when_unknown = Some(text.into());
        self
    }

    /// The whole address.
    pub(super) fn url(&self, base: &str) -> String {
        let mut url = format!("{base}{}", self.path);
        for (index, (name, value)) in self.query.iter().enumerate() {
            url.push(if index == 0 { '?' } else { '&' });
            url.push_str(name);
            url.push('=');
            url.push_str(&encode(value, is_unreserved));
        }
        url
    }
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Percent-encodes all bytes but those that may stay.
fn encode(text: &str, may_stay: fn(u8) -> bool) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if may_stay(byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02x}"));
        }
    }
    encoded
}

/// A text as a header's value: visible ASCII and inner spaces stay, `%` and all else is encoded.
fn encode_header(text: &str) -> String {
    if text.starts_with(' ') || text.ends_with(' ') {
        return encode(text, |byte| byte.is_ascii_graphic() && byte != b'%');
    }
    encode(text, |byte| {
        byte == b' ' || (byte.is_ascii_graphic() && byte != b'%')
    })
}

/// The header that carries a property. Header names know no capitals, so those are encoded.
pub(crate) fn property_header(name: &str) -> String {
    let plain = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.' | b'_')
    };
    format!("oncue-property-{}", encode(name, plain))
}

/// Reads what a header or a property's name encodes; what is no encoding stands for itself.
pub(crate) fn decode_header(bytes: &[u8]) -> String {
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, after)) = rest.split_first() {
        let digits = after
            .get(..2)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match byte {
            Some(byte) if *first == b'%' => {
                decoded.push(byte);
                rest = &after[2..];
            }
            _ => {
                decoded.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_queries_and_headers_are_encoded() {
        let request = Request::get(&["queues", "a/b?c", "messages"])
            .query("cursor", Some("x&y z"))
            .query("max", None::<u32>);
        assert_eq!(
            request.url("http://h"),
            "http://h/v1/queues/a%2fb%3fc/messages?cursor=x%26y%20z"
        );
        for text in ["order 66", " edge ", "100%", "Größe\n", "%41"] {
            let encoded = encode_header(text);
            assert!(
                encoded.bytes().all(|b| b.is_ascii_graphic() || b == b' '),
                "{encoded}"
            );
            assert_eq!(decode_header(encoded.as_bytes()), text);
        }
        assert_eq!(property_header("Region"), "oncue-property-%52egion");
        assert_eq!(decode_header(b"5%zz%4"), "5%zz%4");
    }
}
