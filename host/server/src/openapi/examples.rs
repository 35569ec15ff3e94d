//! Examples for the document: one for each parameter, by its name, and one for each body, by its
//! route. A reader sees what to write, and a client that is tried against the document has
//! something to begin with. A test sends each of them.

use serde_json::{Value, json};
use utoipa::openapi::RefOr;
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder};
use utoipa::openapi::request_body::RequestBody;

/// The example of a parameter.
fn of_parameter(name: &str, path: &str) -> Option<Value> {
    Some(match name {
        "queue" => json!("orders"),
        "process" | "plugin" => json!("route-orders"),
        "id" | "message" => json!("00c0ffee0000000000000042"),
        "token" => json!("00c0ffee00c0ffee00c0ffee00c0ffee"),
        "task" => json!(42),
        "before" if path == "/v1/tasks" => json!(1042),
        "identity" => json!("ops"),
        "action" => json!("queue-clear"),
        "object" => json!("orders"),
        "check" => json!("store"),
        "max" => json!(10),
        "wait" => json!("100ms"),
        "lease" => json!("30s"),
        "correlation-id" | "oncue-correlation-id" => json!("order-4711"),
        "since" => json!(1_800_000_000_000_u64),
        "refused" | "force" | "ready" | "failed" | "busy" | "verbose" | "hide-empty" => json!(true),
        "search" => json!("order"),
        "sort" => json!("depth"),
        "order" => json!("descending"),
        "outcome" => json!("trapped"),
        "family" => json!("messages,age"),
        "oncue-reply-to" => json!("replies"),
        "oncue-group" => json!("customer-7"),
        "oncue-group-sequence" => json!(3),
        "oncue-priority" => json!(5),
        "oncue-persistence" => json!("persistent"),
        "oncue-expiry" => json!("10m"),
        "oncue-delay" => json!("5s"),
        "idempotency-key" => json!("order-4711-paid"),
        "traceparent" => json!("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
        "tracestate" => json!("vendor=value"),
        "oncue-property-NAME" => json!("any text"),
        // A cursor is given out by an earlier answer, and by nothing else.
        _ => return None,
    })
}

/// The example of a route's body.
fn of_body(method: &str, path: &str) -> Option<Value> {
    Some(match (method, path) {
        ("POST", "/v1/queues/{queue}/messages") => json!("any bytes"),
        ("POST", "/v1/units") => json!({ "puts": [
            { "queue": "orders", "body": "{\"order\":4711}", "content-type": "application/json" },
            { "queue": "invoices", "body-base64": "AAEC", "priority": 7 },
        ]}),
        ("PUT", "/v1/queues/{queue}") => json!({
            "description": "Orders of the shop", "trigger": "first", "max-tasks": 4,
            "backout-threshold": 3, "max-depth": 100_000,
        }),
        ("PATCH", "/v1/queues/{queue}") => json!({ "max-tasks": 2, "description": null }),
        ("PUT", "/v1/processes/{process}") => json!({
            "component": "route-orders", "memory": "64MiB", "deadline": "5s",
            "grants": { "put": ["audit.*"] },
        }),
        ("PATCH", "/v1/processes/{process}") => json!({ "memory": "32MiB", "deadline": null }),
        ("POST", "/v1/definitions" | "/v1/definitions/changes") => json!({
            "process": { "route-orders": { "memory": "64MiB" } },
            "queue": { "orders": { "process": "route-orders", "max-tasks": 4 } },
        }),
        ("POST", "/v1/queues/{queue}/trigger") => json!({ "on": true }),
        ("POST", "/v1/queues/{queue}/redrive" | "/v1/queues/{queue}/discard") => {
            json!({ "from": "orders", "reason": "trapped", "max": 100 })
        }
        ("POST", "/v1/leases/{token}/nack") => {
            json!({ "reason": "the database is down", "delay": "5s" })
        }
        ("POST", "/v1/leases/{token}/extend") => json!({ "lease": "1m" }),
        _ => return None,
    })
}

/// Adds the examples of an operation.
pub(super) fn add(operation: &mut Operation, method: &str, path: &str) {
    let parameters = operation.parameters.iter_mut().flatten();
    for parameter in parameters {
        if let RefOr::T(parameter) = parameter
            && let Some(example) = of_parameter(&parameter.name, path)
        {
            give(parameter, example);
        }
    }
    if let (Some(RefOr::T(body)), Some(example)) =
        (&mut operation.request_body, of_body(method, path))
    {
        give_body(body, &example);
    }
}

fn give(parameter: &mut Parameter, example: Value) {
    let given = ParameterBuilder::from(std::mem::take(parameter)).example(Some(example));
    *parameter = given.build();
}

fn give_body(body: &mut RequestBody, example: &Value) {
    for content in body.content.values_mut() {
        if let RefOr::T(content) = content {
            content.example = Some(example.clone());
        }
    }
}
