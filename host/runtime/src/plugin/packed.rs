//! A plugin as one file: its manifest in a custom section of the component (or core module).
//!
//! A manifest that lies beside the file wins over the embedded one, so that an operator need not
//! unpack anything. In an embedded manifest `component` has no meaning. Neighbours: `catalog` takes
//! the manifest for the plugin's, `manifest` reads it.

use oncue_core::code::Code;
use oncue_core::names::PluginName;

use super::bounds::MAX_MANIFEST_BYTES;
use super::manifest;
use super::reading;

/// The section's name.
pub(crate) const SECTION: &str = "oncue:manifest";
/// The id of custom sections, in modules and in components.
const CUSTOM: u8 = 0;
/// Magic, version and layer.
const HEADER: usize = 8;
/// The most bytes of a number of 32 bits.
const MAX_NUMBER: usize = 5;

/// Finds the embedded manifest. The last of several counts: tools append.
///
/// What is no WebAssembly, or is cut off, has none from there on; reading it as a component says
/// why. Only the outermost sections are looked at: a component inside is another one.
pub(crate) fn find(bytes: &[u8]) -> Option<&[u8]> {
    sections(bytes)
        .filter_map(|section| section.manifest())
        .last()
}

/// What people call the embedded manifest of a file.
pub(crate) fn speaker(file: &str) -> String {
    format!("manifest in {file}")
}

/// A plugin with its manifest inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed {
    /// The file's content.
    pub bytes: Vec<u8>,
    /// What is accepted in the manifest and probably not meant.
    pub warnings: Vec<String>,
}

/// Embeds a manifest, in place of one that is embedded already. `stem` is the name that the plugin
/// will have, `file` and `manifest_file` are the files' names for messages.
///
/// # Errors
/// All faults, each a sentence: of the file, and of the manifest with lines and columns.
pub fn pack(
    component: &[u8],
    file: &str,
    stem: &str,
    manifest: &[u8],
    manifest_file: &str,
) -> Result<Packed, Vec<String>> {
    let mut faults = Vec::new();
    if let Some(text) = reading::refuse_header(component) {
        faults.push(format!("\"{file}\" {text} [{}]", Code::PluginRefused));
    } else if sections(component).any(|section| section.is_cut) {
        let length = component.len();
        faults.push(format!(
            "\"{file}\" is truncated at {length} bytes; copy it again [{}]",
            Code::PluginRefused
        ));
    }
    let mut warnings = Vec::new();
    match PluginName::new(stem) {
        Err(error) => faults.push(format!("{error}; rename the file")),
        Ok(_) if manifest.len() as u64 > MAX_MANIFEST_BYTES => faults.push(too_large(manifest)),
        Ok(plugin) => match manifest::parse(manifest, manifest_file, &plugin).definitions {
            Ok(definitions) => warnings = manifest::warnings(&definitions),
            Err(found) => faults.extend(found.iter().map(ToString::to_string)),
        },
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let mut bytes = Vec::with_capacity(component.len() + manifest.len() + HEADER);
    bytes.extend_from_slice(&component[..HEADER]);
    let others = sections(component).filter(|section| section.manifest().is_none());
    others.for_each(|section| bytes.extend_from_slice(section.whole));
    let mut body = Vec::with_capacity(manifest.len() + SECTION.len() + MAX_NUMBER);
    write_number(&mut body, SECTION.len());
    body.extend_from_slice(SECTION.as_bytes());
    body.extend_from_slice(manifest);
    bytes.push(CUSTOM);
    write_number(&mut bytes, body.len());
    bytes.extend_from_slice(&body);
    Ok(Packed { bytes, warnings })
}

/// The words for a manifest that is larger than one may be.
pub(crate) fn too_large(manifest: &[u8]) -> String {
    let (length, code) = (manifest.len(), Code::InvalidManifest);
    format!("the manifest has {length} bytes of at most {MAX_MANIFEST_BYTES}; shorten it [{code}]")
}

/// A section of a WASM file, whatever its layer.
struct Section<'a> {
    id: u8,
    /// With its id and its length.
    whole: &'a [u8],
    body: &'a [u8],
    /// Whether the file ends inside of it.
    is_cut: bool,
}

impl<'a> Section<'a> {
    /// The manifest that it carries.
    fn manifest(&self) -> Option<&'a [u8]> {
        if self.id != CUSTOM || self.is_cut {
            return None;
        }
        let (length, rest) = read_number(self.body)?;
        let name = rest.get(..length)?;
        (name == SECTION.as_bytes()).then(|| &rest[length..])
    }
}

