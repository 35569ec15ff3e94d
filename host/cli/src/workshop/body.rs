//! Bodies and state values in a case's files: text where they are text, base64 where not, a digest
//! where they are large.

use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use oncue_runtime::plugin::Digest;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::render::text::{from_base64, to_base64};

/// Bodies longer than this are expected by their digest, in bytes.
const MAX_WHOLE: usize = 64 << 10;

/// Largest file that a case may name as a body, in bytes.
const MAX_FILE: u64 = 64 << 20;

/// Bytes as a case gives them. One of these at most; none is no bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Given {
    /// UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<String>,
    /// Any bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) base64: Option<String>,
    /// A JSON value, written on one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) json: Option<Value>,
    /// A file beside the case's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) file: Option<PathBuf>,
}

impl Given {
    /// The bytes as they would be given.
    pub(super) fn of(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self {
                text: Some(text.to_owned()),
                ..Self::default()
            },
            Err(_) => Self {
                base64: Some(to_base64(bytes)),
                ..Self::default()
            },
        }
    }

    /// The bytes. `folder` is the case's.
    ///
    /// # Errors
    /// What is wrong, without the object.
    pub(super) fn bytes(&self, folder: &Path) -> Result<Bytes, String> {
        let Self {
            text,
            base64,
            json,
            file,
        } = self;
        let named = [
            text.is_some(),
            base64.is_some(),
            json.is_some(),
            file.is_some(),
        ];
        if named.into_iter().filter(|is_there| *is_there).count() > 1 {
            return Err("has more than one of text, base64, json and file; keep one".to_owned());
        }
        if let Some(text) = text {
            return Ok(Bytes::copy_from_slice(text.as_bytes()));
        }
        if let Some(base64) = base64 {
            let bytes = from_base64(base64).ok_or("has a base64 that is none; write it again")?;
            return Ok(Bytes::from(bytes));
        }
        if let Some(json) = json {
            return Ok(Bytes::from(json.to_string()));
        }
        let Some(file) = file else {
            return Ok(Bytes::new());
        };
        let path = folder.join(file);
        let bytes = whole_file(&path, MAX_FILE).map_err(|error| {
            format!(
                "names \"{}\", which cannot be read ({error})",
                path.display()
            )
        })?;
        Ok(Bytes::from(bytes))
    }
}

/// The bytes of a file, up to so many. A pipe or a device is none: it has no end, or keeps its
/// reader waiting for one who writes.
pub(super) fn whole_file(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let found = std::fs::metadata(path)?;
    if !found.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    if found.len() > most {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    std::fs::read(path)
}

/// Bytes as they are expected.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Wanted {
    /// UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<String>,
    /// Compared by value: neither spaces nor the order of names count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) json: Option<Value>,
    /// Any bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) base64: Option<String>,
    /// Of a long body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sha256: Option<String>,
    /// Bytes of a long body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) size: Option<u64>,
}

impl Wanted {
    /// The bytes as they would be expected; `mask` replaces what changes from run to run in a
    /// text.
    pub(super) fn of(bytes: &[u8], mask: impl Fn(&str) -> String) -> Self {
        if bytes.len() > MAX_WHOLE {
            return Self {
                sha256: Some(Digest::of(bytes).to_string()),
                size: Some(bytes.len() as u64),
                ..Self::default()
            };
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => Self {
                text: Some(mask(text)),
                ..Self::default()
            },
            Err(_) => Self {
                base64: Some(to_base64(bytes)),
                ..Self::default()
            },
        }
    }

    /// The same bytes by value, if they are wanted so and are JSON.
    pub(super) fn like(self, wanted: &Self) -> Self {
        let value = self
            .text
            .as_deref()
            .filter(|_| wanted.json.is_some())
            .and_then(|text| serde_json::from_str(text).ok());
        match value {
            Some(value) => Self {
                json: Some(value),
                ..Self::default()
            },
            None => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_as_they_are_given() {
        let check = |json: Value, bytes: Result<&[u8], &str>| {
            let given: Given = serde_json::from_value(json).expect("a body");
            let read = given.bytes(Path::new("/nowhere"));
            assert_eq!(read.as_deref().map_err(String::as_str), bytes);
        };
        check(serde_json::json!({}), Ok(b""));
        check(serde_json::json!({"text": "a"}), Ok(b"a"));
        check(serde_json::json!({"base64": "/w=="}), Ok(&[0xff]));
        check(
            serde_json::json!({"json": {"b": 1, "a": []}}),
            Ok(b"{\"b\":1,\"a\":[]}"),
        );
        check(
            serde_json::json!({"text": "a", "base64": "/w=="}),
            Err("has more than one of text, base64, json and file; keep one"),
        );
        check(
            serde_json::json!({"base64": "%"}),
            Err("has a base64 that is none; write it again"),
        );
    }

    #[test]
    fn a_body_is_a_regular_file_or_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).expect("a pipe");
        for file in ["pipe", ".", "/dev/zero"] {
            let given: Given =
                serde_json::from_value(serde_json::json!({ "file": file })).expect("a body");
            let fault = given.bytes(folder.path()).expect_err(file);
            assert!(fault.contains("it is no regular file"), "{fault}");
        }
        std::fs::write(folder.path().join("body"), "x").expect("written");
        let given: Given =
            serde_json::from_value(serde_json::json!({ "file": "body" })).expect("a body");
        assert_eq!(given.bytes(folder.path()).as_deref(), Ok(&b"x"[..]));
    }

    #[test]
    fn a_long_body_is_expected_by_its_digest() {
        let same = |text: &str| text.to_owned();
        let long = Wanted::of(&vec![b'x'; MAX_WHOLE + 1], same);
        assert_eq!((long.text, long.size), (None, Some(MAX_WHOLE as u64 + 1)));
        assert_eq!(long.sha256.map(|digest| digest.len()), Some(64));
        assert_eq!(Wanted::of(b"\xff", same).base64.as_deref(), Some("/w=="));
    }

    #[test]
    fn json_is_compared_by_value_where_it_is_wanted_so() {
        let wanted: Wanted =
            serde_json::from_value(serde_json::json!({"json": {"a": 1, "b": 2}})).expect("wanted");
        let got = Wanted::of(b"{ \"b\": 2, \"a\": 1 }", str::to_owned);
        assert_eq!(got.clone().like(&wanted), wanted);
        assert_eq!(got.clone().like(&Wanted::default()), got);
    }
}
