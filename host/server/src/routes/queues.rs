//! Queues: list, define, show, alter, delete, clear.

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use oncue_core::code::Code;
use oncue_core::cursor;
use oncue_core::definition::{Change, QueuePatch};
use oncue_core::names::QueueName;
use oncue_manager::status::{QueueFilter, QueuePlace, QueueSort, Seen};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Answer, json};
use crate::app::App;
use crate::audit::Told;
use crate::auth::Who;
use crate::auth::identity::Right;
use crate::error::Problem;
use crate::extract::{Fields, Query, QueuePath};
use crate::openapi::{Absent, Common, Conflict, Unprocessable, WithBody};
use crate::wire::fields::{boolean, text, word};
use crate::wire::page::{Paging, QueuesPage};
use crate::wire::schema::{QueueAttributesSchema, QueueSchema};

/// The words of the parameter `order`.
const ASCENDING: &str = "ascending";
const DESCENDING: &str = "descending";

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::default()
        .routes(routes!(list_queues))
        .routes(routes!(define_queue, show_queue, alter_queue, delete_queue))
        .routes(routes!(clear_queue))
}

/// How many messages were removed.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Cleared {
    /// Messages removed. Those in a task's or a consumer's hand stay.
    cleared: u64,
}

fn patch(fields: &Fields) -> Answer<QueuePatch> {
    QueuePatch::parse(&fields.0)
        .map_err(|faults| Problem::with_faults(Code::InvalidDefinition, faults))
}

/// Holds whoever defines a queue to the rights that lie in the definition: which process serves it,
/// where its failed messages go, and what the host puts to it by a schedule.
fn check_rights(who: &Who, queue: &QueueName, patch: &QueuePatch) -> Answer<()> {
    if patch.process.is_some() {
        who.must(Right::Bind, queue)?;
    }
    if let Some(Change::Set(Some(other))) = &patch.backout_queue {
        who.must_any(&[Right::Put, Right::Define], other)?;
    }
    if let Some(Change::Set(Some(_))) = &patch.schedule {
        who.must(Right::Put, queue)?;
    }
    Ok(())
}

/// What the list was asked for.
#[derive(Default)]
struct Asked {
    search: String,
    hides_empty: bool,
    sort: QueueSort,
    descending: Option<bool>,
    page: Paging,
}

impl Asked {
    fn read(query: &Query) -> Answer<Self> {
        let mut asked = Self::default();
        query.read(
            &["cursor", "max", "search", "hide-empty", "sort", "order"],
            |name, value| {
                match name {
                    "search" => text(value)?.clone_into(&mut asked.search),
                    "hide-empty" => asked.hides_empty = boolean(value)?,
                    "sort" => asked.sort = word(value, QueueSort::ALL, QueueSort::as_str)?,
                    "order" => {
                        let order = |descending| if descending { DESCENDING } else { ASCENDING };
                        asked.descending = Some(word(value, [false, true], order)?);
                    }
                    _ => asked.page.read(name, value)?,
                }
                Ok(())
            },
        )?;
        Ok(asked)
    }

    /// Names in their order, the greatest of all else first.
    fn is_descending(&self) -> bool {
        self.descending.unwrap_or(self.sort != QueueSort::Name)
    }

    /// The list that a cursor belongs to.
    fn list(&self) -> [&str; 5] {
        let flag = |is_set| if is_set { "1" } else { "" };
        [
            "queues",
            self.sort.as_str(),
            flag(self.is_descending()),
            flag(self.hides_empty),
            &self.search,
        ]
    }
}

/// A place as it stands in a cursor.
fn written(place: &QueuePlace) -> String {
    format!("{:x}.{}", place.key, place.name)
}

fn read_place(text: &str) -> Option<QueuePlace> {
    let (key, name) = text.split_once('.')?;
    Some(QueuePlace {
        key: u64::from_str_radix(key, 16).ok()?,
        name: QueueName::new(name).ok()?,
    })
}

/// The queues that the identity may see, page by page. In a list that is sorted by anything but the
/// name, a queue that changes its place between two pages may be on both or on neither.
#[utoipa::path(
    get, path = "/v1/queues", tag = "queues",
    params(
        ("cursor" = Option<String>, Query,
            description = "`next` of the page before; all else but `max` must be as it was there"),
        ("max" = Option<u32>, Query, description = "At most so many, 1 to 1000; 100 if left out"),
        ("search" = Option<String>, Query,
            description = "Only those whose name contains this text, in capitals or not"),
        ("hide-empty" = Option<bool>, Query, description = "Only those that hold messages"),
        ("sort" = Option<String>, Query,
            description = "`name`, `depth`, `oldest-age` or `running`; `name` if left out"),
        ("order" = Option<String>, Query,
            description = "`ascending` or `descending`; ascending for names and descending for \
                           numbers if left out")
    ),
    responses((status = 200, description = "A page", body = QueuesPage), Common)
)]
async fn list_queues(
    State(app): State<App>,
    Who(identity): Who,
    query: Query,
) -> Answer<Json<Value>> {
    let asked = Asked::read(&query)?;
    let list = asked.list();
    let found = app.handle.queue_page(QueueFilter {
        seen: Seen::by(move |queue| identity.sees(queue)),
        search: asked.search.clone(),
        non_empty: asked.hides_empty,
        sort: asked.sort,
        descending: asked.is_descending(),
        after: asked.page.after(&list, read_place)?,
        max: Some(asked.page.max),
        ..QueueFilter::default()
    });
    let found = found.await?;
    json(&QueuesPage {
        queues: found.queues,
        matching: found.matching,
        defined: found.defined,
        next: found
            .next
            .map(|place| cursor::seal(&list, &written(&place))),
    })
}

