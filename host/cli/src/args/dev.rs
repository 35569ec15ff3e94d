//! Arguments of `dev`.

use std::path::PathBuf;

use clap::Args;

use crate::config::Flags;

pub(crate) const EXAMPLES: &str = "\
Examples:
  oncue dev
  oncue dev route-orders --listen 127.0.0.1:0 --fresh
  oncue dev --test                      its golden cases too, as \"oncue test .\" does

The folder has oncue-project.toml: the command that builds, the component it makes, the manifest, \
what is watched. The host is in this process, on this machine only, and keeps what it has in \
.oncue in the folder. Queues that the manifest lets the handler put to are made. Put a message \
from another terminal: oncue put QUEUE 'hello'.

A change builds again, one build at a time; a build that fails leaves the version before serving. \
Ctrl-C ends all of it.";

/// Failed tasks and refused plugins are news already.
const QUIET_LOG: &str = "warn,oncue_manager::main_loop=error,oncue_manager::plugins=error";

/// Arguments of `dev`.
#[derive(Args, Clone, Debug)]
pub(crate) struct DevArgs {
    /// The project's folder
    #[arg(value_name = "DIR", default_value = ".")]
    pub(crate) directory: PathBuf,
    /// Where the host listens; port 0 takes any that is free [default: 127.0.0.1:7373]
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// Begin with no messages, no state and no earlier version
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Run the project's golden cases after each build
    #[arg(long)]
    pub(crate) test: bool,
    /// What the host logs on stderr [default: warnings that are not shown anyway]
    #[arg(long, value_name = "FILTER")]
    log: Option<String>,
}

impl DevArgs {
    /// The settings that were given.
    pub(crate) fn flags(&self) -> Flags {
        let listen = self.listen.clone().map(|listen| ("listen", listen));
        listen
            .into_iter()
            .chain([(
                "log",
                self.log.clone().unwrap_or_else(|| QUIET_LOG.to_owned()),
            )])
            .collect()
    }
}
