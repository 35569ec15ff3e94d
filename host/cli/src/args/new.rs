//! Arguments of `new`.

use std::path::PathBuf;

use clap::Args;

/// After the long help of `new`. The languages are those of `templates`; a test compares.
pub(crate) const EXAMPLES: &str = "\
Languages:
  rust     Rust; needs cargo and the target wasm32-wasip2
  js       JavaScript, run by QuickJS; needs Node
  ts       TypeScript, run by QuickJS; needs Node
  python   Python, all of CPython in the component; needs Python

Examples:
  oncue new greeter
  oncue new route-orders --lang rust --dir handlers/route-orders";

/// Arguments of `new`.
#[derive(Args, Debug)]
pub(crate) struct NewArgs {
    /// The handler's name: of its files, its plugin and the queue it serves
    #[arg(value_name = "NAME", allow_hyphen_values = true)]
    pub(crate) name: String,
    /// The language it is written in; see below
    #[arg(long, value_name = "LANG", default_value = "rust")]
    pub(crate) lang: String,
    /// The project's folder, missing or empty [default: NAME, in this folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}