/// Defines a queue, or lays the attributes over those of one that is there. Repeating it changes
/// nothing.
#[utoipa::path(
    put, path = "/v1/queues/{queue}", tag = "queues",
    params(("queue" = String, Path, description = "The queue")),
    request_body(content = Option<QueueAttributesSchema>, description = "May be empty"),
    responses(
        (status = 200, description = "The queue was there", body = QueueSchema),
        (status = 201, description = "The queue was made", body = QueueSchema,
            headers(("location" = String, description = "The queue's path"))),
        Common, WithBody, Conflict, Unprocessable
    )
)]
async fn define_queue(
    State(app): State<App>,
    QueuePath(queue): QueuePath,
    who: Who,
    query: Query,
    fields: Fields,
) -> Answer<Response> {
    query.nothing()?;
    let location = format!("/v1/queues/{queue}");
    let patch = patch(&fields)?;
    check_rights(&who, &queue, &patch)?;
    let (view, made) = app.handle.define_queue(queue, patch).await?;
    defined(json(&view)?, made, &location)
}

/// The answer to a definition: `201` and where it is when it is new.
pub(super) fn defined(view: Json<Value>, made: bool, location: &str) -> Answer<Response> {
    if !made {
        return Ok(view.into_response());
    }
    // Names have no character that a path or a header could not bear.
    let location = HeaderValue::try_from(location).map_err(|_bad| Problem::internal())?;
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], view).into_response())
}

/// One queue.
#[utoipa::path(
    get, path = "/v1/queues/{queue}", tag = "queues",
    params(("queue" = String, Path, description = "The queue")),
    responses((status = 200, description = "The queue", body = QueueSchema), Common, Absent)
)]
async fn show_queue(
    State(app): State<App>,
    QueuePath(queue): QueuePath,
    query: Query,
) -> Answer<Json<Value>> {
    query.nothing()?;
    json(&app.handle.queue(queue).await?)
}

/// Alters a queue: attributes that are given replace an operator's earlier values, null takes one
/// away so that the manifest's value or the default shows again.
#[utoipa::path(
    patch, path = "/v1/queues/{queue}", tag = "queues",
    params(("queue" = String, Path, description = "The queue")),
    request_body(content = Option<QueueAttributesSchema>, description = "Empty changes nothing"),
    responses(
        (status = 200, description = "The queue as it is now", body = QueueSchema),
        Common, Absent, WithBody, Conflict, Unprocessable
    )
)]
async fn alter_queue(
    State(app): State<App>,
    QueuePath(queue): QueuePath,
    who: Who,
    query: Query,
    fields: Fields,
) -> Answer<Json<Value>> {
    query.nothing()?;
    let patch = patch(&fields)?;
    check_rights(&who, &queue, &patch)?;
    json(&app.handle.alter_queue(queue, patch).await?)
}

/// Deletes a queue. Refused while it holds messages, unless forced.
#[utoipa::path(
    delete, path = "/v1/queues/{queue}", tag = "queues",
    params(
        ("queue" = String, Path, description = "The queue"),
        ("force" = Option<bool>, Query, description = "Delete its messages too")
    ),
    responses((status = 204, description = "Deleted"), Common, Absent, Conflict)
)]
async fn delete_queue(
    State(app): State<App>,
    QueuePath(queue): QueuePath,
    query: Query,
) -> Answer<(Extension<Told>, StatusCode)> {
    let mut force = false;
    query.read(&["force"], |_, value| {
        force = boolean(value)?;
        Ok(())
    })?;
    let removed = app.handle.delete_queue(queue, force).await?;
    Ok((Extension(Told::messages(removed)), StatusCode::NO_CONTENT))
}

/// Removes all messages of a queue, but for those in a task's or a consumer's hand.
#[utoipa::path(
    post, path = "/v1/queues/{queue}/clear", tag = "queues",
    params(("queue" = String, Path, description = "The queue")),
    responses((status = 200, description = "Done", body = Cleared), Common, Absent)
)]
async fn clear_queue(
    State(app): State<App>,
    QueuePath(queue): QueuePath,
    query: Query,
) -> Answer<(Extension<Told>, Json<Cleared>)> {
    query.nothing()?;
    let cleared = app.handle.clear(&queue).await?;
    let told = Extension(Told::messages(cleared));
    Ok((told, Json(Cleared { cleared })))
}
