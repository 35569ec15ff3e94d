//! A run's figures as a picture: bars with their spread, one panel for each unit of a scenario.
//!
//! Written as SVG by hand: bars and texts need no crate. A panel whose figures differ by more than
//! [`LOG_FROM`] has a logarithmic axis, and says so.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context as _;

use crate::figures::{Figure, Figures, Verdict};

/// Sizes in points.
const WIDTH: f64 = 960.0;
const LABEL: f64 = 300.0;
const NUMBER: f64 = 150.0;
const BAR: f64 = 16.0;
const LINE: f64 = 22.0;
const HEAD: f64 = 44.0;

/// From this ratio between the greatest and the least figure on, the axis is logarithmic.
const LOG_FROM: f64 = 50.0;

/// Draws the figures of a run.
pub(crate) fn draw(figures: &Figures, file: &Path) -> anyhow::Result<()> {
    let mut body = String::new();
    let mut top = 10.0;
    for panel in panels(&figures.figures) {
        top = draw_panel(&mut body, &panel, top);
    }
    if !figures.verdicts.is_empty() {
        top = draw_verdicts(&mut body, &figures.verdicts, top);
    }
    let height = top + 20.0;
    let text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{body}</svg>\n"
    );
    std::fs::write(file, text).with_context(|| format!("write {}", file.display()))
}

/// Figures of one scenario and one unit.
struct Panel<'a> {
    title: String,
    figures: Vec<&'a Figure>,
}

fn panels(figures: &[Figure]) -> Vec<Panel<'_>> {
    let mut panels: Vec<Panel<'_>> = Vec::new();
    for figure in figures {
        let (scenario, _) = split(&figure.name);
        let title = format!("{scenario}: {}", figure.unit);
        match panels.iter_mut().find(|panel| panel.title == title) {
            Some(panel) => panel.figures.push(figure),
            None => panels.push(Panel {
                title,
                figures: vec![figure],
            }),
        }
    }
    panels
}

fn split(name: &str) -> (&str, &str) {
    name.split_once('.').unwrap_or(("", name))
}

/// Where a value lies between nothing and the panel's greatest, from 0 to 1.
struct Axis {
    low: f64,
    high: f64,
    log: bool,
}

impl Axis {
    fn new(figures: &[&Figure]) -> Self {
        let finite = |value: &f64| value.is_finite() && *value > 0.0;
        let values = || figures.iter().map(|figure| figure.value).filter(finite);
        let least = values().fold(f64::INFINITY, f64::min);
        let high = figures
            .iter()
            .map(|figure| figure.high)
            .filter(finite)
            .fold(0.0, f64::max);
        let log = least.is_finite() && high / least > LOG_FROM;
        // A logarithmic axis begins at a power of ten below the least.
        let low = if log {
            10_f64.powf(least.log10().floor())
        } else {
            0.0
        };
        Self { low, high, log }
    }

    fn place(&self, value: f64) -> f64 {
        if !value.is_finite() || self.high <= 0.0 {
            return 0.0;
        }
        let part = if self.log {
            let whole = self.high.log10() - self.low.log10();
            (value.max(self.low).log10() - self.low.log10()) / whole
        } else {
            value / self.high
        };
        part.clamp(0.0, 1.0)
    }
}

fn draw_panel(body: &mut String, panel: &Panel<'_>, top: f64) -> f64 {
    let axis = Axis::new(&panel.figures);
    let room = WIDTH - LABEL - NUMBER;
    let scale = if axis.log { " (logarithmic)" } else { "" };
    heading(body, &format!("{}{scale}", panel.title), top);
    let mut line = top + HEAD;
    for figure in &panel.figures {
        let (_, name) = split(&figure.name);
        let (text_at, middle) = (line + BAR - 4.0, line + BAR / 2.0);
        let bar = axis.place(figure.value) * room;
        let (from, to) = (
            axis.place(figure.low) * room,
            axis.place(figure.high) * room,
        );
        let _ = writeln!(
            body,
            "<text x=\"{:.1}\" y=\"{text_at:.1}\" text-anchor=\"end\">{}</text>\n\
             <rect x=\"{LABEL}\" y=\"{line:.1}\" width=\"{bar:.1}\" height=\"{BAR}\" \
             fill=\"#4a7fb5\"/>\n\
             <line x1=\"{:.1}\" y1=\"{middle:.1}\" x2=\"{:.1}\" y2=\"{middle:.1}\" \
             stroke=\"#222\" stroke-width=\"2\"/>\n\
             <text x=\"{:.1}\" y=\"{text_at:.1}\">{}</text>",
            LABEL - 8.0,
            escape(name),
            LABEL + from,
            LABEL + to,
            LABEL + to.max(bar) + 8.0,
            number(figure.value),
        );
        line += LINE;
    }
    line + 10.0
}

fn draw_verdicts(body: &mut String, verdicts: &[Verdict], top: f64) -> f64 {
    heading(body, "promises", top);
    let mut line = top + HEAD;
    for verdict in verdicts {
        let (word, colour) = if verdict.ok {
            ("ok", "#2a7a2a")
        } else {
            ("missed", "#b03030")
        };
        let text_at = line + BAR - 4.0;
        let _ = writeln!(
            body,
            "<text x=\"{:.1}\" y=\"{text_at:.1}\" text-anchor=\"end\">{}</text>\n\
             <text x=\"{LABEL}\" y=\"{text_at:.1}\" fill=\"{colour}\">{} {} {word}</text>",
            LABEL - 8.0,
            escape(&verdict.name),
            number(verdict.value),
            escape(&verdict.bound),
        );
        line += LINE;
    }
    line + 10.0
}

fn heading(body: &mut String, text: &str, top: f64) {
    let y = top + 26.0;
    let text = escape(text);
    let _ = writeln!(
        body,
        "<text x=\"10\" y=\"{y:.1}\" font-size=\"15\" font-weight=\"bold\">{text}</text>"
    );
}

/// A number with about three digits that matter.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(name: &str, value: f64) -> Figure {
        Figure {
            name: name.to_owned(),
            value,
            unit: "us",
            low: value * 0.9,
            high: value * 1.1,
            samples: vec![value],
        }
    }

    #[test]
    fn figures_of_one_scenario_and_unit_share_a_panel() {
        let figures = [figure("a.x", 1.0), figure("b.x", 2.0), figure("a.y", 3.0)];
        let panels = panels(&figures);
        let sizes: Vec<_> = panels.iter().map(|panel| panel.figures.len()).collect();
        assert_eq!(sizes, [2, 1]);
    }

    #[test]
    fn far_apart_figures_have_a_logarithmic_axis() {
        let (small, great) = (figure("a.x", 1.0), figure("a.y", 1000.0));
        assert!(!Axis::new(&[&great]).log);
        let axis = Axis::new(&[&small, &great]);
        assert!(axis.log);
        assert!(axis.place(1.0) < axis.place(10.0) && axis.place(1100.0) <= 1.0);
    }
}
