//! The paths whose instructions are counted. Each does its work from fixed values: no clock, no
//! chance, and one thread wherever the store has none of its own.

mod embedded;
mod evaluate;
mod manager;
mod memory;
mod server;

/// A named stretch of work.
pub struct Path {
    /// Its name in the budget.
    pub name: &'static str,
    /// What one operation of it is.
    pub unit: &'static str,
    /// Operations of the smaller of two runs; the larger has twice as many.
    pub count: u32,
    /// Does the operations so often.
    pub run: fn(u32),
}

/// All of them.
pub const PATHS: &[Path] = &[
    evaluate::RULE,
    evaluate::PROCESS,
    memory::PUT,
    memory::MESSAGE,
    memory::BATCH,
    embedded::PUT,
    embedded::UNIT,
    embedded::MESSAGE,
    embedded::LOOSE,
    manager::PUT,
    manager::MESSAGE,
    manager::BURST,
    manager::BESIDE,
    manager::SWEEP,
    server::PUT,
];
