//! Alarms on the loop: who is asked when, the list of those that are raised, and who is told.
//!
//! What an alarm is, core says ([`oncue_core::alarm`]). A queue is asked when its counts change in
//! a way that may matter, and by the sweep; nothing is kept over a restart, since every alarm is
//! computed from what is there. Each is told of once: as an event, in the log, in the counts.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use oncue_core::alarm::{Alarm, Change, News, Now, Seen};
use oncue_core::names::{PluginName, QueueName};
use oncue_core::time::Timestamp;

use crate::main_loop::Manager;
use crate::reload::PluginState;
use crate::status::{AlarmView, AlarmsView, HostEvent};

/// Raised alarms that are listed; those beyond are only counted.
pub const MAX_LISTED: usize = 10_000;

/// How many alarms there are, readable without asking the loop.
#[derive(Debug, Default)]
pub struct AlarmCounts {
    active: [AtomicU64; Alarm::ALL.len()],
    raised: [AtomicU64; Alarm::ALL.len()],
}

/// One alarm in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlarmCount {
    /// Which alarm.
    pub alarm: Alarm,
    /// Queues, plugins or hosts for which it is raised now.
    pub active: u64,
    /// How often it was raised since the start of the host.
    pub raised: u64,
}

impl AlarmCounts {
    /// Every alarm, in the order of the documentation.
    #[must_use]
    pub fn all(&self) -> Vec<AlarmCount> {
        let rows = Alarm::ALL.iter().zip(&self.active).zip(&self.raised);
        rows.map(|((alarm, active), raised)| AlarmCount {
            alarm: *alarm,
            active: active.load(Ordering::Relaxed),
            raised: raised.load(Ordering::Relaxed),
        })
        .collect()
    }

    /// All that are raised now.
    #[must_use]
    pub fn active(&self) -> u64 {
        let active = self.active.iter();
        active.map(|count| count.load(Ordering::Relaxed)).sum()
    }

