//! The queue manager as a monitoring system sees it: one look at its state and its counts.
//!
//! Two looks, so that the first costs the same however many queues there are: sums over all queues
//! ([`MetricsView`]), and some queues one by one ([`QueuesView`]). The loop answers from memory;
//! what only the store knows (ages) is asked outside of it.

use std::collections::BTreeMap;

use oncue_core::admission::Refused;
use oncue_core::definition::Pattern;
use oncue_core::names::QueueName;
use oncue_core::outcome::Outcome;
use oncue_core::queue::Counts;
use oncue_core::queue_table::QueueEntry;
use oncue_core::time::Millis;
use oncue_store::StoreStatus;
use oncue_store::histogram::Distribution;

use super::{Count, DEAD_LETTER_REASONS, Messages, Metrics, ProcessCounts};
use crate::main_loop::Manager;
use crate::status::{LedgerView, StatusView};
use crate::traces::Tracer;

/// Queues of one look, at most.
pub const MAX_QUEUES: usize = 10_000;

/// Types of triggers, in the order of [`LoopView::fired`].
pub const TRIGGER_TYPES: [&str; 3] = ["first", "every", "depth"];

/// What of a queue manager is counted together.
#[derive(Clone, Debug)]
pub struct MetricsView {
    /// What the loop told.
    pub state: LoopView,
    /// What handlers did with messages.
    pub handlers: MessageCounts,
    /// What applications did with messages.
    pub applications: MessageCounts,
    /// Messages removed because their life was over.
    pub expired: u64,
    /// Messages moved to a backout or dead-letter queue, by reason.
    pub dead_lettered: [(&'static str, u64); DEAD_LETTER_REASONS.len()],
    /// Calls of handlers, by outcome.
    pub calls: Vec<(&'static str, u64)>,
    /// How long calls of handlers took.
    pub call_times: Distribution,
    /// From the change that made a queue trigger until its guest was entered.
    pub start_times: Distribution,
    /// Age of the oldest ready message of all queues; see [`crate::handle::Handle::oldest_ages`].
    pub oldest_age: Option<Millis>,
    /// The store.
    pub store: StoreStatus,
    /// Spans by what became of them.
    pub spans: SpanCounts,
}

/// Spans by what became of them; all 0 when nobody traces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpanCounts {
    /// Taken by the collector.
    pub exported: u64,
    /// Lost because the collector did not take them.
    pub lost: u64,
    /// Lost because too many waited for the exporter.
    pub full: u64,
}

/// [`Messages`] as they were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "as in Messages, field by field")]
pub struct MessageCounts {
    pub put: u64,
    pub repeated: u64,
    pub refused: u64,
    pub got: u64,
    pub committed: u64,
    pub backed_out: u64,
    pub deferred: u64,
}

impl From<&Messages> for MessageCounts {
    fn from(messages: &Messages) -> Self {
        Self {
            put: messages.put.read(),
            repeated: messages.repeated.read(),
            refused: messages.refused.read(),
            got: messages.got.read(),
            committed: messages.committed.read(),
            backed_out: messages.backed_out.read(),
            deferred: messages.deferred.read(),
        }
    }
}

/// The loop's part of it.
#[derive(Clone, Debug)]
pub struct LoopView {
    /// The host in numbers.
    pub status: StatusView,
    /// What may run, and what runs.
    pub ledger: LedgerView,
    /// Starts refused, by what they wanted.
    pub refused: Refused,
    /// Messages of all queues, by state.
    pub counts: Counts,
    /// Messages that count for their queues' triggers.
    pub counted: u64,
    /// Starts that the rules of all queues owe.
    pub owed: u64,
    /// Queues with a trigger between steps 10 and 66.
    pub pending: u64,
    /// Tasks whose first get is not yet answered.
    pub starting: u64,
    /// Unselective gets of applications that wait now.
    pub waiting_inputs: u64,
    /// Queues that hold messages and start nothing, by reason.
    pub held: BTreeMap<&'static str, u64>,
    /// Triggers fired, by type.
    pub fired: [(&'static str, u64); TRIGGER_TYPES.len()],
    /// Questions to the rule that ended in a hold, by reason.
    pub suppressed: Vec<(&'static str, u64)>,
    /// What tasks of each process definition did.
    pub processes: Vec<(String, ProcessCounts)>,
    /// Plugins, by state.
    pub plugins: BTreeMap<&'static str, u64>,
    /// Queues with ready messages, for their ages.
    pub(crate) ready: Vec<QueueName>,
}

/// Some queues, one by one.
#[derive(Clone, Debug, Default)]
pub struct QueuesView {
    /// Each of them, by name.
    pub queues: Vec<QueueNumbers>,
    /// How many were asked for; more than there are here when the bound cut some off.
    pub matched: u64,
}

/// A queue in numbers.
#[derive(Clone, Debug)]
pub struct QueueNumbers {
    /// Its name.
    pub name: QueueName,
    /// The process definition that it is bound to.
    pub process: Option<String>,
    /// The trigger's type.
    pub trigger: &'static str,
    /// The trigger's control.
    pub control: &'static str,
    /// Why it starts nothing, at the last question.
    pub reason: Option<&'static str>,
    /// Messages by state.
    pub counts: Counts,
    /// Messages that count for its trigger.
    pub counted: u64,
    /// Starts that its rule owes.
    pub owed: u64,
    /// A trigger is between steps 10 and 66.
    pub pending: bool,
    /// Tasks in process.
    pub running: u32,
    /// Unselective gets of applications that wait now.
    pub waiting_inputs: u32,
    /// The most messages it takes.
    pub max_depth: u64,
    /// Age of its oldest ready message; see [`crate::handle::Handle::ages_of`].
    pub oldest_age: Option<Millis>,
}

/// Which queues are wanted one by one.
#[derive(Clone, Debug, Default)]
pub struct QueuesWanted {
    /// Their names; all when there is none.
    pub patterns: Vec<Pattern>,
    /// Only those with a message, a task or a waiting get.
    pub busy: bool,
    /// At most so many; [`MAX_QUEUES`] in any case.
    pub max: usize,
}

impl QueuesWanted {
    fn is_wanted(&self, entry: &QueueEntry) -> bool {
        let named = self.patterns.is_empty()
            || self
                .patterns
                .iter()
                .any(|pattern| pattern.matches(&entry.name));
        let busy = || !entry.is_idle() || entry.waiting_inputs > 0;
        named && (!self.busy || busy())
    }
}

impl MetricsView {
    /// The loop's part and the counts, as they are now; without the age.
    pub(crate) fn new(
        state: LoopView,
        metrics: &Metrics,
        store: StoreStatus,
        tracer: Option<&Tracer>,
    ) -> Self {
        let spans = tracer.map(|tracer| SpanCounts {
            exported: tracer.counts().exported.read(),
            lost: tracer.counts().lost.read(),
            full: tracer.counts().full.read(),
        });
        let outcomes = Outcome::ALL.into_iter().map(Outcome::as_str);
        let mut reasons = DEAD_LETTER_REASONS.map(|reason| (reason, 0));
        for (reason, count) in reasons.iter_mut().zip(&metrics.dead_lettered) {
            reason.1 = count.read();
        }
        Self {
            state,
            handlers: (&metrics.handlers).into(),
            applications: (&metrics.applications).into(),
            expired: metrics.expired.read(),
            dead_lettered: reasons,
            calls: outcomes
                .zip(metrics.calls.iter().map(Count::read))
                .collect(),
            call_times: metrics.call_times.read(),
            start_times: metrics.start_times.read(),
            oldest_age: None,
            store,
            spans: spans.unwrap_or_default(),
        }
    }
}

fn unsigned(count: i64) -> u64 {
    u64::try_from(count).unwrap_or(0)
}

impl Manager {
    /// The loop's part of [`MetricsView`].
    pub(crate) fn loop_view(&self, status: StatusView) -> LoopView {
        let mut view = LoopView {
            status,
            ledger: self.ledger_view(),
            refused: self.ledger.refused(),
            counts: Counts::NOTHING,
            counted: 0,
            owed: 0,
            pending: 0,
            starting: 0,
            waiting_inputs: 0,
            held: BTreeMap::new(),
            fired: std::array::from_fn(|place| {
                let name = TRIGGER_TYPES.get(place).copied().unwrap_or_default();
                (name, self.counts.fired.get(place).copied().unwrap_or(0))
            }),
            suppressed: self.counts.held.clone(),
            processes: self.counts.processes(),
            plugins: BTreeMap::new(),
            ready: Vec::new(),
        };
        for entry in self.queues.iter() {
            view.waiting_inputs += u64::from(entry.waiting_inputs);
            if !entry.is_idle() {
                view.add(entry);
            }
        }
        for plugin in self.plugins.values() {
            *view.plugins.entry(plugin.state.as_str()).or_default() += 1;
        }
        view
    }

    /// Some queues one by one; their ages are asked for later.
    pub(crate) fn queues_view(&self, wanted: &QueuesWanted) -> QueuesView {
        let mut view = QueuesView::default();
        for entry in self.queues.iter().filter(|entry| wanted.is_wanted(entry)) {
            view.matched += 1;
            if view.queues.len() < wanted.max.min(MAX_QUEUES) {
                view.queues.push(QueueNumbers::new(entry));
            }
        }
        view
    }
}

/// Starts that the rule of a queue owes.
fn owed(entry: &QueueEntry) -> u64 {
    entry
        .counted()
        .saturating_sub(u64::from(entry.gate.starting()))
}

impl LoopView {
    fn add(&mut self, entry: &QueueEntry) {
        self.counts += &*entry.counts;
        self.counted += entry.counted();
        self.owed += owed(entry);
        self.pending += u64::from(entry.gate.is_pending());
        self.starting += u64::from(entry.gate.starting());
        if entry.counts.depth() > 0
            && let Some(reason) = entry.reason
        {
            *self.held.entry(reason).or_default() += 1;
        }
        if entry.counts.ready.iter().any(|count| *count > 0) {
            self.ready.push(entry.name.clone());
        }
    }
}

impl QueueNumbers {
    fn new(entry: &QueueEntry) -> Self {
        Self {
            name: entry.name.clone(),
            process: entry.attributes.process.as_ref().map(ToString::to_string),
            trigger: entry.attributes.trigger.as_str(),
            control: entry.gate.control().as_str(),
            reason: entry.reason,
            counts: *entry.counts,
            counted: entry.counted(),
            owed: owed(entry),
            pending: entry.gate.is_pending(),
            running: entry.gate.running(),
            waiting_inputs: entry.waiting_inputs,
            max_depth: entry.attributes.max_depth,
            oldest_age: None,
        }
    }

    /// Messages that may be taken now.
    #[must_use]
    pub fn ready(&self) -> u64 {
        unsigned(self.counts.ready.iter().sum())
    }
}
