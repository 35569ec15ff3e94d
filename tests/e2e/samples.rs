//! Every sample plugin in a real host: the polite ones do their job, the hostile ones end as their
//! manifest and `sample-plugins/README.md` say. A sample without a case here does not compile.

mod borrowed;
mod command;
mod core;
mod hostile;
mod polite;

macro_rules! sample_test {
    ($kind:ident $name:ident) => {
        #[test]
        fn $name() {
            $kind::$name();
        }
    };
}

oncue_artifacts::for_each_sample!(sample_test);
