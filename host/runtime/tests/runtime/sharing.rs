//! Several tasks on few workers, and the end of the host.

use std::time::Duration;

use oncue_core::outcome::Outcome;

use crate::harness::Host;

/// Loops until the host says stop.
const ENDLESS: &str = "[process]\nfuel = \"100 G\"\ndeadline = \"1h\"\ntask-deadline = \"1h\"\n\
                       [queue.spins]\nmax-tasks = 4\ntrigger = \"every\"";

#[test]
fn a50_busy_guests_delay_neither_the_api_nor_other_queues() {
    let mut host = Host::with(&["echo"]);
    host.define(&["echo.out"]);
    host.install("spins", ENDLESS);
    host.put("spins", &[b"1", b"2", b"3", b"4"]);
    host.await_in_unit("spins", 4);
    for number in 0..20 {
        let record = host.handle_one("echo", number.to_string().as_bytes());
        assert_eq!(record.outcome, Some(Outcome::Committed), "{record:#?}");
    }
    assert_eq!(host.bodies("echo.out").len(), 20);
    host.settle(4);
    assert!(!host.stop(Duration::ZERO), "they were cut off");
    host.settle(0);
}

#[test]
fn a82_a_guest_that_is_cut_off_charges_nobody() {
    let mut host = Host::with(&[]);
    host.install("spins", ENDLESS);
    host.put("spins", &[b"x"]);
    host.await_in_unit("spins", 1);
    assert!(!host.stop(Duration::ZERO), "it was cut off");
    let page = host
        .handle
        .browse(&crate::harness::queue_name("spins"), None, 10, false);
    let page = page.expect("a page");
    assert_eq!(page.messages.len(), 1);
    assert_eq!(page.messages[0].message.attempts.backout_count, 0);
}
