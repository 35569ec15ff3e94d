//! Components of core modules for the command line: the module may be text, and its world may be
//! told instead of embedded.
//!
//! It runs in the caller's own process: the author's own files are no threat to the author. What a
//! host does with a dropped module is in `adapt`, which does the work here too.

use std::borrow::Cow;
use std::path::Path;

use oncue_core::code::Code;
use oncue_core::definition::Style;
use serde::Serialize;
use wit_component::{StringEncoding, embed_component_metadata};
use wit_parser::{PackageId, Resolve};

use super::bounds::MAX_COMPONENT_BYTES;
use super::{adapt, reading, shape};

/// The first four bytes of every WASM file.
const MAGIC: &[u8; 4] = b"\0asm";

/// A world that a module is written for.
#[derive(Clone, Copy, Debug)]
pub struct World<'a> {
    /// The folder of WIT packages, or a file with one.
    pub wit: &'a Path,
    /// The world's name there, or with its package in full.
    pub name: &'a str,
}

/// A component that was made of a module.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Made {
    /// Its bytes.
    #[serde(skip)]
    pub bytes: Vec<u8>,
    /// How a host would call it; none: it would not.
    pub style: Option<String>,
    /// By what that was found, or why it would not be called.
    pub why: String,
    /// Names of its exports.
    pub exports: Vec<String>,
    /// Names of its imports.
    pub imports: Vec<String>,
}

/// Makes a component of a core module, in binary or in text. `file` is its name for messages.
/// Without a `world` the module has embedded one, or is a program.
///
/// # Errors
/// All faults that can be told together, each a sentence.
pub fn componentize(
    bytes: &[u8],
    file: &str,
    world: Option<World<'_>>,
) -> Result<Made, Vec<String>> {
    let code = Code::PluginRefused;
    if bytes.len() as u64 > MAX_COMPONENT_BYTES {
        let length = bytes.len();
        return Err(vec![format!(
            "\"{file}\" has {length} bytes of at most {MAX_COMPONENT_BYTES}; make it smaller \
             [{code}]"
        )]);
    }
    let mut module = binary(bytes, file).map_err(|fault| vec![fault])?;
    if !adapt::is_core_module(&module) {
        let what = match reading::refuse_header(&module) {
            Some(text) => text,
            None => "is a component already; use it as it is".to_owned(),
        };
        return Err(vec![format!("\"{file}\" {what} [{code}]")]);
    }
    if let Some(world) = world {
        let embedded = embed(module.to_mut(), world);
        embedded.map_err(|fault| vec![format!("{fault} [{code}]")])?;
    }
    let component =
        adapt::adapt(&module).map_err(|reason| vec![format!("\"{file}\": {reason}")])?;
    describe(component, file).map_err(|fault| vec![fault])
}

/// The module's binary form.
fn binary<'a>(bytes: &'a [u8], file: &str) -> Result<Cow<'a, [u8]>, String> {
    let is_text = Path::new(file).extension().is_some_and(|it| it == "wat");
    if bytes.starts_with(MAGIC) || !is_text {
        return Ok(Cow::Borrowed(bytes));
    }
    wat::parse_bytes(bytes).map_err(|mut error| {
        error.set_path(file);
        format!("\"{file}\" is not WebAssembly text: {error}")
    })
}

/// Embeds the world's description, as bindings do.
pub(super) fn embed(module: &mut Vec<u8>, world: World<'_>) -> Result<(), String> {
    let World { wit, name } = world;
    let shown = wit.display();
    let mut resolve = Resolve::default();
    let pushed = resolve.push_path(wit);
    let (package, _) =
        pushed.map_err(|error| format!("\"{shown}\" is not read: {}", error.root_cause()))?;
    let world = resolve.select_world(&[package], Some(name));
    let world = world.map_err(|_| {
        let worlds = worlds(&resolve, package);
        format!("\"{shown}\" has no world \"{name}\"; it has {worlds}")
    })?;
    embed_component_metadata(module, &resolve, world, StringEncoding::UTF8).map_err(|error| {
        format!(
            "world \"{name}\" cannot be embedded: {}",
            error.root_cause()
        )
    })
}

fn worlds(resolve: &Resolve, package: PackageId) -> String {
    let names = resolve.packages[package].worlds.keys();
    shape::list(names.map(String::as_str))
}

fn describe(bytes: Vec<u8>, file: &str) -> Result<Made, String> {
    let interfaces = reading::read(&bytes, file)?;
    let (style, why) = match shape::judge(&interfaces, Style::Auto, file) {
        Ok(judgement) => (Some(judgement.style.to_string()), judgement.why),
        Err(reason) => (None, reason),
    };
    Ok(Made {
        bytes,
        style,
        why,
        exports: interfaces.exports.into_iter().map(|it| it.name).collect(),
        imports: interfaces.imports.into_iter().map(|it| it.name).collect(),
    })
}
