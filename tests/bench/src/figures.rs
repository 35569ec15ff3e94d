//! Figures as they are measured: a line each for people, JSON for scripts. The chart is drawn in
//! [`crate::chart`].

use std::path::Path;

use anyhow::Context as _;
use serde_json::{Map, Value, json};

use crate::machine;

/// A figure: the median of its samples.
pub(crate) struct Figure {
    /// `<scenario>.<name>`.
    pub(crate) name: String,
    /// The median.
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    /// The least sample.
    pub(crate) low: f64,
    /// The greatest.
    pub(crate) high: f64,
    /// All of them, in the order of the rounds.
    pub(crate) samples: Vec<f64>,
}

/// A figure held against a promise.
pub(crate) struct Verdict {
    /// `<scenario>.<name>`.
    pub(crate) name: String,
    /// The figure that was looked at.
    pub(crate) figure: String,
    /// Its median.
    pub(crate) value: f64,
    /// `<=2`, `>=0.5`.
    pub(crate) bound: String,
    pub(crate) ok: bool,
}

/// Every figure of a run, in order.
pub(crate) struct Figures {
    pub(crate) figures: Vec<Figure>,
    pub(crate) verdicts: Vec<Verdict>,
    notes: Map<String, Value>,
    /// The machine's load before the first scenario.
    load_before: String,
}

impl Default for Figures {
    fn default() -> Self {
        Self {
            figures: Vec::new(),
            verdicts: Vec::new(),
            notes: Map::new(),
            load_before: machine::load(),
        }
    }
}

impl Figures {
    /// Prints and keeps a figure.
    pub(crate) fn add(&mut self, figure: Figure) {
        let Figure {
            name,
            value,
            unit,
            low,
            high,
            samples,
        } = &figure;
        println!("figure {name} {value:.3} {unit}");
        println!("spread {name} {low:.3} {high:.3} {}", samples.len());
        self.figures.push(figure);
    }

    /// Prints and keeps a verdict.
    pub(crate) fn judge(&mut self, verdict: Verdict) {
        let Verdict {
            name, value, bound, ..
        } = &verdict;
        let word = if verdict.ok { "ok" } else { "missed" };
        println!("verdict {name} {value:.3} {bound} {word}");
        self.verdicts.push(verdict);
    }

    /// Keeps the settings of a contender.
    pub(crate) fn note(&mut self, name: &str, text: &str) {
        self.notes.insert(name.to_owned(), json!(text));
    }

    /// Writes them down, with what must be known of the machine to judge them later.
    pub(crate) fn write(&self, file: &Path) -> anyhow::Result<()> {
        let figures: Map<String, Value> = self.figures.iter().map(figure).collect();
        let verdicts: Map<String, Value> = self.verdicts.iter().map(verdict).collect();
        let text = serde_json::to_string_pretty(&json!({
            "machine": machine::facts(&self.load_before),
            "verdicts": verdicts,
            "figures": figures,
            "notes": self.notes,
        }))?;
        std::fs::write(file, text).with_context(|| format!("write {}", file.display()))
    }
}

fn figure(figure: &Figure) -> (String, Value) {
    let value = json!({
        "value": figure.value,
        "unit": figure.unit,
        "low": figure.low,
        "high": figure.high,
        "samples": figure.samples,
    });
    (figure.name.clone(), value)
}

fn verdict(verdict: &Verdict) -> (String, Value) {
    let value = json!({
        "figure": verdict.figure,
        "value": verdict.value,
        "bound": verdict.bound,
        "ok": verdict.ok,
    });
    (verdict.name.clone(), value)
}

/// The middle one of several measurements; between the two middle ones of an even number.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.get(middle) {
        None => f64::NAN,
        Some(upper) if values.len() % 2 == 1 => *upper,
        Some(upper) => {
            let lower = values.get(middle.wrapping_sub(1)).unwrap_or(upper);
            f64::midpoint(*lower, *upper)
        }
    }
}

/// The least and the greatest of several measurements.
pub(crate) fn spread(values: &[f64]) -> (f64, f64) {
    let least = values.iter().copied().fold(f64::NAN, f64::min);
    let greatest = values.iter().copied().fold(f64::NAN, f64::max);
    (least, greatest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert!((median(vec![3.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
        assert!((median(vec![4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < 1e-9);
        assert!(median(Vec::new()).is_nan());
        assert_eq!(spread(&[2.0, 1.0, 3.0]), (1.0, 3.0));
    }
}
