//! Which of the latest sequences were put: says without a look at the engine that an id is new,
//! also when it was given out long before its put.

use std::collections::VecDeque;

/// Sequences in one word.
const WORD: u64 = 64;

/// Words kept: 65536 sequences in 8 KiB. Ids that are given out are put within far fewer.
const WORDS_MAX: u64 = 1024;

/// The latest sequences.
#[derive(Debug, Default)]
pub(super) struct Recent {
    /// The first sequence that is covered; a multiple of a word.
    low: u64,
    words: VecDeque<u64>,
}

impl Recent {
    /// A sequence was put.
    pub(super) fn insert(&mut self, sequence: u64) {
        let word = sequence / WORD;
        let low = self.low / WORD;
        if word < low {
            return;
        }
        if word - low >= WORDS_MAX {
            let new_low = word - WORDS_MAX + 1;
            let gone = usize::try_from(new_low - low).unwrap_or(usize::MAX);
            self.words.drain(..gone.min(self.words.len()));
            self.low = new_low * WORD;
        }
        let Ok(place) = usize::try_from(word - self.low / WORD) else {
            return;
        };
        if self.words.len() <= place {
            self.words.resize(place + 1, 0);
        }
        if let Some(bits) = self.words.get_mut(place) {
            *bits |= 1 << (sequence % WORD);
        }
    }

    /// True when a sequence was certainly not inserted.
    pub(super) fn is_new(&self, sequence: u64) -> bool {
        let Some(offset) = sequence.checked_sub(self.low) else {
            return false;
        };
        let bits = usize::try_from(offset / WORD)
            .ok()
            .and_then(|place| self.words.get(place));
        bits.is_none_or(|bits| bits & (1 << (sequence % WORD)) == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_is_not_new_and_what_is_too_old_is_unknown() {
        let mut recent = Recent::default();
        for sequence in [1_000_000, 1_000_003, 999_999] {
            assert!(recent.is_new(sequence), "{sequence}");
            recent.insert(sequence);
            assert!(!recent.is_new(sequence), "{sequence}");
        }
        assert!(recent.is_new(1_000_001) && recent.is_new(2_000_000));
        recent.insert(1_000_000 + WORD * WORDS_MAX - 1);
        assert!(!recent.is_new(1_000_003), "it is still covered");
        recent.insert(1_000_000 + 2 * WORD * WORDS_MAX);
        assert!(!recent.is_new(1_000_001), "it is covered no longer");
        assert!(recent.is_new(1_000_000 + 2 * WORD * WORDS_MAX - 1));
    }
}
