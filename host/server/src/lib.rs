//! HTTP `/v1`: routes, wire types, errors. A thin adapter over [`oncue_manager::handle::Handle`].
//!
//! Refuses: to listen where another machine could reach it, as long as there is no authentication;
//! to decide anything about messages or triggers, which is the manager's; to hold more than its
//! bounds ([`ServerOptions`]). Every error is `application/problem+json` with a permanent code.
//!
//! | Module | What |
//! |---|---|
//! | `routes` | one file for each resource; its list is the index |
//! | `wire` | fields of messages as headers and JSON, CloudEvents |
//! | `extract` | names, queries and bodies, refused as problems |
//! | `content` | a message's body as an answer, whole or in parts |
//! | `console` | the pages for a browser |
//! | `guard` | request ids, foreign origins, bounds, panics |
//! | `error` | codes to statuses |
//! | `exposition` | metrics in the text formats of monitoring systems |
//! | `openapi` | the document, made from the handlers |
//! | `listener` | connections and the stop |

#![forbid(unsafe_code)]

mod app;
mod console;
mod content;
mod error;
mod exposition;
mod extract;
mod guard;
mod listener;
mod openapi;
mod routes;
mod stream;
mod wire;

pub use app::ServerOptions;
pub use guard::Api;
pub use listener::{AddressRefused, Stopped, check_address, serve};
pub use routes::{api, openapi};
