//! Reads the sources of the whole project for the checks in `tests/tidy.rs`, which run with `cargo
//! test`.
//!
//! Knows nothing of Rust's grammar: a check is a question that lines of text can answer.

use std::fs;
use std::path::{Path, PathBuf};

/// A text file of the project.
#[derive(Debug)]
pub struct Source {
    /// Path from the project's root, with forward slashes.
    pub path: String,
    /// What stands in it.
    pub text: String,
}

impl Source {
    /// True below `folder`.
    #[must_use]
    pub fn is_in(&self, folder: &str) -> bool {
        self.path.starts_with(folder)
    }
}

/// The project's root.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All files with one of these endings, build output and vendored interfaces left out.
#[must_use]
pub fn sources(endings: &[&str]) -> Vec<Source> {
    let root = root();
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let relative = path
                .strip_prefix(&root)
                .unwrap_or(&path)
                .to_string_lossy()
                .into_owned();
            // What a link leads to is found where it lies.
            if path.is_symlink() {
                continue;
            }
            if path.is_dir() {
                let skipped = [
                    "target",
                    ".git",
                    "wit/deps",
                    "wit/borrowed",
                    "data",
                    "node_modules",
                    ".venv",
                ];
                let name = entry.file_name();
                if !skipped
                    .iter()
                    .any(|skip| relative == *skip || name == *skip)
                {
                    folders.push(path);
                }
            } else if endings.iter().any(|ending| relative.ends_with(ending))
                && let Ok(text) = fs::read_to_string(&path)
            {
                found.push(Source {
                    path: relative.replace('\\', "/"),
                    text,
                });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Functions of a formatted source that have more than `limit` lines: name and length.
#[must_use]
pub fn long_functions(text: &str, limit: usize) -> Vec<(String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let trimmed = line.trim_start();
        let head = trimmed.split("fn ").next().unwrap_or_default();
        let words = [
            "pub",
            "async",
            "const",
            "unsafe",
            "pub(crate)",
            "pub(super)",
        ];
        let is_function =
            trimmed.contains("fn ") && head.split_whitespace().all(|word| words.contains(&word));
        if !is_function {
            continue;
        }
        // A declaration in a trait has no body.
        let opened = lines
            .iter()
            .skip(start)
            .find(|line| line.ends_with('{') || line.ends_with(';'));
        if opened.is_none_or(|line| line.ends_with(';')) {
            continue;
        }
        let indent = line.len() - trimmed.len();
        let closing = format!("{}}}", " ".repeat(indent));
        let body = lines.iter().skip(start).position(|line| *line == closing);
        let length = body.map_or(1, |length| length + 1);
        if length > limit {
            let after = trimmed.split("fn ").nth(1).unwrap_or_default();
            let name = after.split(['(', '<']).next().unwrap_or_default();
            found.push((name.to_owned(), length));
        }
    }
    found
}

/// Names of the test functions of a source.
#[must_use]
pub fn test_names(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_test = false;
    for line in text.lines().map(str::trim) {
        if line == "#[test]" || line.starts_with("#[tokio::test") {
            is_test = true;
        } else if let Some(rest) = line.strip_prefix("fn ").or(line.strip_prefix("async fn ")) {
            if is_test {
                names.push(rest.split(['(', '<']).next().unwrap_or_default().to_owned());
            }
            is_test = false;
        }
    }
    names
}

/// Numbers of `acceptance.txt`.
#[must_use]
pub fn acceptance_numbers(text: &str) -> Vec<u32> {
    let number = |word: &str| word.trim().trim_start_matches('a').parse::<u32>().ok();
    let mut numbers = Vec::new();
    for line in text
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty() && !l.starts_with('#'))
    {
        let (first, last) = line.split_once('-').unwrap_or((line, line));
        if let (Some(first), Some(last)) = (number(first), number(last)) {
            numbers.extend(first..=last);
        }
    }
    numbers
}
