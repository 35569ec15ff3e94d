//! What the attributes of queues and of processes have in common: one list of each makes the
//! patch, its reader and writer, the merging of layers and the table for documentation.

use super::fault::{Fault, Reader, nearest};
use super::raw::Raw;

/// What a patch does to one attribute.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Change<T> {
    /// Give it this value.
    Set(T),
    /// Take the operator's value away, so that the manifest's or the default shows again. Written
    /// as JSON's `null`.
    Reset,
}

/// One line of the documentation of attributes.
#[derive(Clone, Copy, Debug)]
pub struct AttributeInfo {
    /// The name in manifests, JSON and flags; a dot is a table inside.
    pub name: &'static str,
    /// The default as [`Raw`]'s display writes it.
    pub default: &'static str,
    /// What it means, in one or two sentences.
    pub meaning: &'static str,
    /// What values are accepted, as it follows after "use".
    pub accepts: fn() -> String,
}

/// Takes a table apart into attributes: the name from the list, and the value. Tables inside
/// (`retry = { jitter = 5 }`) become names with dots. Notes unknown names and those given twice.
pub(super) fn flatten<'a>(
    raw: &'a Raw,
    table: &'static [AttributeInfo],
    owner: &str,
    reader: &mut Reader,
) -> Vec<(&'static str, &'a Raw)> {
    let Raw::Table(entries) = raw else {
        reader.fault(format!("is {}; use a table of attributes", raw.shown()));
        return Vec::new();
    };
    let mut found: Vec<(&'static str, &Raw)> = Vec::new();
    let mut add = |name: &str, value: &'a Raw, reader: &mut Reader| {
        let Some(info) = table.iter().find(|info| info.name == name) else {
            reader.fault(unknown(name, table, owner));
            return;
        };
        if found.iter().any(|(known, _)| *known == info.name) {
            reader.fault("is given twice; remove one");
        } else {
            found.push((info.name, value));
        }
    };
    for (key, value) in entries {
        let members: Vec<&'static str> = group(table, key).collect();
        reader.within_key(key, |reader| match value {
            _ if members.is_empty() => add(key, value, reader),
            Raw::Table(inner) => {
                for (inner_key, inner_value) in inner {
                    let name = format!("{key}.{inner_key}");
                    reader.within_key(inner_key, |reader| add(&name, inner_value, reader));
                }
            }
            Raw::Null => members.iter().for_each(|name| add(name, value, reader)),
            _ => {
                let members = members.join(", ");
                reader.fault(format!("is {}; use a table of {members}", value.shown()));
            }
        });
    }
    found
}

/// The attributes inside the table `group`.
fn group<'a>(
    table: &'static [AttributeInfo],
    group: &'a str,
) -> impl Iterator<Item = &'static str> + 'a {
    table.iter().map(|info| info.name).filter(move |name| {
        name.strip_prefix(group)
            .is_some_and(|rest| rest.starts_with('.'))
    })
}

fn unknown(name: &str, table: &'static [AttributeInfo], owner: &str) -> String {
    let meant = nearest(name, table.iter().map(|info| info.name));
    let cure = meant.map_or_else(
        || "remove it".to_owned(),
        |meant| format!("did you mean \"{meant}\"?"),
    );
    format!("is not an attribute of {owner}; {cure}")
}

