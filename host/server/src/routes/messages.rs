//! Messages: put, browse, show, remove, release.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use oncue_core::code::Code;
use oncue_core::definition::Fault;
use oncue_manager::tasks::port::{PutOptions, PutRequest};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Answer;
use crate::app::App;
use crate::auth::Who;
use crate::content;
use crate::error::Problem;
use crate::extract::{IdPath, Payload, Query, QueuePath};
use crate::openapi::{Absent, Common, Conflict, Full, WithBody};
use crate::wire::cloud_event::{self, BATCH, STRUCTURED, essence};
use crate::wire::fields::{boolean, integer, text};
use crate::wire::message::{MessageJson, Place};
use crate::wire::unit::PutAnswerJson;
use crate::wire::{header as names, put};

/// Messages of one page when nothing else is asked for.
const DEFAULT_PAGE: usize = 100;

/// Most messages of one page.
const MAX_PAGE: u64 = 1_000;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::default()
        .routes(routes!(put_message, browse_messages))
        .routes(routes!(show_message, remove_message))
        .routes(routes!(release_message))
}

/// Puts a message: the body is the body, the headers are its fields. Answered when it is durable. A
/// repeat under an idempotency key answers `200` with the first one's id.
///
/// CloudEvents 1.0 are accepted in binary mode (`ce-` headers) and in structured mode
/// (`application/cloudevents+json`): the data becomes the body, `datacontenttype` the content type,
/// every other attribute the property `ce-NAME`, and source and id the idempotency key unless the
/// request has one of its own.
#[utoipa::path(
    post, path = "/v1/queues/{queue}/messages", tag = "messages",
    params(
        ("queue" = String, Path, description = "The queue"),
        ("oncue-correlation-id" = Option<String>, Header,
            description = "Ties a reply to its request"),
        ("oncue-reply-to" = Option<String>, Header, description = "The queue for a reply"),
        ("oncue-group" = Option<String>, Header,
            description = "Members of a group are never handled two at once"),
        ("oncue-group-sequence" = Option<u32>, Header,
            description = "Your own number within the group"),
        ("oncue-priority" = Option<u8>, Header, description = "0 to 9; higher is got first"),
        ("oncue-persistence" = Option<String>, Header,
            description = "`persistent` or `non-persistent`"),
        ("oncue-expiry" = Option<String>, Header,
            description = "How long it lives: a time such as `10m`, or `never`"),
        ("oncue-delay" = Option<String>, Header,
            description = "How long it waits before it may be taken: a time such as `5s`"),
        ("idempotency-key" = Option<String>, Header, description = "Makes a repeat harmless"),
        ("traceparent" = Option<String>, Header,
            description = "The W3C trace context that the message belongs to; one that cannot be \
                           understood is ignored"),
        ("tracestate" = Option<String>, Header, description = "Goes with traceparent"),
        ("oncue-property-NAME" = Option<String>, Header,
            description = "A property; any NAME, as often as you like")
    ),
    request_body(content = Vec<u8>, content_type = "*/*", description = "The message's body"),
    responses(
        (status = 201, description = "The message is durable", body = PutAnswerJson,
            headers(("location" = String, description = "The message's path"))),
        (status = 200, description = "An earlier put with this idempotency key had made it",
            body = PutAnswerJson,
            headers(("location" = String, description = "The message's path"))),
        Common, Absent, Conflict, Full, WithBody
    )
)]
async fn put_message(
    State(app): State<App>,
    QueuePath(queue): QueuePath,
    who: Who,
    query: Query,
    request: Request,
) -> Answer<Response> {
    query.nothing()?;
    let (parts, body) = request.into_parts();
    let payload = Payload::read(&app, &parts, body).await?;
    let (options, body) = read_put(&parts.headers, payload.bytes.clone())?;
    // The head's buffer goes back to the connection while the put waits for the disk.
    drop(parts);
    let path = format!("/v1/queues/{queue}/messages");
    let answers = app
        .handle
        .put(
            vec![PutRequest {
                queue,
                body,
                options,
            }],
            who.putter(),
        )
        .await?;
    let [answer] = answers.as_slice() else {
        tracing::error!("one put was answered {} times", answers.len());
        return Err(Problem::internal());
    };
    let id = answer.id.to_string();
    // Names and ids have no character that a path or a header could not bear.
    let value = |text: &str| HeaderValue::try_from(text).map_err(|_bad| Problem::internal());
    let headers = [
        (header::LOCATION, value(&format!("{path}/{id}"))?),
        (HeaderName::from_static(names::ID), value(&id)?),
    ];
    let status = if answer.repeated {
        StatusCode::OK
    } else {
        StatusCode::CREATED
    };
    Ok((
        status,
        headers,
        Json(PutAnswerJson {
            id,
            repeated: answer.repeated,
        }),
    )
        .into_response())
}

