//! The log: on stderr, as text for people or JSON for programs, filtered by the setting `log`,
//! which may change while the host runs.

use std::io::{self, IsTerminal};

use oncue_core::code::Code;
use oncue_server::Audit;
use parking_lot::Mutex;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::reload::{Error, Handle};

use crate::config::Config;
use crate::exit::Failure;

/// What a guest could make warn as often as it likes: it is told itself what went wrong. The
/// setting may say otherwise.
const QUIET: &str = "wasmtime_wasi_http=error";

/// Puts a filter in the place of the one that holds.
type Replace = Box<dyn Fn(EnvFilter) -> Result<(), Error> + Send + Sync>;

/// The log of this process.
pub(crate) struct Log {
    replace: Replace,
    /// The filter as it is written in the settings.
    written: Mutex<String>,
}

/// Starts the log of this process; first of all it says which variables are misspelt.
///
/// # Errors
/// Usage, when the filter cannot be read.
pub(crate) fn start(config: &Config) -> Result<Log, Failure> {
    let written = config.text("log");
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter(written)?)
        .with_writer(io::stderr);
    let (started, replace) = if config.text("log-format") == "json" {
        let builder = builder.json().with_filter_reloading();
        let replace = replacing(builder.reload_handle());
        (builder.try_init(), replace)
    } else {
        let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let builder = builder
            .with_ansi(io::stderr().is_terminal() && !no_colour)
            .with_filter_reloading();
        let replace = replacing(builder.reload_handle());
        (builder.try_init(), replace)
    };
    started.map_err(|error| anyhow::anyhow!("start the log: {error}"))?;
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for sentence in crate::config::unknown_variables(names) {
        tracing::warn!("{sentence}");
    }
    Ok(Log {
        replace,
        written: Mutex::new(written.to_owned()),
    })
}

fn replacing<S: 'static>(handle: Handle<EnvFilter, S>) -> Replace {
    Box::new(move |filter| handle.reload(filter))
}

fn filter(written: &str) -> Result<EnvFilter, Failure> {
    EnvFilter::try_new(format!("{QUIET},{written}")).map_err(|error| {
        let message = format!(
            "setting \"log\" is {written:?}, which is no filter ({error}); use a level such as \
             info, or TARGET=LEVEL between commas"
        );
        Failure::coded(Code::InvalidConfiguration, message)
    })
}

impl Log {
    /// Filters as the settings say now, and writes a change down. Nothing changes when they cannot
    /// be used.
    pub(super) fn follow(&self, settings: Result<Config, Failure>, audit: Option<&Audit>) {
        match settings.and_then(|config| self.refilter(config.text("log"))) {
            Ok(None) => tracing::info!("the settings name the same filter of the log"),
            Ok(Some(change)) => {
                tracing::warn!(change, "the log is filtered otherwise now");
                if let Some(audit) = audit {
                    audit.note_host("log-filter", &change);
                }
            }
            Err(failure) => {
                let (message, faults) = (failure.message, failure.faults.join("; "));
                let why = if faults.is_empty() { message } else { faults };
                tracing::error!(why, "the log is filtered as before");
            }
        }
    }

    /// Replaces the filter; answers with the change, if it is one.
    fn refilter(&self, now: &str) -> Result<Option<String>, Failure> {
        let mut written = self.written.lock();
        if *written == now {
            return Ok(None);
        }
        (self.replace)(filter(now)?).map_err(anyhow::Error::from)?;
        let before = std::mem::replace(&mut *written, now.to_owned());
        Ok(Some(format!("{before} -> {now}")))
    }
}
