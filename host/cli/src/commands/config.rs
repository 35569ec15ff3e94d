//! `config show`: every setting with its value and where it comes from.

use serde_json::{Map, Value, json};

use super::Context;
use crate::args::Cli;
use crate::args::serve::ConfigCommand;
use crate::config::Config;
use crate::exit::Failure;
use crate::render::table::{Cell, Table};

/// Prints the settings that hold. There is no secret among them.
pub(super) fn run(context: &Context, cli: &Cli, command: &ConfigCommand) -> Result<(), Failure> {
    let ConfigCommand::Show(args) = command;
    let mut flags = cli.globals.flags();
    flags.extend(args.flags());
    let config = Config::load(flags, cli.globals.config.as_deref())?;
    if context.screen.is_json() {
        let entries = config.all().iter().map(|resolved| {
            let entry = json!({ "value": resolved.text, "from": resolved.origin.to_string() });
            (resolved.setting.name.to_owned(), entry)
        });
        return context
            .screen
            .json(&Value::Object(entries.collect::<Map<_, _>>()));
    }
    let mut table = Table::new(&["SETTING", "VALUE", "FROM", "MEANING"]);
    for resolved in config.all() {
        table.row(vec![
            Cell::new(resolved.setting.name),
            Cell::new(&resolved.text),
            Cell::new(resolved.origin.to_string()),
            Cell::new(resolved.setting.meaning),
        ]);
    }
    context.screen.table(&table, "")
}
