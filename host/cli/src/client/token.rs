//! The token that a command sends: from the environment or a file, never from the command line,
//! which every user of the machine can read.

use std::path::Path;

use oncue_core::code::Code;
use ureq::http::HeaderValue;

use crate::config::TOKEN_VARIABLE;
use crate::exit::Failure;

/// Longest file with a token, in bytes.
const MAX_FILE: u64 = 4 << 10;

/// A token. It is never printed.
#[derive(Clone)]
pub(super) struct Token {
    header: HeaderValue,
    /// Where it comes from, for people.
    whence: String,
}

impl Token {
    /// The token of the environment, or else of the file, if one is named.
    ///
    /// # Errors
    /// Usage, when the file cannot be read or what is there is no token.
    pub(super) fn find(file: Option<&str>) -> Result<Option<Self>, Failure> {
        let named = std::env::var(TOKEN_VARIABLE).ok();
        match (named.filter(|token| !token.trim().is_empty()), file) {
            (Some(token), _) => Self::new(&token, TOKEN_VARIABLE).map(Some),
            (None, Some(file)) => Self::read(Path::new(file)).map(Some),
            (None, None) => Ok(None),
        }
    }

    fn read(path: &Path) -> Result<Self, Failure> {
        let shown = path.display();
        let text = std::fs::File::open(path).and_then(|file| {
            let mut text = String::new();
            std::io::Read::read_to_string(&mut std::io::Read::take(file, MAX_FILE), &mut text)?;
            Ok(text)
        });
        let text = text.map_err(|error| {
            let message = format!("token file \"{shown}\" cannot be read: {error}");
            Failure::coded(Code::InvalidConfiguration, message)
        })?;
        Self::new(&text, &format!("token file \"{shown}\""))
    }

    fn new(text: &str, whence: &str) -> Result<Self, Failure> {
        let token = text.trim();
        let is_token = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
        let header = is_token.then(|| HeaderValue::try_from(format!("Bearer {token}")).ok());
        let mut header = header.flatten().ok_or_else(|| {
            let message =
                format!("{whence} does not hold a token; make one with \"oncue token create\"");
            Failure::coded(Code::InvalidConfiguration, message)
        })?;
        header.set_sensitive(true);
        Ok(Self {
            header,
            whence: whence.to_owned(),
        })
    }

    /// The authorization header.
    pub(super) fn header(&self) -> HeaderValue {
        self.header.clone()
    }
}

/// A refusal for want of a token that the host knows, with what to do about it here. `refused` is
/// what the host says.
pub(super) fn wanted(base: &str, token: Option<&Token>, refused: &Failure) -> Failure {
    let message = match token {
        None => format!(
            "host \"{base}\" asks for a token, and none was given; put it into {TOKEN_VARIABLE}, \
             or name its file with --token-file (\"oncue token create\" makes one, on the host's \
             data directory)"
        ),
        Some(token) => {
            let mark = format!(" [{}]", Code::NotAuthorized);
            let fact = refused.message.trim_end_matches(&mark);
            let whence = &token.whence;
            format!(
                "host \"{base}\" refuses the token of {whence}: {fact}; put another there (\"oncue \
                 token list\" shows which there are, \"oncue token create\" makes one, both on the \
                 host's data directory)"
            )
        }
    };
    Failure::coded(Code::NotAuthorized, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_how_a_token_is_given() {
        let refused = Failure::coded(Code::NotAuthorized, "the token is not one of this host");
        let none = wanted("http://h", None, &refused);
        for part in ["ONCUE_TOKEN", "--token-file", "[not-authorized]"] {
            assert!(none.message.contains(part), "{none}");
        }
        let token = Token::new("oncue_abc", "token file \"t\"").expect("a token");
        let other = wanted("http://h", Some(&token), &refused);
        assert!(
            other
                .message
                .contains("the token of token file \"t\": the token is not one of this")
                && other.message.matches("[not-authorized]").count() == 1,
            "{other}"
        );
        assert_eq!(other.exit, crate::exit::Exit::Refused);
    }

    #[test]
    fn a_token_is_read_from_a_file_and_nothing_else_is() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("token");
        std::fs::write(&path, "oncue_abc\n").expect("written");
        let token = Token::read(&path).expect("a token");
        assert_eq!(token.header(), "Bearer oncue_abc");
        assert!(token.header().is_sensitive());
        for text in ["", "two words", "a\nb"] {
            std::fs::write(&path, text).expect("written");
            let failure = Token::read(&path).err().expect("no token");
            assert!(
                failure.message.contains("does not hold a token"),
                "{failure}"
            );
        }
        assert!(Token::read(&folder.path().join("none")).is_err());
    }
}
