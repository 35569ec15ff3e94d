//! Core modules made into components: what compilers emit that know nothing of components (C, Zig,
//! Go, TinyGo, AssemblyScript) can be dropped in as it is.
//!
//! A module with a main function (`_start`) becomes a command, one with an embedded world (a
//! `component-type` section, which bindings leave behind) becomes whatever that world says; its
//! imports of WASI preview 1 are met by the adapter that belongs to the sandbox. A module that is
//! neither is refused in words for its author, and so is one that imports what nobody has.
//!
//! It runs on bytes that nobody has checked: a host calls it in the compiler's child process only
//! (see `compile`). It judges no world: the component is judged as any other afterwards.
//! Neighbours: `module` reads a core module, `componentize` is for the command line.

use std::collections::BTreeSet;
use std::error::Error;

use oncue_core::code::Code;
use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME as PREVIEW_1,
    WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER as COMMAND,
    WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER as REACTOR,
};
use wasmparser::{Parser, Validator, WasmFeatures};
use wit_component::ComponentEncoder;
use wit_component::metadata::Bindgen;
use wit_parser::WorldItem;

use super::go_memory;
use super::module::{Module, malformed, name_all};

/// Whether the bytes begin as a core module's do.
pub(crate) fn is_core_module(bytes: &[u8]) -> bool {
    Parser::is_core_wasm(bytes)
}

/// Makes a component of a core module.
///
/// # Errors
/// All that is wrong and what to do, as one sentence that begins with "it".
pub(crate) fn adapt(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let refuse = |text: String| format!("it {text} [{}]", Code::PluginRefused);
    encode(bytes).map_err(refuse)
}

fn encode(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let whole = Validator::new_with_features(WasmFeatures::all()).validate_all(bytes);
    whole.map_err(|error| malformed(&error, bytes.len(), "module"))?;
    let module = Module::read(bytes)?;
    if !module.has_start() && !module.has_world {
        return Err(neither(&module));
    }
    let world = embedded_world(bytes)?;
    let faults: Vec<String> = [
        unknown_imports(&module, &world)?,
        missing_exports(&module, &world),
    ]
    .into_iter()
    .flatten()
    .collect();
    if !faults.is_empty() {
        return Err(faults.join("; also "));
    }
    let spaced = go_memory::set_apart(bytes);
    let bytes = spaced.as_deref().unwrap_or(bytes);
    let adapter = if module.has_start() { COMMAND } else { REACTOR };
    let encoder = ComponentEncoder::default().validate(true);
    let encoder = encoder
        .module(bytes)
        .map_err(|error| misfit(error.root_cause()))?;
    let encoder = encoder.adapter(PREVIEW_1, adapter);
    let mut encoder = encoder.map_err(|error| misfit(error.root_cause()))?;
    encoder.encode().map_err(|error| misfit(error.root_cause()))
}

/// The world that bindings left in the module; an empty one if they left none.
fn embedded_world(bytes: &[u8]) -> Result<Bindgen, String> {
    let decoded = wit_component::metadata::decode(bytes);
    let (_, world) = decoded.map_err(|error| {
        let cause = error.root_cause();
        format!(
            "its embedded world cannot be read ({cause}); build it again with bindings of one \
             world and one generator"
        )
    })?;
    Ok(world)
}

/// The words for a module that is no program and has no world.
fn neither(module: &Module<'_>) -> String {
    let exports = name_all(module.exports.iter().map(|name| (*name).to_owned()));
    let imports = name_all(module.imports.iter().map(|(from, names)| {
        let names = name_all(names.iter().map(|name| (*name).to_owned()));
        format!("{from} ({names})")
    }));
    let world = match module.handler() {
        Some("on-trigger") => "trigger-handler",
        _ => "message-handler",
    };
    format!(
        "is a core module with neither a main function (_start) nor an embedded world: it exports \
         {exports} and imports {imports}; build it as a program (a WASI command), or with bindings \
         that embed their world (wit-bindgen), or tell its world: oncue plugin componentize \
         --world {world}"
    )
}