/// Reads a put, a CloudEvent or not, and names all its faults at once.
fn read_put(headers: &HeaderMap, body: Bytes) -> Answer<(PutOptions, Bytes)> {
    let content_type = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    let content_type = essence(&String::from_utf8_lossy(content_type.unwrap_or_default()));
    if content_type == BATCH {
        let detail = format!(
            "content-type is \"{BATCH}\"; send events one by one, or put them by POST /v1/units"
        );
        return Err(Problem::new(Code::UnsupportedMediaType, detail));
    }
    let (mut options, mut faults) = match put::from_headers(headers) {
        Ok(options) => (options, Vec::new()),
        Err(faults) => (PutOptions::default(), faults),
    };
    let mut code = put_code(&faults);
    let mut body = body;
    if content_type == STRUCTURED {
        let event = serde_json::from_slice(&body).map_err(|error| {
            Problem::new(
                Code::InvalidEvent,
                format!("the body is not a JSON object: {error}"),
            )
        })?;
        match cloud_event::from_structured(event, &mut options) {
            Ok(data) => body = data,
            Err(more) => {
                faults.extend(more);
                code = Code::InvalidEvent;
            }
        }
    }
    if faults.is_empty() {
        Ok((options, body))
    } else {
        Err(Problem::with_faults(code, faults))
    }
}

/// The code of faults in headers: of the event, if they are only in its attributes.
fn put_code(faults: &[Fault]) -> Code {
    let of_event = |fault: &Fault| {
        fault
            .path
            .first()
            .is_some_and(|name| name.starts_with(names::EVENT_PREFIX))
    };
    if faults.iter().all(of_event) {
        Code::InvalidEvent
    } else {
        Code::InvalidMessage
    }
}

/// One page of a queue's messages, without their bodies.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct PageJson {
    /// The messages, in the order in which they would be got; those that wait come last.
    messages: Vec<MessageJson>,
    /// Where the next page starts; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Looks at messages without taking them. Bodies are left out.
#[utoipa::path(
    get, path = "/v1/queues/{queue}/messages", tag = "messages",
    params(
        ("queue" = String, Path, description = "The queue"),
        ("cursor" = Option<String>, Query, description = "`next` of the page before"),
        ("max" = Option<u32>, Query, description = "At most so many, 1 to 1000; 100 if left out"),
        ("ready" = Option<bool>, Query, description = "Only those that may be taken now")
    ),
    responses((status = 200, description = "A page", body = PageJson), Common, Absent)
)]
async fn browse_messages(
    State(app): State<App>,
    QueuePath(queue): QueuePath,
    query: Query,
) -> Answer<Json<PageJson>> {
    let (mut cursor, mut max, mut ready_only) = (None, DEFAULT_PAGE, false);
    query.read(&["cursor", "max", "ready"], |name, value| {
        match name {
            "cursor" => cursor = Some(text(value)?.to_owned()),
            "max" => max = integer(value, 1, MAX_PAGE)?,
            _ => ready_only = boolean(value)?,
        }
        Ok(())
    })?;
    let (handle, name) = (app.handle.clone(), queue.clone());
    let page =
        content::off_the_loop(move || handle.browse(&name, cursor, max, ready_only)).await??;
    let messages = page
        .messages
        .iter()
        .map(|browsed| {
            let place = Place {
                queue: &queue,
                state: Some(browsed.state),
                lease: None,
            };
            MessageJson::new(&browsed.message, place)
        })
        .collect();
    Ok(Json(PageJson {
        messages,
        next: page.next,
    }))
}

/// One message, which stays where it is. The body is the body, its fields are headers; with
/// `accept: application/json` all of it is JSON.
#[utoipa::path(
    get, path = "/v1/queues/{queue}/messages/{id}", tag = "messages",
    params(
        ("queue" = String, Path, description = "The queue"),
        ("id" = String, Path, description = "The message")
    ),
    responses(
        (status = 200, description = "The message", content(
            (Vec<u8> = "*/*"),
            (MessageJson = "application/json")
        )),
        Common, Absent
    )
)]
async fn show_message(
    State(app): State<App>,
    QueuePath(queue): QueuePath,
    IdPath(id): IdPath,
    query: Query,
    headers: HeaderMap,
) -> Answer<Response> {
    query.nothing()?;
    let (handle, name) = (app.handle.clone(), queue.clone());
    let browsed = content::off_the_loop(move || handle.message(&name, id)).await??;
    let place = Place {
        queue: &queue,
        state: Some(browsed.state),
        lease: None,
    };
    content::one(&app, &browsed.message, place, &headers).await
}

/// Removes a message for good. Refused while a task or a consumer has it.
#[utoipa::path(
    delete, path = "/v1/queues/{queue}/messages/{id}", tag = "messages",
    params(
        ("queue" = String, Path, description = "The queue"),
        ("id" = String, Path, description = "The message")
    ),
    responses((status = 204, description = "Removed"), Common, Absent, Conflict)
)]
async fn remove_message(
    State(app): State<App>,
    QueuePath(queue): QueuePath,
    IdPath(id): IdPath,
    query: Query,
) -> Answer<StatusCode> {
    query.nothing()?;
    app.handle.remove(&queue, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Frees a parked message, or one that waits: it may be taken at once.
#[utoipa::path(
    post, path = "/v1/queues/{queue}/messages/{id}/release", tag = "messages",
    params(
        ("queue" = String, Path, description = "The queue"),
        ("id" = String, Path, description = "The message")
    ),
    responses((status = 204, description = "Released"), Common, Absent, Conflict)
)]
async fn release_message(
    State(app): State<App>,
    QueuePath(queue): QueuePath,
    IdPath(id): IdPath,
    query: Query,
) -> Answer<StatusCode> {
    query.nothing()?;
    app.handle.release(&queue, id).await?;
    Ok(StatusCode::NO_CONTENT)
}
