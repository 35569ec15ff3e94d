//! Names of queues, processes and plugins: checked once, then cheap to clone and compare.
//!
//! A name that exists is valid; nothing else in the host checks again. This module does not decide
//! who may use a reserved name: that is refused where a definition is made, not where a name is
//! read, because the manager's own queues bear such names. Neighbours: `definition` reads names
//! from manifests, `message` carries them.

use std::borrow::{Borrow, Cow};
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smol_str::SmolStr;

use crate::code::Code;

/// The longest name, in bytes (every allowed character is one byte).
pub const MAX_NAME_LENGTH: usize = 128;

/// Names that start so belong to the manager.
pub const RESERVED_PREFIX: &str = "oncue.";

/// How much of a refused name is repeated in the message, in characters.
const SHOWN_LENGTH: usize = 64;

/// Why a text is not a name. Its class is always [`Invalid`](crate::code::Class::Invalid).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} name \"{text}\" {fact} [{code}]", fact = self.fact(), code = Code::InvalidName)]
pub struct NameError {
    kind: &'static str,
    text: String,
    reason: Reason,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Reason {
    Empty,
    TooLong(usize),
    Dots,
    Character(char, usize),
}

impl NameError {
    /// The permanent code, always `invalid-name`.
    #[must_use]
    pub fn code(&self) -> Code {
        Code::InvalidName
    }

    /// What is wrong and what to do, without the object and the code: for use inside a longer
    /// sentence.
    #[must_use]
    pub fn fact(&self) -> String {
        let cure = format!("use 1 to {MAX_NAME_LENGTH} of A-Z a-z 0-9 . _ -");
        match &self.reason {
            Reason::Empty => format!("is empty; {cure}"),
            Reason::TooLong(length) => format!("has {length} bytes; {cure}"),
            Reason::Dots => {
                format!("is a directory name, not a name; {cure}, more than one or two dots")
            }
            Reason::Character(character, position) => {
                format!("has {character:?} at position {position}; {cure}")
            }
        }
    }
}

fn check_name(kind: &'static str, text: &str) -> Result<(), NameError> {
    let is_short = (1..=MAX_NAME_LENGTH).contains(&text.len());
    if is_short && text != "." && text != ".." && text.bytes().all(is_name_byte) {
        return Ok(());
    }
    Err(name_error(kind, text))
}

/// What is wrong with a text that is not a name.
#[cold]
fn name_error(kind: &'static str, text: &str) -> NameError {
    let reason = if text.is_empty() {
        Reason::Empty
    } else if text.len() > MAX_NAME_LENGTH {
        Reason::TooLong(text.len())
    } else if text == "." || text == ".." {
        Reason::Dots
    } else {
        let mut characters = text.chars().enumerate();
        let (index, character) = characters
            .find(|(_, character)| !is_name_character(*character))
            .unwrap_or_default();
        Reason::Character(character, index + 1)
    };
    let text = text
        .chars()
        .take(SHOWN_LENGTH)
        .flat_map(char::escape_debug)
        .collect();
    NameError { kind, text, reason }
}

/// Whether a character may stand in a name.
pub(crate) fn is_name_character(character: char) -> bool {
    u8::try_from(character).is_ok_and(is_name_byte)
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')
}

macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident, $kind:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(SmolStr);

        impl $name {
            /// Checks a text: 1 to 128 of `A-Z a-z 0-9 . _ -`, case-sensitive, not `.` nor `..`.
            ///
            /// # Errors
            /// [`NameError`], with the first fault.
            pub fn new(text: &str) -> Result<Self, NameError> {
                check_name($kind, text)?;
                Ok(Self(SmolStr::new(text)))
            }

            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// Whether the name belongs to the manager (it starts with `oncue.`). Such a name can
            /// be used, but not defined by a manifest or an operator.
            #[must_use]
            pub fn is_reserved(&self) -> bool {
                self.0.starts_with(RESERVED_PREFIX)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(self.as_str(), formatter)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, NameError> {
                Self::new(text)
            }
        }

        impl TryFrom<&str> for $name {
            type Error = NameError;

            fn try_from(text: &str) -> Result<Self, NameError> {
                Self::new(text)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = Cow::<str>::deserialize(deserializer)?;
                Self::new(&text).map_err(serde::de::Error::custom)
            }
        }
    };
}

