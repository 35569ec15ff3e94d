//! Golden cases: passed, told apart, blessed, reported.

use super::*;

/// Where the suites lie that are shared by handlers in several languages.
fn suite(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join("sample-plugins/cases").join(name)
}

#[test]
fn the_golden_suite_of_route_orders_passes_under_every_fault() {
    let folder = suite("route-orders");
    let plugin = sample("route-orders").component;
    let said = oncue(&[
        "test",
        plugin,
        "--case",
        folder.to_str().unwrap(),
        "-o",
        "json",
    ]);
    let told = said.is(0, &[]).json();
    assert_eq!(told["failed"], 0, "{told}");
    for case in told["cases"].as_array().expect("cases") {
        assert_eq!(case["trials"].as_array().map(Vec::len), Some(5), "{case}");
    }
}

#[test]
fn samples_pass_their_cases_under_every_fault() {
    let check = |name: &str, input: Value| {
        let cases = Cases::with("one", &input);
        cases
            .test(name, &["--bless"])
            .is(0, &["1 case passed", "fuel"]);
        cases
            .test(name, &[])
            .is(0, &["ok    one", "redelivery", "cut-off", "least"]);
    };
    let order = r#"{"kind":"a","amount":1}"#;
    let orders = texts(&[order, order, "no order"]);
    let state = json!({"total.a": {"text": "40"}});
    check("running-total", json!({"messages": orders, "state": state}));
    check(
        "batch-settle",
        json!({"messages": texts(&["a", "fail", "b", "trap", "c"])}),
    );
    check(
        "drain",
        json!({"messages": texts(&["a", "b", "c"]), "trigger": "depth"}),
    );
    let fields = json!({"text": "a", "reply-to": "echo.out", "properties": {"x": ["1", "2"]}});
    check("echo", json!({"messages": [fields]}));
    let replies = json!([{"queue": "quotes", "text": "17"}]);
    check(
        "request-reply",
        json!({"messages": texts(&["how much?"]), "replies": replies}),
    );
}

#[test]
fn a_case_is_blessed_and_then_compared() {
    let cases = Cases::with("one", &json!({"messages": texts(&["a", "b"])}));
    cases
        .test("echo", &[])
        .is(1, &["FAIL  one", "expected.json\" is not there", "--bless"]);
    cases.test("echo", &["--bless"]).is(0, &["NEW   one"]);
    let expected = cases.json("one/expected.json");
    // The echo names the message that it answers: that is told by its number.
    let puts = json!([
        {"queue": "echo.out", "text": "a", "correlation-id": "{{message 1}}"},
        {"queue": "echo.out", "text": "b", "correlation-id": "{{message 2}}"},
    ]);
    assert_eq!(expected["puts"], puts);
    assert_eq!(expected["messages"][0], json!({"outcome": "committed"}));
    cases.test("echo", &["--bless"]).is(0, &["ok    one"]);
    let mut other = expected.clone();
    other["puts"][1]["text"] = json!("c");
    other["puts"][1]["content-type"] = json!("text/plain");
    cases.write("one/expected.json", &other.to_string());
    let wrong = [
        "puts[1].text",
        "expected  c",
        "got       b",
        "puts[1].content-type",
        "got       (nothing)",
    ];
    cases.test("echo", &[]).is(1, &wrong);
    cases.test("echo", &["--bless"]).is(0, &["NEW   one"]);
    assert_eq!(cases.json("one/expected.json"), expected);
}

#[test]
fn nothing_is_blessed_of_a_refused_plugin() {
    let cases = Cases::with("one", &json!({"messages": texts(&["a"])}));
    cases
        .test("wrong-world", &["--bless"])
        .is(4, &["is refused"]);
    assert!(!cases.path("one/expected.json").exists());
}

#[test]
fn a_body_may_be_expected_by_value() {
    let order = json!({"kind": "a", "amount": 2});
    let cases = Cases::with("one", &json!({"messages": [{"json": order}]}));
    let put = json!({
        "queue": "totals", "json": {"total": 2, "kind": "a"}, "content-type": "application/json",
    });
    let state = json!({"total.a": {"text": "2"}});
    let expected = json!({"messages": [{"outcome": "committed"}], "puts": [put], "state": state});
    cases.write("one/expected.json", &expected.to_string());
    cases.test("running-total", &[]).is(0, &[]);
    // And stays so when it is blessed.
    cases.test("running-total", &["--bless"]).is(0, &[]);
    assert_eq!(
        cases.json("one/expected.json")["puts"][0]["json"]["total"],
        2
    );
}

