//! `oncue run` and `oncue test`: samples at work with no host, golden cases, and faults that find
//! what a plain run does not.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::work::{manifest, sample};

mod cases;
mod faults;
mod runs;

/// What a command said.
struct Said {
    code: i32,
    out: String,
    err: String,
}

impl Said {
    fn json(&self) -> Value {
        let read = serde_json::from_str(&self.out);
        read.unwrap_or_else(|error| panic!("{error}: {}{}", self.out, self.err))
    }

    /// Demands the exit code and words of what was said.
    fn is(&self, code: i32, words: &[&str]) -> &Self {
        let Self { out, err, .. } = self;
        assert_eq!(self.code, code, "{out}{err}");
        for word in words {
            let found = out.contains(word) || err.contains(word);
            assert!(found, "no {word:?} in {out}{err}");
        }
        self
    }
}

/// Runs the command line with no host, with one cache of compiled samples for all tests.
fn oncue(arguments: &[&str]) -> Said {
    oncue_with(Path::new(env!("CARGO_TARGET_TMPDIR")), arguments)
}

fn oncue_with(cache: &Path, arguments: &[&str]) -> Said {
    let output = Command::new(env!("CARGO_BIN_EXE_oncue"))
        .args(arguments)
        // Nothing listens there: nobody is to ask.
        .env("ONCUE_URL", "http://127.0.0.1:1")
        .env("XDG_CACHE_HOME", cache)
        .output()
        .expect("the binary runs");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Said {
        code: output.status.code().unwrap_or(-1),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

/// A folder with cases.
struct Cases(tempfile::TempDir);

impl Cases {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn with(name: &str, input: &Value) -> Self {
        let cases = Self::new();
        cases.write(&format!("{name}/input.json"), &input.to_string());
        cases
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.path().join(file)
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.path(file);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, text).expect("written");
    }

    fn json(&self, file: &str) -> Value {
        let text = std::fs::read_to_string(self.path(file)).expect("read");
        serde_json::from_str(&text).expect("JSON")
    }

    /// Tests a sample with these cases.
    fn test(&self, name: &str, more: &[&str]) -> Said {
        let folder = self.0.path().to_str().expect("a path");
        let mut arguments = vec!["test", sample(name).component, "--case", folder];
        arguments.extend(more);
        oncue(&arguments)
    }
}

/// Texts of messages for a sample.
fn texts(bodies: &[&str]) -> Value {
    bodies.iter().map(|body| json!({ "text": body })).collect()
}
