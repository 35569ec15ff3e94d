//! Groups and priorities across tasks.

use oncue_core::outcome::CallEnd;
use oncue_manager::tasks::port::{Got, PutOptions};

use crate::rig::Rig;
use crate::values::{Pairs, retry};

fn member(group: &str, priority: u8) -> PutOptions {
    PutOptions {
        group: Some(group.to_owned()),
        priority: Some(priority),
        ..PutOptions::default()
    }
}

fn every(trigger_style: bool) -> Rig {
    let mut rig = Rig::new();
    let attributes: Pairs<'_> = &[("trigger", "every"), ("max-tasks", "4")];
    if trigger_style {
        rig.trigger_plugin("work", &[], &[("in", attributes)]);
    } else {
        rig.plugin("work", &[], &[("in", attributes)]);
    }
    rig
}

#[test]
fn members_of_one_group_are_never_in_two_tasks_and_keep_their_order() {
    let mut rig = every(true);
    rig.put_with("in", "a1", member("a", 0));
    rig.put_with("in", "a2", member("a", 9));
    rig.put_with("in", "b1", member("b", 0));
    let tasks: Vec<_> = (0..3).map(|_| rig.next_task()).collect();
    assert_eq!(
        rig.got(&tasks[0]),
        "a1",
        "arrival beats priority within a group"
    );
    assert_eq!(rig.got(&tasks[1]), "b1");
    assert!(matches!(rig.get(&tasks[2]), Got::Empty), "a2 waits for a1");
    assert_eq!(rig.queue("in").reason, Some("group-busy"));
    rig.end(&tasks[2], CallEnd::Ok);
    rig.end(&tasks[1], CallEnd::Ok);
    rig.end(&tasks[0], CallEnd::Ok);
    rig.advance(100);
    let task = rig.next_task();
    assert_eq!(rig.got(&task), "a2");
    rig.end(&task, CallEnd::Ok);
    assert_eq!((rig.depth("in"), rig.waiting()), (0, 0));
}

#[test]
fn a_member_that_waits_to_retry_holds_its_group_only() {
    let mut rig = every(false);
    rig.put_with("in", "a1", member("a", 0));
    rig.put_with("in", "a2", member("a", 0));
    rig.put_with("in", "b1", member("b", 0));
    rig.put("in", "alone");
    let mut handled = Vec::new();
    while rig.waiting() > 0 {
        handled.extend(rig.run(|body| if body == "a1" { retry() } else { CallEnd::Ok }));
    }
    assert_eq!(handled, ["a1", "b1", "alone"]);
    assert_eq!(rig.bodies("in").len(), 2);
    // A start that finds nothing to do backs the queue off; the retry is due by then.
    rig.advance(2_000);
    assert_eq!(rig.run_all(), ["a1", "a2"]);
    assert_eq!(rig.depth("in"), 0);
}

#[test]
fn a_task_takes_by_priority_and_then_arrival_or_by_arrival_alone() {
    for (delivery, order) in [
        ("priority", ["high", "low 1", "low 2"]),
        ("fifo", ["low 1", "high", "low 2"]),
    ] {
        let mut rig = Rig::new();
        let attributes: Pairs<'_> = &[("delivery", delivery)];
        rig.plugin("work", &[], &[("in", attributes)]);
        for (body, priority) in [("low 1", 0), ("high", 7), ("low 2", 0)] {
            let options = PutOptions {
                priority: Some(priority),
                ..PutOptions::default()
            };
            rig.put_with("in", body, options);
        }
        assert_eq!(rig.run_all(), order);
    }
}
