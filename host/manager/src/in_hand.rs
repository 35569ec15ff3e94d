//! The in-hand file: which messages handlers are working on, written before each run and never
//! synced.
//!
//! It is memory-mapped, so what is written survives the death of the process (that is what an
//! attempt must be recorded against); it does not survive a power cut, and need not: then the
//! kernel lost the attempt with the machine, and no message. Recovery reads it after an unclean end
//! (see [`crate::recovery`]).

use std::fs::OpenOptions;
use std::io;
use std::path::Path;

use memmap2::MmapMut;
use oncue_core::message::{MessageId, Sequence};
use oncue_core::names::QueueName;
use parking_lot::Mutex;

/// Messages that can be marked at once. More tasks than this run unmarked: their messages are then
/// not suspects after a crash, which loses a diagnosis and no message.
const SLOTS: usize = 8192;

/// Bytes of one slot: a used flag, the length of the queue's name, origin, sequence, the name.
const SLOT: usize = 160;

const USED: usize = 0;
const NAME_LENGTH: usize = 1;
const ORIGIN: usize = 4;
const SEQUENCE: usize = 8;
const NAME: usize = 16;

/// The file, or nothing for a volatile manager.
#[derive(Debug)]
pub struct InHand(Option<Mutex<Slots>>);

#[derive(Debug)]
struct Slots {
    map: MmapMut,
    free: Vec<u32>,
}

impl InHand {
    /// No file: nothing is marked.
    #[must_use]
    pub fn none() -> Self {
        Self(None)
    }

    /// Opens or makes the file, and answers what was in hand when the process that wrote it ended.
    ///
    /// # Errors
    /// The file cannot be made or mapped.
    pub fn open(path: &Path) -> io::Result<(Self, Vec<(QueueName, MessageId)>)> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        file.set_len((SLOTS * SLOT) as u64)?;
        #[expect(
            unsafe_code,
            reason = "the file is in the data directory, which one process locks; it is never cut"
        )]
        // SAFETY: the mapping is private to this process by the data directory's lock.
        let mut map = unsafe { MmapMut::map_mut(&file)? };
        let mut found = Vec::new();
        for slot in map.chunks_exact_mut(SLOT) {
            if slot.first() == Some(&1) {
                found.extend(read(slot));
            }
            slot.fill(0);
        }
        let free = (0..SLOTS as u32).rev().collect();
        Ok((Self(Some(Mutex::new(Slots { map, free }))), found))
    }

    /// Marks a message as in hand; answers its slot.
    pub fn mark(&self, queue: &QueueName, id: MessageId) -> Option<u32> {
        let mut slots = self.0.as_ref()?.lock();
        let number = slots.free.pop()?;
        let start = number as usize * SLOT;
        let slot = slots.map.get_mut(start..start + SLOT)?;
        let name = queue.as_str().as_bytes();
        slot.get_mut(NAME..NAME + name.len())?.copy_from_slice(name);
        slot.get_mut(SEQUENCE..NAME)?
            .copy_from_slice(&id.sequence.0.to_le_bytes());
        slot.get_mut(ORIGIN..SEQUENCE)?
            .copy_from_slice(&id.origin.to_le_bytes());
        *slot.get_mut(NAME_LENGTH)? = u8::try_from(name.len()).ok()?;
        // The flag last: a process that dies in between leaves an empty slot.
        *slot.get_mut(USED)? = 1;
        Some(number)
    }

    /// True when no message can be marked before another mark is taken away.
    pub fn is_full(&self) -> bool {
        let slots = self.0.as_ref();
        slots.is_some_and(|slots| slots.lock().free.is_empty())
    }

    /// Takes the mark away: the message is settled or released.
    pub fn clear(&self, slot: Option<u32>) {
        if let (Some(number), Some(slots)) = (slot, &self.0) {
            let mut slots = slots.lock();
            if let Some(used) = slots.map.get_mut(number as usize * SLOT) {
                *used = 0;
            }
            slots.free.push(number);
        }
    }
}

fn read(slot: &[u8]) -> Option<(QueueName, MessageId)> {
    let length = usize::from(*slot.get(NAME_LENGTH)?);
    let name = std::str::from_utf8(slot.get(NAME..NAME + length)?).ok()?;
    let origin = u32::from_le_bytes(slot.get(ORIGIN..SEQUENCE)?.try_into().ok()?);
    let sequence = u64::from_le_bytes(slot.get(SEQUENCE..NAME)?.try_into().ok()?);
    let id = MessageId {
        origin,
        sequence: Sequence(sequence),
    };
    Some((QueueName::new(name).ok()?, id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_in_hand_is_read_back_and_what_was_cleared_is_not() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().join("in-hand");
        let queue = QueueName::new("orders").expect("name");
        let id = |n| MessageId {
            origin: 7,
            sequence: Sequence(n),
        };
        {
            let (file, before) = InHand::open(&path).expect("open");
            assert!(before.is_empty());
            let first = file.mark(&queue, id(1));
            file.mark(&queue, id(2));
            file.clear(first);
            // Dropped without clearing: as a killed process leaves it.
        }
        let (_, after) = InHand::open(&path).expect("open again");
        assert_eq!(after, [(queue, id(2))]);
        let (_, third) = InHand::open(&path).expect("open a third time");
        assert!(third.is_empty(), "read once, then forgotten");
    }
}
