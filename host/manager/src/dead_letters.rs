//! Where a message may go that cannot be handled: the room there is now, as core's decision wants
//! to know it.

use oncue_core::backout::Room;
use oncue_core::definition::QueueAttributes;
use oncue_core::names::QueueName;

use crate::shared::Shared;

/// Whether the backout queue exists, takes puts and has room. The dead-letter queue is bounded by
/// the disk only.
#[must_use]
pub fn room(shared: &Shared, attributes: &QueueAttributes) -> Room {
    let takes = |name: &QueueName| {
        shared.cell(name).is_some_and(|cell| {
            let target = cell.attributes.load();
            target.put && cell.depth() < target.max_depth
        })
    };
    Room {
        backout_queue: attributes.backout_queue.as_ref().is_some_and(takes),
        dead_letter_queue: shared.cell(&QueueName::dead_letter()).is_some(),
    }
}
