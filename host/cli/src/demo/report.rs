//! What the demo saw: triggers with their steps and latencies, dead letters, totals, and the sums.

use std::time::Duration;

use serde_json::Value;

use super::counts::{browse, tasks, totals};
use super::{DEAD_LETTERS, Demo, INPUTS, Sums, orders};
use crate::exit::Failure;
use crate::render::table::{Cell, Table};
use crate::render::time::{format_duration, format_number};
use crate::render::values::{at, plain};

/// Dead letters that are shown.
const SHOWN_DEAD: usize = 3;

impl Demo {
    /// Prints the report; answers whether the sums agree.
    pub(super) fn report(&self, took: Duration, is_once: bool) -> Result<bool, Failure> {
        let mut sums = Sums {
            put: self.put,
            ..Sums::default()
        };
        let mut all_tasks = Vec::new();
        for (queue, _) in INPUTS {
            let of_queue = tasks(&self.client, queue)?;
            sums.triggered += of_queue.len() as u64;
            let failed = of_queue
                .iter()
                .filter_map(|task| at(task, "failed").as_u64());
            sums.backed_out += failed.sum::<u64>();
            sums.remaining += self.depth(queue)?;
            all_tasks.push((queue, of_queue));
        }
        let outputs = orders::KINDS
            .iter()
            .map(|(_, queue)| *queue)
            .chain(["totals"]);
        let mut effects = Vec::new();
        for queue in outputs {
            let count = browse(&self.client, queue)?.len() as u64;
            sums.committed += count;
            effects.push(format!("{queue} {}", format_number(count)));
        }
        let dead = browse(&self.client, DEAD_LETTERS)?;
        sums.dead_lettered = dead.len() as u64;
        self.step("done", &pace(sums.put, took))?;
        self.show_triggers(&all_tasks)?;
        self.step("results", &effects.join(", "))?;
        self.show_dead(&dead)?;
        sums.has_right_totals = self.show_totals()?;
        self.show_next(is_once)?;
        self.screen.line(&sums.line())?;
        self.screen.flush()?;
        Ok(sums.agree())
    }

    fn show_triggers(&self, all: &[(&str, Vec<Value>)]) -> Result<(), Failure> {
        self.screen.line("")?;
        self.screen.headline("Triggers")?;
        let mut table = Table::new(&[
            "QUEUE",
            ">FIRED",
            ">MESSAGES",
            ">LATENCY",
            ">SLOWEST",
            ">FUEL",
            "VERSIONS",
            "STEPS OF THE FIRST",
        ]);
        for (queue, tasks) in all {
            table.row(trigger_row(queue, tasks));
        }
        self.screen.table(&table, "no trigger has fired")?;
        self.screen.line("")
    }

    fn show_dead(&self, dead: &[Value]) -> Result<(), Failure> {
        let count = format_number(dead.len() as u64);
        self.step(
            "dead",
            &format!("{count} orders rejected, each kept with its reason:"),
        )?;
        for message in dead.iter().take(SHOWN_DEAD) {
            let field = |name: &str| plain(at(message, &format!("dead-letter.{name}")));
            self.step("", &format!("from {}: {}", field("queue"), field("detail")))?;
        }
        Ok(())
    }

    /// The handler's own state, against the sum of what was put.
    fn show_totals(&self) -> Result<bool, Failure> {
        let found = totals(&self.client)?;
        let text: Vec<String> = found
            .iter()
            .map(|(kind, total)| format!("{kind} {}", format_number(*total)))
            .collect();
        let agrees = found == self.expected;
        let verdict = if agrees {
            "as expected"
        } else {
            "NOT as expected"
        };
        self.step("totals", &format!("{} ({verdict})", text.join(", ")))?;
        Ok(agrees)
    }

