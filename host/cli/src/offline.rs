//! `plugin inspect` and `plugin check`: what a component is, and whether a host would load it. No
//! host is asked; components are compiled and tried here, in a child process and under limits.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use oncue_core::admission::Demand;
use oncue_runtime::plugin::{
    self, Capacity, CheckReport, CompileCommand, Compiler, InspectFault, Inspection,
};
use oncue_runtime::{Sandbox, SandboxConfig};
use serde_json::json;

use crate::commands::plugin::NEXT_FAULT;
use crate::config::Config;
use crate::exit::{Exit, Failure};
use crate::render::Screen;
use crate::render::table::{Cell, Table};
use crate::render::time::{format_bytes, format_duration, format_number};
use crate::serve;
use crate::workshop;

/// Instances of the sandbox: one component is tried at a time.
const SLOTS: u32 = 16;

/// Attributes that a check shows: what the plugin may take and reach.
const SHOWN: &[&str] = &[
    "fuel",
    "memory",
    "table-elements",
    "deadline",
    "task-deadline",
    "max-puts",
    "max-unit",
    "output",
    "reuse",
    "batch",
    "grants.put",
    "grants.get",
    "grants.browse",
    "grants.http",
    "grants.environment",
];

fn compiler() -> Result<Compiler, Failure> {
    let command = CompileCommand::this_binary().context("find this program, to compile with")?;
    Ok(Compiler::Child(command))
}

/// The sandbox of this command.
fn sandbox() -> Result<Sandbox, Failure> {
    let config = SandboxConfig {
        slots: Some(SLOTS),
        ..SandboxConfig::default()
    };
    Ok(Sandbox::new(config).context("the sandbox cannot be made")?)
}

/// Says what a component exports, imports, asks for and costs.
pub(crate) fn inspect(screen: &Screen, file: &Path) -> Result<(), Failure> {
    if !file.is_file() {
        let message = format!("\"{}\" is not a file; name a component", file.display());
        return Err(Failure::new(Exit::NotFound, message));
    }
    let sandbox = sandbox()?;
    let inspected = plugin::inspect(file, &sandbox, compiler()?).map_err(|fault| {
        let (exit, message) = match fault {
            InspectFault::Refused(message) => (Exit::Refused, message),
            InspectFault::Host(message) => (Exit::Failed, message),
        };
        let mut faults = message.split(NEXT_FAULT).map(str::to_owned);
        let first = faults.next().unwrap_or_default();
        Failure::new(exit, first).with_faults(faults.collect())
    })?;
    let mut inspection = inspected.inspection;
    if let Some(plugin) = inspected.plugin {
        inspection.empty_call = Some(workshop::empty_call(plugin, sandbox)?);
    }
    if screen.is_json() {
        return screen.json(&json!(inspection));
    }
    screen.headline(&headline(&inspection))?;
    screen.table(&inspection_table(&inspection), "")
}

fn headline(inspection: &Inspection) -> String {
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
    let what = match inspection.core_module {
        true => ", a core module, made a component at load",
        false => "",
    };
    fact("size", format!("{}{what}", format_bytes(inspection.size)));
    if let Some(world) = &inspection.world {
        fact("world", world.clone());
    }
    rows(
        &mut fact,
        "warning",
        inspection.warnings.iter().map(String::as_str),
    );
    if let Some(manifest) = &inspection.manifest {
        fact("manifest", manifest.display().to_string());
    } else if inspection.embedded_manifest {
        fact("manifest", "embedded".to_owned());
    }
    if let Some(reason) = &inspection.manifest_fault {
        rows(&mut fact, "manifest fault", reason.split(NEXT_FAULT));
    }
    let granted = |(name, value): &(String, String)| {
        let name = name.strip_prefix("grants.").unwrap_or(name);
        format!("{name} {value}")
    };
    let grants: Vec<String> = inspection.grants.iter().map(granted).collect();
    rows(&mut fact, "grants asked", grants.iter().map(String::as_str));
    costs(inspection, &mut fact);
    let (exports, imports) = (&inspection.exports, &inspection.imports);
    rows(&mut fact, "exports", exports.iter().map(String::as_str));
    rows(&mut fact, "imports", imports.iter().map(String::as_str));
    table
}

