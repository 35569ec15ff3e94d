use proptest::prelude::*;

use super::*;
use crate::admission::Demand;
use crate::definition::{ProcessDefinition, Raw};
use crate::process_table::ProcessEntry;
use crate::trigger::gate::Control;
use crate::trigger::hold::HoldReason;
use crate::trigger::rule::{Cause, Verdict, evaluate};
use crate::trigger::scene::{NOW, later, process, queue, ready};

fn definition(attributes: &[(&str, Raw)]) -> QueueDefinition {
    let table = attributes
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()));
    let patch = crate::definition::QueuePatch::parse(&Raw::Table(table.collect()));
    QueueDefinition::from_operator(&patch.expect("a right definition"))
}

fn host() -> HostState {
    HostState {
        manager: "M1".to_owned(),
        paused: false,
        draining: false,
        store_stopped: false,
        default_demand: Demand::default(),
    }
}

fn verdict(entry: &QueueEntry, now: Timestamp) -> Verdict {
    evaluate(&entry.facts(&host(), &ProcessTable::default()), now)
}

#[test]
fn a10_a_queue_stays_open_for_input_until_the_last_consumer_has_lingered() {
    let mut entry = QueueEntry::new(queue("q"), QueueDefinition::default());
    entry.apply(&ready(0, 1), NOW);
    let open = |entry: &QueueEntry, now| match verdict(entry, now) {
        Verdict::Hold {
            reason: HoldReason::ConsumerOpen { .. },
            until,
        } => Some(until),
        Verdict::Fire(Cause::First) => None,
        verdict => panic!("{verdict:?}"),
    };
    assert_eq!(open(&entry, NOW), None);
    entry.input_opened();
    entry.input_opened();
    assert_eq!(open(&entry, later(90_000)), Some(None));
    entry.input_closed(later(1));
    assert_eq!(open(&entry, later(2)), Some(None));
    // The last one is answered with a message under a lease, which is then lost.
    let leased = Counts {
        leased: 1,
        leased_open: 1,
        ..Counts::default()
    };
    entry.apply(&leased, later(3));
    entry.input_closed(later(3));
    assert_eq!(open(&entry, later(30_000)), Some(None));
    entry.apply(&-leased, later(30_000));
    assert_eq!(open(&entry, later(31_999)), Some(Some(later(32_000))));
    assert_eq!(open(&entry, later(32_000)), None);
}

#[test]
fn whatever_is_paused_is_named() {
    let bound = definition(&[("process", Raw::text("p"))]);
    let mut entry = QueueEntry::new(queue("q"), bound);
    let mut host = host();
    let mut processes = ProcessTable::default();
    assert_eq!(entry.paused_by(&host, &processes), None);
    let mut paused = ProcessEntry::new(ProcessDefinition::default());
    paused.paused = true;
    processes.insert(process("p"), paused);
    assert_eq!(entry.paused_by(&host, &processes), Some(PausedBy::Process));
    entry.paused = true;
    assert_eq!(entry.paused_by(&host, &processes), Some(PausedBy::Queue));
    host.paused = true;
    assert_eq!(entry.paused_by(&host, &processes), Some(PausedBy::Host));
}

#[test]
fn a18_a_definition_takes_effect_at_once() {
    let five = definition(&[("trigger-priority", Raw::Integer(5))]);
    let mut entry = QueueEntry::new(queue("q"), five);
    entry.apply(&ready(4, 1), NOW);
    let below = HoldReason::BelowTriggerPriority {
        waiting: 1,
        priority: 5,
    };
    assert_eq!(verdict(&entry, NOW), Verdict::hold(below));
    entry.define(QueueDefinition::default());
    assert_eq!(verdict(&entry, NOW), Verdict::Fire(Cause::First));
}

#[test]
fn a_restart_with_an_owed_start_and_an_empty_queue_lapses() {
    let depth = definition(&[("trigger", Raw::text("depth"))]);
    let record = ControlRecord {
        control: Control::OffByDepth,
        start_owed: true,
    };
    let mut entry = QueueEntry::restore(queue("q"), depth, record);
    entry.apply(&ready(0, 1), NOW);
    entry.lapse_if_empty();
    assert_eq!(verdict(&entry, NOW), Verdict::Fire(Cause::StartOwed));
    entry.apply(&-ready(0, 1), NOW);
    entry.lapse_if_empty();
    assert_eq!(entry.gate.control_record(), ControlRecord::default());
}

