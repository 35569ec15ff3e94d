//! Many definitions in one request: all of them or none.

use std::collections::{BTreeMap, BTreeSet};

use axum::Json;
use axum::extract::State;
use oncue_core::code::Code;
use oncue_core::definition::{Fault, ProcessPatch, QueuePatch, Raw};
use oncue_core::names::{ProcessName, QueueName};
use oncue_manager::definition_set::{Defined, DefinitionChange, DefinitionSet, MAX_DEFINITIONS};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Answer;
use crate::app::App;
use crate::audit::Entry;
use crate::auth::Who;
use crate::auth::identity::{Identity, Right};
use crate::error::Problem;
use crate::extract::{Fields, Query};
use crate::openapi::{Common, Conflict, Unprocessable, WithBody};
use crate::wire::fields::shown;
use crate::wire::schema::{ProcessAttributesSchema, QueueAttributesSchema};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::default()
        .routes(routes!(apply_definitions))
        .routes(routes!(look_at_definitions))
}

/// The operator's values that definitions shall have, by name: exactly these.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = Definitions)]
#[expect(dead_code, reason = "only describes; the reader works on Raw")]
pub(super) struct DefinitionsSchema {
    /// Process definitions.
    process: Option<BTreeMap<String, ProcessAttributesSchema>>,
    /// Queues.
    queue: Option<BTreeMap<String, QueueAttributesSchema>>,
}

/// What changed, or would.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Changes {
    /// Each change, processes first; none when all is as asked already.
    #[schema(value_type = Vec<ChangeSchema>)]
    changes: Vec<DefinitionChange>,
}

/// One change of one attribute of the operator's values, or a definition that is new.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = DefinitionChange)]
#[expect(
    dead_code,
    reason = "only describes; the manager's view serialises itself"
)]
pub(super) struct ChangeSchema {
    /// `+` set, `~` set to another value, `-` taken away.
    change: String,
    /// `process` or `queue`.
    what: String,
    /// Of which.
    name: String,
    /// Which attribute; absent when the definition itself is new.
    #[schema(required = false)]
    attribute: Option<String>,
    /// The operator's value before.
    #[schema(required = false)]
    from: Option<Value>,
    /// The operator's value afterwards.
    #[schema(required = false)]
    to: Option<Value>,
}

/// Gives each definition that is named exactly these values of the operator's: others of theirs
/// are taken away, so that the manifest's or the default shows again. What is not named stays. All
/// of it is checked first and made durable at once, or none of it. The form is that of
/// `oncue export -o json`; up to 10 000 definitions.
#[utoipa::path(
    post, path = "/v1/definitions", tag = "queues",
    request_body(content = Option<DefinitionsSchema>, description = "Empty changes nothing"),
    responses(
        (status = 200, description = "All of it is in force", body = Changes),
        Common, WithBody, Conflict, Unprocessable
    )
)]
async fn apply_definitions(
    State(app): State<App>,
    who: Who,
    query: Query,
    fields: Fields,
) -> Answer<Json<Changes>> {
    query.nothing()?;
    let set = definitions(&fields.0)?;
    let agreed = looked_at(&app, &who, set.clone()).await?;
    let changes = app.handle.apply_definitions(set, agreed).await?;
    note(&app, &who.0, &changes);
    Ok(Json(Changes { changes }))
}

/// What `POST /v1/definitions` would change now, or why it would be refused. Nothing is changed.
#[utoipa::path(
    post, path = "/v1/definitions/changes", tag = "queues",
    request_body(content = Option<DefinitionsSchema>, description = "Empty changes nothing"),
    responses(
        (status = 200, description = "What would change", body = Changes),
        Common, WithBody, Conflict, Unprocessable
    )
)]
async fn look_at_definitions(
    State(app): State<App>,
    who: Who,
    query: Query,
    fields: Fields,
) -> Answer<Json<Changes>> {
    query.nothing()?;
    let set = definitions(&fields.0)?;
    let changes = looked_at(&app, &who, set).await?;
    Ok(Json(Changes { changes }))
}

