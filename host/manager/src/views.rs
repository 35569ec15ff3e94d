//! Answers to questions: the loop's state as plain views. Also where a person's `explain` is made.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use oncue_core::code::Code;
use oncue_core::definition::{Layered, Origin, PROCESS_ATTRIBUTES, Patch, QUEUE_ATTRIBUTES};
use oncue_core::names::{ProcessName, QueueName};
use oncue_core::outcome::Outcome;
use oncue_core::process_table::ComponentState;
use oncue_core::queue_table::QueueEntry;
use oncue_core::time::Timestamp;
use oncue_core::trigger::{self, ConditionSource, HoldReason, Verdict};

use crate::command::Command;
use crate::definitions::unknown_process;
use crate::error::ApiError;
use crate::main_loop::Manager;
use crate::reload::PluginView;
use crate::shared::Phase;
use crate::status::{
    ConditionView, Explanation, LedgerView, ProcessView, QueueFilter, QueuePage, QueuePlace,
    QueueSort, QueueView, RefusalsView, ResourcesView, StatusView,
};
use crate::tasks::record::TaskRecord;

/// Longest part of a failure's detail in the sentence of an explanation, in characters.
const SHOWN_DETAIL: usize = 200;

impl Manager {
    /// Answers a question. An answer that nobody waits for any more is no error.
    pub(crate) fn answer(&mut self, question: Command, now: Timestamp) {
        match question {
            Command::Queues(filter, answer) => {
                let _ = answer.send(self.queue_page(&filter, now));
            }
            Command::Queue(name, answer) => {
                let _ = answer.send(self.queue_view(&name, now));
            }
            Command::Processes(after, max, answer) => {
                let names = self.processes.iter().map(|(name, _)| name);
                let names = names.filter(|name| after.as_ref().is_none_or(|it| *name > it));
                let views = names.filter_map(|name| self.process_view(name).ok());
                let _ = answer.send(views.take(max).collect());
            }
            Command::Process(name, answer) => {
                let _ = answer.send(self.process_view(&name));
            }
            Command::Explain(name, answer) => {
                let _ = answer.send(self.explain(&name, now));
            }
            Command::Plugins(after, max, answer) => {
                let plugins = self.plugins.iter();
                let plugins =
                    plugins.filter(|(name, _)| after.as_ref().is_none_or(|it| *name > it));
                let views = plugins.map(|(_, plugin)| PluginView::from(plugin));
                let _ = answer.send(views.take(max).collect());
            }
            Command::PluginOne(name, answer) => {
                let view = self
                    .plugins
                    .get(&name)
                    .map(PluginView::from)
                    .ok_or_else(|| {
                        let fact = if self.plugins_awaited {
                            "is not known yet: the plugins directory is still being read"
                        } else {
                            "is not in the plugins directory"
                        };
                        ApiError::new(Code::UnknownPlugin, format!("plugin \"{name}\" {fact}"))
                    });
                let _ = answer.send(view);
            }
            Command::Running(answer) => {
                let _ = answer.send(self.running_records());
            }
            Command::Status(answer) => {
                let _ = answer.send(self.status_view(now));
            }
            Command::Ledger(answer) => {
                let _ = answer.send(self.ledger_view());
            }
            Command::Metrics(answer) => {
                let _ = answer.send(self.loop_view(self.status_view(now)));
            }
            Command::QueueMetrics(wanted, answer) => {
                let _ = answer.send(self.queues_view(&wanted));
            }
            Command::Alarms(answer) => {
                let _ = answer.send(self.alarms_view());
            }
            Command::Quiet(answer) => self.quiet.push(answer),
            // Orders are done in `definitions`.
            _ => {}
        }
    }

    /// A queue for people.
    pub(crate) fn queue_view(
        &self,
        name: &QueueName,
        now: Timestamp,
    ) -> Result<QueueView, ApiError> {
        let entry = self
            .queues
            .get(name)
            .ok_or_else(|| self.shared.unknown_queue(name))?;
        Ok(self.view_of(entry, now))
    }

