//! The trigger rule, and the steps from 10 to 68, as values.

use std::hint::black_box;

use oncue_core::admission::{Demand, Ledger, Resources};
use oncue_core::definition::{ProcessDefinition, QueueDefinition, Style, TriggerType};
use oncue_core::names::ProcessName;
use oncue_core::process_table::{ComponentState, ComponentVersion, ProcessEntry, ProcessTable};
use oncue_core::queue_table::QueueEntry;
use oncue_core::trigger::process::{Ask, End, HostState, run};
use oncue_core::trigger::rule::evaluate;
use oncue_core::trigger::{self, TaskId};

use super::Path;
use crate::values::{NOW, name};

pub(super) const RULE: Path = Path {
    name: "core-evaluate",
    unit: "instructions for a question to each trigger type, busy and idle",
    count: 20_000,
    run: rule,
};

pub(super) const PROCESS: Path = Path {
    name: "core-trigger",
    unit: "instructions for steps 10 to 68 of one task",
    count: 5_000,
    run: process,
};

fn entry(trigger: TriggerType, ready: i64) -> QueueEntry {
    let mut entry = QueueEntry::new(name("orders"), QueueDefinition::default());
    let mut attributes = (*entry.attributes).clone();
    attributes.trigger = trigger;
    attributes.trigger_depth = 10;
    attributes.process = Some(served_by());
    entry.attributes = attributes.into();
    entry.counts.ready[4] = ready;
    entry
}

fn served_by() -> ProcessName {
    ProcessName::new("orders").expect("a process's name")
}

fn host(default_demand: Demand) -> HostState {
    HostState {
        manager: "oncue".to_owned(),
        paused: false,
        draining: false,
        store_stopped: false,
        default_demand,
    }
}

fn processes() -> ProcessTable {
    let mut entry = ProcessEntry::new(ProcessDefinition::default());
    let demand = entry.demand();
    entry.component = ComponentState::Ready(ComponentVersion {
        digest: "sha256:0".into(),
        style: Style::Message,
        demand,
    });
    let mut processes = ProcessTable::default();
    processes.insert(served_by(), entry);
    processes
}

fn rule(count: u32) {
    let (host, processes) = (host(Demand::default()), processes());
    let entries: Vec<QueueEntry> = [0, 100]
        .into_iter()
        .flat_map(|ready| {
            TriggerType::ALL
                .iter()
                .map(move |trigger| (*trigger, ready))
        })
        .map(|(trigger, ready)| entry(trigger, ready))
        .collect();
    for _ in 0..count {
        for entry in &entries {
            black_box(evaluate(&entry.facts(&host, &processes), black_box(NOW)));
        }
    }
}

fn process(count: u32) {
    let processes = processes();
    let demand = Demand {
        memory: 64 << 20,
        fuel: 10_000_000_000,
    };
    let host = host(demand);
    let mut ledger = Ledger::new(Resources {
        slots: 100,
        memory: 8 << 30,
        fuel: 1_000_000_000_000,
    });
    let mut entry = entry(TriggerType::First, 100);
    let end = trigger::TaskEnd {
        progress: true,
        found_nothing: false,
        ended_ok: true,
        start_failed: None,
    };
    for task in 0..u64::from(count) {
        let ask = Ask {
            host: &host,
            processes: &processes,
            now: NOW,
            task: TaskId(task),
        };
        let report = run(&mut entry, &mut ledger, &ask, |start| {
            black_box(start);
            Ok(())
        });
        let End::Started { task, grant } = report.end else {
            unreachable!("a queue with messages fires");
        };
        entry.gate.first_get_answered(task);
        let trace = trigger::finish(&mut entry, &mut ledger, task, grant, &end, NOW);
        black_box(trace);
    }
}
