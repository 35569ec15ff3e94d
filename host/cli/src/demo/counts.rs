//! What happened, counted from the outside: answers and browses, never the host's own counters.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::client::{Client, Request};
use crate::exit::Failure;
use crate::render::values::{at, items, plain};

/// Messages or tasks of one page.
const PAGE: u64 = 1_000;

/// Most pages of one count: a bound where the host would page in a circle.
const MAX_PAGES: u64 = 10_000;

/// How many of the last messages are read to find the last total of each kind.
const MAX_TOTALS: usize = 200;

/// The summary's numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    /// Messages accepted: ids in answers.
    pub(super) put: u64,
    /// Tasks that triggers started.
    pub(super) triggered: u64,
    /// Effects on the output queues.
    pub(super) committed: u64,
    /// Failed attempts, each undone.
    pub(super) backed_out: u64,
    /// Messages on the dead-letter queue.
    pub(super) dead_lettered: u64,
    /// Messages still on the input queues.
    pub(super) remaining: u64,
    /// Whether the handlers' own totals are those of the orders put.
    pub(super) has_right_totals: bool,
}

impl Sums {
    /// Whether every message put is accounted for, and none is left.
    pub(super) fn agree(&self) -> bool {
        self.remaining == 0
            && self.put == self.committed + self.dead_lettered + self.remaining
            && self.triggered > 0
            && self.backed_out >= self.dead_lettered
            && self.has_right_totals
    }

    /// The demo's last line.
    pub(super) fn line(&self) -> String {
        let Self {
            put,
            triggered,
            committed,
            backed_out,
            dead_lettered,
            remaining,
            ..
        } = self;
        let verdict = if self.agree() {
            "ok"
        } else {
            "SUMS DO NOT AGREE"
        };
        format!(
            "demo: put={put} triggered={triggered} committed={committed} \
             backed-out={backed_out} dead-lettered={dead_lettered} remaining={remaining} {verdict}"
        )
    }
}

/// All messages of a queue, browsed page by page, without their bodies.
pub(super) fn browse(client: &Client, queue: &str) -> Result<Vec<Value>, Failure> {
    let (mut messages, mut cursor) = (Vec::new(), None);
    for _ in 0..MAX_PAGES {
        let request = Request::get(&["queues", queue, "messages"]).query("max", Some(PAGE));
        let page = client.ask(request.query("cursor", cursor))?;
        messages.extend_from_slice(items(at(&page, "messages")));
        cursor = at(&page, "next").as_str().map(str::to_owned);
        if cursor.is_none() {
            break;
        }
    }
    Ok(messages)
}

/// All tasks of a queue, the newest first.
pub(super) fn tasks(client: &Client, queue: &str) -> Result<Vec<Value>, Failure> {
    let (mut tasks, mut before) = (Vec::new(), None);
    for _ in 0..MAX_PAGES {
        let request = Request::get(&["tasks"]).query("queue", Some(queue));
        let page = client.ask(request.query("max", Some(PAGE)).query("before", before))?;
        let page = items(&page);
        tasks.extend_from_slice(page);
        before = page.last().map(|task| plain(at(task, "id")));
        if (page.len() as u64) < PAGE {
            break;
        }
    }
    Ok(tasks)
}

/// The last total of each kind, as `running-total` put it.
pub(super) fn totals(client: &Client) -> Result<BTreeMap<String, u64>, Failure> {
    let mut totals = BTreeMap::new();
    for message in browse(client, "totals")?.iter().rev().take(MAX_TOTALS) {
        let id = plain(at(message, "id"));
        let total = client.ask(Request::get(&["queues", "totals", "messages", &id]))?;
        let number = at(&total, "total").as_u64().unwrap_or_default();
        totals.entry(plain(at(&total, "kind"))).or_insert(number);
    }
    Ok(totals)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_agree_only_when_every_message_is_accounted_for() {
        let good = Sums {
            put: 1_000,
            triggered: 4,
            committed: 960,
            backed_out: 40,
            dead_lettered: 40,
            remaining: 0,
            has_right_totals: true,
        };
        assert!(good.agree());
        assert_eq!(
            good.line(),
            "demo: put=1000 triggered=4 committed=960 backed-out=40 dead-lettered=40 remaining=0 ok"
        );
        let lost = Sums {
            committed: 959,
            ..good
        };
        let doubled = Sums {
            committed: 961,
            ..good
        };
        let left = Sums {
            committed: 950,
            remaining: 10,
            ..good
        };
        let idle = Sums {
            triggered: 0,
            ..good
        };
        let miscounted = Sums {
            has_right_totals: false,
            ..good
        };
        for wrong in [lost, doubled, left, idle, miscounted] {
            assert!(!wrong.agree(), "{wrong:?}");
            assert!(wrong.line().ends_with("SUMS DO NOT AGREE"));
        }
    }
}
