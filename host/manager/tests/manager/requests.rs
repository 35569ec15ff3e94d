//! Request and reply inside a handler: put at once, the first answer met by a retry, the slot lent
//! meanwhile.

use std::sync::Arc;

use oncue_core::admission::Resources;
use oncue_core::outcome::{CallEnd, Outcome};
use oncue_core::time::Millis;
use oncue_manager::ManagerConfig;
use oncue_manager::tasks::port::{Got, PortError, PutOptions};
use oncue_manager::tasks::{Delivered, TaskCost, TaskSession};

use crate::rig::Rig;
use crate::steps::room_for;
use crate::values::{name, plain, request, text, trapped};

type Answer = Result<Arc<Delivered>, PortError>;

/// An asking queue `ask` and an answering queue `serve`, both in trigger style.
fn two(config: ManagerConfig) -> Rig {
    let mut rig = Rig::with(config);
    rig.trigger_plugin("ask", &[("grants.put", "serve")], &[("ask", &[])]);
    rig.trigger_plugin("serve", &[], &[("serve", &[])]);
    rig
}

fn slots(slots: u32) -> ManagerConfig {
    ManagerConfig {
        capacity: Resources {
            slots,
            ..room_for(10).capacity
        },
        ..ManagerConfig::default()
    }
}

fn asks(task: &Arc<TaskSession>, wait: Millis) -> std::pin::Pin<Box<impl Future<Output = Answer>>> {
    let task = Arc::clone(task);
    Box::pin(async move { task.request(plain("serve", "question"), wait).await })
}

/// The answering handler: one message, one answer to where it is wanted.
fn serve(rig: &mut Rig) {
    let task = rig.task_of("serve");
    let Got::Message(question) = rig.get(&task) else {
        panic!("a question is there");
    };
    let header = &question.message.header;
    let correlation = header.correlation_id.clone();
    let options = PutOptions {
        correlation_id: correlation.or_else(|| Some(header.id.to_string())),
        ..PutOptions::default()
    };
    let to = header.reply_to.clone().expect("an answer is wanted");
    // No grant: the manager's own reply queue is open while the question is in hand.
    task.put(request(to.as_str(), "answer", options)).unwrap();
    rig.end(&task, CallEnd::Ok);
}

fn running(rig: &mut Rig) -> u64 {
    let handle = rig.handle.clone();
    rig.ask(async move { handle.ledger().await })
        .unwrap()
        .reserved
        .slots
}

#[test]
fn a_request_is_answered_while_its_task_waits_without_a_slot() {
    let mut rig = two(slots(1));
    rig.put("ask", "one");
    let asker = rig.next_task();
    rig.got(&asker);
    let mut asking = asks(&asker, 60_000);
    assert!(rig.poll(&mut asking).is_none());
    rig.settle();
    // The only slot is lent to the answering task.
    assert_eq!((rig.waiting(), running(&mut rig)), (1, 1));
    serve(&mut rig);
    assert_eq!(running(&mut rig), 0);
    assert!(
        rig.poll(&mut asking).is_none(),
        "it wants its slot back first"
    );
    rig.settle();
    let answer = rig.poll(&mut asking).expect("answered").unwrap();
    assert_eq!(text(&asker, &answer), "answer");
    assert_eq!(running(&mut rig), 1);
    drop(asking);
    rig.end(&asker, CallEnd::Ok);
    for queue in ["ask", "serve", "oncue.replies"] {
        assert_eq!(rig.depth(queue), 0, "{queue}");
    }
    rig.assert_ledger_empty();
}

#[test]
fn a_task_whose_answer_is_there_gets_the_next_free_slot_before_any_start() {
    let mut rig = two(slots(1));
    rig.plugin("other", &[], &[("other", &[])]);
    rig.put("ask", "one");
    let asker = rig.next_task();
    rig.got(&asker);
    let mut asking = asks(&asker, 60_000);
    assert!(rig.poll(&mut asking).is_none());
    rig.settle();
    rig.put("other", "x");
    assert_eq!(rig.reason("other"), Some("no-task-slot"));
    let server = rig.task_of("serve");
    let Got::Message(question) = rig.get(&server) else {
        panic!("a question is there");
    };
    let options = PutOptions {
        correlation_id: Some(question.message.header.id.to_string()),
        ..PutOptions::default()
    };
    server
        .put(request("oncue.replies", "answer", options))
        .unwrap();
    rig.drive(server.commit()).unwrap();
    assert!(
        rig.poll(&mut asking).is_none(),
        "the answering task still has the slot"
    );
    rig.settle();
    assert!(rig.poll(&mut asking).is_none());
    rig.end(&server, CallEnd::Ok);
    assert_eq!(rig.waiting(), 0, "the freed slot is the asker's");
    assert!(rig.poll(&mut asking).is_some());
    drop(asking);
    rig.end(&asker, CallEnd::Ok);
    assert_eq!(rig.run_all(), ["x"]);
    rig.assert_ledger_empty();
}

