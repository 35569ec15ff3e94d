//! Who is let in, by which token, for how long.

use oncue_core::definition::Pattern;

use super::identity::{Grants, Role};
use super::tokens::{NewToken, create, revoke};
use super::*;

fn new(name: &str, expires: Option<u64>) -> NewToken {
    NewToken {
        identity: Identity {
            name: name.to_owned(),
            role: Role::Application,
            grants: Grants {
                put: vec![Pattern::new("a").expect("a pattern")],
                ..Grants::default()
            },
        },
        created: 0,
        expires,
    }
}

fn ask(access: &Access, authorization: Option<&str>) -> Result<String, (Code, String)> {
    let mut headers = HeaderMap::new();
    if let Some(value) = authorization {
        headers.insert(header::AUTHORIZATION, value.parse().expect("a value"));
    }
    let caller = access.caller((&Method::GET, "/v1/queues"), &headers, None, false);
    caller
        .map(|caller| caller.identity.name.clone())
        .map_err(|problem| (problem.code(), problem.detail().to_owned()))
}

#[track_caller]
fn refused(access: &Access, authorization: Option<&str>, part: &str) {
    let (code, detail) = ask(access, authorization).expect_err("refused");
    assert_eq!(code, Code::NotAuthorized, "{detail}");
    assert!(detail.contains(part), "{detail}");
}

#[test]
fn tokens_are_asked_for_once_there_is_a_file() {
    let folder = tempfile::tempdir().expect("a directory");
    let data = folder.path();
    let load = |mode| Access::load(data, mode, None);
    assert!(!load(Mode::Auto).expect("loaded").is_enforced());
    let none = load(Mode::Required).expect_err("no token").to_string();
    assert!(none.contains("there is no token"), "{none}");
    create(&Tokens::path(data), new("a", None)).expect("created");
    assert!(load(Mode::Auto).expect("loaded").is_enforced());
    assert!(load(Mode::Required).expect("loaded").is_enforced());
    assert!(!load(Mode::Off).expect("loaded").is_enforced());
}

#[test]
fn a_token_is_known_and_what_is_none_is_refused() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = Tokens::path(folder.path());
    let good = create(&path, new("a", None)).expect("created");
    let old = create(&path, new("old", Some(1))).expect("created");
    let access = Access::load(folder.path(), Mode::Auto, None).expect("loaded");
    assert_eq!(
        ask(&access, Some(&format!("Bearer {good}"))),
        Ok("a".to_owned())
    );
    assert_eq!(
        ask(&access, Some(&format!("bearer  {good}"))),
        Ok("a".to_owned())
    );
    refused(&access, None, "has no token");
    refused(
        &access,
        Some(&format!("Bearer {old}")),
        "token \"old\" has expired",
    );
    refused(
        &access,
        Some(&format!("Bearer {good}x")),
        "is not one of this host",
    );
    refused(&access, Some("Bearer "), "is not \"Bearer\"");
    refused(&access, Some(&format!("Basic {good}")), "is not \"Bearer\"");
    refused(&access, Some(&good), "is not \"Bearer\"");
    let long = format!("Bearer {}", "x".repeat(MAX_TOKEN + 1));
    refused(&access, Some(&long), "is not \"Bearer\"");
}

#[test]
fn a_running_host_reads_tokens_again_and_never_opens_itself() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = Tokens::path(folder.path());
    let access = Access::load(folder.path(), Mode::Auto, None).expect("loaded");
    assert!(!access.reload(false));
    let first = create(&path, new("a", None)).expect("created");
    assert!(access.reload(false));
    assert!(access.is_enforced());
    let first = format!("Bearer {first}");
    assert_eq!(ask(&access, Some(&first)), Ok("a".to_owned()));
    assert!(!access.reload(false), "nothing has changed");
    let second = create(&path, new("b", None)).expect("created");
    revoke(&path, "a").expect("revoked");
    assert!(access.reload(false));
    refused(&access, Some(&first), "is not one of this host");
    let second = format!("Bearer {second}");
    assert_eq!(ask(&access, Some(&second)), Ok("b".to_owned()));
    // A file with a fault changes nothing.
    std::fs::write(&path, "[[token]]\nname = 1\n").expect("written");
    assert!(!access.reload(false));
    assert_eq!(ask(&access, Some(&second)), Ok("b".to_owned()));
    // And one that is gone leaves nobody.
    std::fs::remove_file(&path).expect("removed");
    assert!(access.reload(false));
    assert!(access.is_enforced());
    refused(&access, Some(&second), "is not one of this host");
}

#[test]
fn a_session_is_worth_what_its_token_is() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = Tokens::path(folder.path());
    let token = create(&path, new("a", None)).expect("created");
    let access = Access::load(folder.path(), Mode::Auto, None).expect("loaded");
    assert!(access.login("oncue_other", None, false).is_err());
    let (cookie, identity) = access.login(&token, None, false).expect("a session");
    assert_eq!(identity.name, "a");
    let cookie = cookie.to_str().expect("ASCII");
    assert!(!cookie.contains(&token));
    let mut headers = HeaderMap::new();
    let pair = cookie.split(';').next().expect("a pair");
    headers.insert(header::COOKIE, pair.parse().expect("a value"));
    let ask = |route, headers: &HeaderMap| access.caller(route, headers, None, false);
    let caller = ask((&Method::GET, "/v1/queues"), &headers).expect("named");
    let csrf = caller.csrf.expect("a session has one").0;
    // A change needs the header that only a page of the session has.
    let change = (&Method::POST, "/v1/pause");
    let forged = ask(change, &headers).expect_err("forged");
    assert_eq!(forged.code(), Code::ForeignOrigin);
    let mut own = headers.clone();
    own.insert(CSRF, csrf.parse().expect("a value"));
    assert!(ask(change, &own).is_ok());
    own.insert(CSRF, HeaderValue::from_static("guess"));
    assert!(ask(change, &own).is_err());
    // A form's field is looked at by its own route.
    assert!(ask((&Method::POST, "/queues/a/pause"), &headers).is_ok());
    revoke(&path, "a").expect("revoked");
    access.reload(false);
    assert!(ask((&Method::GET, "/v1/queues"), &headers).is_err());
}

#[test]
fn an_identity_has_a_rate_and_an_address_a_number_of_failures() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = Tokens::path(folder.path());
    let token = create(&path, new("a", None)).expect("created");
    let rate = NonZeroU32::new(3);
    let access = Access::load(folder.path(), Mode::Auto, rate).expect("loaded");
    let identity = new("a", None).identity;
    let passed = (0..100)
        .filter(|_| access.check_rate(&identity).is_ok())
        .count();
    assert!((3..50).contains(&passed), "{passed}");
    let problem = access.check_rate(&identity).expect_err("too fast");
    assert_eq!(problem.code(), Code::RateLimited);
    // The limit outlives a new reading.
    access.reload(true);
    assert!(access.check_rate(&identity).is_err());
    let address = Some(IpAddr::from([192, 0, 2, 1]));
    let fail = |value: &str| {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, value.parse().expect("a value"));
        let caller = access.caller((&Method::GET, "/v1/queues"), &headers, address, false);
        caller.map(|_| ()).map_err(|problem| problem.code())
    };
    let codes: Vec<_> = (0..100).map(|_| fail("Bearer no")).collect();
    assert_eq!(codes[0], Err(Code::NotAuthorized));
    assert_eq!(codes[99], Err(Code::RateLimited));
    // Whoever has a token is not shut out by a neighbour's failures.
    assert_eq!(fail(&format!("Bearer {token}")), Ok(()));
}
