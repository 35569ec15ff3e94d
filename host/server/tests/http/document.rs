//! The OpenAPI document itself.

use serde_json::Value;

use crate::harness::Server;
use crate::schema::Document;

/// Every route of the API. The order is that of the formats' table.
pub(crate) const ROUTES: [&str; 53] = [
    "GET /v1/queues",
    "PUT /v1/queues/{queue}",
    "GET /v1/queues/{queue}",
    "PATCH /v1/queues/{queue}",
    "DELETE /v1/queues/{queue}",
    "POST /v1/queues/{queue}/clear",
    "POST /v1/definitions",
    "POST /v1/definitions/changes",
    "POST /v1/queues/{queue}/messages",
    "POST /v1/units",
    "GET /v1/queues/{queue}/messages",
    "GET /v1/queues/{queue}/messages/{id}",
    "DELETE /v1/queues/{queue}/messages/{id}",
    "POST /v1/queues/{queue}/messages/{id}/release",
    "GET /v1/dead-letters",
    "POST /v1/queues/{queue}/redrive",
    "POST /v1/queues/{queue}/discard",
    "POST /v1/queues/{queue}/get",
    "POST /v1/leases/{token}/ack",
    "POST /v1/leases/{token}/nack",
    "POST /v1/leases/{token}/extend",
    "GET /v1/processes",
    "PUT /v1/processes/{process}",
    "GET /v1/processes/{process}",
    "PATCH /v1/processes/{process}",
    "DELETE /v1/processes/{process}",
    "POST /v1/processes/{process}/pause",
    "POST /v1/processes/{process}/resume",
    "POST /v1/pause",
    "POST /v1/resume",
    "GET /v1/plugins",
    "GET /v1/plugins/{plugin}",
    "POST /v1/plugins/{plugin}/rollback",
    "GET /v1/queues/{queue}/explain",
    "POST /v1/queues/{queue}/trigger",
    "POST /v1/queues/{queue}/pause",
    "POST /v1/queues/{queue}/resume",
    "GET /v1/tasks",
    "GET /v1/tasks/{task}",
    "GET /v1/tasks/{task}/case",
    "GET /v1/alarms",
    "GET /v1/status",
    "GET /v1/ledger",
    "GET /v1/events",
    "GET /v1/audit",
    "GET /v1/doctor",
    "GET /metrics",
    "GET /metrics/detailed",
    "GET /livez",
    "GET /readyz",
    "GET /startupz",
    "GET /v1/health/checks/{check}",
    "GET /openapi.json",
];

/// A path of a template, with names and identities of things that are not there.
pub(crate) fn filled(template: &str) -> String {
    template
        .replace("{queue}", "nowhere")
        .replace("{process}", "nowhere")
        .replace("{plugin}", "nowhere")
        .replace("{id}", &"0".repeat(24))
        .replace("{token}", &"0".repeat(32))
        .replace("{check}", "store")
        .replace("{task}", "66")
}

pub(crate) fn operations(document: &Value) -> Vec<(String, &Value)> {
    let paths = document["paths"].as_object().expect("paths");
    let each = paths.iter().flat_map(|(path, item)| {
        let methods = item.as_object().expect("methods");
        methods.iter().map(move |(method, operation)| {
            (format!("{} {path}", method.to_uppercase()), operation)
        })
    });
    each.collect()
}

#[test]
fn every_route_is_in_the_document_and_no_other() {
    let Document(document) = Document::new();
    assert_eq!(document["openapi"], "3.1.0");
    let mut documented: Vec<String> = operations(&document)
        .into_iter()
        .map(|(route, _)| route)
        .collect();
    let mut wanted = ROUTES.to_vec();
    documented.sort();
    wanted.sort_unstable();
    assert_eq!(documented, wanted);
}

#[test]
fn every_operation_is_described_and_names_its_problems() {
    let Document(document) = Document::new();
    for (route, operation) in operations(&document) {
        assert!(operation["summary"].is_string(), "{route} has no summary");
        assert!(operation["operationId"].is_string(), "{route} has no id");
        let responses = operation["responses"].as_object().expect("responses");
        for status in ["400", "401", "403", "429", "500", "503"] {
            assert!(responses.contains_key(status), "{route} lacks {status}");
        }
        if route.contains('{') && !route.starts_with("PUT") {
            assert!(responses.contains_key("404"), "{route} lacks 404");
        }
        if !operation["requestBody"].is_null() {
            for status in ["408", "413", "415"] {
                assert!(responses.contains_key(status), "{route} lacks {status}");
            }
        }
        for (status, response) in responses {
            let here = format!("{route} {status}");
            assert!(
                !response["description"]
                    .as_str()
                    .unwrap_or_default()
                    .is_empty(),
                "{here}"
            );
            assert!(!response["headers"]["oncue-request-id"].is_null(), "{here}");
            if status.as_str() >= "400" {
                let schema = &response["content"]["application/problem+json"]["schema"]["$ref"];
                assert_eq!(schema, "#/components/schemas/Problem", "{here}");
            }
        }
    }
}

#[test]
fn every_reference_has_its_schema() {
    let Document(document) = Document::new();
    let text = document.to_string();
    let mut seen = 0;
    for part in text.split("\"$ref\":\"#").skip(1) {
        let pointer = part.split('"').next().unwrap_or_default();
        assert!(document.pointer(pointer).is_some(), "{pointer} is missing");
        seen += 1;
    }
    assert!(seen > 50, "{seen} references");
}

#[tokio::test]
async fn the_document_is_served() {
    let server = Server::start().await;
    let served = server.get("/openapi.json").await.is(200);
    assert_eq!(served.header("content-type"), "application/json");
    assert_eq!(served.json(), Document::new().0);
}

/// Routes answer something of their own, not the fallback: each one is really there.
#[tokio::test]
async fn every_documented_route_is_served() {
    let server = Server::start().await;
    for route in ROUTES {
        let (method, template) = route.split_once(' ').expect("a method and a path");
        if template == "/v1/events" {
            continue;
        }
        let path = filled(template);
        let answered = server.call(method, &path, &[], "").await;
        if ["/v1/audit", "/v1/doctor"].contains(&template) {
            // This server has none; `auth` and `host` ask one that does.
            continue;
        }
        let code = if answered.status.as_u16() >= 400 {
            answered.json()["code"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        } else {
            String::new()
        };
        assert!(
            !["not-found", "method-not-allowed", "internal"].contains(&code.as_str()),
            "{route}"
        );
    }
}
