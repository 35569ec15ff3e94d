//! The console in a real browser: a walk from a bad plugin to a message that is handled after all,
//! and a look at every page at the width of a desk and of a phone. The walk itself is
//! `tests/browser/walk.mjs`; here are the host and what it drops.

use std::path::Path;
use std::process::Command;

use crate::auth::token;
use crate::host::{Home, Host};
use crate::wait::until;
use crate::work::sample;

/// Where Debian has the browser.
const CHROMIUM: &str = "/usr/bin/chromium";

/// Set where the walk must be done: then what is missing fails the test.
const NEEDED: &str = "ONCUE_NEED_BROWSER";

/// Why the walk cannot be done here.
fn missing(tests: &Path) -> Option<String> {
    if !Path::new(CHROMIUM).exists() {
        return Some(format!("{CHROMIUM} is not there; apt-get install chromium"));
    }
    let client = tests.join("node_modules/playwright-core");
    (!client.exists()).then(|| format!("npm ci --prefix {} was not run", tests.display()))
}

/// Runs a script of `tests/browser` against a host, if there is a browser.
fn walk(script: &str, host: &Host, environment: &[(&str, &Path)]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let tests = root.join("tests/browser");
    if let Some(why) = missing(&tests) {
        assert!(std::env::var_os(NEEDED).is_none(), "{why}");
        eprintln!("\n*** THE CONSOLE IS NOT TRIED: {why} ***\n");
        return;
    }
    let walk = Command::new("node")
        .arg(tests.join(script))
        .env("ONCUE_URL", &host.url)
        .env("ONCUE_SHOTS", root.join("target/screenshots"))
        .env("ONCUE_CHROMIUM", CHROMIUM)
        .envs(environment.iter().copied())
        .output()
        .expect("node runs");
    let said = String::from_utf8_lossy(&walk.stdout);
    let failed = String::from_utf8_lossy(&walk.stderr);
    assert!(walk.status.success(), "{said}\n{failed}\n{}", host.log());
    eprintln!("{said}");
}

#[test]
fn the_console_is_walked_in_a_browser() {
    let home = Home::new();
    let host = home.start();
    host.define_plain("settled");
    host.define_plain("echo.out");
    let (plugins, component) = (home.plugins(), |name| Path::new(sample(name).component));
    let environment = [
        ("ONCUE_PLUGINS", plugins.as_path()),
        ("ONCUE_FIRST", component("batch-settle")),
        ("ONCUE_FIXED", component("echo")),
    ];
    walk("walk.mjs", &host, &environment);
}

#[test]
fn the_console_is_entered_with_a_token_and_left() {
    let home = Home::new();
    let host = home.start();
    let admin = token(&home, &["ops", "--role", "admin"]);
    until("the token to be asked for", || {
        host.get("/v1/status").status == 401
    });
    walk("login.mjs", &host, &[("ONCUE_TOKEN", Path::new(&admin))]);
}
