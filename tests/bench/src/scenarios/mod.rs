//! The scenarios, one a file; [`SCENARIOS`] is their index.

mod backlog;
mod classic;
mod cold;
mod cores;
mod floor;
mod idle;
mod latency;
mod mixed;
mod peers;
mod puts;
mod reload;
mod smoke;
mod soak;
mod trigger;

use crate::run::Run;

/// One scenario.
pub(crate) struct Scenario {
    /// Its name on the command line, and before the dot of its figures.
    pub(crate) name: &'static str,
    /// What it measures, in a line.
    pub(crate) what: &'static str,
    /// Measures.
    pub(crate) run: fn(&mut Run) -> anyhow::Result<()>,
}

/// All of them, in the order of `all`.
pub(crate) const SCENARIOS: &[Scenario] = &[
    smoke::SCENARIO,
    floor::SCENARIO,
    trigger::SCENARIO,
    latency::SCENARIO,
    puts::SCENARIO,
    classic::SCENARIO,
    peers::SCENARIO,
    idle::SCENARIO,
    backlog::SCENARIO,
    reload::SCENARIO,
    cold::SCENARIO,
    cores::SCENARIO,
    mixed::SCENARIO,
    soak::SCENARIO,
];
