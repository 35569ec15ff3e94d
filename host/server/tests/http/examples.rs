//! The document's examples are such that the host takes them.

use serde_json::{Value, json};

use crate::document::operations;
use crate::harness::Server;
use crate::schema::Document;

/// A path with the examples of its parameters in it.
fn path_of(template: &str, operation: &Value) -> String {
    let mut path = template.to_owned();
    for parameter in parameters(operation, "path") {
        let name = parameter["name"].as_str().expect("a name");
        path = path.replace(&format!("{{{name}}}"), &text_of(parameter));
    }
    assert!(
        !path.contains('{'),
        "{path} has a parameter without an example"
    );
    path
}

fn parameters<'a>(operation: &'a Value, place: &str) -> Vec<&'a Value> {
    let all = operation["parameters"].as_array().into_iter().flatten();
    all.filter(|parameter| parameter["in"] == place).collect()
}

fn text_of(parameter: &Value) -> String {
    match &parameter["example"] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A server on which everything that the examples name is there.
async fn server() -> Server {
    let server = Server::start().await;
    for queue in ["orders", "replies", "invoices"] {
        server.queue(queue).await;
    }
    let process = json!({"component": "route-orders"});
    server
        .json("PUT", "/v1/processes/route-orders", process)
        .await
        .is(201);
    // Whoever waits for a message has one.
    server.put("orders", &[], "an order").await;
    server
}

#[tokio::test]
async fn every_body_has_an_example_that_is_taken() {
    let Document(document) = Document::new();
    let mut bodies = 0;
    for (route, operation) in operations(&document) {
        let (method, template) = route.split_once(' ').expect("a method and a path");
        let Some(content) = operation["requestBody"]["content"].as_object() else {
            continue;
        };
        for (kind, content) in content {
            let example = &content["example"];
            assert!(!example.is_null(), "{route} has a body without an example");
            let server = server().await;
            let headers = [("content-type", kind.as_str())];
            let path = path_of(template, operation);
            let answered = server
                .call(method, &path, &headers, example.to_string())
                .await;
            let status = answered.status.as_u16();
            // The lease of an example is nobody's.
            let wanted = if path.contains("/leases/") {
                404..=404
            } else {
                200..=201
            };
            assert!(wanted.contains(&status), "{route}: {answered:?}");
            bodies += 1;
        }
    }
    assert!(bodies > 8, "{bodies} bodies");
}

#[tokio::test]
async fn every_parameter_has_an_example_that_is_taken() {
    let Document(document) = Document::new();
    for (route, operation) in operations(&document) {
        let (method, template) = route.split_once(' ').expect("a method and a path");
        for place in ["query", "header"] {
            for parameter in parameters(operation, place) {
                let name = parameter["name"].as_str().expect("a name");
                // Given out by an earlier answer.
                if name == "cursor" || (name == "before" && template == "/v1/audit") {
                    continue;
                }
                let here = format!("{route} {name}");
                let example = text_of(parameter);
                assert_ne!(example, "null", "{here} has no example");
                let server = server().await;
                let mut path = path_of(template, operation);
                let mut headers = Vec::new();
                if place == "query" {
                    path = format!("{path}?{name}={example}");
                } else {
                    headers.push((name, example.as_str()));
                }
                let answered = server.call(method, &path, &headers, "").await;
                let status = answered.status.as_u16();
                assert!(![400, 415, 422].contains(&status), "{here}: {answered:?}");
            }
        }
    }
}
