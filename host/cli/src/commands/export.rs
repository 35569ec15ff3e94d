//! `task export`: a failed task of a running host as a golden case, a folder with `input.json` and
//! `expected.json`, to be run again with `oncue test`; and `failure.json`, what happened.
//!
//! The host makes the case; here it becomes files. It never writes into a folder that is there.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::Value;

use super::Context;
use crate::args::operations::ExportArgs;
use crate::client::Request;
use crate::exit::{Exit, Failure};
use crate::render::text::from_base64;
use crate::render::values::{at, items, plain};

/// Longest body within `input.json`, in characters; a longer one has a file of its own.
const MAX_INLINE: usize = 64 << 10;

/// Exports a failed task.
pub(super) fn run(context: &Context, args: &ExportArgs) -> Result<(), Failure> {
    let request = Request::get(&["tasks", &args.task, "case"])
        .query("message", args.message.as_ref().map(ToString::to_string));
    let case = context.client.ask(request)?;
    let folder = args.directory.join(name(&args.task, args));
    write(&folder, &case)?;
    let screen = &context.screen;
    if screen.is_json() {
        return screen.json(&case);
    }
    screen.text(&folder.display().to_string())?;
    for note in items(at(&case, "notes")) {
        screen.say(&format!("note: {}", plain(note)));
    }
    let others = items(at(&case, "others"));
    if !others.is_empty() {
        let others: Vec<String> = others.iter().map(plain).collect();
        screen.say(&format!(
            "the task failed on other messages too: --message {}",
            others.join(", ")
        ));
    }
    Ok(())
}

fn name(task: &str, args: &ExportArgs) -> String {
    match &args.message {
        Some(message) => format!("task-{task}-{message}"),
        None => format!("task-{task}"),
    }
}

/// Writes the case into a new folder.
fn write(folder: &Path, case: &Value) -> Result<(), Failure> {
    let shown = folder.display();
    let parent = folder.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(parent)
        .with_context(|| format!("directory \"{}\" cannot be made", parent.display()))?;
    match fs::create_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let message = format!(
                "case \"{shown}\" is there already; remove it, or name another directory with -d"
            );
            return Err(Failure::new(Exit::Refused, message));
        }
        made => made.with_context(|| format!("case \"{shown}\" cannot be made"))?,
    }
    let mut input = at(case, "input").clone();
    for (path, body) in take_long_bodies(&mut input) {
        put_file(&folder.join(path), &body)?;
    }
    put_json(&folder.join("input.json"), &input)?;
    put_json(&folder.join("expected.json"), at(case, "expected"))?;
    put_json(&folder.join("failure.json"), &story(case))
}

/// What happened, for people: all but the case itself.
fn story(case: &Value) -> Value {
    let mut story = case.clone();
    if let Some(fields) = story.as_object_mut() {
        fields.retain(|name, _| !matches!(name.as_str(), "input" | "expected" | "others"));
    }
    story
}

/// Takes the bodies out of `input` that are too long for it, with the names of their files.
fn take_long_bodies(input: &mut Value) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    let messages = input.get_mut("messages").and_then(Value::as_array_mut);
    for (index, message) in messages.into_iter().flatten().enumerate() {
        let Some(fields) = message.as_object_mut() else {
            continue;
        };
        for kind in ["text", "base64"] {
            let Some(body) = fields.get(kind).and_then(Value::as_str) else {
                continue;
            };
            if body.len() <= MAX_INLINE {
                continue;
            }
            let bytes = match kind {
                "text" => Some(body.as_bytes().to_vec()),
                _ => from_base64(body),
            };
            if let Some(bytes) = bytes {
                let name = format!("message-{}.bin", index + 1);
                fields.shift_remove(kind);
                fields.shift_insert(0, "file".to_owned(), Value::from(name.as_str()));
                files.push((PathBuf::from(name), bytes));
            }
        }
    }
    files
}

fn put_json(path: &Path, value: &Value) -> Result<(), Failure> {
    let mut text = serde_json::to_string_pretty(value).expect("a JSON value can be written");
    text.push('\n');
    put_file(path, text.as_bytes())
}

fn put_file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    fs::write(path, bytes)
        .with_context(|| format!("file \"{}\" cannot be written", path.display()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_case_is_a_new_folder_of_files() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("cases").join("task-7");
        let long = "x".repeat(MAX_INLINE + 1);
        let case = json!({
            "task": 7,
            "input": { "queue": "orders", "messages": [
                { "text": long, "priority": 3 }, { "base64": "AAE=" },
            ]},
            "expected": { "messages": [{ "outcome": "trapped" }] },
            "undone": [],
        });
        write(&folder, &case).expect("written");
        let read = |name: &str| fs::read_to_string(folder.join(name)).expect("a file");
        let input: Value = serde_json::from_str(&read("input.json")).expect("JSON");
        assert_eq!(
            input["messages"],
            json!([{ "file": "message-1.bin", "priority": 3 }, { "base64": "AAE=" }])
        );
        assert_eq!(read("message-1.bin"), long);
        assert!(read("expected.json").contains("trapped"));
        let story: Value = serde_json::from_str(&read("failure.json")).expect("JSON");
        assert_eq!(story, json!({ "task": 7, "undone": [] }));

        let again = write(&folder, &case).expect_err("it is there");
        assert_eq!(again.exit, Exit::Refused);
        assert!(again.message.contains("is there already"), "{again}");
    }
}
