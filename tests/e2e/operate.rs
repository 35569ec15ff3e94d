//! The commands by which a host is operated: dead letters, logs, definitions as files, MQSC,
//! checks. The real binary against a real host; every command that prints data prints JSON.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::host::{Home, Host, oncue};
use crate::wait::until;
use crate::work::sample;

/// A message that a consumer gives back once and for all; its id.
fn dead_letter(host: &Host, queue: &str, reason: &str, body: &[u8]) -> String {
    let id = host.put(queue, body);
    let got = host
        .post(&format!("/v1/queues/{queue}/get"), &[])
        .expect(200);
    let lease = got.header("oncue-lease").expect("a lease").to_owned();
    host.post(&format!("/v1/leases/{lease}/nack?reason={reason}"), &[])
        .expect(204);
    id
}

/// A host with queues `q` and `r`, whose messages are dead after one attempt.
fn with_queues() -> (Home, Host) {
    let home = Home::new();
    let host = home.start();
    for queue in ["q", "r"] {
        host.define(queue, json!({ "trigger": "none", "backout-threshold": 1 }));
    }
    (home, host)
}

/// Runs a command that must do what it is asked; answers its output.
#[track_caller]
fn done(host: &Host, arguments: &[&str]) -> String {
    let (code, out, talk) = oncue(host, arguments);
    assert_eq!(code, 0, "{arguments:?}: {out}\n{talk}");
    out
}

/// Runs a command with `-o json`; answers what it printed.
#[track_caller]
fn json_of(host: &Host, arguments: &[&str]) -> Value {
    let all = [arguments, &["-o", "json"]].concat();
    let out = done(host, &all);
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {out}"))
}

