//! Trigger style: started once when there is work, the handler gets the messages itself and
//! decides which of them make up a unit of work.
//!
//! For bulk: ten messages, ten puts and one durable write. The price: when a unit of several
//! fails, nobody can say whose fault it was, so the manager charges none of them and makes the
//! next units small until the culprit stands alone.

use trigger_handler::queues::{self, GetOptions, Got};
use trigger_handler::{Content, Failure, Guest, PutOptions, TriggerMessage, unit_of_work};

/// Messages to a unit of work.
const UNIT: u32 = 10;

struct Drain;

impl Guest for Drain {
    fn handle(trigger: TriggerMessage) -> Result<(), Failure> {
        eprintln!("{} messages counted on {:?}", trigger.depth, trigger.queue);
        let any = GetOptions::default();
        let mut in_unit = 0;
        // Until the queue is empty, or the manager asks to stop: it does so between units, when
        // other queues wait for this task's place, or the host is stopping.
        while let Got::Message(message) = queues::get(&any)? {
            queues::put(
                "drained",
                &Content::Bytes(message.body()),
                &PutOptions::default(),
            )?;
            in_unit += 1;
            if in_unit == UNIT {
                unit_of_work::commit()?;
                in_unit = 0;
            }
        }
        // Returning ok commits the rest.
        Ok(())
    }
}

trigger_handler::export!(Drain);
