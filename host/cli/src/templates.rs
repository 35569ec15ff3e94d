//! The templates of `oncue new`: one small project for each language, in the binary.
//!
//! A new language is a folder under `host/cli/templates/` and an entry in [`TEMPLATES`]; nothing
//! else knows which languages there are. Writing a project is up to `commands::new`, what
//! the interfaces of `wit/` are to `wit`. Only languages whose templates are built and run by the
//! tests are listed.

/// A file of a project.
pub(crate) struct File {
    /// Where it goes in the project, with forward slashes and placeholders.
    pub(crate) path: &'static str,
    /// What goes there.
    pub(crate) content: Content,
}

/// What a file holds.
pub(crate) enum Content {
    /// Text with placeholders: `{{name}}`, `{{crate_name}}`, `{{build}}`.
    Text(&'static str),
    /// Bytes, written as they are.
    Bytes(&'static [u8]),
}

/// The project of one language.
pub(crate) struct Template {
    /// The word of `--lang`.
    pub(crate) lang: &'static str,
    /// Other words for it.
    pub(crate) also: &'static [&'static str],
    /// What it is and what its author needs, in a line.
    pub(crate) about: &'static str,
    /// Whether the handler is written against `wit/`, and gets a copy of it.
    pub(crate) wit: bool,
    /// Its files, those of [`SHARED`] apart.
    pub(crate) files: &'static [File],
}

/// A file of text: where it goes, and where it is under `host/cli/templates/`.
macro_rules! text {
    ($path:literal, $from:literal) => {
        File {
            path: $path,
            content: Content::Text(include_str!(concat!("../templates/", $from))),
        }
    };
}

/// The same for a file that is no text.
macro_rules! bytes {
    ($path:literal, $from:literal) => {
        File {
            path: $path,
            content: Content::Bytes(include_bytes!(concat!("../templates/", $from))),
        }
    };
}

/// What every project has: the golden cases, whose job is the same in every language.
pub(crate) const SHARED: &[File] = &[
    text!(".gitignore", "shared/gitignore"),
    text!("cases/greets/input.json", "shared/cases/greets/input.json"),
    text!("cases/empty/input.json", "shared/cases/empty/input.json"),
    text!(
        "cases/empty/expected.json",
        "shared/cases/empty/expected.json"
    ),
    text!(
        "cases/not-utf8/input.json",
        "shared/cases/not-utf8/input.json"
    ),
    text!(
        "cases/not-utf8/expected.json",
        "shared/cases/not-utf8/expected.json"
    ),
];

/// The manifest of a handler that puts by itself.
const MANIFEST: File = text!("{{name}}.toml", "shared/manifest.toml");

/// What its golden case expects of it; a command's message has a correlation id by itself.
const GREETED: File = text!(
    "cases/greets/expected.json",
    "shared/cases/greets/expected.json"
);

/// Every language, in the order in which they are listed.
pub(crate) const TEMPLATES: &[Template] = &[
    Template {
        lang: "rust",
        also: &["rs"],
        about: "Rust; needs cargo and the target wasm32-wasip2",
        wit: true,
        files: &[
            MANIFEST,
            GREETED,
            text!("Cargo.toml", "rust/Cargo.toml"),
            text!("Cargo.lock", "rust/Cargo.lock"),
            text!("src/lib.rs", "rust/src/lib.rs"),
            text!("oncue-project.toml", "rust/oncue-project.toml"),
            text!("README.md", "rust/README.md"),
        ],
    },
    Template {
        lang: "js",
        also: &["javascript"],
        about: "JavaScript, run by QuickJS; needs Node",
        wit: true,
        files: &[
            MANIFEST,
            GREETED,
            text!("package.json", "js/package.json"),
            text!("package-lock.json", "js/package-lock.json"),
            text!("handler.js", "js/handler.js"),
            text!("oncue-project.toml", "js/oncue-project.toml"),
            text!("README.md", "js/README.md"),
        ],
    },
    Template {
        lang: "ts",
        also: &["typescript"],
        about: "TypeScript, run by QuickJS; needs Node",
        wit: true,
        files: &[
            MANIFEST,
            GREETED,
            text!("package.json", "ts/package.json"),
            text!("package-lock.json", "ts/package-lock.json"),
            text!("tsconfig.json", "ts/tsconfig.json"),
            text!("oncue.d.ts", "ts/oncue.d.ts"),
            text!("handler.ts", "ts/handler.ts"),
            text!("oncue-project.toml", "ts/oncue-project.toml"),
            text!("README.md", "ts/README.md"),
        ],
    },
    Template {
        lang: "python",
        also: &["py"],
        about: "Python, all of CPython in the component; needs Python",
        wit: true,
        files: &[
            MANIFEST,
            GREETED,
            text!("app.py", "python/app.py"),
            text!("build.sh", "python/build.sh"),
            text!("requirements.txt", "python/requirements.txt"),
            text!("oncue-project.toml", "python/oncue-project.toml"),
            text!("README.md", "python/README.md"),
        ],
    },
    Template {
        lang: "c",
        also: &[],
        about: "C; needs clang and wasi-libc, bindings are in it",
        wit: true,
        files: &[
            MANIFEST,
            GREETED,
            text!("handler.c", "c/handler.c"),
            text!("bindings/README.md", "c/bindings/README.md"),
            text!("bindings/message_handler.h", "c/bindings/message_handler.h"),
            text!("bindings/message_handler.c", "c/bindings/message_handler.c"),
            bytes!(
                "bindings/message_handler_component_type.o",
                "c/bindings/message_handler_component_type.o"
            ),
            text!("build.sh", "c/build.sh"),
            text!("oncue-project.toml", "c/oncue-project.toml"),
            text!("README.md", "c/README.md"),
        ],
    },
    Template {
        lang: "go",
        also: &["golang"],
        about: "Go, as a program: a message in, a message out; needs go 1.25",
        wit: false,
        files: &[
            text!("{{name}}.toml", "go/manifest.toml"),
            text!("cases/greets/expected.json", "go/greeted.json"),
            text!("go.mod", "go/go.mod"),
            text!("main.go", "go/main.go"),
            text!("oncue-project.toml", "go/oncue-project.toml"),
            text!("README.md", "go/README.md"),
        ],
    },
];

/// The template of a language, by any of its words.
pub(crate) fn find(lang: &str) -> Option<&'static Template> {
    TEMPLATES
        .iter()
        .find(|template| template.lang == lang || template.also.contains(&lang))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_means_one_language() {
        let mut words: Vec<&str> = TEMPLATES
            .iter()
            .flat_map(|template| template.also.iter().chain([&template.lang]))
            .copied()
            .collect();
        words.sort_unstable();
        let all = words.len();
        words.dedup();
        assert_eq!(words.len(), all, "{words:?}");
        for word in words {
            assert!(find(word).is_some(), "{word}");
        }
        assert!(find("cobol").is_none());
    }

