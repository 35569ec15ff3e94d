//! The identity of a content: SHA-256, by which components are kept, cached and named.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

/// Hexadecimal digits of a digest.
const LENGTH: usize = 64;
/// Digits that are shown to people.
const SHORT: usize = 12;

/// SHA-256 of some bytes, as 64 lower-case hexadecimal digits.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(Arc<str>);

impl Digest {
    /// The digest of the bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let mut text = String::with_capacity(LENGTH);
        for byte in Sha256::digest(bytes) {
            for digit in [byte >> 4, byte & 15] {
                text.push(char::from_digit(u32::from(digit), 16).expect("four bits are a digit"));
            }
        }
        Self(text.into())
    }

    /// Reads a digest; `None` if the text is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_digit = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
        (text.len() == LENGTH && text.bytes().all(is_digit)).then(|| Self(text.into()))
    }

    /// All digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first digits, for sentences.
    #[must_use]
    pub fn short(&self) -> &str {
        &self.0[..SHORT]
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.0)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.short())
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("not a SHA-256 digest"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_what_sha256sum_prints() {
        let wanted = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let digest = Digest::of(b"abc");
        assert_eq!(digest.as_str(), wanted);
        assert_eq!(Digest::parse(wanted), Some(digest.clone()));
        assert_eq!(digest.short(), "ba7816bf8f01");
        for text in ["", "ba78", &wanted.to_uppercase(), &format!("{wanted}0")] {
            assert_eq!(Digest::parse(text), None, "{text}");
        }
    }
}
