//! Guests written by hand, for what no compiler makes a guest do on purpose.

use std::sync::Arc;

use oncue_core::outcome::Outcome;
use oncue_manager::tasks::record::TaskRecord;

use crate::harness::{Host, load_bytes};

/// A message-style component around the body of `handle`. Its memory has 16 pages, all zero;
/// address 1024 holds a result that is ok. It may call `$log` (level, context and message, each as
/// address and length), `$fuel`, `$time`.
fn guest(parts: &str, body: &str) -> Vec<u8> {
    let text = format!(
        r#"(component
  (import "oncue:handler/types@0.1.0" (instance $types
    (export "message" (type (sub resource)))
    (type $retry-shape (record (field "reason" string) (field "after" (option u64))))
    (export "retry" (type $retry (eq $retry-shape)))
    (type $failure-shape
      (variant (case "retry" $retry) (case "reject" string) (case "defer" u64)))
    (export "failure" (type (eq $failure-shape)))))
  (alias export $types "message" (type $message))
  (alias export $types "retry" (type $retry))
  (alias export $types "failure" (type $failure))
  (import "oncue:handler/budget@0.1.0" (instance $budget
    (export "fuel-left" (func (result u64)))
    (export "time-left" (func (result u64)))))
  (import "wasi:logging/logging@0.1.0-draft" (instance $logging
    (type $levels (enum "trace" "debug" "info" "warn" "error" "critical"))
    (export "level" (type $level (eq $levels)))
    (export "log" (func (param "level" $level) (param "context" string)
      (param "message" string)))))

  (core module $memory-module (memory (export "memory") 16))
  (core instance $memory (instantiate $memory-module))
  (core func $log (canon lower (func $logging "log") (memory (core memory $memory "memory"))))
  (core func $fuel (canon lower (func $budget "fuel-left")))
  (core func $time (canon lower (func $budget "time-left")))
  (core func $drop (canon resource.drop $message))
  (core module $code
    (import "memory" "memory" (memory 16))
    (import "host" "log" (func $log (param i32 i32 i32 i32 i32)))
    (import "host" "fuel" (func $fuel (result i64)))
    (import "host" "time" (func $time (result i64)))
    (import "host" "drop" (func $drop (param i32)))
    {parts}
    (func (export "handle") (param i32) (result i32)
      {body}
      (call $drop (local.get 0))
      i32.const 1024))
  (core instance $running (instantiate $code
    (with "memory" (instance $memory))
    (with "host" (instance (export "log" (func $log)) (export "fuel" (func $fuel))
      (export "time" (func $time)) (export "drop" (func $drop))))))
  (type $handle (func (param "message" (borrow $message)) (result (result (error $failure)))))
  (func $handle (type $handle)
    (canon lift (core func $running "handle") (memory (core memory $memory "memory"))))
  (component $interface
    (import "type-message" (type $message (sub resource)))
    (type $retry-shape (record (field "reason" string) (field "after" (option u64))))
    (import "type-retry" (type $retry (eq $retry-shape)))
    (type $failure-shape
      (variant (case "retry" $retry) (case "reject" string) (case "defer" u64)))
    (import "type-failure" (type $failure (eq $failure-shape)))
    (import "func-handle" (func $handle
      (param "message" (borrow $message)) (result (result (error $failure)))))
    (export $message-out "message" (type $message))
    (export $failure-out "failure" (type $failure))
    (export "handle" (func $handle)
      (func (param "message" (borrow $message-out)) (result (result (error $failure-out))))))
  (instance $on-message (instantiate $interface
    (with "type-message" (type $message))
    (with "type-retry" (type $retry))
    (with "type-failure" (type $failure))
    (with "func-handle" (func $handle))))
  (export "oncue:handler/on-message@0.1.0" (instance $on-message)))"#
    );
    wat::parse_str(text).expect("the text is a component")
}

/// Has a guest handle messages under a manifest's attributes; answers the first task's record.
fn run(parts: &str, body: &str, attributes: &str, messages: usize) -> TaskRecord {
    let host = Host::with(&[]);
    let loaded = load_bytes(&guest(parts, body)).expect("it loads");
    let manifest = format!("[process]\n{attributes}\n[queue.by-hand]\nbackout-threshold = 1");
    host.place("by-hand", Arc::new(loaded), &manifest);
    let mut events = host.watch();
    host.put("by-hand", &vec![&b"x"[..]; messages]);
    host.next_end(&mut events, "by-hand")
}

