//! Signatures of plugins: with keys set, only files that one of them signed are used.
//!
//! The signature of `NAME.wasm` is `NAME.wasm.minisig` beside it, as minisign makes it; that of
//! `NAME.toml` is `NAME.toml.minisig`: a manifest says what a component may reach, so it counts as
//! much as the component. What is kept for a rollback is kept with its signature, and held to the
//! keys of now.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use minisign_verify::{PublicKey, Signature};
use oncue_core::code::Code;

/// Behind a file's name, that of its signature.
const SUFFIX: &str = ".minisig";

/// Longest signature, in bytes.
const MAX_SIGNATURE: u64 = 8 << 10;

/// Longest file of keys, in bytes.
const MAX_KEYS_FILE: u64 = 64 << 10;

/// Most keys.
const MAX_KEYS: usize = 100;

/// The keys that plugins must be signed with; without any every plugin is taken.
#[derive(Clone, Default)]
pub struct PluginKeys(Arc<[PublicKey]>);

impl std::fmt::Debug for PluginKeys {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "PluginKeys({})", self.0.len())
    }
}

impl PluginKeys {
    /// Reads public keys: minisign's, in base64 between commas, or a file with a key in each line.
    /// Lines that begin with `untrusted comment:` or `#` are passed over.
    ///
    /// # Errors
    /// What is no key, or a file that cannot be read.
    pub fn parse(setting: &str) -> Result<Self, String> {
        let text = if Path::new(setting).is_file() {
            let read = fs::File::open(setting).and_then(|file| {
                let mut text = String::new();
                io::Read::read_to_string(&mut io::Read::take(file, MAX_KEYS_FILE), &mut text)?;
                Ok(text)
            });
            read.map_err(|error| format!("file \"{setting}\" cannot be read: {error}"))?
        } else {
            setting.replace(',', "\n")
        };
        let lines = text.lines().map(str::trim);
        let keys = lines.filter(|line| {
            !line.is_empty() && !line.starts_with('#') && !line.starts_with("untrusted comment:")
        });
        let read = keys.map(|key| {
            PublicKey::from_base64(key)
                .map_err(|_error| format!("\"{key}\" is neither a file nor minisign's public key"))
        });
        let keys = read.collect::<Result<Vec<_>, _>>()?;
        match keys.len() {
            0 => Err(format!("\"{setting}\" has no key")),
            1..=MAX_KEYS => Ok(Self(keys.into())),
            count => Err(format!("{count} keys are given; use at most {MAX_KEYS}")),
        }
    }

    /// Whether every plugin is taken.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Holds a file to the signature beside it; answers with the signature, none without keys.
    ///
    /// # Errors
    /// What is wrong, as it follows after the file's name.
    pub(crate) fn check(&self, path: &Path, bytes: &[u8]) -> Result<Option<String>, String> {
        if self.is_empty() {
            return Ok(None);
        }
        let beside = beside(path);
        let name = beside.file_name().unwrap_or_default().to_string_lossy();
        let signature = match read(&beside) {
            Ok(signature) => signature,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(format!(
                    "is not signed: plugin-keys is set and \"{name}\" is not there; sign it with \
                     minisign [{}]",
                    Code::SignatureMissing
                ));
            }
            Err(error) => {
                let code = Code::SignatureMissing;
                return Err(format!("has a signature \"{name}\" that {error} [{code}]"));
            }
        };
        if self.have_signed(bytes, &signature) {
            return Ok(Some(signature));
        }
        Err(format!(
            "is not signed by a key of plugin-keys: \"{name}\" is of another file or another key; \
             sign it again [{}]",
            Code::SignatureWrong
        ))
    }

    /// Whether one of the keys has made this signature of these bytes.
    pub(crate) fn have_signed(&self, bytes: &[u8], signature: &str) -> bool {
        let Ok(signature) = Signature::decode(signature) else {
            return false;
        };
        let mut keys = self.0.iter();
        keys.any(|key| key.verify(bytes, &signature, false).is_ok())
    }
}

