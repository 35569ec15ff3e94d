//! When a file counts as whole: after two equal looks at it, far enough apart.
//!
//! Pure: looks and times go in, settled names come out. A file that changes is waited for without
//! end; nothing here ever gives it up half-written. That a file is gone is held to the same rule,
//! so that an editor that removes and writes anew does not remove a plugin. Neighbours: `scan`
//! makes the looks, `directory` reads what has settled.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::bounds::SLOW_FILE;
use super::scan::Look;

/// A moment on the clock of the directory's thread, since its start.
pub(crate) type Moment = Duration;

#[derive(Debug)]
struct Watched {
    /// How it looked last; `None`: it is gone.
    look: Option<Look>,
    /// Since when it looks so.
    since: Moment,
    /// Since when it has not been settled.
    restless_since: Moment,
    settled: bool,
    warned: bool,
}

/// Compares looks.
#[derive(Debug)]
pub(crate) struct Settler {
    interval: Duration,
    files: BTreeMap<String, Watched>,
}

/// What one look at the directory brought.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Round {
    /// Names that have settled now, and how; `None`: gone for good.
    pub(crate) settled: Vec<(String, Option<Look>)>,
    /// Names that have settled now after they had been warned of.
    pub(crate) recovered: Vec<String>,
    /// Names that have not settled for long; each is named once until it settles.
    pub(crate) slow: Vec<String>,
}

impl Settler {
    /// Two looks count when they are `interval` apart.
    pub(crate) fn new(interval: Duration) -> Self {
        Self {
            interval,
            files: BTreeMap::new(),
        }
    }

    /// Takes in one look at the directory.
    pub(crate) fn look(&mut self, files: &BTreeMap<String, Look>, now: Moment) -> Round {
        for name in files.keys() {
            if !self.files.contains_key(name) {
                let new = Watched {
                    look: None,
                    since: now,
                    restless_since: now,
                    settled: true,
                    warned: false,
                };
                self.files.insert(name.clone(), new);
            }
        }
        let mut round = Round::default();
        let interval = self.interval;
        self.files.retain(|name, watched| {
            watched.look(name, files.get(name), now, interval, &mut round);
            !(watched.settled && watched.look.is_none())
        });
        round
    }

    /// Says that a settled file was found changed when it was read.
    pub(crate) fn disturb(&mut self, name: &str, now: Moment) {
        if let Some(watched) = self.files.get_mut(name) {
            watched.settled = false;
            watched.since = now;
            watched.restless_since = now;
        }
    }

    /// The names that have not settled.
    pub(crate) fn restless(&self) -> BTreeSet<String> {
        let restless = self.files.iter().filter(|(_, watched)| !watched.settled);
        restless.map(|(name, _)| name.clone()).collect()
    }

    /// When the next look can settle something.
    pub(crate) fn next(&self) -> Option<Moment> {
        let restless = self.files.values().filter(|watched| !watched.settled);
        restless
            .map(|watched| watched.since.saturating_add(self.interval))
            .min()
    }
}