#[test]
fn the_table_is_kept_by_name() {
    let mut table = QueueTable::default();
    assert!(table.is_empty());
    for name in ["b", "a"] {
        assert!(
            table
                .insert(QueueEntry::new(queue(name), QueueDefinition::default()))
                .is_none()
        );
    }
    assert_eq!(table.names(), [queue("a"), queue("b")]);
    table.get_mut(&queue("a")).expect("there").paused = true;
    assert!(table.get(&queue("a")).is_some_and(|entry| entry.paused));
    table.iter_mut().for_each(|entry| entry.paused = false);
    assert!(table.iter().all(|entry| !entry.paused));
    assert!(table.remove(&queue("a")).is_some());
    assert_eq!(table.len(), 1);
}

/// One event that changes what the rule looks at.
#[derive(Clone, Debug)]
enum Event {
    Counts(Counts),
    InputOpens,
    InputCloses,
    Paused(bool),
    Define(&'static str, i64),
    Control(bool),
}

fn any_event() -> impl Strategy<Value = Event> {
    let counts = (0..10_usize, 0..3_i64, 0..3_i64, 0..3_i64).prop_map(
        |(priority, count, retrying, leased_open)| {
            let leased = leased_open;
            Event::Counts(Counts {
                retrying,
                leased,
                leased_open,
                ..ready(priority, count)
            })
        },
    );
    prop_oneof![
        5 => counts,
        1 => Just(Event::InputOpens),
        1 => Just(Event::InputCloses),
        1 => any::<bool>().prop_map(Event::Paused),
        2 => (prop::sample::select(vec!["first", "every", "depth", "none"]), 0..10_i64)
            .prop_map(|(trigger, priority)| Event::Define(trigger, priority)),
        1 => any::<bool>().prop_map(Event::Control),
    ]
}

proptest! {
    /// After any events in any order the verdict is that of a queue made anew in the same state:
    /// the rule has no memory of its own.
    #[test]
    fn the_verdict_is_that_from_scratch(
        events in prop::collection::vec((any_event(), 0..3_000_u64), 0..40),
    ) {
        let mut entry = QueueEntry::new(queue("q"), QueueDefinition::default());
        let mut total = Counts::default();
        let mut inputs = 0_u32;
        let mut now = NOW;
        for (event, millis) in events {
            now = now.after(millis);
            match event {
                Event::Counts(counts) => {
                    entry.apply(&counts, now);
                    total += &counts;
                }
                Event::InputOpens => {
                    entry.input_opened();
                    inputs += 1;
                }
                Event::InputCloses if inputs > 0 => {
                    entry.input_closed(now);
                    inputs -= 1;
                }
                Event::InputCloses => {}
                Event::Paused(paused) => entry.paused = paused,
                Event::Define(trigger, priority) => entry.define(definition(&[
                    ("trigger", Raw::text(trigger)),
                    ("trigger-depth", Raw::Integer(3)),
                    ("trigger-priority", Raw::Integer(priority)),
                ])),
                Event::Control(on) => entry.gate.set_control(on),
            }
            let record = entry.gate.control_record();
            let mut scratch = QueueEntry::restore(queue("q"), entry.definition.clone(), record);
            scratch.apply(&-total, now);
            scratch.apply(&total, now);
            scratch.apply(&total, now);
            scratch.waiting_inputs = inputs;
            scratch.last_input_closed = entry.last_input_closed;
            scratch.paused = entry.paused;
            prop_assert_eq!(verdict(&entry, now), verdict(&scratch, now));
        }
    }
}

#[test]
fn queues_defined_alike_share_their_definitions_and_an_idle_entry_is_small() {
    // Bytes; what a hundred thousand of them take is in memory all the time.
    assert!(
        size_of::<QueueEntry>() <= 248,
        "{}",
        size_of::<QueueEntry>()
    );
    let mut table = QueueTable::default();
    for number in 0..1_000 {
        let bound = definition(&[("process", Raw::text("p"))]);
        table.insert(QueueEntry::new(queue(&format!("q{number}")), bound));
    }
    let first = table.get(&queue("q0")).expect("it was inserted");
    let (overlay, attributes) = (
        Arc::clone(&first.definition.overlay),
        Arc::clone(&first.attributes),
    );
    for entry in table.iter() {
        assert!(Arc::ptr_eq(&entry.definition.overlay, &overlay));
        assert!(Arc::ptr_eq(&entry.attributes, &attributes));
        assert!(entry.is_idle() && !entry.counts.is_spread());
    }
    // One that is altered leaves the others as they are.
    table.define(&queue("q1"), definition(&[("max-tasks", Raw::Integer(2))]));
    let altered = table.get(&queue("q1")).expect("it is there");
    assert_eq!((altered.attributes.max_tasks, attributes.max_tasks), (2, 1));
}
