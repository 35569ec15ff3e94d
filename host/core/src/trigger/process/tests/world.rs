//! One queue, one process and a ledger, to be asked step by step.

use super::*;

pub(super) const MEMORY: u64 = 64 << 20;
pub(super) const DEMAND: Demand = Demand {
    memory: MEMORY,
    fuel: 10_000_000_000,
};

/// One queue, one process, a ledger for two tasks; time stands still unless a test moves it.
pub(super) struct World {
    pub(super) entry: QueueEntry,
    pub(super) ledger: Ledger,
    pub(super) processes: ProcessTable,
    pub(super) host: HostState,
    pub(super) now: Timestamp,
    pub(super) next_task: u64,
}

pub(super) fn host() -> HostState {
    HostState {
        manager: "M1".to_owned(),
        paused: false,
        draining: false,
        store_stopped: false,
        default_demand: DEMAND,
    }
}

pub(super) fn version(demand: Demand) -> ComponentState {
    let digest = "sha256:1".into();
    ComponentState::Ready(ComponentVersion {
        digest,
        style: Style::Message,
        demand,
    })
}

pub(super) fn entry(name: &str, attributes: QueueAttributes, counts: Counts) -> QueueEntry {
    let mut entry = QueueEntry::new(queue(name), QueueDefinition::default());
    entry.attributes = attributes.into();
    entry.counts = counts.into();
    entry
}

impl World {
    pub(super) fn new(trigger: TriggerType, counts: Counts) -> Self {
        let mut processes = ProcessTable::default();
        let mut bound = ProcessEntry::new(ProcessDefinition::default());
        bound.component = version(DEMAND);
        processes.insert(process("p"), bound);
        let capacity = Resources {
            slots: 2,
            memory: 2 * MEMORY,
            fuel: 2 * DEMAND.fuel,
        };
        Self {
            entry: entry("q", attributes(trigger), counts),
            ledger: Ledger::new(capacity),
            processes,
            host: host(),
            now: NOW,
            next_task: 1,
        }
    }

    pub(super) fn attributes(&mut self) -> &mut QueueAttributes {
        std::sync::Arc::make_mut(&mut self.entry.attributes)
    }

    pub(super) fn process(&mut self) -> &mut ProcessEntry {
        self.processes.get_mut(&process("p")).expect("defined")
    }

    pub(super) fn run_with(&mut self, answer: Result<(), &str>) -> Report {
        let task = TaskId(self.next_task);
        let Self {
            host,
            processes,
            now,
            ..
        } = self;
        let ask = Ask {
            host,
            processes,
            now: *now,
            task,
        };
        let report = run(&mut self.entry, &mut self.ledger, &ask, |start| {
            assert_eq!(start.task, task);
            answer.map_err(ToOwned::to_owned)
        });
        assert!(!self.entry.gate.is_pending(), "settled on every exit");
        if matches!(report.end, End::Started { .. }) {
            self.next_task += 1;
        }
        report
    }

    /// Asks once; the path must be as given. Answers with the grant of a started task.
    pub(super) fn check(&mut self, wanted: &[u8]) -> Option<(TaskId, Grant)> {
        let Report { trace, end } = self.run_with(Ok(()));
        assert_eq!(trace.numbers(), wanted, "{end:?}");
        match end {
            End::Started { task, grant } => Some((task, grant)),
            _ => None,
        }
    }

    pub(super) fn check_held(&mut self, wanted: &[u8], reason: &HoldReason) {
        let before = (self.ledger.in_use(), self.entry.gate.running());
        assert!(self.check(wanted).is_none());
        let held = self.entry.gate.held().expect("held");
        assert_eq!(&held.reason, reason);
        assert_eq!(
            (self.ledger.in_use(), self.entry.gate.running()),
            before,
            "nothing is kept"
        );
        let facts = self.entry.facts(&self.host, &self.processes);
        let verdict = evaluate(&facts, self.now);
        if !reason.is_resources() {
            assert_eq!(verdict.reason(), Some(reason), "the rule answers with it");
        }
    }

    pub(super) fn finish(&mut self, (task, grant): (TaskId, Grant), end: &TaskEnd) {
        let trace = finish(
            &mut self.entry,
            &mut self.ledger,
            task,
            grant,
            end,
            self.now,
        );
        assert_eq!(trace.numbers(), [68]);
    }
}
