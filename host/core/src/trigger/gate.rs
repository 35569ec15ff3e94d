//! What a queue remembers between questions (steps 10 to 16, 58, 66, 68): the pending trigger
//! counter, the indicator, trigger control, back-off, and where the last start was held.
//!
//! One loop owns every gate. Only [`ControlRecord`] is durable; after a restart the rest starts
//! empty, because the rule is asked by level. The counter is raised by [`Gate::fire`] alone, which
//! hands out the guard that lowers it: no path can leave a queue pending.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use crate::definition::{Backoff, QueueAttributes, Rearm, TriggerType};
use crate::time::{Millis, Timestamp};
use crate::trigger::TaskId;
use crate::trigger::hold::HoldReason;
use crate::trigger::message::TriggerRecord;
use crate::trigger::rule::{Cause, Verdict};
use crate::trigger::step::Step;

mod state;

pub use state::{BackOffState, Control, ControlRecord, Held, InProcess, TaskEnd};

/// A queue's own state of triggering.
#[derive(Clone, Debug, Default)]
pub struct Gate {
    pending: bool,
    indicator: BTreeMap<TaskId, InProcess>,
    starting: u32,
    elsewhere: bool,
    control: Control,
    owed: bool,
    control_changed: bool,
    backoff: Option<BackOffState>,
    /// Boxed: most queues are never held.
    held: Option<Box<Held>>,
    sequence: u64,
    last_fired: Option<Timestamp>,
}

impl Gate {
    /// The gate of a queue that has no control record: trigger control as its definition says.
    #[must_use]
    pub fn new(attributes: &QueueAttributes) -> Self {
        let control = if attributes.trigger_control {
            Control::On
        } else {
            Control::OffByOperator
        };
        Self {
            control,
            ..Self::default()
        }
    }

    /// The gate of a queue after a restart.
    #[must_use]
    pub fn restore(record: ControlRecord, attributes: &QueueAttributes) -> Self {
        let ControlRecord {
            control,
            start_owed,
        } = record;
        let mut gate = Self {
            control,
            owed: start_owed,
            ..Self::default()
        };
        gate.fit_control(attributes);
        gate
    }

