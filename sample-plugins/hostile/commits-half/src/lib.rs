//! Trigger style: looks right, and loses half of its work when anything goes wrong.
//!
//! It commits with the first put, so a message is off its queue while the second is still to be
//! made; and it does not look whether that one was refused. As long as nothing fails, it ends as
//! `committed` with both halves. `oncue test` finds it out: cut off, or with a put refused.

use trigger_handler::queues::{self, GetOptions, Got};
use trigger_handler::{Content, Failure, Guest, PutOptions, TriggerMessage, unit_of_work};

const OUTPUT: &str = "commits-half.out";

struct CommitsHalf;

impl Guest for CommitsHalf {
    fn handle(_: TriggerMessage) -> Result<(), Failure> {
        let plain = PutOptions::default();
        while let Got::Message(message) = queues::get(&GetOptions::default())? {
            let body = message.body();
            let (first, second) = body.split_at(body.len() / 2);
            queues::put(OUTPUT, &Content::Bytes(first.to_vec()), &plain)?;
            // Wrong: the message belongs to this unit, and the other half to the next.
            unit_of_work::commit()?;
            // Wrong too: a refusal is a value, and here nobody looks at it.
            let _ = queues::put(OUTPUT, &Content::Bytes(second.to_vec()), &plain);
        }
        Ok(())
    }
}

trigger_handler::export!(CommitsHalf);
