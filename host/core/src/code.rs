//! The permanent codes of everything a user can be refused, in one list.
//!
//! A code is a promise: programs match on it, so it is never renamed nor used for another thing.
//! Codes of outcomes and of reasons to hold are other lists: nobody is refused by them. Core knows
//! no HTTP status and no exit code; [`Class`] says what a caller does next, and the outer crates
//! translate it.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What a caller does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// The object is not there: name another, or make it first.
    Absent,
    /// The object is in another state than the caller assumed: look again, then decide.
    Conflict,
    /// Understood and not allowed now: change a definition, a grant or a limit, then repeat.
    Refused,
    /// The request itself is wrong: correct it; repeating it is useless.
    Invalid,
    /// Nothing is wrong with the request: repeat it later.
    Unavailable,
    /// Stored data cannot be trusted: a person must act.
    Corrupt,
    /// A fault of ours: report it.
    Internal,
}

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $code:ident = $text:literal, $class:ident;)+) => {
        /// A permanent error code. Written in kebab-case everywhere.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $($(#[doc = $doc])+ $code,)+
        }

        impl Code {
            /// Every code, in the order of the list.
            pub const ALL: &[Code] = &[$(Code::$code,)+];

            /// The code as it is written.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Code::$code => $text,)+
                }
            }

            /// What the caller does next.
            #[must_use]
            pub const fn class(self) -> Class {
                match self {
                    $(Code::$code => Class::$class,)+
                }
            }

            /// The sentence of the list, for documentation.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Code::$code => concat!($($doc),+),)+
                }
            }
        }
    };
}

codes! {
    // Queues and messages.
    /// No queue of that name is defined.
    UnknownQueue = "unknown-queue", Absent;
    /// The queue holds as many messages as its max-depth allows.
    QueueFull = "queue-full", Refused;
    /// The queue still holds messages and may not be deleted without force.
    QueueNotEmpty = "queue-not-empty", Conflict;
    /// A task, a lease or an outside reader is using the queue.
    QueueInUse = "queue-in-use", Conflict;
    /// Puts to the queue are disabled by its definition.
    PutDisabled = "put-disabled", Refused;
    /// Gets from the queue are disabled by its definition.
    GetDisabled = "get-disabled", Refused;
    /// The message is longer than the queue's max-message-length.
    TooLarge = "too-large", Refused;
    /// A field of the message is malformed or out of range.
    InvalidMessage = "invalid-message", Invalid;
    /// No message of that id is on the queue.
    UnknownMessage = "unknown-message", Absent;
    /// The message is parked and waits for a person to release or remove it.
    MessageParked = "message-parked", Conflict;
    /// The message is in a unit of work, a lease or a delay and cannot be touched now.
    MessageInUse = "message-in-use", Conflict;
    /// The message was already put through as many handlers as the hop-limit allows.
    HopLimit = "hop-limit", Refused;
    /// The idempotency key was used before with another message.
    DuplicateKey = "duplicate-key", Conflict;
    /// The idempotency key is empty or too long.
    InvalidKey = "invalid-key", Invalid;
    /// The browse cursor is not one that the manager gave out.
    InvalidCursor = "invalid-cursor", Invalid;
    /// The unit of work has too many messages or too many bytes.
    UnitTooLarge = "unit-too-large", Refused;
    /// The asked wait is longer than the manager allows.
    WaitTooLong = "wait-too-long", Invalid;
    /// A dead letter does not name a place to which it could go back.
    NoOrigin = "no-origin", Refused;
    // Leases.
    /// No lease bears that token.
    UnknownLease = "unknown-lease", Absent;
    /// The lease ended before it was settled; the message is back on its queue.
    LeaseExpired = "lease-expired", Conflict;
    /// So many leases are open that no other is given.
    TooManyLeases = "too-many-leases", Refused;
    // Definitions.
    /// The definition has faults; all of them are listed.
    InvalidDefinition = "invalid-definition", Invalid;
    /// The name has characters or a length that names may not have.
    InvalidName = "invalid-name", Invalid;
    /// The size, count or time cannot be read.
    InvalidQuantity = "invalid-quantity", Invalid;
    /// Others changed definitions between the look at the changes and the order to make them.
    DefinitionsChanged = "definitions-changed", Conflict;
    /// Names that start with `oncue.` belong to the manager.
    ReservedName = "reserved-name", Refused;
    /// So many queues or processes are defined that no other is accepted.
    TooManyDefinitions = "too-many-definitions", Refused;
    /// Something known but not built yet was asked for.
    NotSupported = "not-supported", Refused;
    /// No process definition of that name exists.
    UnknownProcess = "unknown-process", Absent;
    /// Queues are bound to the process, or it is running.
    ProcessInUse = "process-in-use", Conflict;
    /// The queue names no process that could be started.
    NoProcess = "no-process", Refused;
    /// The trigger type, get or the operator keeps the trigger from being set so.
    TriggerRefused = "trigger-refused", Refused;
    /// A demand is larger than the whole capacity of the host, so it could never be met.
    OverCapacity = "over-capacity", Refused;
    // Plugins.
    /// No plugin of that name is in the plugins directory.
    UnknownPlugin = "unknown-plugin", Absent;
    /// The file is not a component that can run here.
    PluginRefused = "plugin-refused", Refused;
    /// The component fits none of the known worlds.
    WrongWorld = "wrong-world", Refused;
    /// The manifest cannot be read or has faults; all of them are listed.
    InvalidManifest = "invalid-manifest", Invalid;
    /// The component could not be compiled within its bounds.
    CompileFailed = "compile-failed", Refused;
    /// Plugins must be signed here, and there is no signature beside the file.
    SignatureMissing = "signature-missing", Refused;
    /// The signature is of another file, or by no key that is accepted here.
    SignatureWrong = "signature-wrong", Refused;
    /// Another plugin already claims the queue.
    QueueClaimed = "queue-claimed", Conflict;
    /// No earlier good version of the plugin is kept.
    NoPreviousVersion = "no-previous-version", Conflict;
    // Tasks.
    /// No task of that id is recorded.
    UnknownTask = "unknown-task", Absent;
    /// Nothing is kept of the task that could be run again.
    NoCase = "no-case", Conflict;
    /// The handler was not granted what it asked for.
    NotGranted = "not-granted", Refused;
    /// Another unit of work changed the same state first.
    StateConflict = "state-conflict", Conflict;
    /// The call is not allowed in this style or at this moment of a task.
    NotInUnit = "not-in-unit", Invalid;
    // Store.
    /// The disk or the store's own bound is full.
    StoreFull = "store-full", Unavailable;
    /// More waits to be written than the store holds back; repeat the put later.
    StoreBusy = "store-busy", Unavailable;
    /// The store stopped writing after a failed write; restart the host.
    StoreStopped = "store-stopped", Unavailable;
    /// The store's data fails its checks.
    StoreCorrupt = "store-corrupt", Corrupt;
    /// The store's data was written by a version that this one cannot read.
    StoreVersion = "store-version", Corrupt;
    /// Another host has the data directory open.
    StoreInUse = "store-in-use", Conflict;
    /// Whether the commit reached the disk is not known; repeat with the same idempotency key.
    CommitUnknown = "commit-unknown", Unavailable;
    /// The task was overtaken by another owner, so its commit is not accepted.
    Fenced = "fenced", Conflict;
    // Requests and the host.
    /// More requests are in flight than the host serves at a time.
    TooManyRequests = "too-many-requests", Unavailable;
    /// The request's body is larger than the host accepts.
    BodyTooLarge = "body-too-large", Refused;
    /// The request's body is not the JSON that is expected here.
    InvalidJson = "invalid-json", Invalid;
    /// A parameter or header of the request is malformed or out of range.
    InvalidParameter = "invalid-parameter", Invalid;
    /// The content type is not one that is accepted here.
    UnsupportedMediaType = "unsupported-media-type", Invalid;
    /// The event is not a well-formed CloudEvent.
    InvalidEvent = "invalid-event", Invalid;
    /// No such path.
    NotFound = "not-found", Absent;
    /// The path exists, but not with this method.
    MethodNotAllowed = "method-not-allowed", Invalid;
    /// The listener asks for a token, and the request has none or a wrong one.
    NotAuthorized = "not-authorized", Refused;
    /// The token has not the right that the request needs.
    NotPermitted = "not-permitted", Refused;
    /// The identity or the address makes requests faster than the host allows.
    RateLimited = "rate-limited", Unavailable;
    /// The request comes from a web page of another origin, or names a host that is not this one.
    ForeignOrigin = "foreign-origin", Refused;
    /// The request took longer than the host allows.
    TimedOut = "timed-out", Unavailable;
    /// The host is stopping and takes no new work.
    Draining = "draining", Unavailable;
    /// A check of the host's health has failed.
    Unhealthy = "unhealthy", Unavailable;
    /// The host is starting and not ready yet.
    Starting = "starting", Unavailable;
    /// No host answers at the address.
    Unreachable = "unreachable", Unavailable;
    /// A setting of the host is wrong.
    InvalidConfiguration = "invalid-configuration", Invalid;
    /// The address cannot be listened on.
    AddressInUse = "address-in-use", Conflict;
    /// A fault of the host itself.
    Internal = "internal", Internal;
}