/// The outermost sections, up to the first that is cut off.
fn sections(bytes: &[u8]) -> impl Iterator<Item = Section<'_>> {
    let mut rest = match reading::refuse_header(bytes) {
        Some(_) => &[][..],
        None => &bytes[HEADER..],
    };
    std::iter::from_fn(move || {
        let (id, after) = rest.split_first()?;
        let body = read_number(after).and_then(|(length, after)| after.split_at_checked(length));
        let is_cut = body.is_none();
        let (body, next) = body.unwrap_or_default();
        let whole = &rest[..rest.len() - next.len()];
        rest = next;
        Some(Section {
            id: *id,
            whole,
            body,
            is_cut,
        })
    })
}

/// Reads a length in LEB128.
fn read_number(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut number = 0_u64;
    for (index, byte) in bytes.iter().take(MAX_NUMBER).enumerate() {
        number |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some((usize::try_from(number).ok()?, &bytes[index + 1..]));
        }
    }
    None
}

fn write_number(to: &mut Vec<u8>, number: usize) {
    let mut number = number;
    while number >= 0x80 {
        // The low seven bits, and that more follow.
        to.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";
    const MANIFEST: &[u8] = b"[process]\nmemory = \"32 MiB\"\n";

    fn packed(component: &[u8], manifest: &[u8]) -> Vec<u8> {
        let packed = pack(component, "a.wasm", "a", manifest, "a.toml");
        packed.expect("packed").bytes
    }

    #[test]
    fn what_is_packed_is_found_and_packed_over() {
        assert_eq!(find(COMPONENT), None);
        let once = packed(COMPONENT, MANIFEST);
        assert_eq!(find(&once), Some(MANIFEST));
        // Lengths of one byte and of more.
        let long = format!("# {}\n", "x".repeat(100_000));
        let twice = packed(&once, long.as_bytes());
        assert_eq!(find(&twice), Some(long.as_bytes()));
        assert_eq!(packed(&twice, MANIFEST), once);
        // Other sections stay where they are, also in a core module.
        let module = wat::parse_str("(module (memory (export \"memory\") 1))").expect("a module");
        let both = packed(&module, MANIFEST);
        assert!(both.starts_with(&module));
        assert!(wasmparser::validate(&both).is_ok());
        assert!(wasmparser::validate(&twice).is_ok());
    }

    #[test]
    fn a_manifest_in_a_component_inside_is_another_ones() {
        let inner = packed(COMPONENT, MANIFEST);
        let mut outer = COMPONENT.to_vec();
        outer.push(4);
        write_number(&mut outer, inner.len());
        outer.extend_from_slice(&inner);
        assert!(wasmparser::validate(&outer).is_ok());
        assert_eq!(find(&outer), None);
    }

    #[test]
    fn what_is_cut_off_or_no_wasm_has_none() {
        let whole = packed(COMPONENT, MANIFEST);
        for length in 0..whole.len() {
            assert_eq!(find(&whole[..length]), None, "{length}");
        }
        assert_eq!(
            find(&[&whole[..], &[0, 0x80, 0x80, 0x80, 0x80, 0x80]].concat()),
            Some(MANIFEST)
        );
        assert_eq!(find(b"no wasm at all, but long enough"), None);
    }

    #[test]
    fn all_faults_are_told_at_once() {
        let manifest = b"[process]\nmemori = 1\nfuell = 2\n";
        let check = |component: &[u8], stem: &str, wanted: &[&str]| {
            let faults = pack(component, "a.wasm", stem, manifest, "a.toml").expect_err("refused");
            assert_eq!(faults.len(), wanted.len(), "{faults:#?}");
            for (fault, wanted) in faults.iter().zip(wanted) {
                assert!(fault.contains(wanted), "{fault}, wanted {wanted}");
            }
        };
        let both = [
            "a.toml:2:1: \"process.memori\"",
            "a.toml:3:1: \"process.fuell\"",
        ];
        check(COMPONENT, "a", &both);
        check(b"text", "a", &["is not WebAssembly", both[0], both[1]]);
        check(
            &[COMPONENT, &[0, 9, 1]].concat(),
            "a",
            &["is truncated", both[0], both[1]],
        );
        check(COMPONENT, "a b", &["a b"]);
        let long = vec![b'#'; 1 << 21];
        let faults = pack(COMPONENT, "a.wasm", "a", &long, "a.toml").expect_err("refused");
        assert!(faults[0].contains("of at most 1048576"), "{faults:?}");
    }
}
