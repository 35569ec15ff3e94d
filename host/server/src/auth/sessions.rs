//! Sessions of the console: a cookie that stands for a token, so that the browser keeps no token.
//!
//! In memory only: a restart ends them. A session is worth what its token is worth at each request:
//! revoked or expired, it is nothing.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use axum::http::{HeaderMap, HeaderValue, header};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::tokens::{Hash, hash_of};

/// Sessions at a time; the one that was idle for longest makes place.
const MAX_SESSIONS: usize = 1_000;

/// Longest life of a session, in milliseconds: 12 hours.
const MAX_LIFE: u64 = 12 * 3_600_000;

/// How long a session may be idle, in milliseconds: an hour.
const MAX_IDLE: u64 = 3_600_000;

/// Random bytes of a session's id, and of its token against forgery.
const RANDOM_BYTES: usize = 32;

/// The header in which a page proves that it is ours.
pub(crate) const CSRF: &str = "oncue-csrf";

/// The cookie's name. Over TLS it is one that no other path, domain or plain connection can set.
const fn cookie_name(is_secure: bool) -> &'static str {
    if is_secure {
        "__Host-oncue-session"
    } else {
        "oncue-session"
    }
}

struct Session {
    token: Hash,
    csrf: String,
    begun: u64,
    used: u64,
}

/// What a request's cookie stands for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct InSession {
    /// The hash of its id.
    pub(super) id: Hash,
    /// The hash of the token that began it.
    pub(super) token: Hash,
    /// What every change by this cookie must bear in [`CSRF`].
    pub(super) csrf: String,
}

/// All sessions of a host.
#[derive(Default)]
pub(super) struct Sessions(Mutex<HashMap<Hash, Session>>);

fn random() -> String {
    let mut bytes = [0; RANDOM_BYTES];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    URL_SAFE_NO_PAD.encode(bytes)
}

impl Sessions {
    fn with<T>(&self, look: impl FnOnce(&mut HashMap<Hash, Session>) -> T) -> T {
        // Nothing in here panics between two writes, so what is there is whole.
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Begins a session of a token; answers with the header that gives the browser its cookie.
    pub(super) fn begin(&self, token: Hash, now: u64, is_secure: bool) -> HeaderValue {
        let id = random();
        let session = Session {
            token,
            csrf: random(),
            begun: now,
            used: now,
        };
        self.with(|sessions| {
            sessions.retain(|_, session| is_alive(session, now));
            if sessions.len() >= MAX_SESSIONS {
                let idle = sessions.iter().min_by_key(|(_, session)| session.used);
                if let Some(id) = idle.map(|(id, _)| *id) {
                    sessions.remove(&id);
                }
            }
            // Whoever could read memory finds no cookie that works.
            sessions.insert(hash_of(&id), session);
        });
        set_cookie(&id, MAX_LIFE / 1_000, is_secure)
    }

    /// The session of a request's cookie, which is used by that.
    pub(super) fn of(&self, headers: &HeaderMap, now: u64, is_secure: bool) -> Option<InSession> {
        let id = hash_of(cookie(headers, cookie_name(is_secure))?);
        self.with(|sessions| {
            let session = sessions.get_mut(&id)?;
            if !is_alive(session, now) {
                sessions.remove(&id);
                return None;
            }
            session.used = now.max(session.used);
            Some(InSession {
                id,
                token: session.token,
                csrf: session.csrf.clone(),
            })
        })
    }

    /// When a session is over at the latest, if it is not; nothing is used by that.
    pub(super) fn ends(&self, id: &Hash, now: u64) -> Option<u64> {
        self.with(|sessions| {
            let session = sessions.get(id).filter(|session| is_alive(session, now))?;
            let idle = session.used.saturating_add(MAX_IDLE);
            Some(idle.min(session.begun.saturating_add(MAX_LIFE)))
        })
    }

    /// Ends the session of a request; answers with the header that takes the cookie back.
    pub(super) fn end(&self, headers: &HeaderMap, is_secure: bool) -> HeaderValue {
        if let Some(id) = cookie(headers, cookie_name(is_secure)) {
            let id = hash_of(id);
            self.with(|sessions| sessions.remove(&id));
        }
        set_cookie("", 0, is_secure)
    }
}

fn is_alive(session: &Session, now: u64) -> bool {
    now.saturating_sub(session.begun) < MAX_LIFE && now.saturating_sub(session.used) < MAX_IDLE
}

fn set_cookie(id: &str, seconds: u64, is_secure: bool) -> HeaderValue {
    let name = cookie_name(is_secure);
    let secure = if is_secure { "; Secure" } else { "" };
    let cookie =
        format!("{name}={id}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}");
    HeaderValue::try_from(cookie).expect("base64 and words are visible ASCII")
}

/// The value of a cookie, if the request bears it once.
fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let lines = headers.get_all(header::COOKIE).iter();
    let pairs = lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'));
    let mut found = pairs.filter_map(|pair| {
        let (its, value) = pair.split_once('=')?;
        (its.trim() == name).then(|| value.trim())
    });
    let value = found.next()?;
    // Two of one name: one of them was planted.
    found.next().is_none().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: Hash = [7; 32];