/// The text is not a code of this version; a client treats it by its HTTP status alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the code is not one that this version knows; update oncue")]
pub struct UnknownCode;

impl FromStr for Code {
    type Err = UnknownCode;

    fn from_str(text: &str) -> Result<Self, UnknownCode> {
        Self::ALL
            .iter()
            .copied()
            .find(|code| code.as_str() == text)
            .ok_or(UnknownCode)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<str>::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn codes_are_unique_kebab_case_and_come_back() {
        let mut seen = BTreeSet::new();
        for code in Code::ALL {
            let text = code.as_str();
            assert!(seen.insert(text), "{text} is used twice");
            assert!(
                text.split('-').all(|word| {
                    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase())
                }),
                "{text} is not kebab-case"
            );
            assert_eq!(text.parse(), Ok(*code));
            let json = serde_json::to_string(code).expect("serialises");
            assert_eq!(json, format!("\"{text}\""));
            assert_eq!(serde_json::from_str::<Code>(&json).expect("parses"), *code);
        }
        assert_eq!("queue_full".parse::<Code>(), Err(UnknownCode));
    }

    #[test]
    fn every_code_has_a_sentence_and_its_class_fits() {
        for code in Code::ALL {
            let meaning = code.meaning();
            assert!(
                meaning.ends_with('.') && meaning.len() > 10,
                "{code}: {meaning}"
            );
            if code.as_str().starts_with("unknown-") {
                assert_eq!(code.class(), Class::Absent, "{code}");
            }
            if code.as_str().starts_with("invalid-") {
                assert_eq!(code.class(), Class::Invalid, "{code}");
            }
        }
    }
}
