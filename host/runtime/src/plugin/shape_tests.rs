//! Components as text, and what is said of them.

use oncue_core::definition::Style;

use super::super::reading;
use super::judge;

/// The types of `oncue:handler/types` that a handler's export needs.
const TYPES: &str = r#"
  (import "oncue:handler/types@0.1.0" (instance $types
    (export "message" (type (sub resource)))
    (type $retry (record (field "reason" string) (field "after" (option u64))))
    (export "retry" (type $r (eq $retry)))
    (type $failure (variant (case "retry" $r) (case "reject" string) (case "defer" u64)))
    (export "failure" (type (eq $failure)))
  ))
  (alias export $types "message" (type $message))
  (alias export $types "failure" (type $failure))
"#;

/// A component that exports an interface `name` with `handle` of the type `(func TYPE)`. It would
/// trap if it were called; it is never run.
pub(crate) fn handler(name: &str, function: &str) -> Vec<u8> {
    wat::parse_str(handler_text(name, function)).expect("the text is a component")
}

/// The same as text.
pub(crate) fn handler_text(name: &str, function: &str) -> String {
    // Every string takes two core values, everything else that is used here one.
    let parameters = function.split("(result").next().unwrap_or_default();
    let flat = match (parameters.contains("string"), parameters.contains("param")) {
        (true, _) => "i32 i32",
        (false, true) => "i32",
        (false, false) => "",
    };
    format!(
        r#"(component {TYPES}
  (core module $m
    (memory (export "memory") 1)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) unreachable)
    (func (export "f") (param {flat}) (result i32) unreachable))
  (core instance $i (instantiate $m))
  (type $f (func {function}))
  (func $handle (type $f) (canon lift (core func $i "f")
    (memory (core memory $i "memory")) (realloc (core func $i "realloc"))))
  (instance $e (export "handle" (func $handle)))
  (export "{name}" (instance $e)))"#
    )
}

pub(super) fn component(body: &str) -> Vec<u8> {
    wat::parse_str(format!("(component {body})")).expect("the text is a component")
}

pub(super) const ON_MESSAGE: &str =
    r#"(param "message" (borrow $message)) (result (result (error $failure)))"#;

pub(super) fn style_of(bytes: &[u8], wanted: Style) -> Result<Style, String> {
    let interfaces = reading::read(bytes, "orders.wasm")?;
    judge(&interfaces, wanted, "orders.wasm").map(|judgement| judgement.style)
}

/// Demands a refusal that names the file, has all the parts, and ends with the code.
pub(super) fn check(bytes: &[u8], parts: &[&str], code: &str) {
    let refusal = style_of(bytes, Style::Auto).expect_err("refused");
    assert!(refusal.starts_with("\"orders.wasm\" "), "{refusal}");
    assert!(refusal.ends_with(&format!("[{code}]")), "{refusal}");
    for part in parts {
        assert!(refusal.contains(part), "{refusal}\nlacks {part}");
    }
}

#[test]
fn a_message_handler_is_known_by_its_export() {
    let bytes = handler("oncue:handler/on-message@0.1.0", ON_MESSAGE);
    assert_eq!(style_of(&bytes, Style::Auto), Ok(Style::Message));
    assert_eq!(style_of(&bytes, Style::Message), Ok(Style::Message));
    let patched = handler("oncue:handler/on-message@0.1.7", ON_MESSAGE);
    assert_eq!(style_of(&patched, Style::Auto), Ok(Style::Message));
    let refusal = style_of(&bytes, Style::Trigger).expect_err("another style is asked for");
    assert!(refusal.contains("asks for style \"trigger\""), "{refusal}");
}

/// A program: a component that exports `wasi:cli/run`, with more beside it.
fn program(version: &str, function: &str, beside: &str) -> Vec<u8> {
    let text = format!(
        r#"(component
  (core module $m (memory (export "memory") 1)
    (func (export "run") (result i32) unreachable)
    (func (export "add") (param i32) (result i32) unreachable))
  (core instance $i (instantiate $m))
  (type $f (func {function}))
  (func $run (type $f) (canon lift (core func $i "{}") (memory (core memory $i "memory"))))
  (instance $e (export "run" (func $run)))
  (export "wasi:cli/run@{version}" (instance $e)) {beside})"#,
        if function.contains("param") {
            "add"
        } else {
            "run"
        }
    );
    wat::parse_str(text).expect("the text is a component")
}

