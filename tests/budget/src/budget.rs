//! The budget file: a table of costs, each with the value that was measured when it was last
//! agreed upon, and how far a measurement may be above or below it.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// A cost may fall this far below its line, in percent, before the line must be lowered: a budget
/// that is far too large guards nothing.
const STALE_BELOW: f64 = 25.0;

/// How far above a new line's value a measurement may be, in percent.
const SLACK: f64 = 5.0;

/// One line of the budget.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// What was measured when the line was written.
    pub value: f64,
    /// How far above it a measurement may be, in percent.
    pub slack: f64,
    /// It is only a bound, because what is measured depends on how threads take turns.
    pub bound_only: bool,
}

impl Line {
    /// The largest measurement that passes.
    #[must_use]
    pub fn bound(self) -> f64 {
        self.value * (1.0 + self.slack / 100.0)
    }

    /// The smallest one for which the line need not be written anew.
    #[must_use]
    pub fn stale_below(self) -> f64 {
        if self.bound_only {
            return 0.0;
        }
        self.value * (1.0 - STALE_BELOW.max(self.slack) / 100.0)
    }
}

/// How a measurement compares with its line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// Within it.
    Within,
    /// Above it: a regression, or a price that somebody decides to pay.
    Above(Line),
    /// So far below it that the line must be written anew.
    Stale(Line),
    /// There is no line.
    Absent,
}

/// The budget as a file.
pub struct Budget {
    table: toml::Table,
    /// The file with the lines of what was measured, when it is to be written anew.
    rewritten: Option<String>,
    /// Measurements that do not fit, as sentences.
    faults: Vec<String>,
}

/// Where the budget stands.
#[must_use]
pub fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("budget.toml")
}

impl Budget {
    /// Reads the budget file. When `rewrite`, nothing fails and [`Budget::finish`] writes what was
    /// measured.
    ///
    /// # Errors
    /// It is not there, or is not TOML.
    pub fn read(rewrite: bool) -> anyhow::Result<Self> {
        let path = file();
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        Self::parse(text, rewrite)
    }

    fn parse(text: String, rewrite: bool) -> anyhow::Result<Self> {
        Ok(Self {
            table: text.parse().context("parse the budget")?,
            rewritten: rewrite.then_some(text),
            faults: Vec::new(),
        })
    }

    fn line(&self, table: &str, name: &str) -> Option<Line> {
        let line = self.table.get(table)?.get(name)?;
        let number = |field| {
            let value = line.get(field)?;
            #[expect(clippy::cast_precision_loss, reason = "costs are far below 2^52")]
            value
                .as_float()
                .or_else(|| value.as_integer().map(|whole| whole as f64))
        };
        if let Some(max) = number("max") {
            return Some(Line {
                value: max,
                slack: 0.0,
                bound_only: true,
            });
        }
        Some(Line {
            value: number("value")?,
            slack: number("slack")?,
            bound_only: false,
        })
    }

    /// Compares a measurement of `name` in `table` with its line.
    #[must_use]
    pub fn judge(&self, table: &str, name: &str, measured: f64) -> Verdict {
        match self.line(table, name) {
            None => Verdict::Absent,
            Some(line) if measured > line.bound() => Verdict::Above(line),
            Some(line) if measured < line.stale_below() => Verdict::Stale(line),
            Some(_) => Verdict::Within,
        }
    }

    /// Compares, and keeps what is wrong for [`Budget::finish`]. Answers a line for people.
    pub fn check(&mut self, table: &str, name: &str, measured: f64, unit: &str) -> String {
        let shown = show(measured);
        let line = self.line(table, name);
        let slack = line.map_or(SLACK, |line| line.slack);
        // A bound for every schedule is a person's to set.
        if self.rewritten.is_some() && line.is_some_and(|line| line.bound_only) {
            return format!("cost {name} {shown} {unit}");
        }
        let new = format!("{name} = {{ value = {shown}, slack = {} }}", show(slack));
        if let Some(text) = &mut self.rewritten {
            *text = replaced(text, table, &new);
            return new;
        }
        let budget = |line: Line| show(line.value);
        let said = match self.judge(table, name, measured) {
            Verdict::Within => return format!("cost {name} {shown} {unit}"),
            Verdict::Above(line) => format!(
                "\"{name}\" costs {shown} {unit}; its budget is {} and {} % more",
                budget(line),
                show(slack)
            ),
            Verdict::Stale(line) => format!(
                "\"{name}\" costs {shown} {unit}, far below its budget of {}; lower the budget",
                budget(line)
            ),
            Verdict::Absent => format!("\"{name}\" costs {shown} {unit} and has no budget"),
        };
        self.faults.push(format!("{said}\n  [{table}]\n  {new}"));
        format!("cost {name} {shown} {unit} NOT WITHIN BUDGET")
    }

