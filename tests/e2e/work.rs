//! What a host did with a message, found out as an operator would: task records, dead letters,
//! `explain`. And samples dropped with a changed manifest.

use std::path::Path;

use oncue_artifacts::Artifact;
use serde_json::{Value, json};

use crate::host::{Home, Host};
use crate::wait::until;

/// Most records that one answer lists.
const MAX_RECORDS: u32 = 1000;

/// Where messages go that nobody could handle.
pub const DEAD_LETTERS: &str = "oncue.dead-letter";

/// The sample of this name.
pub fn sample(name: &str) -> &'static Artifact {
    let mut samples = oncue_artifacts::ALL.iter();
    samples
        .find(|sample| sample.name == name)
        .unwrap_or_else(|| panic!("no sample {name:?}"))
}

/// The text of a sample's manifest, with texts replaced; each must be there.
pub fn manifest(sample: &Artifact, changes: &[(&str, &str)]) -> String {
    let path = sample.manifest.expect("the sample has a manifest");
    let mut text = std::fs::read_to_string(path).expect("the manifest is read");
    for (from, to) in changes {
        assert!(text.contains(from), "{path} has no {from:?}");
        text = text.replace(from, to);
    }
    text
}

impl Home {
    /// Writes a file into the plugins directory, whole at once.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let partial = self.plugins().join(format!(".{name}.partial"));
        std::fs::write(&partial, text).expect("the file is written");
        std::fs::rename(&partial, self.plugins().join(name)).expect("the file is renamed");
    }

    /// Drops a sample under another name, with texts in its manifest replaced.
    pub fn drop_as(&self, name: &str, sample: &Artifact, changes: &[(&str, &str)]) {
        self.write(&format!("{name}.toml"), manifest(sample, changes));
        self.copy(Path::new(sample.component), &format!("{name}.wasm"));
    }

    /// Removes a file from the plugins directory.
    pub fn remove(&self, name: &str) {
        std::fs::remove_file(self.plugins().join(name)).expect("the file is removed");
    }
}

impl Host {
    /// A queue that nothing serves.
    pub fn define_plain(&self, queue: &str) {
        self.define(queue, json!({"trigger": "none"}));
    }

    /// Puts messages in one unit of work: they are there together. Answers their ids.
    pub fn put_together(&self, queue: &str, bodies: &[&str]) -> Vec<String> {
        let puts: Vec<Value> = bodies
            .iter()
            .map(|body| json!({"queue": queue, "body": body}))
            .collect();
        let answer = self.send_json("POST", "/v1/units", &json!({"puts": puts}));
        assert!(
            answer.status < 300,
            "{}",
            String::from_utf8_lossy(&answer.body)
        );
        let answer = answer.json();
        let puts = answer["puts"].as_array().expect("puts").iter();
        puts.map(|put| put["id"].as_str().expect("an id").to_owned())
            .collect()
    }

    /// The newest task records of a queue, oldest first.
    pub fn records(&self, queue: &str) -> Vec<Value> {
        let path = format!("/v1/tasks?queue={queue}&max={MAX_RECORDS}");
        let answer = self.get(&path).expect(200).json();
        let mut records = answer.as_array().expect("a list").clone();
        records.reverse();
        records
    }

    /// The record of the first task that had a message, once that task has ended.
    pub fn record_of(&self, queue: &str, message: &str) -> Value {
        let mut found = Value::Null;
        until(
            &format!("a task of {queue} to end that had {message}"),
            || {
                let records = self.records(queue);
                let record = records.into_iter().find(|record| has(record, message));
                found = record.unwrap_or_default();
                !found["outcome"].is_null()
            },
        );
        found
    }

    /// The record of the first task of a queue that has ended and is newer than `after`.
    pub fn ended_after(&self, queue: &str, after: u64) -> Value {
        let mut found = Value::Null;
        until(&format!("a task of {queue} after {after} to end"), || {
            let records = self.records(queue);
            let mut newer = records.into_iter().filter(|record| task(record) > after);
            found = newer
                .find(|record| !record["outcome"].is_null())
                .unwrap_or_default();
            !found.is_null()
        });
        found
    }

    /// The dead-letter header of a message, once it has one.
    pub fn dead_letter(&self, message: &str) -> Value {
        let mut found = Value::Null;
        until(&format!("{message} in the dead-letter queue"), || {
            let letters = self.browse(DEAD_LETTERS).into_iter();
            let letter = letters.into_iter().find(|letter| letter["id"] == message);
            found = letter.unwrap_or_default()["dead-letter"].take();
            !found.is_null()
        });
        found
    }

    /// Everything that decides whether a queue triggers.
    pub fn explain(&self, queue: &str) -> Value {
        self.get(&format!("/v1/queues/{queue}/explain"))
            .expect(200)
            .json()
    }

    /// Turns triggering on or off, as an operator does.
    pub fn trigger(&self, queue: &str, on: bool) {
        let path = format!("/v1/queues/{queue}/trigger");
        let answer = self.send_json("POST", &path, &json!({"on": on}));
        assert!(
            answer.status < 300,
            "{}",
            String::from_utf8_lossy(&answer.body)
        );
    }

    /// Changes attributes of a queue, as an operator does.
    pub fn alter(&self, queue: &str, attributes: &Value) {
        let answer = self.send_json("PATCH", &format!("/v1/queues/{queue}"), attributes);
        assert!(
            answer.status < 300,
            "{}",
            String::from_utf8_lossy(&answer.body)
        );
    }

    /// Waits until nothing runs and all that was reserved has been returned.
    pub fn wait_for_capacity(&self) {
        let nothing = json!({"slots": 0, "memory": 0, "fuel": 0});
        until("the ledger to be back to capacity", || {
            self.reserved() == nothing
        });
    }

    /// One message of a queue, not removed.
    pub fn message(&self, queue: &str, id: &str) -> Value {
        let found = self
            .browse(queue)
            .into_iter()
            .find(|message| message["id"] == id);
        found.unwrap_or_else(|| panic!("{queue} has no {id}"))
    }
}

/// The number of a record's task.
pub fn task(record: &Value) -> u64 {
    record["id"].as_u64().expect("a task has a number")
}

/// True when a record tells of a message.
pub fn has(record: &Value, message: &str) -> bool {
    let messages = record["messages"].as_array().expect("messages");
    messages.iter().any(|noted| noted["id"] == message)
}

/// How a message ended in a record's task; empty when the record does not tell.
pub fn outcome_of<'a>(record: &'a Value, message: &str) -> &'a str {
    let messages = record["messages"].as_array().expect("messages");
    let noted = messages.iter().rfind(|noted| noted["id"] == message);
    noted
        .and_then(|noted| noted["outcome"].as_str())
        .unwrap_or_default()
}

/// How the messages of a record's task ended, in the order in which that was known.
pub fn outcomes(record: &Value) -> Vec<&str> {
    let messages = record["messages"].as_array().expect("messages").iter();
    messages
        .map(|noted| noted["outcome"].as_str().expect("an outcome"))
        .collect()
}
