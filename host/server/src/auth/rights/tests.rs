//! A route is found as the router finds it, and each has its rule.

use super::*;
use crate::auth::identity::Right::{Browse, Operate, Put};
use crate::auth::identity::{Grants, Role};

fn need(method: &Method, path: &str) -> Option<(Need, Option<String>)> {
    let found = find(method, path)?;
    let object = found.object.as_deref().map(str::to_owned);
    Some((found.rule.need, object))
}

#[test]
fn a_route_is_found_as_the_router_finds_it() {
    let check = |method: Method, path: &str, wanted: Option<(Need, Option<&str>)>| {
        let wanted = wanted.map(|(need, object)| (need, object.map(str::to_owned)));
        assert_eq!(need(&method, path), wanted, "{method} {path}");
    };
    let on = |right, queue| Some((OnQueue(right), Some(queue)));
    check(Method::POST, "/v1/queues/a/messages", on(Put, "a"));
    check(Method::GET, "/v1/queues/a/messages", on(Browse, "a"));
    check(Method::HEAD, "/v1/queues/a/messages/x", on(Browse, "a"));
    check(Method::POST, "/v1/queues/%61%62/messages", on(Put, "ab"));
    check(Method::POST, "/v1/queues/a%2fb/messages", on(Put, "a/b"));
    check(Method::POST, "/v1/queues/a%/messages", on(Put, "a%"));
    check(Method::POST, "/v1/queues//messages", None);
    check(Method::POST, "/v1/queues/a/messages/", None);
    check(Method::POST, "//v1/queues/a/messages", None);
    check(Method::GET, "/v1/queues", Some((Someone, None)));
    check(Method::GET, "/v1/queues/", None);
    check(Method::TRACE, "/v1/queues", None);
    check(Method::GET, "/livez", Some((Nothing, None)));
    // Pages.
    check(Method::GET, "/queues/a", Some((SeesQueue, Some("a"))));
    check(Method::GET, "/queues/a/messages", on(Browse, "a"));
    check(Method::POST, "/queues/a/pause", on(Operate, "a"));
    check(Method::GET, "/v1", None);
    check(Method::GET, "/", Some((Someone, None)));
    check(Method::GET, "/assets/x/y.js", Some((Nothing, Some("x"))));
}

#[test]
fn no_route_stands_twice_in_the_table() {
    let mut seen = std::collections::BTreeSet::new();
    for rule in TABLE {
        assert!(seen.insert((rule.method, rule.path)), "{rule:?}");
    }
}

#[test]
fn every_route_of_the_document_has_a_rule_and_every_rule_a_route() {
    let document = serde_json::to_value(crate::openapi()).expect("JSON");
    let mut documented = std::collections::BTreeSet::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for method in item.as_object().expect("methods").keys() {
            documented.insert((method.to_uppercase(), path.clone()));
        }
    }
    for (method, path) in &documented {
        let listed = TABLE
            .iter()
            .any(|rule| rule.method == method && rule.path == path);
        assert!(
            listed,
            "{method} {path} needs a line in the table of rights"
        );
    }
    for rule in TABLE.iter().filter(|rule| rule.path.starts_with("/v1")) {
        let route = (rule.method.to_owned(), rule.path.to_owned());
        assert!(documented.contains(&route), "{rule:?} is no route");
    }
}

#[test]
fn what_changes_something_is_audited_but_for_traffic() {
    for rule in TABLE.iter().filter(|rule| rule.method != "GET") {
        let is_traffic = rule.is_page
            || rule.path.starts_with("/v1/leases")
            || rule.path == "/v1/units"
            // Only looks; it is a POST for its body.
            || rule.path == "/v1/definitions/changes"
            || rule.path == "/v1/queues/{queue}/get"
            || (rule.method == "POST" && rule.path == "/v1/queues/{queue}/messages");
        assert_eq!(rule.action.is_none(), is_traffic, "{rule:?}");
    }
}

#[test]
fn a_name_that_is_none_needs_the_right_everywhere() {
    let application = Identity {
        name: "a".to_owned(),
        role: Role::Application,
        grants: Grants {
            put: vec![oncue_core::definition::Pattern::new("a*").expect("a pattern")],
            ..Grants::default()
        },
    };
    let put = |queue: &str| {
        let path = format!("/v1/queues/{queue}/messages");
        let found = find(&Method::POST, &path).expect("the put");
        found.check(&application)
    };
    assert_eq!(put("ab"), Ok(()));
    let missing = Missing {
        right: Put,
        on: "on queue \"a/b\"".to_owned(),
    };
    assert_eq!(put("a%2fb"), Err(missing));
    assert!(put("b").is_err());
}
