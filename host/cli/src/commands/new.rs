//! `oncue new`: a handler project from a template. No host is asked, nothing is built or fetched.
//!
//! Never writes over anything: the folder must be missing or empty. Which languages there are is
//! for `templates` to say.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use oncue_core::definition::nearest;
use oncue_core::names::{PluginName, QueueName};
use serde_json::json;

use super::Context;
use crate::args::new::NewArgs;
use crate::exit::{Exit, Failure};
use crate::templates::{self, Content, File, SHARED, TEMPLATES, Template};
use crate::wit;

/// The file that says how a project is built.
const PROJECT: &str = "oncue-project.toml";

/// Names that a Rust crate cannot bear, of those that a plugin can: keywords, and crates that
/// come with the compiler or with the template.
const NOT_FOR_CRATES: &[&str] = &[
    "abstract",
    "alloc",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "const",
    "continue",
    "core",
    "crate",
    "do",
    "dyn",
    "else",
    "enum",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "let",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "override",
    "priv",
    "proc_macro",
    "pub",
    "ref",
    "return",
    "self",
    "static",
    "std",
    "struct",
    "super",
    "test",
    "trait",
    "true",
    "try",
    "type",
    "typeof",
    "unsafe",
    "unsized",
    "use",
    "virtual",
    "where",
    "while",
    "wit_bindgen",
    "yield",
];

/// Makes the project.
pub(super) fn run(context: &Context, args: &NewArgs) -> Result<(), Failure> {
    let folder = args
        .dir
        .clone()
        .unwrap_or_else(|| PathBuf::from(&args.name));
    let template = checked(args, &folder)?;
    let words = Words::new(&args.name, template);
    for file in SHARED.iter().chain(template.files) {
        write(&folder, file, &words)?;
    }
    if template.wit {
        let place = folder.join("wit");
        wit::write(&place)?;
    }
    let next = next(&folder, &words);
    if context.screen.is_json() {
        return context.screen.json(&json!({
            "name": args.name, "language": template.lang, "folder": folder, "next": next,
        }));
    }
    let made = format!(
        "made \"{}\", a handler in {}; next:",
        folder.display(),
        template.lang
    );
    context.screen.line(&made)?;
    for command in &next {
        context.screen.line(&format!("  {command}"))?;
    }
    Ok(())
}

/// The template, if all that was asked for can be done; else every fault at once.
fn checked(args: &NewArgs, folder: &Path) -> Result<&'static Template, Failure> {
    let mut faults = Vec::new();
    if let Some(fault) = name_fault(&args.name) {
        faults.push(fault);
    }
    let template = templates::find(&args.lang);
    if template.is_none() {
        faults.push(language_fault(&args.lang));
    }
    let mut exit = Exit::Usage;
    if let Some(fault) = folder_fault(folder) {
        if faults.is_empty() {
            exit = Exit::Refused;
        }
        faults.push(fault);
    }
    match template {
        Some(template) if faults.is_empty() => Ok(template),
        _ if faults.len() == 1 => Err(Failure::new(exit, faults.remove(0))),
        _ => {
            let message = format!("project \"{}\" is not made", args.name);
            Err(Failure::new(exit, message).with_faults(faults))
        }
    }
}

fn name_fault(name: &str) -> Option<String> {
    let plugin = match PluginName::new(name) {
        Ok(plugin) => plugin,
        Err(error) => return Some(error.to_string()),
    };
    if plugin.is_reserved() {
        return Some(format!(
            "plugin name \"{name}\" belongs to the manager; choose one that does not begin with \
             \"oncue.\" [invalid-name]"
        ));
    }
    // A file's name is an option to most programs then.
    if name.starts_with('-') || name.starts_with('.') {
        return Some(format!(
            "plugin name \"{name}\" begins with {:?}, and so would its files; begin with a letter \
             or a digit [invalid-name]",
            &name[..1]
        ));
    }
    // The handler's output queue.
    QueueName::new(&format!("{name}.out"))
        .err()
        .map(|error| error.to_string())
}

