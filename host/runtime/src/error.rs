//! Why a component cannot be run here. Guests' own failures are outcomes ([`crate::classify`]), not
//! errors, and `wasmtime::Error` becomes one of these or an outcome before it leaves the crate.

use oncue_core::code::Code;

/// A component, or a demand of its definition, that this sandbox refuses. Each text is a whole
/// sentence but for the code, which the display adds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PluginError {
    /// The bytes are not a component of the WebAssembly component model.
    #[error("{0} [{code}]", code = self.code())]
    NotComponent(String),
    /// The compiled form is of another engine, or damaged: compile again.
    #[error("{0} [{code}]", code = self.code())]
    Incompatible(String),
    /// It imports what this host does not offer.
    #[error(
        "the component imports {list}, which this host does not offer; build it against the \
         worlds of oncue:handler and wasi:cli 0.2 [{code}]",
        list = quoted(imports), code = self.code()
    )]
    UnknownImports {
        /// Names of the imports.
        imports: Vec<String>,
    },
    /// An import or export has a known name and another type.
    #[error("{0} [{code}]", code = self.code())]
    WrongWorld(String),
    /// It exports no known handler.
    #[error(
        "the component exports {list} and no handler; export \"{message}\" or \
         \"{trigger}\" [{code}]",
        list = quoted(exports), message = crate::engine::ON_MESSAGE,
        trigger = crate::engine::ON_TRIGGER, code = self.code()
    )]
    NoStyle {
        /// Names of its exports.
        exports: Vec<String>,
        /// Names of its imports.
        imports: Vec<String>,
    },
    /// It asks for more than the sandbox can give or enforce.
    #[error("{0} [{code}]", code = self.code())]
    Demand(String),
    /// It is a component and does not compile.
    #[error("{0} [{code}]", code = self.code())]
    CompileFailed(String),
    /// It compiles and cannot be instantiated under its limits.
    #[error("{0} [{code}]", code = self.code())]
    Smoke(String),
    /// A file or the operating system failed.
    #[error("{0} [{code}]", code = self.code())]
    Io(String),
}

impl PluginError {
    /// The permanent code.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Self::NotComponent(_) | Self::UnknownImports { .. } | Self::Smoke(_) => {
                Code::PluginRefused
            }
            Self::WrongWorld(_) | Self::NoStyle { .. } => Code::WrongWorld,
            Self::Demand(_) => Code::OverCapacity,
            Self::CompileFailed(_) => Code::CompileFailed,
            Self::Incompatible(_) | Self::Io(_) => Code::Internal,
        }
    }
}

/// Names in quotes with commas; `nothing` for none.
fn quoted(names: &[String]) -> String {
    if names.is_empty() {
        return "nothing".to_owned();
    }
    let quoted: Vec<_> = names.iter().map(|name| format!("\"{name}\"")).collect();
    quoted.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_one_sentence_with_its_code() {
        let imports = vec!["wasi:http/types@0.2.0".to_owned()];
        let error = PluginError::UnknownImports { imports };
        let text = error.to_string();
        assert!(
            text.starts_with("the component imports \"wasi:http/types@0.2.0\","),
            "{text}"
        );
        assert!(text.ends_with("[plugin-refused]"), "{text}");
        let error = PluginError::NoStyle {
            exports: Vec::new(),
            imports: Vec::new(),
        };
        assert!(
            error
                .to_string()
                .starts_with("the component exports nothing and"),
            "{error}"
        );
    }
}