    fn headers(set: &HeaderValue) -> HeaderMap {
        let text = set.to_str().expect("ASCII");
        let pair = text.split(';').next().expect("a pair");
        let mut headers = HeaderMap::new();
        headers.insert(header::COOKIE, pair.parse().expect("a value"));
        headers
    }

    #[test]
    fn a_cookie_stands_for_its_token_until_it_ends() {
        let sessions = Sessions::default();
        let set = sessions.begin(TOKEN, 0, false);
        let headers = headers(&set);
        let first = sessions.of(&headers, 1, false).expect("a session");
        assert_eq!(first.token, TOKEN);
        assert_eq!(sessions.of(&headers, 2, false), Some(first));
        // Over TLS another cookie is looked for.
        assert_eq!(sessions.of(&headers, 2, true), None);
        sessions.end(&headers, false);
        assert_eq!(sessions.of(&headers, 3, false), None);
    }

    #[test]
    fn cookies_are_out_of_reach_of_scripts_and_other_sites() {
        let sessions = Sessions::default();
        let plain = sessions.begin(TOKEN, 0, false);
        let plain = plain.to_str().expect("ASCII");
        for part in [
            "oncue-session=",
            "; Path=/",
            "; HttpOnly",
            "; SameSite=Strict",
        ] {
            assert!(plain.contains(part), "{plain}");
        }
        assert!(!plain.contains("Secure"));
        let secure = sessions.begin(TOKEN, 0, true);
        let secure = secure.to_str().expect("ASCII");
        assert!(secure.starts_with("__Host-oncue-session=") && secure.ends_with("; Secure"));
    }

    #[test]
    fn idle_and_old_sessions_are_over() {
        let sessions = Sessions::default();
        let headers = headers(&sessions.begin(TOKEN, 0, false));
        let mut now = 0;
        while now + MAX_IDLE <= MAX_LIFE {
            assert!(sessions.of(&headers, now, false).is_some(), "{now}");
            now += MAX_IDLE - 1;
        }
        assert!(sessions.of(&headers, MAX_LIFE, false).is_none());
        let headers = self::headers(&sessions.begin(TOKEN, 0, false));
        assert!(sessions.of(&headers, MAX_IDLE, false).is_none());
        assert!(
            sessions.of(&headers, 1, false).is_none(),
            "it does not come back"
        );
    }

    #[test]
    fn the_number_is_bounded_and_the_idle_one_goes() {
        let sessions = Sessions::default();
        let first = headers(&sessions.begin(TOKEN, 0, false));
        let second = headers(&sessions.begin(TOKEN, 1, false));
        for at in 2..=MAX_SESSIONS as u64 {
            sessions.begin(TOKEN, at, false);
        }
        assert_eq!(sessions.with(|all| all.len()), MAX_SESSIONS);
        assert!(sessions.of(&first, 2, false).is_none());
        assert!(sessions.of(&second, 2, false).is_some());
    }

    #[test]
    fn a_cookie_that_stands_twice_is_none() {
        let mut headers = HeaderMap::new();
        let check = |headers: &HeaderMap, wanted| assert_eq!(cookie(headers, "a"), wanted);
        headers.insert(header::COOKIE, HeaderValue::from_static("b=1; a=2"));
        check(&headers, Some("2"));
        headers.append(header::COOKIE, HeaderValue::from_static("a=3"));
        check(&headers, None);
    }
}
