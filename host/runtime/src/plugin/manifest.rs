//! `NAME.toml`: from text to definitions, or to every fault at once with its line and column.
//!
//! It reads TOML into core's `Raw` and remembers where each value stood; what attributes mean is
//! core's alone. It knows nothing of components and of other plugins.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use oncue_core::code::Code;
use oncue_core::definition::{
    Change, Fault, ProcessDefinition, ProcessPatch, QueueDefinition, QueuePatch, Raw, limits,
};
use oncue_core::names::{PluginName, ProcessName, QueueName};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The table that defines the process.
const PROCESS: &str = "process";
/// The table of tables that define queues.
const QUEUE: &str = "queue";

/// What a manifest, or its absence, defines.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Definitions {
    /// The process definition's base.
    pub(crate) process: ProcessPatch,
    /// The queues bound to it, with their base definitions.
    pub(crate) queues: Vec<(QueueName, QueuePatch)>,
}

impl Definitions {
    /// What a component without a manifest gets: default limits, no grants, and the queue of its
    /// own name with the default trigger.
    pub(crate) fn without_manifest(plugin: &PluginName) -> Self {
        Self {
            process: ProcessPatch::default(),
            queues: vec![(QueueName::from(plugin), QueuePatch::default())],
        }
    }
}

/// A fault of a manifest, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ManifestFault {
    /// The manifest's file name.
    pub(crate) file: String,
    /// Line, from 1.
    pub(crate) line: usize,
    /// Column, from 1, in characters.
    pub(crate) column: usize,
    /// What is wrong and what to do.
    pub(crate) message: String,
}

impl fmt::Display for ManifestFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            line,
            column,
            message,
        } = self;
        write!(formatter, "{file}:{line}:{column}: {message}")
    }
}

/// All faults as one reason, with the code.
pub(crate) fn reason(faults: &[ManifestFault]) -> String {
    let texts: Vec<String> = faults.iter().map(ToString::to_string).collect();
    format!("{} [{}]", texts.join("; also "), Code::InvalidManifest)
}

/// A manifest that was read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Manifest {
    /// The component's file, if the manifest names one; known also of many a faulty manifest, so
    /// that its component is not taken for a plugin without one.
    pub(crate) component: Option<String>,
    /// What it defines, or every fault.
    pub(crate) definitions: Result<Definitions, Vec<ManifestFault>>,
}

/// Reads a manifest. `file` is its name for messages.
pub(crate) fn parse(bytes: &[u8], file: &str, plugin: &PluginName) -> Manifest {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let before = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
            let places = Places::new(file, &before);
            let fault = places.fault(before.len(), "is not UTF-8; save it as UTF-8".to_owned());
            return Manifest {
                component: None,
                definitions: Err(vec![fault]),
            };
        }
    };
    let mut places = Places::new(file, text);
    let (table, errors) = DeTable::parse_recoverable(text);
    let raw = places.convert_table(table.get_ref(), "");
    let component = component_of(&raw);
    // After a fault of syntax the values are guesses: their faults would mislead.
    if !errors.is_empty() {
        let mut faults: Vec<_> = errors
            .iter()
            .take(limits::MAX_FAULTS)
            .map(|error| places.syntax(error))
            .collect();
        // The first fault of a line makes the parser find others behind it.
        faults.dedup_by_key(|fault| fault.line);
        return Manifest {
            component,
            definitions: Err(faults),
        };
    }
    let (definitions, faults) = read(&raw, plugin);
    let definitions = if faults.is_empty() {
        Ok(definitions)
    } else {
        let mut placed: Vec<_> = faults.iter().map(|fault| places.place(fault)).collect();
        placed.sort_by_key(|fault| (fault.line, fault.column));
        Err(placed)
    };
    Manifest {
        component,
        definitions,
    }
}

/// Values that are accepted and probably not meant.
pub(crate) fn warnings(definitions: &Definitions) -> Vec<String> {
    let process = ProcessDefinition::from_manifest(definitions.process.clone());
    process
        .warnings()
        .into_iter()
        .map(|fault| fault.under(&[PROCESS]).to_string())
        .collect()
}

fn component_of(raw: &Raw) -> Option<String> {
    match raw.get(PROCESS)?.get("component")? {
        Raw::Text(text) if !text.is_empty() => Some(text.clone()),
        _ => None,
    }
}