#[test]
fn a_retried_handler_meets_its_first_request_and_its_first_answer() {
    let mut rig = two(ManagerConfig::default());
    rig.put("ask", "one");
    for attempt in 1..=2 {
        let asker = rig.next_task();
        rig.got(&asker);
        let mut asking = asks(&asker, 60_000);
        if attempt == 1 {
            assert!(rig.poll(&mut asking).is_none());
            rig.settle();
            serve(&mut rig);
            assert!(rig.poll(&mut asking).is_none());
            rig.settle();
        }
        let answer = rig.poll(&mut asking).expect("answered").unwrap();
        assert_eq!(text(&asker, &answer), "answer");
        drop(asking);
        // A reply in the unit blames nobody else: the input is charged.
        rig.end(&asker, if attempt == 1 { trapped() } else { CallEnd::Ok });
        if attempt == 1 {
            assert_eq!(rig.attempts("ask"), (1, 0));
            assert_eq!(rig.attempts("oncue.replies"), (0, 0));
            rig.advance(2_000);
        }
    }
    assert_eq!(
        (
            rig.depth("ask"),
            rig.depth("serve"),
            rig.depth("oncue.replies")
        ),
        (0, 0, 0)
    );
    let asked = rig
        .records()
        .iter()
        .filter(|r| r.queue == name("serve"))
        .count();
    assert_eq!(asked, 1, "asked once");
}

#[test]
fn two_requests_of_one_message_are_two_and_each_meets_its_own_answer_again() {
    let mut rig = two(ManagerConfig::default());
    rig.put("ask", "one");
    let mut met = Vec::new();
    for attempt in 1..=2 {
        let asker = rig.next_task();
        rig.got(&asker);
        for _ in 0..2 {
            let mut asking = asks(&asker, 60_000);
            if attempt == 1 {
                assert!(rig.poll(&mut asking).is_none());
                rig.settle();
                serve(&mut rig);
                assert!(rig.poll(&mut asking).is_none());
                rig.settle();
            }
            let answer = rig.poll(&mut asking).expect("answered").unwrap();
            met.push(answer.message.header.id);
        }
        rig.end(&asker, if attempt == 1 { trapped() } else { CallEnd::Ok });
        rig.advance(2_000);
    }
    assert_ne!(met[0], met[1]);
    assert_eq!(met[..2], met[2..]);
}

#[test]
fn in_a_batch_a_request_belongs_to_the_message_of_its_call() {
    let mut rig = Rig::new();
    rig.define("serve", &[("trigger", "none")]);
    let process = &[("grants.put", "serve"), ("batch", "3")];
    rig.plugin("ask", process, &[("ask", &[])]);
    rig.put_all(["1", "2", "3"].map(|body| plain("ask", body)).into())
        .unwrap();
    for _ in 0..2 {
        let task = rig.next_task();
        rig.run_session(&task, |task, body| {
            let mut asking = asks(task, 60_000);
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            assert!(asking.as_mut().poll(&mut context).is_pending());
            // The first one traps, the second one ends the task: each time the batches are others.
            if body == "2" {
                CallEnd::HostFailed("no".to_owned())
            } else {
                trapped()
            }
        });
        rig.advance(2_000);
    }
    assert_eq!(rig.depth("serve"), 2, "each of two messages asked once");
}

#[test]
fn no_reply_in_time_is_told_to_the_handler_which_has_its_slot_back() {
    let mut rig = two(slots(1));
    rig.define("serve", &[("trigger-control", "off")]);
    rig.put("ask", "one");
    let asker = rig.next_task();
    rig.got(&asker);
    let answer = rig.ask(asks(&asker, 1));
    let said = answer.unwrap_err().to_string();
    assert!(said.ends_with("[no-reply]"), "{said}");
    assert_eq!(running(&mut rig), 1);
    rig.end(&asker, CallEnd::Ok);
    assert_eq!((rig.depth("serve"), rig.depth("ask")), (1, 0));
    rig.assert_ledger_empty();
}

