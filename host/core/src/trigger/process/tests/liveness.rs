//! A simulated host: several queues, one ledger, tasks that end at random times. No message may
//! wait for ever while capacity is free, and a queue that needs much is not starved by those that
//! need little.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{entry, host, version};
use crate::admission::{Demand, Grant, Ledger, Resources};
use crate::definition::{ProcessDefinition, QueueAttributes, TriggerType};
use crate::fairness::Fairness;
use crate::names::QueueName;
use crate::process_table::{ProcessEntry, ProcessTable};
use crate::queue_table::QueueTable;
use crate::time::Timestamp;
use crate::trigger::TaskId;
use crate::trigger::gate::TaskEnd;
use crate::trigger::process::{Ask, End, finish, run};
use crate::trigger::scene::{attributes, process, queue, ready};

/// The simulation moves in steps of so many milliseconds.
const STEP: u64 = 100;
const SWEEP: u64 = 1_000;
const UNIT: u64 = 1 << 20;
const CAPACITY: u64 = 8;

/// A queue as the property draws it.
#[derive(Clone, Debug)]
struct Plan {
    trigger: TriggerType,
    messages: i64,
    /// Memory of its process, in units.
    memory: u64,
    max_tasks: u32,
}

fn any_plan() -> impl Strategy<Value = Plan> {
    let trigger = prop::sample::select(vec![
        TriggerType::First,
        TriggerType::Every,
        TriggerType::Depth,
    ]);
    (trigger, 0..12_i64, 1..=CAPACITY, 1..4_u32).prop_map(
        |(trigger, messages, memory, max_tasks)| Plan {
            trigger,
            messages,
            memory,
            max_tasks,
        },
    )
}

struct Running {
    queue: QueueName,
    grant: Grant,
    messages: i64,
    ends: Timestamp,
    fails: bool,
}

struct Simulation {
    queues: QueueTable,
    processes: ProcessTable,
    ledger: Ledger,
    turns: Fairness,
    tasks: BTreeMap<TaskId, Running>,
    now: Timestamp,
    next_task: u64,
    random: u64,
    failures_left: u32,
    /// Bursts of these queues are put again and again.
    refilled: Vec<QueueName>,
    handled: BTreeMap<QueueName, i64>,
}

impl Simulation {
    fn new(plans: &[Plan], slots: u32, random: u64, failures: u32) -> Self {
        let capacity = Resources {
            slots,
            memory: CAPACITY * UNIT,
            fuel: u64::MAX,
        };
        let mut simulation = Self {
            queues: QueueTable::default(),
            processes: ProcessTable::default(),
            ledger: Ledger::new(capacity),
            turns: Fairness::default(),
            tasks: BTreeMap::new(),
            now: Timestamp(0),
            next_task: 1,
            random: random | 1,
            failures_left: failures,
            refilled: Vec::new(),
            handled: BTreeMap::new(),
        };
        for (index, plan) in plans.iter().enumerate() {
            simulation.define(&format!("q{index}"), plan);
        }
        simulation
    }

    fn define(&mut self, name: &str, plan: &Plan) {
        let attributes = QueueAttributes {
            process: Some(process(name)),
            max_tasks: plan.max_tasks,
            trigger_depth: 4,
            trigger_max_wait: Some(2_000),
            ..attributes(plan.trigger)
        };
        let mut entry = entry(name, attributes, ready(0, plan.messages));
        entry.oldest_counted = Some(self.now);
        self.queues.insert(entry);
        let mut bound = ProcessEntry::new(ProcessDefinition::default());
        let demand = Demand {
            memory: plan.memory * UNIT,
            fuel: 1,
        };
        bound.component = version(demand);
        std::sync::Arc::make_mut(&mut bound.attributes).memory = demand.memory;
        std::sync::Arc::make_mut(&mut bound.attributes).fuel = demand.fuel;
        self.processes.insert(process(name), bound);
    }

    /// A number below `bound` (xorshift; the seed is the property's).
    fn draw(&mut self, bound: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % bound
    }

    fn step(&mut self) {
        self.now = self.now.after(STEP);
        let over: Vec<TaskId> = self
            .tasks
            .iter()
            .filter(|(_, run)| run.ends <= self.now)
            .map(|(id, _)| *id)
            .collect();
        for task in over {
            self.end(task);
        }
        for name in self.refilled.clone() {
            let entry = self.queues.get_mut(&name).expect("defined");
            if entry.counted() < 5 {
                entry.counts.ready[0] += 5;
                self.turns.push(&name);
            }
        }
        if self.now.0.is_multiple_of(SWEEP) {
            self.queues
                .names()
                .iter()
                .for_each(|name| self.turns.push(name));
        }
        while let Some(name) = self.turns.next() {
            self.ask(&name);
        }
    }

