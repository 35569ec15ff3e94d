//! What holds for queues and processes alike, and the defaults that people were promised.

mod properties;

use super::*;
use crate::names::{ProcessName, QueueName};

fn raw(json: &str) -> Raw {
    serde_json::from_str(json).expect("the test's own JSON is well-formed")
}

fn queue(json: &str) -> QueuePatch {
    QueuePatch::parse(&raw(json)).unwrap_or_else(|faults| panic!("{}", list_faults(&faults)))
}

fn process(json: &str) -> ProcessPatch {
    ProcessPatch::parse(&raw(json)).unwrap_or_else(|faults| panic!("{}", list_faults(&faults)))
}

/// Parsing gives exactly these faults, in this order.
fn check<T: std::fmt::Debug>(parsed: Result<T, Vec<Fault>>, wanted: &[&str]) {
    let faults = parsed.expect_err("refused");
    let texts: Vec<String> = faults.iter().map(ToString::to_string).collect();
    assert_eq!(texts, wanted);
}

fn check_queue(json: &str, wanted: &[&str]) {
    check(QueuePatch::parse(&raw(json)), wanted);
}

fn check_process(json: &str, wanted: &[&str]) {
    check(ProcessPatch::parse(&raw(json)), wanted);
}

#[test]
fn a21_every_fault_is_named_at_once() {
    check_queue(
        r#"{"trigger": "dept", "trigger-depth": 0, "default-priority": 10, "colour": "red",
            "trigger-dpeth": 5, "max-message-length": "16 MB", "retry": {"jiter": 5}}"#,
        &[
            "\"colour\" is not an attribute of a queue; remove it",
            "\"trigger-dpeth\" is not an attribute of a queue; did you mean \"trigger-depth\"?",
            "\"retry.jiter\" is not an attribute of a queue; did you mean \"retry.jitter\"?",
            "\"trigger\" is \"dept\"; use \"first\", \"every\", \"depth\" or \"none\"; \
             did you mean \"depth\"?",
            "\"trigger-depth\" is 0; use a whole number from 1 to 999999999",
            "\"default-priority\" is 10; use a whole number from 0 to 9",
            "\"max-message-length\" is \"16 MB\", which has the unknown unit \"MB\"; write a whole \
             number, alone or with K, M, G, T (thousands) or KiB, MiB, GiB, TiB (1024s)",
        ],
    );
}

#[test]
fn wrong_types_and_ranges_are_refused() {
    check_queue(
        "[]",
        &["the definition is a list; use a table of attributes"],
    );
    check_queue(
        r#"{"trigger-depth": "5", "max-tasks": 1.5, "hop-limit": 256, "rearm": true,
            "refire-interval": 5, "backoff": "5s", "get": "enable", "process": "a b",
            "retry": {"initial": "-1s"}, "trigger-max-wait": "2 parsecs"}"#,
        &[
            "\"backoff\" is \"5s\"; use a table of backoff.initial, backoff.max",
            "\"trigger-depth\" is \"5\"; use a whole number from 1 to 999999999",
            "\"max-tasks\" is 1.5; use a whole number from 1 to 1000",
            "\"hop-limit\" is 256; use a whole number from 1 to 255",
            "\"rearm\" is true; use \"auto\" or \"manual\"",
            "\"refire-interval\" is 5, which has no unit; write a whole number with ms, s, m, h or \
             d, such as \"250ms\" or \"5m\"",
            "\"get\" is \"enable\"; use \"enabled\" or \"disabled\"; did you mean \"enabled\"?",
            "\"process\" is \"a b\", which has ' ' at position 2; use 1 to 128 of A-Z a-z \
             0-9 . _ -",
            "\"retry.initial\" is \"-1s\", which does not start with a number; write a whole \
             number with ms, s, m, h or d, such as \"250ms\" or \"5m\"",
            "\"trigger-max-wait\" is \"2 parsecs\", which has the unknown unit \"parsecs\"; write \
             a whole number with ms, s, m, h or d, such as \"250ms\" or \"5m\"",
        ],
    );
    check_process(
        r#"{"fuel": 0, "memory": "1 KiB", "deadline": "2h", "batch": 1001, "reuse": 0,
            "component": "../a.wasm", "config": {"a": 1, "": "x"}, "description": 5,
            "grants": {"put": ["ok", "a b", 7], "get": "orders", "environment": {"A=B": "x"},
                "http": ["https://ok.example.com", "https://a.b/c"]}}"#,
        &[
            "\"fuel\" is 0; use a count from 1 to 1000 T",
            "\"memory\" is \"1 KiB\"; use a size from 64 KiB to 4 GiB",
            "\"deadline\" is \"2h\"; use a time from 1ms to 1h",
            "\"batch\" is 1001; use a whole number from 1 to 1000",
            "\"reuse\" is 0; use a whole number from 1 to 1000000",
            "\"component\" is \"../a.wasm\"; use a file name of at most 255 bytes without / or \\",
            "\"config.a\" is 1; use a text, in quotes",
            "\"config.\" has a key of 0 bytes; use 1 to 256, no NUL",
            "\"description\" is 5; use a text of at most 4096 bytes",
            "\"grants.put.1\" is \"a b\"; use 1 to 128 of A-Z a-z 0-9 . _ - and *",
            "\"grants.put.2\" is 7; use a text",
            "\"grants.get\" is \"orders\"; use a list of queue names, in which * stands for any \
             characters",
            "\"grants.environment.A=B\" has = in its name; an environment cannot hold that, rename \
             it",
            "\"grants.http.1\" is \"https://a.b/c\", which goes past the origin; end it after the \
             host or the port: a grant is for all paths",
        ],
    );
}

