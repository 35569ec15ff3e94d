//! Arguments of commands for those who write handlers. No host is asked by any of them.

use std::path::PathBuf;

use clap::Args;

/// After the help of `wit`.
pub(crate) const WIT: &str = "\
Example:
  oncue wit                     write them to ./wit
  oncue wit my-handler/wit

Files of the same name are replaced; all others in the folder stay.";

/// After the help of `plugin componentize`.
pub(crate) const COMPONENTIZE: &str = "\
Examples:
  oncue plugin componentize core.wasm -O orders.wasm
  oncue plugin componentize core.wasm --world message-handler
  oncue plugin componentize handler.wat --wit wit --world my-handler

A module that was built with bindings (C, Zig, Go, TinyGo with wit-bindgen) carries its world. \
One that does not (AssemblyScript, written by hand) is told it: --world, of this host's own \
packages or of those in --wit. A program (with a main function) needs neither.";

/// After the help of `plugin pack`.
pub(crate) const PACK: &str = "\
Examples:
  oncue plugin pack orders.wasm                         with orders.toml, into orders.wasm
  oncue plugin pack orders.wasm --manifest other.toml -O packed/orders.wasm

The plugin is one file then. A manifest that lies beside it in the plugins directory wins over the \
embedded one.";

/// Arguments of `wit`.
#[derive(Args, Debug)]
#[command(after_long_help = WIT)]
pub(crate) struct WitArgs {
    /// The folder to write them to
    #[arg(value_name = "DIR", default_value = "wit")]
    pub(crate) directory: PathBuf,
}

/// Arguments of `plugin componentize`.
#[derive(Args, Debug)]
#[command(after_long_help = COMPONENTIZE)]
pub(crate) struct ComponentizeArgs {
    /// The core module: .wasm, or its text, .wat
    #[arg(value_name = "CORE")]
    pub(crate) module: PathBuf,
    /// Where to write the component [default: CORE's name with .component.wasm]
    #[arg(short = 'O', long = "out", value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// The folder of WIT packages that has the world [default: this host's own]
    #[arg(long, value_name = "DIR", requires = "world")]
    pub(crate) wit: Option<PathBuf>,
    /// The world that the module is written for, such as message-handler
    #[arg(long, value_name = "WORLD")]
    pub(crate) world: Option<String>,
}

/// Arguments of `plugin pack`.
#[derive(Args, Debug)]
#[command(after_long_help = PACK)]
pub(crate) struct PackArgs {
    /// The component
    #[arg(value_name = "COMPONENT")]
    pub(crate) component: PathBuf,
    /// The manifest to embed [default: NAME.toml beside NAME.wasm]
    #[arg(long, value_name = "FILE")]
    pub(crate) manifest: Option<PathBuf>,
    /// Where to write the packed plugin [default: over the component]
    #[arg(short = 'O', long = "out", value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}
