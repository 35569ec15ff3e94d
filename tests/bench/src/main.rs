//! Benchmarks, run by hand: `cargo bench-oncue smoke [--json FILE]`. Each figure is a line
//! `figure <name> <value> <unit>`.
//!
//! The machines are shared and noisy: compare figures of one run, as the ratios do. Numbers of a
//! debug build say nothing; the alias builds in release.

#![expect(clippy::print_stdout, reason = "figures are its output")]

mod figures;
mod floor;
mod host;
mod smoke;

use figures::Figures;

const USAGE: &str = "usage: cargo bench-oncue smoke [--json FILE]";

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let file = match arguments.as_slice() {
        ["smoke"] => None,
        ["smoke", "--json", file] => Some(*file),
        _ => anyhow::bail!("{USAGE}"),
    };
    let mut figures = Figures::default();
    smoke::run(&mut figures)?;
    if let Some(file) = file {
        figures.write(file.as_ref())?;
    }
    Ok(())
}