/// Reads the whole table; the definitions are void when there are faults.
fn read(raw: &Raw, plugin: &PluginName) -> (Definitions, Vec<Fault>) {
    let mut definitions = Definitions::default();
    let mut faults = Vec::new();
    let Raw::Table(entries) = raw else {
        return (definitions, faults);
    };
    for (name, value) in entries {
        match (name.as_str(), value) {
            (PROCESS, _) => match ProcessPatch::parse(value) {
                Ok(patch) => definitions.process = patch,
                Err(found) => faults.extend(under(found, &[PROCESS])),
            },
            (QUEUE, Raw::Table(queues)) => {
                definitions.queues = read_queues(queues, plugin, &mut faults);
            }
            (QUEUE, _) => {
                let message = "is no table; write [queue.NAME] for each queue".to_owned();
                faults.push(Fault {
                    path: vec![name.clone()],
                    message,
                });
            }
            _ => {
                let message =
                    "is not known here; a manifest has [process] and [queue.NAME]".to_owned();
                faults.push(Fault {
                    path: vec![name.clone()],
                    message,
                });
            }
        }
    }
    let process = ProcessDefinition::from_manifest(definitions.process.clone());
    faults.extend(under(process.check(), &[PROCESS]));
    // A manifest that only sets limits or grants does not end the service of the plugin's queue.
    if definitions.queues.is_empty() {
        definitions.queues = Definitions::without_manifest(plugin).queues;
    }
    (definitions, faults)
}

fn read_queues(
    entries: &[(String, Raw)],
    plugin: &PluginName,
    faults: &mut Vec<Fault>,
) -> Vec<(QueueName, QueuePatch)> {
    let mut queues = Vec::new();
    if entries.len() > limits::MAX_ENTRIES {
        let message = format!(
            "has {} queues of at most {}",
            entries.len(),
            limits::MAX_ENTRIES
        );
        faults.push(Fault {
            path: vec![QUEUE.to_owned()],
            message,
        });
        return queues;
    }
    for (name, value) in entries {
        let path = [QUEUE, name.as_str()];
        let mut fault = |message: String| {
            faults.push(Fault {
                path: path.map(str::to_owned).to_vec(),
                message,
            });
        };
        let queue = match QueueName::new(name) {
            Ok(queue) if queue.is_reserved() => {
                fault("names a queue of the manager's own; choose another name".to_owned());
                continue;
            }
            Ok(queue) => queue,
            Err(error) => {
                fault(format!("names a queue that {}", error.fact()));
                continue;
            }
        };
        match QueuePatch::parse(value) {
            Ok(patch) => {
                faults.extend(under(check_queue(&queue, &patch, plugin), &path));
                queues.push((queue, patch));
            }
            Err(found) => faults.extend(under(found, &path)),
        }
    }
    queues
}

/// Rules for one queue of a manifest.
fn check_queue(queue: &QueueName, patch: &QueuePatch, plugin: &PluginName) -> Vec<Fault> {
    let mut faults = QueueDefinition::from_manifest(patch.clone()).check_for(queue);
    if let Some(Change::Set(process)) = &patch.process
        && process.as_ref() != Some(&ProcessName::from(plugin))
    {
        let message = format!(
            "binds the queue to another process; remove it: a manifest's queues are served by its \
             own process, \"{plugin}\""
        );
        faults.push(Fault::new("process", message));
    }
    faults
}

fn under(faults: Vec<Fault>, outer: &[&str]) -> Vec<Fault> {
    faults.into_iter().map(|fault| fault.under(outer)).collect()
}

/// Where every value of a text stands.
struct Places<'a> {
    file: &'a str,
    text: &'a str,
    /// By path, joined with dots as faults join theirs: the byte at which its name starts, or the
    /// value itself inside a list.
    starts: BTreeMap<String, usize>,
}

impl<'a> Places<'a> {
    fn new(file: &'a str, text: &'a str) -> Self {
        Self {
            file,
            text,
            starts: BTreeMap::new(),
        }
    }

    fn convert_table(&mut self, table: &DeTable<'_>, path: &str) -> Raw {
        let mut entries = Vec::with_capacity(table.len());
        for (name, value) in table {
            let text: &str = name.get_ref();
            let inner = join(path, text);
            self.starts
                .entry(inner.clone())
                .or_insert(name.span().start);
            entries.push((text.to_owned(), self.convert(value, &inner)));
        }
        Raw::Table(entries)
    }

    fn convert(&mut self, value: &Spanned<DeValue<'_>>, path: &str) -> Raw {
        match value.get_ref() {
            DeValue::String(text) => Raw::Text(text.clone().into_owned()),
            DeValue::Boolean(value) => Raw::Boolean(*value),
            DeValue::Integer(number) => {
                match i64::from_str_radix(number.as_str(), number.radix()) {
                    Ok(number) => Raw::Integer(number),
                    // Past 64 bits: shown in the refusal, used nowhere.
                    Err(_) => Raw::Float(number.as_str().parse().unwrap_or(f64::INFINITY)),
                }
            }
            DeValue::Float(number) => Raw::Float(number.as_str().parse().unwrap_or(f64::NAN)),
            DeValue::Datetime(time) => Raw::Text(time.to_string()),
            DeValue::Array(values) => {
                let mut list = Vec::with_capacity(values.len());
                for (index, value) in values.iter().enumerate() {
                    let inner = join(path, &index.to_string());
                    self.starts
                        .entry(inner.clone())
                        .or_insert(value.span().start);
                    list.push(self.convert(value, &inner));
                }
                Raw::List(list)
            }
            DeValue::Table(table) => self.convert_table(table, path),
        }
    }