/// What it took to compile, to instantiate and to call.
fn costs(inspection: &Inspection, fact: &mut impl FnMut(&str, String)) {
    if let Some(time) = inspection.compile_time {
        let size = inspection.compiled_size.map(format_bytes);
        let size = size.map(|size| format!(", to {size}")).unwrap_or_default();
        fact("compiled", format!("in {}{size}", format_duration(time)));
    }
    if let Some(time) = inspection.instantiate_microseconds {
        let fuel = format_number(inspection.instantiate_fuel.unwrap_or_default());
        let memory = format_bytes(inspection.memory.unwrap_or_default());
        let text = format!("in {}, {fuel} fuel, {memory} of memory", microseconds(time));
        fact("instantiated", text);
    }
    if let Some(call) = &inspection.empty_call {
        let fuel = format_number(call.fuel);
        let detail = call.detail.as_deref().map(|text| format!(": {text}"));
        let text = format!(
            "{fuel} fuel, {}{}",
            call.outcome,
            detail.unwrap_or_default()
        );
        fact("empty call", text);
    }
    if let Some(fault) = &inspection.fault {
        rows(fact, "fault", fault.split(NEXT_FAULT));
    }
}

/// So many microseconds, in words.
fn microseconds(time: u64) -> String {
    if time < 10_000 {
        format!("{time} us")
    } else {
        format_duration(time / 1_000)
    }
}

/// A fact of several lines.
fn rows<'a>(fact: &mut impl FnMut(&str, String), name: &str, lines: impl Iterator<Item = &'a str>) {
    for (index, line) in lines.enumerate() {
        fact(if index == 0 { name } else { "" }, line.to_owned());
    }
}

/// Checks plugins as a host of these settings would at load.
pub(crate) fn check(screen: &Screen, config: &Config, files: &[PathBuf]) -> Result<(), Failure> {
    let sandbox = sandbox()?;
    let total = Demand {
        memory: serve::memory_capacity(config),
        fuel: serve::fuel_capacity(config, || sandbox.measure_fuel_rate()),
    };
    let capacity = Capacity {
        total,
        table_elements: sandbox.limits().max_table_elements,
    };
    let keys = serve::plugin_keys(config)?;
    let reports = plugin::check(files, &sandbox, compiler()?, &capacity, &keys)
        .map_err(|error| Failure::new(Exit::of_code(error.code()), error.to_string()))?;
    if screen.is_json() {
        screen.json(&json!(reports))?;
    } else {
        for report in &reports {
            print_report(screen, report)?;
        }
    }
    let absent = reports.iter().filter(|report| report.is_absent).count();
    let bad = reports.iter().filter(|report| !report.is_good()).count() - absent;
    let of = reports.len();
    match (bad, absent) {
        (0, 0) => Ok(()),
        (0, _) => {
            let message = format!("{absent} of {of} files are not there");
            Err(Failure::new(Exit::NotFound, message))
        }
        _ => {
            let message = format!("{bad} of {of} plugins would be quarantined");
            Err(Failure::new(Exit::Refused, message))
        }
    }
}

fn print_report(screen: &Screen, report: &CheckReport) -> Result<(), Failure> {
    let name = &report.plugin;
    if report.is_good() {
        screen.headline(&format!("ok    {name}"))?;
    } else {
        screen.headline(&format!("BAD   {name}"))?;
    }
    for fault in &report.faults {
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
    fact("world", report.world.clone().unwrap_or_default());
    if report.embedded_manifest {
        fact("manifest", "embedded".to_owned());
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
    let imports = report.imports.iter().map(String::as_str);
    rows(&mut fact, "imports", imports);
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
