//! Modules as text: what becomes a component, and every refusal in its words.

use std::path::Path;

use oncue_core::definition::Style;

use super::super::componentize::{World, componentize, embed};
use super::super::{reading, shape};
use super::*;

/// A handler of the world `message-handler` as a compiler emits it.
pub(in super::super) const HANDLER: &str = r#"(module
  (import "oncue:handler/types@0.1.0" "[resource-drop]message" (func $drop (param i32)))
  (import "wasi_snapshot_preview1" "sched_yield" (func $yield (result i32)))
  (memory (export "memory") 1)
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) i32.const 1024)
  (func (export "oncue:handler/on-message@0.1.0#handle") (param i32) (result i32)
    (drop (call $yield))
    (call $drop (local.get 0))
    i32.const 16))"#;

/// A program that does nothing.
const PROGRAM: &str = r#"(module
  (import "wasi_snapshot_preview1" "fd_write"
    (func (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "_start")))"#;

fn wit() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit")
}

/// The module with a world of ours embedded.
pub(in super::super) fn with_world(text: &str, world: &str) -> Vec<u8> {
    let mut module = wat::parse_str(text).expect("a module");
    let wit = wit();
    let world = World {
        wit: &wit,
        name: world,
    };
    embed(&mut module, world).expect("embedded");
    module
}

/// Demands that a module is refused in these words.
fn check_refused(module: &[u8], parts: &[&str]) {
    let reason = adapt(module).expect_err("refused");
    for part in parts {
        assert!(reason.contains(part), "{reason}\nlacks: {part}");
    }
    assert!(reason.starts_with("it "), "{reason}");
    assert!(reason.ends_with("[plugin-refused]"), "{reason}");
    assert!(!reason.contains('\n'), "{reason}");
}

#[test]
fn a_module_with_a_world_becomes_what_the_world_says() {
    let component = adapt(&with_world(HANDLER, "message-handler")).expect("adapted");
    let interfaces = reading::read(&component, "orders.wasm").expect("a component");
    let judgement = shape::judge(&interfaces, Style::Auto, "orders.wasm").expect("a handler");
    assert_eq!(judgement.style, Style::Message);
}

#[test]
fn a_program_becomes_a_command() {
    let component = adapt(&wat::parse_str(PROGRAM).expect("a module")).expect("adapted");
    let interfaces = reading::read(&component, "orders.wasm").expect("a component");
    let mut exports = interfaces.exports.iter();
    assert!(exports.any(|export| export.name.starts_with("wasi:cli/run@0.2.")));
}

#[test]
fn a63_what_is_neither_is_told_what_it_has_and_what_to_do() {
    let module = r#"(module
      (import "env" "abort" (func))
      (memory (export "memory") 1)
      (func (export "add")))"#;
    check_refused(
        &wat::parse_str(module).expect("a module"),
        &[
            "neither a main function (_start) nor an embedded world",
            "it exports memory, add and imports env (abort)",
            "--world message-handler",
        ],
    );
    let handler = HANDLER.replace("on-message", "on-trigger");
    check_refused(
        &wat::parse_str(handler).expect("a module"),
        &["--world trigger-handler"],
    );
}

#[test]
fn a61_every_unknown_import_is_named_at_once() {
    let module = HANDLER.replace(
        "(memory (export",
        r#"(import "env" "abort" (func)) (import "env" "seed" (func (result f64)))
           (import "gojs" "runtime.nanotime1" (func (param i32)))
           (import "wasi_snapshot_preview1" "sock_open" (func (param i32)))
           (import "oncue:handler/payments@0.1.0" "pay" (func))
           (memory (export"#,
    );
    check_refused(
        &with_world(&module, "message-handler"),
        &[
            "env (abort, seed)",
            "gojs (runtime.nanotime1)",
            "wasi_snapshot_preview1 (sock_open)",
            "oncue:handler/payments@0.1.0 (pay)",
            "link it whole",
            "GOOS=wasip1",
        ],
    );
}

#[test]
fn a63_every_export_that_the_world_promises_and_the_module_lacks_is_named() {
    let module = HANDLER.replace("#handle", "#handler");
    check_refused(
        &with_world(&module, "message-handler"),
        &["does not export oncue:handler/on-message@0.1.0#handle"],
    );
    let module = HANDLER.replace(
        "(param i32) (result i32)\n    (drop",
        "(param i32 i32) (result i32)\n    (drop",
    );
    check_refused(
        &with_world(&module, "message-handler"),
        &["cannot be made a component", "bindings of its world"],
    );
}

#[test]
fn a61_what_is_no_whole_module_is_told_so() {
    let module = with_world(HANDLER, "message-handler");
    check_refused(&module[..module.len() - 9], &["is truncated at"]);
    let mut spoilt = module.clone();
    // The first section: types, of a kind that there is not.
    spoilt[11] = 0x13;
    check_refused(&spoilt, &["is not a valid module"]);
    // A section that says it is a world and is none.
    let mut other = wat::parse_str(PROGRAM).expect("a module");
    other.extend_from_slice(b"\x00\x10\x0ecomponent-type!");
    check_refused(&other, &["its embedded world cannot be read"]);
}

/// Demands what comes of a file on the command line: the style, or parts of a fault.
fn check_file(text: &[u8], file: &str, world: Option<&str>, wanted: Result<Option<&str>, &str>) {
    let wit = wit();
    let world = world.map(|name| World { wit: &wit, name });
    let made = componentize(text, file, world);
    match (made, wanted) {
        (Ok(made), Ok(style)) => assert_eq!(made.style.as_deref(), style, "{}", made.why),
        (Err(faults), Err(part)) => {
            assert!(
                faults.join("\n").contains(part),
                "{faults:?}, wanted {part}"
            );
        }
        (made, _) => panic!("{file}: {:?}", made.map(|made| made.why)),
    }
}

#[test]
fn modules_by_hand_need_no_other_tool() {
    let text = HANDLER.as_bytes();
    check_file(text, "a.wat", Some("message-handler"), Ok(Some("message")));
    let other = Some("message-handler-platform");
    check_file(text, "a.wat", other, Ok(Some("message")));
    check_file(text, "a.wat", None, Err("nor an embedded world"));
    check_file(
        text,
        "a.wat",
        Some("nobodys"),
        Err("it has imports, message-handler,"),
    );
    check_file(text, "a.wasm", None, Err("is not WebAssembly"));
    check_file(b"(module (", "a.wat", None, Err("a.wat:1:"));
    let component = shape::tests::handler("oncue:handler/on-message@0.1.0", "");
    check_file(&component, "a.wasm", None, Err("is a component already"));
}
