//! The start: what stood in the store becomes the loop's state, and what was in hand at an unclean
//! end becomes suspect.

use std::collections::HashMap;
use std::sync::Arc;

use oncue_core::backout::{self, Case, Culprit, Decision, Trouble};
use oncue_core::definition::{QueueDefinition, QueuePatch, Raw};
use oncue_core::message::MessageId;
use oncue_core::names::{ProcessName, QueueName};
use oncue_core::process_table::ProcessEntry;
use oncue_core::queue::Counts;
use oncue_core::queue_table::QueueEntry;
use oncue_core::time::Timestamp;
use oncue_core::trigger::{ControlRecord, TaskId};
use oncue_core::unit_of_work::{RecordKind, Settle, Unit};
use oncue_store::Recovered;

use crate::error::ApiError;
use crate::main_loop::Manager;
use crate::rows::{HOST_ROW, HostRow, ProcessRow, QueueRow, TASKS_PER_START, row};
use crate::shared::QueueCell;

/// Different rows of queues that are remembered while the rest are read.
const MAX_KNOWN_ROWS: usize = 1000;

impl Manager {
    /// Takes over what stood in the store. The caller has not attached the sink yet.
    pub(crate) fn recover(&mut self, recovered: &Recovered) -> Result<(), ApiError> {
        let mut counts: HashMap<QueueName, Counts> = recovered
            .counts
            .iter()
            .map(|(name, counts)| (name.clone(), *counts))
            .collect();
        let control: HashMap<&str, &[u8]> = recovered
            .records
            .iter()
            .filter(|(kind, _, _)| *kind == RecordKind::Control)
            .map(|(_, name, bytes)| (name.as_str(), bytes.as_ref()))
            .collect();
        let scheduled = crate::schedules::recovered(&recovered.records);
        // Most rows are like one that was read before.
        let mut rows: HashMap<&[u8], QueueRow> = HashMap::new();
        for (kind, name, bytes) in &recovered.records {
            match kind {
                RecordKind::Queue => {
                    let row = match rows.get(bytes.as_ref()) {
                        Some(row) => row.clone(),
                        None => {
                            let row: QueueRow = read(*kind, name, bytes)?;
                            if rows.len() < MAX_KNOWN_ROWS {
                                rows.insert(bytes.as_ref(), row.clone());
                            }
                            row
                        }
                    };
                    let control = control
                        .get(name.as_str())
                        .and_then(|bytes| serde_json::from_slice(bytes).ok());
                    // The store's own name of the queue, where it has one: one text in memory.
                    let (name, counts) = match counts.remove_entry(name.as_str()) {
                        Some(known) => known,
                        None => (valid(QueueName::new(name))?, Counts::default()),
                    };
                    let last = scheduled.get(name.as_str()).copied();
                    self.recover_queue(name.clone(), row, control, counts);
                    self.recover_schedule(&name, last);
                }
                RecordKind::Process => {
                    let row: ProcessRow = read(*kind, name, bytes)?;
                    let name = valid(ProcessName::new(name))?;
                    let mut entry = ProcessEntry::new(row.definition);
                    entry.paused = row.paused;
                    self.processes.insert(name, entry);
                }
                RecordKind::Control | RecordKind::Plugin | RecordKind::Host => {}
            }
        }
        Ok(())
    }

    /// A queue's schedule goes on where it was; without a note of that, from now on.
    fn recover_schedule(&mut self, queue: &QueueName, last: Option<Timestamp>) {
        let entry = self.queues.get(queue);
        if let Some(schedule) = entry.and_then(|entry| entry.attributes.schedule.as_deref()) {
            let last = last.unwrap_or_else(|| self.shared.now());
            self.schedules.restore(queue, schedule, last);
        }
    }

    fn recover_queue(
        &mut self,
        name: QueueName,
        row: QueueRow,
        control: Option<ControlRecord>,
        counts: Counts,
    ) {
        let mut entry = match control {
            Some(record) => QueueEntry::restore(name.clone(), row.definition, record),
            None => QueueEntry::new(name.clone(), row.definition),
        };
        self.queues.share(&mut entry);
        entry.paused = row.paused;
        entry.counts = counts.into();
        let cell = QueueCell::new(name, Arc::clone(&entry.attributes), &counts);
        if entry.is_idle() {
            cell.rest();
        } else {
            self.ready.push(&entry.name);
        }
        self.shared.add_cell(Arc::clone(&cell));
        self.sweep.add(cell);
        self.queues.insert(entry);
    }

