//! Queue events of MQ, which are alarms here. MQ has a level and a switch for each; here an alarm
//! is on when it has a level, so a switch that is off takes the level away.
//!
//! What a script does not say has our default, as everywhere: only a switch that is written turns
//! an alarm off.

/// A switch of MQ and the attribute of ours whose alarm it turns on and off.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Switch {
    pub(super) keyword: &'static str,
    /// The words that turn it on; the first is the one that is shown.
    pub(super) on: &'static [&'static str],
    pub(super) off: &'static str,
    /// The attribute of MQ that has the level, which is `attribute` here.
    pub(super) level: &'static str,
    pub(super) attribute: &'static str,
    /// Our value of an alarm that is off.
    pub(super) none: &'static str,
    /// The level of an alarm that is turned on without one, as MQ has it.
    pub(super) usual: &'static str,
}

/// Every switch.
pub(super) const SWITCHES: &[Switch] = &[
    Switch {
        keyword: "QDPHIEV",
        on: &["ENABLED"],
        off: "DISABLED",
        level: "QDEPTHHI",
        attribute: "alarm-depth-high",
        none: "never",
        usual: "80",
    },
    Switch {
        keyword: "QDPLOEV",
        on: &["ENABLED"],
        off: "DISABLED",
        level: "QDEPTHLO",
        attribute: "alarm-depth-low",
        none: "never",
        usual: "20",
    },
    Switch {
        keyword: "QSVCIEV",
        // Our alarm tells both: that the interval has passed, and that it is kept again.
        on: &["HIGH", "OK"],
        off: "NONE",
        level: "QSVCINT",
        attribute: "service-interval",
        none: "0s",
        usual: "999999999ms",
    },
];

/// The switch of that keyword of MQ.
pub(super) fn switch(keyword: &str) -> Option<&'static Switch> {
    SWITCHES.iter().find(|one| one.keyword == keyword)
}

/// The switch over an attribute of ours.
pub(super) fn over(attribute: &str) -> Option<&'static Switch> {
    SWITCHES.iter().find(|one| one.attribute == attribute)
}

impl Switch {
    /// Whether a word turns it on.
    ///
    /// # Errors
    /// Which words there are.
    pub(super) fn read(&self, text: Option<&str>) -> Result<bool, String> {
        match text {
            Some(text) if self.on.contains(&text) => Ok(true),
            Some(text) if self.off == text => Ok(false),
            _ => Err(format!("use {} or {}", self.on.join(", "), self.off)),
        }
    }

    /// Lays what a script says of switches over the attributes that it sets. `holds` is the value
    /// that an attribute has without the script, where that is known.
    pub(super) fn settle(
        &self,
        is_on: bool,
        pairs: &mut Vec<(String, String)>,
        holds: impl FnOnce(&str) -> Option<String>,
    ) {
        let is_this = |(name, _): &(String, String)| name == self.attribute;
        let value = if is_on {
            if pairs.iter().any(is_this) {
                return;
            }
            // One that has a level already keeps it.
            if holds(self.attribute).is_some_and(|value| value != self.none) {
                return;
            }
            self.usual
        } else {
            pairs.retain(|pair| !is_this(pair));
            self.none
        };
        pairs.push((self.attribute.to_owned(), value.to_owned()));
    }

    /// How a value of ours is shown: the switch, and the level, which has no effect when it is off.
    pub(super) fn shown<'a>(&self, value: &'a str) -> (String, &'a str)
    where
        'static: 'a,
    {
        let is_off = value == self.none;
        let word = if is_off {
            self.off
        } else {
            self.on.first().copied().unwrap_or_default()
        };
        let level = if is_off { self.usual } else { value };
        (format!("{}({word})", self.keyword), level)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(is_on: bool, given: Option<&str>, holds: Option<&str>) -> Vec<(String, String)> {
        let one = switch("QDPHIEV").expect("a switch");
        let given = given.map(|value| (one.attribute.to_owned(), value.to_owned()));
        let mut pairs = given.into_iter().collect();
        one.settle(is_on, &mut pairs, |_| holds.map(str::to_owned));
        pairs
    }

    #[test]
    fn a_switch_that_is_off_takes_the_level_away() {
        let check = |is_on, given, holds, wanted: Option<&str>| {
            let wanted = wanted.map(|value| ("alarm-depth-high".to_owned(), value.to_owned()));
            let wanted: Vec<_> = wanted.into_iter().collect();
            assert_eq!(
                settled(is_on, given, holds),
                wanted,
                "{is_on} {given:?} {holds:?}"
            );
        };
        check(false, Some("70"), None, Some("never"));
        check(false, None, Some("70"), Some("never"));
        check(true, Some("70"), Some("never"), Some("70"));
        check(true, None, Some("70"), None);
        check(true, None, Some("never"), Some("80"));
        check(true, None, None, Some("80"));
    }

    #[test]
    fn switches_are_read_and_shown() {
        let service = switch("QSVCIEV").expect("a switch");
        assert_eq!(service.read(Some("OK")), Ok(true));
        assert_eq!(service.read(Some("NONE")), Ok(false));
        let wrong = Err("use HIGH, OK or NONE".to_owned());
        assert_eq!(service.read(Some("LOW")), wrong);
        assert_eq!(service.read(None), wrong);
        assert_eq!(service.shown("5m"), ("QSVCIEV(HIGH)".to_owned(), "5m"));
        assert_eq!(
            service.shown("0s"),
            ("QSVCIEV(NONE)".to_owned(), "999999999ms")
        );
        assert_eq!(
            over("alarm-depth-low").map(|one| one.keyword),
            Some("QDPLOEV")
        );
    }
}
