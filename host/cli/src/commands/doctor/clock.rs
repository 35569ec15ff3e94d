//! Clocks: whether wall time goes as steadily as the machine's own, is plausible, and is kept right
//! by somebody.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::Line;
use crate::render::time::{format_duration, format_timestamp};

/// Times before this program was written, in seconds since the epoch: 2026-01-01.
const WRITTEN: u64 = 1_767_225_600;

/// The two clocks may drift apart by so much while the other checks run.
const STEADY: Duration = Duration::from_millis(50);

/// Where systemd's time service says that the clock is right.
const SYNCHRONISED: &str = "/run/systemd/timesync/synchronized";

/// Files and folders of other services that keep the clock.
const KEEPERS: &[(&str, &str)] = &[
    ("/run/chrony", "chrony"),
    ("/run/ntpd.pid", "ntpd"),
    ("/var/run/openntpd", "openntpd"),
];

/// Both clocks at the beginning.
pub(super) struct Begun {
    steady: Instant,
    wall: SystemTime,
}

/// Reads both clocks.
#[expect(
    clippy::disallowed_methods,
    reason = "this check is about the clocks themselves"
)]
pub(super) fn begin() -> Begun {
    Begun {
        steady: Instant::now(),
        wall: SystemTime::now(),
    }
}

impl Begun {
    /// Compares them with what they say now.
    pub(super) fn end(&self) -> Line {
        let now = begin();
        let steady = now.steady.saturating_duration_since(self.steady);
        let wall = now.wall.duration_since(self.wall).ok();
        let since_epoch = now.wall.duration_since(UNIX_EPOCH).unwrap_or_default();
        judge(steady, wall, since_epoch)
    }
}

fn judge(steady: Duration, wall: Option<Duration>, since_epoch: Duration) -> Line {
    const NAME: &str = "clock";
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let shown = format_timestamp(millis(since_epoch));
    if since_epoch.as_secs() < WRITTEN {
        let cure = "Set the clock: delays, expiry, retries and schedules go by it.";
        return Line::fail(
            NAME,
            format!("{shown}, before this program was written"),
            cure,
        );
    }
    let apart = wall.map(|wall| wall.abs_diff(steady));
    match apart {
        Some(apart) if apart <= STEADY => Line::ok(NAME, format!("{shown}, steady")),
        apart => {
            let by = match apart {
                Some(apart) => format!("jumped by {}", format_duration(millis(apart))),
                None => "went backwards".to_owned(),
            };
            let cure = "Something sets the clock in steps. Have it slewed (chrony, ntpd); a step \
                        makes delays and expiries that much too long or too short.";
            Line::warn(NAME, format!("{shown}, {by} during this check"), cure)
        }
    }
}

/// Whether somebody keeps the clock right, as far as that can be seen.
pub(super) fn synchronised() -> Line {
    let keeper = KEEPERS
        .iter()
        .find(|(path, _)| Path::new(path).exists())
        .map(|(_, keeper)| *keeper);
    kept(Path::new(SYNCHRONISED).exists(), keeper, is_contained())
}

/// A container has the clock of its machine, and does not see who keeps it.
fn is_contained() -> bool {
    Path::new("/.dockerenv").exists()
        || Path::new("/run/.containerenv").exists()
        || std::env::var_os("KUBERNETES_SERVICE_HOST").is_some()
}

fn kept(by_systemd: bool, keeper: Option<&str>, contained: bool) -> Line {
    const NAME: &str = "clock kept by";
    match (by_systemd, keeper) {
        (true, _) => Line::ok(NAME, "systemd-timesyncd, synchronised"),
        (false, Some(keeper)) => Line::ok(NAME, keeper),
        (false, None) if contained => Line::ok(NAME, "not seen from within a container"),
        (false, None) => Line::warn(
            NAME,
            "nobody that can be seen",
            "Run a time service (systemd-timesyncd, chrony): expiries, schedules and the order \
             of logs on several machines depend on it.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    #[test]
    fn clocks_are_compared() {
        let check = |steady: u64, wall: Option<u64>, since_epoch: u64, wanted: State| {
            let line = judge(
                Duration::from_millis(steady),
                wall.map(Duration::from_millis),
                Duration::from_secs(since_epoch),
            );
            assert_eq!(line.state, wanted, "{line:?}");
            assert_eq!(line.cure.is_empty(), wanted == State::Ok, "{line:?}");
        };
        check(1_000, Some(1_010), WRITTEN + 1, State::Ok);
        check(1_000, Some(900), WRITTEN + 1, State::Warn);
        check(1_000, Some(3_600_000), WRITTEN + 1, State::Warn);
        check(1_000, None, WRITTEN + 1, State::Warn);
        check(1_000, Some(1_000), 0, State::Fail);
    }

    #[test]
    fn somebody_keeps_the_clock() {
        assert_eq!(kept(true, None, false).state, State::Ok);
        assert_eq!(kept(false, Some("chrony"), false).state, State::Ok);
        assert_eq!(kept(false, None, true).state, State::Ok);
        assert_eq!(kept(false, None, false).state, State::Warn);
    }
}
