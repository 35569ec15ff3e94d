//! The rows of one persistent message: body, place, and the indexes that follow from where it
//! stands.

use bytes::Bytes;
use oncue_core::message::{DeadLetter, Header};

use super::body_row::BodyRow;
use super::codec::{Home, PlaceRow, Row, encode_dead_letter, seal};
use super::facts::{Facts, Standing, own_counts};
use super::layout::{self, QueueNo, Space};
use super::look::PART_BYTES;
use super::plan::{Batch, Planned};
use super::sealed::Sealed;

impl Batch {
    /// Rows of a persistent message that changes its place. `letter` is set when its dead-letter
    /// record changes.
    pub(super) fn plan_move(
        &mut self,
        facts: &Facts,
        standing: &Standing,
        to: Option<(QueueNo, Standing)>,
        letter: Option<Option<&DeadLetter>>,
    ) {
        self.plan_leave(facts, standing);
        let Some((queue, new)) = to else {
            self.plan_removal(facts, standing);
            return;
        };
        let moved = Facts {
            queue,
            ..facts.clone()
        };
        if queue != facts.queue
            && let Some(id) = &facts.correlation
        {
            let Facts {
                priority, sequence, ..
            } = *facts;
            self.delete(
                Space::Correlation,
                layout::correlation(facts.queue, id, priority, sequence),
            );
            self.set(
                Space::Correlation,
                layout::correlation(queue, id, priority, sequence),
                Planned::Bare,
            );
        }
        self.plan_enter(&moved, &new);
        self.plan_letter(facts.sequence, letter, standing.dead);
    }

    pub(super) fn plan_letter(
        &mut self,
        sequence: u64,
        letter: Option<Option<&DeadLetter>>,
        had_one: bool,
    ) {
        match letter {
            Some(Some(record)) => {
                let key = layout::dead_letter(sequence);
                let row = encode_dead_letter(&key, record);
                self.set(Space::Place, key, Planned::Sealed(row));
            }
            Some(None) if had_one => self.delete(Space::Place, layout::dead_letter(sequence)),
            _ => {}
        }
    }

    fn plan_removal(&mut self, facts: &Facts, standing: &Standing) {
        let Facts {
            queue,
            priority,
            sequence,
            parts,
            ..
        } = *facts;
        self.set_own(Space::Body, layout::body(sequence), Planned::Delete);
        for part in 0..parts {
            let key = layout::body_part(sequence, part);
            self.set_own(Space::Body, key, Planned::Delete);
        }
        if let Some(id) = &facts.correlation {
            let key = layout::correlation(queue, id, priority, sequence);
            self.set_own(Space::Correlation, key, Planned::Delete);
        }
        self.plan_letter(sequence, Some(None), standing.dead);
    }

    /// Out of the indexes that say where the message stands.
    fn plan_leave(&mut self, facts: &Facts, standing: &Standing) {
        let Facts {
            queue,
            priority,
            sequence,
            ..
        } = *facts;
        *self.queues.entry(queue).or_default() -= &own_counts(facts, Some(standing.home));
        if let Some((space, (time, sequence))) = standing.due(facts) {
            self.delete(space, layout::timed(time, sequence));
        }
        match standing.home {
            Home::Free if facts.group.is_none() => {
                let key = layout::ordered(queue, priority, sequence);
                match standing.placed {
                    true => self.delete(Space::Straggler, key.to_vec()),
                    false => self.set_own(Space::Ready, key, Planned::Delete),
                }
            }
            Home::Leased { token, .. } => self.delete(Space::Place, layout::token(token.0)),
            Home::Parked => {
                let key = layout::ordered(queue, priority, sequence);
                self.delete(Space::Parked, key.to_vec());
            }
            Home::Free | Home::Waiting(..) => {}
        }
        if let Some(name) = &facts.group {
            let work = self
                .groups
                .get_mut(&layout::tally(queue, name))
                .expect("the check has loaded it");
            let rows = work.leave(facts, standing.home);
            for (key, row) in rows {
                self.rows.insert(key, row);
            }
        }
        if standing.placed {
            self.delete(Space::Place, layout::place(queue, priority, sequence));
        }
    }

    /// Into the indexes that say where the message stands.
    pub(super) fn plan_enter(&mut self, facts: &Facts, standing: &Standing) {
        let Facts {
            queue,
            priority,
            sequence,
            ..
        } = *facts;
        *self.queues.entry(queue).or_default() += &own_counts(facts, Some(standing.home));
        if let Some((space, (time, sequence))) = standing.due(facts) {
            self.set(
                space,
                layout::timed(time, sequence),
                Planned::Timed(facts.address()),
            );
        }
        match standing.home {
            Home::Free if facts.group.is_none() => {
                let row = Planned::Index(standing.index_row(facts));
                let key = layout::ordered(queue, priority, sequence);
                match standing.placed {
                    true => self.set(Space::Straggler, key.to_vec(), row),
                    // Only a put brings a message that no place row knows.
                    false => self.set_own(Space::Ready, key, row),
                }
            }
            Home::Leased { token, .. } => {
                self.put_row(Space::Place, layout::token(token.0), &facts.address());
            }
            Home::Parked => {
                let key = layout::ordered(queue, priority, sequence);
                self.set(Space::Parked, key.to_vec(), Planned::Bare);
            }
            Home::Free | Home::Waiting(..) => {}
        }
        if let Some(name) = &facts.group {
            let work = self
                .groups
                .get_mut(&layout::tally(queue, name))
                .expect("the check has loaded it");
            let rows = work.enter(facts, standing);
            for (key, row) in rows {
                self.rows.insert(key, row);
            }
        }
        if standing.placed {
            let Standing {
                home,
                attempts,
                dead,
                ..
            } = *standing;
            self.put_row(
                Space::Place,
                layout::place(queue, priority, sequence),
                &PlaceRow {
                    home,
                    attempts,
                    dead,
                },
            );
        }
    }

    /// The rows of a body. Gives the first, which has the header and, without parts, the body.
    pub(super) fn plan_body(
        &mut self,
        number: QueueNo,
        header: &Header,
        body: &Bytes,
        parts: u32,
        sealed: Option<Sealed>,
    ) -> Row {
        let sequence = header.id.sequence.0;
        let key = layout::body(sequence);
        let inline: &[u8] = if parts == 0 { body } else { &[] };
        let row = match sealed {
            Some(Sealed { queue, row }) if queue == number => row,
            _ => BodyRow::seal(&key, number, header, parts, inline),
        };
        self.set_own(Space::Body, key, Planned::Sealed(row.clone()));
        if parts > 0 {
            let length = usize::try_from(PART_BYTES).expect("a part fits into memory");
            for (part, bytes) in (0..).zip(body.chunks(length)) {
                let key = layout::body_part(sequence, part);
                let row = seal(Space::Body, &key, &[bytes]);
                self.set_own(Space::Body, key, Planned::Sealed(row));
            }
        }
        row
    }
}

/// Rows that a body of that size needs beside its first.
pub(super) fn parts_of(size: u64) -> u32 {
    if size <= PART_BYTES {
        return 0;
    }
    u32::try_from(size.div_ceil(PART_BYTES)).expect("the manager bounds bodies far below 4 PiB")
}
