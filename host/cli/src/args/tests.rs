//! The command line as a table: what is accepted, what it means, what is refused.

use clap::{CommandFactory, Parser};

use super::*;

fn parse(line: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(std::iter::once("oncue").chain(line.split_whitespace()))
}

#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn every_argument_is_documented() {
    fn walk(command: &clap::Command, path: &str) {
        for argument in command.get_arguments() {
            let id = argument.get_id();
            assert!(argument.get_help().is_some(), "{path}: {id} has no help");
        }
        for inner in command.get_subcommands() {
            let path = format!("{path} {}", inner.get_name());
            assert!(inner.get_about().is_some(), "{path} has no help");
            walk(inner, &path);
        }
    }
    walk(&Cli::command(), "oncue");
}

#[test]
fn every_setting_has_a_flag_and_every_flag_is_a_setting() {
    let mut command = Cli::command();
    command.build();
    let serve = command.find_subcommand("serve").expect("serve");
    for setting in crate::config::SETTINGS {
        let name = setting.name;
        let has = |argument: &clap::Arg| argument.get_long() == Some(name);
        let flag = serve.get_arguments().find(|argument| has(argument));
        let flag = flag.unwrap_or_else(|| panic!("no flag --{name}"));
        let help = flag.get_help().expect("help").to_string();
        let told = format!("[default: {}]", setting.default);
        let is_measured = setting.default == "auto" && help.contains("[default: ");
        let is_switch = setting.default == "false";
        let is_none = setting.default.is_empty() && help.contains("[default: none]");
        assert!(
            help.contains(&told) || is_measured || is_switch || is_none,
            "--{name}: {help}"
        );
    }
}

#[test]
fn good_lines_are_accepted() {
    for line in [
        "serve",
        "serve --listen 127.0.0.1:0 --volatile --slots 4 --log debug",
        "dev",
        "dev route-orders --listen 127.0.0.1:0 --fresh --test --log debug",
        "put orders hello",
        "put orders -",
        "put orders -5",
        "put orders --file order.json --priority 7 --property a=b --property a=c",
        "put orders --lines",
        "put orders - --lines",
        "put orders x -H oncue-priority=5 -H oncue-delay:5s --count 10",
        "get orders --wait 20s --max 10 --lease 1m --keep",
        "get orders --keep --ack",
        "get orders --id 00c0ffee0000000000000042",
        "browse orders --ready --max 5 --cursor abc",
        "message show orders 00c0ffee0000000000000042 --raw",
        "message remove orders 00c0ffee0000000000000042 --yes",
        "lease ack abc def",
        "lease nack abc --reason broken --delay 10s",
        "lease extend abc --lease 1m",
        "redrive",
        "redrive orders.failed --from orders --max 5",
        "queue list",
        "queue define orders trigger=depth trigger-depth=100",
        "queue define orders --trigger depth --retry.jitter 5 process=p",
        "queue alter orders max-tasks=4 --reset retry.initial --reset retry.max",
        "queue delete orders --force --yes",
        "queue clear orders --yes",
        "process define p --fuel 10G --grants.put a,b config=region=eu output=x",
        "process delete p",
        "plugin check a.wasm b",
        "run a.wasm",
        "run a.wasm -m a.json -m - -t x -H oncue-priority=5 --state a=1 --set b=2 -o json",
        "run a.wasm --trigger depth=3 --reply prices=17 --manifest b.toml --save cases/one",
        "test a.wasm --case cases --bless",
        "test . --faults cut-off,fuel --junit report.xml",
        "plugin inspect a.wasm",
        "plugin rollback p",
        "plugin componentize core.wasm",
        "plugin componentize core.wat -O out.wasm --wit wit --world mine -o json",
        "plugin componentize core.wasm --world message-handler",
        "plugin pack a.wasm",
        "plugin pack a.wasm --manifest b.toml --out c.wasm",
        "wit",
        "wit project/wit -o json",
        "new greeter",
        "new greeter --lang go --dir some/where",
        "trigger on orders",
        "pause",
        "pause --queue orders",
        "resume --process p",
        "explain orders -o json",
        "tasks --queue orders --outcome trapped --failed --max 5",
        "task show 17",
        "task export 17 -d cases --message 00c0ffee0000000000000042",
        "status --url http://127.0.0.1:1 --timeout 5s -q",
        "ledger",
        "config show --listen 0.0.0.0:1 --config other.toml",
    ] {
        if let Err(error) = parse(line) {
            panic!("{line}: {error}");
        }
    }
}

#[test]
fn bad_lines_are_refused_with_the_reason() {
    let check = |line: &str, part: &str| {
        let error = parse(line)
            .err()
            .unwrap_or_else(|| panic!("{line} was accepted"));
        let text = error.to_string();
        assert!(text.contains(part), "{line}: {text}");
    };
    check("put a/b hello", "use 1 to 128 of A-Z a-z 0-9 . _ -");
    check("put orders x --file f", "cannot be used with");
    check("put orders --lines --count 2", "cannot be used with");
    check("put orders x --priority high", "invalid digit");
    check("put orders x --property novalue", "write NAME=VALUE");
    check("get orders --wait 5", "has no unit");
    check("get orders --max 0", "1..=1000");
    check("get orders --id 42", "24 hexadecimal digits");
    check("lease ack", "required");
    check("trigger maybe orders", "invalid value");
    check("pause --queue a --process b", "cannot be used with");
    check("queue define orders --no-such 1", "--no-such");
    check("explain", "required");
    check("plugin componentize core.wasm --wit wit", "--world");
    check("new", "required");
    check("run a.wasm --trigger none", "depth=NUMBER");
    check("run a.wasm --reply 17", "write NAME=VALUE");
    check("test a.wasm --faults luck", "invalid value");
    check("frobnicate", "unrecognized subcommand");
}

#[test]
fn attributes_become_a_patch() {
    let line = "queue define orders max-tasks=4 --trigger depth retry.jitter=5 process=p";
    let Command::Queue(definitions::QueueCommand::Define(args)) =
        parse(line).expect("accepted").command
    else {
        panic!("not queue define");
    };
    assert_eq!(
        args.attributes
            .patch("queue \"orders\"", &[])
            .expect("a patch"),
        serde_json::json!({
            "process": "p", "trigger": "depth", "max-tasks": 4, "retry": { "jitter": 5 },
        })
    );
}

#[test]
fn all_faults_of_attributes_and_resets_are_named_at_once() {
    let line = "queue alter orders max-tasks=0 priority=10 --trigger sometimes \
                --reset max-tasks --reset no-such --reset description";
    let Command::Queue(definitions::QueueCommand::Alter(args)) =
        parse(line).expect("accepted").command
    else {
        panic!("not queue alter");
    };
    let failure = args
        .attributes
        .patch("queue \"orders\"", &args.reset)
        .expect_err("faults");
    assert_eq!(failure.exit, crate::exit::Exit::Usage);
    assert_eq!(failure.faults.len(), 5, "{:#?}", failure.faults);
}

#[test]
fn a_reset_is_null() {
    let Command::Process(definitions::ProcessCommand::Alter(args)) =
        parse("process alter p --memory 128MiB --reset fuel")
            .expect("accepted")
            .command
    else {
        panic!("not process alter");
    };
    assert_eq!(
        args.attributes
            .patch("process \"p\"", &args.reset)
            .expect("a patch"),
        serde_json::json!({ "fuel": null, "memory": "128 MiB" })
    );
}

#[test]
fn help_has_examples_and_exit_codes() {
    let help = Cli::command().render_long_help().to_string();
    assert!(help.contains("Exit codes: 0 done"), "{help}");
}
