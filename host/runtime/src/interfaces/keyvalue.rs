//! `wasi:keyvalue`: the plugin's state, read and written within the unit of work. One bucket,
//! `default`. All versions of the package come here: this file is the draft that our worlds name,
//! [`first_draft`] the one before.

use bytes::Bytes;
use oncue_core::outcome::Outcome;
use oncue_core::quantity::format_bytes;
use oncue_manager::tasks::port::PortError;
use wasmtime::component::{HasSelf, Linker, Resource};

use super::Guest;
use super::bindings::wasi::keyvalue::atomics::{self, CasError, HostCas};
use super::bindings::wasi::keyvalue::batch;
use super::bindings::wasi::keyvalue::store::{self, Error, HostBucket, KeyResponse};
use super::types::stop;
use crate::classify::Stop;

mod first_draft;

pub(crate) use first_draft::Cursors;

/// Links every version.
pub(super) fn add_to_linker(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    store::add_to_linker::<_, HasSelf<_>>(linker, |guest| guest)?;
    atomics::add_to_linker::<_, HasSelf<_>>(linker, |guest| guest)?;
    batch::add_to_linker::<_, HasSelf<_>>(linker, |guest| guest)?;
    first_draft::add_to_linker(linker)
}

/// What a pair of a batch counts beside its bytes: a key costs something when it is short, too.
const PAIR: u64 = 64;

/// The bucket's name; nothing stands for it too.
const BUCKET: &str = "default";

/// An open bucket.
#[expect(unreachable_pub, reason = "the generated bindings re-export it")]
pub struct Bucket;

/// A compare-and-swap under way: the key and the value it had.
#[expect(unreachable_pub, reason = "the generated bindings re-export it")]
pub struct Swap {
    key: String,
    seen: Option<Bytes>,
}

/// A refusal as the guest sees it, or the end of the guest.
fn refusal(error: PortError) -> wasmtime::Result<Error> {
    match error {
        PortError::NotGranted(_) => Ok(Error::AccessDenied),
        PortError::Full(text)
        | PortError::TooLarge(text)
        | PortError::UnknownQueue(text)
        | PortError::NoReply(text)
        | PortError::Other(text) => Ok(Error::Other(text)),
        fatal => Err(stop(fatal).into()),
    }
}

fn answer<T>(result: Result<T, PortError>) -> wasmtime::Result<Result<T, Error>> {
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(error) => Ok(Err(refusal(error)?)),
    }
}

impl store::Host for Guest {
    fn open(&mut self, identifier: String) -> wasmtime::Result<Result<Resource<Bucket>, Error>> {
        if identifier != BUCKET && !identifier.is_empty() {
            return Ok(Err(Error::NoSuchStore));
        }
        Ok(Ok(self.table.push(Bucket)?))
    }
}

impl HostBucket for Guest {
    fn get(
        &mut self,
        bucket: Resource<Bucket>,
        key: String,
    ) -> wasmtime::Result<Result<Option<Vec<u8>>, Error>> {
        self.table.get(&bucket)?;
        let value = answer(self.session()?.state_get(BUCKET, &key))?;
        Ok(value.map(|value| value.map(Vec::from)))
    }

    fn set(
        &mut self,
        bucket: Resource<Bucket>,
        key: String,
        value: Vec<u8>,
    ) -> wasmtime::Result<Result<(), Error>> {
        self.table.get(&bucket)?;
        answer(self.session()?.state_set(BUCKET, &key, Bytes::from(value)))
    }

    fn delete(
        &mut self,
        bucket: Resource<Bucket>,
        key: String,
    ) -> wasmtime::Result<Result<(), Error>> {
        self.table.get(&bucket)?;
        answer(self.session()?.state_delete(BUCKET, &key))
    }

    fn exists(
        &mut self,
        bucket: Resource<Bucket>,
        key: String,
    ) -> wasmtime::Result<Result<bool, Error>> {
        self.table.get(&bucket)?;
        answer(self.session()?.state_exists(BUCKET, &key))
    }

    fn list_keys(
        &mut self,
        bucket: Resource<Bucket>,
        cursor: Option<String>,
    ) -> wasmtime::Result<Result<KeyResponse, Error>> {
        self.table.get(&bucket)?;
        let page = answer(self.session()?.state_keys(BUCKET, cursor.as_deref()))?;
        Ok(page.map(|(keys, cursor)| KeyResponse { keys, cursor }))
    }

    fn drop(&mut self, bucket: Resource<Bucket>) -> wasmtime::Result<()> {
        self.table.delete(bucket)?;
        Ok(())
    }
}

