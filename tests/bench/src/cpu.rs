//! What the threads of this process have spent on the processors, by what they are for.
//!
//! Wall time on a shared machine is noise; time on the processors is less so, and it tells who
//! spent it: the system or the load on it. Threads that began or ended between two looks are
//! counted for what they spent while both looks saw them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The thread that makes the load.
pub(crate) const LOAD: &str = "bench-load";

/// Nanoseconds of each thread, by its number, with its name.
#[derive(Clone, Default)]
pub(crate) struct Cpu(BTreeMap<u64, (String, u64)>);

/// What was spent between two looks.
#[derive(Clone, Default)]
pub(crate) struct Spent(BTreeMap<String, u64>);

impl Cpu {
    /// Looks now. Empty where the system does not tell.
    pub(crate) fn now() -> Self {
        let mut threads = BTreeMap::new();
        let Ok(folder) = std::fs::read_dir("/proc/self/task") else {
            return Self::default();
        };
        for entry in folder.flatten() {
            let path = entry.path();
            let read = |file: &str| std::fs::read_to_string(path.join(file)).ok();
            let number = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok());
            let spent =
                read("schedstat").and_then(|text| text.split_whitespace().next()?.parse().ok());
            if let (Some(number), Some(spent), Some(name)) = (number, spent, read("comm")) {
                threads.insert(number, (kind(name.trim()), spent));
            }
        }
        Self(threads)
    }

    /// What was spent since an earlier look.
    pub(crate) fn since(&self, earlier: &Self) -> Spent {
        let mut spent = BTreeMap::new();
        for (number, (name, now)) in &self.0 {
            let before = earlier.0.get(number).map_or(0, |(_, nanos)| *nanos);
            *spent.entry(name.clone()).or_default() += now.saturating_sub(before);
        }
        Spent(spent)
    }
}

impl Spent {
    /// Microseconds of all threads but the load's.
    #[expect(clippy::cast_precision_loss, reason = "figures are not exact")]
    pub(crate) fn system_us(&self) -> f64 {
        let all = self.0.iter().filter(|(name, _)| *name != LOAD);
        all.map(|(_, nanos)| *nanos).sum::<u64>() as f64 / 1e3
    }

    /// Microseconds of the load itself.
    #[expect(clippy::cast_precision_loss, reason = "figures are not exact")]
    pub(crate) fn load_us(&self) -> f64 {
        self.0.get(LOAD).copied().unwrap_or_default() as f64 / 1e3
    }

    /// Microseconds a message of each kind of thread that spent any, the most first.
    #[expect(clippy::cast_precision_loss, reason = "figures are not exact")]
    pub(crate) fn by_thread(&self, messages: f64) -> String {
        let mut kinds: Vec<_> = self.0.iter().collect();
        kinds.sort_by_key(|(_, nanos)| std::cmp::Reverse(**nanos));
        let mut text = String::new();
        for (name, nanos) in kinds {
            let each = *nanos as f64 / 1e3 / messages;
            if each >= 0.05 {
                let _ = write!(text, "{name} {each:.2} ");
            }
        }
        text.push_str("us/message of cpu");
        text
    }
}

/// A thread's name without its number: workers are one kind.
fn kind(name: &str) -> String {
    name.trim_end_matches(|last: char| last.is_ascii_digit() || last == '-')
        .to_owned()
}
