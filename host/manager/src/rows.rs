//! The durable forms of what the loop owns: rows that the store keeps without reading them.
//!
//! Written by [`crate::definitions`], read by [`crate::recovery`]. A new field needs a default, so
//! that rows of an older version can be read.

use bytes::Bytes;
use oncue_core::definition::{ProcessDefinition, QueueDefinition};
use oncue_core::unit_of_work::{RecordChange, RecordKind};
use serde::{Deserialize, Serialize};

/// Task ids of one start of the host: the start's number times this, and on.
pub(crate) const TASKS_PER_START: u64 = 1_000_000_000;

/// The durable form of a queue: its definition, and what operators did to it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct QueueRow {
    pub(crate) definition: QueueDefinition,
    #[serde(default)]
    pub(crate) paused: bool,
}

/// The durable form of a process definition.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ProcessRow {
    pub(crate) definition: ProcessDefinition,
    #[serde(default)]
    pub(crate) paused: bool,
}

/// Name of the host's own row of flags.
pub(crate) const HOST_ROW: &str = "host";

/// The durable form of the host's flags.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct HostRow {
    #[serde(default)]
    pub(crate) paused: bool,
    /// Starts of this data directory, so that task ids never repeat.
    #[serde(default)]
    pub(crate) starts: u64,
}

/// A row to write.
pub(crate) fn row<T: Serialize>(kind: RecordKind, name: &str, value: &T) -> RecordChange {
    let value = serde_json::to_vec(value).expect("rows are plain data");
    RecordChange {
        kind,
        name: name.to_owned(),
        value: Some(Bytes::from(value)),
    }
}