#[test]
fn faults_of_cases_are_told_at_once() {
    let cases = Cases::with("a", &json!({"messages": [{"texd": "a"}]}));
    cases.write("b/input.json", "{");
    cases
        .test("echo", &[])
        .is(2, &["\"messages[0].texd\" is not known", "is not JSON"]);
    let wrong = Cases::with("good", &json!({"messages": texts(&["a"])}));
    let fields = json!({"text": "a", "priority": 12, "group": "", "reply-to": "a b"});
    let twice = json!({"text": "a", "base64": "YQ=="});
    let input = json!({"messages": [fields, twice], "trigger": "often"});
    wrong.write("bad/input.json", &input.to_string());
    let pipe = json!({"messages": [{"file": "pipe"}]});
    wrong.write("pipe/input.json", &pipe.to_string());
    let made = Command::new("mkfifo").arg(wrong.path("pipe/pipe")).status();
    assert!(made.expect("mkfifo runs").success());
    let told = [
        "no case was run",
        "\"messages[0]\" has a bad reply-to",
        "\"messages[0]\" has a bad field: \"priority\" is 12",
        "\"messages[0]\" has a bad field: \"group\" has 0 bytes",
        "\"messages[1]\" has more than one of text, base64",
        "\"trigger\"",
        "it is no regular file",
    ];
    wrong.test("echo", &["--bless"]).is(2, &told);
    assert!(!wrong.path("good/expected.json").exists());
    let nobody = Cases::new();
    nobody.test("echo", &[]).is(3, &["has no case"]);
    oncue(&["test", sample("echo").component]).is(2, &["--case"]);
}

#[test]
fn a_project_names_its_component_manifest_and_cases() {
    let project = Cases::with("cases/one", &json!({"messages": texts(&["a"])}));
    let text = "[project]\nname = \"hello\"\nbuild = \"make\"\ncomponent = \"out/hello.wasm\"\n\
                manifest = \"hello.toml\"\ncases = \"cases\"\nwatch = [\"src\"]\n";
    project.write("oncue-project.toml", text);
    let echo = sample("echo");
    project.write(
        "hello.toml",
        &manifest(echo, &[("[queue.echo]", "[queue.hello]")]),
    );
    let folder = project.path("");
    let test = ["test", folder.to_str().unwrap(), "--bless"];
    oncue(&test).is(3, &["is not built", "make"]);
    std::fs::create_dir(project.path("out")).expect("made");
    std::fs::copy(echo.component, project.path("out/hello.wasm")).expect("copied");
    oncue(&test).is(0, &["plugin \"hello\": 1 case passed"]);
    assert_eq!(
        project.json("cases/one/expected.json")["puts"][0]["text"],
        "a"
    );
}

#[test]
fn a_junit_report_is_well_formed() {
    let cases = Cases::with("good & \"new\"", &json!({"messages": texts(&["<a>"])}));
    cases.test("echo", &["--bless"]).is(0, &[]);
    cases.write(
        "bad/input.json",
        &json!({"messages": texts(&["a"])}).to_string(),
    );
    let bad = json!({"messages": [{"outcome": "committed"}], "puts": []});
    cases.write("bad/expected.json", &bad.to_string());
    let report = cases.path("report.xml");
    cases
        .test("echo", &["--junit", report.to_str().unwrap()])
        .is(1, &["1 of 2 cases"]);
    let text = std::fs::read_to_string(report).expect("a report");
    let tags = tags(&text);
    let count = |name: &str| tags.iter().filter(|tag| *tag == name).count();
    // As it is, and four faults for the good one; the bad one fails as it is.
    assert_eq!(
        (count("testsuite"), count("testcase"), count("failure")),
        (2, 6, 1),
        "{text}"
    );
    assert!(
        text.contains("name=\"cut-off\"") && text.contains("puts[0]"),
        "{text}"
    );
}

/// The names of all elements, if each is closed where it should be.
fn tags(xml: &str) -> Vec<String> {
    let (mut open, mut names) = (Vec::new(), Vec::new());
    let mut rest = xml.strip_prefix("<?xml ").expect("a declaration");
    rest = rest.split_once("?>").expect("a declaration").1;
    while let Some((text, tail)) = rest.split_once('<') {
        assert!(!text.contains('>'), "{text:?}");
        let (tag, tail) = tail.split_once('>').expect("a whole tag");
        rest = tail;
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name));
            continue;
        }
        let name = tag.trim_end_matches('/').split_whitespace().next();
        let name = name.expect("a name").to_owned();
        names.push(name.clone());
        if !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert!(
        open.is_empty() && rest.trim().is_empty(),
        "{open:?} {rest:?}"
    );
    names
}
