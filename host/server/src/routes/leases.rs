//! Gets by outside consumers: under leases, which they settle.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use oncue_core::code::Code;
use oncue_core::definition::Raw;
use oncue_core::names::QueueName;
use oncue_core::quantity::format_millis;
use oncue_core::time::Millis;
use oncue_core::trace::{PARENT, TraceContext};
use oncue_manager::handle::{DEFAULT_LEASE, GetRequest, Leased, MAX_GET, MAX_LEASE, MIN_LEASE};
use oncue_manager::tasks::port::MAX_WAIT;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Answer;
use crate::app::App;
use crate::auth::Standing;
use crate::content::{self, MAX_JSON_BODIES};
use crate::extract::{Fields, Query, QueuePath, TokenPath};
use crate::openapi::{Absent, Common, Conflict, Full, WithBody};
use crate::wire::fields::{integer, millis, shown, text};
use crate::wire::message::{MessageJson, Place};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::default()
        .routes(routes!(get_messages))
        .routes(routes!(ack_lease))
        .routes(routes!(nack_lease))
        .routes(routes!(extend_lease))
}

/// Gets messages under leases: each comes back when its lease ends unsettled, and that counts as a
/// failed attempt.
///
/// With `max` 1, the default, the answer is the message: its body is the body, its fields are
/// headers, its token is `oncue-lease`; with `accept: application/json` all of it is JSON. With a
/// larger `max` the answer is a JSON list, also of one. `204` when none came in time.
#[utoipa::path(
    post, path = "/v1/queues/{queue}/get", tag = "leases",
    params(
        ("queue" = String, Path, description = "The queue"),
        ("wait" = Option<String>, Query,
            description = "How long to wait for a first message, at most `60s`; `0s` if left out"),
        ("max" = Option<u32>, Query, description = "At most so many, 1 to 1000; 1 if left out"),
        ("lease" = Option<String>, Query,
            description = "How long the leases hold, `100ms` to `12h`; `30s` if left out"),
        ("id" = Option<String>, Query, description = "Only this message"),
        ("correlation-id" = Option<String>, Query,
            description = "Only messages with this correlation id"),
        ("traceparent" = Option<String>, Header,
            description = "The caller's place in a trace: linked from the messages' traces")
    ),
    responses(
        (status = 200, description = "One message, or a list", content(
            (Vec<u8> = "*/*"),
            (GotSchema = "application/json")
        )),
        (status = 204, description = "No message came in time"),
        Common, Absent, Full
    )
)]
async fn get_messages(
    State(app): State<App>,
    QueuePath(queue): QueuePath,
    standing: Standing,
    query: Query,
    headers: HeaderMap,
) -> Answer<Response> {
    let request = read_get(queue.clone(), &query)?;
    let is_list = request.max > 1;
    let handle = app.handle.called_from(caller(&headers));
    let _place = app.admit_waiting()?;
    let leased = tokio::select! {
        // First, so that messages that are already leased are not dropped for a stop.
        biased;
        leased = handle.get(request) => leased?,
        () = app.stopped() => Vec::new(),
        () = standing.lost() => return Err(Standing::problem()),
    };
    if leased.is_empty() {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    match leased.as_slice() {
        [one] if !is_list => content::one(&app, &one.message, place(&queue, one), &headers).await,
        several => Ok(Json(list(&app, &queue, several).await?).into_response()),
    }
}

/// One message or a list of them.
#[derive(ToSchema)]
#[schema(as = Got)]
#[serde(untagged)]
#[expect(
    dead_code,
    reason = "only describes; the answer is written from its parts"
)]
pub(super) enum GotSchema {
    /// With `max` 1.
    One(Box<MessageJson>),
    /// With a larger `max`.
    Several(Vec<MessageJson>),
}

fn place<'a>(queue: &'a QueueName, leased: &Leased) -> Place<'a> {
    let lease = Some((leased.token, leased.until));
    Place {
        queue,
        state: None,
        lease,
    }
}

/// A list with as many bodies as its bound allows.
async fn list(app: &App, queue: &QueueName, leased: &[Leased]) -> Answer<Vec<MessageJson>> {
    let mut left = MAX_JSON_BODIES;
    let mut list = Vec::with_capacity(leased.len());
    for one in leased {
        list.push(content::as_json(app, &one.message, place(queue, one), &mut left).await?);
    }
    Ok(list)
}

