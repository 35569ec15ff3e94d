//! The trait, method by method. What is longer than a few lines stands where its subject is.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use oncue_core::message::{Body, Message, MessageId, Sequence};
use oncue_core::names::QueueName;
use oncue_core::time::Timestamp;
use oncue_core::unit_of_work::{Chain, LeaseToken, OwnerId, Revision, Unit};

use super::codec::{self, Address};
use super::committer::{Waiting, weight};
use super::engine::Engine;
use super::guard::HighWater;
use super::index::Index;
use super::layout::{self, Space};
use super::look::read_parts;
use super::{EmbeddedStore, check, closed, sealed, write_last};
use crate::{
    Browse, Browsed, ChangeSink, Commit, CommitError, Due, KnownKey, Page, Recovered, StopReason,
    Store, StoreError, StoreStatus, Take,
};

impl Store for EmbeddedStore {
    fn attach(&self, sink: Arc<dyn ChangeSink>) {
        let stopped = self.shared.stop_reason();
        let mut index = self.shared.index.lock();
        if stopped.is_some() {
            sink.stopped(stopped);
        }
        index.sink = Some(sink);
    }

    fn recovered(&self) -> Recovered {
        self.recovered.lock().clone()
    }

    fn take_recovered(&self) -> Recovered {
        let mut recovered = self.recovered.lock();
        let left = Recovered {
            origin: recovered.origin,
            unclean: recovered.unclean,
            ..Recovered::default()
        };
        std::mem::replace(&mut *recovered, left)
    }

    fn next_id(&self) -> MessageId {
        MessageId {
            origin: self.shared.origin,
            sequence: Sequence(self.shared.next_sequence()),
        }
    }

    fn take(&self, take: &Take) -> Result<Vec<Message>, StoreError> {
        self.take_with(take, None)
    }

    fn take_early(&self, take: &Take, chain: &Chain) -> Result<Vec<Message>, StoreError> {
        self.take_with(take, Some(chain))
    }

    fn has_early(&self, owner: OwnerId) -> bool {
        self.shared.follows.load(Ordering::Acquire) && self.shared.early.lock().has_taken(owner)
    }

    fn release(&self, owner: OwnerId, messages: &[(QueueName, Sequence)]) {
        let engine = self.shared.engine.read();
        let mut index = self.shared.index.lock();
        for place in messages {
            self.shared
                .give_back(engine.as_ref(), &mut index, owner, place);
        }
        index.tell();
    }

    fn commit(&self, mut unit: Unit) -> Commit {
        let rows = self.shared.seal(&mut unit);
        let (answer, commit) = Commit::pending(&unit);
        let bytes = weight(&unit) + sealed::weight(&rows);
        let mut inbox = self.shared.inbox.lock();
        if inbox.closing {
            return Commit::refused(&unit, CommitError::Stopped("it is closed".to_owned()));
        }
        if unit.refuse_when_busy
            && let Some(busy) = inbox.refuses(bytes, self.shared.options.waiting_bytes_max)
        {
            return Commit::refused(&unit, busy);
        }
        inbox.bytes += bytes;
        // With the inbox locked: noted is what waits, and in hand is nothing that does not.
        let noted = match self.shared.follows.load(Ordering::Acquire) {
            true => self.shared.early.lock().note(&unit),
            false => Vec::new(),
        };
        inbox.units.push_back(Waiting {
            unit,
            answer,
            bytes,
            noted,
            sealed: rows,
            waited: false,
        });
        drop(inbox);
        self.shared.arrived.notify_one();
        commit
    }

    fn pipelines(&self) -> bool {
        true
    }

    fn claim_due(
        &self,
        owner: OwnerId,
        now: Timestamp,
        max: usize,
    ) -> Result<Vec<Due>, StoreError> {
        self.with(|engine, index| {
            index.forget_keys(now);
            index.claim_due(engine, owner, now, max)
        })
    }

    fn next_due(&self) -> Option<Timestamp> {
        let first = self.with(|engine, index| index.first_due(engine, None));
        match first {
            Ok(first) => first.map(|(time, _, _)| Timestamp(time)),
            Err(error) => {
                tracing::warn!(%error, "what is due next cannot be read");
                None
            }
        }
    }

