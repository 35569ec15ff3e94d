//! Which style a component has, found by what it exports and never by its name; and, when it has
//! none, the sentence for its author: what it exports, the nearest known world, what differs.
//!
//! It compiles nothing and runs nothing. The linker of the sandbox checks every type afterwards;
//! this check comes first because it is cheap and speaks plainly.

use oncue_core::code::Code;
use oncue_core::definition::{Style, nearest};

use super::bounds::MAX_LISTED;
use super::contract::difference;
use super::module::name_all;
use super::reading::{Export, ExportKind, Import, Interfaces};
use crate::style::offers::{Name, PACKAGE, VERSION, offers, version_fits};
use crate::style::{STYLES, StyleDef, Wanted, find, is_offered};

/// How a component is called, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Judgement {
    pub(crate) style: Style,
    pub(crate) why: String,
    /// What is accepted and perhaps not meant.
    pub(crate) warning: Option<String>,
}

/// Judges a component that is to be called in the style `wanted` ([`Style::Auto`]: as it can be).
///
/// # Errors
/// Everything at once, a whole sentence each: imports that nobody offers, no export that fits.
pub(crate) fn judge(
    interfaces: &Interfaces,
    wanted: Style,
    file: &str,
) -> Result<Judgement, String> {
    let unknown = refuse_imports(&interfaces.imports, file);
    let fits: Vec<(&StyleDef, &Wanted)> = STYLES
        .iter()
        .filter_map(|def| Some((*def, fitting(interfaces, def)?)))
        .collect();
    let chosen = match wanted {
        Style::Auto => fits.first().copied(),
        style => fits.iter().find(|(def, _)| def.style == style).copied(),
    };
    let Some((def, by)) = chosen else {
        let misfit = match fits.first() {
            Some(other) => other_style(wanted, *other, file),
            None => wrong_world(interfaces, wanted, file),
        };
        let faults: Vec<String> = unknown.into_iter().chain([misfit]).collect();
        return Err(faults.join("; also "));
    };
    if let Some(fault) = unknown {
        return Err(fault);
    }
    let is_chosen_of_several = wanted == Style::Auto && fits.len() > 1;
    Ok(Judgement {
        style: def.style,
        why: format!("exports {}", by.full()),
        warning: is_chosen_of_several.then(|| several(&fits, file)),
    })
}

/// That the first of several fitting styles is used, and how another is.
fn several(fits: &[(&StyleDef, &Wanted)], file: &str) -> String {
    let exports: Vec<String> = fits.iter().map(|(_, by)| by.full()).collect();
    let others: Vec<String> = fits
        .iter()
        .skip(1)
        .map(|(def, _)| format!("\"{}\"", def.style))
        .collect();
    format!(
        "\"{file}\" exports {}; the first is used, set style = {} in its manifest for another",
        exports.join(" and "),
        others.join(" or ")
    )
}

/// The export by which a component has the style.
fn fitting(interfaces: &Interfaces, def: &StyleDef) -> Option<&'static Wanted> {
    def.exports.iter().find(|wanted| {
        let mut exports = interfaces.exports.iter();
        exports.any(|export| fits(export, wanted))
    })
}

fn fits(export: &Export, wanted: &Wanted) -> bool {
    let version = Name::of(&export.name).version;
    if Name::path(&export.name) != wanted.name || !version_fits(version, wanted.version) {
        return false;
    }
    let function = match &export.kind {
        ExportKind::Interface(functions) => functions.get(wanted.function),
        ExportKind::Function(function) if wanted.function.is_empty() => function.as_ref(),
        _ => None,
    };
    let Some(function) = function else {
        return false;
    };
    wanted
        .contract
        .is_none_or(|contract| difference(&contract(), function).is_none())
}

/// The sentence for imports that nobody offers: all of them, and what to do about each package.
fn refuse_imports(imports: &[Import], file: &str) -> Option<String> {
    let unknown: Vec<&Import> = imports
        .iter()
        .filter(|import| import.acts && !is_offered(&import.name))
        .collect();
    if unknown.is_empty() {
        return None;
    }
    let names = name_all(unknown.iter().map(|import| import.name.clone()));
    let mut cures: Vec<String> = Vec::new();
    for import in &unknown {
        let cure = import_cure(&Name::of(&import.name));
        if !cures.contains(&cure) && cures.len() < MAX_LISTED {
            cures.push(cure);
        }
    }
    let (cures, code) = (cures.join(", and "), Code::PluginRefused);
    Some(format!(
        "\"{file}\" imports {names}, which this host does not offer; {cures} [{code}]"
    ))
}

