//! HTTP `/v1`: routes, wire types, errors. A thin adapter over [`oncue_manager::handle::Handle`].
//!
//! Refuses: to listen where another machine could reach it, without tokens and TLS; to decide
//! anything about messages or triggers, which is the manager's; to hold more than its
//! bounds ([`ServerOptions`]). Every error is `application/problem+json` with a permanent code.
//!
//! | Module | What |
//! |---|---|
//! | `routes` | one file for each resource; its list is the index |
//! | `wire` | fields of messages as headers and JSON, CloudEvents |
//! | `extract` | names, queries and bodies, refused as problems |
//! | `content` | a message's body as an answer, whole or in parts |
//! | `guard` | request ids, foreign origins, who asks, bounds, panics |
//! | `asked` | a request as the audit log has it |
//! | `console` | the pages for a browser |
//! | [`auth`] | tokens, roles and grants, the table of rights, sessions of the console |
//! | `audit` | who changed what, and who was refused |
//! | `security` | these and TLS, as one option of the server |
//! | `doctor` | what a host finds when it looks at its own machine |
//! | `error` | codes to statuses |
//! | `exposition` | metrics in the text formats of monitoring systems |
//! | `tls` | certificates, read again when they change |
//! | `openapi` | the document, made from the handlers |
//! | `listener`, `addresses` | connections, how many of whom, and the stop |

#![forbid(unsafe_code)]

mod addresses;
mod app;
mod asked;
mod audit;
pub mod auth;
mod console;
mod content;
mod doctor;
mod error;
mod exposition;
mod extract;
mod files;
mod guard;
mod listener;
mod openapi;
mod routes;
mod security;
mod stream;
mod tls;
mod wire;

pub use app::ServerOptions;
pub use audit::{Audit, DIRECTORY as AUDIT_DIRECTORY};
pub use doctor::{Doctor, Finding, Standing};
pub use guard::Api;
pub use listener::{AddressRefused, Stopped, check_address, serve};
pub use routes::{api, openapi};
pub use security::{Reload, Security};
pub use tls::{Tls, TlsError};
