//! The trigger record, placed at step 10, and the trigger message that step 64 makes of it.
//!
//! Neither is ever on a queue's depth, neither is durable: after a restart the rule is asked anew.

use crate::definition::{ProcessAttributes, QueueAttributes, TriggerType};
use crate::names::{ProcessName, QueueName};
use crate::time::Timestamp;
use crate::trigger::rule::Cause;

/// What step 10 notes when the rule fires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriggerRecord {
    /// Why the rule fired.
    pub cause: Cause,
    /// Messages that counted when it fired.
    pub depth: u64,
    /// How many triggers this queue has fired since the host's start, this one included.
    pub sequence: u64,
    /// When it fired.
    pub fired_at: Timestamp,
}

/// What a task is started with: the record, completed from the definitions as they are now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriggerMessage {
    /// Name of the queue manager.
    pub manager: String,
    /// The queue that triggered.
    pub queue: QueueName,
    /// The process definition that serves it.
    pub process: ProcessName,
    /// First, every or depth.
    pub trigger_type: TriggerType,
    /// The queue's own text for its handler.
    pub trigger_data: String,
    /// Component name and digest: `route-orders.wasm@sha256:...`.
    pub application_id: String,
    /// The process definition's text.
    pub environment_data: String,
    /// The process definition's other text.
    pub user_data: String,
    /// Messages that counted when the trigger fired.
    pub depth: u64,
    /// Number of the trigger within the queue.
    pub sequence: u64,
    /// When the trigger fired.
    pub fired_at: Timestamp,
}

/// What a process contributes to a trigger message.
#[derive(Clone, Copy, Debug)]
pub struct Application<'a> {
    /// Name of the process definition.
    pub process: &'a ProcessName,
    /// Its attributes.
    pub attributes: &'a ProcessAttributes,
    /// Digest of the component version to be started.
    pub digest: &'a str,
}

impl TriggerMessage {
    /// Completes the trigger record (step 64).
    #[must_use]
    pub fn complete(
        record: &TriggerRecord,
        manager: &str,
        queue: &QueueName,
        attributes: &QueueAttributes,
        application: Application<'_>,
    ) -> Self {
        let Application {
            process,
            attributes: definition,
            digest,
        } = application;
        let component = definition.component_for(process);
        Self {
            manager: manager.to_owned(),
            queue: queue.clone(),
            process: process.clone(),
            trigger_type: attributes.trigger,
            trigger_data: attributes.trigger_data.clone(),
            application_id: format!("{component}@{digest}"),
            environment_data: definition.environment_data.clone(),
            user_data: definition.user_data.clone(),
            depth: record.depth,
            sequence: record.sequence,
            fired_at: record.fired_at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_is_the_record_completed_from_both_definitions() {
        let queue = QueueName::new("orders").expect("name");
        let process = ProcessName::new("route").expect("name");
        let record = TriggerRecord {
            cause: Cause::First,
            depth: 3,
            sequence: 7,
            fired_at: Timestamp(99),
        };
        let of_queue = QueueAttributes {
            trigger_data: "north".to_owned(),
            ..QueueAttributes::default()
        };
        let of_process = ProcessAttributes {
            environment_data: "e".to_owned(),
            user_data: "u".to_owned(),
            ..ProcessAttributes::default()
        };
        let application = Application {
            process: &process,
            attributes: &of_process,
            digest: "sha256:ab",
        };
        let message = TriggerMessage::complete(&record, "M1", &queue, &of_queue, application);
        assert_eq!(message.manager, "M1");
        assert_eq!(message.application_id, "route.wasm@sha256:ab");
        assert_eq!(message.trigger_type, TriggerType::First);
        let texts = (
            &*message.trigger_data,
            &*message.environment_data,
            &*message.user_data,
        );
        assert_eq!(texts, ("north", "e", "u"));
        assert_eq!((message.depth, message.sequence), (3, 7));
        assert_eq!(message.fired_at, Timestamp(99));
        assert_eq!((message.queue, message.process), (queue, process));
    }
}
