//! Named points where a test makes a commit fail or ends the process.
//!
//! With the feature `fail-points`, the environment variable `ONCUE_FAIL_POINT` = `NAME` or
//! `NAME:COUNT` arms a point: it acts when it is passed for the COUNT-th time (1 when absent),
//! once. Several stand with commas between them. The variable is read once. Without the feature
//! everything here is nothing: a release build cannot be made to fail from outside.

/// The environment variable that arms a point.
#[cfg(feature = "fail-points")]
const VARIABLE: &str = "ONCUE_FAIL_POINT";

/// Ends the process after a batch was written and before it was synced. Nobody was answered.
pub(crate) const BEFORE_SYNC_ABORT: &str = "commit.before-sync.abort";
/// Ends the process after a batch was synced and before anybody was answered.
pub(crate) const AFTER_SYNC_ABORT: &str = "commit.after-sync.abort";
/// A write of a batch meets a full disk.
pub(crate) const WRITE_ENOSPC: &str = "commit.write.enospc";
/// The engine cannot be opened again after a failed write.
pub(crate) const REOPEN_FAIL: &str = "engine.reopen.fail";
/// A sync of a written batch fails.
pub(crate) const SYNC_FAIL: &str = "commit.sync.fail";
/// Ends the process while a task holds messages: at the end of a take that found some.
pub(crate) const TAKE_ABORT: &str = "take.after-hold.abort";

/// True when the point is armed and its count has come.
#[cfg(feature = "fail-points")]
pub(crate) fn hit(name: &str) -> bool {
    armed::hit(name)
}

/// Without the feature no point ever acts.
#[cfg(not(feature = "fail-points"))]
#[inline(always)]
pub(crate) fn hit(_name: &str) -> bool {
    false
}

/// Ends the process at once, as a power cut or `kill -9` would, when the point is armed.
pub(crate) fn abort_at(name: &str) {
    if hit(name) {
        std::process::abort();
    }
}

#[cfg(feature = "fail-points")]
mod armed {
    use std::sync::OnceLock;

    use parking_lot::Mutex;

    static ARMED: OnceLock<Mutex<Vec<(String, u64)>>> = OnceLock::new();

    fn parse(text: &str) -> (String, u64) {
        match text.rsplit_once(':') {
            Some((name, count)) => (name.to_owned(), count.parse().unwrap_or(1)),
            None => (text.to_owned(), 1),
        }
    }

    fn parse_all(text: &str) -> Vec<(String, u64)> {
        text.split(',').map(parse).collect()
    }

    pub(super) fn hit(name: &str) -> bool {
        let armed = ARMED.get_or_init(|| {
            let text = std::env::var(super::VARIABLE).unwrap_or_default();
            Mutex::new(parse_all(&text))
        });
        let mut armed = armed.lock();
        let Some(place) = armed.iter().position(|(wanted, _)| wanted == name) else {
            return false;
        };
        let Some((_, count)) = armed.get_mut(place) else {
            return false;
        };
        *count = count.saturating_sub(1);
        let now = *count == 0;
        if now {
            armed.remove(place);
        }
        now
    }

    #[cfg(test)]
    mod tests {
        #[test]
        fn a_count_stands_behind_a_colon() {
            assert_eq!(
                super::parse("commit.sync.fail"),
                ("commit.sync.fail".to_owned(), 1)
            );
            assert_eq!(
                super::parse("commit.sync.fail:3"),
                ("commit.sync.fail".to_owned(), 3)
            );
            let both = [("a".to_owned(), 2), ("b".to_owned(), 1)];
            assert_eq!(super::parse_all("a:2,b"), both);
        }
    }
}
