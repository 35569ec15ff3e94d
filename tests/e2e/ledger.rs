//! The test's own ledger: what was offered to a host and what the host said to it, held against
//! what is on its queues at the end. It believes no counter of the host's.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::host::{Home, Host};
use crate::wait::{holds_within, until};

/// Threads that put at the same time.
const PUTTERS: u64 = 4;

/// Puts of one thread in one spell of load, at most.
const PUTS_MAX: u64 = 20_000;

/// Messages on one page of a browse.
const PAGE: u32 = 1_000;

/// What a host said to one put.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Said {
    /// It is durable, under this id.
    Yes(String),
    /// Nothing, or that it does not know: there once, or not at all.
    Unknown,
    /// No, with this code: it must not be there.
    No(String),
}

/// All puts of a test, by a number of the test's own.
///
/// Odd ones go to `echo`, which puts each to `echo.out` under the message's id; even ones go to
/// `running-total`, which keeps a sum in its state and puts each new sum to `totals`.
#[derive(Debug, Default)]
pub struct Ledger {
    puts: Mutex<BTreeMap<u64, Said>>,
    next: AtomicU64,
}

/// How many puts were acknowledged, refused, and neither.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub acknowledged: usize,
    pub refused: usize,
    pub unknown: usize,
}

fn queue_of(number: u64) -> &'static str {
    if number.is_multiple_of(2) {
        "running-total"
    } else {
        "echo"
    }
}

impl Ledger {
    /// A home with the two samples, their queues, and both plugins compiled.
    pub fn prepare(home: &Home) {
        let samples = oncue_artifacts::ALL.iter();
        for sample in samples.filter(|s| ["echo", "running-total"].contains(&s.name)) {
            home.drop_sample(sample);
        }
        let host = home.start();
        host.define("echo.out", json!({"trigger": "none"}));
        host.define("totals", json!({"trigger": "none"}));
        host.wait_for_plugin("echo", "ready");
        host.wait_for_plugin("running-total", "ready");
        // An operator's change, which must outlive all that follows.
        host.send_json("PATCH", "/v1/queues/echo", &json!({"max-tasks": 3}))
            .expect(200);
        assert_eq!(host.stop(), 0);
    }

