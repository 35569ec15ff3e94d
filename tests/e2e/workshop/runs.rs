//! One-shot runs: what is shown, and how they end.

use super::*;

const ORDER: &str = r#"{"kind":"invoice","amount":12}"#;

#[test]
fn a_run_shows_outcome_puts_state_and_cost() {
    let plugin = sample("running-total").component;
    let state = "total.invoice=30";
    let run = ["run", plugin, "--text", ORDER, "--state", state];
    let words = [
        "plugin \"running-total\": committed",
        "{\"kind\":\"invoice\",\"total\":42}",
        "content-type=application/json",
        "total.invoice",
        "30",
        "42",
        "fuel",
        "peak memory",
    ];
    oncue(&run).is(0, &words);
    let told = oncue(&[run.as_slice(), &["-o", "json"]].concat()).json();
    assert_eq!(told["outcome"], "committed", "{told}");
    assert_eq!(told["puts"][0]["queue"], "totals");
    let change = json!({"before": {"text": "30"}, "after": {"text": "42"}});
    assert_eq!(told["state"]["total.invoice"], change);
    assert!(
        told["fuel"].as_u64() > Some(0) && told["peak-memory"].as_u64() > Some(0),
        "{told}"
    );
}

#[test]
fn a_run_takes_files_headers_and_several_messages() {
    let folder = Cases::new();
    folder.write("order.json", "from a file");
    let (file, plugin) = (folder.path("order.json"), sample("echo").component);
    let file = file.to_str().unwrap();
    let fields = [
        "--header",
        "oncue-property-region=eu",
        "--correlation-id",
        "c-1",
    ];
    let run = [
        "run",
        plugin,
        "--message",
        file,
        "--text",
        "from a flag",
        "-o",
        "json",
    ];
    let told = oncue(&[run.as_slice(), &fields].concat()).json();
    let puts = told["puts"].as_array().expect("puts");
    let bodies: Vec<&str> = puts.iter().filter_map(|put| put["text"].as_str()).collect();
    assert_eq!(bodies, ["from a file", "from a flag"]);
    for put in puts {
        assert_eq!(put["correlation-id"], "c-1", "{put}");
        assert_eq!(put["properties"], json!([["region", "eu"]]), "{put}");
    }
}

#[test]
fn a_message_that_expires_before_it_is_handled_is_not_committed() {
    let run = [
        "run",
        sample("echo").component,
        "--text",
        "a",
        "--expiry",
        "0s",
    ];
    oncue(&run).is(1, &["plugin \"echo\": not-handled", "it expired before"]);
    let told = oncue(&[run.as_slice(), &["-o", "json"]].concat());
    let told = told.is(1, &[]).json();
    assert_eq!(told["outcome"], "not-handled", "{told}");
    assert_eq!(told["puts"], json!([]), "{told}");
    let run = [
        "run",
        sample("echo").component,
        "--text",
        "a",
        "--expiry",
        "1h",
    ];
    oncue(&run).is(0, &["committed"]);
    let run = ["run", sample("echo").component, "--priority", "12"];
    oncue(&run).is(2, &["\"priority\" is 12"]);
}

#[test]
fn a_trigger_style_handler_works_its_queue() {
    let run = [
        "run",
        sample("drain").component,
        "--trigger",
        "depth",
        "-o",
        "json",
    ];
    let texts = ["--text", "a", "--text", "b", "--text", "c"];
    let told = oncue(&[run.as_slice(), &texts].concat()).json();
    assert_eq!(told["tasks"].as_array().map(Vec::len), Some(1), "{told}");
    assert_eq!(told["puts"].as_array().map(Vec::len), Some(3), "{told}");
}

#[test]
fn a_request_is_answered() {
    let plugin = sample("request-reply").component;
    let run = [
        "run",
        plugin,
        "--text",
        "how much?",
        "--reply",
        "quotes=17",
        "-o",
        "json",
    ];
    let said = oncue(&run);
    let told = said.is(0, &[]).json();
    assert_eq!(told["requests"][0]["text"], "how much?", "{told}");
    assert_eq!(told["puts"][0]["text"], "17", "{told}");
}

#[test]
fn hostile_samples_end_as_they_do_on_a_host() {
    let check = |name: &str, outcome: &str, words: &[&str]| {
        let said = oncue(&["run", sample(name).component, "--text", "hello"]);
        let head = format!("plugin \"{name}\": {outcome}");
        said.is(i32::from(outcome != "committed"), words)
            .is(said.code, &[&head]);
    };
    check(
        "spins",
        "out-of-fuel",
        &["20 M of 20 M", "moved to \"oncue.dead-letter\""],
    );
    check("hoards", "over-memory", &["raise memory"]);
    check("traps", "trapped", &["cannot handle", "backtrace", "log"]);
    check("backs-out", "retry", &["attempt 1 failed"]);
    check("leaks-handles", "handle-limit", &[]);
    check("floods-puts", "output-limit", &[]);
    check("sleeps", "past-deadline", &[]);
    check("idle", "not-handled", &["backing off"]);
    check("traps-before-get", "trapped", &["no wish to work"]);
    check("reaches-out", "committed", &["not granted"]);
    check("writes-to-itself", "committed", &["hop"]);
}

#[test]
fn a_refused_plugin_is_told_with_every_fault() {
    let wrong = sample("wrong-world").component;
    oncue(&["run", wrong]).is(4, &["is refused", "exports acme:weather/forecast@1.0.0"]);
    let unknown = sample("unknown-import").component;
    oncue(&["run", unknown]).is(4, &["acme:secret/vault@1.0.0"]);
    let folder = Cases::new();
    folder.write("bad.toml", "[process]\nfuel = \"lots\"\nmemori = 1\n");
    let bad = folder.path("bad.toml");
    let faults = [
        "bad.toml:2:",
        "bad.toml:3:",
        "exports acme:weather/forecast@1.0.0",
    ];
    oncue(&["run", wrong, "--manifest", bad.to_str().unwrap()]).is(4, &faults);
    oncue(&["run", "/nowhere/a.wasm"]).is(3, &["is not there"]);
    oncue(&["run", wrong, "--trigger", "never"]).is(2, &["depth=NUMBER"]);
}

#[test]
fn only_the_first_run_compiles() {
    let cache = tempfile::tempdir().expect("a folder");
    let run = ["run", sample("echo").component, "--text", "a"];
    oncue_with(cache.path(), &run).is(0, &["compiled in"]);
    let again = oncue_with(cache.path(), &run);
    assert!(
        !again.is(0, &[]).err.contains("compiled in"),
        "{}",
        again.err
    );
}

#[test]
fn a_run_is_kept_as_a_case() {
    let cases = Cases::new();
    let folder = cases.path("kept");
    let plugin = sample("running-total").component;
    let run = [
        "run",
        plugin,
        "--text",
        ORDER,
        "--state",
        "total.invoice=30",
        "--save",
    ];
    oncue(&[run.as_slice(), &[folder.to_str().unwrap()]].concat()).is(0, &["is written"]);
    assert_eq!(
        cases.json("kept/expected.json")["state"]["total.invoice"]["text"],
        "42"
    );
    cases.test("running-total", &[]).is(0, &["1 case passed"]);
}