fn check(parts: &str, body: &str, attributes: &str, outcome: Outcome, detail: &str) {
    let record = run(parts, body, attributes, 1);
    assert_eq!(record.outcome, Some(outcome), "{record:#?}");
    let found = record.detail.unwrap_or_default();
    assert!(found.contains(detail), "it ended so: {found}");
}

#[test]
fn a51_too_much_in_one_call_is_a_host_call_limit() {
    // Twice the whole memory: no body is like that, only lists that name one place many times.
    let all = "(call $log (i32.const 2) (i32.const 0) (i32.const 1048576) (i32.const 0) \
               (i32.const 1048576))";
    let detail = "passed more than 1088 KiB to the host in one call";
    check(
        "",
        all,
        "memory = \"1 MiB\"",
        Outcome::HostCallLimit,
        detail,
    );
}

#[test]
fn a51_recursion_without_memory_runs_out_of_the_engines_stack() {
    let parts = "(func $deeper (param i64) (result i64)
        (i64.add (i64.const 1) (call $deeper (i64.add (local.get 0) (i64.const 1)))))";
    let body = "(drop (call $deeper (i64.const 0)))";
    check(
        parts,
        body,
        "",
        Outcome::Trapped,
        "ran out of stack: \"deeper\" calls itself",
    );
}

#[test]
fn other_traps_are_named() {
    let body = "(drop (i32.div_s (i32.const 1) (i32.const 0)))";
    check(
        "",
        body,
        "",
        Outcome::Trapped,
        "trapped: integer divide by zero",
    );
    let body = "(drop (i32.load (i32.const -4)))";
    check(
        "",
        body,
        "",
        Outcome::Trapped,
        "read or wrote outside its memory",
    );
    // A pointer that is nowhere: what the guest says to the host is checked too.
    let body = "(call $log (i32.const 2) (i32.const -8) (i32.const 9) (i32.const 0) (i32.const 0))";
    check("", body, "", Outcome::Trapped, "was ended by the sandbox: ");
}

#[test]
fn the_budget_is_what_the_definition_says() {
    let body = "(if (i64.gt_u (call $fuel) (i64.const 1000000)) (then unreachable))
        (if (i64.lt_u (call $fuel) (i64.const 900000)) (then unreachable))
        (if (i64.gt_u (call $time) (i64.const 20000)) (then unreachable))
        (if (i64.eqz (call $time)) (then unreachable))";
    let record = run("", body, "fuel = \"1 M\"\ndeadline = \"20s\"", 1);
    assert_eq!(record.outcome, Some(Outcome::Committed), "{record:#?}");
}

/// Logs how many messages this instance has had, as a digit.
const COUNTS: &str = "(global.set $had (i32.add (global.get $had) (i32.const 1)))
    (i32.store8 (i32.const 0) (i32.add (i32.const 48) (global.get $had)))
    (call $log (i32.const 2) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 1))";

#[test]
fn an_instance_handles_as_many_messages_as_reuse_says() {
    let parts = "(global $had (mut i32) (i32.const 0))";
    let log = |attributes: &str| {
        let record = run(parts, COUNTS, attributes, 5);
        assert_eq!(record.committed, 5, "{record:#?}");
        record.cost.log_tail.replace("INFO ", "").replace('\n', "")
    };
    assert_eq!(log(""), "11111");
    assert_eq!(log("reuse = 2"), "12121");
    assert_eq!(log("batch = 3"), "12312");
    assert_eq!(log("reuse = 100"), "12345");
}

#[test]
fn an_instance_is_not_used_again_after_a_trap() {
    let parts = "(global $had (mut i32) (i32.const 0))";
    let body = format!("{COUNTS} (if (i32.eq (global.get $had) (i32.const 2)) (then unreachable))");
    let record = run(parts, &body, "reuse = 100", 4);
    assert_eq!((record.committed, record.failed), (2, 2), "{record:#?}");
    assert_eq!(record.cost.log_tail, "INFO 1\nINFO 2\nINFO 1\nINFO 2\n");
}
