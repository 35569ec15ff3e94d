//! The shapes of `wasi:http` and of Spin's SQS trigger as text, and what is said of others.

use oncue_core::definition::Style;

use super::super::reading;
use super::{Judgement, judge};

/// A component that exports an interface `name` with `function` of the type `(func TYPE)`.
fn http(name: &str, function: &str, shape: &str) -> Vec<u8> {
    let text = format!(
        r#"(component
  (import "wasi:http/types@0.2.3" (instance $types
    (export "incoming-request" (type (sub resource)))
    (export "response-outparam" (type (sub resource)))))
  (alias export $types "incoming-request" (type $request))
  (alias export $types "response-outparam" (type $out))
  (core module $m (memory (export "memory") 1)
    (func (export "two") (param i32 i32) unreachable)
    (func (export "one") (param i32) unreachable)
    (func (export "answers") (param i32 i32) (result i32) unreachable))
  (core instance $i (instantiate $m))
  {shape}
  (instance $e (export "{function}" (func $handle)))
  (export "{name}" (instance $e)))"#
    );
    wat::parse_str(text).expect("the text is a component")
}

const HANDLE: &str = r#"(func $handle (param "request" (own $request))
    (param "response-out" (own $out)) (canon lift (core func $i "two")))"#;

/// A component that exports a function `name` by itself, with these cases of what it answers.
fn sqs(name: &str, version: &str, body: &str, actions: &str, more: &str) -> Vec<u8> {
    let text = format!(
        r#"(component {more}
  (import "fermyon:spin-sqs/sqs-types@{version}" (instance $types
    (type $v (variant (case "str" string) (case "binary" (list u8))))
    (export "message-attribute-value" (type $value (eq $v)))
    (type $a (record (field "name" string) (field "data-type" (option string))
      (field "value" $value)))
    (export "message-attribute" (type $attribute (eq $a)))
    (type $m (record (field "id" (option string))
      (field "message-attributes" (list $attribute)) (field "body" {body})))
    (export "message" (type (eq $m)))
    (type $e (variant (case "other" string)))
    (export "error" (type (eq $e)))
    (type $act (enum {actions}))
    (export "message-action" (type (eq $act)))))
  (alias export $types "message" (type $message-shape))
  (alias export $types "error" (type $error-shape))
  (alias export $types "message-action" (type $action-shape))
  (import "message" (type $message (eq $message-shape)))
  (import "message-action" (type $action (eq $action-shape)))
  (import "error" (type $error (eq $error-shape)))
  (core module $code
    (memory (export "memory") 1)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) unreachable)
    (func (export "f") (param i32 i32 i32 i32 i32 i32 i32 i32) (result i32) unreachable)
    (func (export "g") (param i32 i32 i32 i32 i32 i32 i32) (result i32) unreachable))
  (core instance $i (instantiate $code))
  (func $handle (param "message" $message) (result (result $action (error $error)))
    (canon lift (core func $i "{core}") (memory (core memory $i "memory"))
      (realloc (core func $i "realloc"))))
  (export "{name}" (func $handle)))"#,
        core = if body.starts_with("(option") {
            "f"
        } else {
            "g"
        },
    );
    wat::parse_str(text).expect("the text is a component")
}

const TEXT: &str = "(option string)";
const ACTIONS: &str = r#""delete" "leave""#;

fn judged(bytes: &[u8]) -> Result<Judgement, String> {
    let interfaces = reading::read(bytes, "x.wasm")?;
    judge(&interfaces, Style::Auto, "x.wasm")
}

fn fits(bytes: &[u8], style: Style, why: &str) {
    let judgement = judged(bytes).expect("it fits");
    assert_eq!(judgement.style, style);
    assert_eq!(judgement.why, why);
}

/// Demands a refusal that has all the parts and ends with the code.
fn check(bytes: &[u8], parts: &[&str], code: &str) {
    let refusal = judged(bytes).expect_err("refused");
    assert!(refusal.ends_with(&format!("[{code}]")), "{refusal}");
    for part in parts {
        assert!(refusal.contains(part), "{refusal}\nlacks {part}");
    }
}

