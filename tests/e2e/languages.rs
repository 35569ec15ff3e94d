//! Handlers in other languages than Rust, in a real host: the samples of `sample-plugins/languages`
//! all do the work of `route-orders` and are judged by the same golden cases; what fails in them
//! leaves a record that its author can read. And the templates of `oncue new`, from nothing to a
//! committed message.

mod cases;
mod failures;
mod native;
mod project;
mod script;
mod templates;
