//! Sizes, counts and times as people write them: `64 MiB`, `10 G`, `250ms`, `never`.
//!
//! What `format_*` writes, `parse_*` reads back as exactly the same number. Fractions, negative
//! numbers and a bare number as a time are refused: each has more than one reading. Ranges are the
//! callers' business. Neighbour: `definition`, and the parsers of flags and of HTTP queries.

use crate::code::Code;

/// A unit and what one of it is worth.
type Unit = (&'static str, u64);

/// Binary units, largest first.
const BINARY: [Unit; 4] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
];

/// Decimal units, largest first.
const DECIMAL: [Unit; 4] = [
    ("T", 1_000_000_000_000),
    ("G", 1_000_000_000),
    ("M", 1_000_000),
    ("K", 1_000),
];

/// Units of time in milliseconds, largest first.
const TIME: [Unit; 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
    ("ms", 1),
];

/// The word for a time that never comes.
pub(crate) const NEVER: &str = "never";

const SIZE_CURE: &str =
    "write a whole number, alone or with K, M, G, T (thousands) or KiB, MiB, GiB, TiB (1024s)";
const TIME_CURE: &str = "write a whole number with ms, s, m, h or d, such as \"250ms\" or \"5m\"";

/// How much of a refused text is repeated in the message, in characters.
const SHOWN_LENGTH: usize = 40;

/// Why a text is not a size or a time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" {fact} [{code}]", fact = self.fact(), code = Code::InvalidQuantity)]
pub struct QuantityError {
    text: String,
    reason: Reason,
    cure: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Reason {
    NoNumber,
    Fraction,
    UnknownUnit(String),
    MissingUnit,
    TooLarge,
}

impl QuantityError {
    fn new(text: &str, reason: Reason, cure: &'static str) -> Self {
        Self {
            text: cut(text),
            reason,
            cure,
        }
    }

    /// The permanent code, always `invalid-quantity`.
    #[must_use]
    pub fn code(&self) -> Code {
        Code::InvalidQuantity
    }

    /// What is wrong and what to do, without the object and the code: for use inside a longer
    /// sentence.
    #[must_use]
    pub fn fact(&self) -> String {
        let cure = self.cure;
        match &self.reason {
            Reason::NoNumber => format!("does not start with a number; {cure}"),
            Reason::Fraction => format!("has a fraction; {cure}"),
            Reason::UnknownUnit(unit) => format!("has the unknown unit \"{unit}\"; {cure}"),
            Reason::MissingUnit => format!("has no unit; {cure}"),
            Reason::TooLarge => format!("is past {}; {cure}", u64::MAX),
        }
    }
}

fn cut(text: &str) -> String {
    text.chars()
        .take(SHOWN_LENGTH)
        .flat_map(char::escape_debug)
        .collect()
}

/// Splits into the number and the text of the unit.
fn split<'a>(text: &'a str, cure: &'static str) -> Result<(u64, &'a str), QuantityError> {
    let trimmed = text.trim();
    let end = trimmed
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(trimmed.len());
    let (digits, rest) = trimmed.split_at(end);
    if digits.is_empty() {
        return Err(QuantityError::new(text, Reason::NoNumber, cure));
    }
    if rest.starts_with('.') || rest.starts_with(',') {
        return Err(QuantityError::new(text, Reason::Fraction, cure));
    }
    let number = digits
        .parse()
        .map_err(|_overflow| QuantityError::new(text, Reason::TooLarge, cure))?;
    Ok((number, rest.trim_start()))
}

fn scale(
    text: &str,
    number: u64,
    unit: &str,
    mut units: impl Iterator<Item = Unit>,
    cure: &'static str,
) -> Result<u64, QuantityError> {
    let (_, worth) = units
        .find(|(name, _)| *name == unit)
        .ok_or_else(|| QuantityError::new(text, Reason::UnknownUnit(cut(unit)), cure))?;
    number
        .checked_mul(worth)
        .ok_or_else(|| QuantityError::new(text, Reason::TooLarge, cure))
}

/// Reads a size in bytes or a count: `1000`, `10 G`, `64 MiB`, `16MiB`.
///
/// # Errors
/// No number, a fraction, an unknown unit, or a value past `u64`.
pub fn parse_size(text: &str) -> Result<u64, QuantityError> {
    let (number, unit) = split(text, SIZE_CURE)?;
    if unit.is_empty() {
        return Ok(number);
    }
    scale(
        text,
        number,
        unit,
        BINARY.into_iter().chain(DECIMAL),
        SIZE_CURE,
    )
}

/// Reads a time in milliseconds: `250ms`, `5s`, `5m`, `2h`, `1d`. A bare number is refused.
///
/// # Errors
/// No number, a fraction, no unit or an unknown one, or a value past `u64` milliseconds.
pub fn parse_millis(text: &str) -> Result<u64, QuantityError> {
    let (number, unit) = split(text, TIME_CURE)?;
    if unit.is_empty() {
        return Err(QuantityError::new(text, Reason::MissingUnit, TIME_CURE));
    }
    scale(text, number, unit, TIME.into_iter(), TIME_CURE)
}

/// Reads a time in milliseconds, or `never`, which is `None`.
///
/// # Errors
/// As [`parse_millis`].
pub fn parse_millis_or_never(text: &str) -> Result<Option<u64>, QuantityError> {
    if text.trim() == NEVER {
        Ok(None)
    } else {
        parse_millis(text).map(Some)
    }
}

fn format_with(value: u64, units: &[Unit]) -> Option<(u64, &'static str)> {
    if value == 0 {
        return None;
    }
    let (name, worth) = units
        .iter()
        .find(|(_, worth)| value.is_multiple_of(*worth))?;
    Some((value / worth, *name))
}

