//! Source checks: what review would otherwise have to look for each time.

use std::collections::BTreeSet;

use oncue_tidy::{Source, acceptance_numbers, long_functions, root, sources, test_names};

/// Columns of a line of Rust.
const COLUMNS: usize = 100;

/// Lines of a file.
const FILE_LINES: usize = 800;

/// Lines of a function.
const FUNCTION_LINES: usize = 70;

fn rust() -> Vec<Source> {
    sources(&[".rs"])
}

fn none(what: &str, found: Vec<String>) {
    assert!(found.is_empty(), "{what}:\n{}", found.join("\n"));
}

#[test]
fn lines_fit_a_hundred_columns() {
    let long = |source: &Source| -> Vec<String> {
        let lines = source.text.lines().enumerate();
        lines
            .filter(|(_, line)| line.chars().count() > COLUMNS && !line.contains("://"))
            .map(|(number, _)| format!("{}:{}", source.path, number + 1))
            .collect()
    };
    none(
        "lines past 100 columns",
        rust().iter().flat_map(long).collect(),
    );
}

#[test]
fn files_fit_eight_hundred_lines() {
    let long = rust()
        .into_iter()
        .filter(|source| source.text.lines().count() > FILE_LINES);
    none(
        "files that are really two",
        long.map(|source| source.path).collect(),
    );
}

#[test]
fn functions_fit_seventy_lines() {
    let mut found = Vec::new();
    let product = |source: &&Source| {
        let is_test = source.path.ends_with("tests.rs");
        source.is_in("host/") && source.path.contains("/src/") && !is_test
    };
    for source in rust().iter().filter(product) {
        for (name, lines) in long_functions(&source.text, FUNCTION_LINES) {
            found.push(format!("{}: {name} has {lines} lines", source.path));
        }
    }
    none("functions that are really two", found);
}

#[test]
fn only_the_runtime_names_wasmtime() {
    let others = rust().into_iter().filter(|source| {
        source.is_in("host/") && !source.is_in("host/runtime") && source.text.contains("wasmtime::")
    });
    none(
        "wasmtime outside host/runtime",
        others.map(|source| source.path).collect(),
    );
}

/// What each crate may depend on, of ours.
const DIRECTION: [(&str, &[&str]); 6] = [
    ("core", &[]),
    ("store", &["core"]),
    ("manager", &["core", "store"]),
    ("runtime", &["core", "manager", "store"]),
    ("server", &["core", "manager", "store"]),
    ("cli", &["core", "store", "manager", "runtime", "server"]),
];

#[test]
fn crates_depend_in_one_direction() {
    let mut found = Vec::new();
    for (name, allowed) in DIRECTION {
        let path = root().join(format!("host/{name}/Cargo.toml"));
        let text = std::fs::read_to_string(path).expect("a manifest");
        let dependencies = text.split("[dev-dependencies]").next().unwrap_or_default();
        for line in dependencies.lines() {
            let Some(rest) = line.strip_prefix("oncue-") else {
                continue;
            };
            let other = rest.split(['.', ' ', '=']).next().unwrap_or_default();
            if !allowed.contains(&other) {
                found.push(format!("{name} depends on {other}"));
            }
        }
    }
    none("against the direction", found);
}

#[test]
fn core_does_no_io_and_knows_no_time() {
    let banned = [
        "std::fs",
        "std::net",
        "std::time",
        "tokio::",
        "async fn",
        "std::sync::Mutex",
    ];
    let mut found = Vec::new();
    for source in rust().iter().filter(|source| source.is_in("host/core/src")) {
        for word in banned {
            if source.text.contains(word) {
                found.push(format!("{}: {word}", source.path));
            }
        }
    }
    none("core is pure", found);
}

#[test]
fn no_leftovers() {
    // Written in pieces so that this file does not find itself.
    let banned = ["todo", "unimplemented", "dbg"].map(|name| format!("{name}!("));
    let notes = ["TO", "FIX", "XX"].map(|start| {
        start.to_owned()
            + if start == "TO" {
                "DO"
            } else if start == "FIX" {
                "ME"
            } else {
                "X"
            }
    });
    let ignored = format!("#[{}", "ignore");
    let mut found = Vec::new();
    for source in rust() {
        let words = banned.iter().chain(&notes).chain(std::iter::once(&ignored));
        for word in words.filter(|word| source.text.contains(word.as_str())) {
            found.push(format!("{}: {word}", source.path));
        }
    }
    none("leftovers", found);
}

/// What speaks of the interfaces of other hosts, whose words are their own.
const OF_OTHER_HOSTS: &[&str] = &[
    "host/runtime/src/plugin/shape_messaging_tests.rs",
    "host/runtime/src/style/wasi_messaging",
    "sample-plugins/borrowed",
    "wit/styles/wasi-messaging.md",
    "wit/styles/wasmcloud-messaging.md",
];

