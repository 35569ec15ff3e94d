//! Figures as they are measured: a line each for people, JSON for scripts.

use std::path::Path;

use anyhow::Context as _;
use serde_json::{Map, Value, json};

/// Every figure of a run, in order.
#[derive(Default)]
pub(crate) struct Figures(Map<String, Value>);

impl Figures {
    /// Prints and keeps a figure.
    pub(crate) fn add(&mut self, name: &str, value: f64, unit: &str) {
        println!("figure {name} {value:.3} {unit}");
        self.0
            .insert(name.to_owned(), json!({"value": value, "unit": unit}));
    }

    /// Prints and keeps how two figures of this run compare.
    pub(crate) fn ratio(&mut self, name: &str, of: f64, to: f64) {
        self.add(name, of / to, "ratio");
    }

    /// Writes them down.
    pub(crate) fn write(&self, file: &Path) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(&self.0)?;
        std::fs::write(file, text).with_context(|| format!("write {}", file.display()))
    }
}

/// The middle one of several measurements.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
