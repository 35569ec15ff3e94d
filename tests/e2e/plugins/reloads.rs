//! Reloads under load.
//!
//! `ONCUE_RELOADS=1000 cargo test --test e2e a62` reloads more often than a usual run does.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{digest, host_with_version_1, plugin_view, version};
use crate::wait::until;

/// Reloads, if the environment does not say.
const RELOADS: u32 = 20;

/// Versions that take turns: compiled at first, later found in the cache.
const VERSIONS: u32 = 4;

/// What the host may grow by, in bytes, after the first fifth of the reloads.
const MAX_GROWTH: u64 = 64 << 20;

#[test]
fn a62_reloads_under_load_lose_no_message_and_mix_no_versions() {
    let reloads = std::env::var("ONCUE_RELOADS").ok();
    let reloads = reloads.map_or(RELOADS, |text| text.parse().expect("a number"));
    let (home, host) = host_with_version_1();
    let done = AtomicBool::new(false);
    let (mut warm, mut puts) = (0, 0);
    std::thread::scope(|scope| {
        let putter = scope.spawn(|| {
            let mut ids = vec![];
            while !done.load(Ordering::Relaxed) {
                ids.push(host.put("p", b"load"));
            }
            ids
        });
        for turn in 1..=reloads {
            let number = u8::try_from(turn % VERSIONS + 1).unwrap();
            home.write("p.wasm", version(number));
            let wanted = digest(&version(number));
            until("the next version", || {
                plugin_view(&host, "p")["digest"] == wanted.as_str()
            });
            if turn == reloads.div_ceil(5) {
                warm = host.resident();
            }
        }
        done.store(true, Ordering::Relaxed);
        puts = putter.join().unwrap().len();
    });
    // One more than the load: the first version's proof.
    let puts = u64::try_from(puts).unwrap() + 1;
    until("all to be handled", || host.depth("p") == 0);
    host.wait_for_depth("echo.out", puts);
    let answers = host.browse("echo.out");
    let asked: BTreeSet<&str> = answers
        .iter()
        .filter_map(|it| it["correlation-id"].as_str())
        .collect();
    assert_eq!(asked.len(), answers.len(), "a message was handled twice");
    let known: Vec<String> = (1..=VERSIONS).map(|n| digest(&version(n as u8))).collect();
    for record in host.records("p") {
        let digest = record["digest"].as_str().unwrap().to_owned();
        assert!(known.contains(&digest), "{record}");
        assert!(
            record["outcome"] == "committed"
                || record["outcome"] == "released"
                || record["outcome"] == "no-progress",
            "{record}"
        );
    }
    let grown = host.resident().saturating_sub(warm);
    assert!(
        grown <= MAX_GROWTH,
        "grown by {grown} bytes from {warm} in {reloads} reloads"
    );
}