#[test]
fn a_program_is_known_by_run_of_any_patch() {
    for version in ["0.2.0", "0.2.6", "0.2.12"] {
        let bytes = program(version, "(result (result))", "");
        assert_eq!(
            style_of(&bytes, Style::Auto),
            Ok(Style::Command),
            "{version}"
        );
        assert_eq!(style_of(&bytes, Style::Command), Ok(Style::Command));
    }
}

#[test]
fn a63_what_a_program_lacks_is_named() {
    let near = "the nearest world is command, which exports wasi:cli/run@0.2.0";
    check(
        &program("0.3.0", "(result (result))", ""),
        &["exports wasi:cli/run@0.3.0", near, "version is 0.3.0"],
        "wrong-world",
    );
    check(
        &program("0.2.6", r#"(param "x" u32) (result (result))"#, ""),
        &[near, "its function run takes 1 parameters instead of 0"],
        "wrong-world",
    );
}

#[test]
fn a_handler_that_is_a_program_too_is_a_handler_and_says_so() {
    let text = handler_text("oncue:handler/on-message@0.1.0", ON_MESSAGE);
    let end = text.rfind(')').expect("a component");
    let both = format!(
        r#"{}
  (core module $p (func (export "run") (result i32) unreachable))
  (core instance $pi (instantiate $p))
  (func $run (result (result)) (canon lift (core func $pi "run")))
  (instance $re (export "run" (func $run)))
  (export "wasi:cli/run@0.2.6" (instance $re)))"#,
        &text[..end]
    );
    let bytes = wat::parse_str(both).expect("the text is a component");
    let interfaces = reading::read(&bytes, "orders.wasm").expect("read");
    let judged = judge(&interfaces, Style::Auto, "orders.wasm").expect("a handler");
    assert_eq!(judged.style, Style::Message);
    let warning = judged.warning.expect("a warning");
    let other = "set style = \"command\" in its manifest for another";
    assert!(warning.contains(other), "{warning}");
    assert_eq!(style_of(&bytes, Style::Command), Ok(Style::Command));
}

#[test]
fn a61_what_is_no_component_is_refused_with_the_reason() {
    let whole = handler("oncue:handler/on-message@0.1.0", ON_MESSAGE);
    check(b"", &["is empty"], "plugin-refused");
    check(b"#!/bin/sh\n", &["is not WebAssembly"], "plugin-refused");
    check(
        b"\x7fELF\x02\x01\x01\x00",
        &["compiled object"],
        "plugin-refused",
    );
    check(b"\0asm", &["is truncated at 4 bytes"], "plugin-refused");
    check(
        &whole[..whole.len() / 2],
        &["is truncated at"],
        "plugin-refused",
    );
    check(
        &whole[..8],
        &["exports nothing", "no exports at all"],
        "wrong-world",
    );
    let core = wat::parse_str("(module (func (export \"run\")))").expect("a module");
    check(
        &core,
        &["is a core module", "oncue plugin componentize"],
        "plugin-refused",
    );
    let mut damaged = whole.clone();
    damaged[9] = 0xff;
    let refusal = style_of(&damaged, Style::Auto).expect_err("damaged");
    assert!(refusal.starts_with("\"orders.wasm\" is "), "{refusal}");
}

