//! Numbers, times and sizes as the console writes them.

use oncue_core::time::Timestamp;

const MILLIS_PER_DAY: u64 = 86_400_000;

/// A point in time in UTC, to the second: `2026-02-03 04:05:06`.
pub(super) fn moment(time: Timestamp) -> String {
    let (year, month, day) = civil_date(time.0 / MILLIS_PER_DAY);
    format!("{year:04}-{month:02}-{day:02} {}", clock(time))
}

/// The same without the day.
pub(super) fn clock(time: Timestamp) -> String {
    let rest = time.0 % MILLIS_PER_DAY;
    let (hours, minutes) = (rest / 3_600_000, rest / 60_000 % 60);
    format!("{hours:02}:{minutes:02}:{:02}", rest / 1_000 % 60)
}

/// Year, month and day of a number of days since 1970-01-01, in the Gregorian calendar. Counts in
/// eras of 400 years that begin on a first of March, so that the leap day is the last of its year.
fn civil_date(days: u64) -> (u64, u64, u64) {
    let days = days.saturating_add(719_468);
    let era = days / 146_097;
    let of_era = days % 146_097;
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    (year + era * 400 + u64::from(month <= 2), month, day)
}

/// A duration to about two digits: `850 ms`, `4.2 s`, `3 m 10 s`, `5 h 2 m`, `12 d 3 h`.
pub(super) fn duration(millis: u64) -> String {
    match millis {
        0..1_000 => format!("{millis} ms"),
        1_000..10_000 => format!("{}.{} s", millis / 1_000, millis % 1_000 / 100),
        10_000..60_000 => format!("{} s", millis / 1_000),
        60_000..3_600_000 => format!("{} m {} s", millis / 60_000, millis / 1_000 % 60),
        3_600_000..MILLIS_PER_DAY => {
            format!("{} h {} m", millis / 3_600_000, millis / 60_000 % 60)
        }
        _ => format!(
            "{} d {} h",
            millis / MILLIS_PER_DAY,
            millis / 3_600_000 % 24
        ),
    }
}

/// A duration given in microseconds.
pub(super) fn micros(micros: u64) -> String {
    if micros < 1_000 {
        return format!("{micros} µs");
    }
    if micros < 10_000 {
        return format!("{}.{} ms", micros / 1_000, micros % 1_000 / 100);
    }
    duration(micros / 1_000)
}

/// How long ago: a duration of which nobody needs the milliseconds.
pub(super) fn age(millis: u64) -> String {
    match millis {
        0..1_000 => "0 s".to_owned(),
        1_000..60_000 => format!("{} s", millis / 1_000),
        _ => duration(millis),
    }
}

/// Bytes to about three digits: `12 B`, `1.5 KiB`, `64 MiB`.
pub(super) fn bytes(bytes: u64) -> String {
    scaled(bytes, 1_024, &[" B", " KiB", " MiB", " GiB", " TiB"])
}

/// A count of fuel to about three digits: `850`, `1.2 M`, `10 G`.
pub(super) fn count(count: u64) -> String {
    scaled(count, 1_000, &["", " k", " M", " G", " T"])
}

fn scaled(number: u64, base: u128, units: &[&str]) -> String {
    let mut tenths = u128::from(number) * 10;
    let mut unit = 0;
    while tenths >= base * 10 && unit + 1 < units.len() {
        tenths /= base;
        unit += 1;
    }
    let unit_name = units.get(unit).copied().unwrap_or_default();
    match (tenths % 10, tenths / 10) {
        // From three digits on, the tenth says nothing.
        (0, whole) | (_, whole @ 100..) => format!("{whole}{unit_name}"),
        (tenth, whole) => format!("{whole}.{tenth}{unit_name}"),
    }
}

/// A number with narrow spaces between thousands: `1 234 567`.
pub(super) fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut written = String::with_capacity(digits.len() * 2);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            written.push('\u{202f}');
        }
        written.push(digit);
    }
    written
}

/// A number and its noun: `1 message`, `2 messages`.
pub(super) fn of(count: u64, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", number(count))
}

/// A text of others as it may stand on a page. What a browser would obey or drop is shown instead:
/// control characters but for ends of lines and tabs, and those that turn the direction of what
/// comes after them.
pub(super) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\n' | '\t' => plain.push(c),
            '\r' if rest.peek() == Some(&'\n') => {}
            '\0'..='\x1f'
            | '\x7f'..='\u{9f}'
            | '\u{61c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' => plain.push_str(&format!("⟨U+{:04X}⟩", u32::from(c))),
            c => plain.push(c),
        }
    }
    plain
}

/// The first characters of a text, in one line, with a mark where it was cut.
pub(super) fn brief(text: &str, characters: usize) -> String {
    let mut line = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut brief: String = line.by_ref().take(characters).collect();
    if line.next().is_some() {
        brief.push('…');
    }
    plain(&brief)
}

/// So much of a digest as tells versions apart.
pub(super) fn digest(digest: &str) -> String {
    digest.chars().take(12).collect()
}

/// The share of a whole, in per cent, at most 100.
pub(super) fn percent(part: u64, whole: u64) -> u64 {
    if whole == 0 {
        return 0;
    }
    let share = u128::from(part) * 100 / u128::from(whole);
    u64::try_from(share.min(100)).unwrap_or(100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_in_utc() {
        assert_eq!(moment(Timestamp(0)), "1970-01-01 00:00:00");
        assert_eq!(moment(Timestamp(951_827_696_000)), "2000-02-29 12:34:56");
        let end = moment(Timestamp(u64::MAX));
        assert!(end.len() > 19, "{end}");
    }

    #[test]
    fn durations_are_short() {
        for (millis, written) in [
            (0, "0 ms"),
            (850, "850 ms"),
            (4_260, "4.2 s"),
            (42_600, "42 s"),
            (190_000, "3 m 10 s"),
            (18_120_000, "5 h 2 m"),
            (1_047_600_000, "12 d 3 h"),
        ] {
            assert_eq!(duration(millis), written);
        }
        assert_eq!(micros(999), "999 µs");
        assert_eq!(micros(1_250), "1.2 ms");
    }

    #[test]
    fn sizes_have_about_three_digits() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1_536), "1.5 KiB");
        assert_eq!(bytes(64 << 20), "64 MiB");
        assert_eq!(bytes(u64::MAX), "16777215 TiB");
        assert_eq!(count(10_000_000_000), "10 G");
        assert_eq!(count(1_250), "1.2 k");
        assert_eq!(count(999), "999");
    }

    #[test]
    fn what_a_browser_would_obey_is_shown() {
        assert_eq!(plain("a\n\tb ä"), "a\n\tb ä");
        assert_eq!(plain("a\r\nb"), "a\nb");
        assert_eq!(plain("\0\x1b\r\x7f"), "⟨U+0000⟩⟨U+001B⟩⟨U+000D⟩⟨U+007F⟩");
        assert_eq!(
            plain("a\u{202e}b\u{2066}\u{85}"),
            "a⟨U+202E⟩b⟨U+2066⟩⟨U+0085⟩"
        );
        // Letters of a script from right to left are no such thing.
        assert_eq!(plain("שלום"), "שלום");
    }

    #[test]
    fn texts_are_cut_in_one_line() {
        assert_eq!(brief("a\nb", 10), "a b");
        assert_eq!(brief("äöü", 2), "äö…");
        assert_eq!(of(1, "message"), "1 message");
        assert_eq!(of(12_000, "message"), "12\u{202f}000 messages");
        assert_eq!(percent(1, 0), 0);
        assert_eq!(percent(u64::MAX, 2), 100);
    }
}