fn import_cure(name: &Name<'_>) -> String {
    match name.package {
        PACKAGE => format!("build it against {PACKAGE}@{VERSION}"),
        package if offers().any(|offer| offer.package == package) => {
            let versions = offers().filter(|offer| offer.package == package);
            let versions = versions.map(|offer| {
                let version = match offer.version {
                    "" => "with no version",
                    version => version,
                };
                if offer.interfaces.is_empty() {
                    version.to_owned()
                } else {
                    format!("{version} ({})", offer.interfaces.join(", "))
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

fn other_style(wanted: Style, (def, by): (&StyleDef, &Wanted), file: &str) -> String {
    let code = Code::WrongWorld;
    format!(
        "\"{file}\" exports {}, which is the world {}, and its manifest asks for style \
         \"{wanted}\"; remove style from the manifest, or export what it asks for [{code}]",
        by.full(),
        def.world
    )
}

/// The sentence for a component that fits no world.
fn wrong_world(interfaces: &Interfaces, wanted: Style, file: &str) -> String {
    let exports = list(interfaces.exports.iter().map(|export| export.name.as_str()));
    let (def, by, differs) = nearest_world(interfaces, wanted);
    let code = Code::WrongWorld;
    format!(
        "\"{file}\" exports {exports}; the nearest world is {}, which exports {}: {differs} \
         [{code}]",
        def.world,
        by.full()
    )
}

/// Every export that makes a component a handler, in the order of the styles.
fn all_wanted() -> impl Iterator<Item = (&'static StyleDef, &'static Wanted)> {
    STYLES
        .iter()
        .flat_map(|def| def.exports.iter().map(|wanted| (*def, wanted)))
}

/// The world that was probably meant, and what differs from it with what to do.
fn nearest_world(
    interfaces: &Interfaces,
    wanted: Style,
) -> (&'static StyleDef, &'static Wanted, String) {
    let exports = &interfaces.exports;
    // An export of the right name: its version or its type differs.
    for (def, by) in all_wanted() {
        let same = exports.iter().find(|it| Name::path(&it.name) == by.name);
        if let Some(export) = same {
            return (def, by, same_interface(export, by));
        }
    }
    // One of the right interface and another package: of several, the one that is most alike.
    let same_name = all_wanted().flat_map(|(def, by)| {
        let interface = Name::of(by.name).interface;
        let same = exports
            .iter()
            .filter(move |it| Name::of(&it.name).interface == interface);
        same.map(move |export| (def, by, export))
    });
    // Of equals, the first in the order of the styles.
    let most = same_name.reduce(|first, other| {
        let is_more = likeness(other.2, other.1) > likeness(first.2, first.1);
        if is_more { other } else { first }
    });
    if let Some((def, by, export)) = most {
        return (def, by, same_interface(export, by));
    }
    // An interface, or a function that stands alone, with nearly the right name.
    for export in exports {
        let interface = Name::of(&export.name).interface;
        let near = nearest(
            interface,
            all_wanted().map(|(_, by)| Name::of(by.name).interface),
        );
        let meant = all_wanted().find(|(_, by)| Some(Name::of(by.name).interface) == near);
        if let Some((def, by)) = meant {
            let text = format!("it has {} in its place; rename it", export.name);
            return (def, by, text);
        }
    }
    let lacks = if exports.is_empty() {
        "it has no exports at all (a library, or stripped); build it for that world"
    } else {
        "none of its exports is a handler; build it for that world"
    };
    let def = find(wanted).unwrap_or(STYLES[0]);
    (def, &def.exports[0], lacks.to_owned())
}

/// How much an export of the right last name is like another: its function's type, then the name
/// that its package has behind the colon.
fn likeness(export: &Export, wanted: &Wanted) -> (bool, bool) {
    let function = match &export.kind {
        ExportKind::Interface(functions) => functions.get(wanted.function),
        ExportKind::Function(function) => function.as_ref(),
        ExportKind::Other => None,
    };
    let contract = wanted.contract.map(|contract| contract());
    let is_same_type = match (function, contract) {
        (Some(function), Some(contract)) => difference(&contract, function).is_none(),
        _ => false,
    };
    let behind = |name| {
        let package = Name::of(name).package;
        package.split_once(':').map(|(_, behind)| behind.to_owned())
    };
    (is_same_type, behind(&export.name) == behind(wanted.name))
}

/// What is wrong with an export of the right last name.
fn same_interface(export: &Export, wanted: &Wanted) -> String {
    let (name, ours) = (Name::of(&export.name), Name::of(wanted.name));
    let build = format!("build it against {}", against(wanted));
    if name.package.is_empty() && !ours.package.is_empty() {
        return format!(
            "it has {} by itself, outside of that interface; {build}",
            export.name
        );
    }
    if name.package != ours.package {
        return format!(
            "its package is {} instead of {}; {build}",
            name.package, ours.package
        );
    }
    if !version_fits(name.version, wanted.version) {
        let version = if name.version.is_empty() {
            "none"
        } else {
            name.version
        };
        let known: Vec<&str> = all_wanted()
            .filter(|(_, by)| by.name == wanted.name)
            .map(|(_, by)| by.version)
            .collect();
        return format!(
            "its version is {version}, and this host knows {}; {build}",
            known.join(" and ")
        );
    }
    let function = match &export.kind {
        ExportKind::Interface(functions) => functions.get(wanted.function),
        ExportKind::Function(function) => function.as_ref(),
        ExportKind::Other => None,
    };
    let shown = if wanted.function.is_empty() {
        wanted.name
    } else {
        wanted.function
    };
    match (function, wanted.contract) {
        (Some(found), Some(contract)) => {
            let differs = difference(&contract(), found)
                .unwrap_or_else(|| "is refused by the sandbox".to_owned());
            format!("its function {shown} {differs}; {build}")
        }
        (Some(_), None) => format!("its function {shown} is refused by the sandbox; {build}"),
        (None, _) => format!("it lacks the function {shown}; {build}"),
    }
}

/// The package that a handler of that export is built against.
fn against(wanted: &Wanted) -> String {
    let package = Name::of(wanted.name).package;
    match (package, wanted.version) {
        (PACKAGE, _) => format!("{PACKAGE}@{VERSION}"),
        ("", _) => wanted.name.to_owned(),
        (package, version) => format!("{package}@{version}"),
    }
}

#[cfg(test)]
#[path = "shape_tests.rs"]
pub(crate) mod tests;

#[cfg(test)]
#[path = "shape_http_tests.rs"]
mod http_tests;

#[cfg(test)]
#[path = "shape_messaging_tests.rs"]
mod messaging_tests;
