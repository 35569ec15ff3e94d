//! A file of definitions: read whole, or refused with every fault.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use oncue_core::code::Code;
use oncue_core::definition::{
    Fault, Patch, ProcessPatch, QueueDefinition, QueuePatch, Raw, limits, nearest,
};
use oncue_core::names::{ProcessName, QueueName};

use super::{Entry, What};
use crate::exit::{Exit, Failure};
use crate::render::values::at;

/// Longest file, in bytes.
const MAX_FILE: u64 = 64 << 20;

/// One definition of the file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wanted {
    pub(super) what: What,
    pub(super) name: String,
    /// What the operator's layer shall have.
    pub(super) entries: Vec<Entry>,
}

/// Reads the file that is named; `-` is stdin.
pub(super) fn file(path: &Path) -> Result<Vec<Wanted>, Failure> {
    let read = |from: &mut dyn Read| {
        let mut text = String::new();
        from.take(MAX_FILE).read_to_string(&mut text).map(|_| text)
    };
    let text = if path == Path::new("-") {
        read(&mut io::stdin().lock())
    } else {
        fs::File::open(path).and_then(|mut file| read(&mut file))
    };
    let shown = path.display();
    let text = text.map_err(|error| {
        let exit = match error.kind() {
            io::ErrorKind::NotFound => Exit::NotFound,
            _ => Exit::Failed,
        };
        Failure::new(exit, format!("file \"{shown}\" cannot be read: {error}"))
    })?;
    definitions(&text).map_err(|faults| {
        let message = format!("file \"{shown}\" has faults; nothing was changed");
        Failure::coded(Code::InvalidDefinition, message).with_faults(faults)
    })
}

/// Reads definitions, processes first, each by name.
pub(super) fn definitions(text: &str) -> Result<Vec<Wanted>, Vec<String>> {
    let raw = if text.trim_start().starts_with('{') {
        serde_json::from_str::<Raw>(text).map_err(|error| format!("it is no JSON: {error}"))
    } else {
        toml::from_str::<Raw>(text).map_err(|error| format!("it is no TOML: {error}"))
    };
    let raw = raw.map_err(|fault| vec![fault.trim_end().to_owned()])?;
    let Raw::Table(tables) = raw else {
        return Err(vec![
            "it has no tables; write [queue.NAME] and [process.NAME]".to_owned(),
        ]);
    };
    let mut wanted = Vec::new();
    let mut faults = Vec::new();
    for (word, table) in &tables {
        match What::ALL.into_iter().find(|what| what.word() == word) {
            Some(what) => read_tables(what, table, &mut wanted, &mut faults),
            None => faults.push(unknown(word)),
        }
    }
    wanted.sort_by(|one, other| (one.what, &one.name).cmp(&(other.what, &other.name)));
    let mut shown: Vec<String> = faults
        .iter()
        .take(limits::MAX_FAULTS)
        .map(ToString::to_string)
        .collect();
    if faults.len() > shown.len() {
        let more = faults.len() - shown.len();
        shown.push(format!("and {more} more; correct these first"));
    }
    if shown.is_empty() {
        Ok(wanted)
    } else {
        Err(shown)
    }
}

fn unknown(word: &str) -> Fault {
    let known = What::ALL.map(What::word);
    let cure = match nearest(word, known) {
        Some(meant) => format!("did you mean \"{meant}\"?"),
        None => "write [queue.NAME] and [process.NAME]".to_owned(),
    };
    Fault::new(word, format!("is no kind of definition; {cure}"))
}

fn read_tables(what: What, table: &Raw, wanted: &mut Vec<Wanted>, faults: &mut Vec<Fault>) {
    let word = what.word();
    let Raw::Table(definitions) = table else {
        faults.push(Fault::new(
            word,
            format!("is no table; write [{word}.NAME]"),
        ));
        return;
    };
    for (name, raw) in definitions {
        let under = |fault: Fault| fault.under(&[word, name]);
        // A manifest's own table of the process has attributes where names are expected.
        if !matches!(raw, Raw::Table(_)) {
            let message = format!("is no table; write [{word}.NAME], and attributes below it");
            faults.push(under(Fault {
                path: Vec::new(),
                message,
            }));
            continue;
        }
        match read_one(what, name, raw) {
            Ok(entries) => wanted.push(Wanted {
                what,
                name: name.clone(),
                entries,
            }),
            Err(found) => faults.extend(found.into_iter().map(under)),
        }
    }
}

