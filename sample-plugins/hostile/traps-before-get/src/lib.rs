//! Trigger style: panics before its first get.
//!
//! No message was in hand, so none is charged; the start is owed and tried again with growing
//! delay. Ends as `trapped`.

use trigger_handler::{Failure, Guest, TriggerMessage};

struct TrapsBeforeGet;

impl Guest for TrapsBeforeGet {
    fn handle(trigger: TriggerMessage) -> Result<(), Failure> {
        panic!("no wish to work {:?}", trigger.queue);
    }
}

trigger_handler::export!(TrapsBeforeGet);
