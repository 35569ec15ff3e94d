//! The wire: fields of messages as headers and as JSON, both ways.
//!
//! Nothing here knows a route or a status. Core's types stay off the wire; a rename there cannot
//! change what clients see.

pub(crate) mod case;
pub(crate) mod cloud_event;
pub(crate) mod fields;
pub(crate) mod header;
pub(crate) mod lease;
pub(crate) mod message;
pub(crate) mod page;
pub(crate) mod put;
pub(crate) mod schema;
pub(crate) mod text;
pub(crate) mod unit;

/// The word for a message that survives a restart.
pub(crate) const PERSISTENT: &str = "persistent";
/// The word for one that does not.
pub(crate) const NON_PERSISTENT: &str = "non-persistent";