fn read_one(what: What, name: &str, raw: &Raw) -> Result<Vec<Entry>, Vec<Fault>> {
    let bad_name = |message: String| {
        vec![Fault {
            path: Vec::new(),
            message,
        }]
    };
    let value = match what {
        What::Queue => {
            let queue = QueueName::new(name).map_err(|error| bad_name(error.to_string()))?;
            let patch = without_resets(QueuePatch::parse(raw)?, QueuePatch::merge);
            let faults = QueueDefinition::from_operator(&patch).check_for(&queue);
            // Rules that a manifest's values may mend are for the host to judge.
            let own = |fault: &Fault| {
                fault
                    .path
                    .first()
                    .is_some_and(|name| name == "backout-queue")
            };
            let own: Vec<Fault> = faults.into_iter().filter(own).collect();
            if !own.is_empty() {
                return Err(own);
            }
            patch.to_raw()
        }
        What::Process => {
            ProcessName::new(name).map_err(|error| bad_name(error.to_string()))?;
            without_resets(ProcessPatch::parse(raw)?, ProcessPatch::merge).to_raw()
        }
    };
    let value = serde_json::to_value(&value).expect("a patch is plain data");
    let entries = what.attributes().iter().filter_map(|info| {
        let value = at(&value, info.name);
        (!value.is_null()).then(|| (info.name, value.clone()))
    });
    Ok(entries.collect())
}

/// JSON's `null` says nothing here: what a file leaves out is taken away all the same.
fn without_resets<P: Default>(patch: P, merge: fn(&mut P, &P)) -> P {
    let mut merged = P::default();
    merge(&mut merged, &patch);
    merged
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_file_is_read_in_the_words_of_manifests() {
        let text = "[queue.orders]\nmax-message-length = \"1 MiB\"\nretry = { max = \"60s\" }\n\
                    trigger = \"depth\"\n[process.p]\nfuel = \"1000000000\"\n[queue.\"a.b\"]\n";
        let wanted = definitions(text).expect("definitions");
        let names: Vec<_> = wanted.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["p", "a.b", "orders"]);
        assert_eq!(wanted[0].entries, [("fuel", json!("1 G"))]);
        assert_eq!(
            wanted[2].entries,
            [
                ("trigger", json!("depth")),
                ("retry.max", json!("1m")),
                ("max-message-length", json!("1 MiB")),
            ]
        );
        let again = "{\"queue\": {\"a.b\": {\"max-tasks\": null}}}";
        assert_eq!(definitions(again).expect("JSON").len(), 1);
    }

    #[test]
    fn every_fault_is_named_at_once() {
        let text = "[queue.orders]\nmax-tasks = 0\nmax-taks = 1\nbackout-queue = \"q\"\n\
                    [queue.q]\nbackout-queue = \"q\"\n[queue.\"a/b\"]\n[qeue.x]\n\
                    [process]\nfuel = \"1 G\"\n";
        let faults = definitions(text).expect_err("faults");
        let text = faults.join("\n");
        for wanted in [
            "\"queue.orders.max-tasks\" is 0",
            "did you mean \"max-tasks\"",
            "\"queue.q.backout-queue\" is \"q\", the queue itself",
            "\"queue.a/b\"",
            "\"qeue\" is no kind of definition; did you mean \"queue\"?",
            "\"process.fuel\" is no table",
        ] {
            assert!(text.contains(wanted), "{wanted} in {text}");
        }
        assert!(definitions("x = ").is_err());
        assert!(definitions("{").is_err());
    }
}
