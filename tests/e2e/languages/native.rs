//! The samples in compiled languages: built, judged by their golden cases without a host, then
//! dropped into one and judged again.

use std::path::Path;

use super::cases::{MOST_MEMORY, MOST_MEMORY_OF_GO, shared, suite, within};
use super::project::{build, has};
use crate::host::{Home, oncue};
use crate::work::sample;

/// Cases that a command with one output queue has a part in, at least.
const CASES_OF_COMMANDS: usize = 12;

/// Builds the sample of a language, and tries it both ways.
fn check(language: &str, tools: &[&str], most_memory: u64) {
    if !has(tools) {
        return;
    }
    let project = build(&format!("{language}/route-orders"));
    project.passes(&project.folder.join("cases"));
    let home = Home::new();
    project.drop_into(&home);
    let host = home.start();
    host.wait_for_plugin("route-orders", "ready");
    for case in within(&project.folder.join("cases")) {
        case.play(&host, most_memory);
    }
    host.wait_for_capacity();
}

#[test]
fn the_c_sample_routes_orders() {
    check("c", &["clang-19"], MOST_MEMORY);
}

#[test]
fn the_go_sample_routes_orders_as_far_as_a_command_can() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("sample-plugins/languages/go");
    let cases = within(&folder.join("route-orders/cases"));
    assert!(cases.len() >= CASES_OF_COMMANDS, "{} cases", cases.len());
    check("go", &["go"], MOST_MEMORY_OF_GO);
}

#[test]
fn the_rust_sample_routes_orders() {
    let home = Home::new();
    home.drop_sample(sample("route-orders"));
    let host = home.start();
    host.wait_for_plugin("route-orders", "ready");
    for case in shared("route-orders") {
        case.play(&host, MOST_MEMORY);
    }
    host.wait_for_capacity();
    // And without a host.
    let component = sample("route-orders").component;
    let cases = suite("route-orders");
    let cases = cases.to_str().expect("its path is UTF-8");
    let (code, shown, talk) = oncue(&host, &["test", component, "--case", cases]);
    assert_eq!(code, 0, "{talk}\n{shown}");
}