/// Looks what would change, and holds the identity to the rights that it takes. What is done later
/// is what was looked at, so that nothing slips in between.
async fn looked_at(app: &App, who: &Who, set: DefinitionSet) -> Answer<Vec<DefinitionChange>> {
    for (queue, _) in &set.queues {
        who.must(Right::Define, queue)?;
    }
    if !set.processes.is_empty() {
        who.must_everywhere(Right::Bind)?;
    }
    let changes = app.handle.look_at_definitions(set).await?;
    for change in changes
        .iter()
        .filter(|change| change.what == Defined::Queue)
    {
        match (change.attribute, &change.to) {
            (Some("process"), _) => {
                let queue = QueueName::new(&change.name).map_err(Problem::from)?;
                who.must(Right::Bind, &queue)?;
            }
            (Some("backout-queue"), Some(Raw::Text(other))) if !other.is_empty() => {
                let other = QueueName::new(other).map_err(Problem::from)?;
                who.must_any(&[Right::Put, Right::Define], &other)?;
            }
            _ => {}
        }
    }
    Ok(changes)
}

/// Writes each definition that changed into the audit log, beside the entry of the request.
fn note(app: &App, identity: &Identity, changes: &[DefinitionChange]) {
    let Some(audit) = &app.options.security.audit else {
        return;
    };
    let changed: BTreeSet<(&str, &str)> = changes
        .iter()
        .map(|change| (change.what.as_str(), change.name.as_str()))
        .collect();
    for (what, name) in changed {
        let action = format!("{what}-define");
        audit.note(&Entry::new(&action, name, "done").by(Some(&identity.name), None));
    }
}

/// Reads all definitions, and names all their faults at once.
fn definitions(raw: &Raw) -> Answer<DefinitionSet> {
    let mut set = DefinitionSet::default();
    let mut faults = Vec::new();
    let Raw::Table(tables) = raw else {
        let fault = Fault::new("body", format!("is {}; use an object", shown(raw)));
        return Err(refused(vec![fault]));
    };
    for (kind, table) in tables {
        match kind.as_str() {
            "process" => {
                let name = |text: &str| ProcessName::new(text);
                read(
                    kind,
                    table,
                    name,
                    ProcessPatch::parse,
                    &mut set.processes,
                    &mut faults,
                );
            }
            "queue" => {
                let name = |text: &str| QueueName::new(text);
                read(
                    kind,
                    table,
                    name,
                    QueuePatch::parse,
                    &mut set.queues,
                    &mut faults,
                );
            }
            other => faults.push(Fault::new(
                other,
                "is no kind of definition; use \"process\" or \"queue\"",
            )),
        }
    }
    let count = set.processes.len() + set.queues.len();
    if count > MAX_DEFINITIONS {
        let message = format!("has {count} definitions of {MAX_DEFINITIONS}; send them in parts");
        faults.push(Fault::new("body", message));
    }
    if faults.is_empty() {
        Ok(set)
    } else {
        Err(refused(faults))
    }
}

fn refused(faults: Vec<Fault>) -> Problem {
    Problem::with_faults(Code::InvalidDefinition, faults)
}

fn read<N: PartialEq, P, E: std::fmt::Display>(
    kind: &str,
    table: &Raw,
    name_of: impl Fn(&str) -> Result<N, E>,
    parse: impl Fn(&Raw) -> Result<P, Vec<Fault>>,
    into: &mut Vec<(N, P)>,
    faults: &mut Vec<Fault>,
) {
    let Raw::Table(definitions) = table else {
        let message = format!("is {}; use an object of names", shown(table));
        faults.push(Fault::new(kind, message));
        return;
    };
    let whole = |message: String| Fault {
        path: Vec::new(),
        message,
    };
    let mut known = BTreeSet::new();
    for (text, attributes) in definitions {
        let under = |fault: Fault| fault.under(&[kind, text.as_str()]);
        if !known.insert(text) {
            faults.push(under(whole("is given twice; remove one".to_owned())));
            continue;
        }
        match (name_of(text), parse(attributes)) {
            (Ok(name), Ok(patch)) => into.push((name, patch)),
            (name, patch) => {
                let bad_name = name.err().map(|error| whole(error.to_string()));
                let bad = bad_name.into_iter().chain(patch.err().unwrap_or_default());
                faults.extend(bad.map(under));
            }
        }
    }
}