    /// Gives a fault its place: that of the value, or else of the nearest one around it.
    fn place(&self, fault: &Fault) -> ManifestFault {
        let mut path = fault.path.as_slice();
        let mut start = 0;
        while !path.is_empty() {
            if let Some(found) = self.starts.get(&path.join(".")) {
                start = *found;
                break;
            }
            path = &path[..path.len() - 1];
        }
        self.fault(start, fault.to_string())
    }

    fn syntax(&self, error: &toml::de::Error) -> ManifestFault {
        let Range { start, .. } = error.span().unwrap_or_default();
        self.fault(start, error.message().to_owned())
    }

    fn fault(&self, start: usize, message: String) -> ManifestFault {
        let before = self.text.get(..start).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |index| index + 1);
        ManifestFault {
            file: self.file.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message,
        }
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plugin() -> PluginName {
        PluginName::new("orders").expect("a name")
    }

    /// Parses a text and demands these faults, each a prefix `line:column: message`.
    fn check(text: &str, wanted: &[&str]) -> Manifest {
        let manifest = parse(text.as_bytes(), "orders.toml", &plugin());
        let got: Vec<String> = match &manifest.definitions {
            Ok(_) => Vec::new(),
            Err(faults) => faults.iter().map(ToString::to_string).collect(),
        };
        assert_eq!(got.len(), wanted.len(), "{got:#?}");
        for (got, wanted) in got.iter().zip(wanted) {
            assert!(
                got.starts_with(&format!("orders.toml:{wanted}")),
                "{got}, wanted {wanted}"
            );
        }
        manifest
    }

    #[test]
    fn a_whole_manifest_is_read() {
        let manifest = check(
            "[process]\ncomponent = \"route.wasm\"\nmemory = \"32 MiB\"\nfuel = 1_000_000_000\n\
             [process.grants]\nput = [\"invoices\", \"audit.*\"]\n\
             [queue.orders]\ntrigger = \"depth\"\ntrigger-depth = 0x10\n[queue.\"a.b\"]\n",
            &[],
        );
        assert_eq!(manifest.component.as_deref(), Some("route.wasm"));
        let definitions = manifest.definitions.expect("no faults");
        assert_eq!(definitions.process.memory, Some(Change::Set(32 << 20)));
        assert_eq!(definitions.process.fuel, Some(Change::Set(1_000_000_000)));
        let names: Vec<_> = definitions
            .queues
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(names, ["orders", "a.b"]);
        assert_eq!(definitions.queues[0].1.trigger_depth, Some(Change::Set(16)));
    }

    #[test]
    fn without_queues_the_plugins_own_is_served() {
        let manifest = check("[process]\nmemory = \"32 MiB\"\n", &[]);
        let definitions = manifest.definitions.expect("no faults");
        assert_eq!(
            definitions.queues,
            Definitions::without_manifest(&plugin()).queues
        );
        check("", &[]);
    }

    #[test]
    fn a61_every_fault_has_its_line_and_column() {
        check(
            "extra = 1\n[process]\n  memori = 1\n  deadline = \"10m\"\n\
             [process.grants]\n  put = [\"ok\", \"not ok\"]\n\
             [queue.orders]\n  trigger = \"frist\"\n  trigger-depth = 0\n\
             [queue.\"oncue.x\"]\n[queue.\"a b\"]\n",
            &[
                "1:1: \"extra\" is not known here",
                "3:3: \"process.memori\" is not an attribute",
                "6:16: \"process.grants.put.1\" ",
                "8:3: \"queue.orders.trigger\" is \"frist\"",
                "9:3: \"queue.orders.trigger-depth\" is 0",
                "10:8: \"queue.oncue.x\" names a queue of the manager",
                "11:8: \"queue.a b\" names a queue that has ' '",
            ],
        );
    }

    #[test]
    fn rules_between_attributes_have_places_too() {
        check(
            "[process]\ndeadline = \"10m\"\n[queue.orders]\nbackout-queue = \"orders\"\n\
             process = \"other\"\n",
            &[
                "2:1: \"process.deadline\" is 10m, past",
                "4:1: \"queue.orders.backout-queue\" is",
                "5:1: \"queue.orders.process\" binds the queue to another process",
            ],
        );
    }

    #[test]
    fn faults_of_syntax_are_all_named() {
        let manifest = check(
            "[process]\ncomponent = \"route.wasm\"\nmemory = = 1\n[queue.orders]\nput = \n",
            &["3:10: ", "5:"],
        );
        assert_eq!(manifest.component.as_deref(), Some("route.wasm"));
    }

    #[test]
    fn a_manifest_that_is_no_text_is_refused_at_its_place() {
        let manifest = parse(b"[process]\nuser-data = \"\xff\"", "orders.toml", &plugin());
        let faults = manifest.definitions.expect_err("not UTF-8");
        assert_eq!((faults[0].line, faults[0].column), (2, 14));
        assert!(reason(&faults).ends_with("[invalid-manifest]"));
    }

    #[test]
    fn a_huge_number_is_refused_and_not_wrapped() {
        check(
            "[queue.orders]\nmax-depth = 99999999999999999999999\n",
            &["2:1: "],
        );
    }
}