    /// What must be there from the first start on, and the number of this start.
    pub(crate) fn prepare(&mut self, recovered: &Recovered) -> Result<(), ApiError> {
        for name in [QueueName::dead_letter(), QueueName::replies()] {
            if self.queues.get(&name).is_none() {
                self.make_queues(vec![(name, own_definition())])?;
            }
        }
        let mut host: HostRow = find(recovered, RecordKind::Host, HOST_ROW)
            .and_then(|bytes| serde_json::from_slice(bytes).ok())
            .unwrap_or_default();
        host.starts += 1;
        self.host.paused = host.paused;
        self.next_task = TaskId(host.starts * TASKS_PER_START + 1);
        self.write_rows(vec![row(RecordKind::Host, HOST_ROW, &host)])
    }

    /// Messages that were in hand at an unclean end: each becomes a suspect, and is charged only
    /// when it was the only suspect in hand.
    pub(crate) fn suspect(&mut self, in_hand: &[(QueueName, MessageId)]) -> Result<(), ApiError> {
        let owner = self.shared.new_owner();
        let mut taken = Vec::new();
        for (queue, id) in in_hand {
            if self.queues.get(queue).is_none() {
                continue;
            }
            // One that is gone was settled before the end.
            if let Some(message) = self.shared.store.take_any(owner, queue, *id)? {
                taken.push((queue, message));
            }
        }
        let attempts: Vec<_> = taken.iter().map(|(_, message)| message.attempts).collect();
        let charges = backout::charged_by_interruption(&attempts);
        let mut settles = Vec::new();
        let mut released = Vec::new();
        for ((queue, message), charged) in taken.into_iter().zip(charges) {
            let Some(cell) = self.shared.cell(queue) else {
                continue;
            };
            let attributes = cell.attributes.load();
            let case = Case {
                queue,
                attributes: &attributes,
                attempts: message.attempts,
                culprit: &Culprit::default(),
                room: crate::dead_letters::room(&self.shared, &attributes),
                now: self.shared.now(),
                random: self.random.u64(..),
            };
            let sequence = message.header.id.sequence;
            match backout::after_failure(&case, &Trouble::Interrupted { charged }) {
                Decision::Settle(disposition) => {
                    settles.push(Settle {
                        queue: queue.clone(),
                        sequence,
                        disposition,
                    });
                }
                Decision::Release => released.push((queue.clone(), sequence)),
            }
        }
        if !settles.is_empty() {
            tracing::warn!(
                messages = settles.len(),
                "the host ended uncleanly with messages in hand; they are suspects now"
            );
        }
        self.shared.store.release(owner, &released);
        self.shared
            .store
            .commit(Unit {
                owner: Some(owner),
                settles,
                ..Unit::default()
            })
            .wait()?;
        Ok(())
    }
}

/// The definition of the manager's own queues: never triggered, bounded by the disk only.
fn own_definition() -> QueueDefinition {
    let attributes = Raw::Table(vec![
        ("trigger".to_owned(), Raw::Text("none".to_owned())),
        (
            "max-depth".to_owned(),
            Raw::Integer(
                i64::try_from(oncue_core::definition::limits::MAX_DEPTH).unwrap_or(i64::MAX),
            ),
        ),
    ]);
    let patch = QueuePatch::parse(&attributes).expect("the manager's own queues are valid");
    QueueDefinition::from_manifest(patch)
}

fn find<'a>(recovered: &'a Recovered, kind: RecordKind, name: &str) -> Option<&'a [u8]> {
    recovered
        .records
        .iter()
        .find(|(k, n, _)| *k == kind && n == name)
        .map(|(_, _, bytes)| bytes.as_ref())
}

fn read<T: serde::de::DeserializeOwned>(
    kind: RecordKind,
    name: &str,
    bytes: &[u8],
) -> Result<T, ApiError> {
    serde_json::from_slice(bytes).map_err(|error| {
        ApiError::new(
            oncue_core::code::Code::StoreCorrupt,
            format!(
                "the stored definition of {kind:?} \"{name}\" cannot be read: {error}; it was \
                 written by a newer version, or is damaged; start with that version"
            ),
        )
    })
}

fn valid<T, E: std::fmt::Display>(name: Result<T, E>) -> Result<T, ApiError> {
    name.map_err(|error| ApiError::new(oncue_core::code::Code::StoreCorrupt, error))
}

/// The cells of all recovered queues are told apart from the sink's first change by order: attach
/// comes last.
pub(crate) fn attach(manager: &Manager) {
    let sink: Arc<dyn oncue_store::ChangeSink> = Arc::clone(&manager.shared) as _;
    manager.shared.store.attach(sink);
}
