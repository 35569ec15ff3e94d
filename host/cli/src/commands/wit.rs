//! `wit`: the packages that handlers are built against, written for an author with no registry.

use serde_json::json;

use super::Context;
use crate::args::authors::WitArgs;
use crate::exit::Failure;
use crate::wit;

/// Writes the packages.
pub(super) fn run(context: &Context, args: &WitArgs) -> Result<(), Failure> {
    let files = wit::write(&args.directory)?;
    let directory = args.directory.display().to_string();
    if context.screen.is_json() {
        return context
            .screen
            .json(&json!({ "directory": directory, "files": files }));
    }
    let count = files.len();
    context.screen.say(&format!(
        "{count} files of oncue:handler and what it imports are in \"{directory}\""
    ));
    Ok(())
}
