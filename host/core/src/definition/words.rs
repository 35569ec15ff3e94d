//! Attributes that take one of a few words. The words are permanent.

use std::borrow::Cow;
use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A type whose values are written as words.
pub(super) trait Words: Copy + PartialEq + 'static {
    /// Every value and its word.
    const WORDS: &'static [(&'static str, Self)];

    /// Whether this version can honour the value. A known one that it cannot honour is refused.
    fn is_supported(self) -> bool;
}

macro_rules! words {
    (
        $(#[$doc:meta])* $name:ident {
            $($(#[$value_doc:meta])* $value:ident = $word:literal,)+
        }
        $(not yet: $($refused:ident),+)?
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$value_doc])* $value,)+
        }

        impl $name {
            /// Every value, in the order of the documentation.
            pub const ALL: &[Self] = &[$(Self::$value,)+];

            /// The word that stands for the value.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$value => $word,)+
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.pad(self.as_str())
            }
        }

        impl Words for $name {
            const WORDS: &'static [(&'static str, Self)] = &[$(($word, Self::$value),)+];

            fn is_supported(self) -> bool {
                true $(&& !matches!(self, $(Self::$refused)|+))?
            }
        }
    };
}

words! {
    /// When a queue asks for a task.
    TriggerType {
        /// When at least one message counts and too few tasks run.
        First = "first",
        /// Once for every message that counts.
        Every = "every",
        /// When as many messages count as the trigger depth says.
        Depth = "depth",
        /// Never.
        None = "none",
    }
}

words! {
    /// Who turns the trigger on again after a depth trigger turned it off.
    Rearm {
        /// The manager, after a task that made progress.
        Auto = "auto",
        /// The operator.
        Manual = "manual",
    }
}

words! {
    /// In which order messages are got.
    Delivery {
        /// By priority, then by arrival.
        Priority = "priority",
        /// By arrival alone.
        Fifo = "fifo",
    }
}

words! {
    /// What a queue is for.
    Usage {
        /// Messages are got here.
        Normal = "normal",
        /// Messages wait to be sent to another manager.
        Transmission = "transmission",
    }
    not yet: Transmission
}

words! {
    /// How a component is called. `auto` finds the style by the component's exports.
    Style {
        /// Found by the component's exports.
        Auto = "auto",
        /// `oncue:handler/on-message`: one call and one unit of work for a message.
        Message = "message",
        /// `oncue:handler/on-trigger`: the component works the queue itself.
        Trigger = "trigger",
        /// `wasi:cli/run`: the body on stdin, the result on stdout.
        Command = "command",
        /// `wasmcloud:messaging/handler`.
        WasmcloudMessaging = "wasmcloud-messaging",
        /// `wasi:messaging/incoming-handler`.
        WasiMessaging = "wasi-messaging",
        /// Spin's SQS trigger.
        SpinSqs = "spin-sqs",
        /// `wasi:http/incoming-handler`.
        WasiHttp = "wasi-http",
    }
}

impl Style {
    /// Whether the component works the queue itself, in units of its own making. Every other style
    /// is called once for each message.
    #[must_use]
    pub const fn works_the_queue(self) -> bool {
        matches!(self, Self::Trigger)
    }

    /// The style of that word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|style| style.as_str() == word)
    }
}

impl Serialize for Style {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Style {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = Cow::<'de, str>::deserialize(deserializer)?;
        Self::from_word(&word)
            .ok_or_else(|| D::Error::custom(format_args!("\"{word}\" is no style")))
    }
}
