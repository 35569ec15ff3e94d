//! What the machine allows: open files, memory mappings, address space, memory, processors.

use std::fs;

use oncue_runtime::engine;
use oncue_runtime::{Sandbox, SandboxConfig, SandboxLimits};
use rustix::process::{Resource, getrlimit};

use super::Line;
use crate::config::Config;
use crate::render::time::{format_bytes, format_number};
use crate::serve::machine;

/// Open files that a host needs under full load: connections, the store's files, and spare ones.
const FILES_NEEDED: u64 = 1_500;

/// Open files with which a store of very many files is at ease too.
const FILES_WANTED: u64 = 4_096;

/// Memory of one task of the usual demand, and as much for the host.
const MEMORY_NEEDED: u64 = 128 << 20;

/// Files that may stay unopened before it is told, in percent of the limit.
const FILES_SPARE: u64 = 20;

/// How many files this process may open, and how many it has.
pub(super) fn open_files() -> Line {
    // The directory's own is open while it is read.
    let open = fs::read_dir("/proc/self/fd").ok();
    let open = open.map(|files| (files.count() as u64).saturating_sub(1));
    judge_files(getrlimit(Resource::Nofile).current, open)
}

fn judge_files(limit: Option<u64>, open: Option<u64>) -> Line {
    const NAME: &str = "open files";
    let cure = format!(
        "Raise it to {FILES_WANTED} or more: \"ulimit -n {FILES_WANTED}\", or LimitNOFILE= of the \
         systemd unit. A host that may open no more files refuses connections and stops writing."
    );
    let open_text = open.map(|open| format!(", {} open", format_number(open)));
    let open_text = open_text.unwrap_or_default();
    let Some(limit) = limit else {
        return Line::ok(NAME, format!("no limit{open_text}"));
    };
    let fact = format!("limit {}{open_text}", format_number(limit));
    let spare = limit.saturating_sub(open.unwrap_or_default());
    if limit < FILES_NEEDED {
        Line::fail(NAME, fact, cure)
    } else if limit < FILES_WANTED || spare < limit / 100 * FILES_SPARE {
        Line::warn(NAME, fact, cure)
    } else {
        Line::ok(NAME, fact)
    }
}

/// How many task slots the system's bound of memory mappings allows.
pub(super) fn mappings(configured: Option<u64>) -> Line {
    let maps = fs::read_to_string("/proc/sys/vm/max_map_count").ok();
    let maps = maps.and_then(|text| text.trim().parse().ok());
    judge_mappings(maps, engine::slots(None), configured)
}

fn judge_mappings(maps: Option<u64>, allowed: u32, configured: Option<u64>) -> Line {
    const NAME: &str = "memory mappings";
    let known = maps.map_or_else(
        || "vm.max_map_count is not told".to_owned(),
        |maps| format!("vm.max_map_count {}", format_number(maps)),
    );
    let allowed_text = format_number(u64::from(allowed));
    match configured {
        Some(wanted) if wanted > u64::from(allowed) => Line::warn(
            NAME,
            format!(
                "{known} allows {allowed_text} task slots, {} are asked for",
                format_number(wanted)
            ),
            "Raise it (sysctl vm.max_map_count=262144), or lower \"slots\": the host takes what \
             is allowed.",
        ),
        Some(wanted) => Line::ok(
            NAME,
            format!("{known} allows {allowed_text} task slots, {wanted} are asked for"),
        ),
        None if allowed < 100 => Line::warn(
            NAME,
            format!("{known} allows {allowed_text} task slots only"),
            "Raise it: sysctl vm.max_map_count=262144.",
        ),
        None => Line::ok(NAME, format!("{known} allows {allowed_text} task slots")),
    }
}

fn wanted_slots(configured: Option<u64>) -> Option<u32> {
    configured.map(|slots| u32::try_from(slots).unwrap_or(u32::MAX))
}

/// The pool of instances that this process has.
pub(super) fn pool_of(configured: Option<u64>, limits: SandboxLimits) -> Line {
    let wanted = engine::slots(wanted_slots(configured));
    let address_space = getrlimit(Resource::As).current;
    judge_pool(wanted, limits.slots, limits.pooled, address_space)
}

/// Whether the pool of instances can be reserved: tried, and given back.
pub(super) fn pool(configured: Option<u64>) -> Line {
    let slots = wanted_slots(configured);
    match Sandbox::new(SandboxConfig {
        slots,
        ..SandboxConfig::default()
    }) {
        Ok(sandbox) => pool_of(configured, sandbox.limits()),
        Err(error) => Line::fail(
            "instance pool",
            error.to_string(),
            "This program cannot run handlers here; check that the processor and the system are \
             supported.",
        ),
    }
}

