//! Benchmarks, run by hand: `cargo bench-oncue SCENARIO|all [--quick] [--rounds N] [--only PART]
//! [--json FILE] [--chart FILE]`. Each figure is a line `figure <scenario>.<name> <value> <unit>`;
//! what the project promises is a line `verdict ...`. See the README beside this package.
//!
//! The machines are shared and noisy: compare figures of one run, as the ratios do. Numbers of a
//! debug build say nothing; the alias builds in release.
//!
//! A host in a process of its own is this program again: `oncue-bench oncue serve ...` is the whole
//! command line of `oncue`.

#![expect(clippy::print_stdout, reason = "figures are its output")]

/// As the product has it.
#[path = "../../../host/allocator.rs"]
mod allocator;
mod append_log;
mod callers;
mod chart;
mod child;
mod classic;
mod cpu;
mod figures;
mod floor;
mod host;
mod http;
mod load;
mod machine;
mod open_loop;
mod path;
#[cfg(feature = "peers")]
mod peers;
mod raw_log;
mod run;
mod scenarios;
mod server;
mod watched;

use std::process::ExitCode;

use anyhow::Context as _;

use run::Run;
use scenarios::{SCENARIOS, Scenario};

/// The first argument by which this program is the `oncue` command.
const COMMAND: &str = "oncue";

fn main() -> ExitCode {
    allocator::keep_memory();
    let line: Vec<_> = std::env::args_os().collect();
    let first = line.get(1).and_then(|first| first.to_str());
    match first {
        Some(COMMAND) => return oncue_cli::run_line(line.into_iter().skip(1).collect(), None),
        // A host that runs here compiles plugins in a child of its own.
        Some(oncue_runtime::plugin::SUBCOMMAND) => return oncue_cli::run_line(line, None),
        _ => {}
    }
    let ran = match first {
        Some(classic::MONITOR) => {
            let arguments: Vec<String> = std::env::args().skip(2).collect();
            classic::monitor(&arguments)
        }
        _ => bench(),
    };
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("failed: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn bench() -> anyhow::Result<()> {
    let mut names = Vec::new();
    let mut run = Run::default();
    let (mut json, mut chart) = (None, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || {
            arguments
                .next()
                .with_context(|| format!("{argument} what?"))
        };
        match argument.as_str() {
            "--quick" => run.quick = true,
            "--rounds" => run.rounds = Some(value()?.parse().context("--rounds takes a number")?),
            "--only" => run.only.push(value()?),
            "--json" => json = Some(value()?),
            "--chart" => chart = Some(value()?),
            name if !name.starts_with('-') => names.push(name.to_owned()),
            _ => anyhow::bail!("unknown argument {argument}; {}", usage()),
        }
    }
    let mut failed = None;
    for scenario in wanted(&names)? {
        run.begin(scenario.name);
        let ended = (scenario.run)(&mut run).with_context(|| format!("scenario {}", scenario.name));
        run.end();
        if let Err(error) = ended {
            // What the others measure is not lost for it.
            println!("failed: {error:#}");
            failed = Some(error);
        }
        if let Some(file) = &json {
            run.figures.write(file.as_ref())?;
        }
    }
    if let Some(file) = chart {
        chart::draw(&run.figures, file.as_ref())?;
    }
    failed.map_or(Ok(()), |_| {
        anyhow::bail!("a scenario failed; its line is above")
    })
}

/// The scenarios that were named, in the order of the table.
fn wanted(names: &[String]) -> anyhow::Result<Vec<&'static Scenario>> {
    for name in names {
        let known = name == "all" || SCENARIOS.iter().any(|scenario| scenario.name == name);
        anyhow::ensure!(known, "no scenario is called {name}; {}", usage());
    }
    anyhow::ensure!(!names.is_empty(), "{}", usage());
    let all = names.iter().any(|name| name == "all");
    let named = |scenario: &&Scenario| all || names.iter().any(|name| name == scenario.name);
    Ok(SCENARIOS.iter().filter(named).collect())
}

fn usage() -> String {
    let mut text = "usage: cargo bench-oncue SCENARIO...|all [--quick] [--rounds N] [--only PART] \
                    [--json FILE] [--chart FILE]\nscenarios:\n"
        .to_owned();
    for scenario in SCENARIOS {
        text.push_str(&format!("  {:<10} {}\n", scenario.name, scenario.what));
    }
    text
}