#[test]
fn every_style_is_a_word_of_the_definition_and_of_the_wire() {
    for style in Style::ALL {
        let patch = ProcessPatch::parse(&raw(&format!(r#"{{"style": "{style}"}}"#)));
        assert!(patch.is_ok(), "{style}");
        let wire = serde_json::to_string(style).expect("a word");
        assert_eq!(wire, format!("\"{style}\""));
        let read: Style = serde_json::from_str(&wire).expect("its own word");
        assert_eq!(read, *style);
    }
    assert!(serde_json::from_str::<Style>("\"other\"").is_err());
}

#[test]
fn what_cannot_be_honoured_is_refused() {
    check_queue(
        r#"{"usage": "transmission"}"#,
        &["\"usage\" is \"transmission\", which is not supported yet; use \"normal\""],
    );
}

#[test]
fn secrets_are_granted_by_names_that_files_can_have() {
    let names = process(r#"{"grants": {"secrets": ["db-password", "key.pem"]}}"#);
    let mut attributes = ProcessAttributes::default();
    names.apply(&mut attributes);
    assert_eq!(attributes.grants.secrets, ["db-password", "key.pem"]);
    let fault = "is a directory name, not a name; use 1 to 128 of A-Z a-z 0-9 . _ -, more than \
                 one or two dots";
    check_process(
        r#"{"grants": {"secrets": [".."]}}"#,
        &[&format!("\"grants.secrets.0\" {fault}")],
    );
    check_process(
        r#"{"grants": {"secrets": ["../x"]}}"#,
        &["\"grants.secrets.0\" has '/' at position 3; use 1 to 128 of A-Z a-z 0-9 . _ -"],
    );
}

#[test]
fn every_fault_of_a_schedule_and_of_the_alarms_is_named() {
    check_queue(
        r#"{"schedule": "0 0 30 2 *", "alarm-depth-high": 101, "alarm-depth-low": "no"}"#,
        &[
            "\"schedule\" names a day that never comes; correct the day or the month",
            "\"alarm-depth-high\" is 101; use a whole number from 0 to 100, or \"never\"",
            "\"alarm-depth-low\" is \"no\"; use a whole number from 0 to 100, or \"never\"",
        ],
    );
    check_queue(
        r#"{"schedule": {"zone": "Mars", "missed": "twice", "body": 1, "at": "x",
            "properties": {"a": 1}}}"#,
        &[
            "\"schedule.zone\" names \"Mars\", which is no time zone; use one like Europe/Berlin, \
             or UTC",
            "\"schedule.missed\" is \"twice\"; use \"once\" or \"skip\"",
            "\"schedule.body\" is 1; use a text",
            "\"schedule.at\" is no part of a schedule; use cron, zone, missed, body, content-type \
             and properties",
            "\"schedule.properties.a\" is 1; use a text, in quotes",
            "\"schedule\" has no cron; say when",
        ],
    );
    check_queue(
        r#"{"schedule": {"cron": "0 6 * *"}}"#,
        &[
            "\"schedule.cron\" is no cron expression (it has 4 fields); write minute, hour, day \
             of month, month and day of week, such as 0 6 * * MON-FRI, and a time zone behind \
             them unless it is UTC",
        ],
    );
}

#[test]
fn a_schedule_is_a_text_where_that_is_enough() {
    let written = |text: &str| {
        let read = queue(&format!("{{\"schedule\": {text}}}"));
        serde_json::to_string(&read).expect("it is written")
    };
    let short = r#"{"schedule":"0 6 * * * Europe/Berlin"}"#;
    assert_eq!(written(r#""0 6 * * *  Europe/Berlin""#), short);
    assert_eq!(
        written(r#"{"cron": "0 6 * * *", "zone": "Europe/Berlin"}"#),
        short
    );
    assert_eq!(written(r#""@daily UTC""#), r#"{"schedule":"@daily"}"#);
    let long = r#"{"cron":"0 6 * * *","missed":"skip","body":"{}","properties":{"a":"b"}}"#;
    assert_eq!(written(long), format!("{{\"schedule\":{long}}}"));
}

#[test]
fn an_attribute_may_be_given_once() {
    check_queue(
        r#"{"max-tasks": 1, "max-tasks": 2, "retry.jitter": 5, "retry": {"jitter": 6}}"#,
        &[
            "\"max-tasks\" is given twice; remove one",
            "\"retry.jitter\" is given twice; remove one",
        ],
    );
    check_process(
        r#"{"config": {"a": "1", "a": "2"}}"#,
        &["\"config.a\" is given twice; remove one"],
    );
}

/// The scalars of the documented manifest, as it stands in the format's description.
const PROMISED_QUEUE: &str = r#"{
    "trigger": "first", "trigger-depth": 100, "trigger-max-wait": "never", "trigger-priority": 0,
    "trigger-data": "", "rearm": "auto", "max-tasks": 1, "refire-interval": "1s",
    "backoff": {"initial": "100ms", "max": "60s"},
    "retry": {"initial": "1s", "max": "5m", "jitter": 20},
    "backout-threshold": 5, "backout-queue": "", "max-depth": 1000000,
    "max-message-length": "16 MiB", "delivery": "priority", "hop-limit": 16,
    "idempotency-window": "10m", "defer-max-age": "1d", "input-linger": "2s", "schedule": "",
    "service-interval": "0s", "alarm-oldest": "5m", "alarm-depth-high": 80, "alarm-depth-low": 20,
    "get": "enabled", "put": "enabled", "usage": "normal",
    "default-priority": 0, "default-persistence": "persistent", "default-expiry": "never"}"#;

const PROMISED_PROCESS: &str = r#"{
    "component": "", "description": "", "style": "auto", "fuel": "10 G", "memory": "64 MiB",
    "table-elements": 20000, "deadline": "30s", "task-deadline": "5m", "log-limit": "64 KiB",
    "max-puts": 10000, "max-handles": 10000, "max-unit": 10000, "reuse": 1, "batch": 1,
    "output": "", "environment-data": "", "user-data": "",
    "grants": {"put": [], "get": [], "browse": [], "http": [], "environment": {}, "secrets": []},
    "config": {}}"#;

#[test]
fn the_documented_defaults_are_the_defaults() {
    let promised = QueueDefinition::from_manifest(queue(PROMISED_QUEUE));
    assert_eq!(promised.resolve(), QueueAttributes::default());
    let missing: Vec<&str> = QUEUE_ATTRIBUTES
        .iter()
        .map(|info| info.name)
        .filter(|name| promised.origin(name) == Origin::Default)
        .collect();
    assert_eq!(missing, ["process", "description", "trigger-control"]);

    let promised = ProcessDefinition::from_manifest(process(PROMISED_PROCESS));
    assert_eq!(promised.resolve(), ProcessAttributes::default());
    for info in PROCESS_ATTRIBUTES {
        assert_eq!(
            promised.origin(info.name),
            Origin::Manifest,
            "{}",
            info.name
        );
    }
}

#[test]
fn the_tables_tell_the_truth() {
    let queues = QueueAttributes::default().entries();
    let processes = ProcessAttributes::default().entries();
    let infos = QUEUE_ATTRIBUTES.iter().chain(PROCESS_ATTRIBUTES);
    for (info, (name, value)) in infos.zip(queues.into_iter().chain(processes)) {
        assert_eq!(info.name, name);
        assert_eq!(info.default, value.to_string(), "{name}");
        assert!(info.meaning.ends_with('.'), "{name}: {}", info.meaning);
        assert!(!(info.accepts)().is_empty(), "{name}");
    }
    assert!(QueueDefinition::default().check().is_empty());
    assert!(ProcessDefinition::default().check().is_empty());
    assert!(ProcessDefinition::default().warnings().is_empty());
}

#[test]
fn the_wire_shows_every_attribute_in_human_form() {
    let attributes = QueueAttributes {
        process: Some(ProcessName::new("ship").expect("a valid name")),
        trigger_max_wait: Some(250),
        get: false,
        ..QueueAttributes::default()
    };
    let json = serde_json::to_string(&attributes).expect("serialises");
    assert!(
        json.starts_with(r#"{"process":"ship","description":"","trigger":"first","#),
        "{json}"
    );
    assert!(
        json.contains(r#""trigger-control":"on","trigger-depth":100,"#),
        "{json}"
    );
    assert!(json.contains(r#""trigger-max-wait":"250ms","#), "{json}");
    assert!(
        json.contains(r#""retry":{"initial":"1s","max":"5m","jitter":20},"#),
        "{json}"
    );
    assert!(
        json.contains(r#""get":"disabled","put":"enabled","#),
        "{json}"
    );
    assert!(json.ends_with(r#""default-expiry":"never"}"#), "{json}");

    let changes = process(r#"{"grants": {"put": ["audit.*"], "get": null}, "fuel": 1000000}"#);
    let json = serde_json::to_string(&changes).expect("serialises");
    assert_eq!(
        json,
        r#"{"fuel":"1 M","grants":{"put":["audit.*"],"get":null}}"#
    );
}

#[test]
fn rules_between_attributes_name_both() {
    let faults = |json: &str| -> Vec<String> {
        let definition = QueueDefinition::from_manifest(queue(json));
        let name = QueueName::new("orders").expect("a valid name");
        definition
            .check_for(&name)
            .iter()
            .map(ToString::to_string)
            .collect()
    };
    assert_eq!(
        faults(
            r#"{"backoff": {"initial": "2m"}, "retry": {"initial": "1h", "max": "10s"},
                "trigger": "depth", "trigger-depth": 11, "max-depth": 10,
                "backout-queue": "orders"}"#
        ),
        [
            "\"backoff.initial\" is 2m, past backoff.max 1m; lower it or raise max",
            "\"retry.initial\" is 1h, past retry.max 10s; lower it or raise max",
            "\"trigger-depth\" is 11, never reached with max-depth 10; lower it or raise max-depth",
            "\"backout-queue\" is \"orders\", the queue itself; name another, or \"\"",
        ]
    );
    let waits = |trigger| {
        faults(&format!(
            r#"{{"trigger":"{trigger}","trigger-max-wait":"5s"}}"#
        ))
    };
    assert_eq!(
        waits("every"),
        [
            "\"trigger-max-wait\" is 5s, which only trigger \"depth\" uses, not \"every\"; set it \
          to \"never\""
        ]
    );
    assert!(waits("depth").is_empty() && waits("none").is_empty());
    // The same numbers without a depth trigger are no fault: nothing depends on them.
    assert!(faults(r#"{"trigger-depth": 11, "max-depth": 10}"#).is_empty());
    assert_eq!(
        faults(r#"{"alarm-depth-high": 20}"#),
        ["\"alarm-depth-low\" is 20, not below alarm-depth-high 20; lower it"]
    );
    assert_eq!(
        faults(r#"{"max-message-length": 1, "schedule": {"cron": "@daily", "body": "ab"}}"#),
        ["\"schedule.body\" has 2 bytes, past max-message-length 1; shorten it"]
    );

    let task = ProcessDefinition::from_manifest(process(r#"{"deadline": "10m"}"#));
    let texts: Vec<String> = task.check().iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        ["\"deadline\" is 10m, past task-deadline 5m; lower it or raise task-deadline"]
    );
}

#[test]
fn low_limits_are_warned_about() {
    let warned = |json: &str| -> Vec<String> {
        let definition = ProcessDefinition::from_manifest(process(json));
        definition
            .warnings()
            .iter()
            .map(|warning| warning.path.join("."))
            .collect()
    };
    assert_eq!(
        warned(r#"{"fuel": "49 M", "memory": "31 MiB"}"#),
        ["fuel", "memory"]
    );
    assert!(warned(r#"{"fuel": "50 M", "memory": "32 MiB"}"#).is_empty());
}

#[test]
fn an_operator_wins_until_reset() {
    let base = queue(r#"{"max-tasks": 4, "retry": {"initial": "2s"}}"#);
    let mut definition = QueueDefinition::from_manifest(base);
    definition.alter(&queue(r#"{"max-tasks": 8, "max-depth": 10}"#));
    assert_eq!(definition.resolve().max_tasks, 8);
    assert_eq!(definition.origin("max-tasks"), Origin::Operator);
    assert_eq!(definition.origin("retry.initial"), Origin::Manifest);
    assert_eq!(definition.origin("retry.max"), Origin::Default);

    // A reload of the manifest does not touch what the operator said.
    definition.base = queue(r#"{"max-tasks": 2}"#).into();
    assert_eq!(definition.resolve().max_tasks, 8);
    assert_eq!(definition.resolve().retry.initial, 1_000);

    let mut changes = queue(r#"{"max-tasks": null}"#);
    assert!(changes.reset("max-depth"));
    assert!(!changes.reset("max-dept"));
    definition.alter(&changes);
    assert_eq!(definition.resolve().max_tasks, 2);
    assert_eq!(definition.resolve().max_depth, 1_000_000);
    assert!(definition.overlay.is_empty());
    assert_eq!(
        QueueDefinition::from_operator(&changes),
        QueueDefinition::default()
    );
}

#[test]
fn a_whole_group_can_be_reset() {
    let mut wanted = ProcessPatch::default();
    for name in ["put", "get", "browse", "http", "environment", "secrets"] {
        assert!(wanted.reset(&format!("grants.{name}")), "{name}");
    }
    assert_eq!(process(r#"{"grants": null}"#), wanted);
    let mut definition = ProcessDefinition::from_operator(&process(
        r#"{"grants": {"put": ["a"], "environment": {"A": "b"}}, "batch": 2}"#,
    ));
    definition.alter(&wanted);
    assert_eq!(definition.resolve().grants, Grants::default());
    assert_eq!(definition.resolve().batch, 2);
}

#[test]
fn flags_are_read_by_the_kind_of_the_attribute() {
    let flags = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        pairs
            .iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
            .collect()
    };
    let given = flags(&[
        ("trigger-depth", "5"),
        ("description", "5"),
        ("retry.max", "1h"),
    ]);
    let wanted = queue(r#"{"trigger-depth": 5, "description": "5", "retry": {"max": "1h"}}"#);
    assert_eq!(QueuePatch::parse_flags(&given), Ok(wanted));

    let given = flags(&[
        ("grants.put", "invoices, audit.*"),
        ("config", "region=eu,mode=a=b"),
        ("memory", "128MiB"),
    ]);
    let wanted = process(
        r#"{"grants": {"put": ["invoices", "audit.*"]}, "memory": "128 MiB",
            "config": {"region": "eu", "mode": "a=b"}}"#,
    );
    assert_eq!(ProcessPatch::parse_flags(&given), Ok(wanted));

    check(
        QueuePatch::parse_flags(&flags(&[("trigger-depth", "five"), ("nothing", "1")])),
        &[
            "\"nothing\" is not an attribute of a queue; remove it",
            "\"trigger-depth\" is \"five\"; use a whole number from 1 to 999999999",
        ],
    );
}

#[test]
fn grants_open_only_what_they_name() {
    let grants = ProcessDefinition::from_manifest(process(
        r#"{"grants": {"put": ["invoices", "audit.*"], "browse": ["*"]}}"#,
    ));
    let grants = grants.resolve().grants;
    let name = |text: &str| QueueName::new(text).expect("a valid name");
    assert!(grants.may_put(&name("invoices")) && grants.may_put(&name("audit.eu")));
    assert!(!grants.may_put(&name("orders")) && !grants.may_get(&name("invoices")));
    assert!(grants.may_browse(&name("orders")) && !grants.may_browse(&QueueName::dead_letter()));
}

#[test]
fn the_component_is_named_after_the_process_unless_it_says() {
    let name = ProcessName::new("ship").expect("a valid name");
    assert_eq!(
        ProcessAttributes::default().component_for(&name),
        "ship.wasm"
    );
    let other = ProcessAttributes {
        component: "x.wasm".to_owned(),
        ..Default::default()
    };
    assert_eq!(other.component_for(&name), "x.wasm");
}

#[test]
fn numbers_past_every_range_are_refused_and_not_wrapped() {
    check_queue(
        r#"{"max-depth": 18446744073709551615, "hop-limit": -1}"#,
        &[
            "\"max-depth\" is 18446744073709552000; use a whole number from 1 to 999999999",
            "\"hop-limit\" is -1; use a whole number from 1 to 255",
        ],
    );
    check_process(
        r#"{"memory": 18446744073709551615, "fuel": -1}"#,
        &[
            "\"memory\" is 18446744073709552000; use a size from 64 KiB to 4 GiB",
            "\"fuel\" is -1; use a count from 1 to 1000 T",
        ],
    );
}