    /// Ends the comparison, and writes the file anew if that was wanted.
    ///
    /// # Errors
    /// All measurements that did not fit, each with the line to write if that is the decision.
    pub fn finish(self) -> anyhow::Result<()> {
        if let Some(text) = self.rewritten {
            return std::fs::write(file(), text).context("write the budget");
        }
        anyhow::ensure!(
            self.faults.is_empty(),
            "not within the budget (tests/budget/budget.toml):\n{}",
            self.faults.join("\n")
        );
        Ok(())
    }
}

/// The text with `line` in its table, in the place of the old one of that name or at the end.
fn replaced(text: &str, table: &str, line: &str) -> String {
    let name_of = |line: &str| line.split('=').next().map(|name| name.trim().to_owned());
    let mut lines: Vec<&str> = text.lines().collect();
    let head = format!("[{table}]");
    let Some(start) = lines.iter().position(|line| *line == head) else {
        return format!("{text}\n{head}\n{line}\n");
    };
    let mut end = start + 1;
    while end < lines.len() && !lines[end].starts_with('[') {
        if name_of(lines[end]) == name_of(line) {
            lines[end] = line;
            return lines.join("\n") + "\n";
        }
        end += 1;
    }
    while lines[end - 1].is_empty() {
        end -= 1;
    }
    lines.insert(end, line);
    lines.join("\n") + "\n"
}

/// Whole when it is large, else with two digits behind the point.
fn show(value: f64) -> String {
    let text = format!("{value:.2}");
    if value >= 1000.0 {
        return format!("{value:.0}");
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "[instructions]\nput = { value = 1000, slack = 5 }\nasked = { max = 9 }\n\n[counts]\n";

    fn budget() -> Budget {
        Budget::parse(TEXT.to_owned(), false).expect("it parses")
    }

    fn check(name: &str, measured: f64, wanted: Verdict) {
        assert_eq!(budget().judge("instructions", name, measured), wanted);
    }

    #[test]
    fn a_cost_is_within_above_or_far_below_its_line() {
        let line = Line {
            value: 1000.0,
            slack: 5.0,
            bound_only: false,
        };
        check("put", 1000.0, Verdict::Within);
        check("put", 1049.0, Verdict::Within);
        check("put", 1051.0, Verdict::Above(line));
        check("put", 800.0, Verdict::Within);
        check("put", 700.0, Verdict::Stale(line));
        check("get", 1.0, Verdict::Absent);
        check("asked", 0.1, Verdict::Within);
    }

    #[test]
    fn what_does_not_fit_is_told_with_the_line_to_write() {
        let mut budget = budget();
        let told = budget.check("instructions", "put", 1200.0, "instructions");
        assert!(told.ends_with("NOT WITHIN BUDGET"), "{told}");
        let error = budget.finish().expect_err("it does not fit").to_string();
        let line = "put = { value = 1200, slack = 5 }";
        assert!(error.contains(line), "{error}");
    }

    #[test]
    fn a_line_replaces_the_old_one_of_its_name_or_stands_at_the_end_of_its_table() {
        let line = "put = { value = 7, slack = 5 }";
        assert_eq!(
            replaced(TEXT, "instructions", line),
            TEXT.replace("1000", "7")
        );
        let wanted = TEXT.replace("}\n\n", "}\nget = 1\n\n");
        assert_eq!(replaced(TEXT, "instructions", "get = 1"), wanted);
        assert_eq!(
            replaced(TEXT, "counts", "put = 1"),
            format!("{TEXT}put = 1\n")
        );
        assert_eq!(
            replaced(TEXT, "new", "a = 1"),
            format!("{TEXT}\n[new]\na = 1\n")
        );
    }
}
