//! The data and plugins directories: there, writable, closed to others; how quick a sync is, how
//! much room there is, whether changes are noticed.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use oncue_store::histogram::{BOUNDS, Distribution};
use rustix::fs::inotify;

use super::{Line, State};
use crate::config::Config;
use crate::render::time::{format_bytes, format_duration, format_number};

/// Syncs that are timed.
const SYNCS: usize = 16;

/// Bytes of each.
const SYNC_BYTES: usize = 4_096;

/// A median sync beyond this makes each put that waits alone slow.
const SLOW_SYNC: Duration = Duration::from_millis(20);

/// No disk answers sooner than this: whatever does keeps nothing.
const IMPLAUSIBLE_SYNC: Duration = Duration::from_micros(5);

/// File systems in memory: a power cut takes all of it.
const IN_MEMORY: &[(u32, &str)] = &[(0x0102_1994, "tmpfs"), (0x8584_58f6, "ramfs")];

/// File systems over a network: locks, syncs and notices are not to be relied on.
const OVER_NETWORK: &[(u32, &str)] = &[
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB2"),
    (0x0102_1997, "9p"),
    (0x00c3_6400, "Ceph"),
    (0x5346_414f, "AFS"),
    (0x6573_5546, "FUSE"),
];

/// Looks at the data directory. `measured` are the syncs of a host that writes there; without them
/// a few are tried.
pub(super) fn data(path: &Path, config: &Config, measured: Option<&Distribution>) -> Vec<Line> {
    const NAME: &str = "data directory";
    if config.is_on("volatile") {
        return vec![Line::warn(
            NAME,
            "none: everything is in memory (volatile)",
            "A restart loses all messages. Leave \"volatile\" out to keep them.",
        )];
    }
    let there = nearest(path);
    let mut lines = vec![directory(NAME, path, &there)];
    if lines.iter().any(|line| line.state == State::Fail) {
        return lines;
    }
    lines.push(kind("data file system", &there, true));
    lines.push(space(&there, config));
    let measured = measured.filter(|times| times.count() > 0);
    lines.push(
        match measured.map_or_else(|| tried(&there), |it| Ok(told(it))) {
            Ok(syncs) => judge_syncs(&syncs),
            Err(error) => Line::fail(
                "sync",
                format!("cannot be tried in \"{}\": {error}", there.display()),
                "The host writes and syncs there; give it a directory where it can.",
            ),
        },
    );
    lines
}

/// Looks at the plugins directory.
pub(super) fn plugins(path: &Path, config: &Config) -> Vec<Line> {
    let there = nearest(path);
    let rescan = format_duration(config.number("plugin-rescan").unwrap_or_default());
    vec![
        directory("plugins directory", path, &there),
        kind("plugins file system", &there, false),
        watching(&rescan),
    ]
}

/// The path itself, or what is there of it: the host makes the rest.
fn nearest(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let there = absolute.ancestors().find(|path| path.exists());
    there.unwrap_or(Path::new("/")).to_owned()
}

fn directory(name: &'static str, path: &Path, there: &Path) -> Line {
    let is_there = path.exists();
    let shown = path.display();
    let metadata = match fs::metadata(there) {
        Ok(metadata) => metadata,
        Err(error) => {
            let cure = "Name another directory, or make this one readable for the host's user.";
            return Line::fail(name, format!("\"{shown}\": {error}"), cure);
        }
    };
    if !metadata.is_dir() {
        let fact = format!("\"{}\" is no directory", there.display());
        return Line::fail(name, fact, "Move it away, or name another directory.");
    }
    if let Err(error) = tempfile::NamedTempFile::new_in(there) {
        let fact = format!("\"{}\" cannot be written to: {error}", there.display());
        let cure = "Give it to the user that the host runs as (chown), or name another.";
        return Line::fail(name, fact, cure);
    }
    if !is_there {
        return Line::ok(name, format!("\"{shown}\" is made at the first start"));
    }
    judge_mode(name, &shown.to_string(), metadata.mode(), metadata.uid())
}

fn judge_mode(name: &'static str, shown: &str, mode: u32, owner: u32) -> Line {
    let bits = mode & 0o777;
    let fact = format!("\"{shown}\", mode {bits:03o}, owner {owner}");
    let is_data = name.starts_with("data");
    if bits & 0o002 != 0 {
        let cure = if is_data {
            format!("Everybody may change messages: chmod o-w \"{shown}\".")
        } else {
            format!("Everybody may drop code that the host runs: chmod o-w \"{shown}\".")
        };
        Line::fail(name, fact, cure)
    } else if is_data && bits & 0o005 != 0 {
        let cure = format!("Everybody may read messages: chmod o-rx \"{shown}\".");
        Line::warn(name, fact, cure)
    } else {
        Line::ok(name, fact)
    }
}

