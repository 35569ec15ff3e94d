//! The golden cases of `sample-plugins/cases`, played in a real host: messages in; outcomes,
//! reasons and puts out. What `oncue test` does without a host, with the store, the triggers and
//! the task records in between.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::host::Host;
use crate::wait::until;
use crate::work::outcome_of;

/// A quarter of the default limits: the most that a usual message may take in any language, so
/// that nobody has to set limits before the first one.
pub const MOST_FUEL: u64 = 10_000_000_000 / 4;
/// The same for memory, in bytes.
pub const MOST_MEMORY: u64 = (64 << 20) / 4;
/// Go has memory set apart from the start that it never uses: half of the default covers it.
pub const MOST_MEMORY_OF_GO: u64 = (64 << 20) / 2;

/// The longest body that is a usual one, in bytes.
const USUAL: usize = 64 << 10;

/// A golden case.
pub struct Case {
    folder: PathBuf,
    input: Value,
    expected: Value,
}

/// The folder of a sample's shared cases.
pub fn suite(sample: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("sample-plugins/cases");
    folder.join(sample)
}

/// The shared cases of a sample, by name. There are some.
pub fn shared(sample: &str) -> Vec<Case> {
    within(&suite(sample))
}

/// The cases of a folder, by name. There are some.
pub fn within(folder: &Path) -> Vec<Case> {
    let mut cases: Vec<Case> = fs::read_dir(folder)
        .expect("the cases")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.is_dir())
        .map(|folder| Case {
            input: read(&folder.join("input.json")),
            expected: read(&folder.join("expected.json")),
            folder,
        })
        .collect();
    cases.sort_by(|a, b| a.folder.cmp(&b.folder));
    assert!(cases.len() > 5, "{} cases", cases.len());
    cases
}

fn read(path: &Path) -> Value {
    let text = fs::read(path).expect("a case's file");
    serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

impl Case {
    /// Puts the case's messages, one after another, and demands what is expected of each. The
    /// queues that it puts to are made first, and empty again afterwards. Every usual message stays
    /// within `most_memory` bytes.
    pub fn play(&self, host: &Host, most_memory: u64) {
        let name = self.folder.display();
        let queue = self.input["queue"].as_str().expect("a queue");
        let puts = self.expected["puts"].as_array().expect("puts");
        for output in outputs(puts) {
            host.define_plain(output);
        }
        let messages = self.input["messages"].as_array().expect("messages");
        let expected = self.expected["messages"].as_array().expect("outcomes");
        assert_eq!(messages.len(), expected.len(), "{name}");
        for (message, expected) in messages.iter().zip(expected) {
            let id = self.put(host, queue, message);
            // A failure is told with its own commit, its cost when the task has ended.
            let mut record = Value::Null;
            until("the record of a task that has ended", || {
                record = host.record_of(queue, &id);
                record["cost"]["peak-memory"] != 0
            });
            assert_eq!(
                outcome_of(&record, &id),
                expected["outcome"],
                "{name}: {record}"
            );
            if self.body(message).len() <= USUAL {
                within_its_part(&record, most_memory);
            }
            if let Some(reason) = expected["reason"].as_str() {
                let noted = &record["messages"][0]["detail"];
                assert_eq!(*noted, reason, "{name}: {record}");
            }
        }
        for output in outputs(puts) {
            let wanted = puts.iter().filter(|put| put["queue"] == output);
            self.check(host, output, &wanted.collect::<Vec<_>>());
            host.post(&format!("/v1/queues/{output}/clear"), b"")
                .expect(200);
        }
    }

    fn put(&self, host: &Host, queue: &str, message: &Value) -> String {
        let body = STANDARD.encode(self.body(message));
        let mut put = json!({"queue": queue, "body-base64": body});
        for name in ["correlation-id", "content-type", "properties"] {
            if !message[name].is_null() {
                put[name] = message[name].clone();
            }
        }
        let answer = host.send_json("POST", "/v1/units", &json!({"puts": [put]}));
        assert!(
            answer.status < 300,
            "{}",
            String::from_utf8_lossy(&answer.body)
        );
        let answer = answer.json();
        answer["puts"][0]["id"].as_str().expect("an id").to_owned()
    }

    /// Demands that a queue has these messages and no others, in this order.
    fn check(&self, host: &Host, queue: &str, wanted: &[&Value]) {
        let name = self.folder.display();
        let found = host.browse(queue);
        assert_eq!(found.len(), wanted.len(), "{name}: {queue}: {found:?}");
        for (found, wanted) in found.iter().zip(wanted) {
            for field in ["correlation-id", "content-type", "properties"] {
                if !wanted[field].is_null() {
                    assert_eq!(found[field], wanted[field], "{name}: {found}");
                }
            }
            let id = found["id"].as_str().expect("an id");
            let body = host.get(&format!("/v1/queues/{queue}/messages/{id}"));
            let body = body.expect(200).body;
            if let Some(size) = wanted["size"].as_u64() {
                assert_eq!(body.len() as u64, size, "{name}");
                assert_eq!(digest(&body), wanted["sha256"], "{name}");
            } else {
                assert_eq!(body, self.body(wanted), "{name}: {queue}");
            }
        }
    }

    /// A body in any of the ways to write one.
    fn body(&self, holder: &Value) -> Vec<u8> {
        if let Some(text) = holder["text"].as_str() {
            return text.into();
        }
        if let Some(bytes) = holder["base64"].as_str() {
            return STANDARD.decode(bytes).expect("base64");
        }
        let file = holder["file"].as_str().expect("a body");
        fs::read(self.folder.join(file)).expect("the body's file")
    }
}

/// Demands that a task of one message left most of the default limits unused. Both figures are
/// exact.
fn within_its_part(record: &Value, most_memory: u64) {
    let cost = |name: &str| record["cost"][name].as_u64().expect("a cost");
    let (fuel, memory) = (cost("fuel"), cost("peak-memory"));
    assert!((1..MOST_FUEL).contains(&fuel), "{fuel} fuel: {record}");
    assert!(
        (1..most_memory).contains(&memory),
        "{memory} bytes: {record}"
    );
}

/// The queues of some puts, each once.
fn outputs(puts: &[Value]) -> Vec<&str> {
    let mut names: Vec<&str> = puts
        .iter()
        .map(|put| put["queue"].as_str().expect("a queue"))
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn digest(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in Sha256::digest(bytes) {
        write!(text, "{byte:02x}").expect("a string takes it");
    }
    text
}