    /// Step 10: the rule has fired. Raises the pending trigger counter, and for depth turns the
    /// trigger off with a start owed.
    ///
    /// # Errors
    /// `trigger-pending` when the counter is up, or the reason of a verdict that is a hold. Then
    /// nothing has changed.
    pub fn fire(
        &mut self,
        verdict: &Verdict,
        counted: u64,
        now: Timestamp,
    ) -> Result<Pending<'_>, HoldReason> {
        if self.pending {
            return Err(HoldReason::TriggerPending);
        }
        let cause = match verdict {
            Verdict::Fire(cause) => *cause,
            Verdict::Hold { reason, .. } => return Err(reason.clone()),
        };
        self.pending = true;
        self.sequence += 1;
        self.last_fired = Some(now);
        if matches!(cause, Cause::DepthReached | Cause::MaxWait) {
            self.owe_start();
            self.write_control(Control::OffByDepth, true);
        }
        let record = TriggerRecord {
            cause,
            depth: counted,
            sequence: self.sequence,
            fired_at: now,
        };
        Ok(Pending { gate: self, record })
    }

    /// Step 54: whether a second trigger process is running for the queue, here or elsewhere.
    #[must_use]
    pub fn second_is_running(&self, max_tasks: u32) -> bool {
        self.elsewhere || self.running() >= max_tasks
    }

    /// Another host that shares the queue entered (58) or left (66) its trigger process.
    pub fn set_elsewhere(&mut self, running: bool) {
        self.elsewhere = running;
    }

    /// Whether another host is in its trigger process for the queue.
    #[must_use]
    pub fn is_elsewhere(&self) -> bool {
        self.elsewhere
    }

    /// Step 58: sets the indicator for a task. Its start is under way from now on.
    pub fn raise(&mut self, task: TaskId) {
        let serves_owed = self.start_owed();
        let entry = InProcess {
            task,
            starting: true,
            serves_owed,
        };
        let before = self.indicator.insert(task, entry);
        assert!(before.is_none(), "task {task} sets the indicator twice");
        self.starting += 1;
    }

    /// The task's first get was answered, with a message or without: its start is over. True when
    /// that is news; then the rule must be asked.
    pub fn first_get_answered(&mut self, task: TaskId) -> bool {
        match self.indicator.get_mut(&task) {
            Some(entry) if entry.starting => {
                entry.starting = false;
                self.starting -= 1;
                true
            }
            _ => false,
        }
    }

    /// Step 68: the task has ended; clears its indicator, settles what it served, and paces the
    /// queue when nothing was got done. False when no such task is in process.
    pub fn lower(
        &mut self,
        task: TaskId,
        end: &TaskEnd,
        attributes: &QueueAttributes,
        now: Timestamp,
    ) -> bool {
        let Some(entry) = self.clear(task) else {
            return false;
        };
        if let Some(why) = &end.start_failed {
            self.start_failed(why.clone(), attributes.backoff, now);
            return true;
        }
        if !end.progress {
            if !end.found_nothing {
                self.back_off(attributes.backoff, now);
            }
            return true;
        }
        self.backoff = None;
        // With manual re-arm nobody would start the failed messages again, so the start stays owed.
        let served = end.ended_ok || attributes.rearm == Rearm::Auto;
        if entry.serves_owed && self.owed && served {
            self.rearm(attributes.rearm);
        }
        true
    }

    /// Clears the indicator of a task that a hold at 60 to 64 kept from starting.
    pub(crate) fn clear(&mut self, task: TaskId) -> Option<InProcess> {
        let entry = self.indicator.remove(&task)?;
        self.starting -= u32::from(entry.starting);
        Some(entry)
    }

    /// A start was held: the rule answers with the reason until it is cured or `refire` is over.
    pub fn hold(&mut self, step: Step, reason: HoldReason, refire: Millis, now: Timestamp) {
        let since = self.held_since(&reason, now);
        self.held = Some(Box::new(Held {
            reason,
            step,
            since,
            retry_at: now.after(refire),
        }));
    }

    /// A start failed (64, or in the task's first moments): held with the reason, and backed off.
    pub fn start_failed(&mut self, why: String, backoff: Backoff, now: Timestamp) {
        self.back_off(backoff, now);
        let retry_at = self.backoff.map_or(now, |state| state.until);
        let reason = HoldReason::StartFailed(why);
        let since = self.held_since(&reason, now);
        self.held = Some(Box::new(Held {
            reason,
            step: Step::S64,
            since,
            retry_at,
        }));
    }

    fn held_since(&self, reason: &HoldReason, now: Timestamp) -> Timestamp {
        let same = self
            .held
            .as_ref()
            .filter(|held| held.reason.as_str() == reason.as_str());
        same.map_or(now, |held| held.since)
    }

    /// The last start went through.
    pub(crate) fn started(&mut self) {
        self.held = None;
    }

    /// Nothing more should be running, so no resources are waited for.
    pub(crate) fn stop_waiting(&mut self) {
        if self
            .held
            .as_ref()
            .is_some_and(|held| held.step == Step::S52)
        {
            self.held = None;
        }
    }

    /// Something changed that may have caused a hold or failures: a definition, a component, get,
    /// an operator's word. The next question is answered as if they had not been.
    pub fn cure(&mut self) {
        self.held = None;
        self.backoff = None;
    }

    fn back_off(&mut self, backoff: Backoff, now: Timestamp) {
        let failures = self
            .backoff
            .map_or(0, |state| state.failures)
            .saturating_add(1);
        let delay = doubled(backoff.initial, failures - 1, backoff.max);
        self.backoff = Some(BackOffState {
            failures,
            until: now.after(delay),
        });
    }

    /// An operator turns the trigger on or off. On asks the rule afresh: what a depth trigger owed
    /// is forgotten, and fires again if the depth is there.
    pub fn set_control(&mut self, on: bool) {
        self.owe_start();
        self.write_control(
            if on {
                Control::On
            } else {
                Control::OffByOperator
            },
            false,
        );
        self.cure();
    }

    /// Undoes [`Self::set_control`] when the record of it could not be made durable. Should a task
    /// have been serving an owed start, the start is owed once more.
    pub fn put_control_back(&mut self, record: ControlRecord, attributes: &QueueAttributes) {
        self.write_control(record.control, record.start_owed);
        self.control_changed = false;
        self.fit_control(attributes);
    }

    /// The queue's definition changed.
    pub fn attributes_changed(&mut self, old: &QueueAttributes, new: &QueueAttributes) {
        if old.trigger_control != new.trigger_control {
            self.set_control(new.trigger_control);
        }
        self.fit_control(new);
        self.cure();
    }

    /// Off by depth means nothing to other types, and an automatic re-arm that waits for no task
    /// would never come.
    fn fit_control(&mut self, attributes: &QueueAttributes) {
        if self.control != Control::OffByDepth {
            return;
        }
        let other_type = attributes.trigger != TriggerType::Depth;
        if other_type || (attributes.rearm == Rearm::Auto && !self.owed) {
            self.write_control(Control::On, false);
        }
    }

    /// The queue's depth is zero: a start that is owed and not being served lapses.
    pub fn lapse(&mut self, rearm: Rearm) {
        if self.start_owed() {
            self.rearm(rearm);
        }
    }

    fn rearm(&mut self, rearm: Rearm) {
        let control = match rearm {
            Rearm::Auto => Control::On,
            Rearm::Manual => Control::OffByDepth,
        };
        self.write_control(control, false);
    }

    /// No task in process serves what is owed from now on.
    fn owe_start(&mut self) {
        self.indicator
            .values_mut()
            .for_each(|entry| entry.serves_owed = false);
    }

    fn write_control(&mut self, control: Control, owed: bool) {
        let after = ControlRecord {
            control,
            start_owed: owed,
        };
        self.control_changed |= self.control_record() != after;
        self.control = control;
        self.owed = owed;
    }

    /// The control record, when it changed since this was last asked: the caller makes it durable.
    #[must_use]
    pub fn take_control_change(&mut self) -> Option<ControlRecord> {
        std::mem::take(&mut self.control_changed).then(|| self.control_record())
    }

    /// The durable part.
    #[must_use]
    pub fn control_record(&self) -> ControlRecord {
        ControlRecord {
            control: self.control,
            start_owed: self.owed,
        }
    }

    /// Nothing is pending, in process or owed, and no change of control waits to be written.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        !self.pending && self.indicator.is_empty() && !self.owed && !self.control_changed
    }

    /// Whether a trigger is pending.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.pending
    }

    /// Tasks in process, those starting included.
    #[must_use]
    pub fn running(&self) -> u32 {
        u32::try_from(self.indicator.len()).unwrap_or(u32::MAX)
    }

    /// Starts under way.
    #[must_use]
    pub fn starting(&self) -> u32 {
        self.starting
    }

    /// The tasks in process, oldest first.
    pub fn tasks(&self) -> impl Iterator<Item = InProcess> + '_ {
        self.indicator.values().copied()
    }

    /// Trigger control.
    #[must_use]
    pub fn control(&self) -> Control {
        self.control
    }

    /// A depth trigger owes a start that no task in process serves.
    #[must_use]
    pub fn start_owed(&self) -> bool {
        self.owed && !self.indicator.values().any(|entry| entry.serves_owed)
    }

    /// The back-off, until the next progress or cure.
    #[must_use]
    pub fn backoff(&self) -> Option<&BackOffState> {
        self.backoff.as_ref()
    }

    /// Where the last start was held.
    #[must_use]
    pub fn held(&self) -> Option<&Held> {
        self.held.as_deref()
    }

    /// How many triggers have fired since the host's start.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// When the last one fired.
    #[must_use]
    pub fn last_fired(&self) -> Option<Timestamp> {
        self.last_fired
    }
}

/// `initial`, doubled `times` times, at most `max`; milliseconds.
pub(crate) fn doubled(initial: Millis, times: u32, max: Millis) -> Millis {
    let factor = 1_u64.checked_shl(times).unwrap_or(u64::MAX);
    initial.saturating_mul(factor).min(max)
}

/// A pending trigger: the span from step 10 to step 66. Gives access to its gate, and lowers the
/// counter when it ends, on whatever path.
#[must_use = "the trigger is settled as soon as this is dropped"]
#[derive(Debug)]
pub struct Pending<'a> {
    gate: &'a mut Gate,
    record: TriggerRecord,
}

impl Pending<'_> {
    /// The trigger record.
    #[must_use]
    pub fn record(&self) -> &TriggerRecord {
        &self.record
    }

    /// Step 66. The same as dropping it, said aloud.
    pub fn settle(self) {}
}

impl Deref for Pending<'_> {
    type Target = Gate;

    fn deref(&self) -> &Gate {
        self.gate
    }
}

impl DerefMut for Pending<'_> {
    fn deref_mut(&mut self) -> &mut Gate {
        self.gate
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        debug_assert!(self.gate.pending, "a trigger is settled twice");
        self.gate.pending = false;
    }
}

#[cfg(test)]
mod tests;