fn read_get(queue: QueueName, query: &Query) -> Answer<GetRequest> {
    let mut request = GetRequest {
        queue,
        wait: 0,
        max: 1,
        lease: DEFAULT_LEASE,
        id: None,
        correlation_id: None,
    };
    let mut waits_too_long = false;
    let known = ["wait", "max", "lease", "id", "correlation-id"];
    let read = query.read(&known, |name, value| {
        match name {
            "wait" => {
                request.wait = millis(value)?;
                waits_too_long = request.wait > MAX_WAIT;
                if waits_too_long {
                    let most = format_millis(MAX_WAIT);
                    return Err(format!(
                        "is {}; use at most {most}, and get again",
                        shown(value)
                    ));
                }
            }
            "max" => request.max = integer(value, 1, u64::from(MAX_GET))?,
            "lease" => request.lease = lease(value)?,
            "id" => {
                let id = text(value)?.parse();
                request.id =
                    Some(id.map_err(|_error| {
                        format!("is {}, which is no message's id", shown(value))
                    })?);
            }
            _ => request.correlation_id = Some(text(value)?.to_owned()),
        }
        Ok(())
    });
    match read {
        // A code of its own only where it is the whole truth.
        Err(problem) if waits_too_long => Err(problem.or_if_alone(Code::WaitTooLong)),
        Err(problem) => Err(problem),
        Ok(()) => Ok(request),
    }
}

fn lease(raw: &Raw) -> Result<Millis, String> {
    let lease = millis(raw)?;
    if (MIN_LEASE..=MAX_LEASE).contains(&lease) {
        return Ok(lease);
    }
    let (least, most) = (format_millis(MIN_LEASE), format_millis(MAX_LEASE));
    Err(format!(
        "is {}; use a time from {least} to {most}",
        shown(raw)
    ))
}

/// The place in its own trace from which a caller asks. One that cannot be understood, or is given
/// twice, is none.
fn caller(headers: &HeaderMap) -> Option<TraceContext> {
    let mut given = headers.get_all(PARENT).iter();
    let one = given.next().filter(|_| given.next().is_none())?;
    TraceContext::parse(one.to_str().ok()?)
}

/// Settles a leased message for good.
#[utoipa::path(
    post, path = "/v1/leases/{token}/ack", tag = "leases",
    params(
        ("token" = String, Path, description = "The lease"),
        ("traceparent" = Option<String>, Header,
            description = "The caller's place in a trace: linked from the message's trace")
    ),
    responses((status = 204, description = "The message is gone"), Common, Absent, Conflict)
)]
async fn ack_lease(
    State(app): State<App>,
    TokenPath(token): TokenPath,
    query: Query,
    headers: HeaderMap,
) -> Answer<StatusCode> {
    query.nothing()?;
    let handle = app.handle.called_from(caller(&headers));
    handle.ack(token).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Why a message is given back, and when it may be got again.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schema(as = Nack)]
#[expect(dead_code, reason = "only describes; the reader works on Raw")]
pub(super) struct NackSchema {
    /// Why; kept in the dead-letter record.
    reason: Option<String>,
    /// A time such as `5s`; the queue's retry delay if left out.
    delay: Option<String>,
}

/// Gives a leased message back: a failed attempt. At the backout threshold it moves to the backout
/// queue. The fields may stand in the query instead.
#[utoipa::path(
    post, path = "/v1/leases/{token}/nack", tag = "leases",
    params(
        ("token" = String, Path, description = "The lease"),
        ("traceparent" = Option<String>, Header,
            description = "The caller's place in a trace: linked from the message's trace")
    ),
    request_body(content = Option<NackSchema>, description = "May be empty"),
    responses((status = 204, description = "Given back"), Common, Absent, Conflict, WithBody)
)]
async fn nack_lease(
    State(app): State<App>,
    TokenPath(token): TokenPath,
    query: Query,
    headers: HeaderMap,
    fields: Fields,
) -> Answer<StatusCode> {
    let (mut reason, mut delay) = (None, None);
    fields
        .or_query(query)
        .read(&["reason", "delay"], |name, value| {
            match name {
                "reason" => reason = Some(text(value)?.to_owned()),
                _ => delay = Some(millis(value)?),
            }
            Ok(())
        })?;
    let handle = app.handle.called_from(caller(&headers));
    handle.nack(token, reason, delay).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// For how much longer a lease is to hold.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Extend)]
#[expect(dead_code, reason = "only describes; the reader works on Raw")]
pub(super) struct ExtendSchema {
    /// A time from now, `100ms` to `12h`; `30s` if left out.
    lease: Option<String>,
}

/// When a lease ends now.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Extended {
    /// Milliseconds since the Unix epoch.
    until: u64,
}

/// Makes a lease hold for longer, counted from now. The field may stand in the query instead.
#[utoipa::path(
    post, path = "/v1/leases/{token}/extend", tag = "leases",
    params(("token" = String, Path, description = "The lease")),
    request_body(content = Option<ExtendSchema>, description = "May be empty"),
    responses(
        (status = 200, description = "Extended", body = Extended),
        Common, Absent, Conflict, WithBody
    )
)]
async fn extend_lease(
    State(app): State<App>,
    TokenPath(token): TokenPath,
    query: Query,
    fields: Fields,
) -> Answer<Json<Extended>> {
    let mut wanted = DEFAULT_LEASE;
    fields.or_query(query).read(&["lease"], |_, value| {
        wanted = lease(value)?;
        Ok(())
    })?;
    let until = app.handle.extend(token, wanted).await?;
    Ok(Json(Extended { until: until.0 }))
}
