//! Benchmarks, run by hand.
fn main() {}