    /// Puts from several threads, while `meanwhile` runs; ends when it does, or when the host does.
    pub fn load(&self, host: &Host, meanwhile: impl FnOnce()) {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..PUTTERS {
                scope.spawn(|| self.put_until(host, &stop));
            }
            meanwhile();
            stop.store(true, Ordering::Relaxed);
        });
    }

    /// The same for a time.
    pub fn load_for(&self, host: &Host, time: Duration, end: impl FnOnce()) {
        self.load(host, || {
            holds_within(time, || false);
            end();
        });
    }

    fn put_until(&self, host: &Host, stop: &AtomicBool) {
        for _ in 0..PUTS_MAX {
            if stop.load(Ordering::Relaxed) || self.put(host).is_none() {
                return;
            }
        }
    }

    /// One put; what the host said. `None`: nothing, the connection is gone.
    pub fn put(&self, host: &Host) -> Option<Result<(), Value>> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let body = json!({"kind": "all", "amount": 1, "number": number}).to_string();
        self.note(number, Said::Unknown);
        let path = format!("/v1/queues/{}/messages", queue_of(number));
        let answer = host.request("POST", &path, &[], body.as_bytes()).ok()?;
        let json = answer.json();
        if answer.status == 201 {
            self.note(
                number,
                Said::Yes(json["id"].as_str().expect("an id").to_owned()),
            );
            return Some(Ok(()));
        }
        let code = json["code"].as_str().expect("a code");
        if code != "commit-unknown" {
            self.note(number, Said::No(code.to_owned()));
        }
        Some(Err(json))
    }

    fn note(&self, number: u64, said: Said) {
        self.puts.lock().expect("ledger").insert(number, said);
    }

    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for said in self.puts.lock().expect("ledger").values() {
            match said {
                Said::Yes(_) => counts.acknowledged += 1,
                Said::Unknown => counts.unknown += 1,
                Said::No(_) => counts.refused += 1,
            }
        }
        counts
    }

    /// Codes of the refusals.
    pub fn refusals(&self) -> BTreeSet<String> {
        let puts = self.puts.lock().expect("ledger");
        let codes = puts.values().filter_map(|said| match said {
            Said::No(code) => Some(code.clone()),
            Said::Yes(_) | Said::Unknown => None,
        });
        codes.collect()
    }

    /// Lets a host handle all that is left, ends it by `kill -9`, and judges what the next one has.
    pub fn drain_and_judge(&self, home: &Home) {
        let host = home.start();
        drain(&host);
        host.kill();
        let host = home.start();
        self.judge(&host);
        assert_eq!(host.stop(), 0);
    }

    /// Holds the ledger against the queues. Nothing may be in process.
    pub fn judge(&self, host: &Host) {
        let dead = browse(host, "oncue.dead-letter");
        assert!(
            dead.is_empty(),
            "an unclean end made dead letters: {dead:?}"
        );
        for queue in ["echo", "running-total"] {
            assert_eq!(
                browse(host, queue),
                [] as [Value; 0],
                "{queue} is not empty"
            );
        }
        self.judge_echoes(&browse(host, "echo.out"));
        self.judge_totals(host);
        assert_eq!(
            host.queue("echo")["attributes"]["max-tasks"],
            3,
            "the overlay is there"
        );
    }

    /// One echo of each acknowledged put; of the unknown ones, at most one each.
    fn judge_echoes(&self, echoes: &[Value]) {
        let mut found: BTreeMap<&str, u32> = BTreeMap::new();
        for echo in echoes {
            *found
                .entry(echo["correlation-id"].as_str().expect("the id"))
                .or_default() += 1;
        }
        let twice: Vec<_> = found.iter().filter(|(_, count)| **count > 1).collect();
        assert!(twice.is_empty(), "handled more than once: {twice:?}");
        let (mut lost, mut unknown) = (Vec::new(), 0_usize);
        for (number, said) in self.puts.lock().expect("ledger").iter() {
            match said {
                _ if queue_of(*number) != "echo" => {}
                Said::Yes(id) if found.remove(id.as_str()).is_none() => {
                    lost.push((*number, id.clone()))
                }
                Said::Unknown => unknown += 1,
                Said::Yes(_) | Said::No(_) => {}
            }
        }
        assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
        assert!(
            found.len() <= unknown,
            "{unknown} puts unanswered, and these: {found:?}"
        );
    }

    /// The sums are 1, 2, 3 ... without a gap or a repeat: state and output are of one unit.
    fn judge_totals(&self, host: &Host) {
        let (mut least, mut most) = (0, 0);
        for (number, said) in self.puts.lock().expect("ledger").iter() {
            if queue_of(*number) == "running-total" {
                least += u64::from(matches!(said, Said::Yes(_)));
                most += u64::from(matches!(said, Said::Yes(_) | Said::Unknown));
            }
        }
        let totals = browse(host, "totals");
        let count = totals.len() as u64;
        assert!(
            (least..=most).contains(&count),
            "{count} of {least} to {most} totals"
        );
        // One more, so that the state itself is seen and not only what was put.
        host.put("running-total", br#"{"kind": "all", "amount": 0}"#);
        host.wait_for_depth("totals", count + 1);
        let last = browse(host, "totals").pop().expect("a total");
        let path = format!(
            "/v1/queues/totals/messages/{}",
            last["id"].as_str().expect("an id")
        );
        let body = host.get(&path).expect(200).json();
        assert_eq!(
            body["total"], count,
            "each order is counted once in the state"
        );
    }
}

/// Waits until nothing is left to do.
pub fn drain(host: &Host) {
    for queue in ["echo", "running-total"] {
        host.wait_for_depth(queue, 0);
    }
    until("the end of all tasks", || host.reserved()["slots"] == 0);
}

/// All messages of a queue, by long pages.
pub fn browse(host: &Host, queue: &str) -> Vec<Value> {
    let mut found = Vec::new();
    let mut cursor = String::new();
    for _ in 0..PUTS_MAX {
        let path = format!("/v1/queues/{queue}/messages?max={PAGE}{cursor}");
        let page = host.get(&path).expect(200).json();
        found.extend(
            page["messages"]
                .as_array()
                .expect("messages")
                .iter()
                .cloned(),
        );
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return found,
        }
    }
    panic!("the browse has no end");
}
