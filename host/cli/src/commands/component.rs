//! `plugin componentize` and `plugin pack`: files made of an author's files. No host is asked.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use oncue_runtime::plugin::{self, World};
use serde_json::json;

use super::Context;
use super::plugin::NEXT_FAULT;
use crate::args::authors::{ComponentizeArgs, PackArgs};
use crate::exit::{Exit, Failure};
use crate::render::time::format_bytes;
use crate::wit;

/// Makes a component of a core module.
pub(super) fn componentize(context: &Context, args: &ComponentizeArgs) -> Result<(), Failure> {
    let bytes = read(&args.module)?;
    let file = file_name(&args.module);
    let own = match (&args.world, &args.wit) {
        (Some(_), None) => Some(own_wit()?),
        _ => None,
    };
    let folder = args
        .wit
        .as_deref()
        .or_else(|| own.as_ref().map(|folder| folder.path()));
    let world = args.world.as_deref().zip(folder);
    let world = world.map(|(name, wit)| World { wit, name });
    let made = plugin::componentize(&bytes, file, world)
        .map_err(|faults| refused(format!("\"{file}\" was not made a component"), &faults))?;
    let out = match &args.out {
        Some(out) => out.clone(),
        None => args.module.with_extension("component.wasm"),
    };
    spare(&out, &args.module)?;
    write(&out, &made.bytes)?;
    let (shown, size) = (out.display().to_string(), made.bytes.len() as u64);
    if context.screen.is_json() {
        let mut answer = json!(made);
        answer["file"] = json!(shown);
        answer["size"] = json!(size);
        return context.screen.json(&answer);
    }
    let what = match &made.style {
        Some(style) => format!("a handler of {style} style: {}", made.why),
        None => format!("a component, and no host would call it: {}", made.why),
    };
    let size = format_bytes(size);
    context
        .screen
        .headline(&format!("\"{shown}\" ({size}) is {what}"))
}

/// The packages of this very program, as files for the parser.
fn own_wit() -> Result<tempfile::TempDir, Failure> {
    let folder = tempfile::tempdir().map_err(|error| {
        let message = format!("there is no temporary folder for the WIT packages ({error})");
        Failure::new(Exit::Failed, message)
    })?;
    wit::write(folder.path())?;
    Ok(folder)
}

/// Embeds the manifest.
pub(super) fn pack(context: &Context, args: &PackArgs) -> Result<(), Failure> {
    let component = read(&args.component)?;
    let manifest_path = match &args.manifest {
        Some(path) => path.clone(),
        None => args.component.with_extension("toml"),
    };
    let manifest = read(&manifest_path)?;
    let out = args.out.as_ref().unwrap_or(&args.component);
    spare(out, &manifest_path)?;
    let stem = out.file_stem().and_then(OsStr::to_str).unwrap_or_default();
    let file = file_name(&args.component);
    let packed = plugin::pack(&component, file, stem, &manifest, file_name(&manifest_path))
        .map_err(|faults| refused(format!("\"{file}\" was not packed"), &faults))?;
    write(out, &packed.bytes)?;
    let (shown, size) = (out.display().to_string(), packed.bytes.len() as u64);
    if context.screen.is_json() {
        let manifest = manifest_path.display().to_string();
        let (plugin, warnings) = (stem, &packed.warnings);
        return context.screen.json(&json!({
            "file": shown, "size": size, "plugin": plugin, "manifest": manifest,
            "warnings": warnings,
        }));
    }
    for warning in &packed.warnings {
        context.screen.say(&format!("warning: {warning}"));
    }
    let (size, from) = (format_bytes(size), manifest_path.display());
    context.screen.headline(&format!(
        "\"{shown}\" ({size}) is plugin \"{stem}\" with the manifest of \"{from}\""
    ))
}

/// The failure for an author's file that has these faults.
fn refused(message: String, faults: &[String]) -> Failure {
    let faults = faults.iter().flat_map(|faults| faults.split(NEXT_FAULT));
    let faults: Vec<String> = faults.map(str::to_owned).collect();
    Failure::new(Exit::Refused, message).with_faults(faults)
}

fn file_name(path: &Path) -> &str {
    path.file_name().and_then(OsStr::to_str).unwrap_or_default()
}

fn read(path: &PathBuf) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|error| {
        let shown = path.display();
        match error.kind() {
            io::ErrorKind::NotFound => {
                let message = format!("\"{shown}\" is not there; name a file that is");
                Failure::new(Exit::NotFound, message)
            }
            _ => Failure::new(
                Exit::Failed,
                format!("\"{shown}\" cannot be read ({error})"),
            ),
        }
    })
}

/// Refuses to write over what something is made of: it may be the only copy.
fn spare(out: &Path, source: &Path) -> Result<(), Failure> {
    let same = fs::canonicalize(out)
        .is_ok_and(|out| fs::canonicalize(source).is_ok_and(|source| source == out));
    if !same {
        return Ok(());
    }
    let message = format!(
        "\"{}\" is what it is made of; name another file with --out",
        out.display()
    );
    Err(Failure::new(Exit::Refused, message))
}

/// Writes the file whole or not at all, over a file but over nothing else.
fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let shown = path.display();
    if path.exists() && !path.is_file() {
        let message = format!("\"{shown}\" is there and not a file; name another with --out");
        return Err(Failure::new(Exit::Refused, message));
    }
    wit::replace(path, bytes).map_err(|error| {
        Failure::new(
            Exit::Failed,
            format!("\"{shown}\" cannot be written ({error})"),
        )
    })
}
