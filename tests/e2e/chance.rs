//! Chance that can be repeated: a seed from `ONCUE_SEED`, or a new one, printed.

/// A source of chance for a test; its seed is shown when the test fails.
pub fn chance(test: &str) -> fastrand::Rng {
    let given = std::env::var("ONCUE_SEED").ok();
    let seed = match given.map(|text| text.parse::<u64>()) {
        Some(seed) => seed.expect("ONCUE_SEED is a number"),
        None => fastrand::u64(..),
    };
    eprintln!("{test}: ONCUE_SEED={seed}");
    fastrand::Rng::with_seed(seed)
}

/// How often a host is killed: `ONCUE_KILLS`, or 15.
pub fn kills() -> u32 {
    std::env::var("ONCUE_KILLS").map_or(15, |text| text.parse().expect("ONCUE_KILLS is a number"))
}