name_type!(
    /// The name of a queue.
    QueueName,
    "queue"
);
name_type!(
    /// The name of a process definition.
    ProcessName,
    "process"
);
name_type!(
    /// The name of a plugin: its file name without `.wasm`.
    PluginName,
    "plugin"
);

/// Where replies to handlers' requests go when the request names no reply queue.
const REPLIES: &str = "oncue.replies";

/// Where messages go that cannot be handled and have no backout queue of their own.
const DEAD_LETTER: &str = "oncue.dead-letter";

impl QueueName {
    /// The dead-letter queue, `oncue.dead-letter`.
    #[must_use]
    pub fn dead_letter() -> Self {
        Self(SmolStr::new_static(DEAD_LETTER))
    }

    /// The queue of replies to handlers' requests, `oncue.replies`.
    #[must_use]
    pub fn replies() -> Self {
        Self(SmolStr::new_static(REPLIES))
    }

    /// The same name in memory of its own. A name of more than 23 bytes counts its holders in one
    /// place; threads that clone names at a great rate each use their own.
    #[must_use]
    pub fn apart(&self) -> Self {
        Self(SmolStr::new(self.as_str()))
    }

    /// Whether this is the dead-letter queue.
    #[must_use]
    pub fn is_dead_letter(&self) -> bool {
        self.as_str() == DEAD_LETTER
    }
}

impl From<&PluginName> for ProcessName {
    /// A plugin's process bears the plugin's name; both follow one rule, so this cannot fail.
    fn from(plugin: &PluginName) -> Self {
        Self(plugin.0.clone())
    }
}

impl From<&PluginName> for QueueName {
    /// A plugin without a manifest serves the queue of its name.
    fn from(plugin: &PluginName) -> Self {
        Self(plugin.0.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn check(text: &str, wanted: Result<(), &str>) {
        let got = QueueName::new(text).map(|name| assert_eq!(name.as_str(), text));
        match (got, wanted) {
            (Ok(()), Ok(())) => {}
            (Err(error), Err(part)) => {
                let message = error.to_string();
                assert!(message.contains(part), "{text:?} gave {message}");
                assert!(message.ends_with("[invalid-name]"), "{message}");
            }
            (got, wanted) => panic!("{text:?} gave {got:?}, wanted {wanted:?}"),
        }
    }

    #[test]
    fn names_follow_the_rule() {
        for text in [
            "orders",
            "a",
            "A.b_c-9",
            "...",
            "oncue.dead-letter",
            &"x".repeat(128),
        ] {
            check(text, Ok(()));
        }
        check("", Err("is empty"));
        check(".", Err("is a directory name"));
        check("..", Err("is a directory name"));
        check("a b", Err("has ' ' at position 2"));
        check("a/b", Err("has '/' at position 2"));
        check("größe", Err("has 'ö' at position 3"));
        check(&"x".repeat(129), Err("has 129 bytes"));
        check("a\nb", Err(r"a\nb"));
    }

    #[test]
    fn reserved_names_are_known() {
        assert!(QueueName::dead_letter().is_reserved());
        assert!(QueueName::dead_letter().is_dead_letter());
        assert_eq!(QueueName::new(DEAD_LETTER), Ok(QueueName::dead_letter()));
        for text in ["oncue", "oncues.a", "Oncue.a"] {
            assert!(
                !QueueName::new(text).expect("a valid name").is_reserved(),
                "{text}"
            );
        }
    }

    #[test]
    fn names_serve_as_keys_and_as_json() {
        let name = ProcessName::new("route-orders").expect("a valid name");
        let map = BTreeMap::from([(name.clone(), 1)]);
        assert_eq!(map.get("route-orders"), Some(&1));
        let json = serde_json::to_string(&map).expect("serialises");
        assert_eq!(json, r#"{"route-orders":1}"#);
        let back: BTreeMap<ProcessName, i32> = serde_json::from_str(&json).expect("parses");
        assert_eq!(back, map);
        let refused = serde_json::from_str::<ProcessName>("\"a b\"").expect_err("refused");
        assert!(refused.to_string().contains("[invalid-name]"), "{refused}");
        // Escapes force an owned text: both paths of the deserializer are taken.
        assert!(serde_json::from_str::<ProcessName>(r#""\u0061""#).is_ok());
    }

    #[test]
    fn a_plugin_lends_its_name() {
        let plugin = PluginName::new("orders").expect("a valid name");
        assert_eq!(ProcessName::from(&plugin).as_str(), "orders");
        assert_eq!(QueueName::from(&plugin).as_str(), "orders");
    }
}
