//! A quick hash for what no sender chooses: sequences, numbers and owners, which the store or the
//! manager counts, and names, which operators define.
//!
//! Not for idempotency keys, groups or correlation ids: a sender could make those collide.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A map by a number or a name.
pub type QuickMap<K, V> = HashMap<K, V, BuildHasherDefault<Quick>>;
/// A set of numbers.
pub type QuickSet<K> = HashSet<K, BuildHasherDefault<Quick>>;

/// An odd number without a pattern: what multiplication by it does to neighbours looks random.
const FACTOR: u64 = 0xf135_7aea_2e62_a9c5;

/// The state of the hash.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quick(u64);

impl Hasher for Quick {
    fn write(&mut self, bytes: &[u8]) {
        let mut words = bytes.chunks_exact(8);
        for word in &mut words {
            self.write_u64(u64::from_le_bytes(word.try_into().unwrap_or_default()));
        }
        for byte in words.remainder() {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u8(&mut self, number: u8) {
        self.write_u64(u64::from(number));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = self.0.wrapping_add(number).wrapping_mul(FACTOR);
    }

    fn finish(&self) -> u64 {
        // A table looks at the lowest bits, which multiplication mixes least.
        self.0.rotate_left(26)
    }
}
