//! What this machine can give: memory, processors, and how much fuel they burn.
//!
//! Every figure can be set; these are what holds when it is not. Where the system does not tell,
//! a small figure is taken: a host that runs less is better than one that is killed.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Memory that is assumed where the system does not tell, in bytes.
const ASSUMED_MEMORY: u64 = 2 << 30;

/// How long a measured headroom holds: it is asked for at every start of a task.
const HEADROOM_AGE: Duration = Duration::from_millis(100);

/// Below this, a cgroup's limit is one; above, it is the kernel's way to say "none". In bytes.
const MAX_PLAUSIBLE: u64 = 1 << 50;

/// Where the kernel tells of the machine's memory.
const MEMINFO: &str = "/proc/meminfo";

/// Half of what this process may have: of the cgroup's limit, or of the machine's memory.
pub(crate) fn memory_capacity() -> u64 {
    let machine = fs::read_to_string(MEMINFO)
        .ok()
        .and_then(|text| meminfo(&text, "MemTotal"));
    let all = [machine, cgroup_limit()].into_iter().flatten().min();
    all.unwrap_or(ASSUMED_MEMORY) / 2
}

/// The tightest limit of the memory cgroups that this process is in, in bytes.
pub(crate) fn cgroup_limit() -> Option<u64> {
    cgroups().iter().filter_map(|group| limit(group)).min()
}

/// Processors that this process may use.
pub(crate) fn cores() -> u64 {
    std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64)
}

/// Measures how much memory is really free, not more often than [`HEADROOM_AGE`].
pub(crate) fn headroom() -> impl Fn() -> Option<u64> + Send {
    let last: Mutex<Option<(Instant, Option<u64>)>> = Mutex::new(None);
    let groups = cgroups();
    move || {
        let mut last = last
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        match *last {
            Some((when, free)) if when.elapsed() < HEADROOM_AGE => free,
            _ => {
                let free = free_memory(&groups);
                *last = Some((Instant::now(), free));
                free
            }
        }
    }
}

fn free_memory(groups: &[PathBuf]) -> Option<u64> {
    let machine = fs::read_to_string(MEMINFO)
        .ok()
        .and_then(|text| meminfo(&text, "MemAvailable"));
    let groups = groups.iter().filter_map(|group| free_in(group));
    groups.chain(machine).min()
}

/// The value of a line such as `MemTotal:  16314264 kB`, in bytes.
fn meminfo(text: &str, name: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kibibytes: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    kibibytes.checked_mul(1 << 10)
}

/// The memory cgroups of this process, the innermost first: each has a limit of its own. Both
/// versions; in a container only its own is seen, at the root.
fn cgroups() -> Vec<PathBuf> {
    let Ok(text) = fs::read_to_string("/proc/self/cgroup") else {
        return Vec::new();
    };
    let mut groups = Vec::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let root = match parts.next() {
            Some("") => Path::new("/sys/fs/cgroup"),
            Some(kinds) if kinds.split(',').any(|kind| kind == "memory") => {
                Path::new("/sys/fs/cgroup/memory")
            }
            _ => continue,
        };
        let inner = Path::new(parts.next().unwrap_or_default().trim_start_matches('/'));
        groups.extend(inner.ancestors().map(|path| root.join(path)));
    }
    groups
}

/// The number in a file of a cgroup, unless it means "none".
fn number(group: &Path, file: &str) -> Option<u64> {
    let text = fs::read_to_string(group.join(file)).ok()?;
    text.trim()
        .parse()
        .ok()
        .filter(|number| *number < MAX_PLAUSIBLE)
}

fn limit(group: &Path) -> Option<u64> {
    number(group, "memory.max").or_else(|| number(group, "memory.limit_in_bytes"))
}

/// What is left below a cgroup's limit; the page cache counts as free, since it gives way.
fn free_in(group: &Path) -> Option<u64> {
    let limit = limit(group)?;
    let used = number(group, "memory.current")
        .or_else(|| number(group, "memory.usage_in_bytes"))
        .unwrap_or_default();
    let statistics = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
    let cache = ["inactive_file ", "total_inactive_file "]
        .into_iter()
        .find_map(|name| statistics.lines().find_map(|line| line.strip_prefix(name)))
        .and_then(|text| text.trim().parse::<u64>().ok())
        .unwrap_or_default();
    Some(limit.saturating_sub(used.saturating_sub(cache)))
}

/// Fuel that one core burns in a second: from the file if it was measured by the same engine, else
/// measured now and written there.
pub(crate) fn fuel_rate(file: &Path, engine: &str, measure: impl FnOnce() -> u64) -> u64 {
    let kept = fs::read_to_string(file).ok();
    let kept = kept.as_deref().and_then(|text| {
        let (written_by, rate) = text.trim().split_once(' ')?;
        (written_by == engine).then(|| rate.parse().ok()).flatten()
    });
    if let Some(rate) = kept {
        return rate;
    }
    let rate = measure();
    // Without the file it is measured again at the next start, which costs a moment.
    if let Err(error) = fs::write(file, format!("{engine} {rate}\n")) {
        tracing::debug!(file = %file.display(), %error, "the fuel rate is not kept");
    }
    rate
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meminfo_is_read_by_name() {
        let text = "MemTotal:       16314264 kB\nMemFree: 1 kB\nMemAvailable:    2048 kB\n";
        assert_eq!(meminfo(text, "MemTotal"), Some(16_314_264 << 10));
        assert_eq!(meminfo(text, "MemAvailable"), Some(2 << 20));
        assert_eq!(meminfo(text, "SwapTotal"), None);
    }

    #[test]
    fn a_cgroup_limits_and_its_cache_is_free() {
        let group = tempfile::tempdir().expect("a directory");
        let write = |file: &str, text: &str| {
            fs::write(group.path().join(file), text).expect("written");
        };
        assert_eq!(limit(group.path()), None);
        write("memory.max", "max\n");
        assert_eq!(limit(group.path()), None);
        write("memory.max", "1000000\n");
        write("memory.current", "900000\n");
        write("memory.stat", "anon 5\ninactive_file 300000\n");
        assert_eq!(limit(group.path()), Some(1_000_000));
        assert_eq!(free_in(group.path()), Some(400_000));
    }

    #[test]
    fn a_fuel_rate_is_measured_once_for_each_engine() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("fuel-rate");
        assert_eq!(fuel_rate(&file, "engine-1", || 5), 5);
        assert_eq!(fuel_rate(&file, "engine-1", || panic!("it is kept")), 5);
        assert_eq!(fuel_rate(&file, "engine-2", || 7), 7);
        fs::write(&file, "garbage").expect("written");
        assert_eq!(fuel_rate(&file, "engine-2", || 8), 8);
        let nowhere = directory.path().join("no").join("file");
        assert_eq!(fuel_rate(&nowhere, "engine-1", || 9), 9);
    }

    #[test]
    fn this_machine_has_memory_and_cores() {
        assert!(memory_capacity() > 0);
        assert!(cores() > 0);
        let headroom = headroom();
        assert_eq!(headroom(), headroom(), "a second look comes from the first");
    }
}