    /// Some of the queues. Those outside the part cost a look at what they are sorted by, no more.
    fn queue_page(&self, filter: &QueueFilter, now: Timestamp) -> QueuePage {
        let search = filter.search.to_ascii_lowercase();
        let wanted = |entry: &QueueEntry| {
            (!filter.non_empty || entry.counts.depth() > 0)
                && !(filter.no_reserved && entry.name.is_reserved())
                && (search.is_empty() || entry.name.as_str().to_ascii_lowercase().contains(&search))
        };
        let (mut found, mut defined): (Vec<(u64, &QueueEntry)>, u64) = (Vec::new(), 0);
        for entry in self.queues.iter().filter(|it| filter.seen.has(&it.name)) {
            defined += 1;
            if wanted(entry) {
                found.push((self.sort_key(entry, filter.sort), entry));
            }
        }
        // The table is in the order of names, and a stable sort keeps it among equals.
        match (filter.sort, filter.descending) {
            (QueueSort::Name, false) => {}
            (QueueSort::Name, true) => found.reverse(),
            (_, false) => found.sort_by_key(|(key, _)| *key),
            (_, true) => found.sort_by_key(|(key, _)| std::cmp::Reverse(*key)),
        }
        let matching = found.len() as u64;
        let after = filter.after.as_ref();
        let first = after.map_or(0, |after| {
            found.partition_point(|(key, entry)| !comes_after(filter, after, *key, &entry.name))
        });
        let first = first.saturating_add(filter.offset).min(found.len());
        let max = filter.max.unwrap_or(usize::MAX);
        let last = first.saturating_add(max).min(found.len());
        let part = &found[first..last];
        let next = part.last().filter(|_| last < found.len());
        QueuePage {
            queues: part.iter().map(|(_, it)| self.view_of(it, now)).collect(),
            next: next.map(|(key, entry)| QueuePlace {
                key: *key,
                name: entry.name.clone(),
            }),
            matching,
            defined,
        }
    }

    /// What a queue is sorted by. It does not change with time alone: a page goes on by it where an
    /// earlier one ended.
    fn sort_key(&self, entry: &QueueEntry, sort: QueueSort) -> u64 {
        match sort {
            QueueSort::Name => 0,
            QueueSort::Depth => u64::try_from(entry.counts.depth()).unwrap_or(0),
            QueueSort::Running => u64::from(entry.gate.running()),
            // An empty queue has none, which its counts say without the store.
            QueueSort::OldestAge if entry.counts.depth() <= 0 => 0,
            QueueSort::OldestAge => {
                let oldest = self.shared.store.oldest(&entry.name, 0);
                // The earlier, the greater; and more than none.
                oldest.map_or(0, |oldest| u64::MAX - oldest.0)
            }
        }
    }

    fn view_of(&self, entry: &QueueEntry, now: Timestamp) -> QueueView {
        let facts = entry.facts(&self.host, &self.processes);
        let verdict = trigger::explain(&facts, now).verdict;
        let counted = facts.counted();
        let oldest = self.shared.store.oldest(&entry.name, 0);
        QueueView {
            name: entry.name.clone(),
            depth: u64::try_from(entry.counts.depth()).unwrap_or(0),
            puts: self.shared.cell(&entry.name).map_or(0, |cell| cell.puts()),
            counted,
            running: entry.gate.running(),
            owed: counted.saturating_sub(u64::from(entry.gate.starting())),
            verdict: word(&verdict),
            reason: verdict.reason().map(HoldReason::as_str),
            reason_text: verdict.reason().map(ToString::to_string),
            control: entry.gate.control().as_str(),
            start_owed: entry.gate.start_owed(),
            paused: entry.paused,
            waiting_inputs: entry.waiting_inputs,
            oldest_age: oldest.map(|oldest| now.since(oldest)),
            next_scheduled: self.schedules.next(&entry.name, now),
            counts: *entry.counts,
            attributes: (*entry.attributes).clone(),
            origins: origins(&entry.definition, QUEUE_ATTRIBUTES.iter().map(|a| a.name)),
        }
    }

