//! Random answers at every step: whatever happens, what step 10 and step 50 took is given back.

use proptest::prelude::*;

use super::{DEMAND, MEMORY, World, version};
use crate::admission::{Demand, Grant, Resources};
use crate::definition::TriggerType;
use crate::process_table::ComponentState;
use crate::trigger::TaskId;
use crate::trigger::gate::TaskEnd;
use crate::trigger::process::End;
use crate::trigger::scene::{process, ready};

/// What the world answers at each step of one question.
#[derive(Clone, Debug)]
enum Event {
    Ask {
        start_ok: bool,
    },
    Messages(i64),
    Elsewhere(bool),
    Bound(bool),
    Component(u8),
    Capacity(u32),
    Headroom(Option<u64>),
    FirstGet(usize),
    Ends {
        index: usize,
        progress: bool,
        ended_ok: bool,
    },
    Control(bool),
    Later(u64),
}

fn any_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => any::<bool>().prop_map(|start_ok| Event::Ask { start_ok }),
        2 => (0..6_i64).prop_map(Event::Messages),
        1 => any::<bool>().prop_map(Event::Elsewhere),
        1 => any::<bool>().prop_map(Event::Bound),
        1 => (0..5_u8).prop_map(Event::Component),
        1 => (0..5_u32).prop_map(Event::Capacity),
        1 => proptest::option::of(0..3 * MEMORY).prop_map(Event::Headroom),
        2 => (0..4_usize).prop_map(Event::FirstGet),
        2 => (0..4_usize, any::<bool>(), any::<bool>()).prop_map(|(index, progress, ended_ok)| {
            Event::Ends { index, progress, ended_ok }
        }),
        1 => any::<bool>().prop_map(Event::Control),
        2 => (0..2_000_u64).prop_map(Event::Later),
    ]
}

fn perform(world: &mut World, tasks: &mut Vec<(TaskId, Grant)>, event: Event) {
    match event {
        Event::Ask { start_ok } => {
            let report = world.run_with(if start_ok { Ok(()) } else { Err("failed") });
            let numbers = report.trace.numbers();
            assert_eq!(numbers.first(), Some(&10));
            assert_eq!(numbers.contains(&58), numbers.contains(&66), "{numbers:?}");
            if let End::Started { task, grant } = report.end {
                tasks.push((task, grant));
            }
        }
        Event::Messages(count) => world.entry.counts = ready(0, count).into(),
        Event::Elsewhere(running) => world.entry.gate.set_elsewhere(running),
        Event::Bound(bound) => world.attributes().process = bound.then(|| process("p")),
        Event::Component(state) => {
            world.process().component = match state {
                0 => ComponentState::Missing,
                1 => ComponentState::Compiling,
                2 => ComponentState::Quarantined("bad".to_owned()),
                3 => version(DEMAND),
                _ => version(Demand {
                    memory: 2 * MEMORY,
                    ..DEMAND
                }),
            };
        }
        Event::Capacity(slots) => {
            let memory = u64::from(slots) * MEMORY;
            let fuel = u64::from(slots) * DEMAND.fuel;
            world.ledger.set_capacity(Resources {
                slots,
                memory,
                fuel,
            });
        }
        Event::Headroom(headroom) => world.ledger.set_headroom(headroom),
        Event::FirstGet(index) => {
            if let Some((task, _)) = tasks.get(index) {
                world.entry.gate.first_get_answered(*task);
            }
        }
        Event::Ends {
            index,
            progress,
            ended_ok,
        } => {
            if index < tasks.len() {
                let end = TaskEnd {
                    progress,
                    ended_ok,
                    start_failed: None,
                    found_nothing: false,
                };
                let task = tasks.swap_remove(index);
                world.finish(task, &end);
            }
        }
        Event::Control(on) => world.entry.gate.set_control(on),
        Event::Later(millis) => world.now = world.now.after(millis),
    }
}

proptest! {
    /// Whatever is answered at each step: pending is settled (in `run_with`), the indicator counts
    /// the tasks, the ledger equals the sum over them, and both are zero after a drain.
    #[test]
    fn pending_indicator_and_ledger_are_right_on_every_path(
        trigger in prop::sample::select(TriggerType::ALL),
        max_tasks in 1..4_u32,
        events in prop::collection::vec(any_event(), 0..60),
    ) {
        let mut world = World::new(trigger, ready(0, 2));
        world.attributes().max_tasks = max_tasks;
        world.attributes().trigger_depth = 2;
        let mut tasks = Vec::new();
        for event in events {
            perform(&mut world, &mut tasks, event);
            let memory: u64 = tasks.iter().map(|(_, grant)| grant.demand().memory).sum();
            let fuel: u64 = tasks.iter().map(|(_, grant)| grant.demand().fuel).sum();
            let slots = u32::try_from(tasks.len()).expect("few");
            assert_eq!(world.ledger.in_use(), Resources { slots, memory, fuel });
            assert_eq!(world.ledger.grants(), tasks.len());
            assert_eq!(world.entry.gate.running(), slots);
            assert!(slots <= max_tasks && world.entry.gate.starting() <= slots);
        }
        for task in std::mem::take(&mut tasks) {
            world.finish(task, &TaskEnd::DONE);
        }
        assert_eq!(world.ledger.in_use(), Resources::default());
        assert_eq!((world.entry.gate.running(), world.entry.gate.starting()), (0, 0));
    }
}
