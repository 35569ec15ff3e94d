//! Secrets of plugins: from files or the environment, for handlers whose process is granted them by
//! name. Their values are in no definition, record or log.
//!
//! What a handler writes itself is searched for the values before it is kept: a value of at least
//! eight bytes, as it is. A handler that wants to give a secret away can: it may put it where it
//! may put at all.

use std::io::{self, Read as _};
use std::path::PathBuf;

/// Before a secret's name in the environment.
const VARIABLE: &str = "ONCUE_SECRET_";

/// Where systemd puts credentials.
const CREDENTIALS: &str = "CREDENTIALS_DIRECTORY";

/// Longest value, in bytes.
const MAX_VALUE: u64 = 64 << 10;

/// Shortest value that is looked for in what a handler writes, in bytes: a shorter one would be
/// found everywhere.
const MIN_HIDDEN: usize = 8;

/// Shortest end of a value, in bytes, that is taken away where the tail of a log begins in its
/// midst.
const MIN_END: usize = 4;

/// Where secrets are looked for: directories with a file for each, then the environment.
#[derive(Clone, Debug, Default)]
pub struct Secrets {
    directories: Vec<PathBuf>,
}

impl Secrets {
    /// In this directory first, then in that of systemd's credentials, then in variables such as
    /// `ONCUE_SECRET_DB_PASSWORD`.
    #[must_use]
    pub fn new(directory: Option<PathBuf>) -> Self {
        let credentials = std::env::var_os(CREDENTIALS).map(PathBuf::from);
        let directories = directory.into_iter().chain(credentials);
        Self {
            directories: directories.collect(),
        }
    }

    /// The values of names, as they are now.
    ///
    /// # Errors
    /// The first one that is not there or is no text; never its value.
    pub(crate) fn resolve(&self, names: &[String]) -> Result<Given, String> {
        let values = names
            .iter()
            .map(|name| Ok((name.clone(), self.find(name)?)));
        let mut values = values.collect::<Result<Vec<_>, String>>()?;
        // The longest first: a value may be part of another.
        values.sort_by_key(|(_, value)| std::cmp::Reverse(value.len()));
        Ok(Given(values))
    }

    fn find(&self, name: &str) -> Result<String, String> {
        for directory in &self.directories {
            let path = directory.join(name);
            let read = std::fs::File::open(&path).and_then(|file| {
                let mut value = String::new();
                file.take(MAX_VALUE).read_to_string(&mut value)?;
                Ok(value)
            });
            match read {
                Ok(value) => return usable(name, value),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    let path = path.display();
                    return Err(format!(
                        "secret \"{name}\" cannot be read from \"{path}\": {error} [start-failed]"
                    ));
                }
            }
        }
        let variable = variable(name);
        match std::env::var(format!("{VARIABLE}{variable}")) {
            Ok(value) => usable(name, value),
            Err(_) => Err(format!(
                "secret \"{name}\" is not there; put it into a file of that name in secrets-dir, \
                 or into the variable {VARIABLE}{variable} of the host [start-failed]"
            )),
        }
    }
}

/// The name of the variable in which a handler finds a secret: upper case, anything but letters
/// and digits as `_`.
pub(crate) fn variable(name: &str) -> String {
    let mapped = name.chars().map(|char| match char.to_ascii_uppercase() {
        char if char.is_ascii_alphanumeric() => char,
        _ => '_',
    });
    mapped.collect()
}

/// The value without the line's end that editors leave, if an environment can hold it.
fn usable(name: &str, mut value: String) -> Result<String, String> {
    if value.ends_with('\n') {
        value.pop();
        if value.ends_with('\r') {
            value.pop();
        }
    }
    let fact = if value.is_empty() {
        "is empty"
    } else if value.contains('\0') {
        "holds a NUL"
    } else {
        return Ok(value);
    };
    Err(format!("secret \"{name}\" {fact} [start-failed]"))
}

/// What one task was given: names and values, the longest value first.
#[derive(Default)]
pub(crate) struct Given(Vec<(String, String)>);

impl std::fmt::Debug for Given {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.0.iter().map(|(name, _)| name);
        formatter.debug_list().entries(names).finish()
    }
}

impl Given {
    /// The value of a name.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(its, _)| its == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Names and values.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.0.iter();
        all.map(|(name, value)| (name.as_str(), value.as_str()))
    }

    fn hidden(&self) -> impl Iterator<Item = (&str, &str)> {
        self.all().filter(|(_, value)| value.len() >= MIN_HIDDEN)
    }

    /// A text without the values in it.
    pub(crate) fn redact(&self, text: String) -> String {
        let mut text = text;
        for (name, value) in self.hidden() {
            if text.contains(value) {
                text = text.replace(value, &format!("[secret {name}]"));
            }
        }
        text
    }

    /// The same for the end of a text: it may begin in the midst of a value.
    pub(crate) fn redact_tail(&self, text: String) -> String {
        let text = self.redact(text);
        let ends = self.hidden().filter_map(|(_, value)| {
            let starts = value.char_indices().map(|(at, _)| at).skip(1);
            let ends = starts.map(|at| &value[at..]);
            ends.into_iter()
                .find(|end| end.len() >= MIN_END && text.starts_with(end))
                .map(str::len)
        });
        match ends.max() {
            Some(end) => text[end..].to_owned(),
            None => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(values: &[(&str, &str)]) -> Given {
        let mut all: Vec<_> = values
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        all.sort_by_key(|(_, value)| std::cmp::Reverse(value.len()));
        Given(all)
    }

    #[test]
    fn a_secret_is_read_from_its_file_without_the_lines_end() {
        let folder = tempfile::tempdir().expect("a directory");
        let secrets = Secrets {
            directories: vec![folder.path().join("none"), folder.path().to_owned()],
        };
        let write = |name: &str, bytes: &[u8]| {
            std::fs::write(folder.path().join(name), bytes).expect("written");
        };
        write("password", b"correct horse\r\n");
        write("binary", &[0xff, 0xfe]);
        write("empty", b"\n");
        let resolve = |name: &str| secrets.resolve(&[name.to_owned()]);
        let given = resolve("password").expect("there");
        assert_eq!(given.get("password"), Some("correct horse"));
        assert_eq!(given.get("other"), None);
        assert!(!format!("{given:?}").contains("horse"));
        let missing = resolve("db-key").expect_err("not there");
        assert!(
            missing.contains("secret \"db-key\" is not there"),
            "{missing}"
        );
        assert!(missing.contains("ONCUE_SECRET_DB_KEY"), "{missing}");
        assert!(resolve("binary").is_err() && resolve("empty").is_err());
        // The environment of this test has a variable for sure.
        assert_eq!(variable("db.pass-word"), "DB_PASS_WORD");
    }

    #[test]
    fn values_are_taken_out_of_texts() {
        let given = given(&[("a", "swordfish"), ("b", "swordfish-2"), ("short", "abc")]);
        let check = |text: &str, wanted: &str| assert_eq!(given.redact(text.to_owned()), wanted);
        check("the word is swordfish!", "the word is [secret a]!");
        check("swordfish-2swordfish", "[secret b][secret a]");
        check("abc", "abc");
        check("", "");
    }

    #[test]
    fn the_rest_of_a_value_at_the_beginning_of_a_tail_goes_too() {
        let given = given(&[("a", "swordfish")]);
        let check = |text: &str, wanted: &str| {
            assert_eq!(given.redact_tail(text.to_owned()), wanted);
        };
        check("ordfish and more", " and more");
        check("fish swordfish", " [secret a]");
        check("ish and more", "ish and more");
        check("and more", "and more");
    }
}