impl Watched {
    fn look(
        &mut self,
        name: &str,
        look: Option<&Look>,
        now: Moment,
        interval: Duration,
        round: &mut Round,
    ) {
        if self.look.as_ref() != look {
            if self.settled {
                self.restless_since = now;
            }
            self.look = look.cloned();
            self.since = now;
            self.settled = false;
        } else if !self.settled && now.saturating_sub(self.since) >= interval {
            self.settled = true;
            round.settled.push((name.to_owned(), self.look.clone()));
            if std::mem::take(&mut self.warned) {
                round.recovered.push(name.to_owned());
            }
        }
        if self.settled {
            return;
        }
        if !self.warned && now.saturating_sub(self.restless_since) >= SLOW_FILE {
            self.warned = true;
            round.slow.push(name.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A look that differs by its text.
    fn files(looks: &[(&str, &str)]) -> BTreeMap<String, Look> {
        let look = |(name, text): &(&str, &str)| {
            ((*name).to_owned(), Look::Unreadable((*text).to_owned()))
        };
        looks.iter().map(look).collect()
    }

    fn at(millis: u64) -> Moment {
        Duration::from_millis(millis)
    }

    /// Looks at `looks` at a time and demands that exactly `wanted` settles, with its text or `-`.
    fn check(settler: &mut Settler, millis: u64, looks: &[(&str, &str)], wanted: &[(&str, &str)]) {
        let round = settler.look(&files(looks), at(millis));
        let got: Vec<(String, String)> = round
            .settled
            .into_iter()
            .map(|(name, look)| match look {
                Some(Look::Unreadable(text)) => (name, text),
                Some(Look::File(_)) => panic!("not used here"),
                None => (name, "-".to_owned()),
            })
            .collect();
        let wanted: Vec<(String, String)> = wanted
            .iter()
            .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()))
            .collect();
        assert_eq!(got, wanted, "at {millis} ms");
    }

    #[test]
    fn a60_two_equal_looks_far_enough_apart_settle_a_file() {
        let mut settler = Settler::new(at(200));
        check(&mut settler, 0, &[("a", "1")], &[]);
        check(&mut settler, 199, &[("a", "1")], &[]);
        assert_eq!(settler.next(), Some(at(200)));
        check(&mut settler, 200, &[("a", "1")], &[("a", "1")]);
        check(&mut settler, 900, &[("a", "1")], &[]);
        assert_eq!(settler.next(), None);
        // Overwritten: the time starts anew at each change.
        check(&mut settler, 1000, &[("a", "2")], &[]);
        check(&mut settler, 1150, &[("a", "3")], &[]);
        check(&mut settler, 1300, &[("a", "3")], &[]);
        check(&mut settler, 1350, &[("a", "3")], &[("a", "3")]);
    }

    #[test]
    fn a60_a_gap_is_not_a_deletion_and_a_deletion_settles() {
        let mut settler = Settler::new(at(200));
        check(&mut settler, 0, &[("a", "1")], &[]);
        check(&mut settler, 200, &[("a", "1")], &[("a", "1")]);
        check(&mut settler, 300, &[], &[]);
        check(&mut settler, 400, &[("a", "2")], &[]);
        check(&mut settler, 600, &[("a", "2")], &[("a", "2")]);
        check(&mut settler, 700, &[], &[]);
        check(&mut settler, 900, &[], &[("a", "-")]);
        check(&mut settler, 1200, &[], &[]);
        assert!(settler.files.is_empty());
    }

    #[test]
    fn a60_a_growing_file_is_waited_for_without_end_and_warned_of_once() {
        let mut settler = Settler::new(at(200));
        let mut warnings = 0;
        for step in 0..1000 {
            let text = step.to_string();
            let round = settler.look(&files(&[("a", &text)]), at(step * 100));
            assert!(
                round.settled.is_empty(),
                "loaded half-written at step {step}"
            );
            warnings += round.slow.len();
        }
        assert_eq!(warnings, 1);
        assert!(settler.restless().contains("a"));
        settler.look(&files(&[("a", "end")]), at(100_000));
        let round = settler.look(&files(&[("a", "end")]), at(100_200));
        assert_eq!(
            (round.settled.len(), round.recovered),
            (1, vec!["a".to_owned()])
        );
    }

    #[test]
    fn a_file_found_changed_at_the_read_settles_anew() {
        let mut settler = Settler::new(at(200));
        check(&mut settler, 0, &[("a", "1")], &[]);
        check(&mut settler, 200, &[("a", "1")], &[("a", "1")]);
        settler.disturb("a", at(210));
        check(&mut settler, 400, &[("a", "1")], &[]);
        check(&mut settler, 410, &[("a", "1")], &[("a", "1")]);
    }

    #[test]
    fn a_file_that_came_and_went_unsettled_settles_as_gone() {
        let mut settler = Settler::new(at(200));
        check(&mut settler, 0, &[("a", "1")], &[]);
        check(&mut settler, 100, &[], &[]);
        check(&mut settler, 300, &[], &[("a", "-")]);
        assert_eq!(settler.next(), None);
    }
}
