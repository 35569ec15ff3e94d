//! A failed task of a running host becomes a golden case: what was sent, what was read, how it
//! ended.

use std::path::Path;

use serde_json::{Value, json};

use crate::host::{Home, Host, oncue};
use crate::work::sample;

/// A file of a case.
fn json_of(folder: &Path, name: &str) -> Value {
    let path = folder.join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    serde_json::from_str(&text).expect("JSON")
}

/// Exports a task's failure into `cases` of the home; answers exit code, output, talk.
fn export(host: &Host, home: &Home, task: &str) -> (i32, String, String) {
    let cases = home.path().join("cases");
    let cases = cases.to_str().expect("a path");
    oncue(host, &["task", "export", task, "-d", cases])
}

/// Runs a case with no host: it must end as it is expected to.
fn reproduces(host: &Host, plugin: &str, case: &Path) {
    let case = case.to_str().expect("a path");
    let component = sample(plugin).component;
    let arguments = ["test", component, "--case", case, "--faults", "none"];
    let (code, out, talk) = oncue(host, &arguments);
    assert_eq!(code, 0, "{out}\n{talk}");
}

#[test]
fn a_failed_task_is_exported_as_it_was() {
    let home = Home::new();
    home.drop_sample(sample("batch-settle"));
    let host = home.start();
    host.define_plain("settled");
    host.wait_for_plugin("batch-settle", "ready");
    let headers = [
        ("oncue-correlation-id", "c-1"),
        ("oncue-property-region", "eu"),
        ("content-type", "text/plain"),
    ];
    let id = host.put_with("batch-settle", &headers, b"trap");
    let record = host.record_of("batch-settle", &id);
    let task = record["id"].to_string();
    let (code, out, talk) = export(&host, &home, &task);
    assert_eq!(code, 0, "{talk}");
    let folder = home.path().join("cases").join(format!("task-{task}"));
    assert_eq!(out.trim(), folder.to_str().unwrap());
    assert_eq!(
        json_of(&folder, "input.json"),
        json!({
            "queue": "batch-settle", "trigger": "first",
            "messages": [{
                "text": "trap", "correlation-id": "c-1", "content-type": "text/plain",
                "properties": {"region": "eu"},
            }],
            "state": {}, "config": {},
        })
    );
    let expected = json_of(&folder, "expected.json");
    assert_eq!(expected["messages"][0]["outcome"], "trapped");
    assert_eq!(expected["puts"], json!([]));
    let failure = json_of(&folder, "failure.json");
    assert_eq!(failure["detail"], record["messages"][0]["detail"]);
    let undone = json!([{"queue": "settled", "text": "trap", "correlation-id": id}]);
    assert_eq!(failure["undone"], undone);

    // Run again at the desk, it fails in the same way: that is what the case expects.
    reproduces(&host, "batch-settle", &folder);
    // A case that is there is never written over.
    let (code, _, talk) = export(&host, &home, &task);
    assert_eq!(code, 4, "{talk}");
}

#[test]
fn the_state_that_was_read_is_in_the_case_and_refusals_say_why() {
    let home = Home::new();
    home.drop_sample(sample("running-total"));
    let host = home.start();
    host.define_plain("totals");
    host.wait_for_plugin("running-total", "ready");
    let order = |amount: u64| json!({"kind": "book", "amount": amount}).to_string();
    let first = host.put("running-total", order(u64::MAX).as_bytes());
    let committed = host.record_of("running-total", &first);
    assert_eq!(committed["outcome"], "committed", "{committed}");
    let second = host.put("running-total", order(1).as_bytes());
    let record = host.record_of("running-total", &second);
    let task = record["id"].to_string();
    let (code, _, talk) = export(&host, &home, &task);
    assert_eq!(code, 0, "{talk}");
    let folder = home.path().join("cases").join(format!("task-{task}"));
    let input = json_of(&folder, "input.json");
    assert_eq!(input["messages"], json!([{"text": order(1)}]));
    let total = json!({"total.book": {"text": u64::MAX.to_string()}});
    assert_eq!(input["state"], total);
    let expected = json_of(&folder, "expected.json");
    assert_eq!(expected["messages"][0]["outcome"], "rejected");
    assert_eq!(expected["state"], total);
    reproduces(&host, "running-total", &folder);

    let (code, _, talk) = export(&host, &home, &committed["id"].to_string());
    assert_eq!(code, 4, "{talk}");
    assert!(talk.contains("has nothing to export"), "{talk}");
    let (code, _, talk) = export(&host, &home, "4711");
    assert_eq!(code, 3, "{talk}");

    // Kept in memory: a restart loses it, and says so.
    assert_eq!(host.stop(), 0);
    let host = home.start();
    std::fs::remove_dir_all(&folder).expect("removed");
    let (code, _, talk) = export(&host, &home, &task);
    assert_eq!(code, 4, "{talk}");
    assert!(talk.contains("has no kept unit"), "{talk}");
}
