//! Tokens are kept by their hashes, in a file that nobody else can write.

use std::os::unix::fs::PermissionsExt as _;

use super::*;

fn new(name: &str, role: Role) -> NewToken {
    NewToken {
        identity: Identity {
            name: name.to_owned(),
            role,
            grants: Grants {
                put: vec![Pattern::new("orders.*").expect("a pattern")],
                ..Grants::default()
            },
        },
        created: 1,
        expires: Some(2),
    }
}

#[test]
fn a_token_comes_back_by_its_hash_and_is_not_in_the_file() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = Tokens::path(folder.path());
    assert!(Tokens::read(&path).expect("no file").is_none());
    let token = create(&path, new("ci", Role::Application)).expect("created");
    assert!(
        token.starts_with(PREFIX) && token.len() == PREFIX.len() + 43,
        "{token}"
    );
    let text = std::fs::read_to_string(&path).expect("the file");
    assert!(!text.contains(&token[PREFIX.len()..]), "{text}");
    let mode = std::fs::metadata(&path)
        .expect("the file")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let tokens = Tokens::read(&path).expect("readable").expect("a file");
    let found = tokens.find(&hash_of(&token)).expect("the token");
    assert_eq!(*found.identity, new("ci", Role::Application).identity);
    assert_eq!((found.created, found.expires), (1, Some(2)));
    assert!(tokens.find(&hash_of("oncue_other")).is_none());
}

#[test]
fn names_are_taken_once_and_revoked_by_name() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = Tokens::path(folder.path());
    let first = create(&path, new("a", Role::Admin)).expect("created");
    create(&path, new("b", Role::Observer)).expect("created");
    let again = create(&path, new("a", Role::Admin)).expect_err("taken");
    assert!(
        again
            .to_string()
            .starts_with("token \"a\" is there already")
    );
    assert_eq!(revoke(&path, "a").expect("revoked"), 1);
    assert!(revoke(&path, "a").is_err());
    let tokens = Tokens::read(&path).expect("readable").expect("a file");
    assert!(tokens.find(&hash_of(&first)).is_none());
    assert_eq!(revoke(&path, "b").expect("revoked"), 0);
    let tokens = Tokens::read(&path)
        .expect("readable")
        .expect("still a file");
    assert!(tokens.all().is_empty());
}

#[test]
fn what_the_tool_did_not_write_is_refused() {
    let check = |text: &str, part: &str| {
        let fault = Tokens::parse(text).expect_err(text);
        assert!(fault.contains(part), "{fault}, wanted {part}");
    };
    let hash = format!("sha256:{}", "0".repeat(64));
    let token = |name: &str, more: &str| {
        format!("[[token]]\nname = \"{name}\"\nhash = \"{hash}\"\ncreated = 1\n{more}\n")
    };
    check("token = 1", "token");
    check(&token("a", "role = \"chief\""), "chief");
    check(&token("a b", "role = \"admin\""), "token \"a b\"");
    check(&token("local", "role = \"admin\""), "token \"local\"");
    check(&token("a", "role = \"admin\"\ncolour = 1"), "colour");
    let grants = "role = \"admin\"\n[token.grants]\nput = [\"a/b\"]";
    check(&token("a", grants), "\"grants.put\"");
    let twice = token("a", "role = \"admin\"").repeat(2);
    check(&twice, "twice");
    let short = token("a", "role = \"admin\"").replace("sha256:00", "sha256:");
    check(&short, "64 hexadecimal digits");
}

#[test]
fn a_file_that_others_can_write_is_refused() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = Tokens::path(folder.path());
    create(&path, new("a", Role::Admin)).expect("created");
    let open = std::fs::Permissions::from_mode(0o622);
    std::fs::set_permissions(&path, open).expect("changed");
    let error = Tokens::read(&path).expect_err("refused").to_string();
    assert!(
        error.contains("can be written by others (mode 622)"),
        "{error}"
    );
}