    fn take_leased(
        &self,
        owner: OwnerId,
        token: LeaseToken,
    ) -> Result<(QueueName, Message), StoreError> {
        self.with(|engine, index| {
            let address = index
                .leased(engine, token)?
                .ok_or(StoreError::UnknownLease)?;
            let found = index.locate(engine, address.queue, address.sequence)?;
            let found = found.filter(|found| {
                let home = found.standing.home;
                let same = matches!(home, codec::Home::Leased { token: its, .. } if its == token);
                same && found.holder.is_none()
            });
            let found = found.ok_or(StoreError::UnknownLease)?;
            index.hold(engine, owner, found.facts, found.standing)?;
            Ok((index.queue(address.queue).name.clone(), found.message))
        })
    }

    fn take_any(
        &self,
        owner: OwnerId,
        queue: &QueueName,
        id: MessageId,
    ) -> Result<Option<Message>, StoreError> {
        self.with(|engine, index| {
            let Some(number) = index.number(queue) else {
                return Ok(None);
            };
            let found = index.locate(engine, number, id.sequence.0)?;
            let found =
                found.filter(|found| found.holder.is_none() && found.message.header.id == id);
            let Some(found) = found else { return Ok(None) };
            index.hold(engine, owner, found.facts, found.standing)?;
            Ok(Some(found.message))
        })
    }

    fn browse(&self, browse: &Browse) -> Result<Page, StoreError> {
        self.with(|engine, index| index.browse(engine, browse))
    }

    fn find(&self, queue: &QueueName, id: MessageId) -> Result<Option<Browsed>, StoreError> {
        self.with(|engine, index| {
            let Some(number) = index.number(queue) else {
                return Ok(None);
            };
            let found = index.locate(engine, number, id.sequence.0)?;
            let Some(found) = found.filter(|found| found.message.header.id == id) else {
                return Ok(None);
            };
            let held = found.holder.is_some();
            let state = index.state_of(engine, &found.facts, found.standing.home, held)?;
            Ok(Some(Browsed {
                message: found.message,
                state,
            }))
        })
    }

    fn read_body(&self, body: &Body, offset: u64, length: u64) -> Result<Bytes, StoreError> {
        let (sequence, size) = match body {
            Body::Whole(bytes) => {
                let size = bytes.len() as u64;
                let start = offset.min(size);
                let end = start.saturating_add(length).min(size);
                let cut = usize::try_from(start).ok().zip(usize::try_from(end).ok());
                return Ok(cut.map_or_else(Bytes::new, |(start, end)| bytes.slice(start..end)));
            }
            Body::Stored { sequence, size } => (sequence.0, *size),
        };
        if offset >= size {
            return Ok(Bytes::new());
        }
        let engine = self.shared.engine.read();
        let engine = engine.as_ref().ok_or_else(closed)?;
        let view = self.shared.index.lock().view.clone();
        read_parts(engine, &view, sequence, offset, length)
    }

    fn oldest(&self, queue: &QueueName, priority: u8) -> Option<Timestamp> {
        let oldest = self.with(|engine, index| match index.number(queue) {
            Some(number) => index.oldest(engine, number, priority),
            None => Ok(None),
        });
        oldest.unwrap_or_else(|error| {
            tracing::warn!(%error, "the oldest message cannot be read");
            None
        })
    }

