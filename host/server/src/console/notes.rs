//! What an action has to say: kept until the page that comes after it shows it, once.

use std::collections::VecDeque;

use parking_lot::Mutex;

/// Notices that wait for their page; older ones are dropped.
const MAX_NOTES: usize = 64;

/// A notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    /// The action was done.
    pub(crate) done: bool,
    /// What was done, or why not.
    pub(crate) text: String,
}

/// Notices that wait.
#[derive(Debug, Default)]
pub(crate) struct Notes(Mutex<VecDeque<(u64, Note)>>);

impl Notes {
    /// Keeps a notice; answers with the number that the page will ask for.
    pub(crate) fn keep(&self, note: Note) -> u64 {
        // Not to be guessed: a notice is for the one page.
        let number = fastrand::u64(..);
        let mut kept = self.0.lock();
        if kept.len() >= MAX_NOTES {
            kept.pop_front();
        }
        kept.push_back((number, note));
        number
    }

    /// Hands a notice out, once.
    pub(crate) fn take(&self, number: u64) -> Option<Note> {
        let mut kept = self.0.lock();
        let place = kept.iter().position(|(known, _)| *known == number)?;
        kept.remove(place).map(|(_, note)| note)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_is_shown_once_and_old_ones_go() {
        let notes = Notes::default();
        let note = |text: &str| Note {
            done: true,
            text: text.to_owned(),
        };
        let first = notes.keep(note("first"));
        let numbers: Vec<u64> = (0..MAX_NOTES).map(|_| notes.keep(note("more"))).collect();
        assert_eq!(notes.take(first), None);
        assert_eq!(notes.take(numbers[0]), Some(note("more")));
        assert_eq!(notes.take(numbers[0]), None);
    }
}