fn language_fault(lang: &str) -> String {
    let words: Vec<&str> = TEMPLATES.iter().map(|template| template.lang).collect();
    let all = TEMPLATES
        .iter()
        .flat_map(|template| template.also.iter().chain([&template.lang]))
        .copied();
    let meant = nearest(lang, all)
        .and_then(templates::find)
        .map(|template| format!("; did you mean \"{}\"?", template.lang));
    format!(
        "language \"{lang}\" has no template; use one of {}{}",
        words.join(", "),
        meant.unwrap_or_default()
    )
}

fn folder_fault(folder: &Path) -> Option<String> {
    let shown = folder.display();
    match std::fs::read_dir(folder).map(|mut entries| entries.next().is_some()) {
        Ok(false) => None,
        Ok(true) => Some(format!(
            "folder \"{shown}\" is not empty; name another with --dir"
        )),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => Some(format!("folder \"{shown}\" cannot be used: {error}")),
    }
}

/// What stands in the place of the placeholders.
struct Words {
    name: String,
    crate_name: String,
    build: String,
}

impl Words {
    fn new(name: &str, template: &Template) -> Self {
        let mut words = Self {
            name: name.to_owned(),
            crate_name: crate_name(name),
            build: String::new(),
        };
        let project = template.files.iter().find(|file| file.path == PROJECT);
        if let Some(Content::Text(text)) = project.map(|file| &file.content) {
            words.build = build_command(&words.fill(text));
        }
        words
    }

    fn fill(&self, text: &str) -> String {
        // A name cannot hold a brace, so nothing is filled twice.
        text.replace("{{build}}", &self.build)
            .replace("{{crate_name}}", &self.crate_name)
            .replace("{{name}}", &self.name)
    }
}

/// The build command of a project file.
fn build_command(project: &str) -> String {
    let table: toml::Table = project.parse().expect("a template's project file is TOML");
    let build = table.get("project").and_then(|table| table.get("build"));
    let build = build.and_then(toml::Value::as_str);
    build.expect("a template says how it is built").to_owned()
}

/// A name that a Rust crate can bear, and most languages' packages.
fn crate_name(name: &str) -> String {
    let plain: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect::<String>()
        .to_ascii_lowercase();
    let fits = plain.starts_with(|c: char| c.is_ascii_alphabetic());
    if fits && !NOT_FOR_CRATES.contains(&plain.as_str()) {
        plain
    } else {
        format!("handler_{plain}")
    }
}

fn write(folder: &Path, file: &File, words: &Words) -> Result<(), Failure> {
    let path = folder.join(words.fill(file.path));
    let failed = || format!("write \"{}\"", path.display());
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).with_context(failed)?;
    }
    let content = match file.content {
        Content::Text(text) => words.fill(text).into_bytes(),
        Content::Bytes(bytes) => bytes.to_vec(),
    };
    std::fs::write(&path, content).with_context(failed)?;
    Ok(())
}

/// The three commands to type next.
fn next(folder: &Path, words: &Words) -> Vec<String> {
    vec![
        format!("cd {}", quoted(&folder.display().to_string())),
        words.build.clone(),
        "oncue test .".to_owned(),
    ]
}