/// Runs a command with something on stdin.
fn with_input(host: &Host, arguments: &[&str], input: &str) -> (i32, String, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_oncue"))
        .args(arguments)
        .env("ONCUE_URL", &host.url)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut stdin = child.stdin.take().expect("stdin is piped");
    stdin.write_all(input.as_bytes()).expect("written");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (
        output.status.code().unwrap_or(-1),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn dead_letters_are_listed_kept_redriven_and_discarded() {
    let (home, host) = with_queues();
    let one = dead_letter(&host, "q", "broken", b"one");
    let two = dead_letter(&host, "q", "broken", &[0xff, 0]);
    let three = dead_letter(&host, "r", "late", b"three");

    let out = done(&host, &["dlq", "list"]);
    let rows: Vec<&str> = out.lines().collect();
    assert_eq!(rows.len(), 3, "{out}");
    assert!(
        rows[0].contains("REASON") && rows[1].contains("consumer"),
        "{out}"
    );
    assert!(
        rows[1].contains(&two) && rows[1].ends_with("broken"),
        "{out}"
    );
    let out = done(&host, &["dlq", "list", "--messages", "--from", "r"]);
    assert!(out.contains(&three) && !out.contains(&one), "{out}");
    let out = done(&host, &["dlq", "show", &one]);
    assert!(
        out.contains("dead-letter.detail") && out.ends_with("one\n"),
        "{out}"
    );

    // Exported with their bodies, and still there.
    let out = done(&host, &["dlq", "export", "--from", "q"]);
    let lines: Vec<Value> = out
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines.len(), 2, "{out}");
    assert_eq!(
        (&lines[0]["id"], &lines[0]["body"]),
        (&json!(one), &json!("one"))
    );
    assert_eq!(lines[1]["body-base64"], "/wA=");
    assert_eq!(lines[1]["dead-letter"]["queue"], "q");
    let file = home.path().join("letters.ndjson");
    let path = file.to_str().expect("a path");
    done(&host, &["dlq", "export", "-O", path]);
    let kept = std::fs::read_to_string(&file).expect("the file");
    assert_eq!(
        (kept.lines().count(), host.depth("oncue.dead-letter")),
        (3, 3)
    );

    // It is not overwritten: it may be the only copy.
    let (code, _, talk) = oncue(&host, &["dlq", "export", "-O", path]);
    assert!(code == 2 && talk.contains("exists"), "{code} {talk}");
    assert_eq!(std::fs::read_to_string(&file).expect("the file"), kept);

    // Nothing is meant by saying nothing.
    for verb in ["redrive", "discard"] {
        let (code, _, talk) = oncue(&host, &["dlq", verb]);
        assert!(code == 2 && talk.contains("--all"), "{code} {talk}");
    }
    done(&host, &["dlq", "redrive", &one]);
    assert_eq!(host.bodies("q"), ["one"]);
    let (code, _, talk) = oncue(&host, &["dlq", "discard", "--from", "q"]);
    assert!(code == 2 && talk.contains("--yes"), "{code} {talk}");
    done(&host, &["dlq", "discard", "--from", "q", "--yes"]);
    done(&host, &["dlq", "redrive", "--reason", "consumer"]);
    assert_eq!(host.bodies("r"), ["three"]);
    assert_eq!(host.depth("oncue.dead-letter"), 0);
    let (code, _, talk) = oncue(&host, &["dlq", "redrive", "--reason", "consumed"]);
    assert!(code == 2 && talk.contains("did you mean"), "{code} {talk}");
}

#[test]
fn logs_are_shown_and_followed_as_tasks_end() {
    let home = Home::new();
    home.drop_sample(sample("batch-settle"));
    let host = home.start();
    host.define_plain("settled");
    host.wait_for_plugin("batch-settle", "ready");
    let id = host.put("batch-settle", b"trap");
    host.record_of("batch-settle", &id);
    let out = done(&host, &["logs", "--plugin", "batch-settle"]);
    assert!(out.contains("queue batch-settle: trapped"), "{out}");
    assert!(out.contains("panicked at"), "{out}");
    assert_eq!(done(&host, &["logs", "--queue", "settled"]), "");

    let mut child = Command::new(env!("CARGO_BIN_EXE_oncue"))
        .args([
            "logs",
            "-f",
            "--max",
            "0",
            "--queue",
            "batch-settle",
            "-o",
            "json",
        ])
        .env("ONCUE_URL", &host.url)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut lines = BufReader::new(child.stdout.take().expect("stdout")).lines();
    // The stream is open when a task that ends is told of: more are put until one is.
    let (sender, receiver) = std::sync::mpsc::sync_channel(1);
    std::thread::spawn(move || {
        let _ = sender.send(lines.next());
    });
    let mut told = None;
    until("a log to be followed", || {
        host.put("batch-settle", b"trap");
        told = receiver.try_recv().ok().flatten();
        told.is_some()
    });
    let line = told.expect("a line").expect("text");
    let record: Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!(record["queue"], "batch-settle");
    assert!(
        record["cost"]["log-tail"]
            .as_str()
            .expect("a log")
            .contains("panicked")
    );
    let _ = child.kill();
    let _ = child.wait();
}

#[test]
fn definitions_go_out_and_come_in_the_same() {
    let home = Home::new();
    home.drop_sample(sample("echo"));
    let host = home.start();
    host.wait_for_plugin("echo", "ready");
    host.define("plain", json!({}));
    let attributes = json!({
        "trigger": "depth", "trigger-depth": 4, "process": "work", "backout-queue": "plain",
        "retry": { "max": "1m", "jitter": 5 }, "description": "it's \"so\"\nin two lines",
    });
    host.define("audit.in", attributes);
    host.define("echo", json!({ "max-tasks": 3 }));
    let process = json!({
        "component": "work.wasm", "fuel": "2 G", "config": { "region": "eu", "a b": "c" },
        "grants": { "put": ["x", "audit.*"], "environment": { "LOG": "info" } },
    });
    host.send_json("PUT", "/v1/processes/work", &process)
        .expect(201);
    let exported = done(&host, &["export"]);
    assert!(exported.contains("[queue.\"audit.in\"]"), "{exported}");
    // Of what a manifest defines, only what the operator laid over it.
    assert!(
        exported.contains("[queue.echo]\nmax-tasks = 3\n"),
        "{exported}"
    );
    assert!(!exported.contains("[process.echo]"), "{exported}");
    assert_eq!(exported, done(&host, &["export"]));

    let other_home = Home::new();
    let other = other_home.start();
    let (code, out, talk) = with_input(&other, &["apply", "-f", "-", "--dry-run"], &exported);
    assert_eq!(code, 0, "{talk}");
    assert!(out.contains("+ queue audit.in trigger-depth = 4"), "{out}");
    assert!(talk.contains("nothing was done"), "{talk}");
    assert_eq!(other.get("/v1/queues/plain").status, 404);
    let (code, again, _) = with_input(&other, &["apply", "-f", "-"], &exported);
    assert_eq!((code, again), (0, out));
    assert_eq!(done(&other, &["export"]), exported);
    let (code, out, talk) = with_input(&other, &["apply", "-f", "-"], &exported);
    assert_eq!((code, out.as_str()), (0, ""), "{talk}");
    assert!(talk.contains("nothing to change"), "{talk}");

    // What the file no longer has goes; what it does not name stays.
    let less = "[queue.\"audit.in\"]\ntrigger = \"every\"\n";
    let (code, out, talk) = with_input(&other, &["apply", "-f", "-"], less);
    assert_eq!(code, 0, "{talk}");
    assert!(
        out.contains("~ queue audit.in trigger = \"depth\" -> \"every\""),
        "{out}"
    );
    assert!(out.contains("- queue audit.in retry.max = \"1m\""), "{out}");
    assert_eq!(other.queue("audit.in")["attributes"]["retry"]["max"], "5m");
    assert_eq!(other.queue("echo")["attributes"]["max-tasks"], 3);

    // What the host alone can see, a circle, refuses all of it, in a dry run as well.
    let circle = "[queue.first]\nmax-tasks = 2\n[queue.plain]\nbackout-queue = \"audit.in\"\n\
                  [queue.\"audit.in\"]\nbackout-queue = \"plain\"\n";
    for more in [&["--dry-run"][..], &[]] {
        let all = [&["apply", "-f", "-"][..], more].concat();
        let (code, out, talk) = with_input(&other, &all, circle);
        assert_eq!((code, out.as_str()), (2, ""), "{talk}");
        assert!(talk.contains("leads back to \"plain\""), "{talk}");
        assert_eq!(
            talk.contains("nothing was changed"),
            more.is_empty(),
            "{talk}"
        );
        assert_eq!(other.get("/v1/queues/first").status, 404);
    }

    let bad = "[queue.a]\nmax-tasks = 0\n[queue.b]\ntrigger = \"often\"\n";
    let (code, out, talk) = with_input(&other, &["apply", "-f", "-"], bad);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(
        talk.contains("queue.a.max-tasks") && talk.contains("queue.b.trigger"),
        "{talk}"
    );
    assert_eq!(other.get("/v1/queues/a").status, 404);
    let all = done(&other, &["export", "--all"]);
    assert!(all.contains("max-depth = 1000000  # default"), "{all}");
}

#[test]
fn a_script_of_mq_is_brought_over() {
    let home = Home::new();
    let host = home.start();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/queues.mqsc");
    let (code, dry, talk) = oncue(&host, &["mqsc", "-f", script, "--dry-run"]);
    assert_eq!(code, 4, "{dry}{talk}");
    assert_eq!(host.get("/v1/queues/ORDERS.IN").status, 404);
    let (code, out, talk) = oncue(&host, &["mqsc", "-f", script]);
    assert_eq!(code, 4, "{out}{talk}");
    assert!(talk.contains("7 commands done, 4 refused"), "{talk}");
    for wanted in [
        "queue \"ORDERS.IN\" is defined",
        "ignored   INITQ(SYSTEM.DEFAULT.INITIATION.QUEUE)  there is no initiation queue",
        "ignored   APPLTYPE(UNIX)",
        "  QDPLOEV(DISABLED) turns the alarm off",
        "  the alarm queue-full is always on",
        "  service-interval = 60000ms",
        "accepted  TRIGTYPE(FIRST)",
        "the name \"orders/alias\" has \"/\"",
        "there are no channels",
        "there are only local queues here",
        "queue \"NO.SUCH.QUEUE\" is not there",
        "QUEUE(ORDERS.IN) TYPE(QLOCAL)\n     MAXDEPTH(60000)",
    ] {
        assert!(out.contains(wanted), "{wanted} in\n{out}");
    }
    let queue = host.queue("ORDERS.IN");
    let attributes = &queue["attributes"];
    assert_eq!(attributes["process"], "ROUTE.ORDERS");
    assert_eq!(attributes["max-message-length"], "4 MiB");
    assert_eq!(attributes["backout-threshold"], 3);
    assert_eq!(attributes["description"], "Orders; it's triggered");
    let alarms = ["alarm-depth-high", "alarm-depth-low", "service-interval"];
    let alarms = alarms.map(|name| attributes[name].clone());
    assert_eq!(alarms, [json!(75), json!("never"), json!("1m")]);
    assert_eq!(host.queue("orders.batch")["attributes"]["trigger-depth"], 4);
    let process = host.get("/v1/processes/ROUTE.ORDERS").expect(200).json();
    assert_eq!(process["attributes"]["component"], "route-orders.wasm");

    // Again: what is there is not defined a second time, unless it is to be replaced.
    let (_, out, _) = oncue(&host, &["mqsc", "-f", script]);
    assert!(out.contains("is there already; add REPLACE"), "{out}");
    assert!(
        out.contains("process \"ROUTE.ORDERS\" is replaced"),
        "{out}"
    );
    host.put("ORDERS.IN", b"x");
    let show = "DISPLAY QLOCAL(*) WHERE(CURDEPTH GT 0)\n";
    let (code, out, _) = with_input(&host, &["mqsc"], show);
    assert_eq!(code, 0, "{out}");
    assert!(
        out.contains("QUEUE(ORDERS.IN)") && !out.contains("BATCH"),
        "{out}"
    );
    // Levels and switches as MQ shows them, and a switch by itself keeps the level.
    let off = "ALTER QLOCAL(ORDERS.IN) QSVCIEV(NONE) QDPHIEV(ENABLED)\n\
               DISPLAY QLOCAL(ORDERS.IN) QDEPTHHI QDPHIEV QDPLOEV QSVCINT QSVCIEV\n";
    let (code, out, _) = with_input(&host, &["mqsc", "-o", "json"], off);
    assert_eq!(code, 0, "{out}");
    let told: Value = serde_json::from_str(&out).expect("JSON");
    let shown = told["commands"][1]["objects"][0]
        .as_str()
        .expect("an object");
    for wanted in [
        "QDEPTHHI(75)",
        "QDPHIEV(ENABLED)",
        "QDPLOEV(DISABLED)",
        "QSVCIEV(NONE)",
    ] {
        assert!(shown.contains(wanted), "{wanted} in {shown}");
    }
    let replace = "DEFINE QLOCAL(ORDERS.IN) REPLACE TRIGGER\n";
    assert_eq!(with_input(&host, &["mqsc"], replace).0, 0);
    assert_eq!(host.queue("ORDERS.IN")["attributes"]["process"], "");
    let (code, out, _) = with_input(&host, &["mqsc"], "DELETE QLOCAL(ORDERS.IN)\n");
    assert!(code == 4 && out.contains("queue-not-empty"), "{out}");
    let (code, out, _) = with_input(&host, &["mqsc"], "DELETE QLOCAL(ORDERS.IN) PURGE\n");
    assert_eq!(code, 0, "{out}");
}

#[test]
fn monitoring_gets_its_own_exit_codes() {
    let (_home, host) = with_queues();
    host.put("q", b"x");
    host.put("q", b"y");
    let check = |arguments: &[&str], wanted: i32, part: &str| {
        let (code, out, talk) = oncue(&host, arguments);
        assert_eq!(code, wanted, "{arguments:?}: {out}{talk}");
        assert!(out.starts_with("ONCUE ") && out.contains(part), "{out}");
        assert_eq!(out.lines().count(), 1, "{out}");
    };
    check(&["check", "ready"], 0, "OK");
    check(&["check", "live"], 0, "OK");
    check(&["check", "queue", "q"], 0, "depth=2;;;0");
    check(&["check", "queue", "q", "--warn-depth", "2"], 1, "WARNING");
    check(&["check", "queue", "q", "--crit-depth", "2"], 2, "CRITICAL");
    check(&["check", "queue", "nowhere"], 3, "UNKNOWN");
    let nobody = ["check", "ready", "--url", "http://127.0.0.1:9"];
    check(&nobody, 2, "CRITICAL");
    let (code, _, talk) = oncue(&host, &["check", "queue", "q", "--warn-depth", "many"]);
    assert_eq!(code, 3, "wrong usage is unknown: {talk}");
}

#[test]
fn a_doctor_looks_with_and_without_a_host() {
    let home = Home::new();
    let host = home.start();
    let data = home.data();
    let plugins = home.plugins();
    let directories = [
        "--data-dir",
        data.to_str().expect("a path"),
        "--plugins-dir",
        plugins.to_str().expect("a path"),
    ];
    let look = |arguments: &[&str]| {
        let all = [&["doctor", "-o", "json"], &directories[..], arguments].concat();
        let (_, out, talk) = oncue(&host, &all);
        let found: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {talk}"));
        found["checks"].as_array().expect("checks").clone()
    };
    let state = |checks: &[Value], name: &str| {
        let found = checks.iter().find(|check| check["name"] == name);
        found.unwrap_or_else(|| panic!("no {name} in {checks:#?}"))["state"].clone()
    };
    let of = |checks: &[Value], name: &str| {
        let found = checks.iter().find(|check| check["name"] == name);
        found.unwrap_or_else(|| panic!("no {name} in {checks:#?}"))["of"].clone()
    };
    // The host looks at itself, whatever directories are named here.
    let with = look(&["--store-reserve", "1000 TiB"]);
    assert_ne!(state(&with, "free space"), "fail");
    for name in [
        "open files",
        "memory mappings",
        "instance pool",
        "sync",
        "free space",
        "clock",
    ] {
        assert_eq!(of(&with, name), "host", "{name}");
    }
    assert_eq!(state(&with, "host"), "ok");
    assert_eq!(state(&with, "dead letters"), "ok");
    let without = look(&["--url", "http://127.0.0.1:9", "--listen", "127.0.0.1:0"]);
    assert_eq!(state(&without, "address"), "ok");
    assert_eq!(of(&without, "sync"), "here");
    assert_eq!(of(&look(&["--here"]), "open files"), "here");
    let told = host.get("/v1/doctor").expect(200).json();
    assert_eq!(
        told["checks"].as_array().map(Vec::len),
        Some(14),
        "{told:#}"
    );

    // A disk that is fuller than what is kept back fails, and the exit code says so.
    let full = [
        &["doctor"],
        &directories[..],
        &["--here", "--store-reserve", "1000 TiB"],
    ]
    .concat();
    let (code, out, talk) = oncue(&host, &full);
    assert_eq!(code, 1, "{out}{talk}");
    assert!(
        out.contains("free space (fail)") && out.contains("make room"),
        "{out}"
    );
    assert!(talk.contains("free space"), "{talk}");
}

#[test]
fn top_prints_a_frame_into_a_pipe() {
    let (_home, host) = with_queues();
    host.put("r", b"x");
    let out = done(&host, &["top", "--once"]);
    assert!(
        out.contains("running") && out.contains("dead letters"),
        "{out}"
    );
    let row = out.lines().find(|line| line.starts_with("r "));
    assert!(row.is_some_and(|row| row.contains('1')), "{out}");
    assert!(!out.lines().any(|line| line.starts_with("q ")), "{out}");
    let out = done(&host, &["top", "--all", "--sort", "name"]);
    assert!(out.lines().any(|line| line.starts_with("q ")), "{out}");
    assert!(out.contains("PUT/s") && out.contains("LEFT/s"), "{out}");
}

#[test]
fn top_tells_programs_what_comes_and_what_leaves() {
    let (_home, host) = with_queues();
    // Puts and gets go on until a frame has seen some of both, or the test has failed.
    let (ends, seen) = std::sync::mpsc::sync_channel::<()>(0);
    std::thread::scope(|scope| {
        let host = &host;
        scope.spawn(move || {
            let going = || matches!(seen.try_recv(), Err(std::sync::mpsc::TryRecvError::Empty));
            while going() {
                host.put("q", b"stays");
                host.put("r", b"goes");
                let got = host.post("/v1/queues/r/get", &[]).expect(200);
                let lease = got.header("oncue-lease").expect("a lease").to_owned();
                host.post(&format!("/v1/leases/{lease}/ack"), &[])
                    .expect(204);
            }
        });
        let until_here = ends;
        let frame = json_of(host, &["top", "--once", "--interval", "500ms"]);
        drop(until_here);
        let rate = |queue: &str, which: &str| frame["rates"][queue][which].as_f64();
        assert!(
            rate("q", "put") > Some(0.0) && rate("r", "put") > Some(0.0),
            "{frame:#}"
        );
        assert!(rate("r", "left") > Some(0.0), "{frame:#}");
        assert_eq!(rate("q", "left"), Some(0.0), "{frame:#}");
        let idle = json!({ "put": 0.0, "left": 0.0 });
        assert_eq!(frame["rates"]["oncue.dead-letter"], idle, "{frame:#}");
    });
}

#[test]
fn completions_and_man_pages_are_written() {
    let (home, host) = with_queues();
    for shell in ["bash", "zsh", "fish"] {
        assert!(
            done(&host, &["completions", shell]).contains("redrive"),
            "{shell}"
        );
    }
    let folder = home.path().join("man");
    let path = folder.to_str().expect("a path");
    let pages = json_of(&host, &["man", path])["pages"].clone();
    let pages = pages.as_array().expect("pages").len();
    assert_eq!(std::fs::read_dir(&folder).expect("a folder").count(), pages);
    let page = std::fs::read_to_string(folder.join("oncue-dlq-list.1")).expect("a page");
    assert!(
        page.starts_with(".ie") || page.contains(".TH oncue-dlq-list 1"),
        "{page}"
    );
}

/// Every command that prints data prints JSON with `-o json`: arguments, and a path into what it
/// prints that must be there. Commands of authors are in `workshop`, `export` and `dev`.
#[test]
fn every_command_that_prints_data_prints_json() {
    let (home, host) = with_queues();
    host.define("s", json!({ "trigger": "none" }));
    let dead = dead_letter(&host, "q", "broken", b"one");
    let message = host.put("s", b"x");
    host.send_json("PUT", "/v1/processes/p", &json!({}))
        .expect(201);
    let wit = home.path().join("wit");
    let case = |arguments: &[&str], pointer: &str| {
        let answer = json_of(&host, arguments);
        let found = answer.pointer(pointer);
        assert!(found.is_some(), "{arguments:?}: no {pointer} in {answer:#}");
    };
    case(&["put", "r", "hello"], "/id");
    case(&["get", "r"], "");
    case(&["browse", "s"], "/messages/0/id");
    case(&["message", "show", "s", &message], "/body");
    case(&["queue", "list"], "/queues/0/name");
    case(
        &["queue", "list", "--search", "S", "--max", "1"],
        "/queues/0/name",
    );
    case(&["queue", "show", "s"], "/attributes/trigger");
    case(&["queue", "define", "t"], "/name");
    case(
        &["queue", "alter", "t", "max-tasks=2"],
        "/attributes/max-tasks",
    );
    case(&["queue", "clear", "t", "--yes"], "/cleared");
    case(&["process", "list"], "/processes/0/name");
    case(&["process", "show", "p"], "/attributes/fuel");
    case(&["process", "define", "p2"], "/name");
    case(&["process", "alter", "p2", "fuel=2G"], "/attributes/fuel");
    case(&["plugin", "list"], "/plugins");
    case(&["trigger", "off", "s"], "/control");
    case(&["pause"], "/paused");
    case(&["resume"], "/paused");
    case(&["explain", "s"], "/conditions/0/name");
    case(&["tasks"], "");
    case(&["tasks", "--failed"], "");
    case(&["status"], "/version");
    case(&["ledger"], "/capacity/slots");
    case(&["alarms"], "");
    case(&["top"], "/status/version");
    case(&["top", "--once", "--interval", "200ms"], "/rates/s/put");
    case(&["config", "show"], "/url/value");
    case(&["check", "ready"], "/state");
    case(&["check", "queue", "s"], "/data/0/value");
    case(&["dlq", "list"], "/groups/0/count");
    case(&["dlq", "list", "--messages"], "/messages/0/id");
    case(&["dlq", "show", &dead], "/dead-letter/reason");
    case(&["dlq", "export"], "/body");
    case(&["dlq", "redrive", &dead], "/redriven");
    case(&["dlq", "discard", "--all", "--yes"], "/discarded");
    case(&["redrive"], "/redriven");
    case(&["export"], "/queue/s/trigger");
    case(&["wit", wit.to_str().expect("a path")], "");
    let file = home.path().join("definitions.toml");
    std::fs::write(&file, "[queue.u]\n").expect("written");
    case(&["apply", "-f", path_of(&file)], "/changes/0/change");
    let script = home.path().join("script.mqsc");
    std::fs::write(&script, "DISPLAY QLOCAL(s*)\nDISPLAY QLOCAL(*)\n").expect("written");
    let (code, out, _) = oncue(&host, &["mqsc", "-f", path_of(&script), "-o", "json"]);
    let answer: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((code, &answer["done"]), (0, &json!(2)), "{answer:#}");
}

fn path_of(path: &Path) -> &str {
    path.to_str().expect("a path")
}

#[test]
fn a_service_manager_is_told_that_the_host_is_ready_alive_and_stopping() {
    let home = Home::new();
    let path = home.path().join("notify");
    let socket = std::os::unix::net::UnixDatagram::bind(&path).expect("a socket");
    socket
        .set_read_timeout(Some(std::time::Duration::from_secs(120)))
        .expect("a timeout");
    let told = |wanted: &str| {
        let mut buffer = [0; 4_096];
        loop {
            let length = socket.recv(&mut buffer).expect("the host tells");
            let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
            if text.lines().any(|line| line == wanted) {
                return;
            }
        }
    };
    let environment = [
        ("NOTIFY_SOCKET", path_of(&path)),
        ("WATCHDOG_USEC", "300000"),
    ];
    let host = home.start_with(&[], &environment);
    told("READY=1");
    told("WATCHDOG=1");
    told("WATCHDOG=1");
    host.signal("TERM");
    told("STOPPING=1");
    assert_eq!(host.wait().0, 0);
}

#[test]
fn the_program_says_what_it_was_built_from() {
    let (_home, host) = with_queues();
    let out = done(&host, &["--version"]);
    for wanted in ["oncue 0.", "revision: ", "target: ", "wasmtime: 48."] {
        assert!(out.contains(wanted), "{out}");
    }
    assert_eq!(done(&host, &["-V"]).lines().count(), 1);
    let status = json_of(&host, &["status"]);
    assert!(
        status["build"]["wasmtime"]
            .as_str()
            .expect("a version")
            .starts_with("48.")
    );
}