    fn ask(&mut self, name: &QueueName) {
        let task = TaskId(self.next_task);
        let host = host();
        let ask = Ask {
            host: &host,
            processes: &self.processes,
            now: self.now,
            task,
        };
        let entry = self.queues.get_mut(name).expect("defined");
        let report = run(entry, &mut self.ledger, &ask, |_| Ok(()));
        let End::Started { grant, .. } = report.end else {
            return;
        };
        self.next_task += 1;
        entry.gate.first_get_answered(task);
        let one = entry.attributes.trigger == TriggerType::Every;
        let messages = entry.counts.ready[0].min(if one { 1 } else { 3 });
        entry.counts.ready[0] -= messages;
        entry.counts.in_unit += messages;
        let ends = self.now.after(self.draw(3_000));
        let fails = self.failures_left > 0 && self.draw(3) == 0;
        self.failures_left -= u32::from(fails);
        self.tasks.insert(
            task,
            Running {
                queue: name.clone(),
                grant,
                messages,
                ends,
                fails,
            },
        );
        self.turns.push(name);
    }

    fn end(&mut self, task: TaskId) {
        let Running {
            queue,
            grant,
            messages,
            fails,
            ..
        } = self.tasks.remove(&task).expect("running");
        let entry = self.queues.get_mut(&queue).expect("defined");
        entry.counts.in_unit -= messages;
        let end = if fails {
            entry.counts.ready[0] += messages;
            TaskEnd::FAILED
        } else {
            *self.handled.entry(queue.clone()).or_default() += messages;
            TaskEnd {
                progress: messages > 0,
                ..TaskEnd::DONE
            }
        };
        finish(entry, &mut self.ledger, task, grant, &end, self.now);
        self.turns
            .charge(&queue, 1_000_000 + self.random % 1_000_000_000);
        self.turns.push(&queue);
        self.ledger.waiting().for_each(|name| self.turns.push(name));
    }

    fn left(&self) -> i64 {
        self.queues.iter().map(|entry| entry.counts.depth()).sum()
    }

    fn drain(&mut self) {
        for task in self.tasks.keys().copied().collect::<Vec<_>>() {
            self.end(task);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_message_is_handled_after_finitely_many_sweeps(
        plans in prop::collection::vec(any_plan(), 1..6),
        slots in 1..5_u32,
        random in any::<u64>(),
        failures in 0..20_u32,
    ) {
        let mut simulation = Simulation::new(&plans, slots, random, failures);
        // Each of at most 60 messages needs a task of 3 s at worst, each of 20 failures one and a
        // back-off of 60 s at worst.
        let enough = (60 * 6_000 + 20 * 66_000) / STEP;
        let mut steps = 0;
        while simulation.left() > 0 {
            steps += 1;
            prop_assert!(steps < enough, "{} messages wait for ever", simulation.left());
            simulation.step();
            prop_assert!(
                simulation.ledger.grants() == simulation.tasks.len()
                    && simulation.ledger.in_use().memory <= CAPACITY * UNIT
            );
        }
        simulation.drain();
        prop_assert_eq!(simulation.ledger.in_use(), Resources::default());
        let wanted: i64 = plans.iter().map(|plan| plan.messages).sum();
        prop_assert_eq!(simulation.handled.values().sum::<i64>(), wanted);
    }

    #[test]
    fn a_queue_that_needs_the_whole_memory_is_served_among_busy_small_ones(
        slots in 2..9_u32,
        random in any::<u64>(),
    ) {
        let small = Plan { trigger: TriggerType::Every, messages: 5, memory: 1, max_tasks: 8 };
        let large = Plan {
            trigger: TriggerType::First,
            messages: 3,
            memory: CAPACITY,
            max_tasks: 1,
        };
        let plans = [small.clone(), small.clone(), small, large];
        let mut simulation = Simulation::new(&plans, slots, random, 0);
        simulation.refilled = vec![queue("q0"), queue("q1"), queue("q2")];
        let large = queue("q3");
        // It waits 1 s. At most the three others waited before it, each for one task of 3 s; then
        // the running tasks end within 3 s and nothing else is let in; then it runs.
        for _ in 0..(1_000 + 3 * 3_000 + 3_000 + 3_000 + 2 * SWEEP) / STEP {
            simulation.step();
        }
        let handled = simulation.handled.get(&large).copied();
        simulation.drain();
        prop_assert_eq!(handled, Some(3));
    }
}