    fn raise(&self, alarm: Alarm) {
        if let Some(count) = self.active.get(alarm as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.tell(alarm);
    }

    fn tell(&self, alarm: Alarm) {
        if let Some(count) = self.raised.get(alarm as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn clear(&self, alarm: Alarm) {
        if let Some(count) = self.active.get(alarm as usize) {
            // Only the loop changes it, and it clears nothing that it has not raised.
            count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// What an alarm is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Subject {
    Host,
    Queue(QueueName),
    Plugin(PluginName),
}

impl Subject {
    /// The name of the queue or plugin; empty for the host.
    fn name(&self) -> &str {
        match self {
            Self::Host => "",
            Self::Queue(queue) => queue.as_str(),
            Self::Plugin(plugin) => plugin.as_str(),
        }
    }
}

/// An alarm that is listed.
#[derive(Debug)]
struct Listed {
    since: Timestamp,
    detail: String,
}

/// The list of raised alarms. Whether a queue's is raised, its watch says; of plugins and the host
/// the list itself, so those are listed whatever the bound.
#[derive(Debug, Default)]
pub(crate) struct Alarms {
    listed: BTreeMap<(Subject, Alarm), Listed>,
}

impl Manager {
    /// Asks the alarms of a queue: after a change that may matter, and in the sweep.
    pub(crate) fn judge(&mut self, queue: &QueueName, now: Timestamp) {
        let Some(entry) = self.queues.get_mut(queue) else {
            return;
        };
        let both = Now {
            time: now,
            ran: self.ran,
        };
        let mut watch = entry.watch;
        let facts = entry.facts(&self.host, &self.processes);
        let wants = watch.wants_oldest(&facts, both);
        let priority = entry.attributes.trigger_priority;
        let oldest = wants.then(|| self.shared.store.oldest(queue, priority));
        let cell = self.shared.cell(queue);
        let seen = Seen {
            queue,
            facts,
            oldest: oldest.flatten(),
            refused: cell.is_some_and(|cell| cell.take_refused()),
        };
        let changes = watch.judge(&seen, both);
        entry.watch = watch;
        for change in changes {
            self.alarm_changed(Subject::Queue(queue.clone()), change, now);
        }
    }

    /// A queue's alarm of another rule than the watch's is raised, with what is, or cleared.
    pub(crate) fn turn_alarm(
        &mut self,
        queue: &QueueName,
        alarm: Alarm,
        raised: Option<String>,
        now: Timestamp,
    ) {
        let Some(entry) = self.queues.get_mut(queue) else {
            return;
        };
        if entry.watch.set(alarm, raised.is_some()) {
            let news = raised.map_or(News::Cleared, News::Raised);
            self.alarm_changed(Subject::Queue(queue.clone()), Change { alarm, news }, now);
        }
    }

    /// A queue is no more, and so are its alarms.
    pub(crate) fn forget_alarms(&mut self, queue: &QueueName, raised: Vec<Alarm>, now: Timestamp) {
        for alarm in raised {
            let news = News::Cleared;
            self.alarm_changed(Subject::Queue(queue.clone()), Change { alarm, news }, now);
        }
    }

    /// A plugin changed: whether it is quarantined.
    pub(crate) fn judge_plugin(&mut self, plugin: &PluginName, now: Timestamp) {
        let reason = match self.plugins.get(plugin).map(|known| &known.state) {
            Some(PluginState::Quarantined { reason, .. }) => {
                Some(format!("plugin \"{plugin}\" is quarantined: {reason}"))
            }
            _ => None,
        };
        self.turn_listed(
            Subject::Plugin(plugin.clone()),
            Alarm::Quarantined,
            reason,
            now,
        );
    }

    /// The store stopped writing, for the reason of that name, or writes again.
    pub(crate) fn judge_store(&mut self, stopped: Option<&str>, now: Timestamp) {
        let detail = stopped.map(|why| format!("the store does not write: {why}"));
        self.turn_listed(Subject::Host, Alarm::StoreStopped, detail, now);
    }

    fn turn_listed(
        &mut self,
        subject: Subject,
        alarm: Alarm,
        raised: Option<String>,
        now: Timestamp,
    ) {
        let key = (subject, alarm);
        let was = self.alarms.listed.get_mut(&key);
        let news = match (raised, was) {
            (Some(detail), Some(listed)) => {
                // Told once; who asks hears what is now.
                listed.detail = detail;
                return;
            }
            (Some(detail), None) => News::Raised(detail),
            (None, Some(_)) => News::Cleared,
            (None, None) => return,
        };
        self.alarm_changed(key.0, Change { alarm, news }, now);
    }

    fn alarm_changed(&mut self, subject: Subject, change: Change, now: Timestamp) {
        let Change { alarm, news } = change;
        let counts = &self.shared.alarm_counts;
        let key = (subject, alarm);
        let (since, detail, cleared) = match news {
            News::Raised(detail) => {
                counts.raise(alarm);
                let is_queue = matches!(key.0, Subject::Queue(_));
                if !is_queue || self.alarms.listed.len() < MAX_LISTED {
                    let listed = Listed {
                        since: now,
                        detail: detail.clone(),
                    };
                    self.alarms.listed.insert(key.clone(), listed);
                }
                (now, detail, false)
            }
            News::Told(detail) => {
                counts.tell(alarm);
                (now, detail, false)
            }
            News::Cleared => {
                counts.clear(alarm);
                let listed = self.alarms.listed.remove(&key);
                let (since, detail) = listed.map_or_else(
                    || (now, alarm.as_str().to_owned()),
                    |listed| (listed.since, listed.detail),
                );
                (since, detail, true)
            }
        };
        log(alarm, &key.0, &detail, cleared);
        let (queue, plugin) = parts(&key.0);
        self.shared.tell(|| HostEvent::Alarm {
            alarm: alarm.as_str(),
            queue,
            plugin,
            since,
            detail,
            cleared,
            time: now,
        });
    }

    /// Raised alarms, the newest first.
    pub(crate) fn alarms_view(&self) -> AlarmsView {
        let listed = self.alarms.listed.iter();
        let mut alarms: Vec<AlarmView> = listed
            .map(|((subject, alarm), listed)| {
                let (queue, plugin) = parts(subject);
                AlarmView {
                    alarm: alarm.as_str(),
                    queue,
                    plugin,
                    since: listed.since,
                    detail: listed.detail.clone(),
                    cure: alarm.cure(subject.name()),
                    needs_a_person: alarm.needs_a_person(),
                }
            })
            .collect();
        alarms.sort_by_key(|alarm| std::cmp::Reverse(alarm.since));
        AlarmsView {
            active: self.shared.alarm_counts.active(),
            alarms,
        }
    }
}

fn parts(subject: &Subject) -> (Option<QueueName>, Option<String>) {
    match subject {
        Subject::Host => (None, None),
        Subject::Queue(queue) => (Some(queue.clone()), None),
        Subject::Plugin(plugin) => (None, Some(plugin.to_string())),
    }
}

fn log(alarm: Alarm, subject: &Subject, detail: &str, cleared: bool) {
    let name = alarm.as_str();
    let cure = alarm.cure(subject.name());
    if cleared {
        tracing::info!(alarm = name, detail, "alarm cleared");
    } else if alarm == Alarm::DepthLow {
        tracing::info!(alarm = name, detail, "alarm");
    } else if alarm.needs_a_person() {
        tracing::error!(alarm = name, detail, cure, "alarm");
    } else {
        tracing::warn!(alarm = name, detail, cure, "alarm");
    }
}
