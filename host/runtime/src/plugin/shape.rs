//! Which style a component has, found by what it exports and never by its name; and, when it has
//! none, the sentence for its author: what it exports, the nearest known world, what differs.
//!
//! It compiles nothing and runs nothing. The linker of the sandbox checks every type afterwards;
//! this check comes first because it is cheap and speaks plainly.

use oncue_core::code::Code;
use oncue_core::definition::{Style, nearest};

use super::bounds::MAX_LISTED;
use super::contract::{Function, difference, on_message, on_trigger};
use super::reading::{Export, ExportKind, HANDLE, Import, Interfaces};

/// The package of our interfaces and the version of it that is known here.
const PACKAGE: &str = "oncue:handler";
const VERSION: &str = "0.1";

/// A world that a handler may be built for.
struct World {
    name: &'static str,
    /// The interface it exports, without package and version.
    interface: &'static str,
    /// The interface in full.
    full: &'static str,
    style: Style,
    handle: fn() -> Function,
}

const WORLDS: [World; 2] = [
    World {
        name: "message-handler",
        interface: "on-message",
        full: "oncue:handler/on-message@0.1.0",
        style: Style::Message,
        handle: on_message,
    },
    World {
        name: "trigger-handler",
        interface: "on-trigger",
        full: "oncue:handler/on-trigger@0.1.0",
        style: Style::Trigger,
        handle: on_trigger,
    },
];

/// Exports of other hosts' handlers, and of commands: known, and not served yet.
const NOT_YET: &[(&str, Style)] = &[
    ("wasi:cli/run", Style::Command),
    ("wasmcloud:messaging/handler", Style::WasmcloudMessaging),
    ("wasi:messaging/incoming-handler", Style::WasiMessaging),
    ("handle-queue-message", Style::SpinSqs),
    ("wasi:http/incoming-handler", Style::WasiHttp),
];

/// Interfaces that are there for every component: package, interfaces (none listed: all), version.
const OFFERED: &[(&str, &[&str], &str)] = &[
    (
        PACKAGE,
        &["types", "queues", "unit-of-work", "budget"],
        VERSION,
    ),
    ("wasi:keyvalue", &["store", "atomics"], "0.2.0-draft2"),
    ("wasi:logging", &["logging"], "0.1.0-draft"),
    ("wasi:config", &["store"], "0.2.0-rc.1"),
    ("wasi:cli", &[], "0.2"),
    ("wasi:clocks", &[], "0.2"),
    ("wasi:filesystem", &[], "0.2"),
    ("wasi:io", &[], "0.2"),
    ("wasi:random", &[], "0.2"),
    ("wasi:sockets", &[], "0.2"),
];

/// How a component is called, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Judgement {
    pub(crate) style: Style,
    pub(crate) why: String,
}

/// Judges a component that is to be called in the style `wanted` ([`Style::Auto`]: as it can be).
///
/// # Errors
/// A whole sentence: an import that nobody offers, or no export that fits.
pub(crate) fn judge(
    interfaces: &Interfaces,
    wanted: Style,
    file: &str,
) -> Result<Judgement, String> {
    refuse_imports(&interfaces.imports, file)?;
    let fits: Vec<&World> = WORLDS
        .iter()
        .filter(|world| fits(interfaces, world))
        .collect();
    let chosen = match wanted {
        Style::Auto => fits.first().copied(),
        style => fits.iter().find(|world| world.style == style).copied(),
    };
    let Some(world) = chosen else {
        return Err(match fits.first() {
            Some(other) => other_style(wanted, other, file),
            None => wrong_world(interfaces, wanted, file),
        });
    };
    let why = if wanted == Style::Auto && fits.len() > 1 {
        format!(
            "exports both on-message and on-trigger; the first is used, set style in the manifest \
             for the other ({})",
            world.full
        )
    } else {
        format!("exports {}", world.full)
    };
    Ok(Judgement {
        style: world.style,
        why,
    })
}

/// Whether the component exports the world's interface with its function.
fn fits(interfaces: &Interfaces, world: &World) -> bool {
    interfaces.exports.iter().any(|export| {
        let name = Name::of(&export.name);
        name.is_ours()
            && name.interface == world.interface
            && matches!(&export.kind, ExportKind::Interface(Some(found))
                if difference(&(world.handle)(), found).is_none())
    })
}

/// A name like `wasi:cli/run@0.2.6`, in parts; a plain name is all interface.
struct Name<'a> {
    package: &'a str,
    interface: &'a str,
    version: &'a str,
}

impl<'a> Name<'a> {
    fn of(text: &'a str) -> Self {
        let (path, version) = text.split_once('@').unwrap_or((text, ""));
        let (package, interface) = path.split_once('/').unwrap_or(("", path));
        Self {
            package,
            interface,
            version,
        }
    }

    fn is_ours(&self) -> bool {
        self.package == PACKAGE && version_fits(self.version, VERSION)
    }
}