    fn show_next(&self, is_once: bool) -> Result<(), Failure> {
        self.screen.line("")?;
        if is_once {
            return Ok(());
        }
        let url = self.host.url();
        let program = std::env::current_exe();
        let program =
            program.map_or_else(|_| "oncue".to_owned(), |path| path.display().to_string());
        self.screen
            .headline("Where to look next (this host serves until Ctrl-C)")?;
        self.screen.text(&format!("  export ONCUE_URL={url}"))?;
        for command in [
            "explain orders",
            "tasks --queue orders",
            "browse oncue.dead-letter",
            "get invoices",
            "plugin list",
            "put orders '{\"order\":\"mine\",\"kind\":\"invoice\",\"amount\":1}'",
        ] {
            self.screen.text(&format!("  {program} {command}"))?;
        }
        self.screen
            .text(&format!("  plugins: {}", self.plugins.display()))?;
        self.screen.line("")
    }
}

fn pace(put: u64, took: Duration) -> String {
    let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX).max(1);
    let pace = put.saturating_mul(1_000) / millis;
    format!(
        "{} messages handled in {}, {} a second",
        format_number(put),
        format_duration(millis),
        format_number(pace)
    )
}

/// One trigger in a line: the steps it took, and how long they took.
pub(super) fn first_trigger(queue: &str, task: &Value) -> String {
    let number = |path: &str| at(task, path).as_u64().unwrap_or_default();
    let steps = plain(at(task, "steps"));
    let latency = format_duration(number("start-latency"));
    let took = format_duration(number("ended").saturating_sub(number("started")));
    let outcome = plain(at(task, "outcome"));
    format!("{queue} fired: steps {steps}; started after {latency}, {outcome} in {took}")
}

/// One queue's tasks in numbers. They come newest first.
fn trigger_row(queue: &str, tasks: &[Value]) -> Vec<Cell> {
    let sum = |path: &str| {
        tasks
            .iter()
            .filter_map(|task| at(task, path).as_u64())
            .sum::<u64>()
    };
    let mut latencies: Vec<u64> = tasks
        .iter()
        .filter_map(|task| at(task, "start-latency").as_u64())
        .collect();
    latencies.sort_unstable();
    let latency = |index: usize| latencies.get(index).copied().map(format_duration);
    let mut versions: Vec<String> = tasks.iter().map(|task| plain(at(task, "digest"))).collect();
    versions.sort_unstable();
    versions.dedup();
    let steps = tasks
        .last()
        .map(|task| plain(at(task, "steps")))
        .unwrap_or_default();
    vec![
        Cell::new(queue),
        Cell::new(format_number(tasks.len() as u64)),
        Cell::new(format_number(sum("committed") + sum("failed"))),
        Cell::new(latency(latencies.len() / 2).unwrap_or_default()),
        Cell::new(latency(latencies.len().saturating_sub(1)).unwrap_or_default()),
        Cell::new(format_number(sum("cost.fuel"))),
        Cell::new(versions.len().to_string()),
        Cell::new(steps),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_queue_is_a_row_of_numbers() {
        let task = |latency: u64, digest: &str, steps: &[u8]| {
            json!({ "committed": 10, "failed": 1, "start-latency": latency, "digest": digest,
                    "steps": steps, "cost": { "fuel": 1_000 } })
        };
        let tasks = [
            task(9, "b", &[10, 16]),
            task(1, "a", &[10]),
            task(2, "a", &[10, 12]),
        ];
        let mut table = Table::new(&["", "", "", "", "", "", "", ""]);
        table.row(trigger_row("orders", &tasks));
        assert_eq!(
            table.render(None, false).trim(),
            "orders  3  33  2ms  9ms  3 000  2  10, 12"
        );
    }

    #[test]
    fn the_first_trigger_is_a_line() {
        let task = json!({ "steps": [10, 12], "start-latency": 2, "started": 5, "ended": 9,
                           "outcome": "committed" });
        assert_eq!(
            first_trigger("orders", &task),
            "orders fired: steps 10, 12; started after 2ms, committed in 4ms"
        );
    }

    #[test]
    fn the_pace_is_messages_a_second() {
        let text = pace(1_000, Duration::from_millis(2_500));
        assert_eq!(text, "1 000 messages handled in 2.5s, 400 a second");
        assert!(pace(1, Duration::ZERO).contains("1 000 a second"));
    }
}