#[test]
fn the_words_of_the_project_are_used() {
    let banned = ["broker", "brokers", "topic", "topics", "lambda", "jobs"];
    let mut found = Vec::new();
    for source in sources(&[".rs", ".md", ".wit"]) {
        let mut foreign = OF_OTHER_HOSTS.iter();
        if source.is_in("tests/tidy") || foreign.any(|folder| source.is_in(folder)) {
            continue;
        }
        let words: BTreeSet<&str> = source
            .text
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .collect();
        for word in banned.iter().filter(|word| words.contains(**word)) {
            found.push(format!("{}: {word}", source.path));
        }
    }
    none("words of other products", found);
}

#[test]
fn a_page_has_one_title() {
    let mut found = Vec::new();
    for source in sources(&[".md"]) {
        let mut fenced = false;
        let mut titles = 0;
        for line in source.text.lines() {
            fenced ^= line.starts_with("```");
            titles += usize::from(!fenced && line.starts_with("# "));
        }
        if titles != 1 {
            found.push(format!("{}: {titles} titles", source.path));
        }
    }
    none("pages with other than one title", found);
}

#[test]
fn every_acceptance_number_has_a_test() {
    let path = root().join("tests/acceptance.txt");
    let wanted = acceptance_numbers(&std::fs::read_to_string(path).expect("acceptance.txt"));
    assert!(wanted.len() > 40, "the list was read");
    let mut shown = BTreeSet::new();
    for source in rust() {
        for name in test_names(&source.text) {
            let digits = name
                .strip_prefix('a')
                .and_then(|rest| rest.split('_').next());
            shown.extend(digits.and_then(|digits| digits.parse::<u32>().ok()));
        }
    }
    let missing = wanted.iter().filter(|number| !shown.contains(number));
    none(
        "acceptance numbers without a test",
        missing.map(|n| format!("a{n}")).collect(),
    );
}

#[test]
fn every_threat_names_tests_that_are_there() {
    let path = root().join("host/THREATS.md");
    let page = std::fs::read_to_string(path).expect("THREATS.md");
    let known: BTreeSet<String> = rust()
        .iter()
        .flat_map(|source| test_names(&source.text))
        .collect();
    let rows = page
        .lines()
        .filter(|line| line.starts_with("| ") && *line != "| what | test |");
    let mut faults = Vec::new();
    let mut count = 0;
    for row in rows {
        let tests = row.rsplit('|').nth(1).unwrap_or_default();
        let names: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        if names.is_empty() {
            faults.push(format!("no test: {row}"));
        }
        count += names.len();
        let missing = names.iter().filter(|name| !known.contains(**name));
        faults.extend(missing.map(|name| format!("no such test: {name}")));
    }
    assert!(count > 50, "the page was read: {count} tests");
    none("threats", faults);
}

#[test]
fn every_lib_says_what_it_is() {
    let silent = rust().into_iter().filter(|source| {
        let first = source.text.lines().next().unwrap_or_default();
        let is_test = source.path.ends_with("tests.rs");
        source.is_in("host/") && !is_test && !first.starts_with("//!")
    });
    none(
        "files without a first comment",
        silent.map(|source| source.path).collect(),
    );
}

#[test]
fn tests_do_not_sleep() {
    let mut found = Vec::new();
    for source in rust() {
        let is_test = source.is_in("tests/e2e") || source.path.contains("/tests/");
        let sleeps = ["thread::sleep", "time::sleep"];
        if is_test
            && !source.is_in("tests/tidy")
            && sleeps.iter().any(|sleep| source.text.contains(sleep))
            && !source.path.ends_with("/wait.rs")
        {
            found.push(source.path);
        }
    }
    none(
        "tests wait on a condition with a bound (wait.rs), or move the manual clock",
        found,
    );
}

#[test]
fn the_readme_shows_its_two_commands() {
    let text = std::fs::read_to_string(root().join("README.md")).expect("README.md");
    for command in ["cargo demo", "cargo test"] {
        assert!(text.contains(command), "{command}");
    }
}

#[test]
fn the_checks_find_what_they_look_for() {
    let function = format!("fn long() {{\n{}}}\n", "    work();\n".repeat(80));
    assert_eq!(long_functions(&function, 70), [("long".to_owned(), 82)]);
    assert_eq!(
        test_names("#[test]\nfn a7_rule() {}\nfn helper() {}"),
        ["a7_rule"]
    );
    assert_eq!(acceptance_numbers("# all\na1-a3\na7\n"), [1, 2, 3, 7]);
}
