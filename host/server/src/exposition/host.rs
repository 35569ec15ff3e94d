//! The page about the whole host: sums over all queues. It has the same series however many queues
//! there are; only process definitions have series of their own, a bounded number of them.

use std::fmt;

use oncue_core::trigger::hold::ALL_NAMES;
use oncue_manager::alarms::AlarmCount;
use oncue_manager::metrics::view::{MessageCounts, MetricsView};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;

use super::machine::Machine;
use super::{Labels, Page, seconds, unsigned};

/// States of plugins that have a file.
const PLUGIN_STATES: [&str; 4] = ["ready", "compiling", "quarantined", "missing"];

/// Why a store does not write.
const STOP_REASONS: [&str; 3] = ["full", "sync-failed", "closed"];

/// A count of messages: its name, what it tells, where it stands.
type Shown = (&'static str, &'static str, fn(&MessageCounts) -> u64);

/// One look at the host.
#[derive(Debug)]
pub(crate) struct HostPage {
    pub(crate) view: MetricsView,
    pub(crate) alarms: Vec<AlarmCount>,
    pub(crate) machine: Machine,
}

impl Collector for HostPage {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut page = Page(encoder);
        self.identity(&mut page)?;
        self.alarms(&mut page)?;
        self.queues(&mut page)?;
        self.messages(&mut page)?;
        self.triggers(&mut page)?;
        self.tasks(&mut page)?;
        self.processes(&mut page)?;
        self.ledger(&mut page)?;
        self.store(&mut page)?;
        self.machine.encode(&mut page)
    }
}

impl HostPage {
    fn identity(&self, page: &mut Page<'_>) -> fmt::Result {
        let status = &self.view.state.status;
        let facts: Labels<'_> = &[("version", status.version)];
        page.info("oncue_build", "The program that runs", facts)?;
        let draining = u64::from(status.phase != "running");
        page.gauge("oncue_draining", "1 while the host is stopping", draining)?;
        let help = "1 while an operator has paused all triggering";
        page.gauge("oncue_paused", help, u64::from(status.paused))?;
        let plugins = &self.view.state.plugins;
        let states = PLUGIN_STATES.map(|state| (state, plugins.get(state).copied().unwrap_or(0)));
        page.gauges("oncue_plugins", "Plugins, by state", "state", states)?;
        let spans = &self.view.spans;
        let spans = [
            ("exported", spans.exported),
            ("lost", spans.lost),
            ("full", spans.full),
        ];
        let help = "Spans of traces, by what became of them";
        page.counters("oncue_spans", help, "result", spans)
    }

    fn alarms(&self, page: &mut Page<'_>) -> fmt::Result {
        let of = |value: fn(&AlarmCount) -> u64| {
            let all = self.alarms.iter();
            all.map(move |count| (count.alarm.as_str(), value(count)))
        };
        let help = "Queues, plugins or hosts for which an alarm is raised now";
        page.gauges(
            "oncue_alarm_active",
            help,
            "alarm",
            of(|count| count.active),
        )?;
        let help = "How often an alarm was raised";
        page.counters(
            "oncue_alarms_raised",
            help,
            "alarm",
            of(|count| count.raised),
        )
    }

    fn queues(&self, page: &mut Page<'_>) -> fmt::Result {
        let state = &self.view.state;
        let counts = &state.counts;
        page.gauge("oncue_queues", "Queues defined", state.status.queues)?;
        let ready = unsigned(counts.ready.iter().sum());
        let help = "Messages that may be taken now";
        page.gauge("oncue_queue_messages_ready", help, ready)?;
        let locked = [("task", counts.in_unit), ("consumer", counts.leased)];
        let locked = locked.map(|(by, count)| (by, unsigned(count)));
        let help = "Messages in the hand of tasks or of consumers";
        page.gauges("oncue_queue_messages_locked", help, "by", locked)?;
        let waiting = [
            ("delay", counts.delayed),
            ("retry", counts.retrying),
            ("deferred", counts.deferred),
            ("group", counts.group_held),
        ];
        let waiting = waiting.map(|(why, count)| (why, unsigned(count)));
        let help = "Messages that may not be taken yet";
        page.gauges("oncue_queue_messages_waiting", help, "reason", waiting)?;
        let help = "Messages set aside because nothing could take them; a person must act";
        page.gauge("oncue_queue_messages_parked", help, unsigned(counts.parked))?;
        let help = "Bytes of all bodies on queues";
        page.gauge("oncue_queue_bytes", help, unsigned(counts.bytes))?;
        let age = self.view.oldest_age.unwrap_or(0);
        let name = "oncue_queue_oldest_message_age_seconds";
        let help = "Age of the oldest message that may be taken now; 0 when there is none";
        page.gauge(name, help, seconds(age))?;
        let help = "Unselective gets of applications that wait now";
        let name = "oncue_queue_open_input_handles";
        page.gauge(name, help, state.waiting_inputs)?;
        let help = "Messages on the dead-letter queue";
        page.gauge("oncue_dead_letters", help, state.status.dead_letters)
    }