fn judge_pool(wanted: u32, slots: u32, pooled: bool, address_space: Option<u64>) -> Line {
    const NAME: &str = "instance pool";
    let limit = address_space.map(|bytes| format!(" (limit {})", format_bytes(bytes)));
    let limit = limit.unwrap_or_default();
    let cure = "Allow more address space (\"ulimit -v unlimited\", no LimitAS= in the unit; it is \
                reserved, not used), or lower \"slots\".";
    let slots_text = format_number(u64::from(slots));
    if !pooled {
        let fact = format!("cannot be reserved{limit}; each task's start costs more");
        Line::warn(NAME, fact, cure)
    } else if slots < wanted {
        let wanted = format_number(u64::from(wanted));
        let fact = format!("{slots_text} slots of {wanted} reserved{limit}");
        Line::warn(NAME, fact, cure)
    } else {
        Line::ok(NAME, format!("{slots_text} slots reserved"))
    }
}

/// Memory for tasks, against what is there.
pub(super) fn memory(config: &Config) -> Line {
    let capacity = config
        .number("memory")
        .unwrap_or_else(machine::memory_capacity);
    let free = machine::headroom()();
    judge_memory(capacity, free, machine::cgroup_limit())
}

fn judge_memory(capacity: u64, free: Option<u64>, cgroup: Option<u64>) -> Line {
    const NAME: &str = "memory";
    let group = cgroup.map(|limit| format!(", cgroup limit {}", format_bytes(limit)));
    let group = group.unwrap_or_default();
    let shown = format_bytes(capacity);
    let Some(free) = free else {
        return Line::ok(NAME, format!("{shown} for tasks; free memory is not told"));
    };
    let fact = format!("{shown} for tasks, {} free now{group}", format_bytes(free));
    if free < MEMORY_NEEDED {
        let cure = "Give the host more memory: one task of the usual demand takes 64 MiB, and a \
                    start without memory is held.";
        Line::fail(NAME, fact, cure)
    } else if cgroup.is_some_and(|limit| capacity > limit) {
        let cure = "Lower \"memory\" below the cgroup's limit, or the kernel ends the host when \
                    tasks use what they were promised.";
        Line::fail(NAME, fact, cure)
    } else if capacity > free {
        let cure = "Less is free than tasks are promised: starts will be held when they use it. \
                    Lower \"memory\", or end what else runs here.";
        Line::warn(NAME, fact, cure)
    } else {
        Line::ok(NAME, fact)
    }
}

/// Processors, against the threads that run tasks.
pub(super) fn processors(workers: Option<u64>) -> Line {
    judge_processors(machine::cores(), workers)
}

fn judge_processors(cores: u64, workers: Option<u64>) -> Line {
    const NAME: &str = "processors";
    match workers {
        Some(workers) if workers > cores * 4 => Line::warn(
            NAME,
            format!("{cores}, for {workers} workers"),
            "More workers than processors make tasks wait for each other; leave \"workers\" out.",
        ),
        _ => Line::ok(NAME, cores.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    fn check(line: &Line, wanted: State) {
        assert_eq!(line.state, wanted, "{line:?}");
        assert_eq!(line.cure.is_empty(), wanted == State::Ok, "{line:?}");
    }

    #[test]
    fn limits_are_judged() {
        check(&judge_files(None, None), State::Ok);
        check(&judge_files(Some(1_048_576), Some(40)), State::Ok);
        check(&judge_files(Some(2_000), None), State::Warn);
        check(&judge_files(Some(5_000), Some(4_500)), State::Warn);
        check(&judge_files(Some(256), None), State::Fail);
        check(&judge_mappings(Some(65_530), 10_000, None), State::Ok);
        check(&judge_mappings(None, 10_000, Some(50)), State::Ok);
        check(&judge_mappings(Some(5_100), 16, None), State::Warn);
        check(
            &judge_mappings(Some(65_530), 10_000, Some(20_000)),
            State::Warn,
        );
        check(&judge_pool(1_000, 1_000, true, None), State::Ok);
        check(&judge_pool(1_000, 250, true, Some(1 << 40)), State::Warn);
        check(&judge_pool(1_000, 1_000, false, Some(1 << 30)), State::Warn);
        check(&judge_processors(2, None), State::Ok);
        check(&judge_processors(2, Some(64)), State::Warn);
    }

    #[test]
    fn memory_is_judged_by_what_is_free_and_by_the_group() {
        let gib = 1_u64 << 30;
        check(&judge_memory(gib, None, None), State::Ok);
        check(&judge_memory(gib, Some(4 * gib), Some(8 * gib)), State::Ok);
        check(&judge_memory(4 * gib, Some(gib), None), State::Warn);
        check(
            &judge_memory(4 * gib, Some(8 * gib), Some(2 * gib)),
            State::Fail,
        );
        check(&judge_memory(gib, Some(1 << 20), None), State::Fail);
    }

    #[test]
    fn this_machine_can_be_looked_at() {
        for line in [open_files(), mappings(None), processors(None)] {
            assert!(!line.fact.is_empty(), "{line:?}");
        }
    }
}
