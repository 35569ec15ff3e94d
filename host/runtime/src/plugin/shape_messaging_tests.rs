//! The messaging shapes of other hosts as text, and what is said of those that differ.

use oncue_core::definition::Style;

use super::super::reading;
use super::judge;
use super::tests::{ON_MESSAGE, check, component, handler, style_of};

/// The types of the package that a borrowed handler's export needs.
fn message_types(package: &str) -> String {
    let (package, version) = package.split_once('@').expect("a version");
    format!(
        r#"(import "{package}/types@{version}" (instance $types
    (export "message" (type (sub resource)))
    (type $error (variant (case "timeout") (case "connection" string)
      (case "permission-denied" string) (case "other" string)))
    (export "error" (type (eq $error)))
  ))
  (alias export $types "message" (type $message))
  (alias export $types "error" (type $error))"#
    )
}

/// A component that exports `interface` with a function of the type `(func TYPE)` after some
/// definitions. It would trap if it were called; it is never run.
fn borrowed(definitions: &str, interface: &str, name: &str, function: &str) -> Vec<u8> {
    let flat = match (function.contains("$record"), function.contains("string")) {
        (true, _) => "i32 i32 i32 i32 i32 i32 i32",
        (false, true) if !function.contains("own") => "i32 i32",
        _ => "i32",
    };
    component(&format!(
        r#"{definitions}
  (core module $m
    (memory (export "memory") 1)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) unreachable)
    (func (export "f") (param {flat}) (result i32) unreachable))
  (core instance $i (instantiate $m))
  (type $f (func {function}))
  (func $handle (type $f) (canon lift (core func $i "f")
    (memory (core memory $i "memory")) (realloc (core func $i "realloc"))))
  (instance $e (export "{name}" (func $handle)))
  (export "{interface}" (instance $e))"#
    ))
}

/// The record of `wasmcloud:messaging/types@0.2.0`.
const BROKER: &str = r#"(import "wasmcloud:messaging/types@0.2.0" (instance $types
    (type $shape (record (field "subject" string) (field "body" (list u8))
      (field "reply-to" (option string))))
    (export "broker-message" (type (eq $shape)))
  ))
  (alias export $types "broker-message" (type $record))"#;
const HANDLE_BROKER: &str = r#"(param "msg" $record) (result (result (error string)))"#;
const HANDLE_OWN: &str = r#"(param "message" (own $message)) (result (result (error $error)))"#;

#[test]
fn the_shapes_of_other_hosts_are_known_by_their_exports() {
    let wasmcloud = |version: &str| {
        let interface = format!("wasmcloud:messaging/handler@{version}");
        borrowed(BROKER, &interface, "handle-message", HANDLE_BROKER)
    };
    for version in ["0.2.0", "0.2.1"] {
        let style = style_of(&wasmcloud(version), Style::Auto);
        assert_eq!(style, Ok(Style::WasmcloudMessaging), "{version}");
    }
    for package in ["wasi:messaging@0.2.0-draft", "wasmcloud:messaging@0.3.0"] {
        let interface = package.replace('@', "/incoming-handler@");
        let bytes = borrowed(&message_types(package), &interface, "handle", HANDLE_OWN);
        let style = style_of(&bytes, Style::Auto);
        assert_eq!(style, Ok(Style::WasiMessaging), "{package}");
    }
    let refusal = style_of(&wasmcloud("0.2.0"), Style::WasiMessaging).expect_err("not asked for");
    assert!(
        refusal.contains("which is the world wasmcloud-messaging"),
        "{refusal}"
    );
}

