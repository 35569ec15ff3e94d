//! Extractors of our own: each refuses with a [`Problem`](crate::error::Problem), never with plain
//! text.

mod body;
mod path;
mod query;

pub(crate) use body::{Fields, Payload, permits_of};
pub(crate) use path::{CheckPath, IdPath, PluginPath, ProcessPath, QueuePath, TaskPath, TokenPath};
pub(crate) use query::Query;
