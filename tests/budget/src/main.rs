//! Counts the instructions of named paths, without a clock: `cargo budget`.
//!
//! Each path is run twice under callgrind, once with twice the operations of the other; the
//! difference is their cost without start-up. The profile `counted` is a release build
//! without link-time optimisation: a debug build would charge for every layer that the compiler
//! removes.

#![expect(clippy::print_stdout, reason = "costs are its output")]

use std::process::{Command, Stdio};

use anyhow::Context as _;
use oncue_budget::budget::Budget;
use oncue_budget::paths::{PATHS, Path};

const USAGE: &str = "usage: cargo budget [check|write] [PATH]
  check  compare with tests/budget/budget.toml
  write  write what is measured into it
  run PATH COUNT  only run a path so often";

/// Set where valgrind must be there: without it nothing would be checked, and that must be seen.
const NEED: &str = "ONCUE_NEED_VALGRIND";

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["run", path, count] => {
            (find(path)?.run)(count.parse().context("COUNT is not a number")?);
            Ok(())
        }
        [] | ["check"] => compare(PATHS.iter(), false),
        ["check", path] => compare(std::iter::once(find(path)?), false),
        ["write"] => compare(PATHS.iter(), true),
        ["write", path] => compare(std::iter::once(find(path)?), true),
        _ => anyhow::bail!("{USAGE}"),
    }
}

fn find(name: &str) -> anyhow::Result<&'static Path> {
    let found = PATHS.iter().find(|path| path.name == name);
    let names = || PATHS.iter().map(|path| path.name).collect::<Vec<_>>();
    found.with_context(|| format!("path \"{name}\" is not one of {}", names().join(", ")))
}

/// True when there is a valgrind; else says that nothing is checked.
fn has_valgrind() -> anyhow::Result<bool> {
    let version = Command::new("valgrind").arg("--version").output();
    if version.is_ok_and(|output| output.status.success()) {
        return Ok(true);
    }
    anyhow::ensure!(
        std::env::var_os(NEED).is_none(),
        "valgrind is not installed; install it, or unset {NEED}"
    );
    println!("not run: valgrind is not installed, so no instruction was counted");
    Ok(false)
}

fn compare(paths: impl Iterator<Item = &'static Path>, rewrite: bool) -> anyhow::Result<()> {
    if !has_valgrind()? {
        return Ok(());
    }
    let mut budget = Budget::read(rewrite)?;
    for path in paths {
        let cost = cost(path)?;
        println!(
            "{}",
            budget.check("instructions", path.name, cost, path.unit)
        );
    }
    budget.finish()
}

/// Instructions of one operation.
fn cost(path: &Path) -> anyhow::Result<f64> {
    let once = instructions(path.name, path.count)?;
    let twice = instructions(path.name, path.count * 2)?;
    #[expect(clippy::cast_precision_loss, reason = "a count of some millions")]
    let difference = twice.saturating_sub(once) as f64;
    Ok(difference / f64::from(path.count))
}

/// Instructions of a whole run.
fn instructions(path: &str, count: u32) -> anyhow::Result<u64> {
    let this = std::env::current_exe().context("find this program")?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(this)
        .args(["run", path, &count.to_string()])
        .stdout(Stdio::null())
        .output()
        .context("run valgrind")?;
    let said = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "\"{path}\" failed:\n{said}");
    let collected = said
        .lines()
        .find_map(|line| line.split("Collected : ").nth(1));
    let collected =
        collected.with_context(|| format!("no count in what valgrind said:\n{said}"))?;
    collected.trim().parse().context("read valgrind's count")
}
