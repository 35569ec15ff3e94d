//! `plugin inspect` and `plugin check`: what a component is, and whether a host would load it. No
//! host is asked; components are compiled and tried here, in a child process and under limits.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use oncue_core::admission::Demand;
use oncue_runtime::plugin::{self, Capacity, CheckReport, CompileCommand, Compiler, Inspection};
use oncue_runtime::{Sandbox, SandboxConfig};
use serde_json::json;

use crate::commands::plugin::NEXT_FAULT;
use crate::config::Config;
use crate::exit::{Exit, Failure};
use crate::render::Screen;
use crate::render::table::{Cell, Table};
use crate::render::time::{format_bytes, format_duration};
use crate::serve;

/// Instances of the sandbox: one component is tried at a time.
const SLOTS: u32 = 16;

/// Attributes that a check shows: what the plugin may take and reach.
const SHOWN: &[&str] = &[
    "fuel",
    "memory",
    "table-elements",
    "deadline",
    "reuse",
    "batch",
    "grants.put",
    "grants.get",
    "grants.browse",
    "grants.environment",
];

fn compiler() -> Result<Compiler, Failure> {
    let command = CompileCommand::this_binary().context("find this program, to compile with")?;
    Ok(Compiler::Child(command))
}

/// Says what a component exports, imports and needs.
pub(crate) fn inspect(screen: &Screen, file: &Path) -> Result<(), Failure> {
    if !file.is_file() {
        let message = format!("\"{}\" is not a file; name a component", file.display());
        return Err(Failure::new(Exit::NotFound, message));
    }
    let inspection = plugin::inspect(file, &compiler()?)
        .map_err(|message| Failure::new(Exit::Failed, message))?;
    if screen.is_json() {
        return screen.json(&json!(inspection));
    }
    screen.headline(&inspected(&inspection))?;
    screen.table(&inspection_table(&inspection), "")
}

fn inspected(inspection: &Inspection) -> String {
    let file = inspection.file.display();
    match &inspection.style {
        Some(style) => format!(
            "\"{file}\" is a handler of {style} style: {}",
            inspection.why
        ),
        None => inspection.why.clone(),
    }
}

fn inspection_table(inspection: &Inspection) -> Table {
    let mut table = Table::new(&["", ""]);
    let mut fact = |name: &str, text: String| table.row(vec![Cell::new(name), Cell::new(text)]);
    fact("digest", inspection.digest.clone());
    fact("size", format_bytes(inspection.size));
    if let Some(time) = inspection.compile_time {
        fact("compiled in", format_duration(time));
    }
    if let Some(size) = inspection.compiled_size {
        fact("compiled size", format_bytes(size));
    }
    if let Some(fault) = &inspection.compile_fault {
        fact("not compiled", fault.clone());
    }
    for (name, list) in [
        ("exports", &inspection.exports),
        ("imports", &inspection.imports),
    ] {
        for (index, item) in list.iter().enumerate() {
            fact(if index == 0 { name } else { "" }, item.clone());
        }
    }
    table
}

/// Checks plugins as a host of these settings would at load.
pub(crate) fn check(screen: &Screen, config: &Config, files: &[PathBuf]) -> Result<(), Failure> {
    let sandbox =
        Sandbox::new(SandboxConfig { slots: Some(SLOTS) }).context("the sandbox cannot be made")?;
    let total = Demand {
        memory: serve::memory_capacity(config),
        fuel: serve::fuel_capacity(config, || sandbox.measure_fuel_rate()),
    };
    let capacity = Capacity {
        total,
        table_elements: sandbox.limits().max_table_elements,
    };
    let reports = plugin::check(files, &sandbox, compiler()?, &capacity)
        .map_err(|error| Failure::new(Exit::of_code(error.code()), error.to_string()))?;
    if screen.is_json() {
        screen.json(&json!(reports))?;
    } else {
        for report in &reports {
            print_report(screen, report)?;
        }
    }
    let bad = reports.iter().filter(|report| !report.is_good()).count();
    if bad == 0 {
        return Ok(());
    }
    let message = format!("{bad} of {} plugins would be quarantined", reports.len());
    Err(Failure::new(Exit::Refused, message))
}

fn print_report(screen: &Screen, report: &CheckReport) -> Result<(), Failure> {
    let name = &report.plugin;
    if report.is_good() {
        screen.headline(&format!("ok    {name}"))?;
    } else {
        screen.headline(&format!("BAD   {name}"))?;
    }
    let faults = report.faults.iter();
    for fault in faults.flat_map(|faults| faults.split(NEXT_FAULT)) {
        screen.text(&format!("      {fault}"))?;
    }
    for warning in &report.warnings {
        screen.text(&format!("      warning: {warning}"))?;
    }
    let facts = report_table(report);
    if facts.is_empty() {
        Ok(())
    } else {
        screen.table(&facts, "")
    }
}

fn report_table(report: &CheckReport) -> Table {
    let mut table = Table::new(&["", "", ""]);
    let mut fact = |name: &str, text: String| {
        if !text.is_empty() {
            table.row(vec![Cell::new("    "), Cell::new(name), Cell::new(text)]);
        }
    };
    let style = report.style.clone().unwrap_or_default();
    match &report.why {
        Some(why) if !style.is_empty() => fact("style", format!("{style}: {why}")),
        _ => fact("style", style),
    }
    fact("queues", report.queues.join(", "));
    for (name, value) in &report.attributes {
        if SHOWN.contains(&name.as_str()) && value != "[]" && value != "{}" {
            fact(name, value.clone());
        }
    }
    fact("digest", report.digest.clone().unwrap_or_default());
    fact(
        "compiled in",
        report.compile_time.map(format_duration).unwrap_or_default(),
    );
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::Format;
    use crate::render::tests::Shared;

    #[test]
    fn a_report_tells_faults_first() {
        let report = CheckReport {
            plugin: "orders".to_owned(),
            queues: vec!["orders".to_owned(), "more".to_owned()],
            attributes: [("fuel", "10 G"), ("grants.put", "[]"), ("description", "x")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .to_vec(),
            faults: vec!["\"orders.wasm\" is no component [plugin-refused]".to_owned()],
            ..CheckReport::default()
        };
        let shared = Shared::default();
        let screen = Screen::buffer(Format::Table, Box::new(shared.clone()));
        print_report(&screen, &report).expect("printed");
        assert_eq!(
            shared.text(),
            "BAD   orders\n      \"orders.wasm\" is no component [plugin-refused]\n\
             \u{20}     queues  orders, more\n      fuel    10 G\n"
        );
    }
}
