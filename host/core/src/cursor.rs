//! Cursors of lists: where a page ended, as text that whoever asks for the next page gives back.
//!
//! A cursor carries a check over the list it belongs to and the place in it. So one that was cut,
//! mistyped, or given out by another list is refused, where it would show some other part as if
//! nothing were wrong. It guards against mistakes, not against people: a cursor opens nothing that
//! the list itself does not show.

/// What stands between place and check. It needs no encoding in an address, and no check has it.
const MARK: char = '~';

/// A cursor for a place in a list. `list` names the list and what it was asked for; an empty place
/// is fine.
#[must_use]
pub fn seal(list: &[&str], place: &str) -> String {
    format!("{place}{MARK}{:08x}", check(list, place))
}

/// The place that [`seal`] put into a cursor of this list; `None` if it did not.
#[must_use]
pub fn open<'a>(list: &[&str], cursor: &'a str) -> Option<&'a str> {
    let (place, _) = cursor.rsplit_once(MARK)?;
    // Written anew and compared, so that there is one text for each place.
    (seal(list, place) == cursor).then_some(place)
}

/// FNV-1a over all parts, each with its end, folded to 32 bits.
fn check(list: &[&str], place: &str) -> u32 {
    const START: u64 = 0xcbf2_9ce4_8422_2325;
    const FACTOR: u64 = 0x0100_0000_01b3;
    // No text has this byte: parts cannot run into each other.
    const END: u8 = 0xff;
    let parts = list.iter().copied().chain([place]);
    let bytes = parts.flat_map(|part| part.bytes().chain([END]));
    let hash = bytes.fold(START, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(FACTOR)
    });
    let [a, b, c, d, e, f, g, h] = hash.to_le_bytes();
    u32::from_le_bytes([a ^ e, b ^ f, c ^ g, d ^ h])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_opens_its_own_list_and_no_other() {
        for place in ["", "3.4.abc", "a~b", "orders"] {
            let cursor = seal(&["queues", "depth"], place);
            assert_eq!(open(&["queues", "depth"], &cursor), Some(place));
            for list in [
                &["queues"][..],
                &["queues", "name"],
                &["queuesdepth"],
                &["queues", "depth", ""],
            ] {
                assert_eq!(open(list, &cursor), None, "{cursor} of {list:?}");
            }
        }
    }

    #[test]
    fn a_cursor_in_which_anything_is_changed_is_none() {
        let cursor = seal(&["messages", "orders"], "0.9.1f");
        for at in 0..cursor.len() {
            let mut bytes = cursor.clone().into_bytes();
            bytes[at] = if bytes[at] == b'0' { b'1' } else { b'0' };
            let other = String::from_utf8(bytes).expect("ASCII");
            assert_eq!(open(&["messages", "orders"], &other), None, "{other}");
        }
        for cut in 0..cursor.len() {
            let cut = &cursor[..cut];
            assert_eq!(open(&["messages", "orders"], cut), None, "{cut}");
        }
        for text in ["", "~", "x", "~00000000", "\u{fc}~", &cursor.to_uppercase()] {
            assert_eq!(open(&["messages", "orders"], text), None, "{text}");
        }
    }
}
