//! Key-value state of a plugin, read and written in the unit of work.
//!
//! A key that was read is remembered with its revision: the commit applies only if all still hold.
//! Buckets share one namespace per plugin and are told apart by a separator that no bucket name may
//! contain.

use bytes::Bytes;

use super::port::PortError;
use super::probe::SessionCall;
use super::session::TaskSession;

/// Stands between bucket and key in the stored key.
const SEPARATOR: char = '\u{1f}';

/// Longest key, bucket included, in bytes.
pub const MAX_KEY: usize = 1024;

/// Largest value, in bytes.
pub const MAX_VALUE: usize = 4 << 20;

/// State keys that one unit may read or write.
pub const MAX_KEYS: usize = 10_000;

/// Keys of one page.
const KEY_PAGE: usize = 1000;

/// Bucket and key of a stored key.
pub(crate) fn split_key(stored: &str) -> (String, String) {
    let (bucket, key) = stored.split_once(SEPARATOR).unwrap_or(("", stored));
    (bucket.to_owned(), key.to_owned())
}

impl TaskSession {
    fn state_key(&self, bucket: &str, key: &str) -> Result<String, PortError> {
        if bucket.contains(SEPARATOR) || bucket.len() + key.len() > MAX_KEY || key.is_empty() {
            return Err(PortError::Other(format!(
                "state key of {} bytes in bucket \"{}\" is not valid; 1 to {MAX_KEY} bytes are \
                 allowed [invalid-state-key]",
                key.len(),
                bucket
                    .chars()
                    .filter(|c| !c.is_control())
                    .take(64)
                    .collect::<String>()
            )));
        }
        let unit = self.unit.lock();
        if unit.reads.len() + unit.writes.len() >= MAX_KEYS {
            return Err(PortError::Other(format!(
                "the unit of work uses {MAX_KEYS} state keys of {MAX_KEYS}; commit earlier \
                 [too-many-state-keys]"
            )));
        }
        Ok(format!("{bucket}{SEPARATOR}{key}"))
    }

    /// The value of a key, as this unit sees it.
    ///
    /// # Errors
    /// A bad key, or a failed read.
    pub fn state_get(&self, bucket: &str, key: &str) -> Result<Option<Bytes>, PortError> {
        self.probe(SessionCall::StateRead(key))?;
        let key = self.state_key(bucket, key)?;
        {
            let mut unit = self.unit.lock();
            if let Some(written) = unit.writes.get(&key).cloned() {
                unit.seen.looked_at_written(&key, written.as_ref());
                return Ok(written);
            }
        }
        let found = self
            .shared
            .store
            .state(self.namespace(), &key)
            .map_err(|error| PortError::Other(error.to_string()))?;
        let mut unit = self.unit.lock();
        unit.seen
            .looked(&key, found.as_ref().map(|(value, _)| value));
        // The first look counts: a later one that saw another revision must fail the commit.
        unit.reads
            .entry(key)
            .or_insert(found.as_ref().map(|(_, revision)| *revision));
        Ok(found.map(|(value, _)| value))
    }

    /// Writes a key.
    ///
    /// # Errors
    /// A bad key or too large a value.
    pub fn state_set(&self, bucket: &str, key: &str, value: Bytes) -> Result<(), PortError> {
        self.probe(SessionCall::StateWrite(key))?;
        if value.len() > MAX_VALUE {
            return Err(PortError::TooLarge(format!(
                "the value of state key \"{key}\" has {} bytes of {MAX_VALUE} [too-large]",
                value.len()
            )));
        }
        self.state_write(bucket, key, Some(value))
    }

    /// Deletes a key; one that is not there stays not there.
    ///
    /// # Errors
    /// A bad key.
    pub fn state_delete(&self, bucket: &str, key: &str) -> Result<(), PortError> {
        self.probe(SessionCall::StateWrite(key))?;
        self.state_write(bucket, key, None)
    }

    fn state_write(&self, bucket: &str, key: &str, value: Option<Bytes>) -> Result<(), PortError> {
        let key = self.state_key(bucket, key)?;
        let mut unit = self.unit.lock();
        unit.seen.wrote(&key);
        unit.writes.insert(key, value);
        Ok(())
    }

    /// True when the key has a value.
    ///
    /// # Errors
    /// As [`TaskSession::state_get`].
    pub fn state_exists(&self, bucket: &str, key: &str) -> Result<bool, PortError> {
        Ok(self.state_get(bucket, key)?.is_some())
    }

    /// Adds to a decimal number and answers the sum; an absent key counts as 0. Read, add and write
    /// are one step, since the unit's commit rests on the revision read.
    ///
    /// # Errors
    /// A bad key, or a value that is not a decimal 64-bit number.
    pub fn state_increment(&self, bucket: &str, key: &str, delta: i64) -> Result<i64, PortError> {
        let before = match self.state_get(bucket, key)? {
            None => 0,
            Some(value) => std::str::from_utf8(&value)
                .ok()
                .and_then(|text| text.trim().parse::<i64>().ok())
                .ok_or_else(|| {
                    PortError::Other(format!(
                        "state key \"{key}\" holds no decimal number; set it to one first \
                         [not-a-number]"
                    ))
                })?,
        };
        let after = before.checked_add(delta).ok_or_else(|| {
            PortError::Other(format!("state key \"{key}\" would overflow [not-a-number]"))
        })?;
        self.state_set(bucket, key, Bytes::from(after.to_string()))?;
        Ok(after)
    }

    /// A page of the keys of a bucket, in order, with this unit's own writes; and where the next
    /// page starts.
    ///
    /// # Errors
    /// A failed read.
    pub fn state_keys(
        &self,
        bucket: &str,
        cursor: Option<&str>,
    ) -> Result<(Vec<String>, Option<String>), PortError> {
        self.probe(SessionCall::StateList)?;
        let prefix = format!("{bucket}{SEPARATOR}");
        let after = format!("{prefix}{}", cursor.unwrap_or_default());
        let stored = self
            .shared
            .store
            .state_keys(self.namespace(), Some(&after), KEY_PAGE)
            .map_err(|error| PortError::Other(error.to_string()))?;
        let full = stored.len() == KEY_PAGE;
        let last = stored.last().cloned();
        let mut keys: std::collections::BTreeSet<String> = stored.into_iter().collect();
        let mut unit = self.unit.lock();
        unit.seen.listed_keys = true;
        for (key, value) in &unit.writes {
            let on_page = *key > after && (!full || Some(key) <= last.as_ref());
            match value {
                Some(_) if on_page => {
                    keys.insert(key.clone());
                }
                Some(_) => {}
                None => {
                    keys.remove(key);
                }
            }
        }
        let plain: Vec<String> = keys
            .iter()
            .filter_map(|key| key.strip_prefix(&prefix))
            .map(str::to_owned)
            .collect();
        let within = last.as_deref().and_then(|key| key.strip_prefix(&prefix));
        let next = within.filter(|_| full).map(str::to_owned);
        Ok((plain, next))
    }
}
