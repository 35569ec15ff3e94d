//! What was put and what left, in the last ten minutes: sampled from the manager's counts, for each
//! queue on which anything happened, and for all together.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use oncue_core::names::QueueName;
use oncue_core::time::Timestamp;
use oncue_manager::handle::QueueFlow;
use parking_lot::Mutex;

use crate::app::App;

/// Between two samples.
const PERIOD: Duration = Duration::from_secs(5);

/// Samples that are kept: ten minutes.
const POINTS: usize = 120;

/// Queues whose samples are kept; on others nothing is drawn.
const MAX_QUEUES: usize = 1_000;

/// What happened between two samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Point {
    /// When it ended.
    pub(super) time: Timestamp,
    /// How long it was, in milliseconds.
    pub(super) span: u64,
    /// Messages put.
    pub(super) put: u64,
    /// Messages that left, by whatever way.
    pub(super) left: u64,
    /// Messages at its end.
    pub(super) depth: u64,
}

impl Point {
    /// So many in a second.
    fn each_second(self, count: u64) -> f64 {
        // Counts of ten minutes are far below what a float holds.
        count as f64 * 1_000.0 / self.span.max(1) as f64
    }

    /// Puts in a second.
    pub(super) fn put_rate(self) -> f64 {
        self.each_second(self.put)
    }

    /// Messages that left in a second.
    pub(super) fn left_rate(self) -> f64 {
        self.each_second(self.left)
    }
}

/// The last samples of a queue, oldest first.
type Ring = VecDeque<Point>;

#[derive(Debug, Default)]
struct Kept {
    /// What each queue's counts were at the last sample.
    last: HashMap<QueueName, (u64, u64)>,
    at: Option<Timestamp>,
    queues: HashMap<QueueName, Ring>,
    all: Ring,
}

/// The samples.
#[derive(Debug, Default)]
pub(crate) struct Rates(Mutex<Kept>);

impl Rates {
    /// Takes a sample.
    pub(super) fn sample(&self, flows: &[QueueFlow], now: Timestamp) {
        let mut kept = self.0.lock();
        let Kept {
            last,
            at,
            queues,
            all,
        } = &mut *kept;
        let before = std::mem::take(last);
        let span = at.map(|at| now.since(at));
        *at = Some(now);
        let mut sum = Point {
            time: now,
            span: span.unwrap_or(0),
            ..Point::default()
        };
        for flow in flows {
            last.insert(flow.queue.clone(), (flow.puts, flow.depth));
            sum.depth += flow.depth;
            let Some(span) = span else { continue };
            // A queue that is new was empty, and nothing had been put.
            let (puts, depth) = before.get(&flow.queue).copied().unwrap_or_default();
            let point = between((puts, depth), flow, now, span);
            sum.put += point.put;
            sum.left += point.left;
            let moved = point.put + point.left > 0;
            if let Some(ring) = queues.get_mut(&flow.queue) {
                push(ring, point);
            } else if moved && queues.len() < MAX_QUEUES {
                queues.insert(flow.queue.clone(), Ring::from([point]));
            }
        }
        if span.is_some() {
            push(all, sum);
        }
        // Gone queues, and those that have been still for as long as is shown, make room.
        queues.retain(|queue, ring| {
            last.contains_key(queue) && ring.iter().any(|point| point.put + point.left > 0)
        });
    }

    /// The samples of a queue, oldest first; none where nothing happened.
    pub(super) fn of(&self, queue: &QueueName) -> Vec<Point> {
        let kept = self.0.lock();
        let ring = kept.queues.get(queue);
        ring.map(|ring| ring.iter().copied().collect())
            .unwrap_or_default()
    }

    /// Those of all queues together.
    pub(super) fn of_all(&self) -> Vec<Point> {
        self.0.lock().all.iter().copied().collect()
    }
}

/// What happened to a queue since its last counts: what is there and was not must have come, and
/// what came and is not there has left.
fn between(before: (u64, u64), flow: &QueueFlow, time: Timestamp, span: u64) -> Point {
    let (puts, depth) = before;
    let grown = flow.depth.saturating_sub(depth);
    // A queue that was deleted and made again counts from nothing.
    let put = flow.puts.saturating_sub(puts).max(grown);
    Point {
        time,
        span,
        put,
        left: (depth + put).saturating_sub(flow.depth),
        depth: flow.depth,
    }
}

fn push(ring: &mut Ring, point: Point) {
    if ring.len() >= POINTS {
        ring.pop_front();
    }
    ring.push_back(point);
}

/// Samples until the server stops.
pub(crate) async fn sample(app: App) {
    let mut clock = tokio::time::interval(PERIOD);
    clock.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut stopped = std::pin::pin!(app.stopped());
    loop {
        tokio::select! {
            _ = clock.tick() => {}
            () = &mut stopped => return,
        }
        app.console
            .rates
            .sample(&app.handle.flows(), app.handle.now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(queue: &str, puts: u64, depth: u64) -> QueueFlow {
        let queue = QueueName::new(queue).expect("a name");
        QueueFlow { queue, puts, depth }
    }

    #[test]
    fn a_sample_tells_what_came_and_what_left() {
        let rates = Rates::default();
        let a = QueueName::new("a").expect("a name");
        rates.sample(&[flow("a", 100, 10), flow("still", 7, 7)], Timestamp(5_000));
        assert_eq!(rates.of(&a), [], "one sample alone says nothing");
        rates.sample(
            &[flow("a", 150, 20), flow("still", 7, 7)],
            Timestamp(10_000),
        );
        let [point] = rates.of(&a)[..] else {
            panic!("one point")
        };
        assert_eq!((point.put, point.left, point.depth), (50, 40, 20));
        assert!((point.put_rate() - 10.0).abs() < 1e-9);
        let still = QueueName::new("still").expect("a name");
        assert_eq!(
            rates.of(&still),
            [],
            "nothing is kept where nothing happens"
        );
        // Moved there by the manager, put by nobody.
        rates.sample(
            &[flow("a", 150, 25), flow("still", 7, 7)],
            Timestamp(15_000),
        );
        let last = rates.of(&a)[1];
        assert_eq!((last.put, last.left), (5, 0));
        let all = rates.of_all();
        assert_eq!((all.len(), all[0].put, all[1].depth), (2, 50, 32));
    }

    #[test]
    fn samples_are_bounded() {
        let rates = Rates::default();
        let names: Vec<String> = (0..MAX_QUEUES + 10).map(|n| format!("q{n}")).collect();
        for turn in 0..POINTS as u64 + 10 {
            let flows: Vec<QueueFlow> = names.iter().map(|name| flow(name, turn, 0)).collect();
            rates.sample(&flows, Timestamp(turn * 5_000));
        }
        assert_eq!(rates.0.lock().queues.len(), MAX_QUEUES);
        assert_eq!(rates.of_all().len(), POINTS);
        rates.sample(&[], Timestamp(10_000_000));
        assert_eq!(
            rates.0.lock().queues.len(),
            0,
            "a queue that is gone makes room"
        );
    }
}
