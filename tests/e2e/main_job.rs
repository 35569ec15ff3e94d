//! The main job, from the outside: a put, a trigger, a handler in the sandbox, its effects.

use serde_json::json;

use crate::host::{Home, oncue};
use crate::wait::until;

#[test]
fn a65_a_component_without_a_manifest_serves_the_queue_of_its_name() {
    let home = Home::new();
    let host = home.start();
    let echo = oncue_artifacts::ALL
        .iter()
        .find(|sample| sample.name == "echo")
        .unwrap();
    home.copy(std::path::Path::new(echo.component), "plain.wasm");
    host.wait_for_plugin("plain", "ready");
    assert_eq!(host.queue("plain")["attributes"]["trigger"], "first");
    // Without grants it may not put elsewhere: the message fails with that reason, and is not lost.
    host.put("plain", b"hello");
    until("an attempt", || {
        host.queue("plain")["counts"]["retrying"] == 1 || host.depth("oncue.dead-letter") == 1
    });
}

#[test]
fn a_message_put_is_handled_and_its_reply_is_there() {
    let home = Home::new();
    let host = home.start();
    host.define("echo.out", json!({"trigger": "none"}));
    home.drop_sample(
        oncue_artifacts::ALL
            .iter()
            .find(|s| s.name == "echo")
            .unwrap(),
    );
    host.wait_for_plugin("echo", "ready");
    host.put("echo", b"hello");
    host.wait_for_depth("echo.out", 1);
    assert_eq!(host.bodies("echo.out"), ["hello"]);
    assert_eq!(host.depth("echo"), 0);
    // The record follows the commit: the task ends first.
    until("the task to end", || {
        host.tasks("echo")
            .iter()
            .any(|task| task["outcome"].is_string())
    });
    let record = host.tasks("echo").first().cloned().expect("a task record");
    assert_eq!(record["outcome"], "committed");
    assert_eq!(
        record["steps"],
        json!([10, 12, 14, 50, 54, 58, 60, 62, 64, 66, 68])
    );
    let (code, stdout, _) = oncue(&host, &["explain", "echo"]);
    assert_eq!(code, 0);
    assert!(stdout.contains("no message is on the queue"), "{stdout}");
}
