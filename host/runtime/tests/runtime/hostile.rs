//! Guests that a host must withstand: each ends as documented, and nothing of its unit remains.

use oncue_core::outcome::Outcome;
use oncue_manager::tasks::record::TaskRecord;

use crate::harness::Host;

/// Handles one message with a sample whose threshold is 1, and checks how that ends and that the
/// message is a dead letter with nothing beside it.
fn check(name: &str, body: &[u8], outcome: Outcome, detail: &str) -> TaskRecord {
    let host = Host::with(&[name]);
    host.define(&[&format!("{name}.out")]);
    let record = host.handle_one(name, body);
    assert_eq!(record.outcome, Some(outcome), "{record:#?}");
    let found = record.detail.clone().unwrap_or_default();
    assert!(found.contains(detail), "{name} ended so: {found}");
    assert!(record.cost.fuel > 0, "{record:#?}");
    assert_eq!(
        host.bodies(&format!("{name}.out")),
        Vec::<String>::new(),
        "{name}: no put remains"
    );
    assert_eq!(
        host.bodies(name),
        Vec::<String>::new(),
        "{name}: it is moved at once"
    );
    assert_eq!(
        host.bodies("oncue.dead-letter").len(),
        1,
        "{name}: a dead letter"
    );
    record
}

#[test]
fn a50_a_loop_burns_its_fuel() {
    let record = check(
        "spins",
        b"x",
        Outcome::OutOfFuel,
        "burnt its fuel: 20 M of 20 M",
    );
    assert_eq!(record.cost.fuel, 20_000_000);
}

#[test]
fn a50_with_fuel_without_end_the_deadline_ends_a_loop() {
    let host = Host::with(&[]);
    let manifest = "[process]\nfuel = \"500 G\"\ndeadline = \"50ms\"\n\
                    [queue.spins]\nbackout-threshold = 1";
    host.install("spins", manifest);
    let record = host.handle_one("spins", b"x");
    assert_eq!(record.outcome, Some(Outcome::PastDeadline), "{record:#?}");
    assert!(
        record
            .detail
            .expect("a detail")
            .contains("its deadline of 50ms")
    );
}

#[test]
fn a50_the_task_deadline_ends_a_task() {
    let host = Host::with(&[]);
    let manifest = "[process]\nfuel = \"500 G\"\ndeadline = \"60ms\"\ntask-deadline = \"60ms\"\n\
                    [queue.spins]\nbackout-threshold = 1";
    host.install("spins", manifest);
    let record = host.handle_one("spins", b"x");
    assert_eq!(record.outcome, Some(Outcome::PastDeadline), "{record:#?}");
    assert!(
        record
            .detail
            .expect("a detail")
            .contains("its task-deadline of 60ms")
    );
}

#[test]
fn a51_memory_past_the_limit_is_over_memory() {
    let record = check(
        "hoards",
        b"x",
        Outcome::OverMemory,
        "of memory and may have 8 MiB",
    );
    assert!(record.cost.peak_memory <= 8 << 20, "{record:#?}");
    assert!(record.cost.peak_memory > 4 << 20, "{record:#?}");
}

#[test]
fn a51_table_growth_past_the_limit_is_over_memory() {
    check(
        "hoards-table",
        b"x",
        Outcome::OverMemory,
        "table elements and may have 1000",
    );
}

#[test]
fn a51_deep_recursion_is_a_trap() {
    let record = check("recurses", b"x", Outcome::Trapped, "ran out of stack");
    let backtrace = record.backtrace.expect("a backtrace");
    assert!(backtrace.contains("descend"), "{backtrace}");
    assert!(backtrace.len() < 5 << 10, "{}", backtrace.len());
}

#[test]
fn a51_handles_past_the_limit_end_the_task() {
    check(
        "leaks-handles",
        b"x",
        Outcome::HandleLimit,
        "held 1000 resource handles of 1000",
    );
    check(
        "leaks-pollables",
        b"x",
        Outcome::HandleLimit,
        "held 1000 resource handles of 1000",
    );
}