/// Puts attributes together again: names with dots become tables inside. Neighbours in the list
/// that share a table must stand together there.
pub(super) fn nest(entries: impl IntoIterator<Item = (&'static str, Raw)>) -> Raw {
    let mut table: Vec<(String, Raw)> = Vec::new();
    for (name, value) in entries {
        let Some((group, member)) = name.split_once('.') else {
            table.push((name.to_owned(), value));
            continue;
        };
        match table.last_mut() {
            Some((last, Raw::Table(inner))) if last == group => {
                inner.push((member.to_owned(), value));
            }
            _ => {
                let inner = vec![(member.to_owned(), value)];
                table.push((group.to_owned(), Raw::Table(inner)));
            }
        }
    }
    Raw::Table(table)
}

/// The values of one layer, or the changes to one.
pub trait Patch: Clone + Default {
    /// What the layers resolve to.
    type Attributes: Default;

    /// Puts the values of this layer over those of the layers below.
    fn apply(&self, attributes: &mut Self::Attributes);

    /// Merges changes into a layer: what is set replaces, what is reset goes.
    fn merge(&mut self, changes: &Self);

    /// Whether the layer has a value of its own for the attribute.
    fn sets(&self, name: &str) -> bool;

    /// Rules between attributes, on resolved values.
    fn check(attributes: &Self::Attributes) -> Vec<Fault>;
}

/// Makes patch, reader, writer and table from one list of attributes.
macro_rules! attributes {
    (
        $(#[$doc:meta])*
        $attributes:ident, $patch:ident, $table:ident, $owner:literal;
        $($field:ident = $($place:ident).+ : $type:ty, $name:literal, $kind:expr, $default:literal,
            $meaning:literal;)+
    ) => {
        #[doc = concat!("Every attribute of ", $owner, ", in the order of the documentation.")]
        pub const $table: &[AttributeInfo] = &[
            $(AttributeInfo {
                name: $name,
                default: $default,
                meaning: $meaning,
                accepts: || Kind::<$type>::accepts(&$kind),
            },)+
        ];

        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
        pub struct $patch {
            $(#[doc = $meaning] pub $field: Option<Change<$type>>,)+
        }

        impl $patch {
            /// Reads a table of attributes.
            ///
            /// # Errors
            /// Every fault of the table at once: unknown names, wrong types, values out of range,
            /// and what this version cannot honour. Rules between attributes hold for resolved
            /// values only; `check` of the definition has them.
            pub fn parse(raw: &Raw) -> Result<Self, Vec<Fault>> {
                let mut reader = Reader::default();
                let mut patch = Self::default();
                for (name, value) in flatten(raw, $table, $owner, &mut reader) {
                    reader.within(name, |reader| patch.read(name, value, reader));
                }
                reader.finish(patch)
            }

            /// Reads attributes from `NAME=VALUE` flags, where every value is text.
            ///
            /// # Errors
            /// As [`parse`](Self::parse).
            pub fn parse_flags(flags: &[(String, String)]) -> Result<Self, Vec<Fault>> {
                let entries = flags.iter().map(|(name, text)| {
                    let value = match name.as_str() {
                        $($name => Kind::<$type>::read_flag(&$kind, text),)+
                        _ => Raw::text(text.as_str()),
                    };
                    (name.clone(), value)
                });
                Self::parse(&Raw::Table(entries.collect()))
            }

            fn read(&mut self, name: &str, raw: &Raw, reader: &mut Reader) {
                let is_reset = matches!(raw, Raw::Null);
                match name {
                    $($name => {
                        self.$field = if is_reset {
                            Some(Change::Reset)
                        } else {
                            Kind::<$type>::read(&$kind, raw, reader).map(Change::Set)
                        };
                    })+
                    _ => {}
                }
            }

            /// Adds a reset of the attribute; `false` when there is none of that name.
            #[must_use]
            pub fn reset(&mut self, name: &str) -> bool {
                match name {
                    $($name => self.$field = Some(Change::Reset),)+
                    _ => return false,
                }
                true
            }

            /// Whether the patch says nothing.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                true $(&& self.$field.is_none())+
            }

            /// The patch as a table that [`parse`](Self::parse) reads back as the same patch.
            #[must_use]
            pub fn to_raw(&self) -> Raw {
                let mut entries: Vec<(&'static str, Raw)> = Vec::new();
                $(match &self.$field {
                    Some(Change::Set(value)) => {
                        entries.push(($name, Kind::<$type>::write(&$kind, value)));
                    }
                    Some(Change::Reset) => entries.push(($name, Raw::Null)),
                    None => {}
                })+
                nest(entries)
            }
        }

        impl Patch for $patch {
            type Attributes = $attributes;

            fn apply(&self, attributes: &mut $attributes) {
                $(if let Some(Change::Set(value)) = &self.$field {
                    attributes.$($place).+ = value.clone();
                })+
            }

            fn merge(&mut self, changes: &Self) {
                $(match &changes.$field {
                    Some(Change::Set(value)) => self.$field = Some(Change::Set(value.clone())),
                    Some(Change::Reset) => self.$field = None,
                    None => {}
                })+
            }

            fn sets(&self, name: &str) -> bool {
                match name {
                    $($name => matches!(self.$field, Some(Change::Set(_))),)+
                    _ => false,
                }
            }

            fn check(attributes: &$attributes) -> Vec<Fault> {
                attributes.check()
            }
        }

        impl $attributes {
            /// Every attribute with its value as people write it, in the order of the
            /// documentation.
            #[must_use]
            pub fn entries(&self) -> Vec<(&'static str, Raw)> {
                vec![$(($name, Kind::<$type>::write(&$kind, &self.$($place).+)),)+]
            }

            /// All values as one table, those of a dotted name in a table inside.
            #[must_use]
            pub fn to_raw(&self) -> Raw {
                nest(self.entries())
            }

            /// Reads resolved values back; what is not named has its default.
            ///
            /// # Errors
            /// As the patch's `parse`.
            pub fn parse(raw: &Raw) -> Result<Self, Vec<Fault>> {
                let mut attributes = Self::default();
                $patch::parse(raw)?.apply(&mut attributes);
                Ok(attributes)
            }
        }

        $crate::definition::attributes::serde_by_raw!($patch);
        $crate::definition::attributes::serde_by_raw!($attributes);
    };
}

/// JSON through `to_raw` and `parse`, so that the wire, the store and manifests share one form.
macro_rules! serde_by_raw {
    ($name:ident) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.to_raw().serialize(serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let raw = Raw::deserialize(deserializer)?;
                Self::parse(&raw).map_err(|faults| serde::de::Error::custom(list_faults(&faults)))
            }
        }
    };
}

pub(super) use {attributes, serde_by_raw};