#[test]
fn a61_an_unknown_import_is_named() {
    // None of them exports anything either: that is the second fault.
    let import = r#"(import "acme:db/query@1.0.0" (instance (export "run" (func))))"#;
    check(
        &component(import),
        &[
            "imports acme:db/query@1.0.0,",
            "compose the component",
            "[plugin-refused]; also ",
        ],
        "wrong-world",
    );
    let http = r#"(import "wasi:http/handler@0.3.0" (instance (export "f" (func))))"#;
    check(
        &component(http),
        &[
            "wasi:http/handler@0.3.0",
            "offers wasi:http 0.2 (types, outgoing-handler)",
        ],
        "wrong-world",
    );
    let newer = r#"(import "oncue:handler/queues@0.2.0" (instance (export "f" (func))))"#;
    check(
        &component(newer),
        &["queues@0.2.0", "oncue:handler@0.1"],
        "wrong-world",
    );
    let draft = r#"(import "wasi:keyvalue/store@0.2.0-draft3" (instance (export "f" (func))))"#;
    check(
        &component(draft),
        &["offers wasi:keyvalue 0.2.0-draft2 (store, atomics, batch) and 0.2.0-draft (store,"],
        "wrong-world",
    );
}

#[test]
fn offered_imports_and_types_alone_pass() {
    let imports = r#"
      (import "wasi:io/poll@0.2.99" (instance (export "f" (func))))
      (import "wasi:config/store@0.2.0-rc.1" (instance (export "f" (func))))
      (import "wasi:config/runtime@0.2.0-draft" (instance (export "f" (func))))
      (import "wasi:logging/logging" (instance (export "f" (func))))
      (import "wasi:keyvalue/batch@0.2.0-draft" (instance (export "f" (func))))
      (import "acme:types/units@1.0.0" (instance (type $t u64) (export "t" (type (eq $t)))))"#;
    check(&component(imports), &["exports nothing"], "wrong-world");
}

#[test]
fn a63_the_sentence_names_the_exports_the_nearest_world_and_the_difference() {
    let near = "the nearest world is message-handler, which exports oncue:handler/on-message@0.1.0";
    check(
        &handler("demo:host/on-message@0.1.0", ON_MESSAGE),
        &[
            "exports demo:host/on-message@0.1.0",
            near,
            "package is demo:host instead of",
        ],
        "wrong-world",
    );
    check(
        &handler("oncue:handler/on-message@0.2.0", ON_MESSAGE),
        &[
            "exports oncue:handler/on-message@0.2.0",
            near,
            "version is 0.2.0",
        ],
        "wrong-world",
    );
    check(
        &handler(
            "oncue:handler/on-message@0.1.0",
            r#"(param "body" string) (result string)"#,
        ),
        &[
            near,
            "handle takes \"message\" that is string instead of borrow<message>",
        ],
        "wrong-world",
    );
    check(
        &handler(
            "oncue:handler/on-trigger@0.1.0",
            r#"(param "message" (borrow $message)) (result (result (error $failure)))"#,
        ),
        &[
            "world is trigger-handler",
            "borrow<message> instead of a record",
        ],
        "wrong-world",
    );
    check(
        &handler("acme:x/on-mesage@1.0.0", ON_MESSAGE),
        &[near, "it has acme:x/on-mesage@1.0.0 in its place"],
        "wrong-world",
    );
    check(
        &handler("acme:calculator/add@1.0.0", ON_MESSAGE),
        &[
            "exports acme:calculator/add@1.0.0",
            near,
            "none of its exports is a handler",
        ],
        "wrong-world",
    );
}

#[test]
fn a63_imports_and_world_are_told_at_once_with_a_cure_for_each() {
    let mut text = handler_text("oncue:handler/on-message@0.9.0", ON_MESSAGE);
    let imports = r#"(import "acme:bank/pay@1.0.0" (instance (export "pay" (func))))
      (import "acme:bank/loan@1.0.0" (instance (export "get" (func))))
      (import "oncue:handler/queues@0.9.0" (instance (export "put" (func))))"#;
    text = text.replacen("(component", &format!("(component {imports}"), 1);
    let bytes = wat::parse_str(text).expect("the text is a component");
    check(
        &bytes,
        &[
            "acme:bank/pay@1.0.0, acme:bank/loan@1.0.0, oncue:handler/queues@0.9.0",
            "remove the import, or compose",
            "build it against oncue:handler@0.1 [plugin-refused]; also ",
            "its version is 0.9.0, and this host knows 0.1",
        ],
        "wrong-world",
    );
}