/// Whether a version is the offered one: the same for a draft (`0.2.0-draft`), any patch of it for
/// `0.2`.
fn version_fits(version: &str, offered: &str) -> bool {
    if offered.contains('-') {
        return version == offered;
    }
    let patch = version
        .strip_prefix(offered)
        .and_then(|rest| rest.strip_prefix('.'));
    patch.is_some_and(|patch| patch.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_offered(import: &Import) -> bool {
    let name = Name::of(&import.name);
    OFFERED.iter().any(|(package, interfaces, version)| {
        name.package == *package
            && (interfaces.is_empty() || interfaces.contains(&name.interface))
            && version_fits(name.version, version)
    })
}

fn refuse_imports(imports: &[Import], file: &str) -> Result<(), String> {
    let unknown: Vec<&Import> = imports
        .iter()
        .filter(|import| import.acts && !is_offered(import))
        .collect();
    let Some(first) = unknown.first() else {
        return Ok(());
    };
    let names = list(unknown.iter().map(|import| import.name.as_str()));
    let cure = import_cure(&Name::of(&first.name));
    let code = Code::PluginRefused;
    Err(format!(
        "\"{file}\" imports {names}, which this host does not offer; {cure} [{code}]"
    ))
}

fn import_cure(name: &Name<'_>) -> String {
    match name.package {
        PACKAGE => format!("build it against {PACKAGE}@{VERSION}"),
        "wasi:http" => {
            "HTTP is not offered; build it without (componentize-js: -d http -d fetch-event)"
                .to_owned()
        }
        package if OFFERED.iter().any(|(offered, ..)| *offered == package) => {
            let versions = OFFERED.iter().filter(|(offered, ..)| *offered == package);
            let versions = versions.map(|(_, interfaces, version)| {
                if interfaces.is_empty() {
                    (*version).to_owned()
                } else {
                    format!("{version} ({})", interfaces.join(", "))
                }
            });
            format!(
                "it offers {package} {}",
                versions.collect::<Vec<_>>().join(" and ")
            )
        }
        _ => "remove the import, or compose the component with one that exports it".to_owned(),
    }
}

/// Names in a sentence; past a number of them, how many more there are.
pub(crate) fn list<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let count = names.len();
    if count == 0 {
        return "nothing".to_owned();
    }
    let shown: Vec<&str> = names.take(MAX_LISTED).collect();
    let mut text = shown.join(", ");
    if count > shown.len() {
        text.push_str(&format!(" and {} more", count - shown.len()));
    }
    text
}

fn other_style(wanted: Style, fitting: &World, file: &str) -> String {
    let World { full, name, .. } = fitting;
    let wanted = word(wanted);
    let code = Code::WrongWorld;
    format!(
        "\"{file}\" exports {full}, which is the world {name}, and its manifest asks for style \
         \"{wanted}\"; remove style from the manifest, or export what it asks for [{code}]"
    )
}

/// The style's word in a manifest.
pub(crate) fn word(style: Style) -> String {
    let attributes = oncue_core::definition::ProcessAttributes {
        style,
        ..oncue_core::definition::ProcessAttributes::default()
    };
    let entries = attributes.entries();
    let raw = entries
        .into_iter()
        .find(|(name, _)| *name == "style")
        .map(|(_, raw)| raw);
    raw.map(|raw| raw.to_string()).unwrap_or_default()
}

/// The sentence for a component that fits no world.
fn wrong_world(interfaces: &Interfaces, wanted: Style, file: &str) -> String {
    let exports = list(interfaces.exports.iter().map(|export| export.name.as_str()));
    let (world, differs) = nearest_world(interfaces, wanted);
    let World { name, full, .. } = world;
    let code = Code::WrongWorld;
    format!(
        "\"{file}\" exports {exports}; the nearest world is {name}, which exports {full}: \
         {differs} [{code}]"
    )
}

/// The world that was probably meant, and what differs from it with what to do.
fn nearest_world(interfaces: &Interfaces, wanted: Style) -> (&'static World, String) {
    let exports = &interfaces.exports;
    // An export of the right interface, our package or not.
    for world in &WORLDS {
        let same = exports
            .iter()
            .find(|it| Name::of(&it.name).interface == world.interface);
        if let Some(export) = same {
            return (world, same_interface(export, world));
        }
    }
    for (known, style) in NOT_YET {
        let is_it = |export: &&Export| {
            export
                .name
                .split('@')
                .next()
                .is_some_and(|name| name == *known)
        };
        if let Some(export) = exports.iter().find(is_it) {
            let name = &export.name;
            let text = format!(
                "{name} makes it a handler of style {}, which is not supported yet; export one of \
                 ours beside it",
                word(*style)
            );
            return (default_world(wanted), text);
        }
    }
    // An interface, or a function that stands alone, with nearly the right name.
    for export in exports {
        let interface = Name::of(&export.name).interface;
        let near = nearest(interface, WORLDS.iter().map(|world| world.interface));
        if let Some(world) = WORLDS.iter().find(|world| Some(world.interface) == near) {
            return (
                world,
                format!("it has {} in its place; rename it", export.name),
            );
        }
    }
    let lacks = if exports.is_empty() {
        "it has no exports at all (a library, or stripped); build it for that world"
    } else {
        "none of its exports is a handler; build it for that world"
    };
    (default_world(wanted), lacks.to_owned())
}

fn default_world(wanted: Style) -> &'static World {
    WORLDS
        .iter()
        .find(|world| world.style == wanted)
        .unwrap_or(&WORLDS[0])
}

/// What is wrong with an export of the right last name.
fn same_interface(export: &Export, world: &World) -> String {
    let name = Name::of(&export.name);
    let build = format!("build it against {PACKAGE}@{VERSION}");
    if name.package.is_empty() {
        return format!(
            "it has {} by itself, outside of that interface; {build}",
            export.name
        );
    }
    if name.package != PACKAGE {
        return format!(
            "its package is {} instead of {PACKAGE}; {build}",
            name.package
        );
    }
    if !name.is_ours() {
        let version = if name.version.is_empty() {
            "none"
        } else {
            name.version
        };
        return format!("its version is {version}, and this host knows {VERSION}; {build}");
    }
    match &export.kind {
        ExportKind::Interface(Some(found)) => {
            let differs = difference(&(world.handle)(), found)
                .unwrap_or_else(|| "is refused by the sandbox".to_owned());
            format!("its function {HANDLE} {differs}; {build}")
        }
        _ => format!("it lacks the function {HANDLE}; {build}"),
    }
}

#[cfg(test)]
#[path = "shape_tests.rs"]
pub(crate) mod tests;