#[test]
fn both_shapes_are_known_by_their_exports() {
    for version in ["0.2.0", "0.2.3", "0.2.12"] {
        let name = format!("wasi:http/incoming-handler@{version}");
        let why = "exports wasi:http/incoming-handler@0.2.0";
        fits(&http(&name, "handle", HANDLE), Style::WasiHttp, why);
    }
    let spin = sqs("handle-queue-message", "2.0.0", TEXT, ACTIONS, "");
    fits(&spin, Style::SpinSqs, "exports handle-queue-message");
}

#[test]
fn a63_another_version_of_wasi_http_is_told_what_is_known() {
    check(
        &http("wasi:http/incoming-handler@0.3.0", "handle", HANDLE),
        &[
            "exports wasi:http/incoming-handler@0.3.0; the nearest world is wasi:http/proxy",
            "its version is 0.3.0, and this host knows 0.2",
        ],
        "wrong-world",
    );
    check(
        &http(
            "wasi:http/incoming-handler@0.2.0-rc-2023-11-10",
            "handle",
            HANDLE,
        ),
        &["its version is 0.2.0-rc-2023-11-10"],
        "wrong-world",
    );
}

#[test]
fn a63_another_type_of_wasi_http_is_told_what_differs() {
    let name = "wasi:http/incoming-handler@0.2.3";
    let one = r#"(func $handle (param "request" (own $request))
        (canon lift (core func $i "one")))"#;
    check(
        &http(name, "handle", one),
        &["its function handle takes 1 parameters instead of 2"],
        "wrong-world",
    );
    let answers = r#"(func $handle (param "request" (own $request))
        (param "response-out" (own $out)) (result u32) (canon lift (core func $i "answers")))"#;
    check(
        &http(name, "handle", answers),
        &["its function handle answers u32 instead of nothing"],
        "wrong-world",
    );
    let other = r#"(func $handle (param "request" (own $out))
        (param "response-out" (own $out)) (canon lift (core func $i "two")))"#;
    check(
        &http(name, "handle", other),
        &["takes \"request\" that is own<response-outparam> instead of own<incoming-request>"],
        "wrong-world",
    );
    check(
        &http(name, "process", HANDLE),
        &["it lacks the function handle"],
        "wrong-world",
    );
    check(
        &http("acme:http/incoming-handler@0.2.3", "handle", HANDLE),
        &["its package is acme:http instead of wasi:http"],
        "wrong-world",
    );
}

#[test]
fn a63_another_type_of_spin_sqs_is_told_what_differs() {
    let near = "the nearest world is fermyon:spin-sqs/spin-sqs, which exports handle-queue-message";
    let name = "handle-queue-message";
    check(
        &sqs(name, "2.0.0", "string", ACTIONS, ""),
        &[
            near,
            "takes \"message\" whose field \"body\" is string instead of an option",
        ],
        "wrong-world",
    );
    check(
        &sqs(name, "2.0.0", TEXT, r#""delete" "keep""#, ""),
        &[
            near,
            "answers a value whose ok has names keep instead of leave",
        ],
        "wrong-world",
    );
    check(
        &sqs("handle-queue-mesage", "2.0.0", TEXT, ACTIONS, ""),
        &[near, "it has handle-queue-mesage in its place; rename it"],
        "wrong-world",
    );
    // Types have no version at run time: what fits is called.
    fits(
        &sqs(name, "3.0.0", TEXT, ACTIONS, ""),
        Style::SpinSqs,
        "exports handle-queue-message",
    );
}

#[test]
fn a61_an_unknown_import_of_a_borrowed_shape_is_named() {
    let import = r#"(import "fermyon:spin/sqlite@2.0.0" (instance (export "open" (func))))"#;
    check(
        &sqs("handle-queue-message", "2.0.0", TEXT, ACTIONS, import),
        &["imports fermyon:spin/sqlite@2.0.0,"],
        "plugin-refused",
    );
    let import = r#"(import "wasi:http/incoming-handler@0.2.3" (instance (export "f" (func))))"#;
    let shape = format!("{import} {HANDLE}");
    check(
        &http("wasi:http/incoming-handler@0.2.3", "handle", &shape),
        &[
            "imports wasi:http/incoming-handler@0.2.3,",
            "it offers wasi:http 0.2 (types, outgoing-handler)",
        ],
        "plugin-refused",
    );
}
