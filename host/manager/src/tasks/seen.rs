//! What a call has read, as it read it: kept while its unit of work is open, for the record of a
//! failure ([`super::failures`]). A unit that commits drops it.
//!
//! It must cost the good path next to nothing: a value is shared with what the guest got, never
//! copied, and past [`MAX_BYTES`] only its length is noted. Pure bookkeeping; it talks to no store.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use oncue_core::names::QueueName;

use super::Delivered;

/// Bytes of state values that are held for one call; of later values only the length is noted.
pub const MAX_BYTES: usize = 1 << 20;

/// One look at a state key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// The value; `None` when the key was absent.
    Value(Option<Bytes>),
    /// A value of so many bytes, too many to be held.
    Long(usize),
    /// The call wrote the key before it looked: what it sees there is its own.
    Own,
}

/// What one call has read.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The first look at each key.
    pub state: BTreeMap<String, Look>,
    /// Answers to requests, with the queue that was asked.
    pub replies: Vec<(QueueName, Arc<Delivered>)>,
    /// It listed the keys of its state.
    pub listed_keys: bool,
    /// It browsed a queue or asked for a depth.
    pub browsed: bool,
    bytes: usize,
    /// Other calls wrote in this unit before: what is in its writes may be theirs.
    is_later: bool,
}

impl Seen {
    /// Of a call that has read nothing; `is_later` when its unit has writes of earlier calls.
    #[must_use]
    pub fn new(is_later: bool) -> Self {
        Self {
            is_later,
            ..Self::default()
        }
    }

    /// Notes a look at a key that the unit has not written.
    pub fn looked(&mut self, key: &str, value: Option<&Bytes>) {
        if self.state.contains_key(key) {
            return;
        }
        let length = value.map_or(0, Bytes::len);
        let look = if self.bytes + length > MAX_BYTES {
            Look::Long(length)
        } else {
            self.bytes += length;
            Look::Value(value.cloned())
        };
        self.state.insert(key.to_owned(), look);
    }

    /// Notes a look at a key that the unit has written: by this call, or by one before.
    pub fn looked_at_written(&mut self, key: &str, value: Option<&Bytes>) {
        if self.is_later {
            self.looked(key, value);
        }
    }

    /// Notes that the call wrote a key. Of a unit's only call it need not be noted: it looks at
    /// what it wrote through [`Self::looked_at_written`].
    pub fn wrote(&mut self, key: &str) {
        if self.is_later && !self.state.contains_key(key) {
            self.state.insert(key.to_owned(), Look::Own);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(seen: &Seen, wanted: &[(&str, Look)]) {
        let got: Vec<_> = seen
            .state
            .iter()
            .map(|(key, look)| (key.as_str(), look.clone()))
            .collect();
        assert_eq!(got, wanted);
    }

    fn value(text: &'static str) -> Option<Bytes> {
        Some(Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn the_first_look_at_a_key_is_kept() {
        let mut seen = Seen::new(false);
        seen.looked("a", value("1").as_ref());
        seen.looked("a", value("2").as_ref());
        seen.looked("b", None);
        // The unit's only call: what it finds written is its own.
        seen.wrote("c");
        seen.looked_at_written("c", value("3").as_ref());
        check(
            &seen,
            &[("a", Look::Value(value("1"))), ("b", Look::Value(None))],
        );
    }

    #[test]
    fn of_a_later_call_what_an_earlier_one_wrote_is_input_and_its_own_is_not() {
        let mut seen = Seen::new(true);
        seen.looked_at_written("theirs", value("1").as_ref());
        seen.wrote("theirs");
        seen.wrote("own");
        seen.looked_at_written("own", value("2").as_ref());
        check(
            &seen,
            &[("own", Look::Own), ("theirs", Look::Value(value("1")))],
        );
    }

    #[test]
    fn past_the_bound_only_the_length_is_kept() {
        let mut seen = Seen::new(false);
        let long = Bytes::from(vec![0; MAX_BYTES]);
        seen.looked("a", Some(&long));
        seen.looked("b", Some(&Bytes::from_static(b"12")));
        seen.looked("c", None);
        check(
            &seen,
            &[
                ("a", Look::Value(Some(long))),
                ("b", Look::Long(2)),
                ("c", Look::Value(None)),
            ],
        );
    }
}