/// Writes bytes in the largest binary unit that divides them: `64 MiB`, `1000`.
#[must_use]
pub fn format_bytes(bytes: u64) -> String {
    match format_with(bytes, &BINARY) {
        Some((number, unit)) => format!("{number} {unit}"),
        None => bytes.to_string(),
    }
}

/// Writes a count (fuel) in the largest decimal unit that divides it: `10 G`, `1234`.
#[must_use]
pub fn format_count(count: u64) -> String {
    match format_with(count, &DECIMAL) {
        Some((number, unit)) => format!("{number} {unit}"),
        None => count.to_string(),
    }
}

/// Writes milliseconds in the largest unit that divides them: `250ms`, `5m`, `1d`; zero is `0s`.
#[must_use]
pub fn format_millis(millis: u64) -> String {
    match format_with(millis, &TIME) {
        Some((number, unit)) => format!("{number}{unit}"),
        None => "0s".to_owned(),
    }
}

/// Writes milliseconds, or `never` for `None`.
#[must_use]
pub fn format_millis_or_never(millis: Option<u64>) -> String {
    millis.map_or_else(|| NEVER.to_owned(), format_millis)
}

/// So many things, in words: "1 message", "3 messages".
#[must_use]
pub fn number_of(count: u64, thing: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {thing}{ending}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check<T: PartialEq + std::fmt::Debug>(
        parse: fn(&str) -> Result<T, QuantityError>,
        text: &str,
        wanted: Result<T, &str>,
    ) {
        match (parse(text), wanted) {
            (Ok(got), Ok(wanted)) => assert_eq!(got, wanted, "{text:?}"),
            (Err(error), Err(part)) => {
                let message = error.to_string();
                assert!(message.contains(part), "{text:?} gave {message}");
                assert!(message.ends_with("[invalid-quantity]"), "{message}");
            }
            (got, wanted) => panic!("{text:?} gave {got:?}, wanted {wanted:?}"),
        }
    }

    #[test]
    fn sizes_are_read() {
        let size = |text, wanted| check(parse_size, text, wanted);
        size("64 MiB", Ok(64 << 20));
        size("16MiB", Ok(16 << 20));
        size(" 2  GiB ", Ok(2 << 30));
        size("10 G", Ok(10_000_000_000));
        size("1000", Ok(1000));
        size("0", Ok(0));
        size("3K", Ok(3000));
        size("18446744073709551615", Ok(u64::MAX));
        size("", Err("does not start with a number"));
        size("MiB", Err("does not start with a number"));
        size("-1", Err("does not start with a number"));
        size("1.5 GiB", Err("has a fraction"));
        size("64 MB", Err("unknown unit \"MB\""));
        size("64 mib", Err("unknown unit \"mib\""));
        size("18446744073709551616", Err("is past"));
        size("16777216 TiB", Err("is past"));
    }

    #[test]
    fn times_are_read() {
        let time = |text, wanted| check(parse_millis, text, wanted);
        time("250ms", Ok(250));
        time("5s", Ok(5000));
        time("5 m", Ok(300_000));
        time("2h", Ok(7_200_000));
        time("1d", Ok(86_400_000));
        time("0s", Ok(0));
        time("5", Err("has no unit"));
        time("0", Err("has no unit"));
        time("5 parsecs", Err("unknown unit \"parsecs\""));
        time("never", Err("does not start with a number"));
        time("99999999999999999d", Err("is past"));
        let maybe = |text, wanted| check(parse_millis_or_never, text, wanted);
        maybe("never", Ok(None));
        maybe("10m", Ok(Some(600_000)));
        maybe("Never", Err("does not start with a number"));
    }

    #[test]
    fn the_largest_exact_unit_is_written() {
        assert_eq!(format_bytes(64 << 20), "64 MiB");
        assert_eq!(format_bytes(1 << 40), "1 TiB");
        assert_eq!(format_bytes(1000), "1000");
        assert_eq!(format_bytes(0), "0");
        assert_eq!(format_count(10_000_000_000), "10 G");
        assert_eq!(format_count(1_234), "1234");
        assert_eq!(format_millis(250), "250ms");
        assert_eq!(format_millis(90_000), "90s");
        assert_eq!(format_millis(86_400_000), "1d");
        assert_eq!(format_millis(0), "0s");
        assert_eq!(format_millis_or_never(None), "never");
    }

    #[test]
    fn a_long_text_is_cut_in_the_message() {
        let error = parse_size(&"9x".repeat(5000)).expect_err("refused");
        assert!(error.to_string().len() < 400, "{error}");
    }

    /// Numbers of every size, round ones among them.
    fn number() -> impl Strategy<Value = u64> {
        let round = (
            0_u64..10_000,
            prop::sample::select(vec![1_u64, 1000, 1024, 60_000, 1 << 20]),
        );
        prop_oneof![any::<u64>(), round.prop_map(|(n, unit)| n * unit)]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(value in number()) {
            prop_assert_eq!(parse_size(&format_bytes(value)), Ok(value));
            prop_assert_eq!(parse_size(&format_count(value)), Ok(value));
            prop_assert_eq!(parse_millis(&format_millis(value)), Ok(value));
            let maybe = format_millis_or_never(Some(value));
            prop_assert_eq!(parse_millis_or_never(&maybe), Ok(Some(value)));
        }

        #[test]
        fn no_text_makes_a_parser_panic(text in ".{0,60}") {
            let _ = (parse_size(&text), parse_millis(&text), parse_millis_or_never(&text));
        }
    }
}
