//! Core modules: dropped in as compilers emit them, and made components on the command line.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{digest, fixture, handles, plugin_view, quarantined, serves};
use crate::host::Home;

/// A handler by hand, which no other tool has touched.
const HANDLER: &str = r#"(module
  (import "oncue:handler/types@0.1.0" "[resource-drop]message" (func $drop (param i32)))
  (memory (export "memory") 1)
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) i32.const 1024)
  (func (export "oncue:handler/on-message@0.1.0#handle") (param i32) (result i32)
    (call $drop (local.get 0))
    i32.const 16))"#;

/// Runs the command line with no host; answers exit code, standard output, standard error.
pub(super) fn alone(folder: &Path, line: &str) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_oncue"))
        .args(line.split_whitespace())
        .current_dir(folder)
        .env("ONCUE_URL", "http://127.0.0.1:1")
        .output()
        .expect("the binary runs");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (
        output.status.code().unwrap_or(-1),
        text(output.stdout),
        text(output.stderr),
    )
}

/// Demands how a command ends, and these words of it.
pub(super) fn check(folder: &Path, line: &str, code: i32, words: &[&str]) {
    let (got, said, error) = alone(folder, line);
    assert_eq!(got, code, "{line}: {said}{error}");
    for word in words {
        let is_said = said.contains(word) || error.contains(word);
        assert!(is_said, "{line}: no {word:?} in {said}{error}");
    }
}

fn adapted(home: &Home) -> PathBuf {
    let files = fs::read_dir(home.data().join("plugins-cache")).expect("the cache is read");
    let mut paths = files.map(|entry| entry.expect("an entry").path());
    let is_it = |path: &PathBuf| path.extension().is_some_and(|it| it == "adapted");
    paths.find(is_it).expect("the component that was made")
}

#[test]
fn a_core_module_serves_as_it_is_and_is_made_a_component_once() {
    let home = Home::new();
    let module = fixture("c-handler.wasm");
    home.write("p.wasm", &module);
    let host = home.start();
    serves(&host, "p", &module);
    let view = plugin_view(&host, "p");
    assert!(
        view["facts"].to_string().contains("a core module"),
        "{view}"
    );
    let path = adapted(&home);
    let made = fs::metadata(&path).expect("there").ino();
    assert_eq!(host.stop(), 0);

    let host = home.start();
    serves(&host, "p", &module);
    let view = plugin_view(&host, "p");
    assert!(
        view["facts"].to_string().contains("from the cache"),
        "{view}"
    );
    assert_eq!(
        fs::metadata(&path).expect("there").ino(),
        made,
        "made again"
    );
    let log = host.log();
    assert!(!log.contains("WARN") && !log.contains("ERROR"), "{log}");
}

#[test]
fn a61_a_bad_module_over_a_good_one_is_told_what_it_lacks() {
    let home = Home::new();
    let module = fixture("c-handler.wasm");
    home.write("p.wasm", &module);
    let host = home.start();
    serves(&host, "p", &module);
    // An import of another name: nobody has that function.
    let mut bad = module.clone();
    let at = bad.windows(11).position(|part| part == b"sched_yield");
    bad[at.expect("the import")] = b'x';
    home.write("p.wasm", &bad);
    let reason = quarantined(&host, "p");
    for word in [
        "\"p.wasm\": it imports",
        "wasi_snapshot_preview1 (xched_yield)",
    ] {
        assert!(reason.contains(word), "{reason}");
    }
    assert_eq!(plugin_view(&host, "p")["digest"], digest(&module).as_str());
    handles(&host, "p", &module);
}

#[test]
fn a_module_by_hand_becomes_a_plugin_with_no_other_tool() {
    let home = Home::new();
    fs::write(home.path().join("hand.wat"), HANDLER).expect("written");
    let folder = home.path();
    check(
        folder,
        "plugin componentize hand.wat --world message-handler -O plugins/p.wasm",
        0,
        &[
            "\"plugins/p.wasm\"",
            "message style",
            "exports oncue:handler/on-message@0.1.0",
        ],
    );
    check(
        folder,
        "plugin check plugins",
        0,
        &["ok    p", "message-handler"],
    );
    // With packages of one's own, which begin as those of the host.
    check(folder, "wit project/wit", 0, &["project/wit"]);
    let mine = "package oncue:handler@0.1.0;\nworld mine { export on-message; }\n";
    fs::write(folder.join("project/wit/mine.wit"), mine).expect("written");
    let line = "plugin componentize hand.wat --wit project/wit --world mine -o json";
    let (code, said, error) = alone(folder, line);
    assert_eq!(code, 0, "{error}");
    let told: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(told["file"], "hand.component.wasm", "{said}");
    assert_eq!(told["style"], "message", "{said}");
    assert!(folder.join("hand.component.wasm").is_file());

    let host = home.start();
    let component = fs::read(home.plugins().join("p.wasm")).expect("it reads");
    serves(&host, "p", &component);
}

#[test]
fn a63_what_cannot_be_made_a_component_is_told_in_the_authors_words() {
    let home = Home::new();
    let folder = home.path();
    let write = |name: &str, text: &[u8]| fs::write(folder.join(name), text).expect("written");
    write("hand.wat", HANDLER.as_bytes());
    write("text.wasm", b"this is text");
    write("core.wasm", &fixture("core-module.wasm"));
    write("short.wat", HANDLER.replace("#handle", "#run").as_bytes());
    write("spelt.wat", b"(module (fun))");
    let made = "was not made a component";
    let check = |line: &str, code: i32, words: &[&str]| {
        check(folder, &format!("plugin componentize {line}"), code, words);
    };
    check("none.wasm", 3, &["\"none.wasm\" is not there"]);
    check("text.wasm", 4, &[made, "is not WebAssembly"]);
    let over = "hand.wat --world message-handler -O ./hand.wat";
    check(over, 4, &["./hand.wat", "is what it is made of"]);
    let kept = fs::read(folder.join("hand.wat")).expect("it reads");
    assert_eq!(kept, HANDLER.as_bytes());
    check("core.wasm", 4, &[made, "_start", "--world message-handler"]);
    check(
        "hand.wat",
        4,
        &[made, "nor an embedded world", "on-message"],
    );
    let lacks = "does not export oncue:handler/on-message@0.1.0#handle";
    check("short.wat --world message-handler", 4, &[made, lacks]);
    check("spelt.wat", 4, &["spelt.wat:1:10", "expected"]);
    check(
        "hand.wat --world nobodys",
        4,
        &["no world \"nobodys\"", "trigger-handler"],
    );
    check("hand.wat --wit .", 2, &["--world"]);
    check(
        "hand.wat --world message-handler -O plugins",
        4,
        &["is there and not a file"],
    );
    check(
        "hand.wat --world message-handler -O none/p.wasm",
        1,
        &["cannot be written"],
    );
    assert!(
        fs::read_dir(home.plugins())
            .expect("a folder")
            .next()
            .is_none()
    );
}
