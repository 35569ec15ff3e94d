//! How often: requests of an identity, failures to name one from an address, and refusals that are
//! written down.

use std::hash::{BuildHasher as _, Hash, RandomState};
use std::net::IpAddr;
use std::num::NonZeroU32;

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};

use crate::addresses::network_of;

/// Requests that an identity may make at once before its rate holds, as a multiple of the rate.
const BURST: u32 = 2;

/// Failures that an address may make at once.
const FAILURES_AT_ONCE: NonZeroU32 = NonZeroU32::new(20).expect("above zero");

/// Failures a second that an address may make after that.
const FAILURES_A_SECOND: NonZeroU32 = NonZeroU32::new(2).expect("above zero");

/// Counters of failures. Addresses share one by chance, so that no number of addresses takes
/// memory; a share costs its innocent half nothing, because only failures are counted.
const COUNTERS: usize = 1_024;

/// The limit of one identity.
pub(super) fn of_identity(rate: NonZeroU32) -> DefaultDirectRateLimiter {
    let burst = rate.saturating_mul(NonZeroU32::MIN.saturating_add(BURST - 1));
    RateLimiter::direct(Quota::per_second(rate).allow_burst(burst))
}

/// Counts failures by address.
pub(super) struct Failures {
    counters: Vec<DefaultDirectRateLimiter>,
    hasher: RandomState,
}

impl Default for Failures {
    fn default() -> Self {
        let quota = Quota::per_second(FAILURES_A_SECOND).allow_burst(FAILURES_AT_ONCE);
        let counters = std::iter::repeat_with(|| RateLimiter::direct(quota));
        Self {
            counters: counters.take(COUNTERS).collect(),
            hasher: RandomState::new(),
        }
    }
}

impl Failures {
    /// Counts a failure; false when the address has made too many.
    pub(super) fn count(&self, address: IpAddr) -> bool {
        self.count_of(network_of(address))
    }

    /// The same of whoever has a name.
    pub(super) fn count_name(&self, name: &str) -> bool {
        self.count_of(name)
    }

    fn count_of(&self, whose: impl Hash) -> bool {
        let at = self.hasher.hash_one(whose) % COUNTERS as u64;
        let at = usize::try_from(at).unwrap_or_default();
        self.counters
            .get(at)
            .is_none_or(|counter| counter.check().is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_of_a_network_are_counted_together() {
        let failures = Failures::default();
        let address = |text: &str| text.parse::<IpAddr>().expect("an address");
        let first = address("2001:db8::1");
        for _ in 0..FAILURES_AT_ONCE.get() {
            assert!(failures.count(first));
        }
        assert!(!failures.count(first));
        assert!(!failures.count(address("2001:db8::ffff:1")));
        // Two of a thousand counters: all three others share it only once in a thousand million.
        let others = ["127.0.0.1", "10.0.0.1", "2001:db8:1::1"];
        assert!(
            others
                .into_iter()
                .any(|other| failures.count(address(other)))
        );
    }

    #[test]
    fn an_identity_has_its_rate_and_a_burst() {
        let limit = of_identity(NonZeroU32::new(5).expect("above zero"));
        let passed = (0..100).filter(|_| limit.check().is_ok()).count();
        assert!((10..20).contains(&passed), "{passed}");
    }
}
