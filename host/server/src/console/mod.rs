//! The web console: pages for the operator, made on the server from the same service functions
//! ([`oncue_manager::handle::Handle`]) that stand behind `/v1`.
//!
//! Every page is whole without script; with script it asks for itself again when something has
//! changed ([`live`]). Every action is a form that is sent by POST with a token ([`csrf`]) and
//! answered by going back to the page, with a notice on top ([`notes`]).
//!
//! | Module | What |
//! |---|---|
//! | `overview`, `queues`, `queue`, `messages`, `message`, `tasks` | one page each |
//! | `plugins`, `dead_letters`, `ledger`, `audit` | the same |
//! | `frame` | what stands around each page |
//! | `viewer` | who looks, and what that one may |
//! | `flow`, `spark` | drawings |
//! | `body` | bodies, as text, JSON or in hexadecimal |
//! | `rates` | what was put and taken in the last minutes |
//! | `assets` | style, script and the vendored libraries, in the binary |
//! | `form`, `multipart`, `csrf`, `notes` | actions |
//! | `queue_actions`, `put_form` | what is done to a queue |
//! | `live` | tells open pages when to ask again |

use axum::Router;
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::map_response;
use axum::response::Response;
use axum::routing::{get, post};

use crate::app::App;

mod assets;
mod audit;
mod body;
mod csrf;
mod dead_letters;
mod flow;
mod form;
mod format;
mod frame;
mod ledger;
mod letters;
mod live;
mod login;
mod message;
mod messages;
mod multipart;
mod notes;
mod overview;
mod page;
mod params;
mod plugins;
mod put_form;
mod queue;
mod queue_actions;
mod queues;
mod rates;
mod spark;
mod tasks;
mod viewer;

pub(crate) use csrf::Csrf;
pub(crate) use form::Form;
pub(crate) use live::PATH as LIVE_PATH;
pub(crate) use notes::Notes;
pub(crate) use page::{PageError, dressed, failure_of, not_found};
pub(crate) use rates::{Rates, sample};
pub(crate) use viewer::Viewer;

/// What a page may do: only what comes from here, and no other page may hold it in a frame.
const POLICY: &str = "default-src 'self'; base-uri 'none'; form-action 'self'; \
                      frame-ancestors 'none'; object-src 'none'";

/// What the console keeps for all pages.
#[derive(Debug, Default)]
pub(crate) struct Console {
    /// The token of this process's forms.
    pub(crate) csrf: Csrf,
    /// What was put and what left in the last minutes.
    pub(crate) rates: Rates,
    /// What actions have to say to the page that comes after them.
    pub(crate) notes: Notes,
}

/// The pages.
pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/", get(overview::show))
        .route("/queues", get(queues::list))
        .route("/queues/{queue}", get(queue::show))
        .route("/queues/{queue}/messages", get(messages::browse))
        .route("/queues/{queue}/messages/{id}", get(message::show))
        .route("/queues/{queue}/trigger", post(queue_actions::trigger))
        .route("/queues/{queue}/pause", post(queue_actions::pause))
        .route("/queues/{queue}/enable", post(queue_actions::enable))
        .route("/queues/{queue}/clear", post(queue_actions::clear))
        .route(
            "/queues/{queue}/put",
            get(put_form::show).post(put_form::put),
        )
        .route(
            "/queues/{queue}/messages/{id}/release",
            post(queue_actions::release),
        )
        .route(
            "/queues/{queue}/messages/{id}/remove",
            post(queue_actions::remove),
        )
        .route("/host/pause", post(queue_actions::pause_host))
        .route("/tasks", get(tasks::list))
        .route("/tasks/{task}", get(tasks::show))
        .route("/plugins", get(plugins::list))
        .route("/plugins/{plugin}", get(plugins::show))
        .route("/plugins/{plugin}/rollback", post(plugins::roll_back))
        .route("/processes/{process}/pause", post(plugins::pause))
        .route("/dead-letters", get(dead_letters::show))
        .route("/dead-letters/redrive", post(dead_letters::redrive))
        .route("/dead-letters/discard", post(dead_letters::discard))
        .route("/dead-letters/export", get(dead_letters::export))
        .route("/ledger", get(ledger::show))
        .route("/audit", get(audit::show))
        .route(live::PATH, get(live::watch))
        .route("/login", get(login::show))
        .route("/assets/{hash}/{name}", get(assets::send))
        .layer(map_response(headed))
}

/// The headers of everything the console answers.
async fn headed(response: Response) -> Response {
    secured(response)
}

fn secured(mut response: Response) -> Response {
    let headers = response.headers_mut();
    let always: [(HeaderName, &'static str); 4] = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "same-origin"),
    ];
    for (name, value) in always {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}
