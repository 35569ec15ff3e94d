//! Alarms and schedules of the real binary: over HTTP, on the command line, over a kill.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::host::{Home, Host, oncue};
use crate::ledger::browse;
use crate::wait::until;

/// Names of the alarms that are raised.
fn raised(host: &Host) -> Vec<String> {
    let view = host.get("/v1/alarms").expect(200).json();
    let alarms = view["alarms"].as_array().expect("a list").iter();
    alarms
        .map(|alarm| alarm["alarm"].as_str().expect("a name").to_owned())
        .collect()
}

#[test]
fn an_alarm_is_listed_logged_counted_and_over_when_its_cause_is() {
    let home = Home::new();
    let host = home.start();
    host.define(
        "q",
        json!({"trigger": "none", "max-depth": 1, "alarm-depth-high": "never"}),
    );
    host.put("q", b"one");
    assert_eq!(host.post("/v1/queues/q/messages", b"two").status, 429);
    until("the alarm", || raised(&host) == ["queue-full"]);
    let view = host.get("/v1/alarms").expect(200).json();
    let alarm = &view["alarms"][0];
    assert_eq!(
        (&alarm["queue"], &alarm["needs-a-person"]),
        (&json!("q"), &json!(false))
    );
    assert_eq!(host.get("/v1/status").expect(200).json()["alarms"], 1);
    let (code, json, _) = oncue(&host, &["alarms", "-o", "json"]);
    let printed: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((code, &printed), (0, &view));
    let (code, text, _) = oncue(&host, &["alarms"]);
    assert!(code == 0 && text.contains("queue-full"), "{text}");
    assert!(
        text.contains("queue \"q\" is full (depth 1 of 1)"),
        "{text}"
    );
    host.post("/v1/queues/q/clear", &[]).expect(200);
    until("its end", || raised(&host).is_empty());
    let (code, _, said) = oncue(&host, &["alarms"]);
    assert!(code == 0 && said.contains("no alarm is raised"), "{said}");
    let log = host.log();
    assert_eq!(log.matches("alarm=\"queue-full\"").count(), 2, "{log}");
}

/// The times of a queue's scheduled messages.
fn times(host: &Host) -> Vec<String> {
    let time = |message: &Value| {
        assert_eq!(message["put-by"], "oncue.schedule", "{message}");
        let properties = message["properties"].as_object().expect("properties");
        properties["oncue-schedule-time"]
            .as_str()
            .expect("a time")
            .to_owned()
    };
    browse(host, "q").iter().map(time).collect()
}

#[test]
fn a_scheduled_put_happens_once_over_kills() {
    let home = Home::new();
    let mut host = home.start();
    host.define(
        "q",
        json!({"trigger": "none", "schedule": "* * * * * * Europe/Berlin"}),
    );
    let (code, text, _) = oncue(&host, &["queue", "show", "q"]);
    assert!(code == 0 && text.contains("next-scheduled"), "{text}");
    for round in 1..=3 {
        let before = host.depth("q");
        until("two more puts", || host.depth("q") >= before + 2);
        let seen = times(&host);
        host.kill();
        host = home.start();
        let after = times(&host);
        assert!(after.len() >= seen.len(), "{round}: nothing is lost");
        let once: BTreeSet<_> = after.iter().collect();
        assert_eq!(once.len(), after.len(), "{round}: {after:?}");
    }
    let refused = host.send_json("PATCH", "/v1/queues/q", &json!({"schedule": "0 0 30 2 *"}));
    let refused = refused.expect(422).json();
    assert!(refused.to_string().contains("never comes"), "{refused}");
}
