//! What this program was built from. Whoever builds it may name the source's revision in
//! `ONCUE_REVISION`; packaging does.

use std::sync::LazyLock;

use oncue_manager::status::BuildView;
use oncue_runtime::WASMTIME_VERSION;

/// The version alone.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The source's revision, if the build was told.
const REVISION: Option<&str> = option_env!("ONCUE_REVISION");

/// Version, revision, target and engine, as `--version` prints them.
pub(crate) static LONG_VERSION: LazyLock<String> = LazyLock::new(|| {
    let build = view();
    let revision = build.revision.as_deref().unwrap_or("not named");
    format!(
        "{VERSION}\nrevision: {revision}\ntarget: {}\nwasmtime: {}",
        build.target, build.wasmtime
    )
});

/// The same for the host's status.
pub(crate) fn view() -> BuildView {
    BuildView {
        revision: REVISION
            .filter(|revision| !revision.is_empty())
            .map(str::to_owned),
        target: target(),
        wasmtime: WASMTIME_VERSION.to_owned(),
    }
}

fn target() -> String {
    use std::env::consts::{ARCH, OS};
    let environment = if cfg!(target_env = "musl") {
        "-musl"
    } else if cfg!(target_env = "gnu") {
        "-gnu"
    } else {
        ""
    };
    format!("{ARCH}-{OS}{environment}")
}
