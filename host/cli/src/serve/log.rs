//! The log: on stderr, as text for people or JSON for programs, filtered by the setting `log`.

use std::io::{self, IsTerminal};

use oncue_core::code::Code;
use tracing_subscriber::EnvFilter;

use crate::config::Config;
use crate::exit::Failure;

/// What a guest could make warn as often as it likes: it is told itself what went wrong. The
/// setting may say otherwise.
const QUIET: &str = "wasmtime_wasi_http=error";

/// Starts the log of this process; first of all it says which variables are misspelt.
///
/// # Errors
/// Usage, when the filter cannot be read.
pub(crate) fn start(config: &Config) -> Result<(), Failure> {
    let written = config.text("log");
    let filter = EnvFilter::try_new(format!("{QUIET},{written}")).map_err(|error| {
        let message = format!(
            "setting \"log\" is {written:?}, which is no filter ({error}); use a level such as \
             info, or TARGET=LEVEL between commas"
        );
        Failure::coded(Code::InvalidConfiguration, message)
    })?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr);
    let started = if config.text("log-format") == "json" {
        builder.json().try_init()
    } else {
        let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        builder
            .with_ansi(io::stderr().is_terminal() && !no_colour)
            .try_init()
    };
    started.map_err(|error| anyhow::anyhow!("start the log: {error}"))?;
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for sentence in crate::config::unknown_variables(names) {
        tracing::warn!("{sentence}");
    }
    Ok(())
}
