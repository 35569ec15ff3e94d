//! What a component imports and exports, read from its bytes before anything is compiled.
//!
//! Bodies of functions are passed over: the compiler checks them. A file that is no component is
//! refused here, with words for the person who dropped it. Neighbour: `shape` judges.

use std::collections::{BTreeMap, HashMap};

use oncue_core::code::Code;
use wasmparser::component_types::{
    ComponentAnyTypeId, ComponentDefinedType, ComponentEntityType, ComponentFuncTypeId,
    ComponentInstanceTypeId, ComponentValType, ResourceId,
};
use wasmparser::types::TypesRef;
use wasmparser::{Parser, Payload, ValidPayload, Validator, WasmFeatures};

use super::contract::{Function, Type};
use super::module::malformed;

/// The first four bytes of every WASM file.
const MAGIC: &[u8; 4] = b"\0asm";
/// Where the other kind of compiled file begins: refused, since it is native code.
const ELF: &[u8; 4] = b"\x7fELF";
/// The shortest component: magic, version and layer.
const HEADER: usize = 8;

/// A component from outside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Interfaces {
    pub(crate) imports: Vec<Import>,
    pub(crate) exports: Vec<Export>,
}

/// Something that must be there for the component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Import {
    pub(crate) name: String,
    /// Whether it has functions or resources; types alone need nobody.
    pub(crate) acts: bool,
}

/// Something that the component has for others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Export {
    pub(crate) name: String,
    pub(crate) kind: ExportKind,
}

/// What is exported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ExportKind {
    /// An interface, with its functions by their names.
    Interface(BTreeMap<String, Function>),
    /// A function that stands alone.
    Function(Option<Function>),
    /// A type, module or component.
    Other,
}

/// Reads a component. `file` is its name for messages.
///
/// # Errors
/// A whole sentence, when the bytes are no component that could ever run here.
pub(crate) fn read(bytes: &[u8], file: &str) -> Result<Interfaces, String> {
    let refuse = |text: String| format!("\"{file}\" {text} [{}]", Code::PluginRefused);
    if let Some(text) = refuse_header(bytes) {
        return Err(refuse(text));
    }
    if Parser::is_core_wasm(bytes) {
        let text = "is a core module, not a component; make one of it: oncue plugin componentize";
        return Err(refuse(text.to_owned()));
    }
    walk(bytes).map_err(|error| refuse(malformed(&error, bytes.len(), "component")))
}

/// What the first bytes tell of a file that is no component.
pub(crate) fn refuse_header(bytes: &[u8]) -> Option<String> {
    if bytes.is_empty() {
        return Some("is empty; copy it again".to_owned());
    }
    if bytes.starts_with(ELF) {
        return Some(
            "is a compiled object, not WebAssembly; drop the .wasm that it was made from"
                .to_owned(),
        );
    }
    if !bytes.starts_with(MAGIC) {
        return Some("is not WebAssembly; drop a component (.wasm)".to_owned());
    }
    if bytes.len() < HEADER {
        return Some(format!(
            "is truncated at {} bytes; copy it again",
            bytes.len()
        ));
    }
    None
}

fn walk(bytes: &[u8]) -> wasmparser::Result<Interfaces> {
    // All that is known of the component model is read, so that a component which uses more than
    // the sandbox allows is refused for that and not called invalid.
    let mut validator = Validator::new_with_features(WasmFeatures::all());
    let mut names = Names::default();
    let mut depth = 0_usize;
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload?;
        if depth == 0 {
            names.note(&payload)?;
        }
        match validator.payload(&payload)? {
            ValidPayload::Parser(_) => depth += 1,
            ValidPayload::End(types) if depth == 0 => return Ok(names.resolve(types.as_ref())),
            ValidPayload::End(_) => depth -= 1,
            ValidPayload::Ok | ValidPayload::Func(..) => {}
        }
    }
    // The parser answers an error before it runs out of payloads without an end.
    Ok(Interfaces::default())
}

/// The outermost names, in the file's order.
#[derive(Default)]
struct Names<'a> {
    imports: Vec<&'a str>,
    exports: Vec<&'a str>,
}

