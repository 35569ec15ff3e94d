//! The hostile samples again and again, beside a polite queue with steady puts: the polite queue is
//! served all the time, what was reserved is returned, and the host does not grow.
//!
//! `ONCUE_RUNS=1000 cargo test --test e2e hostile` runs them longer than a usual run does.

use serde_json::json;

use crate::host::{Home, Host};
use crate::wait::until;
use crate::work::{has, sample, task};

/// Runs of each sample, if the environment does not say.
const RUNS: u64 = 50;

/// What the host may grow by, in bytes, from a fifth of the runs on (at first, caches fill).
const MAX_GROWTH: u64 = 32 << 20;

/// Samples that move hundreds of MiB at each run are run so many times less often.
const HEAVY: u64 = 20;

fn runs() -> u64 {
    let text = std::env::var("ONCUE_RUNS").ok();
    text.map_or(RUNS, |text| text.parse().expect("ONCUE_RUNS is a number"))
}

/// One hostile sample and the polite one.
struct Neighbours<'a> {
    host: &'a Host,
    name: &'a str,
    /// The newest task of the hostile queue that was waited for.
    seen: u64,
    /// Messages put to the polite queue.
    polite: u64,
}

impl Neighbours<'_> {
    /// One run of the hostile sample, with a put to the polite queue before and after.
    fn run(&mut self, leaves_messages: bool) {
        let handled = self.host.depth("echo.out");
        self.put_polite();
        let id = self.host.put(self.name, b"hello");
        self.put_polite();
        self.wait_for_hostile(&id, leaves_messages);
        // The claim: a hostile task has ended, and a polite message was handled since, or none
        // waits. Nothing hurries it along here: no further put, no get.
        let host = self.host;
        until("a polite message to be handled", || {
            host.depth("echo.out") > handled || host.depth("echo") == 0
        });
    }

    fn put_polite(&mut self) {
        self.host.put("echo", b"hello");
        self.polite += 1;
    }

    /// Waits until the message was handled, or, when the sample leaves messages alone, until it
    /// was started once more and has ended.
    fn wait_for_hostile(&mut self, id: &str, leaves_messages: bool) {
        let name = self.name;
        until(&format!("a run of {name}"), || {
            // Few records: the newest is the one that is waited for.
            let path = format!("/v1/tasks?queue={name}&max=8");
            let records = self.host.get(&path).expect(200).json();
            let mut ended = records.as_array().expect("tasks").iter();
            let found = ended.find(|record| {
                let counts = if leaves_messages {
                    task(record) > self.seen
                } else {
                    has(record, id)
                };
                counts && !record["outcome"].is_null()
            });
            self.seen = found.map_or(self.seen, task);
            found.is_some()
        });
    }
}

/// Runs a sample beside a polite queue; the rest is in the module's words.
fn check(name: &str, runs: u64) {
    let leaves_messages = ["idle", "traps-before-get"].contains(&name);
    let home = Home::new();
    home.drop_sample(sample(name));
    home.drop_sample(sample("echo"));
    let host = home.start();
    host.define_plain("echo.out");
    host.define_plain(&format!("{name}.out"));
    host.wait_for_plugin(name, "ready");
    host.wait_for_plugin("echo", "ready");
    let mut neighbours = Neighbours {
        host: &host,
        name,
        seen: 0,
        polite: 0,
    };
    let mut warm = 0;
    for run in 1..=runs {
        neighbours.run(leaves_messages);
        if run == runs.div_ceil(5) {
            warm = host.resident();
        }
    }
    let (grown, polite) = (host.resident().saturating_sub(warm), neighbours.polite);
    assert!(
        grown <= MAX_GROWTH,
        "{name}: grown by {grown} bytes in {runs} runs from {warm}"
    );
    host.wait_for_depth("echo.out", polite);
    assert_eq!(host.depth("echo"), 0);
    host.trigger(name, false);
    host.wait_for_capacity();
    let by_process = host.get("/v1/ledger").expect(200).json()["by-process"].clone();
    assert_eq!(by_process, json!({}), "{name}");
}

macro_rules! neighbour_test {
    // Refused at load: nothing of them ever runs.
    (hostile wrong_world) => {};
    (hostile unknown_import) => {};
    (hostile $name:ident) => {
        #[test]
        fn $name() {
            let name = stringify!($name).replace('_', "-");
            let heavy = ["floods-output", "huge-put"].contains(&name.as_str());
            check(
                &name,
                if heavy {
                    runs().div_ceil(HEAVY)
                } else {
                    runs()
                },
            );
        }
    };
    (polite $name:ident) => {};
    (borrowed $name:ident) => {};
    (command $name:ident) => {};
    (core $name:ident) => {};
}

/// Host memory and the other queues under each of the hostile samples.
mod a51_beside_a_polite_queue {
    use super::{HEAVY, check, runs};

    oncue_artifacts::for_each_sample!(neighbour_test);
}