impl Guest {
    /// A swap that starts from the value as it is now.
    fn begin_swap(&mut self, key: String) -> wasmtime::Result<Result<Resource<Swap>, Error>> {
        match answer(self.session()?.state_get(BUCKET, &key))? {
            Ok(seen) => Ok(Ok(self.table.push(Swap { key, seen })?)),
            Err(error) => Ok(Err(error)),
        }
    }
}

impl atomics::Host for Guest {
    fn increment(
        &mut self,
        bucket: Resource<Bucket>,
        key: String,
        delta: i64,
    ) -> wasmtime::Result<Result<i64, Error>> {
        self.table.get(&bucket)?;
        answer(self.session()?.state_increment(BUCKET, &key, delta))
    }

    /// Fails when this unit itself wrote the key since. What another unit wrote is found at the
    /// commit, which then undoes all of it: a swap that answered ok is kept or never was.
    fn swap(
        &mut self,
        swap: Resource<Swap>,
        value: Vec<u8>,
    ) -> wasmtime::Result<Result<(), CasError>> {
        let Swap { key, seen } = self.table.delete(swap)?;
        let now = match answer(self.session()?.state_get(BUCKET, &key))? {
            Ok(now) => now,
            Err(error) => return Ok(Err(CasError::StoreError(error))),
        };
        if now != seen {
            return Ok(Err(match self.begin_swap(key)? {
                Ok(again) => CasError::CasFailed(again),
                Err(error) => CasError::StoreError(error),
            }));
        }
        let set = answer(self.session()?.state_set(BUCKET, &key, Bytes::from(value)))?;
        Ok(set.map_err(CasError::StoreError))
    }
}

impl HostCas for Guest {
    fn new(
        &mut self,
        bucket: Resource<Bucket>,
        key: String,
    ) -> wasmtime::Result<Result<Resource<Swap>, Error>> {
        self.table.get(&bucket)?;
        self.begin_swap(key)
    }

    fn current(
        &mut self,
        swap: Resource<Swap>,
    ) -> wasmtime::Result<Result<Option<Vec<u8>>, Error>> {
        let Swap { seen, .. } = self.table.get(&swap)?;
        Ok(Ok(seen.clone().map(Vec::from)))
    }

    fn drop(&mut self, swap: Resource<Swap>) -> wasmtime::Result<()> {
        self.table.delete(swap)?;
        Ok(())
    }
}

impl Guest {
    /// Whether an answer that is being put together still fits the guest; else its end.
    fn fits(&self, bytes: u64) -> wasmtime::Result<()> {
        if bytes <= self.memory {
            return Ok(());
        }
        let limit = format_bytes(self.memory);
        let detail = format!(
            "it asked for values of more than {limit} at once and its memory limit is {limit}; ask \
             for fewer keys or raise memory"
        );
        Err(Stop::limit(Outcome::OverMemory, detail).into())
    }
}

/// A batch is part of the unit of work like everything else: it is done whole or not at all. One
/// that fails in the midst has done what came before, as the interface says.
impl batch::Host for Guest {
    fn get_many(
        &mut self,
        bucket: Resource<Bucket>,
        keys: Vec<String>,
    ) -> wasmtime::Result<Result<Vec<(String, Option<Vec<u8>>)>, Error>> {
        self.table.get(&bucket)?;
        let (mut found, mut bytes) = (Vec::new(), 0);
        for key in keys {
            let value = match answer(self.session()?.state_get(BUCKET, &key))? {
                Ok(value) => value,
                Err(error) => return Ok(Err(error)),
            };
            bytes += PAIR + (key.len() + value.as_ref().map_or(0, Bytes::len)) as u64;
            self.fits(bytes)?;
            found.push((key, value.map(Vec::from)));
        }
        Ok(Ok(found))
    }

    fn set_many(
        &mut self,
        bucket: Resource<Bucket>,
        pairs: Vec<(String, Vec<u8>)>,
    ) -> wasmtime::Result<Result<(), Error>> {
        self.table.get(&bucket)?;
        for (key, value) in pairs {
            let set = self.session()?.state_set(BUCKET, &key, Bytes::from(value));
            if let Err(error) = answer(set)? {
                return Ok(Err(error));
            }
        }
        Ok(Ok(()))
    }

    fn delete_many(
        &mut self,
        bucket: Resource<Bucket>,
        keys: Vec<String>,
    ) -> wasmtime::Result<Result<(), Error>> {
        self.table.get(&bucket)?;
        for key in keys {
            if let Err(error) = answer(self.session()?.state_delete(BUCKET, &key))? {
                return Ok(Err(error));
            }
        }
        Ok(Ok(()))
    }
}