    /// A process definition for people.
    pub(crate) fn process_view(&self, name: &ProcessName) -> Result<ProcessView, ApiError> {
        let entry = self
            .processes
            .get(name)
            .ok_or_else(|| unknown_process(name))?;
        let (component, reason, digest) = match &entry.component {
            ComponentState::Ready(version) => ("ready", None, Some(version.digest.to_string())),
            ComponentState::Compiling => ("compiling", None, None),
            ComponentState::Missing => ("missing", None, None),
            ComponentState::Quarantined(why) => ("quarantined", Some(why.clone()), None),
        };
        let bound = |entry: &&QueueEntry| entry.attributes.process.as_ref() == Some(name);
        let running = self
            .running
            .values()
            .filter(|running| running.process == *name)
            .count();
        Ok(ProcessView {
            name: name.clone(),
            component,
            component_reason: reason,
            digest,
            paused: entry.paused,
            running: u32::try_from(running).unwrap_or(u32::MAX),
            queues: self
                .queues
                .iter()
                .filter(bound)
                .map(|entry| entry.name.clone())
                .collect(),
            attributes: (*entry.attributes).clone(),
            origins: origins(&entry.definition, PROCESS_ATTRIBUTES.iter().map(|a| a.name)),
            warnings: entry
                .definition
                .warnings()
                .iter()
                .map(ToString::to_string)
                .collect(),
        })
    }

    fn explain(&self, name: &QueueName, now: Timestamp) -> Result<Explanation, ApiError> {
        let entry = self
            .queues
            .get(name)
            .ok_or_else(|| self.shared.unknown_queue(name))?;
        let facts = entry.facts(&self.host, &self.processes);
        let explained = trigger::explain(&facts, now);
        let note = self.notes.get(name).cloned().unwrap_or_default();
        let conditions = explained
            .conditions
            .into_iter()
            .map(|condition| ConditionView {
                name: condition.name.to_owned(),
                holds: condition.holds,
                decides: condition.decides,
                value: condition.value,
                source: source(entry, condition.source),
            });
        Ok(Explanation {
            queue: name.clone(),
            verdict: word(&explained.verdict),
            reason: explained.verdict.reason().map(HoldReason::as_str),
            sentence: self.sentence(name, &explained.verdict, now),
            conditions: conditions.collect(),
            last_trace: note.trace.numbers(),
            last_fired: entry.gate.last_fired(),
            next_check: note.next_check,
            next_scheduled: self.schedules.next(name, now),
            now,
        })
    }

    /// The verdict as a sentence.
    fn sentence(&self, name: &QueueName, verdict: &Verdict, now: Timestamp) -> String {
        let (reason, until) = match verdict {
            Verdict::Fire(cause) => {
                return format!("queue \"{name}\" triggers now ({})", cause.as_str());
            }
            Verdict::Hold { reason, until } => (reason, until),
        };
        let mut sentence = format!("queue \"{name}\" is held: {reason}");
        if matches!(
            reason,
            HoldReason::RetryDelay(_) | HoldReason::BackingOff { .. }
        ) {
            sentence.extend(self.last_failure(name));
        }
        if let Some(until) = until {
            let wait = oncue_core::quantity::format_millis(until.since(now));
            sentence.push_str(&format!("; looked at again in {wait}"));
        }
        sentence
    }

    /// The end of a sentence that says how a task of the queue failed last, if its record is still
    /// in memory.
    fn last_failure(&self, queue: &QueueName) -> Option<String> {
        let records = self.shared.records.newest_first();
        let record = records.iter().find(|record| {
            record.queue == *queue && record.outcome.is_some_and(Outcome::is_failure)
        })?;
        let (task, outcome) = (record.id, record.outcome?.as_str());
        let detail = record.detail.as_deref().unwrap_or_default();
        let mut shown: String = detail
            .lines()
            .next()
            .unwrap_or_default()
            .chars()
            .take(SHOWN_DETAIL)
            .collect();
        if !shown.is_empty() {
            shown.insert_str(0, ": ");
        }
        Some(format!(
            " (task {task} was the last to fail, {outcome}{shown}; \"oncue task show {task}\" has \
             the rest)"
        ))
    }

    /// Records of the tasks in process, oldest first.
    fn running_records(&self) -> Vec<TaskRecord> {
        self.running
            .values()
            .filter_map(|running| {
                // One that is gone has ended, and its record is on its way here.
                let session = running.session.upgrade()?;
                let mut record = session
                    .progress
                    .lock()
                    .record(&session.spec, session.started);
                // Nothing of its end is settled while it runs.
                (record.outcome, record.detail, record.backtrace) = (None, None, None);
                // Of the calls that have ended; memory is known at the task's end.
                record.cost.fuel = session.fuel.load(Ordering::Relaxed);
                record.steps = running.trace.numbers();
                record.start_latency = running.start_latency;
                Some(record)
            })
            .collect()
    }

