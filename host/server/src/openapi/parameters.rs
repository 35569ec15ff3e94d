//! What parameters look like, by their names: the handlers read them as text, and say what is wrong
//! with them when they do.

use oncue_core::outcome::Outcome;
use oncue_manager::status::QueueSort;
use utoipa::openapi::path::Operation;
use utoipa::openapi::{Object, ObjectBuilder, RefOr, Schema, Type};

use crate::routes::health::Check;

/// Names of queues, processes and plugins.
const NAME: &str = "^[A-Za-z0-9._-]{1,128}$";

/// Most entries of a page, but where a route says otherwise.
const MAX_PAGE: f64 = 1_000.0;

/// Most queues of a page of metrics.
const MAX_METRICS: f64 = 10_000.0;

fn text(pattern: &str) -> Object {
    let text = ObjectBuilder::new().schema_type(Type::String);
    text.pattern(Some(pattern)).build()
}

fn word(words: impl IntoIterator<Item = &'static str>) -> Object {
    let text = ObjectBuilder::new().schema_type(Type::String);
    text.enum_values(Some(words)).build()
}

fn number(least: f64, most: Option<f64>) -> Object {
    let number = ObjectBuilder::new().schema_type(Type::Integer);
    number.minimum(Some(least)).maximum(most).build()
}

fn schema_of(name: &str, path: &str) -> Option<Object> {
    Some(match name {
        // A list of patterns.
        "queue" if path.starts_with("/metrics") => return None,
        "queue" | "process" | "plugin" | "oncue-reply-to" => text(NAME),
        "id" | "message" => text("^[0-9a-f]{24}$"),
        "token" => text("^[0-9a-f]{32}$"),
        "before" if path != "/v1/tasks" => return None,
        "task" | "before" | "since" => number(0.0, None),
        "oncue-group-sequence" => number(0.0, Some(f64::from(u32::MAX))),
        "oncue-priority" => number(0.0, Some(9.0)),
        "max" if path.starts_with("/metrics") => number(1.0, Some(MAX_METRICS)),
        "max" => number(1.0, Some(MAX_PAGE)),
        "check" => word(Check::ALL.map(|(_, name)| name)),
        "outcome" => word(Outcome::ALL.map(Outcome::as_str)),
        "sort" => word(QueueSort::ALL.map(QueueSort::as_str)),
        "order" => word(["ascending", "descending"]),
        "oncue-persistence" => word(["persistent", "non-persistent"]),
        _ => return None,
    })
}

/// Says what each parameter of an operation looks like.
pub(super) fn describe(operation: &mut Operation, path: &str) {
    let parameters = operation.parameters.iter_mut().flatten();
    for parameter in parameters {
        if let RefOr::T(parameter) = parameter
            && let Some(schema) = schema_of(&parameter.name, path)
        {
            parameter.schema = Some(RefOr::T(Schema::Object(schema)));
        }
    }
}