    fn key(
        &self,
        queue: &QueueName,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<KnownKey>, StoreError> {
        self.with(|engine, index| {
            let Some(number) = index.number(queue) else {
                return Ok(None);
            };
            let row = index.stored_key(engine, number, key)?;
            let row = row.filter(|row| index.remembers(row.until, now));
            Ok(row.map(|row| KnownKey {
                id: row.id,
                body_digest: row.digest,
            }))
        })
    }

    fn state(&self, namespace: &str, key: &str) -> Result<Option<(Bytes, Revision)>, StoreError> {
        self.with(|engine, index| {
            let key = layout::state(namespace, key);
            let Some(record) = engine.get(&index.view, Space::State, &key)? else {
                return Ok(None);
            };
            let (revision, value) = check::split_state(&key, record.payload())?;
            let end = record.payload().len();
            let start = end - value.len();
            Ok(Some((record.share(start..end), revision)))
        })
    }

    fn state_keys(
        &self,
        namespace: &str,
        after: Option<&str>,
        max: usize,
    ) -> Result<Vec<String>, StoreError> {
        self.with(|engine, index| {
            let prefix = layout::state_prefix(namespace);
            let after = after.map(|after| layout::state(namespace, after));
            let start = after.clone().unwrap_or_else(|| prefix.clone());
            let end = layout::after_prefix(&prefix);
            let mut keys = Vec::new();
            for row in engine.scan(&index.view, Space::State, &start, &end) {
                if keys.len() >= max {
                    break;
                }
                let (key, _) = row?;
                if Some(&key) != after.as_ref() {
                    let name = key.get(prefix.len()..).unwrap_or_default();
                    keys.push(String::from_utf8_lossy(name).into_owned());
                }
            }
            Ok(keys)
        })
    }

    fn tasks(&self, before: Option<u64>, max: usize) -> Result<Vec<(u64, Bytes)>, StoreError> {
        self.with(|engine, index| {
            let start = layout::task(self.shared.task_low.load(Ordering::Acquire));
            let end = before.map_or_else(|| layout::MARK_KEY.to_vec(), layout::task);
            let mut rows = Vec::new();
            for row in engine
                .scan(&index.view, Space::Tasks, &start, &end)
                .rev()
                .take(max)
            {
                let (key, record) = row?;
                let id = layout::first_number(&key)
                    .ok_or_else(|| codec::corrupt(Space::Tasks, &key, "has no id"))?;
                let length = record.payload().len();
                rows.push((id, record.share(0..length)));
            }
            Ok(rows)
        })
    }

    fn status(&self) -> StoreStatus {
        let shared = &self.shared;
        StoreStatus {
            stopped: shared.stop_reason(),
            disk_used: shared.engine.read().as_ref().map_or(0, Engine::disk_used),
            disk_free: shared.home.free_bytes().ok(),
            commits: shared.commits.load(Ordering::Relaxed),
            syncs: shared.syncs.load(Ordering::Relaxed),
            volatile_bytes: shared.volatile_bytes.load(Ordering::Relaxed),
            sync_times: shared.sync_times.read(),
        }
    }

    fn close(&self) {
        let Some(progress) = self.end_threads() else {
            return;
        };
        let why = self.shared.stop_reason();
        let engine = self.shared.engine.write().take();
        let ended = match engine {
            Some(engine) if why != Some(StopReason::SyncFailed) => {
                write_last(&self.shared, &engine, progress).map(Some)
            }
            _ => Ok(None),
        };
        let home = &self.shared.home;
        let marked = ended.and_then(|commit| match commit {
            Some(commit) => {
                let high_water = HighWater {
                    commit,
                    opening: self.opening,
                };
                let written = home
                    .write_high_water(high_water)
                    .and_then(|()| home.mark_clean());
                written.map_err(|error| error.to_string())
            }
            None => Ok(()),
        });
        if let Err(error) = marked {
            tracing::warn!(error, "the end of the store counts as an unclean one");
        }
        home.unlock();
        self.shared.stop(StopReason::Closed);
        // It knows the store, and neither would ever be dropped.
        self.shared.index.lock().sink = None;
    }
}

impl Index {
    /// Where a leased message is.
    fn leased(&self, engine: &Engine, token: LeaseToken) -> Result<Option<Address>, StoreError> {
        if let Some(sequence) = self.loose.tokens.get(&token.0) {
            return Ok(self
                .loose
                .messages
                .get(sequence)
                .map(|loose| loose.facts.address()));
        }
        let key = layout::token(token.0);
        let record = engine.get(&self.view, Space::Place, &key)?;
        record
            .map(|record| record.decode(Space::Place, &key))
            .transpose()
    }
}
