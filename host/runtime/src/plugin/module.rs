//! What a core module imports and exports, and what custom sections it carries.
//!
//! The sections of code and data are passed over. Neighbour: `adapt` decides what follows.

use std::collections::BTreeMap;

use wasmparser::{ExternalKind, Parser, Payload};

/// The start of names of the sections by which bindings embed their world.
const WORLD_SECTION: &str = "component-type";
/// The main function of a program.
const START: &str = "_start";
/// Names that a sentence lists before it says how many more there are.
const MAX_NAMED: usize = 64;

/// A core module from outside.
#[derive(Debug, Default)]
pub(crate) struct Module<'a> {
    /// Names by the module that they are asked of.
    pub(crate) imports: BTreeMap<&'a str, Vec<&'a str>>,
    /// In the file's order.
    pub(crate) exports: Vec<&'a str>,
    /// Whether it carries a world.
    pub(crate) has_world: bool,
    has_start: bool,
}

impl<'a> Module<'a> {
    /// Reads a module.
    ///
    /// # Errors
    /// What is wrong with its sections.
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, String> {
        let mut module = Self::default();
        let read = module.read_sections(bytes);
        read.map_err(|error| malformed(&error, bytes.len(), "module"))?;
        Ok(module)
    }

    fn read_sections(&mut self, bytes: &'a [u8]) -> wasmparser::Result<()> {
        for payload in Parser::new(0).parse_all(bytes) {
            match payload? {
                Payload::ImportSection(section) => {
                    for import in section.into_imports() {
                        let import = import?;
                        let names = self.imports.entry(import.module).or_default();
                        names.push(import.name);
                    }
                }
                Payload::ExportSection(section) => {
                    for export in section {
                        let export = export?;
                        self.has_start |= export.name == START && export.kind == ExternalKind::Func;
                        self.exports.push(export.name);
                    }
                }
                Payload::CustomSection(section) => {
                    self.has_world |= section.name().starts_with(WORLD_SECTION);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether it is a program.
    pub(crate) fn has_start(&self) -> bool {
        self.has_start
    }

    /// The interface of a handler that it seems to be written for, by the names of its exports.
    pub(crate) fn handler(&self) -> Option<&str> {
        let mut interfaces = self.exports.iter().filter_map(|name| {
            let (interface, _) = name.split_once('#')?;
            interface.rsplit('/').next()?.split('@').next()
        });
        interfaces.find(|name| name.starts_with("on-"))
    }
}

/// The words for bytes that are not what they begin as.
pub(crate) fn malformed(error: &wasmparser::Error, length: usize, what: &str) -> String {
    let (text, offset) = (error.message(), error.offset());
    if text.contains("unexpected end") {
        format!("is truncated at {length} bytes ({text}); copy it again")
    } else {
        format!("is not a valid {what}: {text} (at byte {offset}); build it again")
    }
}

/// Names in a refusal: all of them, up to a number that no author's mistake reaches.
pub(crate) fn name_all(names: impl ExactSizeIterator<Item = String>) -> String {
    let count = names.len();
    if count == 0 {
        return "nothing".to_owned();
    }
    let shown: Vec<String> = names.take(MAX_NAMED).collect();
    let mut text = shown.join(", ");
    if count > shown.len() {
        text.push_str(&format!(" and {} more", count - shown.len()));
    }
    text
}
