//! Guests as they should be: every host interface from the guest's side.

use oncue_core::outcome::Outcome;

use crate::harness::{Host, manifest};

#[test]
fn echo_puts_each_body_on() {
    let host = Host::with(&["echo"]);
    host.define(&["echo.out"]);
    let mut events = host.watch();
    host.put("echo", &[b"one", b"two", b"three"]);
    let record = host.next_end(&mut events, "echo");
    assert_eq!(
        (record.outcome, record.committed),
        (Some(Outcome::Committed), 3),
        "{record:#?}"
    );
    assert_eq!(host.bodies("echo.out"), ["one", "two", "three"]);
    assert!(
        record.cost.peak_memory > 0 && record.cost.guest_micros > 0,
        "{record:#?}"
    );
}

#[test]
fn a_large_body_passes_through_a_guest_unchanged() {
    let host = Host::with(&["echo"]);
    host.define(&["echo.out"]);
    let body = vec![b'x'; 5 << 20];
    let record = host.handle_one("echo", &body);
    assert_eq!(record.outcome, Some(Outcome::Committed), "{record:#?}");
    let bodies = host.bodies("echo.out");
    assert!(bodies.len() == 1 && bodies[0].as_bytes() == body);
}

#[test]
fn a_body_beyond_the_guests_memory_is_over_memory() {
    let host = Host::with(&[]);
    let manifest = "[process]\nmemory = \"4 MiB\"\n[process.grants]\nput = [\"echo.out\"]\n\
                    [queue.echo]\nbackout-threshold = 1";
    host.install("echo", manifest);
    host.define(&["echo.out"]);
    let record = host.handle_one("echo", &vec![b'x'; 5 << 20]);
    assert_eq!(record.outcome, Some(Outcome::OverMemory), "{record:#?}");
    assert!(
        record
            .detail
            .expect("a detail")
            .contains("read the body in pieces")
    );
}

#[test]
fn a_drain_of_trigger_style_works_its_queue() {
    let host = Host::with(&["drain"]);
    host.define(&["drained"]);
    let bodies: Vec<String> = (0..25).map(|number| number.to_string()).collect();
    let bytes: Vec<&[u8]> = bodies.iter().map(String::as_bytes).collect();
    let mut events = host.watch();
    host.put("drain", &bytes);
    let record = host.next_end(&mut events, "drain");
    assert_eq!(
        (record.outcome, record.committed),
        (Some(Outcome::Committed), 25),
        "{record:#?}"
    );
    assert_eq!(host.bodies("drained"), bodies);
    assert!(
        record
            .cost
            .log_tail
            .contains("messages counted on \"drain\""),
        "{record:#?}"
    );
}

#[test]
fn fuel_is_refilled_with_each_fresh_message() {
    let host = Host::with(&[]);
    // Enough for some messages and not for all of them.
    let manifest = "[process]\nstyle = \"trigger\"\nfuel = 100000\n[process.grants]\n\
                    put = [\"drained\"]\n[queue.drain]\nbackout-threshold = 1";
    host.install("drain", manifest);
    host.define(&["drained"]);
    let bodies = vec![&b"x"[..]; 500];
    let mut events = host.watch();
    host.put("drain", &bodies);
    let record = host.next_end(&mut events, "drain");
    assert_eq!(record.outcome, Some(Outcome::Committed), "{record:#?}");
    assert!(
        record.cost.fuel > 100_000,
        "more than one filling in all: {record:#?}"
    );
    assert_eq!(host.bodies("drained").len(), 500);
}

#[test]
fn orders_are_forwarded_and_others_rejected() {
    let host = Host::with(&["route-orders"]);
    host.define(&["invoices", "audit.refund"]);
    let mut events = host.watch();
    let invoice: &[u8] = br#"{"order":"o-1","kind":"invoice","amount":12.5}"#;
    let refund: &[u8] = br#"{"order":"o-2","kind":"refund","amount":1}"#;
    host.put("orders", &[invoice, refund, b"no order"]);
    let record = host.next_end(&mut events, "orders");
    assert_eq!((record.committed, record.failed), (2, 1), "{record:#?}");
    assert_eq!(host.bodies("invoices"), [String::from_utf8_lossy(invoice)]);
    assert_eq!(
        host.bodies("audit.refund"),
        [String::from_utf8_lossy(refund)]
    );
    assert_eq!(host.bodies("oncue.dead-letter"), ["no order"]);
    assert!(record.detail.expect("a detail").contains("not an order"));
}

#[test]
fn state_is_kept_between_tasks() {
    let host = Host::with(&["running-total"]);
    host.define(&["totals"]);
    for amount in [5, 7] {
        let order = format!(r#"{{"kind":"book","amount":{amount}}}"#);
        let record = host.handle_one("running-total", order.as_bytes());
        assert_eq!(record.outcome, Some(Outcome::Committed), "{record:#?}");
    }
    let totals = [
        r#"{"kind":"book","total":5}"#,
        r#"{"kind":"book","total":12}"#,
    ];
    assert_eq!(host.bodies("totals"), totals);
}

#[test]
fn a54_a_failure_in_a_batch_takes_its_own_effects_only() {
    // With the sample's 10 ms the failed message may come back within the same task.
    let manifest = manifest("batch-settle");
    let later = manifest.replace(
        r#"{ initial = "10ms", max = "100ms" }"#,
        r#"{ initial = "1h", max = "1h" }"#,
    );
    assert_ne!(later, manifest, "the retry is replaced");
    let host = Host::with(&[]);
    host.install("batch-settle", &later);
    host.define(&["settled"]);
    let mut events = host.watch();
    host.put("batch-settle", &[b"a", b"b", b"fail", b"c"]);
    let record = host.next_end(&mut events, "batch-settle");
    assert_eq!((record.committed, record.failed), (3, 1), "{record:#?}");
    assert_eq!(host.bodies("settled"), ["a", "b", "c"]);
}

#[test]
fn a_request_is_answered_by_another_handler() {
    let host = Host::with(&["request-reply"]);
    let answers = "[process.grants]\nput = [\"oncue.replies\"]\n\
                   [queue.quotes]\ntrigger = \"first\"";
    host.install("echo", answers);
    host.define(&["quoted"]);
    let record = host.handle_one("request-reply", b"how much?");
    assert_eq!(record.outcome, Some(Outcome::Committed), "{record:#?}");
    assert_eq!(host.bodies("quoted"), ["how much?"]);
    assert!(
        record
            .cost
            .log_tail
            .starts_with("INFO request-reply: quote "),
        "{record:#?}"
    );
}
