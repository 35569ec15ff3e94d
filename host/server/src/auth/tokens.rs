//! `tokens.toml`: who may ask, by the hash of a token. No token stands in it.
//!
//! A token is `oncue_` and 32 bytes of the system's randomness, so one round of SHA-256 is enough:
//! there is nothing to guess. The file is written whole and renamed into place, mode 0600, under a
//! lock; a host reads it again when it changes.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use oncue_core::definition::Pattern;
use oncue_core::names::PluginName;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::identity::{Grants, Identity, LOCAL, Role};

/// The file's name within the data directory.
pub const FILE: &str = "tokens.toml";

/// Before every token, so that it is known for what it is where it should not be.
pub const PREFIX: &str = "oncue_";

/// Random bytes of a token.
const TOKEN_BYTES: usize = 32;

/// Most tokens of a host.
pub const MAX_TOKENS: usize = 1_000;

/// Most patterns of one list of grants.
const MAX_PATTERNS: usize = 1_000;

/// Longest file, in bytes.
const MAX_FILE: u64 = 8 << 20;

/// Permission bits with which others could write the file.
const WRITABLE_BY_OTHERS: u32 = 0o022;

const HEAD: &str = "# Who may ask this host; written by \"oncue token\". The tokens themselves are \
                    not here, only\n# their hashes. While this file is there, every request needs \
                    a token.\n";

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokensError {
    /// It cannot be read or written.
    #[error("tokens file \"{path}\" cannot be {what}: {source}")]
    Io {
        /// Which file.
        path: PathBuf,
        /// `read` or `written`.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
    /// Others may write it.
    #[error("tokens file \"{0}\" can be written by others (mode {1:o}); run chmod 600 on it")]
    Writable(PathBuf, u32),
    /// It is not what `oncue token` writes.
    #[error("tokens file \"{0}\" has a fault: {1}")]
    Malformed(PathBuf, String),
    /// The change is not possible.
    #[error("token \"{0}\" {1}")]
    Refused(String, &'static str),
}

/// The hash of a token.
pub(super) type Hash = [u8; 32];

/// The hash under which a token is kept.
pub(super) fn hash_of(token: &str) -> Hash {
    Sha256::digest(token.as_bytes()).into()
}

/// One token as it stands in the file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Written {
    name: String,
    role: Role,
    hash: String,
    /// Milliseconds since the Unix epoch.
    created: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires: Option<u64>,
    #[serde(default, skip_serializing_if = "WrittenGrants::is_empty")]
    grants: WrittenGrants,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct WrittenGrants {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    put: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    get: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    browse: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    define: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    operate: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    bind: Vec<String>,
}

impl WrittenGrants {
    fn is_empty(&self) -> bool {
        let lists = [
            &self.put,
            &self.get,
            &self.browse,
            &self.define,
            &self.operate,
            &self.bind,
        ];
        lists.into_iter().all(Vec::is_empty)
    }

    fn read(&self) -> Result<Grants, String> {
        Ok(Grants {
            put: patterns("put", &self.put)?,
            get: patterns("get", &self.get)?,
            browse: patterns("browse", &self.browse)?,
            define: patterns("define", &self.define)?,
            operate: patterns("operate", &self.operate)?,
            bind: patterns("bind", &self.bind)?,
        })
    }
}

impl From<&Grants> for WrittenGrants {
    fn from(grants: &Grants) -> Self {
        let texts = |patterns: &[Pattern]| {
            let texts = patterns.iter().map(|pattern| pattern.as_str().to_owned());
            texts.collect()
        };
        Self {
            put: texts(&grants.put),
            get: texts(&grants.get),
            browse: texts(&grants.browse),
            define: texts(&grants.define),
            operate: texts(&grants.operate),
            bind: texts(&grants.bind),
        }
    }
}

fn patterns(right: &str, texts: &[String]) -> Result<Vec<Pattern>, String> {
    if texts.len() > MAX_PATTERNS {
        let count = texts.len();
        return Err(format!(
            "\"grants.{right}\" has {count} patterns of {MAX_PATTERNS}"
        ));
    }
    let read = texts.iter().map(|text| Pattern::new(text));
    read.collect::<Result<_, _>>()
        .map_err(|fact| format!("\"grants.{right}\" {fact}"))
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenFile {
    #[serde(default, rename = "token")]
    tokens: Vec<Written>,
}

/// One token, without what could be used.
#[derive(Clone, Debug)]
pub struct Token {
    /// Who has it.
    pub identity: Arc<Identity>,
    /// When it was made, in milliseconds since the Unix epoch.
    pub created: u64,
    /// When it ends, in milliseconds since the Unix epoch; never if `None`.
    pub expires: Option<u64>,
    hash: Hash,
}

/// All tokens of a host.
#[derive(Clone, Debug, Default)]
pub struct Tokens {
    all: Vec<Token>,
    by_hash: HashMap<Hash, usize>,
}

impl Tokens {
    /// The file of a data directory.
    #[must_use]
    pub fn path(data: &Path) -> PathBuf {
        data.join(FILE)
    }

    /// Reads the file; `None` when there is none.
    ///
    /// # Errors
    /// It cannot be read, others may write it, or it has a fault.
    pub fn read(path: &Path) -> Result<Option<Self>, TokensError> {
        let failed = |source| TokensError::Io {
            path: path.to_owned(),
            what: "read",
            source,
        };
        let file = match std::fs::File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(failed)?,
        };
        let mode = file.metadata().map_err(failed)?.mode() & 0o777;
        if mode & WRITABLE_BY_OTHERS != 0 {
            return Err(TokensError::Writable(path.to_owned(), mode));
        }
        let mut text = String::new();
        file.take(MAX_FILE)
            .read_to_string(&mut text)
            .map_err(failed)?;
        let read = Self::parse(&text);
        read.map(Some)
            .map_err(|fault| TokensError::Malformed(path.to_owned(), fault))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let file: WrittenFile =
            toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
        if file.tokens.len() > MAX_TOKENS {
            return Err(format!(
                "it has {} tokens of {MAX_TOKENS}",
                file.tokens.len()
            ));
        }
        let mut names = BTreeSet::new();
        let mut tokens = Self::default();
        for written in file.tokens {
            let name = written.name.clone();
            let token = read_token(written).map_err(|fact| format!("token \"{name}\": {fact}"))?;
            if !names.insert(name.clone()) {
                return Err(format!("token \"{name}\" is there twice"));
            }
            tokens.insert(token);
        }
        Ok(tokens)
    }

    fn insert(&mut self, token: Token) {
        self.by_hash.insert(token.hash, self.all.len());
        self.all.push(token);
    }

    /// All of them, in the order in which they were made.
    #[must_use]
    pub fn all(&self) -> &[Token] {
        &self.all
    }

    /// The one of that hash, also when it has ended.
    pub(super) fn find(&self, hash: &Hash) -> Option<&Token> {
        self.by_hash.get(hash).and_then(|at| self.all.get(*at))
    }

    fn write(&self) -> String {
        let tokens = self.all.iter().map(|token| Written {
            name: token.identity.name.clone(),
            role: token.identity.role,
            hash: written_hash(&token.hash),
            created: token.created,
            expires: token.expires,
            grants: WrittenGrants::from(&token.identity.grants),
        });
        let file = WrittenFile {
            tokens: tokens.collect(),
        };
        let body = toml::to_string(&file).expect("names, numbers and lists can be written");
        format!("{HEAD}{body}")
    }
}

fn written_hash(hash: &Hash) -> String {
    let mut text = String::from("sha256:");
    for byte in hash {
        write!(text, "{byte:02x}").expect("a String takes all");
    }
    text
}

fn read_hash(text: &str) -> Option<Hash> {
    let digits = text.strip_prefix("sha256:")?;
    if digits.len() != 64 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut hash = Hash::default();
    for (at, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(hash)
}

fn read_token(written: Written) -> Result<Token, String> {
    check_name(&written.name)?;
    let hash = read_hash(&written.hash)
        .ok_or_else(|| "\"hash\" is not sha256: and 64 hexadecimal digits".to_owned())?;
    let identity = Identity {
        grants: written.grants.read()?,
        name: written.name,
        role: written.role,
    };
    Ok(Token {
        identity: Arc::new(identity),
        created: written.created,
        expires: written.expires,
        hash,
    })
}

/// A token's name is one that stands in logs, headers and put-by.
fn check_name(name: &str) -> Result<(), String> {
    PluginName::new(name)
        .map(|_name| ())
        .map_err(|error| error.to_string())?;
    if name == LOCAL {
        return Err("the name is that of whoever asks a host without tokens".to_owned());
    }
    Ok(())
}

/// What a new token is to be.
#[derive(Clone, Debug)]
pub struct NewToken {
    /// Who has it.
    pub identity: Identity,
    /// When it is made, in milliseconds since the Unix epoch.
    pub created: u64,
    /// When it ends, in milliseconds since the Unix epoch; never if `None`.
    pub expires: Option<u64>,
}

/// Adds a token to the file, and makes the file if it is not there. The answer is the token: it is
/// shown once and kept nowhere.
///
/// # Errors
/// The name is taken or malformed, there are too many, or the file cannot be read or written.
pub fn create(path: &Path, new: NewToken) -> Result<String, TokensError> {
    let name = new.identity.name.clone();
    check_name(&name).map_err(|fact| TokensError::Malformed(path.to_owned(), fact))?;
    let mut random = [0; TOKEN_BYTES];
    getrandom::fill(&mut random).expect("the operating system gives random bytes");
    let token = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(random));
    change(path, |tokens| {
        if tokens.all.iter().any(|it| it.identity.name == name) {
            let cure = "is there already; revoke it first, or choose another name";
            return Err(TokensError::Refused(name, cure));
        }
        if tokens.all.len() >= MAX_TOKENS {
            let cure = "is one too many: a host has at most 1000; revoke some";
            return Err(TokensError::Refused(name, cure));
        }
        tokens.insert(Token {
            identity: Arc::new(new.identity),
            created: new.created,
            expires: new.expires,
            hash: hash_of(&token),
        });
        Ok(())
    })?;
    Ok(token)
}

/// Takes a token out of the file; answers how many are left. The file stays, also when it is empty:
/// a host that had tokens does not open itself to everyone.
///
/// # Errors
/// There is no such token, or the file cannot be read or written.
pub fn revoke(path: &Path, name: &str) -> Result<usize, TokensError> {
    change(path, |tokens| {
        let kept = tokens.all.iter().filter(|it| it.identity.name != name);
        let kept: Vec<Token> = kept.cloned().collect();
        if kept.len() == tokens.all.len() {
            let cure = "is not there; see \"oncue token list\"";
            return Err(TokensError::Refused(name.to_owned(), cure));
        }
        *tokens = Tokens::default();
        kept.into_iter().for_each(|token| tokens.insert(token));
        Ok(tokens.all.len())
    })
}

/// Reads, changes and writes the file while nobody else does.
fn change<T>(
    path: &Path,
    edit: impl FnOnce(&mut Tokens) -> Result<T, TokensError>,
) -> Result<T, TokensError> {
    let failed = |source| TokensError::Io {
        path: path.to_owned(),
        what: "written",
        source,
    };
    let private = |path: &Path| {
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        options.open(path)
    };
    let lock = private(&path.with_extension("lock")).map_err(failed)?;
    lock.lock().map_err(failed)?;
    let mut tokens = Tokens::read(path)?.unwrap_or_default();
    let done = edit(&mut tokens)?;
    let new = path.with_extension("new");
    // What a write that did not end has left has another's bytes, and maybe another mode.
    match std::fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let mut file = private(&new).map_err(failed)?;
    let written = file
        .write_all(tokens.write().as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| std::fs::rename(&new, path));
    written.map_err(failed)?;
    Ok(done)
}

#[cfg(test)]
mod tests;
