//! The help of every command, held against files: what a user reads changes on purpose only.
//! `ONCUE_BLESS=1` writes what comes now as what is expected from now on.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use clap::CommandFactory;

use super::Cli;

/// Columns of the help in the files.
const WIDTH: usize = 100;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/help")
}

/// Every command with its long help, by the name of its file.
fn pages() -> BTreeMap<String, String> {
    fn walk(command: &clap::Command, name: &str, pages: &mut BTreeMap<String, String>) {
        let mut shown = command.clone().term_width(WIDTH);
        let text = shown.render_long_help().to_string();
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        pages.insert(
            format!("{name}.txt"),
            format!("{}\n", lines.join("\n").trim_end()),
        );
        for inner in command.get_subcommands() {
            // The demo is there only with its feature; "help" is clap's own.
            if !["help", "demo"].contains(&inner.get_name()) {
                walk(inner, &format!("{name}-{}", inner.get_name()), pages);
            }
        }
    }
    let mut command = Cli::command().term_width(WIDTH);
    if command.find_subcommand("demo").is_some() {
        command = command.mut_subcommand("demo", |demo| demo.hide(true));
    }
    command.build();
    let mut pages = BTreeMap::new();
    walk(&command, "oncue", &mut pages);
    pages
}

fn files() -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder()).into_iter().flatten().flatten();
    let read = |entry: fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        (name, fs::read_to_string(entry.path()).expect("a text"))
    };
    entries.map(read).collect()
}

#[test]
fn the_help_of_every_command_is_as_its_file_has_it() {
    let pages = pages();
    let files = files();
    if std::env::var_os("ONCUE_BLESS").is_some() {
        fs::create_dir_all(folder()).expect("the folder");
        for name in files.keys().filter(|name| !pages.contains_key(*name)) {
            fs::remove_file(folder().join(name)).expect("removed");
        }
        for (name, text) in &pages {
            fs::write(folder().join(name), text).expect("written");
        }
        return;
    }
    let mut wrong = Vec::new();
    for name in pages.keys().chain(files.keys()) {
        if pages.get(name) != files.get(name) && !wrong.contains(&name) {
            wrong.push(name);
        }
    }
    assert!(
        wrong.is_empty(),
        "the help of {wrong:?} differs from its file in {}; if it is meant, run this test with \
         ONCUE_BLESS=1 and look at the difference",
        folder().display()
    );
}

#[test]
fn every_command_says_what_it_does_and_no_line_is_too_long() {
    for (name, text) in pages() {
        let first = text.lines().next().unwrap_or_default();
        assert!(
            !first.is_empty() && !first.starts_with("Usage"),
            "{name}: {first}"
        );
        for line in text.lines() {
            assert!(line.chars().count() <= WIDTH, "{name}: {line}");
        }
    }
}