    fn messages(&self, page: &mut Page<'_>) -> fmt::Result {
        let (handlers, applications) = (&self.view.handlers, &self.view.applications);
        let put: [(Labels<'_>, u64); 4] = [
            (
                &[("result", "durable"), ("by", "application")],
                applications.put,
            ),
            (
                &[("result", "repeated"), ("by", "application")],
                applications.repeated,
            ),
            (
                &[("result", "refused"), ("by", "application")],
                applications.refused,
            ),
            (&[("result", "durable"), ("by", "handler")], handlers.put),
        ];
        let help = "Puts, by what became of them and by who made them";
        page.labelled_counters("oncue_messages_put", help, put)?;
        let sides = |of: fn(&MessageCounts) -> u64| {
            [("handler", of(handlers)), ("consumer", of(applications))]
        };
        let families: [Shown; 4] = [
            ("oncue_messages_got", "Messages taken", |m| m.got),
            (
                "oncue_messages_committed",
                "Messages settled well: their unit of work is durable, or their lease was acked",
                |m| m.committed,
            ),
            (
                "oncue_messages_backed_out",
                "Attempts charged to messages",
                |m| m.backed_out,
            ),
            (
                "oncue_messages_deferred",
                "Messages put off by their handler",
                |m| m.deferred,
            ),
        ];
        for (name, help, of) in families {
            page.counters(name, help, "by", sides(of))?;
        }
        let help = "Messages removed unread because their life was over";
        page.counter("oncue_messages_expired", help, self.view.expired)?;
        let help = "Messages moved to a backout or dead-letter queue";
        let reasons = self.view.dead_lettered;
        page.counters("oncue_messages_dead_lettered", help, "reason", reasons)
    }

    fn triggers(&self, page: &mut Page<'_>) -> fmt::Result {
        let state = &self.view.state;
        let help = "Triggers that have led to a task";
        page.counters("oncue_trigger_fired", help, "type", state.fired)?;
        let help = "Questions to the trigger rule that ended in a hold";
        let of = |name: &str| state.suppressed.iter().find(|(held, _)| *held == name);
        let counts = ALL_NAMES.map(|name| (name, of(name).map_or(0, |(_, count)| *count)));
        page.counters("oncue_trigger_suppressed", help, "reason", counts)?;
        let help = "How often the trigger rule was asked";
        page.counter("oncue_trigger_evaluations", help, state.status.asked)?;
        let help = "Queues that hold messages and start nothing, by the reason";
        let held = ALL_NAMES.map(|name| (name, state.held.get(name).copied().unwrap_or(0)));
        page.gauges("oncue_queues_held", help, "reason", held)?;
        let help = "Queues with a trigger between steps 10 and 66";
        page.gauge("oncue_triggers_pending", help, state.pending)?;
        let help = "Messages that count for their queue's trigger";
        page.gauge("oncue_trigger_messages_counted", help, state.counted)?;
        let help = "Messages that count and for which no start is under way";
        page.gauge("oncue_triggers_owed", help, state.owed)
    }

    fn tasks(&self, page: &mut Page<'_>) -> fmt::Result {
        let state = &self.view.state;
        let help = "Tasks in process";
        page.gauge("oncue_handler_inflight", help, state.status.running)?;
        let help = "Tasks whose first get is not yet answered";
        page.gauge("oncue_handler_starting", help, state.starting)?;
        let help = "Calls of handlers: one for each message, or one for a task of trigger style";
        let calls = self.view.calls.iter().copied();
        page.counters("oncue_handler_invocations", help, "outcome", calls)?;
        let outcomes = self.view.calls.iter().map(|(name, _)| {
            let ended = state.status.outcomes.get(name).copied();
            (*name, ended.unwrap_or(0))
        });
        page.counters("oncue_tasks_ended", "Tasks ended", "outcome", outcomes)?;
        let help = "How long a call of a handler took, with the making of its instance";
        page.times(
            "oncue_handler_duration_seconds",
            help,
            &self.view.call_times,
        )?;
        let help = "From the commit that made a queue trigger until its handler was entered";
        page.times("oncue_start_latency_seconds", help, &self.view.start_times)
    }

    fn processes(&self, page: &mut Page<'_>) -> fmt::Result {
        let processes = &self.view.state.processes;
        let of = |value: fn(&oncue_manager::metrics::ProcessCounts) -> u64| {
            let all = processes.iter();
            all.map(move |(name, counts)| (name.as_str(), value(counts)))
        };
        let help = "Tasks ended, by process definition";
        page.counters("oncue_process_tasks", help, "process", of(|p| p.tasks))?;
        let help = "Tasks that failed, by process definition";
        page.counters(
            "oncue_process_tasks_failed",
            help,
            "process",
            of(|p| p.failed),
        )?;
        let help = "Fuel burnt by ended tasks, by process definition";
        page.counters("oncue_process_fuel", help, "process", of(|p| p.fuel))?;
        let help = "Time inside the guests of ended tasks, by process definition";
        let guest = of(|p| p.guest_micros / 1000);
        let guest = guest.map(|(name, millis)| (name, seconds(millis)));
        page.counters("oncue_process_guest_seconds", help, "process", guest)?;
        let help = "Largest memory of an instance so far, by process definition";
        let name = "oncue_process_peak_memory_bytes";
        page.gauges(name, help, "process", of(|p| p.peak_memory))
    }

    fn ledger(&self, page: &mut Page<'_>) -> fmt::Result {
        let (ledger, refused) = (&self.view.state.ledger, &self.view.state.refused);
        let (capacity, reserved) = (ledger.capacity, ledger.reserved);
        let rows = [
            ("oncue_ledger_slots", "Task slots", capacity.slots),
            (
                "oncue_ledger_slots_reserved",
                "Task slots taken",
                reserved.slots,
            ),
            (
                "oncue_ledger_memory_bytes",
                "Memory for tasks",
                capacity.memory,
            ),
            (
                "oncue_ledger_memory_reserved_bytes",
                "Memory reserved by tasks",
                reserved.memory,
            ),
            (
                "oncue_ledger_fuel",
                "Fuel that may be outstanding",
                capacity.fuel,
            ),
            (
                "oncue_ledger_fuel_reserved",
                "Fuel reserved by tasks",
                reserved.fuel,
            ),
        ];
        for (name, help, value) in rows {
            page.gauge(name, help, value)?;
        }
        let help = "Queues whose start waits for resources now";
        let waiting = ledger.waiting.len() as u64;
        page.gauge("oncue_ledger_waiting_queues", help, waiting)?;
        let help = "Starts refused for want of resources";
        let refused = [
            ("slots", refused.slots),
            ("memory", refused.memory),
            ("fuel", refused.fuel),
            ("host-memory", refused.headroom),
        ];
        page.counters("oncue_ledger_refused", help, "resource", refused)
    }

    fn store(&self, page: &mut Page<'_>) -> fmt::Result {
        let (store, word) = (&self.view.store, self.view.state.status.store);
        let stopped = STOP_REASONS.map(|reason| (reason, u64::from(reason == word)));
        let help = "1 for the reason why the store does not write";
        page.gauges("oncue_store_stopped", help, "reason", stopped)?;
        page.counter(
            "oncue_store_commits",
            "Units of work committed",
            store.commits,
        )?;
        let help = "Batches written and synced; many units share one";
        page.counter("oncue_store_syncs", help, store.syncs)?;
        let help = "How long a sync of a batch took";
        page.times("oncue_log_fsync_seconds", help, &store.sync_times)?;
        let help = "Bytes that the store has on disk";
        page.gauge("oncue_log_bytes", help, store.disk_used)?;
        let help = "Bytes of non-persistent messages in memory";
        page.gauge("oncue_store_volatile_bytes", help, store.volatile_bytes)?;
        let free = store.disk_free;
        let help = "Bytes free on the store's disk; none where it is in memory";
        page.family("oncue_disk_free_bytes", help, MetricType::Gauge, |family| {
            free.map_or(Ok(()), |free| family.encode_gauge(&free))
        })
    }
}
