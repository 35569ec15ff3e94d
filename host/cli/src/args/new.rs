//! Arguments of `new`.

use std::path::PathBuf;

use clap::Args;

use crate::templates::TEMPLATES;

/// After the long help of `new`: every language there is a template for.
pub(crate) fn after_help() -> String {
    let mut text = "Languages:\n".to_owned();
    for template in TEMPLATES {
        text.push_str(&format!("  {:<8}{}\n", template.lang, template.about));
    }
    text.push_str(EXAMPLES);
    text
}

const EXAMPLES: &str = "
Examples:
  oncue new greeter
  oncue new route-orders --lang go --dir handlers/route-orders";

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
