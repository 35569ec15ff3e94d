//! The samples in JavaScript, TypeScript and Python: built, dropped, judged by the shared cases.

use serde_json::Value;

use super::cases::{MOST_MEMORY, shared, suite};
use super::project::{Project, build, has, large_plugin};
use crate::host::{Home, Host};
use crate::work::{outcome_of, sample, task};

/// Messages that another queue must be through while a large component compiles.
const MEANWHILE: usize = 20;

/// Plays every shared case of `route-orders` in a host, whose sample is ready, and with no host.
fn routes_orders(host: &Host, project: &Project) {
    for case in shared("route-orders") {
        case.play(host, MOST_MEMORY);
    }
    host.wait_for_capacity();
    project.passes(&suite("route-orders"));
}

fn check(folder: &str, tools: &[&str]) {
    if !has(tools) {
        return;
    }
    let project = build(folder);
    let home = Home::new();
    project.drop_into(&home);
    let host = home.start();
    large_plugin(&host, "route-orders");
    routes_orders(&host, &project);
}

#[test]
fn the_javascript_sample_routes_orders() {
    check("javascript/route-orders", &["npm", "componentize-qjs"]);
}

#[test]
fn the_typescript_sample_routes_orders() {
    let tools = ["npm", "tsc", "componentize-qjs"];
    check("typescript/route-orders", &tools);
}

/// A fact about a plugin, by its name.
fn fact(view: &Value, name: &str) -> String {
    let facts = view["facts"].as_array().expect("facts");
    let found = facts.iter().find(|fact| fact[0] == name);
    let text = found.and_then(|fact| fact[1].as_str());
    text.unwrap_or_else(|| panic!("no {name} in {view}"))
        .to_owned()
}

/// Puts one message to `echo` and waits until it is committed.
fn echoes(host: &Host) {
    let id = host.put("echo", b"hello");
    let record = host.record_of("echo", &id);
    assert_eq!(outcome_of(&record, &id), "committed", "{record}");
    assert!(task(&record) > 0);
}

#[test]
fn the_python_sample_routes_orders_and_compiles_off_the_delivery_path() {
    if !has(&["componentize-py"]) {
        return;
    }
    let project = build("python/route-orders");
    let size = project.component.metadata().expect("the component").len();
    assert!(size > 10 << 20, "{size} bytes");
    let home = Home::new();
    home.drop_sample(sample("echo"));
    let host = home.start();
    host.define_plain("echo.out");
    host.wait_for_plugin("echo", "ready");
    echoes(&host);

    // Another queue's messages are committed while the large component compiles.
    project.drop_into(&home);
    let view = host.wait_for_plugin("route-orders", "compiling");
    assert_eq!(view["digest"], Value::Null, "nothing serves yet");
    for done in 0..MEANWHILE {
        echoes(&host);
        let state = host.get("/v1/plugins/route-orders").expect(200).json()["state"].clone();
        assert_eq!(state, "compiling", "ready after {done} messages");
    }
    let view = large_plugin(&host, "route-orders");
    let first = fact(&view, "compiled");
    assert!(first.starts_with("in "), "{first}");
    routes_orders(&host, &project);

    // A second start takes what the first one compiled.
    assert_eq!(host.stop(), 0);
    let host = home.start();
    let view = host.wait_for_plugin("route-orders", "ready");
    assert_eq!(fact(&view, "compiled"), "before, from the cache");
    let invoice = r#"{"order":"o-1","kind":"invoice","amount":12.5}"#;
    let id = host.put("orders", invoice.as_bytes());
    let record = host.record_of("orders", &id);
    assert_eq!(outcome_of(&record, &id), "committed", "{record}");
    eprintln!("python: {size} bytes, compiled {first}");
}
