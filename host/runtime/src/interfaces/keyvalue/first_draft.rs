//! `wasi:keyvalue@0.2.0-draft`, the draft before the one that our worlds name: wasmCloud's and
//! other hosts' components import it. The same state through the same calls; what differs are
//! cursors, which are numbers here, and counters, which have no sign.

use wasmtime::StoreContextMut;
use wasmtime::component::{ComponentType, Linker, Lower, Resource, ResourceType};

use super::super::Guest;
use super::super::bindings::wasi::keyvalue::store::{Error, Host as _, HostBucket as _};
use super::super::bindings::wasi::keyvalue::{atomics::Host as _, batch::Host as _};
use super::Bucket;

/// Cursors of one instance that are remembered; older ones are forgotten.
const MAX_CURSORS: usize = 256;

/// Where pages of keys go on: a number stands for the key that a page ended with.
#[derive(Debug, Default)]
pub(crate) struct Cursors {
    /// The number of the first one that is remembered.
    first: u64,
    keys: std::collections::VecDeque<String>,
}

impl Cursors {
    fn keep(&mut self, key: String) -> u64 {
        if self.keys.len() == MAX_CURSORS {
            self.keys.pop_front();
            self.first += 1;
        }
        self.keys.push_back(key);
        self.first + self.keys.len() as u64 - 1
    }

    fn find(&self, cursor: u64) -> Option<String> {
        let place = usize::try_from(cursor.checked_sub(self.first)?).ok()?;
        self.keys.get(place).cloned()
    }
}

#[derive(ComponentType, Lower)]
#[component(record)]
struct KeyResponse {
    keys: Vec<String>,
    cursor: Option<u64>,
}

type Store<'a> = StoreContextMut<'a, Guest>;
type Answer<T> = wasmtime::Result<(Result<T, Error>,)>;
type Pairs = Vec<Option<(String, Vec<u8>)>>;

fn other<T>(text: &str) -> Result<T, Error> {
    Err(Error::Other(text.to_owned()))
}

fn list_keys(
    guest: &mut Guest,
    bucket: Resource<Bucket>,
    cursor: Option<u64>,
) -> Answer<KeyResponse> {
    let after = match cursor {
        None => None,
        Some(cursor) => match guest.cursors.find(cursor) {
            Some(key) => Some(key),
            None => return Ok((other("the cursor is not known; list from the beginning"),)),
        },
    };
    let page = guest.list_keys(bucket, after)?;
    let page = page.map(|page| KeyResponse {
        keys: page.keys,
        cursor: page.cursor.map(|key| guest.cursors.keep(key)),
    });
    Ok((page,))
}

fn increment(guest: &mut Guest, bucket: Resource<Bucket>, key: String, delta: u64) -> Answer<u64> {
    let Ok(delta) = i64::try_from(delta) else {
        return Ok((other("the delta is past 2^63-1"),));
    };
    let again = Resource::new_borrow(bucket.rep());
    let after = match guest.increment(bucket, key.clone(), delta)? {
        Ok(after) => after,
        Err(error) => return Ok((Err(error),)),
    };
    let Ok(after) = u64::try_from(after) else {
        // What cannot be answered is not done either.
        return Ok((match guest.increment(again, key, -delta)? {
            Ok(_) => other("the number is below 0, which this version cannot say"),
            Err(error) => Err(error),
        },));
    };
    Ok((Ok(after),))
}

fn get_many(guest: &mut Guest, bucket: Resource<Bucket>, keys: Vec<String>) -> Answer<Pairs> {
    let found = guest.get_many(bucket, keys)?;
    let pairs = found.map(|found| {
        let pairs = found.into_iter().map(|(key, value)| Some((key, value?)));
        pairs.collect()
    });
    Ok((pairs,))
}

/// Links the interfaces of that version.
pub(super) fn add_to_linker(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    let mut store = linker.instance("wasi:keyvalue/store@0.2.0-draft")?;
    let bucket = ResourceType::host::<Bucket>();
    store.resource("bucket", bucket, |mut store: Store<'_>, rep| {
        store
            .data_mut()
            .table
            .delete(Resource::<Bucket>::new_own(rep))?;
        Ok(())
    })?;
    store.func_wrap("open", |mut store: Store<'_>, (name,): (String,)| {
        Ok((store.data_mut().open(name)?,))
    })?;
    store.func_wrap(
        "[method]bucket.get",
        |mut store: Store<'_>, (bucket, key): (Resource<Bucket>, String)| {
            Ok((store.data_mut().get(bucket, key)?,))
        },
    )?;
    store.func_wrap(
        "[method]bucket.set",
        |mut store: Store<'_>, (bucket, key, value): (Resource<Bucket>, String, Vec<u8>)| {
            Ok((store.data_mut().set(bucket, key, value)?,))
        },
    )?;
    store.func_wrap(
        "[method]bucket.delete",
        |mut store: Store<'_>, (bucket, key): (Resource<Bucket>, String)| {
            Ok((store.data_mut().delete(bucket, key)?,))
        },
    )?;
    store.func_wrap(
        "[method]bucket.exists",
        |mut store: Store<'_>, (bucket, key): (Resource<Bucket>, String)| {
            Ok((store.data_mut().exists(bucket, key)?,))
        },
    )?;
    store.func_wrap(
        "[method]bucket.list-keys",
        |mut store: Store<'_>, (bucket, cursor): (Resource<Bucket>, Option<u64>)| {
            list_keys(store.data_mut(), bucket, cursor)
        },
    )?;
    linker
        .instance("wasi:keyvalue/atomics@0.2.0-draft")?
        .func_wrap(
            "increment",
            |mut store: Store<'_>, (bucket, key, delta): (Resource<Bucket>, String, u64)| {
                increment(store.data_mut(), bucket, key, delta)
            },
        )?;
    batch(linker)
}

fn batch(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    let mut batch = linker.instance("wasi:keyvalue/batch@0.2.0-draft")?;
    batch.func_wrap(
        "get-many",
        |mut store: Store<'_>, (bucket, keys): (Resource<Bucket>, Vec<String>)| {
            get_many(store.data_mut(), bucket, keys)
        },
    )?;
    batch.func_wrap(
        "set-many",
        |mut store: Store<'_>, (bucket, pairs): (Resource<Bucket>, Vec<(String, Vec<u8>)>)| {
            Ok((store.data_mut().set_many(bucket, pairs)?,))
        },
    )?;
    batch.func_wrap(
        "delete-many",
        |mut store: Store<'_>, (bucket, keys): (Resource<Bucket>, Vec<String>)| {
            Ok((store.data_mut().delete_many(bucket, keys)?,))
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_known_until_many_newer_ones_are() {
        let mut cursors = Cursors::default();
        assert_eq!(cursors.find(0), None);
        let first = cursors.keep("a".to_owned());
        let second = cursors.keep("b".to_owned());
        assert_eq!(cursors.find(first).as_deref(), Some("a"));
        assert_eq!(cursors.find(second).as_deref(), Some("b"));
        for _ in 0..MAX_CURSORS - 1 {
            cursors.keep("c".to_owned());
        }
        assert_eq!(
            (cursors.find(first), cursors.keys.len()),
            (None, MAX_CURSORS)
        );
        assert_eq!(cursors.find(second).as_deref(), Some("b"));
        assert_eq!(cursors.find(u64::MAX), None);
    }
}