#[test]
fn a51_a_flood_of_puts_is_an_output_limit() {
    check("floods-puts", b"x", Outcome::OutputLimit, "100 puts of 100");
}

#[test]
fn a51_a_huge_put_is_refused() {
    check("huge-put", b"x", Outcome::Retry, "268435456 bytes");
}

#[test]
fn a51_a_flood_of_output_is_cut_and_the_task_goes_on() {
    let host = Host::with(&["floods-output"]);
    let record = host.handle_one("floods-output", b"x");
    assert_eq!(record.outcome, Some(Outcome::Committed), "{record:#?}");
    let written = (1_u64 << 30) + "\nthe end of the flood\n".len() as u64;
    assert_eq!(record.cost.log_cut, written - (4 << 10));
    let tail = record.cost.log_tail;
    assert!(
        tail.starts_with(&format!("[{} bytes cut]\n", record.cost.log_cut)),
        "{tail}"
    );
    assert!(
        tail.ends_with("\nthe end of the flood\n") && tail.len() < 5 << 10,
        "{tail}"
    );
}

#[test]
fn a56_what_is_not_granted_is_refused_and_recorded() {
    let host = Host::with(&["reaches-out"]);
    host.define(&["reaches-out.out", "secrets"]);
    let record = host.handle_one("reaches-out", b"x");
    assert_eq!(record.outcome, Some(Outcome::Committed), "{record:#?}");
    let report = host.bodies("reaches-out.out").join("\n");
    assert!(!report.contains("allowed"), "{report}");
    for line in [
        "tcp: refused",
        "environment: 0 variables",
        "arguments: 0",
        "file: refused",
        "folder: refused",
        "put: refused",
        "get: refused",
    ] {
        assert!(report.contains(line), "no {line} in {report}");
    }
    let refused: Vec<_> = record
        .cost
        .refused
        .iter()
        .map(|it| (&*it.what, it.times))
        .collect();
    let wanted = [
        ("connect 127.0.0.1:7373", 1),
        ("get secrets", 1),
        ("put secrets", 1),
    ];
    assert_eq!(refused, wanted);
    assert_eq!(host.bodies("secrets"), Vec::<String>::new());
}

#[test]
fn a58_a_guest_that_waits_in_a_host_call_meets_its_deadline() {
    check(
        "sleeps",
        b"get",
        Outcome::PastDeadline,
        "its deadline of 50ms",
    );
    check(
        "sleeps",
        b"clock",
        Outcome::PastDeadline,
        "its deadline of 50ms",
    );
}

#[test]
fn a_panic_is_told_with_its_last_words() {
    let record = check("traps", b"four", Outcome::Trapped, "cannot handle");
    let detail = record.detail.expect("a detail");
    assert!(detail.starts_with("panicked or aborted"), "{detail}");
    assert!(detail.ends_with("of 4 bytes"), "{detail}");
    assert!(
        record.cost.log_tail.contains("cannot handle"),
        "{}",
        record.cost.log_tail
    );
    assert!(record.backtrace.expect("a backtrace").contains("handle"));
}

#[test]
fn a_handlers_own_failure_is_told_in_its_words() {
    check(
        "backs-out",
        b"x",
        Outcome::Retry,
        "attempt 1 failed, 0 left",
    );
}

#[test]
fn a_trigger_style_panic_before_the_first_get_charges_nobody() {
    let host = Host::with(&["traps-before-get"]);
    let record = host.handle_one("traps-before-get", b"x");
    assert_eq!(record.outcome, Some(Outcome::Trapped), "{record:#?}");
    assert!(record.detail.expect("a detail").contains("no wish to work"));
    let page = host.handle.browse(
        &crate::harness::queue_name("traps-before-get"),
        None,
        10,
        false,
    );
    let page = page.expect("a page");
    assert_eq!(page.messages.len(), 1, "it is still there");
    assert_eq!(page.messages[0].message.attempts.backout_count, 0);
}