    #[test]
    fn every_template_is_whole() {
        for template in TEMPLATES {
            let has = |path: &str| template.files.iter().any(|file| file.path == path);
            for path in ["oncue-project.toml", "README.md", "{{name}}.toml"] {
                assert!(has(path), "{}: no {path}", template.lang);
            }
            let mut paths: Vec<&str> = template
                .files
                .iter()
                .chain(SHARED)
                .map(|file| file.path)
                .collect();
            paths.sort_unstable();
            let all = paths.len();
            paths.dedup();
            assert_eq!(paths.len(), all, "{}: a path twice", template.lang);
        }
    }

    /// `group-sequence` as JavaScript names it.
    fn camel(name: &str) -> String {
        let mut words = name.split('-');
        let mut text = words.next().unwrap_or_default().to_owned();
        for word in words {
            let (first, rest) = word.split_at(1);
            text.push_str(&first.to_uppercase());
            text.push_str(rest);
        }
        text
    }

    #[test]
    fn the_declarations_for_typescript_name_everything_in_wit() {
        let declared = include_str!("../templates/ts/oncue.d.ts");
        let mut looked_at = 0;
        for (path, text) in crate::wit::FILES {
            let is_ours = ["queues.wit", "types.wit", "deps/keyvalue/store.wit"].contains(path);
            for line in text.lines().map(str::trim).filter(|_| is_ours) {
                let Some((name, rest)) = line.split_once(':') else {
                    continue;
                };
                let is_name = |c: char| c.is_ascii_lowercase() || c == '-';
                if name.is_empty() || !name.chars().all(is_name) || !rest.starts_with(' ') {
                    continue;
                }
                // A field, perhaps left out, or a function.
                let wanted = camel(name);
                let forms = [": ", "?: ", "("].map(|end| format!("{wanted}{end}"));
                let is_there = forms.iter().any(|form| declared.contains(form));
                assert!(is_there, "{path}: {wanted}");
                looked_at += 1;
            }
        }
        assert!(looked_at > 50, "{looked_at} names");
    }
}
