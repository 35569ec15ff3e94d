//! What each command does: ask the host, show the answer. One file for each group.
//!
//! A command knows the paths of `/v1` and what its answer looks like; it never reads the store nor
//! talks to the manager. `serve`, `demo`, `run`, `test` and the local plugin commands are the
//! exceptions: no host is asked there.

mod alarms;
mod audit;
mod browse;
pub(crate) mod check;
mod component;
mod config;
mod dead_letters;
mod definitions;
pub(crate) mod doctor;
mod explain;
mod export;
mod get;
mod lease;
mod logs;
mod message;
mod mqsc;
mod new;
pub(crate) mod plugin;
mod process;
mod put;
mod queue;
mod shell;
mod status;
mod task;
mod token;
mod top;
mod trigger;
mod wit;

use serde_json::Value;

use crate::args::{Cli, Command};
use crate::client::Client;
use crate::config::Config;
use crate::exit::Failure;
use crate::render::Screen;
use crate::render::table::{Cell, Table};
use crate::render::time::number_of;
use crate::render::values::plain;
use crate::workshop;

/// What a command has at hand.
pub(crate) struct Context {
    /// Asks the host.
    pub(crate) client: Client,
    /// Prints.
    pub(crate) screen: Screen,
    /// The settings that hold.
    pub(crate) config: Config,
}

/// So many messages, in words.
fn messages(count: &Value) -> String {
    number_of(count.as_u64().unwrap_or_default(), "message")
}

/// Runs a command that talks to a host, or none of the process's own.
///
/// # Errors
/// Whatever keeps the command from being done; the caller prints it.
pub(crate) fn run(cli: &Cli) -> Result<(), Failure> {
    let config = Config::load(cli.globals.flags(), cli.globals.config.as_deref())?;
    let context = Context {
        client: Client::of(&config)?,
        screen: Screen::standard(cli.globals.format, cli.globals.quiet),
        config,
    };
    let done = dispatch(&context, cli);
    context.screen.end_progress();
    // What was printed before a failure is handed over too; the failure is the greater news.
    let flushed = context.screen.flush();
    done.and(flushed)
}

fn dispatch(context: &Context, cli: &Cli) -> Result<(), Failure> {
    match &cli.command {
        Command::Put(args) => put::run(context, args),
        Command::Get(args) => get::run(context, args),
        Command::Browse(args) => browse::run(context, args),
        Command::Message(command) => message::run(context, command),
        Command::Lease(command) => lease::run(context, command),
        Command::Redrive(args) => dead_letters::redrive_plainly(context, args),
        Command::Dlq(command) => dead_letters::run(context, command),
        Command::Queue(command) => queue::run(context, command),
        Command::Process(command) => process::run(context, command),
        Command::Export(args) => definitions::export(context, args),
        Command::Apply(args) => definitions::apply(context, args),
        Command::Mqsc(args) => mqsc::run(context, args),
        Command::Plugin(command) => plugin::run(context, command),
        Command::New(args) => new::run(context, args),
        Command::Run(args) => workshop::run(&context.screen, args),
        Command::Test(args) => workshop::test(&context.screen, args),
        Command::Trigger(args) => trigger::run(context, args),
        Command::Pause(args) => trigger::pause(context, args, "pause"),
        Command::Resume(args) => trigger::pause(context, args, "resume"),
        Command::Explain(args) => explain::run(context, args),
        Command::Tasks(args) => task::list(context, args),
        Command::Task(command) => task::run(context, command),
        Command::Logs(args) => logs::run(context, args),
        Command::Status => status::run(context),
        Command::Top(args) => top::run(context, args),
        Command::Token(command) => token::run(context, cli, command),
        Command::Audit(args) => audit::run(context, args),
        Command::Ledger => status::ledger(context),
        Command::Check(command) => check::run(context, command),
        Command::Doctor(args) => doctor::run(context, cli, args),
        Command::Alarms => alarms::run(context),
        Command::Wit(args) => wit::run(context, args),
        Command::Completions(args) => shell::completions(context, args),
        Command::Man(args) => shell::man(context, args),
        Command::Config(command) => config::run(context, cli, command),
        Command::Serve(_) | Command::Dev(_) => unreachable!("the caller runs it itself"),
        #[cfg(feature = "demo")]
        Command::Demo(_) => unreachable!("the caller runs it itself"),
    }
}

/// Shows an answer that says what was changed: JSON as it is, or a sentence on stderr.
fn done(context: &Context, answer: &Value, sentence: &str) -> Result<(), Failure> {
    if context.screen.is_json() {
        return if answer.is_null() {
            Ok(())
        } else {
            context.screen.json(answer)
        };
    }
    context.screen.say(sentence);
    Ok(())
}

/// The attributes of a definition with their origins.
fn attributes(view: &Value) -> Table {
    let mut table = Table::new(&["ATTRIBUTE", "VALUE", "FROM"]);
    let Some(entries) = view.get("attributes").and_then(Value::as_object) else {
        return table;
    };
    let origins = view.get("origins").unwrap_or(&Value::Null);
    for (name, value) in entries {
        match value.as_object() {
            // A table of attributes, such as retry; a table of the user's own has no such origins.
            Some(inner) if is_group(name) => {
                for (member, value) in inner {
                    attribute(&mut table, &format!("{name}.{member}"), value, origins);
                }
            }
            _ => attribute(&mut table, name, value, origins),
        }
    }
    table
}

/// Whether attributes stand in a table of that name.
fn is_group(name: &str) -> bool {
    use oncue_core::definition::{PROCESS_ATTRIBUTES, QUEUE_ATTRIBUTES};
    let all = QUEUE_ATTRIBUTES.iter().chain(PROCESS_ATTRIBUTES);
    all.into_iter().any(|info| {
        info.name
            .split_once('.')
            .is_some_and(|(group, _)| group == name)
    })
}

fn attribute(table: &mut Table, name: &str, value: &Value, origins: &Value) {
    let origin = origins
        .get(name)
        .and_then(Value::as_str)
        .unwrap_or("default");
    let text = match value {
        // An attribute's value is written as in a manifest.
        Value::Bool(_) => value.to_string(),
        _ => plain(value),
    };
    table.row(vec![Cell::new(name), Cell::new(text), Cell::new(origin)]);
}

/// A digest, short enough for a table.
pub(crate) fn short_digest(digest: &str) -> String {
    const SHOWN: usize = 12;
    digest.chars().take(SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn attributes_are_shown_with_their_origins() {
        let view = json!({
            "attributes": {
                "trigger": "first", "retry": { "initial": "1s", "jitter": 20 }, "max-tasks": 4,
                "config": { "region": "eu" }, "grants": { "put": ["a", "b"] },
            },
            "origins": { "retry.jitter": "manifest", "max-tasks": "operator" },
        });
        assert_eq!(
            attributes(&view).render(None, false),
            "ATTRIBUTE      VALUE      FROM\n\
             trigger        first      default\n\
             retry.initial  1s         default\n\
             retry.jitter   20         manifest\n\
             max-tasks      4          operator\n\
             config         region=eu  default\n\
             grants.put     a, b       default\n"
        );
    }
}