/// Imports that neither the adapter nor the embedded world has, all of them.
fn unknown_imports(module: &Module<'_>, world: &Bindgen) -> Result<Option<String>, String> {
    let adapted = Module::read(REACTOR)?;
    let has: BTreeSet<&str> = adapted.exports.iter().copied().collect();
    let resolve = &world.resolve;
    let imports = resolve.worlds[world.world].imports.keys();
    let known: BTreeSet<String> = imports
        .map(|key| unversioned(&resolve.name_world_key(key)).to_owned())
        .collect();
    let mut unknown = Vec::new();
    let mut cures = BTreeSet::new();
    for (from, names) in &module.imports {
        let names: Vec<String> = match *from {
            PREVIEW_1 => {
                let unknown = names.iter().filter(|name| !has.contains(*name));
                unknown.map(|name| (*name).to_owned()).collect()
            }
            from if is_intrinsic(from) || known.contains(unversioned(from)) => Vec::new(),
            _ => names.iter().map(|name| (*name).to_owned()).collect(),
        };
        if !names.is_empty() {
            unknown.push(format!("{from} ({})", name_all(names.into_iter())));
            cures.insert(cure(from));
        }
    }
    if unknown.is_empty() {
        return Ok(None);
    }
    let cures: Vec<&str> = cures.into_iter().collect();
    Ok(Some(format!(
        "imports {}, which this host does not offer to a core module; {}",
        name_all(unknown.into_iter()),
        cures.join(", and ")
    )))
}

/// What to do about imports from a module of that name.
fn cure(from: &str) -> &'static str {
    match from {
        PREVIEW_1 => "build it against WASI preview 1 without extensions",
        "env" => "link it whole: what stands under \"env\" is defined nowhere",
        "wasi" => "build it without threads",
        "wasi_unstable" => "build it with a compiler that knows wasi_snapshot_preview1",
        "gojs" | "go" => "build it with GOOS=wasip1",
        "wbg" | "__wbindgen_placeholder__" => "build it for WASI, not for a browser",
        from if from.contains(':') => {
            "name those interfaces in the world that its bindings embed (or tell one with oncue \
             plugin componentize --world)"
        }
        _ => "remove what needs them, or build it for wasm32-wasip1",
    }
}

/// Exports that the embedded world promises and the module lacks, all of them.
fn missing_exports(module: &Module<'_>, bindgen: &Bindgen) -> Option<String> {
    // Other manglings: the encoder knows them, and tells of one fault.
    let is_other = |name: &&str| name.starts_with("cm32p2") || name.starts_with("[async");
    if module.exports.iter().any(is_other) {
        return None;
    }
    let there: BTreeSet<(&str, &str)> = module
        .exports
        .iter()
        .map(|name| name.split_once('#').unwrap_or(("", name)))
        .map(|(interface, function)| (unversioned(interface), function))
        .collect();
    let resolve = &bindgen.resolve;
    let mut missing = Vec::new();
    for (key, item) in &resolve.worlds[bindgen.world].exports {
        match item {
            WorldItem::Function(function) if !there.contains(&("", function.name.as_str())) => {
                missing.push(function.name.clone());
            }
            WorldItem::Interface { id, .. } => {
                let interface = resolve.name_world_key(key);
                let functions = resolve.interfaces[*id].functions.keys();
                let lacks =
                    |name: &&String| !there.contains(&(unversioned(&interface), name.as_str()));
                missing.extend(
                    functions
                        .filter(lacks)
                        .map(|name| format!("{interface}#{name}")),
                );
            }
            WorldItem::Function(_) | WorldItem::Type { .. } => {}
        }
    }
    (!missing.is_empty()).then(|| {
        format!(
            "does not export {}, which its world promises; define and export them",
            name_all(missing.into_iter())
        )
    })
}

/// Whether the component model itself is behind an import, and not an interface.
fn is_intrinsic(from: &str) -> bool {
    from == "$root" || from.starts_with("[export]") || from.starts_with("cm32p2")
}

fn unversioned(name: &str) -> &str {
    name.split('@').next().unwrap_or(name)
}

/// The words for what the encoder refuses: what is left is a module that is not what its own world
/// says.
fn misfit(cause: &dyn Error) -> String {
    let text = cause.to_string().replace('\n', " ");
    format!("cannot be made a component: {text}; build it again with the bindings of its world")
}

#[cfg(test)]
#[path = "adapt_tests.rs"]
pub(crate) mod tests;
