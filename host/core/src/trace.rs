//! Trace contexts of the W3C: which trace a message belongs to, and after what in it.
//!
//! A message carries its context as the properties [`PARENT`] and [`STATE`]. Reading is strict and
//! never an error: a context that cannot be understood is none, because a put must not fail for
//! what only watches it.

use std::fmt;

/// The property, and the header, that holds the context.
pub const PARENT: &str = "traceparent";

/// The property, and the header, that holds what tracing systems add to it.
pub const STATE: &str = "tracestate";

/// Longest state that is carried, in bytes.
pub const MAX_STATE: usize = 512;

/// Entries that a state may have.
const MAX_STATE_ENTRIES: usize = 32;

/// Length of a context of version 0, in bytes.
const LENGTH: usize = 55;

/// The flag that says: whoever put this recorded it.
const SAMPLED: u8 = 1;

/// A trace: sixteen bytes, never all zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceId(pub u128);

/// A step in a trace: eight bytes, never all zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpanId(pub u64);

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// A place in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceContext {
    /// Which trace.
    pub trace: TraceId,
    /// The step that this comes from.
    pub span: SpanId,
    /// That step was recorded.
    pub sampled: bool,
}

impl TraceContext {
    /// Reads a `traceparent`; `None` when it is not one. A later version is read as far as this one
    /// goes.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let version = hex(bytes.get(..2)?)?;
        // 255 is forbidden; a version to come may be longer, after one more dash.
        let fits = match version {
            0 => bytes.len() == LENGTH,
            255 => false,
            _ => bytes.len() == LENGTH || bytes.get(LENGTH) == Some(&b'-'),
        };
        let dashes = [2, 35, 52].iter().all(|at| bytes.get(*at) == Some(&b'-'));
        if !fits || !dashes {
            return None;
        }
        let trace = hex(bytes.get(3..35)?)?;
        let span = hex(bytes.get(36..52)?)?;
        let flags = hex(bytes.get(53..55)?)?;
        if trace == 0 || span == 0 {
            return None;
        }
        Some(Self {
            trace: TraceId(trace),
            span: SpanId(u64::try_from(span).ok()?),
            sampled: flags & u128::from(SAMPLED) != 0,
        })
    }

    /// The context that properties carry, if they carry one.
    #[must_use]
    pub fn of(properties: &[(String, String)]) -> Option<Self> {
        let (_, value) = properties.iter().find(|(name, _)| name == PARENT)?;
        Self::parse(value)
    }

    /// The same trace, from another step on.
    #[must_use]
    pub fn at(self, span: SpanId) -> Self {
        Self { span, ..self }
    }
}

/// Written as a `traceparent` of version 0.
impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = if self.sampled { SAMPLED } else { 0 };
        write!(f, "00-{}-{}-{flags:02x}", self.trace, self.span)
    }
}

/// The state that properties carry.
#[must_use]
pub fn state_of(properties: &[(String, String)]) -> Option<&str> {
    let found = properties.iter().find(|(name, _)| name == STATE);
    found.map(|(_, value)| value.as_str())
}

/// Whether a text may stand as a `tracestate`.
#[must_use]
pub fn is_state(text: &str) -> bool {
    let entry = |entry: &str| {
        let entry = entry.trim_matches([' ', '\t']);
        // An empty entry is allowed, and says nothing.
        entry.is_empty()
            || entry
                .split_once('=')
                .is_some_and(|(key, value)| is_state_key(key) && is_state_value(value))
    };
    text.len() <= MAX_STATE
        && text.contains('=')
        && text.split(',').count() <= MAX_STATE_ENTRIES
        && text.split(',').all(entry)
}

fn is_state_key(key: &str) -> bool {
    let known =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-*/@".contains(&byte);
    let first = key.bytes().next();
    let begins = first.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    begins && key.len() <= 256 && key.bytes().all(known)
}

fn is_state_value(value: &str) -> bool {
    let known = |byte: u8| (b' '..=b'~').contains(&byte) && byte != b',' && byte != b'=';
    !value.is_empty() && value.len() <= 256 && value.bytes().all(known) && !value.ends_with(' ')
}

/// Lower-case hexadecimal digits.
fn hex(digits: &[u8]) -> Option<u128> {
    let mut value = 0;
    for digit in digits {
        let digit = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        value = value << 4 | u128::from(digit);
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITTEN: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_context_reads_back_what_it_writes() {
        let context = TraceContext::parse(WRITTEN).expect("a context");
        assert!(context.sampled);
        assert_eq!(context.to_string(), WRITTEN);
        let plain = WRITTEN.replace("-01", "-00");
        let context = TraceContext::parse(&plain).expect("a context");
        assert!(!context.sampled);
        assert_eq!(context.to_string(), plain);
        let next = context.at(SpanId(0xff));
        assert_eq!(next.trace, context.trace);
        assert_eq!(next.span.to_string(), "00000000000000ff");
    }

    #[test]
    fn what_is_no_context_is_none() {
        for text in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
            "00-4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01x",
            "00-4bf92f3577b34da6a3ce929d0e0e473é-00f067aa0ba902b7-01",
        ] {
            assert_eq!(TraceContext::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_later_version_is_read_as_far_as_this_one_goes() {
        let context = TraceContext::parse(WRITTEN);
        for later in [
            WRITTEN.replacen("00", "01", 1),
            format!("{}-more", WRITTEN.replacen("00", "cc", 1)),
            WRITTEN.replacen("-01", "-ff", 1),
        ] {
            assert_eq!(TraceContext::parse(&later), context, "{later}");
        }
    }

    #[test]
    fn states_are_checked_by_their_entries() {
        let long = format!("a={}", "x".repeat(256));
        for good in [
            "a=1",
            "rojo=00f067aa0ba902b7,t@v=x y",
            "a=1, b=2,,c*/-_=3",
            &long,
        ] {
            assert!(is_state(good), "{good}");
        }
        let many = vec!["a=1"; 33].join(",");
        let wide = ["a=1"; 20].join(&" ".repeat(30));
        for bad in [
            "", ",", "a", "=1", "A=1", "a=", "a=1=2", "a=é", "a=\u{7f}", &many, &wide,
        ] {
            assert!(!is_state(bad), "{bad}");
        }
    }

    #[test]
    fn the_context_of_a_message_is_its_property() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let properties = [pair("a", "b"), pair(STATE, "v=1"), pair(PARENT, WRITTEN)];
        assert_eq!(TraceContext::of(&properties), TraceContext::parse(WRITTEN));
        assert_eq!(state_of(&properties), Some("v=1"));
        assert_eq!(TraceContext::of(&properties[..2]), None);
    }
}
