//! What waits for a component, and what happens when it is there: nothing else is needed.

use serde_json::{Value, json};

use super::{MANIFEST, digest, handles, host_with_version_1, serves, version};
use crate::host::{Home, Host};
use crate::wait::until;
use crate::work::sample;

/// Waits for a reason to hold; demands that `explain` names it as the one that decides.
fn held(host: &Host, queue: &str, reason: &str) -> Value {
    let mut explained = Value::Null;
    until(&format!("{queue} to be held: {reason}"), || {
        explained = host.explain(queue);
        explained["reason"] == reason
    });
    let conditions = explained["conditions"].as_array().unwrap();
    let deciding = conditions
        .iter()
        .filter(|condition| condition["decides"] == true);
    assert_eq!(deciding.count(), 1, "{explained}");
    explained
}

#[test]
fn a34_a80_a_missing_component_holds_the_queue_until_it_is_there() {
    let home = Home::new();
    let host = home.start();
    host.define_plain("echo.out");
    home.write("p.toml", MANIFEST);
    host.wait_for_plugin("p", "missing");
    let id = host.put("p", b"waits");
    held(&host, "p", "component-missing");
    home.write("p.wasm", version(1));
    assert_eq!(host.record_of("p", &id)["outcome"], "committed");
}

#[test]
fn a34_a80_a_quarantined_component_holds_the_queue_until_it_is_cured() {
    let home = Home::new();
    let host = home.start();
    host.define_plain("echo.out");
    home.write("p.toml", MANIFEST);
    home.write("p.wasm", b"this is text");
    host.wait_for_plugin("p", "quarantined");
    let id = host.put("p", b"waits");
    let explained = held(&host, "p", "component-quarantined");
    assert!(
        explained["sentence"]
            .as_str()
            .unwrap()
            .contains("\"p.wasm\""),
        "{explained}"
    );
    home.write("p.wasm", version(1));
    assert_eq!(host.record_of("p", &id)["outcome"], "committed");
}

#[test]
fn a34_a80_a_component_that_compiles_holds_the_queue_until_it_is_ready() {
    let home = Home::new();
    // Components are compiled a few at a time: with this many, some have to wait for their turn.
    let names: Vec<String> = (0..24).map(|number| format!("p{number}")).collect();
    for (number, name) in (0..).zip(&names) {
        home.write(
            &format!("{name}.toml"),
            MANIFEST.replace("queue.p", &format!("queue.{name}")),
        );
        home.write(&format!("{name}.wasm"), version(number));
    }
    let host = home.start();
    host.define_plain("echo.out");
    let mut compiling = String::new();
    until("a plugin that compiles", || {
        let plugins = host.get("/v1/plugins").expect(200).json();
        let mut plugins = plugins["plugins"].as_array().unwrap().iter();
        let found = plugins.rfind(|it| it["state"] == "compiling");
        compiling = found.map_or(String::new(), |it| it["name"].as_str().unwrap().to_owned());
        found.is_some()
    });
    let id = host.put(&compiling, b"waits");
    held(&host, &compiling, "component-compiling");
    assert_eq!(host.record_of(&compiling, &id)["outcome"], "committed");
}

#[test]
fn a40_what_is_owed_starts_with_the_definition_of_its_own_time() {
    let (home, host) = host_with_version_1();
    let paused = |word: &str| {
        assert!(host.post(&format!("/v1/queues/p/{word}"), b"").status < 300);
    };
    paused("pause");
    let id = host.put("p", b"owed");
    held(&host, "p", "paused");
    home.write("p.wasm", version(2));
    until("the new version", || {
        super::plugin_view(&host, "p")["digest"] == digest(&version(2)).as_str()
    });
    paused("resume");
    let record = host.record_of("p", &id);
    assert_eq!(record["digest"], digest(&version(2)).as_str(), "{record}");
    assert_eq!(record["outcome"], "committed", "{record}");
    handles(&host, "p", &version(2));
}

#[test]
fn a40_an_operators_change_holds_from_the_next_start_and_over_reloads() {
    let home = Home::new();
    home.drop_sample(sample("spins"));
    let host = home.start();
    host.wait_for_plugin("spins", "ready");
    host.trigger("spins", false);
    let id = host.put("spins", b"round");
    held(&host, "spins", "trigger-off-by-operator");
    let alter = |attributes: Value| {
        let answer = host.send_json("PATCH", "/v1/processes/spins", &attributes);
        assert!(
            answer.status < 300,
            "{}",
            String::from_utf8_lossy(&answer.body)
        );
    };
    let burnt = |id: &str| {
        host.record_of("spins", id)["detail"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    alter(json!({"fuel": "7 M"}));
    host.trigger("spins", true);
    assert!(burnt(&id).contains("7 M of 7 M"), "{}", burnt(&id));
    // A reload brings another base; what the operator said still wins, until it is reset.
    home.drop_as(
        "spins",
        sample("spins"),
        &[("fuel = \"20 M\"", "fuel = \"9 M\"")],
    );
    until("the reload", || {
        let process = host.get("/v1/processes/spins").expect(200).json();
        process["attributes"]["memory"] == "8 MiB" && host.log().matches("\"ready\"").count() > 1
    });
    let id = host.put("spins", b"round");
    assert!(burnt(&id).contains("7 M of 7 M"), "{}", burnt(&id));
    alter(json!({"fuel": null}));
    let id = host.put("spins", b"round");
    assert!(burnt(&id).contains("9 M of 9 M"), "{}", burnt(&id));
}

#[test]
fn a65_one_component_with_no_manifest_serves_the_queue_of_its_name() {
    let home = Home::new();
    let host = home.start();
    host.define_plain("echo.out");
    home.write("p.wasm", version(1));
    host.wait_for_plugin("p", "ready");
    assert_eq!(host.queue("p")["attributes"]["process"], "p");
    // It may put nowhere; with the grant beside it, it may.
    let id = host.put("p", b"hello");
    let record = host.record_of("p", &id);
    assert!(
        record["detail"].as_str().unwrap().contains("echo.out"),
        "{record}"
    );
    home.write("p.toml", MANIFEST);
    until("the grant", || {
        let process = host.get("/v1/processes/p").expect(200).json();
        process["attributes"]["grants"]["put"] == json!(["echo.out"])
    });
    serves(&host, "p", &version(1));
}
