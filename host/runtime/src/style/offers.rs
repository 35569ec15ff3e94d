//! What components may import, by name and version. The linker has the final word on types.

use super::{Offer, STYLES};

/// The package of our interfaces and the version of it that is known here.
pub(crate) const PACKAGE: &str = "oncue:handler";
/// Any patch of it.
pub(crate) const VERSION: &str = "0.1";

const fn offer(
    package: &'static str,
    interfaces: &'static [&'static str],
    version: &'static str,
) -> Offer {
    Offer {
        package,
        interfaces,
        version,
    }
}

/// Nobody serves `watcher`.
const KEYVALUE: &[&str] = &["store", "atomics", "batch"];

/// Interfaces that are there for every component.
const COMMON: &[Offer] = &[
    offer(
        PACKAGE,
        &["types", "queues", "unit-of-work", "budget"],
        VERSION,
    ),
    offer("wasi:keyvalue", KEYVALUE, "0.2.0-draft2"),
    offer("wasi:keyvalue", KEYVALUE, "0.2.0-draft"),
    offer("wasi:logging", &["logging"], "0.1.0-draft"),
    offer("wasi:logging", &["logging"], ""),
    offer("wasi:config", &["store"], "0.2.0-rc.1"),
    offer("wasi:config", &["store", "runtime"], "0.2.0-draft"),
    offer("wasi:config", &["store"], "0.2.0-draft-2024-09-27"),
    offer("wasi:cli", &[], "0.2"),
    offer("wasi:clocks", &[], "0.2"),
    offer("wasi:filesystem", &[], "0.2"),
    offer("wasi:http", &["types", "outgoing-handler"], "0.2"),
    offer("wasi:io", &[], "0.2"),
    offer("wasi:random", &[], "0.2"),
    offer("wasi:sockets", &[], "0.2"),
];

/// All that may be imported: what is there for everybody, and what the styles bring.
pub(crate) fn offers() -> impl Iterator<Item = &'static Offer> {
    let brought = STYLES.iter().flat_map(|def| def.offers);
    COMMON.iter().chain(brought)
}

/// Whether an import of that full name is offered.
pub(crate) fn is_offered(import: &str) -> bool {
    let name = Name::of(import);
    offers().any(|offer| {
        name.package == offer.package
            && (offer.interfaces.is_empty() || offer.interfaces.contains(&name.interface))
            && version_fits(name.version, offer.version)
    })
}

/// A name like `wasi:cli/run@0.2.6`, in parts; a plain name is all interface.
pub(crate) struct Name<'a> {
    pub(crate) package: &'a str,
    pub(crate) interface: &'a str,
    pub(crate) version: &'a str,
}

impl<'a> Name<'a> {
    pub(crate) fn of(text: &'a str) -> Self {
        let (path, version) = text.split_once('@').unwrap_or((text, ""));
        let (package, interface) = path.split_once('/').unwrap_or(("", path));
        Self {
            package,
            interface,
            version,
        }
    }

    /// Without the version.
    pub(crate) fn path(text: &str) -> &str {
        text.split('@').next().unwrap_or(text)
    }
}

/// Whether a version is the offered one: the same for a draft (`0.2.0-draft`), any patch of it for
/// `0.2`, none for none.
pub(crate) fn version_fits(version: &str, offered: &str) -> bool {
    if offered.is_empty() || offered.contains('-') {
        return version == offered;
    }
    // A whole version is offered as it is; of a minor one any patch.
    if offered.matches('.').count() > 1 {
        return version == offered;
    }
    let patch = version
        .strip_prefix(offered)
        .and_then(|rest| rest.strip_prefix('.'));
    patch.is_some_and(|patch| !patch.is_empty() && patch.bytes().all(|byte| byte.is_ascii_digit()))
}