impl<'a> Names<'a> {
    fn note(&mut self, payload: &Payload<'a>) -> wasmparser::Result<()> {
        match payload {
            Payload::ComponentImportSection(section) => {
                for import in section.clone() {
                    self.imports.push(import?.name.name);
                }
            }
            Payload::ComponentExportSection(section) => {
                for export in section.clone() {
                    self.exports.push(export?.name.name);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn resolve(&self, types: TypesRef<'_>) -> Interfaces {
        let mut reader = TypeReader {
            types,
            resources: HashMap::new(),
        };
        let mut interfaces = Interfaces::default();
        for name in &self.imports {
            let Some(item) = types.component_item_for_import(name) else {
                continue;
            };
            reader.name_resources(name, item.ty);
            let acts = reader.acts(item.ty);
            interfaces.imports.push(Import {
                name: (*name).to_owned(),
                acts,
            });
        }
        for name in &self.exports {
            let Some(item) = types.component_item_for_export(name) else {
                continue;
            };
            let kind = match item.ty {
                ComponentEntityType::Instance(id) => ExportKind::Interface(reader.functions(id)),
                ComponentEntityType::Func(id) => ExportKind::Function(reader.function(id)),
                _ => ExportKind::Other,
            };
            interfaces.exports.push(Export {
                name: (*name).to_owned(),
                kind,
            });
        }
        interfaces
    }
}

/// Turns the validator's types into ours.
struct TypeReader<'a> {
    types: TypesRef<'a>,
    /// Names of imported resources.
    resources: HashMap<ResourceId, String>,
}

impl TypeReader<'_> {
    fn items(&self, id: ComponentInstanceTypeId) -> BTreeMap<&str, ComponentEntityType> {
        let exports = self.types.get(id).map(|instance| &instance.exports);
        let items = exports.into_iter().flat_map(|exports| exports.iter());
        items.map(|(name, item)| (name.as_str(), item.ty)).collect()
    }

    fn name_resources(&mut self, name: &str, entity: ComponentEntityType) {
        let mut found = Vec::new();
        let mut note = |name: &str, entity: &ComponentEntityType| {
            if let ComponentEntityType::Type { created, .. } = entity
                && let ComponentAnyTypeId::Resource(id) = created
            {
                found.push((id.resource(), name.to_owned()));
            }
        };
        note(name, &entity);
        if let ComponentEntityType::Instance(id) = entity {
            for (name, entity) in self.items(id) {
                note(name, &entity);
            }
        }
        for (id, name) in found {
            // The first name is the one it was defined under; later ones are `use`d.
            self.resources.entry(id).or_insert(name);
        }
    }

    fn acts(&self, entity: ComponentEntityType) -> bool {
        let acts = |entity: &ComponentEntityType| match entity {
            ComponentEntityType::Type { created, .. } => {
                matches!(created, ComponentAnyTypeId::Resource(_))
            }
            _ => true,
        };
        match entity {
            ComponentEntityType::Instance(id) => self.items(id).values().any(acts),
            other => acts(&other),
        }
    }

    fn functions(&self, id: ComponentInstanceTypeId) -> BTreeMap<String, Function> {
        let items = self.items(id).into_iter();
        let functions = items.filter_map(|(name, item)| match item {
            ComponentEntityType::Func(id) => Some((name.to_owned(), self.function(id)?)),
            _ => None,
        });
        functions.collect()
    }

    fn function(&self, id: ComponentFuncTypeId) -> Option<Function> {
        let function = self.types.get(id)?;
        let parameters = function.params.iter();
        Some(Function {
            asynchronous: function.async_,
            parameters: parameters
                .map(|(name, ty)| (name.to_string(), self.read(*ty)))
                .collect(),
            result: function.result.map(|ty| self.read(ty)),
        })
    }

    /// The recursion and the size of the tree are bounded by the validator's limits on types.
    fn read(&self, ty: ComponentValType) -> Type {
        let id = match ty {
            ComponentValType::Primitive(primitive) => {
                return Type::Primitive(primitive.to_string());
            }
            ComponentValType::Type(id) => id,
        };
        let boxed = |ty: &ComponentValType| Box::new(self.read(*ty));
        match self.types.get(id) {
            None => Type::Other("an unknown type"),
            Some(ComponentDefinedType::Primitive(primitive)) => {
                Type::Primitive(primitive.to_string())
            }
            Some(ComponentDefinedType::Record(record)) => {
                let fields = record.fields.iter();
                Type::Record(
                    fields
                        .map(|(name, ty)| (name.to_string(), self.read(*ty)))
                        .collect(),
                )
            }
            Some(ComponentDefinedType::Variant(variant)) => {
                let cases = variant.cases.iter();
                let case = |carried: Option<ComponentValType>| carried.map(|ty| self.read(ty));
                Type::Variant(
                    cases
                        .map(|(name, it)| (name.to_string(), case(it.ty)))
                        .collect(),
                )
            }
            Some(ComponentDefinedType::List { element, .. }) => Type::List(boxed(element)),
            Some(ComponentDefinedType::Option { ty, .. }) => Type::Option(boxed(ty)),
            Some(ComponentDefinedType::Result { ok, err, .. }) => {
                Type::Result(ok.as_ref().map(boxed), err.as_ref().map(boxed))
            }
            Some(ComponentDefinedType::Tuple(tuple)) => {
                Type::Tuple(tuple.types.iter().map(|ty| self.read(*ty)).collect())
            }
            Some(ComponentDefinedType::Enum(names)) => {
                Type::Enum(names.iter().map(ToString::to_string).collect())
            }
            Some(ComponentDefinedType::Flags(names)) => {
                Type::Flags(names.iter().map(ToString::to_string).collect())
            }
            Some(ComponentDefinedType::Own(id)) => Type::Own(self.resource(id.resource())),
            Some(ComponentDefinedType::Borrow(id)) => Type::Borrow(self.resource(id.resource())),
            Some(ComponentDefinedType::Map { .. }) => Type::Other("a map"),
            Some(ComponentDefinedType::FixedLengthList { .. }) => Type::Other("a fixed list"),
            Some(ComponentDefinedType::Future { .. }) => Type::Other("a future"),
            Some(ComponentDefinedType::Stream { .. }) => Type::Other("a stream"),
        }
    }

    fn resource(&self, id: ResourceId) -> String {
        self.resources
            .get(&id)
            .cloned()
            .unwrap_or_else(|| "a resource of its own".to_owned())
    }
}