/// Where the signature of a file is.
pub(crate) fn beside(path: &Path) -> PathBuf {
    let mut beside = path.as_os_str().to_owned();
    beside.push(SUFFIX);
    beside.into()
}

fn read(path: &Path) -> io::Result<String> {
    // Opening a pipe would wait for whoever writes to it, and every other plugin with it.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("is no file"));
    }
    let mut text = String::new();
    let file = fs::File::open(path)?;
    io::Read::read_to_string(&mut io::Read::take(file, MAX_SIGNATURE), &mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn pair() -> minisign::KeyPair {
        minisign::KeyPair::generate_unencrypted_keypair().expect("a pair of keys")
    }

    fn sign(pair: &minisign::KeyPair, bytes: &[u8]) -> String {
        let signed = minisign::sign(None, &pair.sk, Cursor::new(bytes), None, None);
        signed.expect("a signature").into_string()
    }

    #[test]
    fn a_file_is_held_to_its_signature_by_the_keys() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("orders.wasm");
        let (ours, other) = (pair(), pair());
        let keys = PluginKeys::parse(&ours.pk.to_base64()).expect("a key");
        let check = |bytes: &[u8], part: &str| {
            let fact = keys.check(&path, bytes).expect_err("refused");
            assert!(fact.contains(part), "{fact}");
            assert!(fact.contains("\"orders.wasm.minisig\""), "{fact}");
        };
        check(b"code", "[signature-missing]");
        let write = |text: &str| fs::write(beside(&path), text).expect("written");
        write(&sign(&other, b"code"));
        check(b"code", "[signature-wrong]");
        write("nonsense");
        check(b"code", "[signature-wrong]");
        write(&sign(&ours, b"code"));
        assert!(keys.check(&path, b"code").is_ok_and(|it| it.is_some()));
        check(b"other code", "[signature-wrong]");
        assert_eq!(PluginKeys::default().check(&path, b"other code"), Ok(None));
    }

    #[test]
    fn a_signature_that_is_no_file_is_not_waited_for() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("orders.wasm");
        let keys = PluginKeys::parse(&pair().pk.to_base64()).expect("a key");
        let refused = || keys.check(&path, b"code").expect_err("refused");
        fs::create_dir(beside(&path)).expect("a directory");
        assert!(refused().contains("is no file"), "{}", refused());
        fs::remove_dir(beside(&path)).expect("removed");
        let made = std::process::Command::new("mkfifo")
            .arg(beside(&path))
            .status();
        assert!(made.expect("mkfifo runs").success());
        let (told, wait) = std::sync::mpsc::sync_channel(1);
        std::thread::spawn(move || told.send(keys.check(&path, b"code")));
        let answer = wait.recv_timeout(std::time::Duration::from_secs(60));
        let fact = answer.expect("an answer").expect_err("refused");
        assert!(fact.contains("is no file"), "{fact}");
    }

    #[test]
    fn keys_are_read_from_a_list_or_a_file() {
        let (one, two) = (pair().pk, pair().pk);
        let list = format!("{}, {}", one.to_base64(), two.to_base64());
        assert_eq!(PluginKeys::parse(&list).expect("keys").0.len(), 2);
        let folder = tempfile::tempdir().expect("a directory");
        let file = folder.path().join("keys.pub");
        let text = format!(
            "# ours\nuntrusted comment: minisign\n{}\n\n{}\n",
            one.to_base64(),
            two.to_base64()
        );
        fs::write(&file, text).expect("written");
        let read = PluginKeys::parse(file.to_str().expect("a text"));
        assert_eq!(read.expect("keys").0.len(), 2);
        let fault = PluginKeys::parse("keys.pub").expect_err("no key");
        assert!(fault.contains("neither a file nor"), "{fault}");
        assert!(PluginKeys::parse(",").is_err());
    }
}
