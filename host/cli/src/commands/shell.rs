//! `completions` and `man`: made from the same definitions as the help.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use clap::CommandFactory;
use serde_json::json;

use super::Context;
use crate::args::Cli;
use crate::args::shell::{CompletionsArgs, ManArgs};
use crate::exit::Failure;

/// The program's name.
const NAME: &str = "oncue";

/// Prints completions.
pub(super) fn completions(context: &Context, args: &CompletionsArgs) -> Result<(), Failure> {
    let mut written = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), NAME, &mut written);
    context.screen.raw(&written)
}

/// Writes a page for each command.
pub(super) fn man(context: &Context, args: &ManArgs) -> Result<(), Failure> {
    let directory = &args.directory;
    fs::create_dir_all(directory)
        .with_context(|| format!("directory \"{}\" cannot be made", directory.display()))?;
    let mut command = Cli::command();
    command.build();
    let mut pages = Vec::new();
    write_pages(&command, NAME, directory, &mut pages)?;
    let screen = &context.screen;
    if screen.is_json() {
        return screen.json(&json!({ "pages": pages }));
    }
    screen.say(&format!("{} pages in {}", pages.len(), directory.display()));
    Ok(())
}

fn write_pages(
    command: &clap::Command,
    name: &str,
    directory: &Path,
    pages: &mut Vec<String>,
) -> Result<(), Failure> {
    let file = format!("{name}.1");
    let path = directory.join(&file);
    let mut page = Vec::new();
    let written = clap_mangen::Man::new(command.clone()).render(&mut page);
    written
        .and_then(|()| fs::write(&path, page))
        .with_context(|| format!("file \"{}\" cannot be written", path.display()))?;
    pages.push(file);
    for inner in command.get_subcommands() {
        if inner.get_name() != "help" && !inner.is_hide_set() {
            let name = format!("{name}-{}", inner.get_name());
            write_pages(inner, &name, directory, pages)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page() {
        let place = tempfile::tempdir().expect("a folder");
        let mut command = Cli::command();
        command.build();
        let mut pages = Vec::new();
        write_pages(&command, NAME, place.path(), &mut pages).expect("written");
        for wanted in [
            "oncue.1",
            "oncue-put.1",
            "oncue-dlq-redrive.1",
            "oncue-plugin-check.1",
        ] {
            assert!(
                pages.iter().any(|page| page == wanted),
                "{wanted}: {pages:?}"
            );
        }
        let page = fs::read_to_string(place.path().join("oncue-dlq-redrive.1")).expect("a page");
        assert!(page.contains("Cure the cause first"), "{page}");
        assert!(pages.len() > 50, "{}", pages.len());
    }

    #[test]
    fn completions_know_every_shell() {
        for shell in [
            clap_complete::Shell::Bash,
            clap_complete::Shell::Zsh,
            clap_complete::Shell::Fish,
        ] {
            let mut written = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), NAME, &mut written);
            let text = String::from_utf8(written).expect("text");
            assert!(text.contains("dlq") && text.contains("redrive"), "{shell}");
        }
    }
}