    fn status_view(&self, now: Timestamp) -> StatusView {
        let store = self.shared.store.status();
        let depth = |entry: &QueueEntry| u64::try_from(entry.counts.depth()).unwrap_or(0);
        let dead_letters = self.queues.get(&QueueName::dead_letter()).map_or(0, depth);
        StatusView {
            name: self.host.manager.clone(),
            version: env!("CARGO_PKG_VERSION"),
            build: self.build.clone(),
            phase: match self.shared.phase() {
                Phase::Running => "running",
                Phase::Draining | Phase::Cancelling => "draining",
            },
            paused: self.host.paused,
            started: self.started,
            now,
            queues: self.queues.len() as u64,
            depth: self.queues.iter().map(depth).sum(),
            running: self.running.len() as u64,
            triggers: self.triggers,
            asked: self.asked,
            outcomes: self.outcomes.clone(),
            dead_letters,
            alarms: self.shared.alarm_counts.active(),
            store: crate::status::store_word(store.stopped),
            disk_used: store.disk_used,
            disk_free: store.disk_free,
            commits: store.commits,
            syncs: store.syncs,
        }
    }

    pub(crate) fn ledger_view(&self) -> LedgerView {
        let mut by_process: BTreeMap<String, ResourcesView> = BTreeMap::new();
        for running in self.running.values() {
            let demand = running.grant.demand();
            let sum = by_process.entry(running.process.to_string()).or_default();
            sum.slots += 1;
            sum.memory += demand.memory;
            sum.fuel += demand.fuel;
        }
        let refused = self.ledger.refused();
        LedgerView {
            capacity: resources(self.ledger.capacity()),
            reserved: resources(self.ledger.in_use()),
            refused: refused.slots + refused.memory + refused.fuel + refused.headroom,
            refusals: RefusalsView {
                slots: refused.slots,
                memory: refused.memory,
                fuel: refused.fuel,
                headroom: refused.headroom,
            },
            by_process,
            waiting: self.ledger.waiting().cloned().collect(),
        }
    }
}

/// Whether a queue stands behind a place in the order of a list.
fn comes_after(filter: &QueueFilter, after: &QueuePlace, key: u64, name: &QueueName) -> bool {
    let by_name = name.cmp(&after.name);
    let order = match (filter.sort, filter.descending) {
        (QueueSort::Name, false) => by_name,
        (QueueSort::Name, true) => by_name.reverse(),
        // Equals are in the order of names, whichever way the list goes.
        (_, false) => key.cmp(&after.key).then(by_name),
        (_, true) => after.key.cmp(&key).then(by_name),
    };
    order.is_gt()
}

fn resources(resources: oncue_core::admission::Resources) -> ResourcesView {
    ResourcesView {
        slots: u64::from(resources.slots),
        memory: resources.memory,
        fuel: resources.fuel,
    }
}

fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Fire(_) => "fire",
        Verdict::Hold { .. } => "hold",
    }
}

fn origins<P: Patch>(
    definition: &Layered<P>,
    names: impl Iterator<Item = &'static str>,
) -> BTreeMap<String, Origin> {
    names
        .map(|name| (name.to_owned(), definition.origin(name)))
        .filter(|(_, origin)| *origin != Origin::Default)
        .collect()
}

/// Where a condition's value comes from, in words: an attribute says which layer set it.
fn source(entry: &QueueEntry, source: ConditionSource) -> String {
    match source {
        ConditionSource::Attribute(name) => {
            let layer = match entry.definition.origin(name) {
                Origin::Default => "default",
                Origin::Manifest => "manifest",
                Origin::Operator => "operator",
            };
            format!("{name} ({layer})")
        }
        ConditionSource::Operator => "operator".to_owned(),
        ConditionSource::Messages => "messages".to_owned(),
        ConditionSource::Consumers => "consumers".to_owned(),
        ConditionSource::Tasks => "tasks".to_owned(),
        ConditionSource::Process => "process table".to_owned(),
        ConditionSource::Ledger => "ledger".to_owned(),
        ConditionSource::Host => "host".to_owned(),
    }
}
