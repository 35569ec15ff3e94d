//! Points in time and durations as people read them.

const MILLIS_PER_DAY: u64 = 86_400_000;

/// A point in time in UTC: `2026-02-03 04:05:06.789Z`.
pub(crate) fn format_timestamp(millis: u64) -> String {
    let (year, month, day) = civil_date(millis / MILLIS_PER_DAY);
    let rest = millis % MILLIS_PER_DAY;
    let (hours, minutes) = (rest / 3_600_000, rest / 60_000 % 60);
    let (seconds, millis) = (rest / 1_000 % 60, rest % 1_000);
    format!("{year:04}-{month:02}-{day:02} {hours:02}:{minutes:02}:{seconds:02}.{millis:03}Z")
}

/// Year, month and day of a number of days since 1970-01-01, in the Gregorian calendar.
///
/// Counts in eras of 400 years that begin on a first of March, so that the leap day is the last
/// day of a year.
fn civil_date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

/// A duration to about two digits: `850ms`, `4.2s`, `3m 10s`, `5h 2m`, `12d 3h`.
pub(crate) fn format_duration(millis: u64) -> String {
    match millis {
        0..1_000 => format!("{millis}ms"),
        1_000..60_000 => format!("{}.{}s", millis / 1_000, millis % 1_000 / 100),
        60_000..3_600_000 => format!("{}m {}s", millis / 60_000, millis / 1_000 % 60),
        3_600_000..MILLIS_PER_DAY => format!("{}h {}m", millis / 3_600_000, millis / 60_000 % 60),
        _ => format!("{}d {}h", millis / MILLIS_PER_DAY, millis / 3_600_000 % 24),
    }
}

/// Bytes to about three digits: `12 B`, `1.5 KiB`, `64.0 MiB`.
pub(crate) fn format_bytes(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1_024 {
        return format!("{bytes} B");
    }
    let mut tenths = u128::from(bytes) * 10 / 1_024;
    let mut unit = 0;
    while tenths >= 10_240 && unit + 1 < UNITS.len() {
        tenths /= 1_024;
        unit += 1;
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
}

/// A number with spaces between thousands: `1 234 567`.
pub(crate) fn format_number(number: u64) -> String {
    let digits = number.to_string();
    let mut written = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            written.push(' ');
        }
        written.push(digit);
    }
    written
}

/// So many things, in words: `1 message`, `1 200 messages`.
pub(crate) fn number_of(count: u64, thing: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{} {thing}{ending}", format_number(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_written_in_utc() {
        let check = |millis: u64, wanted: &str| assert_eq!(format_timestamp(millis), wanted);
        check(0, "1970-01-01 00:00:00.000Z");
        check(951_782_399_999, "2000-02-28 23:59:59.999Z");
        check(951_782_400_000, "2000-02-29 00:00:00.000Z");
        check(1_709_210_096_789, "2024-02-29 12:34:56.789Z");
        check(1_767_225_600_000, "2026-01-01 00:00:00.000Z");
        check(4_107_542_400_000, "2100-03-01 00:00:00.000Z");
    }

    #[test]
    fn durations_sizes_and_numbers_are_short() {
        let durations = [
            (0, "0ms"),
            (999, "999ms"),
            (4_250, "4.2s"),
            (190_000, "3m 10s"),
            (18_120_000, "5h 2m"),
            (1_047_600_000, "12d 3h"),
        ];
        for (millis, wanted) in durations {
            assert_eq!(format_duration(millis), wanted);
        }
        let sizes = [
            (0, "0 B"),
            (1_023, "1023 B"),
            (1_536, "1.5 KiB"),
            (64 << 20, "64.0 MiB"),
            (u64::MAX, "16777215.9 TiB"),
        ];
        for (bytes, wanted) in sizes {
            assert_eq!(format_bytes(bytes), wanted);
        }
        let numbers = [
            (0, "0"),
            (999, "999"),
            (1_000, "1 000"),
            (1_234_567, "1 234 567"),
        ];
        for (number, wanted) in numbers {
            assert_eq!(format_number(number), wanted);
        }
        assert_eq!(number_of(1, "message"), "1 message");
        assert_eq!(number_of(0, "message"), "0 messages");
        assert_eq!(number_of(1_200, "dead letter"), "1 200 dead letters");
    }
}