fn kind(name: &'static str, there: &Path, is_data: bool) -> Line {
    match rustix::fs::statfs(there) {
        // The number fits: it is a magic of 32 bits on every system.
        Ok(found) => judge_kind(name, u32::try_from(found.f_type).unwrap_or(0), is_data),
        Err(error) => Line::warn(name, error.to_string(), "Check that the disk is mounted."),
    }
}

fn judge_kind(name: &'static str, magic: u32, is_data: bool) -> Line {
    let named = |list: &[(u32, &'static str)]| {
        let found = list.iter().find(|(known, _)| *known == magic);
        found.map(|(_, name)| *name)
    };
    match (named(IN_MEMORY), named(OVER_NETWORK)) {
        (Some(kind), _) if is_data => Line::warn(
            name,
            format!("{kind}, in memory"),
            "A power cut or a reboot loses all messages: put the data directory on a disk.",
        ),
        (_, Some(kind)) if is_data => Line::warn(
            name,
            format!("{kind}, over a network or in user space"),
            "Its locks and syncs decide what an acknowledged put is worth: use a local disk, or a \
             block device.",
        ),
        (_, Some(kind)) => Line::warn(
            name,
            format!("{kind}, over a network or in user space"),
            "It does not report changes that other machines make: a new plugin is found by the \
             regular look (\"plugin-rescan\") only.",
        ),
        (Some(kind), None) => Line::ok(name, kind),
        (None, None) => Line::ok(name, "local"),
    }
}

fn space(there: &Path, config: &Config) -> Line {
    let sizes = ["store-reserve", "store-ballast"];
    let kept = sizes.iter().filter_map(|name| config.number(name)).sum();
    match rustix::fs::statvfs(there) {
        Ok(disk) => judge_space(disk.f_bavail.saturating_mul(disk.f_frsize), kept),
        Err(error) => Line::warn(
            "free space",
            error.to_string(),
            "Check that the disk is mounted.",
        ),
    }
}

fn judge_space(free: u64, kept: u64) -> Line {
    const NAME: &str = "free space";
    let fact = format!("{}, {} kept back", format_bytes(free), format_bytes(kept));
    if free <= kept {
        let cure = "Puts are refused below what is kept back (\"store-reserve\", \
                    \"store-ballast\"): make room, or lower them.";
        Line::fail(NAME, fact, cure)
    } else if free < kept.saturating_mul(4) {
        let cure = "Make room before it is needed: puts are refused when free space meets \
                    \"store-reserve\".";
        Line::warn(NAME, fact, cure)
    } else {
        Line::ok(NAME, fact)
    }
}

/// Times a few syncs of a file that is taken away again.
fn time_syncs(there: &Path) -> io::Result<Vec<Duration>> {
    let mut file = tempfile::tempfile_in(there)?;
    let block = [0x5a_u8; SYNC_BYTES];
    let mut times = Vec::with_capacity(SYNCS);
    for _ in 0..SYNCS {
        file.write_all(&block)?;
        let begun = Instant::now();
        file.sync_data()?;
        times.push(begun.elapsed());
    }
    Ok(times)
}

/// How long syncs take.
struct Syncs {
    /// The usual one.
    usual: Duration,
    /// In words.
    fact: String,
}

/// Tries a few syncs.
fn tried(there: &Path) -> io::Result<Syncs> {
    let mut times = time_syncs(there)?;
    times.sort_unstable();
    let usual = times.get(times.len() / 2).copied().unwrap_or_default();
    let most = times.last().copied().unwrap_or_default();
    Ok(Syncs {
        usual,
        fact: format!("median {}, longest {}", short(usual), short(most)),
    })
}

/// What a host has measured at its own syncs since it started.
fn told(times: &Distribution) -> Syncs {
    let count = times.count().max(1);
    let usual = Duration::from_micros(times.micros / count);
    let slowest = times.classes.iter().rposition(|syncs| *syncs > 0);
    let bound = slowest.and_then(|class| BOUNDS.get(class));
    let longest = match bound {
        Some(bound) => format!("none above {}", short(Duration::from_micros(*bound))),
        None => "some above a minute".to_owned(),
    };
    let count = format_number(count);
    Syncs {
        usual,
        fact: format!(
            "{count} since the start, {} on average, {longest}",
            short(usual)
        ),
    }
}

fn judge_syncs(syncs: &Syncs) -> Line {
    const NAME: &str = "sync";
    let (usual, fact) = (syncs.usual, syncs.fact.clone());
    if usual > SLOW_SYNC {
        let cure = "Every put waits for a sync of the disk. Use a quicker disk (an SSD with power \
                    loss protection), or put several messages in one unit.";
        Line::warn(NAME, fact, cure)
    } else if usual < IMPLAUSIBLE_SYNC {
        let cure = "That is sooner than any disk can write: it is memory, or syncs are switched \
                    off. A power cut may lose acknowledged messages.";
        Line::warn(NAME, fact, cure)
    } else {
        Line::ok(NAME, fact)
    }
}

fn short(time: Duration) -> String {
    let micros = time.as_micros();
    if micros < 1_000 {
        format!("{micros}us")
    } else {
        format!("{}.{}ms", micros / 1_000, micros % 1_000 / 100)
    }
}

/// Whether the system reports changes of the plugins directory.
fn watching(rescan: &str) -> Line {
    let tried = inotify::init(inotify::CreateFlags::CLOEXEC).map(drop);
    let number = |name: &str| {
        let path = format!("/proc/sys/fs/inotify/{name}");
        fs::read_to_string(path).ok()?.trim().parse::<u64>().ok()
    };
    judge_watching(
        tried.map_err(io::Error::from),
        number("max_user_instances"),
        number("max_user_watches"),
        rescan,
    )
}

fn judge_watching(
    tried: io::Result<()>,
    instances: Option<u64>,
    watches: Option<u64>,
    rescan: &str,
) -> Line {
    const NAME: &str = "watching";
    if let Err(error) = tried {
        return Line::warn(
            NAME,
            format!("changes are not reported: {error}"),
            format!(
                "A new plugin is found by the regular look, every {rescan}. Raise \
                 fs.inotify.max_user_instances to have it found at once."
            ),
        );
    }
    let shown = |number: Option<u64>| number.map_or_else(|| "?".to_owned(), format_number);
    Line::ok(
        NAME,
        format!(
            "changes are reported (inotify: {} instances, {} watches a user)",
            shown(instances),
            shown(watches)
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &Line, wanted: State) {
        assert_eq!(line.state, wanted, "{line:?}");
        assert_eq!(line.cure.is_empty(), wanted == State::Ok, "{line:?}");
    }

    #[test]
    fn modes_that_let_others_in_are_told() {
        check(&judge_mode("data directory", "d", 0o40_700, 1), State::Ok);
        check(&judge_mode("data directory", "d", 0o40_755, 1), State::Warn);
        check(&judge_mode("data directory", "d", 0o40_777, 1), State::Fail);
        check(
            &judge_mode("plugins directory", "p", 0o40_755, 1),
            State::Ok,
        );
        check(
            &judge_mode("plugins directory", "p", 0o40_777, 1),
            State::Fail,
        );
    }

    #[test]
    fn file_systems_are_told_apart() {
        check(&judge_kind("k", 0xef53, true), State::Ok);
        check(&judge_kind("k", 0x0102_1994, true), State::Warn);
        check(&judge_kind("k", 0x0102_1994, false), State::Ok);
        check(&judge_kind("k", 0x6969, true), State::Warn);
        check(&judge_kind("k", 0x6969, false), State::Warn);
    }

    #[test]
    fn space_and_syncs_are_judged() {
        check(&judge_space(1 << 40, 320 << 20), State::Ok);
        check(&judge_space(1 << 30, 320 << 20), State::Warn);
        check(&judge_space(320 << 20, 320 << 20), State::Fail);
        let syncs = |micros: u64| {
            judge_syncs(&Syncs {
                usual: Duration::from_micros(micros),
                fact: short(Duration::from_micros(micros)),
            })
        };
        check(&syncs(900), State::Ok);
        check(&syncs(30_000), State::Warn);
        check(&syncs(1), State::Warn);
        assert_eq!(syncs(1_250).fact, "1.2ms");
        let mut measured = Distribution {
            micros: 40_000,
            ..Distribution::default()
        };
        measured.classes[3] = 38;
        measured.classes[6] = 2;
        let bound = short(Duration::from_micros(BOUNDS[6]));
        let wanted = format!("40 since the start, 1.0ms on average, none above {bound}");
        assert_eq!(told(&measured).fact, wanted);
        let refused = io::Error::other("too many");
        check(&judge_watching(Err(refused), None, None, "5s"), State::Warn);
        check(&judge_watching(Ok(()), Some(128), None, "5s"), State::Ok);
    }

    #[test]
    fn a_directory_that_is_not_there_yet_is_looked_for_above() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("a").join("b");
        let there = nearest(&path);
        assert_eq!(there, fs::canonicalize(place.path()).expect("a path"));
        check(&directory("data directory", &path, &there), State::Ok);
        let file = place.path().join("file");
        fs::write(&file, "x").expect("written");
        check(
            &directory("data directory", &file, &nearest(&file)),
            State::Fail,
        );
        let times = time_syncs(place.path()).expect("syncs");
        assert_eq!(times.len(), SYNCS);
        assert_eq!(fs::read_dir(place.path()).expect("a list").count(), 1);
    }
}
