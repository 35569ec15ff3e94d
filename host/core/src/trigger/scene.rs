//! What the tests of triggering share: names, a fixed present, and facts that start unremarkable.

use proptest::option::weighted;
use proptest::prelude::*;

use crate::definition::{QueueAttributes, TriggerType};
use crate::names::{ProcessName, QueueName};
use crate::queue::Counts;
use crate::time::Timestamp;
use crate::trigger::gate::{BackOffState, Control, Held};
use crate::trigger::hold::{HoldReason, PausedBy};
use crate::trigger::rule::Facts;
use crate::trigger::step::Step;

/// The present.
pub(crate) const NOW: Timestamp = Timestamp(1_000_000);

/// So many milliseconds from now.
pub(crate) fn later(millis: u64) -> Timestamp {
    NOW.after(millis)
}

/// So many milliseconds ago.
pub(crate) fn ago(millis: u64) -> Timestamp {
    Timestamp(NOW.0 - millis)
}

pub(crate) fn queue(name: &str) -> QueueName {
    QueueName::new(name).expect("a queue name")
}

pub(crate) fn process(name: &str) -> ProcessName {
    ProcessName::new(name).expect("a process name")
}

/// So many ready messages of a priority.
pub(crate) fn ready(priority: usize, count: i64) -> Counts {
    let mut counts = Counts::default();
    counts.ready[priority] = count;
    counts
}

pub(crate) fn attributes(trigger: TriggerType) -> QueueAttributes {
    QueueAttributes {
        trigger,
        process: Some(process("p")),
        ..QueueAttributes::default()
    }
}

pub(crate) fn held(step: Step, reason: HoldReason, retry_at: Timestamp) -> Held {
    Held {
        reason,
        step,
        since: NOW,
        retry_at,
    }
}

/// Owned facts. By default a queue of type first with one message, which fires.
#[derive(Clone, Debug)]
pub(crate) struct Scene {
    pub(crate) attributes: QueueAttributes,
    pub(crate) control: Control,
    pub(crate) start_owed: bool,
    pub(crate) counts: Counts,
    pub(crate) running: u32,
    pub(crate) starting: u32,
    pub(crate) paused: Option<PausedBy>,
    pub(crate) draining: bool,
    pub(crate) store_stopped: bool,
    pub(crate) waiting_inputs: u32,
    pub(crate) last_input_closed: Option<Timestamp>,
    pub(crate) backoff: Option<BackOffState>,
    pub(crate) held: Option<Held>,
    pub(crate) oldest_counted: Option<Timestamp>,
    pub(crate) next_due: Option<Timestamp>,
}

impl Scene {
    pub(crate) fn new(trigger: TriggerType, counts: Counts) -> Self {
        Self {
            attributes: attributes(trigger),
            control: Control::On,
            start_owed: false,
            counts,
            running: 0,
            starting: 0,
            paused: None,
            draining: false,
            store_stopped: false,
            waiting_inputs: 0,
            last_input_closed: None,
            backoff: None,
            held: None,
            oldest_counted: None,
            next_due: None,
        }
    }

    pub(crate) fn facts(&self) -> Facts<'_> {
        Facts {
            attributes: &self.attributes,
            control: self.control,
            start_owed: self.start_owed,
            counts: &self.counts,
            running: self.running,
            starting: self.starting,
            elsewhere: false,
            paused: self.paused,
            draining: self.draining,
            store_stopped: self.store_stopped,
            waiting_inputs: self.waiting_inputs,
            last_input_closed: self.last_input_closed,
            backoff: self.backoff.as_ref(),
            held: self.held.as_ref(),
            oldest_counted: self.oldest_counted,
            next_due: self.next_due,
        }
    }
}

/// Any counts at all, most of them zero.
fn any_counts() -> impl Strategy<Value = Counts> {
    let ready = prop::array::uniform10(prop_oneof![4 => Just(0_i64), 1 => 0..5_i64]);
    let others = prop::array::uniform8(prop_oneof![2 => Just(0_i64), 1 => 1..4_i64]);
    (ready, others).prop_map(|(ready, others)| {
        let [
            in_unit,
            leased,
            leased_open,
            delayed,
            retrying,
            deferred,
            group_held,
            parked,
        ] = others;
        Counts {
            ready,
            in_unit,
            leased,
            leased_open: leased_open.min(leased),
            delayed,
            retrying,
            deferred,
            group_held,
            parked,
            bytes: 0,
        }
    })
}

/// A time around the present.
fn any_time() -> impl Strategy<Value = Timestamp> {
    (0_u64..6_000).prop_map(|millis| Timestamp(NOW.0 - 3_000 + millis))
}

/// What people decided: most of the time nothing stands in the way.
fn any_decisions(trigger: TriggerType, counts: Counts) -> impl Strategy<Value = Scene> {
    let seldom = || prop::bool::weighted(0.1);
    let control = prop_oneof![
        6 => Just(Control::On),
        1 => Just(Control::OffByOperator),
        2 => Just(Control::OffByDepth),
    ];
    let pauses = vec![PausedBy::Queue, PausedBy::Process, PausedBy::Host];
    let paused = weighted(0.1, prop::sample::select(pauses));
    let attributes = (0..10_u8, 1..6_u64, weighted(0.5, 0..3_000_u64), seldom());
    (
        attributes,
        control,
        any::<bool>(),
        paused,
        seldom(),
        seldom(),
    )
        .prop_map(
            move |(attributes, control, owed, paused, draining, store_stopped)| {
                let (priority, depth, max_wait, no_get) = attributes;
                let mut scene = Scene::new(trigger, counts);
                scene.attributes.trigger_priority = priority;
                scene.attributes.trigger_depth = depth;
                scene.attributes.trigger_max_wait = max_wait;
                scene.attributes.max_tasks = 2;
                scene.attributes.get = !no_get;
                let start_owed = owed && control == Control::OffByDepth;
                Scene {
                    control,
                    start_owed,
                    paused,
                    draining,
                    store_stopped,
                    ..scene
                }
            },
        )
}

/// What tasks, consumers and earlier starts left behind.
fn any_past(scene: Scene) -> impl Strategy<Value = Scene> {
    let reason = prop::sample::select(crate::trigger::hold::tests::start_reasons());
    let held = (reason, any_time()).prop_map(|(reason, at)| held(Step::S62, reason, at));
    let backoff =
        (1..9_u32, any_time()).prop_map(|(failures, until)| BackOffState { failures, until });
    let inputs = prop_oneof![3 => Just(0_u32), 1 => 1..3_u32];
    let closed = weighted(0.3, any_time());
    let times = (weighted(0.7, any_time()), weighted(0.7, any_time()));
    let tasks = (0..3_u32, 0..3_u32);
    (
        tasks,
        inputs,
        closed,
        weighted(0.2, backoff),
        weighted(0.2, held),
        times,
    )
        .prop_map(
            move |(tasks, waiting_inputs, last_input_closed, backoff, held, times)| {
                let (running, starting) = tasks;
                let (oldest_counted, next_due) = times;
                let running = running.max(starting);
                let before = scene.clone();
                Scene {
                    running,
                    starting,
                    waiting_inputs,
                    last_input_closed,
                    backoff,
                    held,
                    oldest_counted,
                    next_due,
                    ..before
                }
            },
        )
}

/// Any scene at all, for property tests.
pub(crate) fn any_scene() -> impl Strategy<Value = Scene> {
    (prop::sample::select(TriggerType::ALL), any_counts())
        .prop_flat_map(|(trigger, counts)| any_decisions(trigger, counts))
        .prop_flat_map(any_past)
}