#[test]
fn a63_a_shape_of_another_host_in_another_version_or_type_is_told_apart() {
    let near = "the nearest world is wasmcloud-messaging, which exports \
                wasmcloud:messaging/handler@0.2.0";
    let wasmcloud = |version: &str, function: &str| {
        let interface = format!("wasmcloud:messaging/handler@{version}");
        borrowed(BROKER, &interface, "handle-message", function)
    };
    for version in ["0.1.0", "0.3.0"] {
        let parts = [
            near,
            &format!("exports wasmcloud:messaging/handler@{version};"),
            &format!("its version is {version}, and this host knows 0.2;"),
            "build it against wasmcloud:messaging@0.2",
        ];
        check(&wasmcloud(version, HANDLE_BROKER), &parts, "wrong-world");
    }
    let text = r#"(param "msg" string) (result (result (error string)))"#;
    let says = "handle-message takes \"msg\" that is string instead of a record";
    check(&wasmcloud("0.2.0", text), &[near, says], "wrong-world");
    let no_answer = r#"(param "msg" $record) (result string)"#;
    let says = "answers a value that is string instead of a result";
    check(&wasmcloud("0.2.0", no_answer), &[near, says], "wrong-world");
    let lacks = borrowed(
        BROKER,
        "wasmcloud:messaging/handler@0.2.0",
        "handle",
        HANDLE_BROKER,
    );
    let says = "it lacks the function handle-message";
    check(&lacks, &[near, says], "wrong-world");

    let near = "the nearest world is wasi-messaging, which exports \
                wasi:messaging/incoming-handler@0.2.0-draft";
    let wasi = |version: &str, function: &str| {
        let interface = format!("wasi:messaging/incoming-handler@{version}");
        let types = message_types("wasi:messaging@0.2.0-draft");
        borrowed(&types, &interface, "handle", function)
    };
    let says = "its version is 0.2.0, and this host knows 0.2.0-draft;";
    check(&wasi("0.2.0", HANDLE_OWN), &[near, says], "wrong-world");
    let lent = HANDLE_OWN.replace("own", "borrow");
    let says = "takes \"message\" that is borrow<message> instead of own<message>";
    check(&wasi("0.2.0-draft", &lent), &[near, says], "wrong-world");
}

#[test]
fn a61_what_other_hosts_offer_and_this_one_does_not_is_named() {
    let import = |name: &str| {
        let text = format!(r#"(import "{name}" (instance (export "f" (func))))"#);
        component(&text)
    };
    for (name, parts) in [
        (
            "wasmcloud:postgres/query@0.1.1-draft",
            &["compose the component"][..],
        ),
        (
            "wasmcloud:messaging/consumer@0.3.0",
            &[
                "it offers wasmcloud:messaging 0.2 (types, consumer)",
                "and 0.3.0 (types, producer, request-reply)",
            ],
        ),
        (
            "wasmcloud:messaging/consumer@0.1.0",
            &["it offers wasmcloud:messaging 0.2 (types, consumer)"],
        ),
        (
            "wasi:messaging/producer@0.3.0",
            &["it offers wasi:messaging 0.2.0-draft"],
        ),
    ] {
        let names = format!("imports {name},");
        let parts = [&[names.as_str()], parts].concat();
        let also = "[plugin-refused]; also ";
        check(
            &import(name),
            &[&parts[..], &[also]].concat(),
            "wrong-world",
        );
    }
}

#[test]
fn of_two_shapes_the_first_is_used_with_a_warning() {
    let wasmcloud = borrowed(
        BROKER,
        "wasmcloud:messaging/handler@0.2.0",
        "handle-message",
        HANDLE_BROKER,
    );
    let one = reading::read(&wasmcloud, "orders.wasm").expect("a component");
    let judgement = judge(&one, Style::Auto, "orders.wasm").expect("it fits");
    assert_eq!(judgement.warning, None);
    let message = handler("oncue:handler/on-message@0.1.0", ON_MESSAGE);
    let mut both = reading::read(&message, "orders.wasm").expect("a component");
    both.exports.splice(0..0, one.exports);
    let judgement = judge(&both, Style::Auto, "orders.wasm").expect("it fits");
    assert_eq!(judgement.style, Style::Message);
    assert_eq!(judgement.why, "exports oncue:handler/on-message@0.1.0");
    assert_eq!(
        judgement.warning.as_deref(),
        Some(
            "\"orders.wasm\" exports oncue:handler/on-message@0.1.0 and \
             wasmcloud:messaging/handler@0.2.0; the first is used, set style = \
             \"wasmcloud-messaging\" in its manifest for another"
        )
    );
    let chosen = judge(&both, Style::WasmcloudMessaging, "orders.wasm").expect("it fits");
    assert_eq!(
        (chosen.style, chosen.warning),
        (Style::WasmcloudMessaging, None)
    );
}