#[test]
fn a_requester_gives_way_uncharged_when_the_target_is_held_at_52_and_is_tried_again() {
    // Room for one task of 64 MiB: a lent slot is not enough.
    let mut rig = two(room_for(1));
    rig.put("ask", "one");
    let asker = rig.next_task();
    rig.got(&asker);
    let mut asking = asks(&asker, 60_000);
    assert!(rig.poll(&mut asking).is_none());
    rig.settle();
    assert_eq!(rig.reason("serve"), Some("insufficient-memory"));
    let ended = rig.poll(&mut asking).expect("ended").unwrap_err();
    assert!(matches!(ended, PortError::Cancelled(_)), "{ended}");
    drop(asking);
    rig.end(&asker, CallEnd::HostFailed(ended.to_string()));
    assert_eq!(rig.attempts("ask"), (0, 0));
    let mut records = rig.records().into_iter();
    let record = records.find(|record| record.queue == name("ask")).unwrap();
    assert_eq!(record.outcome, Some(Outcome::Cancelled));
    serve(&mut rig);
    rig.advance(100);
    let asker = rig.next_task();
    rig.got(&asker);
    let mut asking = asks(&asker, 60_000);
    let answer = rig.poll(&mut asking).expect("its first answer").unwrap();
    assert_eq!(text(&asker, &answer), "answer");
    drop(asking);
    rig.end(&asker, CallEnd::Ok);
    assert_eq!(
        (
            rig.depth("ask"),
            rig.depth("serve"),
            rig.depth("oncue.replies")
        ),
        (0, 0, 0)
    );
    rig.assert_ledger_empty();
}

#[test]
fn a_request_ends_when_the_host_stops_and_its_target_has_not_started() {
    let mut rig = two(ManagerConfig::default());
    rig.define("serve", &[("trigger-control", "off")]);
    rig.put("ask", "one");
    let asker = rig.next_task();
    rig.got(&asker);
    let mut asking = asks(&asker, 60_000);
    assert!(rig.poll(&mut asking).is_none());
    rig.settle();
    assert!(rig.poll(&mut asking).is_none());
    rig.manager.drain();
    rig.settle();
    let ended = rig.poll(&mut asking).expect("ended").unwrap_err();
    assert!(matches!(ended, PortError::Cancelled(_)), "{ended}");
    drop(asking);
    rig.end(&asker, CallEnd::HostFailed(ended.to_string()));
    assert_eq!(rig.attempts("ask"), (0, 0));
    rig.assert_ledger_empty();
}

#[test]
fn a_request_that_is_cut_off_leaves_no_slot_behind() {
    let mut rig = two(slots(2));
    rig.define("serve", &[("trigger-control", "off")]);
    rig.put("ask", "one");
    let asker = rig.next_task();
    rig.got(&asker);
    let mut asking = asks(&asker, 60_000);
    assert!(rig.poll(&mut asking).is_none());
    rig.settle();
    assert_eq!(running(&mut rig), 0);
    // The deadline ends the call; the task itself may go on and holds its slot again.
    drop(asking);
    rig.settle();
    assert_eq!(running(&mut rig), 1);
    asker.finish(TaskCost::default());
    rig.settle();
    rig.assert_ledger_empty();
}

#[test]
fn a_request_is_refused_like_a_put() {
    let mut rig = two(ManagerConfig::default());
    rig.define(
        "serve",
        &[
            ("max-depth", "1"),
            ("trigger-control", "off"),
            ("max-message-length", "8"),
        ],
    );
    rig.put("ask", "one");
    rig.put("serve", "x");
    let asker = rig.next_task();
    rig.got(&asker);
    let refused = |rig: &mut Rig, queue: &str, body: &str| {
        let task = Arc::clone(&asker);
        let put = plain(queue, body);
        rig.ask(async move { task.request(put, 1).await })
            .unwrap_err()
    };
    assert!(matches!(
        refused(&mut rig, "serve", "q"),
        PortError::Full(_)
    ));
    assert!(matches!(
        refused(&mut rig, "serve", "far too long"),
        PortError::TooLarge(_)
    ));
    assert!(matches!(
        refused(&mut rig, "ask", "q"),
        PortError::NotGranted(_)
    ));
    rig.end(&asker, CallEnd::Ok);
}