/// A text as a word of the shell.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(name: &str, lang: &str, dir: &Path) -> NewArgs {
        NewArgs {
            name: name.to_owned(),
            lang: lang.to_owned(),
            dir: Some(dir.to_owned()),
        }
    }

    fn made(name: &str, template: &Template, folder: &Path) {
        let words = Words::new(name, template);
        for file in SHARED.iter().chain(template.files) {
            write(folder, file, &words).expect("written");
        }
    }

    #[test]
    fn every_template_is_filled_in() {
        for template in TEMPLATES {
            let place = tempfile::tempdir().expect("a folder");
            made("my-2nd.handler", template, place.path());
            let mut folders = vec![place.path().to_owned()];
            while let Some(folder) = folders.pop() {
                for entry in std::fs::read_dir(folder).expect("a folder") {
                    let path = entry.expect("an entry").path();
                    let shown = path.display().to_string();
                    assert!(!shown.contains("{{"), "{shown}");
                    if path.is_dir() {
                        folders.push(path);
                        continue;
                    }
                    let bytes = std::fs::read(&path).expect("read");
                    let Ok(text) = String::from_utf8(bytes) else {
                        continue;
                    };
                    for word in ["{{name}}", "{{crate_name}}", "{{build}}"] {
                        assert!(!text.contains(word), "{shown}: {word}");
                    }
                    if shown.ends_with(".toml") {
                        text.parse::<toml::Table>().expect(&shown);
                    }
                    if shown.ends_with(".json") {
                        serde_json::from_str::<serde_json::Value>(&text).expect(&shown);
                    }
                }
            }
        }
    }

    #[test]
    fn a_project_file_names_what_is_there() {
        for template in TEMPLATES {
            let place = tempfile::tempdir().expect("a folder");
            made("greeter", template, place.path());
            let text = std::fs::read_to_string(place.path().join(PROJECT)).expect("read");
            let table: toml::Table = text.parse().expect("TOML");
            let project = &table["project"];
            assert_eq!(project["name"].as_str(), Some("greeter"));
            assert_eq!(project["component"].as_str(), Some("greeter.wasm"));
            let watched = project["watch"].as_array().expect("a list").iter();
            let named = watched.chain([&project["manifest"], &project["cases"]]);
            for path in named.map(|path| path.as_str().expect("a path")) {
                let there = place.path().join(path).exists() || (template.wit && path == "wit");
                assert!(there, "{}: no {path}", template.lang);
            }
        }
    }

    #[test]
    fn all_faults_are_named_at_once() {
        let place = tempfile::tempdir().expect("a folder");
        std::fs::write(place.path().join("mine"), "").expect("written");
        let failure = checked(&args("a/b", "rusty", place.path()), place.path());
        let failure = failure.err().expect("three faults");
        assert_eq!(failure.exit, Exit::Usage);
        assert_eq!(failure.faults.len(), 3, "{:#?}", failure.faults);
        assert!(failure.faults[0].contains("plugin name \"a/b\""));
        assert!(failure.faults[1].ends_with("did you mean \"rust\"?"));
        assert!(failure.faults[2].contains("is not empty"));
    }

    #[test]
    fn one_fault_is_one_sentence() {
        let place = tempfile::tempdir().expect("a folder");
        let check = |name: &str, lang: &str, folder: &Path, exit: Exit, part: &str| {
            let failure = checked(&args(name, lang, folder), folder)
                .err()
                .expect(part);
            assert_eq!(failure.exit, exit, "{failure}");
            assert!(failure.faults.is_empty(), "{:?}", failure.faults);
            assert!(failure.message.contains(part), "{failure}");
        };
        let empty = place.path();
        check(
            "oncue.mine",
            "rust",
            empty,
            Exit::Usage,
            "belongs to the manager",
        );
        check("-x", "rust", empty, Exit::Usage, "begins with");
        check("", "rust", empty, Exit::Usage, "is empty");
        check(&"x".repeat(126), "rust", empty, Exit::Usage, "130 bytes");
        check("x", "cobol", empty, Exit::Usage, "use one of rust");
        let file = place.path().join("file");
        std::fs::write(&file, "").expect("written");
        check("x", "rust", &file, Exit::Refused, "cannot be used");
        check(
            "x",
            "rust",
            empty,
            Exit::Refused,
            "is not empty; name another",
        );
    }

    #[test]
    fn a_crate_has_a_name_that_it_can_bear() {
        let check = |name: &str, wanted: &str| assert_eq!(crate_name(name), wanted, "{name}");
        check("route-orders", "route_orders");
        check("a.b", "a_b");
        check("Orders", "orders");
        check("2nd", "handler_2nd");
        check("_x", "handler__x");
        check("test", "handler_test");
        check("wit-bindgen", "handler_wit_bindgen");
    }

    #[test]
    fn a_folder_is_one_word_of_the_shell() {
        assert_eq!(quoted("a/b-c"), "a/b-c");
        assert_eq!(quoted("my folder"), "'my folder'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
