//! Loading the plugin of a run, as a host would: with every fault when it would be quarantined,
//! and a cache in the user's own folder, so that a second run does not compile again.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use oncue_core::admission::Demand;
use oncue_runtime::plugin::{Capacity, CompileCommand, Compiler, SingleFault, SingleRequest};
use oncue_runtime::{Sandbox, SandboxConfig};

use super::bench::Bench;
use crate::exit::{Exit, Failure};
use crate::render::Screen;
use crate::render::time::format_duration;

/// Instances of the sandbox: one task at a time, and what its end leaves for a moment.
const SLOTS: u32 = 16;

/// Where users' programs keep what can be made again.
const CACHE_HOME: &str = "XDG_CACHE_HOME";

/// The folder of compiled components there.
const CACHE: &str = "oncue/compiled";

/// Puts the plugin on a bench.
///
/// # Errors
/// Not found; refused with every fault; failed when it could not be tried.
pub(super) fn load(
    screen: &Screen,
    plugin: &Path,
    manifest: Option<&Path>,
) -> Result<Bench, Failure> {
    let sandbox = Sandbox::new(SandboxConfig {
        slots: Some(SLOTS),
        ..SandboxConfig::default()
    })
    .context("the sandbox cannot be made")?;
    let command = CompileCommand::this_binary().context("find this program, to compile with")?;
    let cache = cache_folder();
    let request = SingleRequest {
        plugin,
        manifest,
        cache: cache.as_deref(),
        // What a host has is the host's; here a plugin may ask for what can be enforced.
        capacity: Capacity {
            total: Demand {
                memory: u64::MAX,
                fuel: u64::MAX,
            },
            table_elements: sandbox.limits().max_table_elements,
        },
    };
    let mut compiling = |file: &str| screen.say(&format!("compiling \"{file}\" ..."));
    let compiler = Compiler::Child(command);
    let loaded = oncue_runtime::plugin::load_single(&request, &sandbox, compiler, &mut compiling);
    let loaded = loaded.map_err(|fault| match fault {
        SingleFault::Absent(text) => Failure::new(Exit::NotFound, text),
        SingleFault::Host(text) => Failure::new(Exit::Failed, text),
        SingleFault::Refused(faults) => {
            let message = format!("plugin \"{}\" is refused:", plugin.display());
            Failure::new(Exit::Refused, message).with_faults(faults)
        }
    })?;
    if let Some(time) = loaded.compile_time {
        let time = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        screen.say(&format!("compiled in {}", format_duration(time)));
    }
    for warning in &loaded.warnings {
        screen.say(&format!("warning: {warning}"));
    }
    Bench::new(loaded, sandbox)
}

/// The user's cache of compiled components; none where there is no home.
fn cache_folder() -> Option<PathBuf> {
    let absolute = |path: PathBuf| path.is_absolute().then_some(path);
    let named = std::env::var_os(CACHE_HOME).map(PathBuf::from);
    let home = || std::env::home_dir().map(|home| home.join(".cache"));
    let base = named
        .and_then(absolute)
        .or_else(|| home().and_then(absolute));
    Some(base?.join(CACHE))
}
