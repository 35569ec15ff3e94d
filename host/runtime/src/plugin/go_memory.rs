//! Memory of modules that the standard Go compiler makes, laid out so that the adapter of WASI
//! preview 1 can live in it.
//!
//! The adapter keeps its state in pages that it takes with `memory.grow`. Go's allocator believes
//! that nobody else grows the memory: it counts on from the end of its data, whatever `memory.grow`
//! answers, and so uses the adapter's pages for its heap once that has grown far enough. Both then
//! destroy what the other has written. Here the memory is made larger from the start, and bounded,
//! so that the two cannot meet: Go uses its own part from below and never reaches the end of the
//! part set apart, the adapter's pages lie behind it. It costs address space, no memory: what is
//! never written is never backed.
//!
//! A module with an allocator for the adapter (`cabi_realloc`) needs none of it and is left alone.
//! Neighbour: `adapt`, which does this before it encodes.

use wasmparser::{MemoryType, Parser, Payload};

/// Pages of 64 KiB that are set apart, and the most by which Go's part may grow: 24 MiB each. Under
/// the default limit of memory both fit, with what the program brings along.
const PAGES: u64 = 384;

/// The section that the Go linker writes.
const GO_SECTION: &str = "go:buildid";

/// The export that gives the adapter memory.
const ALLOCATOR: &str = "cabi_realloc";

/// The section of memories, by its number.
const MEMORIES: u8 = 5;

/// The module with memory set apart; none when it is not of Go, or not in need.
pub(super) fn set_apart(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut is_go = false;
    let mut memory = None;
    let mut out = bytes.get(..8)?.to_vec();
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload.ok()?;
        match &payload {
            Payload::CustomSection(section) => is_go |= section.name() == GO_SECTION,
            Payload::MemorySection(section) => {
                let all: Vec<MemoryType> =
                    section.clone().into_iter().collect::<Result<_, _>>().ok()?;
                memory = (all.len() == 1).then(|| all[0]);
            }
            Payload::ExportSection(section) => {
                let mut exports = section.clone().into_iter().filter_map(Result::ok);
                if exports.any(|export| export.name == ALLOCATOR) {
                    return None;
                }
            }
            _ => {}
        }
        let Some((number, range)) = payload.as_section() else {
            continue;
        };
        let content = match memory {
            Some(memory) if number == MEMORIES => spaced(memory)?,
            _ => bytes.get(range)?.to_vec(),
        };
        out.push(number);
        leb(&mut out, content.len() as u64);
        out.extend(content);
    }
    (is_go && memory.is_some()).then_some(out)
}

/// The content of the section with one memory: larger from the start, and bounded. None when it is
/// bounded already, or of a kind that Go does not make.
fn spaced(memory: MemoryType) -> Option<Vec<u8>> {
    /// One memory; its limits have both ends.
    const HEAD: [u8; 2] = [1, 1];
    if memory.maximum.is_some() || memory.memory64 || memory.shared {
        return None;
    }
    let initial = memory.initial.checked_add(PAGES)?;
    let mut content = HEAD.to_vec();
    leb(&mut content, initial);
    leb(&mut content, initial.checked_add(PAGES)?);
    Some(content)
}

/// Writes a number in seven bits a byte, the lowest first.
fn leb(out: &mut Vec<u8>, mut number: u64) {
    loop {
        let low = u8::try_from(number & 0x7f).expect("seven bits fit");
        number >>= 7;
        if number == 0 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The limits of the only memory.
    fn limits(bytes: &[u8]) -> (u64, Option<u64>) {
        for payload in Parser::new(0).parse_all(bytes) {
            if let Payload::MemorySection(section) = payload.expect("a module") {
                let memory = section.into_iter().next().expect("one").expect("a memory");
                return (memory.initial, memory.maximum);
            }
        }
        panic!("no memory");
    }

    fn module(memory: &str, rest: &str) -> Vec<u8> {
        let text = format!("(module (memory (export \"memory\") {memory}) {rest})");
        wat::parse_str(text).expect("a module")
    }

    const GO: &str = "(@custom \"go:buildid\" \"\\ff x\")";

    #[test]
    fn a_module_of_go_has_its_memory_set_apart() {
        let filler = "(func (export \"_start\") (drop (memory.grow (i32.const 1)))) \
                      (data (i32.const 8) \"kept\")";
        let bytes = module("37", &format!("{GO} {filler}"));
        let out = set_apart(&bytes).expect("changed");
        assert_eq!(limits(&out), (37 + PAGES, Some(37 + 2 * PAGES)));
        wasmparser::Validator::new()
            .validate_all(&out)
            .expect("valid");
        assert!(out.windows(4).any(|window| window == b"kept"));
        // Once is enough: it is bounded now.
        assert_eq!(set_apart(&out), None);
    }

    #[test]
    fn all_others_are_left_alone() {
        let allocator = "(func (export \"cabi_realloc\"))";
        for bytes in [
            module("37", ""),
            module("37 40", GO),
            module("37", &format!("{GO} {allocator}")),
        ] {
            assert_eq!(set_apart(&bytes), None);
        }
        assert_eq!(set_apart(b"\0asm"), None);
    }

    #[test]
    fn numbers_are_written_in_seven_bits() {
        let check = |number: u64, wanted: &[u8]| {
            let mut out = Vec::new();
            leb(&mut out, number);
            assert_eq!(out, wanted);
        };
        check(0, &[0]);
        check(127, &[127]);
        check(300, &[0xac, 2]);
    }
}
