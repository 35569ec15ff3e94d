//! One run: samples of every contender, taken in turns, and what is made of them at the end.
//!
//! A scenario gives each figure one sample a round, all contenders in each round, so that the noise
//! of the machine meets them alike. A figure is the median of its samples; a ratio is the median of
//! the ratios of the same round; a verdict holds a figure against what the project promises.

use std::collections::HashMap;

use crate::figures::{Figure, Figures, Verdict, median, spread};

/// Rounds of a scenario when nothing else is asked for.
const ROUNDS: usize = 5;

/// Rounds of a quick run.
const QUICK_ROUNDS: usize = 3;

/// What a figure must keep to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

/// A promise, until the scenario is over.
struct Promise {
    name: String,
    figure: String,
    bound: Bound,
}

/// A run of the benchmarks.
#[derive(Default)]
pub(crate) struct Run {
    /// Each scenario is to end within a minute.
    pub(crate) quick: bool,
    /// Rounds, if the caller named them.
    pub(crate) rounds: Option<usize>,
    /// Only contenders whose name has one of these parts; all when there is none.
    pub(crate) only: Vec<String>,
    pub(crate) figures: Figures,
    scenario: &'static str,
    /// What is done now is not kept.
    warming: bool,
    samples: Vec<(String, &'static str, Vec<f64>)>,
    known: HashMap<String, usize>,
    promises: Vec<Promise>,
}

impl Run {
    /// A scenario begins.
    pub(crate) fn begin(&mut self, scenario: &'static str) {
        self.scenario = scenario;
        self.warming = false;
    }

    /// A round begins. Round 0 warms up, for scenarios that make one more than [`Run::rounds`]:
    /// what it samples and notes is dropped. It touches the memory that the later rounds use
    /// again, as a host does that has run for a while; on a virtual machine a first touch of a
    /// page can cost more than the message in it.
    pub(crate) fn begin_round(&mut self, round: usize) {
        self.warming = round == 0;
    }

    /// How many rounds to make.
    pub(crate) fn rounds(&self) -> usize {
        let usual = if self.quick { QUICK_ROUNDS } else { ROUNDS };
        self.rounds.unwrap_or(usual).max(1)
    }

    /// The size of something: smaller in a quick run.
    pub(crate) fn size<T>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }

    /// Whether a contender was asked for (`--only`). Floors need not ask.
    pub(crate) fn wants(&self, contender: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|part| contender.contains(part))
    }

    /// The contenders' numbers in the order of a round: each round begins with another one.
    #[expect(
        clippy::unused_self,
        reason = "an order of the run's, should it come to know better"
    )]
    pub(crate) fn order(&self, round: usize, contenders: usize) -> Vec<usize> {
        (0..contenders)
            .map(|turn| (turn + round) % contenders.max(1))
            .collect()
    }

    /// A sample of a figure: one a round.
    pub(crate) fn sample(&mut self, name: &str, value: f64, unit: &'static str) {
        if self.warming {
            return;
        }
        let next = self.samples.len();
        let place = *self.known.entry(name.to_owned()).or_insert(next);
        if place == next {
            self.samples.push((name.to_owned(), unit, Vec::new()));
        }
        if let Some((_, _, values)) = self.samples.get_mut(place) {
            values.push(value);
        }
    }

    /// How one figure compares with another, round by round, under the name `of/to`.
    pub(crate) fn ratio(&mut self, of: &str, to: &str) {
        let ratios: Vec<f64> = self
            .values(of)
            .iter()
            .zip(self.values(to))
            .map(|(of, to)| of / to)
            .collect();
        for ratio in ratios {
            self.sample(&format!("{of}/{to}"), ratio, "ratio");
        }
    }

    /// The samples of a figure so far.
    pub(crate) fn values(&self, name: &str) -> &[f64] {
        let place = self
            .known
            .get(name)
            .and_then(|place| self.samples.get(*place));
        place.map_or(&[], |(_, _, values)| values)
    }

    /// Holds a figure of this scenario against a promise. Printed at the end as
    /// `verdict <scenario>.<name> <value> <bound> ok|missed`; it never fails the run. A figure that
    /// was not asked for has none.
    pub(crate) fn verdict(&mut self, name: &str, figure: &str, bound: Bound) {
        self.promises.push(Promise {
            name: name.to_owned(),
            figure: figure.to_owned(),
            bound,
        });
    }

    /// Says under which settings a contender ran.
    pub(crate) fn note(&mut self, what: &str, text: &str) {
        if self.warming {
            return;
        }
        println!("note {}.{what} {text}", self.scenario);
        self.figures
            .note(&format!("{}.{what}", self.scenario), text);
    }

    /// A scenario is over: its figures are printed and kept.
    pub(crate) fn end(&mut self) {
        let promises = std::mem::take(&mut self.promises);
        let held = promises.into_iter().filter_map(|promise| {
            let values = self.values(&promise.figure);
            let value = (!values.is_empty()).then(|| median(values.to_vec()))?;
            let (text, ok) = match promise.bound {
                Bound::AtMost(bound) => (format!("<={bound}"), value <= bound),
                Bound::AtLeast(bound) => (format!(">={bound}"), value >= bound),
            };
            Some(Verdict {
                name: format!("{}.{}", self.scenario, promise.name),
                figure: format!("{}.{}", self.scenario, promise.figure),
                value,
                bound: text,
                ok,
            })
        });
        let held: Vec<_> = held.collect();
        self.known.clear();
        for (name, unit, values) in std::mem::take(&mut self.samples) {
            let (low, high) = spread(&values);
            self.figures.add(Figure {
                name: format!("{}.{name}", self.scenario),
                value: median(values.clone()),
                unit,
                low,
                high,
                samples: values,
            });
        }
        for verdict in held {
            self.figures.judge(verdict);
        }
    }
}
