//! The OpenAPI 3.1 document: made from the handlers, with every answer that they can give.

mod bodies;
mod examples;
mod parameters;

use std::collections::BTreeMap;

use axum::http::Method;
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{
    ContentBuilder, HeaderBuilder, ObjectBuilder, OpenApi, Ref, RefOr, Response, ResponseBuilder,
    Type,
};
use utoipa::{IntoResponses, Modify, OpenApi as _, ToSchema as _};

use crate::auth::rights;
use crate::error::{FaultJson, PROBLEM_JSON, ProblemJson};
use crate::wire::header::REQUEST_ID;
use crate::wire::schema::{ProcessAttributesSchema, QueueAttributesSchema};

#[derive(utoipa::OpenApi)]
#[openapi(
    security(("token" = [])),
    modifiers(&Schemes),
    info(
        title = "oncue",
        version = env!("CARGO_PKG_VERSION"),
        description = "A durable message-queue manager that runs sandboxed WASM handlers on \
            cue.\n\n\
            Times are texts such as `250ms`, `20s`, `5m` where you give them, and milliseconds \
            since the Unix epoch where they are points in time. Fields of a message are headers \
            named `oncue-FIELD`; text in them that is not visible ASCII, and `%`, is written as \
            `%` and two hexadecimal digits of a UTF-8 byte. Every error is \
            `application/problem+json` with a permanent `code`; all faults of an input are listed \
            at once. Every answer has `oncue-request-id`: yours, or a new one.\n\n\
            A host with tokens asks for one: `authorization: Bearer TOKEN`. Each operation says \
            which right it needs; lists show what the identity may see. A host without tokens \
            is on a loopback address and asks nobody.",
        license(name = "Apache-2.0", identifier = "Apache-2.0")
    ),
    components(schemas(ProblemJson, FaultJson, QueueAttributesSchema, ProcessAttributesSchema)),
    tags(
        (name = "queues", description = "Define, show, alter and delete queues"),
        (name = "messages", description = "Put, browse, show and remove messages"),
        (name = "leases", description = "Get messages under a lease, and settle them"),
        (name = "processes", description = "Process definitions: what is started for a queue"),
        (name = "plugins", description = "Components in the plugins directory"),
        (name = "triggering", description = "Why a queue does or does not start a task"),
        (name = "tasks", description = "What handlers did"),
        (name = "host", description = "The queue manager itself")
    )
)]
struct Base;

/// The document before the routes are added.
pub(crate) fn base() -> OpenApi {
    Base::openapi()
}

/// The sentence of a status, for the answers that any route of a kind can give.
fn meaning(status: u16) -> &'static str {
    match status {
        401 => "The request has no token, or one that is unknown or has expired",
        400 => "A name, parameter, header or the body is malformed; all faults are listed",
        403 => {
            "Understood and not allowed now, not permitted to the identity, or asked by a web page \
             of another origin"
        }
        404 => "The queue, message, lease, process, plugin or task is not there",
        408 => "The body did not arrive in time",
        409 => "The object is in another state than assumed",
        413 => "The body or the unit of work is too large",
        415 => "The content type is not accepted here",
        422 => "The definition has faults, all of them listed, or cannot be honoured",
        429 => {
            "The queue is full, the disk is behind, too many leases are open, or requests come \
             faster than the host allows; try again later"
        }
        500 => "A fault of the queue manager; report it with the request id",
        503 => "The host is busy, stopping, or its store does not write; try again later",
        _ => "A problem",
    }
}

fn problem(status: u16) -> Response {
    let schema = Ref::from_schema_name(ProblemJson::name());
    ResponseBuilder::new()
        .description(meaning(status))
        .content(
            PROBLEM_JSON,
            ContentBuilder::new().schema(Some(schema)).build(),
        )
        .build()
}

fn problems(statuses: &[u16]) -> BTreeMap<String, RefOr<Response>> {
    statuses
        .iter()
        .map(|status| (status.to_string(), problem(*status).into()))
        .collect()
}

macro_rules! problem_sets {
    ($($(#[$doc:meta])* $name:ident = [$($status:literal),+];)+) => {
        $($(#[$doc])*
        pub(crate) struct $name;

        impl IntoResponses for $name {
            fn responses() -> BTreeMap<String, RefOr<Response>> {
                problems(&[$($status),+])
            }
        })+
    };
}

problem_sets! {
    /// Any route.
    Common = [400, 401, 403, 429, 500, 503];
    /// Routes about one object.
    Absent = [404];
    /// Routes that change an object.
    Conflict = [409];
    /// Routes with a body.
    WithBody = [408, 413, 415];
    /// Routes that take definitions, or what cannot be honoured.
    Unprocessable = [422];
    /// Routes that fill something up.
    Full = [429];
}

/// How a client names itself.
struct Schemes;

impl Modify for Schemes {
    fn modify(&self, document: &mut OpenApi) {
        let token = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .bearer_format("oncue_...")
            .description(Some("A token that \"oncue token create\" made"))
            .build();
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("token", SecurityScheme::Http(token));
    }
}

/// Says which right an operation needs, from the one table.
fn say_right(operation: &mut Operation, method: &Method, path: &str) {
    let Some(found) = rights::find(method, path) else {
        return;
    };
    if found.rule.need == rights::Need::Nothing {
        operation.security = Some(Vec::new());
    }
    let said = operation.description.take().unwrap_or_default();
    let needs = found.rule.need.sentence();
    operation.description = Some(format!("{said}\n\n{needs}").trim_start().to_owned());
}

/// Adds what is the same for every answer, and what each operation needs.
pub(crate) fn finish(mut document: OpenApi) -> OpenApi {
    let request_id = HeaderBuilder::new()
        .schema(Some(ObjectBuilder::new().schema_type(Type::String).build()))
        .description(Some("Names the request in the host's log"))
        .build();
    for (path, item) in &mut document.paths.paths {
        let operations = [
            (Method::GET, &mut item.get),
            (Method::PUT, &mut item.put),
            (Method::POST, &mut item.post),
            (Method::DELETE, &mut item.delete),
            (Method::PATCH, &mut item.patch),
        ];
        for (method, operation) in operations {
            let Some(operation) = operation else {
                continue;
            };
            say_right(operation, &method, path);
            bodies::plain(operation);
            bodies::own(operation);
            parameters::describe(operation, path);
            examples::add(operation, method.as_str(), path);
            for response in operation.responses.responses.values_mut() {
                if let RefOr::T(response) = response {
                    response
                        .headers
                        .insert(REQUEST_ID.to_owned(), RefOr::T(request_id.clone()));
                }
            }
        }
    }
    document
}
