//! The sample components, built from `sample-plugins/` by this crate's build script, and where
//! they lie on disk.
//!
//! It knows nothing of the host and runs nothing. Each component lies beside its manifest, under
//! the sample's own name, in a folder for its kind; copy both to a plugins directory.
//!
//! [`for_each_sample!`] makes a sample without a test a compile error. The macro that is given
//! to it names a function for each sample, and a function that is missing does not compile:
//!
//! ```ignore
//! macro_rules! sample_test {
//!     ($kind:ident $name:ident) => {
//!         #[test]
//!         fn $name() {
//!             cases::$name();     // error: cannot find function `echo` in module `cases`
//!         }
//!     };
//! }
//! oncue_artifacts::for_each_sample!(sample_test);
//! ```

/// One sample plugin.
#[derive(Clone, Copy, Debug)]
pub struct Artifact {
    /// The sample's name: its folder's and its plugin's. It serves the queue of that name, but
    /// for `route-orders` and `route-orders-command`, which serve `orders`.
    pub name: &'static str,
    /// True for those that show how it is done; false for those that a host must withstand, for
    /// programs, and for those that are written against the interfaces of other hosts.
    pub polite: bool,
    /// True for a core module, which a host makes a component of.
    pub core: bool,
    /// The component's path.
    pub component: &'static str,
    /// The manifest's path, beside the component. None: the sample runs on defaults.
    pub manifest: Option<&'static str>,
}

include!(concat!(env!("OUT_DIR"), "/samples.rs"));

#[cfg(test)]
mod tests {
    use super::{ALL, Artifact};

    /// The first bytes of a component: magic, version 13, layer 1.
    const COMPONENT: [u8; 8] = [0, b'a', b's', b'm', 0x0d, 0, 1, 0];

    /// The first bytes of a core module.
    const MODULE: [u8; 8] = [0, b'a', b's', b'm', 1, 0, 0, 0];

    /// A polite sample larger than this is no model to follow.
    const MAX_POLITE_BYTES: usize = 300 * 1024;

    fn check(artifact: &Artifact) {
        let Artifact {
            name,
            polite,
            core,
            component,
            manifest,
        } = artifact;
        let bytes = std::fs::read(component).expect("the component is there");
        let wanted = if *core { MODULE } else { COMPONENT };
        assert!(
            bytes.starts_with(&wanted),
            "{name} is not what it should be"
        );
        assert!(
            !polite || bytes.len() < MAX_POLITE_BYTES,
            "{name} has {} bytes of {MAX_POLITE_BYTES}",
            bytes.len()
        );
        if let Some(manifest) = manifest {
            let text = std::fs::read_to_string(manifest).expect("the manifest is there");
            assert!(
                text.contains("[process]"),
                "{name}: no [process] in its manifest"
            );
        }
    }

    #[test]
    fn all_samples_are_of_their_kind() {
        ALL.iter().for_each(check);
    }

    #[test]
    fn all_names_differ() {
        let mut names: Vec<_> = ALL.iter().map(|artifact| artifact.name).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn macro_reaches_every_sample() {
        let mut reached = Vec::new();
        macro_rules! note {
            ($kind:ident $name:ident) => {
                reached.push((stringify!($kind) == "polite", stringify!($name)));
            };
        }
        for_each_sample!(note);
        let listed: Vec<_> = ALL
            .iter()
            .map(|it| (it.polite, it.name.replace('-', "_")))
            .collect();
        let reached: Vec<_> = reached
            .into_iter()
            .map(|(polite, name)| (polite, name.to_owned()))
            .collect();
        assert_eq!(reached, listed);
    }
}
