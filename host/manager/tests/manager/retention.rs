//! Task records are kept by bytes and by age, in memory and in the store.

use oncue_manager::ManagerConfig;
use oncue_manager::handle::TaskFilter;
use oncue_manager::retention::Retention;
use oncue_manager::tasks::TaskId;
use oncue_store::Store;

use crate::rig::Rig;
use crate::values::{name, trapped};

const HOUR: u64 = 3_600_000;

fn config(bytes: u64, age: u64) -> ManagerConfig {
    ManagerConfig {
        retention: Retention { bytes, age },
        ..ManagerConfig::default()
    }
}

/// A task fails.
fn fail(rig: &mut Rig) {
    rig.put("q", "poison");
    rig.run(|_| trapped());
    rig.settle();
}

/// Starts of the records in the store, the newest first.
fn stored(rig: &Rig) -> Vec<u64> {
    let rows = rig.memory.tasks(None, 10_000).expect("the records");
    let started = rows.into_iter().map(|(_, row)| {
        let record: oncue_manager::tasks::record::TaskRecord =
            serde_json::from_slice(&row).expect("a record");
        record.started.0
    });
    started.collect()
}

fn failing(config: ManagerConfig) -> Rig {
    let mut rig = Rig::with(config);
    let attributes: crate::values::Pairs<'_> = &[("backout-threshold", "1")];
    rig.plugin("q", &[], &[("q", attributes)]);
    rig
}

#[test]
fn old_records_go_and_young_ones_stay() {
    let mut rig = failing(config(64 << 20, 2 * HOUR));
    let now = oncue_manager::Clock::now(rig.clock.as_ref());
    for _ in 0..3 {
        fail(&mut rig);
        rig.advance(HOUR);
    }
    // The first is three hours old, the second a little over two.
    rig.advance(1_000);
    rig.advance(1_000);
    let wanted: Vec<u64> = vec![now.0 + 2 * HOUR];
    assert_eq!(stored(&rig), wanted);
    assert_eq!(rig.records().len(), 1);
    let mut rig = rig.reopen(config(64 << 20, 2 * HOUR), Vec::new());
    assert_eq!(rig.records().len(), 1, "from the store");
    rig.advance(3 * HOUR);
    rig.advance(1_000);
    assert_eq!(stored(&rig), [0; 0]);
    assert!(rig.records().is_empty());
}

#[test]
fn the_newest_bytes_are_kept() {
    let mut rig = failing(config(4 << 10, 1_000 * HOUR));
    for _ in 0..50 {
        fail(&mut rig);
        rig.advance(1_000);
    }
    let stored = stored(&rig);
    assert!(!stored.is_empty() && stored.len() < 20, "{}", stored.len());
    assert!(stored.is_sorted_by(|a, b| a > b), "the newest");
    let newest = oncue_manager::Clock::now(rig.clock.as_ref()).0 - 1_000;
    assert_eq!(stored[0], newest);
    assert!(rig.records().len() < 50);
}

#[test]
fn a_long_time_of_failures_is_dropped_in_slices() {
    let mut rig = failing(config(64 << 20, HOUR));
    for _ in 0..1_200 {
        fail(&mut rig);
    }
    rig.advance(HOUR);
    rig.advance(HOUR);
    assert!(!stored(&rig).is_empty(), "not all at once");
    for _ in 0..3 {
        rig.advance(1_000);
    }
    assert_eq!(stored(&rig), [0; 0]);
}

#[test]
fn records_of_earlier_times_are_found_behind_many_others() {
    let keeps = || config(64 << 20, 1_000 * HOUR);
    let mut rig = failing(keeps());
    let once: crate::values::Pairs<'_> = &[("backout-threshold", "1")];
    rig.plugin("r", &[], &[("r", once)]);
    rig.put("r", "poison");
    rig.run(|_| trapped());
    rig.settle();
    for _ in 0..250 {
        fail(&mut rig);
    }
    // After a restart nothing is in memory.
    let mut rig = rig.reopen(keeps(), Vec::new());
    let mut list = |queue: Option<&str>, before: Option<TaskId>, max: usize| {
        let handle = rig.handle.clone();
        let filter = TaskFilter {
            queue: queue.map(name),
            before,
            max,
            ..TaskFilter::default()
        };
        rig.ask(async move { handle.tasks(filter).await })
            .expect("the records")
    };
    let of_r = list(Some("r"), None, 5);
    assert_eq!(of_r.len(), 1, "the oldest of all");
    let (mut all, mut before) = (Vec::new(), None);
    loop {
        let page = list(None, before, 100);
        let is_last = page.len() < 100;
        all.extend(page.iter().map(|record| record.id));
        before = all.last().copied();
        if is_last {
            break;
        }
    }
    assert_eq!(
        (all.len(), all.last()),
        (251, of_r.first().map(|it| &it.id))
    );
    assert!(
        all.is_sorted_by(|a, b| a > b),
        "each once, the newest first"
    );
}
