//! The token that every form carries: a page of another origin cannot read it, so it cannot send
//! the form. It is drawn anew at each start of the host.
//!
//! Where a session asks, its own token ([`crate::auth::Csrf`]) stands in this one's place.

use std::fmt;

/// The name of the field.
pub(crate) const FIELD: &str = "csrf";

/// Random bytes of a token.
const BYTES: usize = 32;

/// The token of this process.
pub(crate) struct Csrf(String);

impl Default for Csrf {
    fn default() -> Self {
        let mut bytes = [0_u8; BYTES];
        // Without randomness there is no token, and then no form is taken.
        if let Err(error) = getrandom::fill(&mut bytes) {
            tracing::error!("no random bytes for the console's forms: {error}");
            return Self(String::new());
        }
        Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

impl fmt::Debug for Csrf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Csrf")
    }
}

impl Csrf {
    /// What a form must carry.
    pub(crate) fn token(&self) -> &str {
        &self.0
    }

    /// Whether a form carries it. Takes the same time wherever the first difference is.
    pub(crate) fn is(&self, given: &str) -> bool {
        let (own, given) = (self.0.as_bytes(), given.as_bytes());
        let difference = own.iter().zip(given).fold(0, |all, (a, b)| all | (a ^ b));
        !own.is_empty() && own.len() == given.len() && difference == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_itself_passes() {
        let csrf = Csrf::default();
        let token = csrf.token().to_owned();
        assert_eq!(token.len(), 2 * BYTES);
        assert!(csrf.is(&token));
        assert!(!csrf.is(""));
        assert!(!csrf.is(&token[1..]));
        assert!(!csrf.is(Csrf::default().token()), "each start has its own");
        assert!(!Csrf(String::new()).is(""), "none is not a token");
    }
}
