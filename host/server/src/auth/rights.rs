//! Which right each route needs: the one table. A route that is not in it can be reached by an
//! administrator only, and a test finds it.

use std::borrow::Cow;

use axum::http::Method;
use oncue_core::names::QueueName;

use super::identity::{Identity, Right};

/// What a route asks of an identity before anything else is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Nothing, not even an identity.
    Nothing,
    /// An identity: the route shows each one what it may see, or asks for more itself.
    Identity,
    /// The right on every queue, or on the host.
    Everywhere(Right),
    /// The right on any queue: the route looks at each queue itself.
    Somewhere(Right),
    /// The right on the queue in the path.
    OnQueue(Right),
    /// Any right on the queue in the path.
    SeesQueue,
}

impl Need {
    /// What is needed, for the document.
    pub(crate) fn sentence(self) -> String {
        match self {
            Self::Nothing => "Needs no token.".to_owned(),
            Self::Identity => "Needs a token; shows what its identity may see.".to_owned(),
            Self::Everywhere(right) => format!("Needs the right `{right}`."),
            Self::Somewhere(right) => {
                format!("Needs the right `{right}` on each queue it touches.")
            }
            Self::OnQueue(right) => format!("Needs the right `{right}` on the queue."),
            Self::SeesQueue => "Needs any right on the queue.".to_owned(),
        }
    }
}

/// A route and what it needs.
#[derive(Debug)]
pub(crate) struct Rule {
    method: &'static str,
    path: &'static str,
    /// What is needed.
    pub(crate) need: Need,
    /// The action's name in the audit log, if the route changes something that is kept there.
    pub(crate) action: Option<&'static str>,
    /// A page for people at a browser, or what it needs.
    is_page: bool,
}

impl std::fmt::Display for Rule {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} {}", self.method, self.path)
    }
}

const fn look(path: &'static str, need: Need) -> Rule {
    Rule {
        method: "GET",
        path,
        need,
        action: None,
        is_page: false,
    }
}

/// What belongs to the console alone.
const fn page(method: &'static str, path: &'static str, need: Need) -> Rule {
    Rule {
        method,
        path,
        need,
        action: None,
        is_page: true,
    }
}

/// What moves messages: it has its traces in the messages, not in the audit log.
const fn traffic(path: &'static str, need: Need) -> Rule {
    Rule {
        method: "POST",
        path,
        need,
        action: None,
        is_page: false,
    }
}

const fn change(
    method: &'static str,
    path: &'static str,
    need: Need,
    action: &'static str,
) -> Rule {
    Rule {
        method,
        path,
        need,
        action: Some(action),
        is_page: false,
    }
}

use Need::{Everywhere, Identity as Someone, Nothing, OnQueue, SeesQueue, Somewhere};
use Right::{Admin, Bind, Browse, Define, Get, Observe, Operate, Put};

/// Every route. The put stands first: it is looked for most often.
const TABLE: &[Rule] = &[
    traffic("/v1/queues/{queue}/messages", OnQueue(Put)),
    traffic("/v1/queues/{queue}/get", OnQueue(Get)),
    // A lease's token is known to nobody but whoever got it.
    traffic("/v1/leases/{token}/ack", Somewhere(Get)),
    traffic("/v1/leases/{token}/nack", Somewhere(Get)),
    traffic("/v1/leases/{token}/extend", Somewhere(Get)),
    traffic("/v1/units", Somewhere(Put)),
    look("/v1/queues", Someone),
    look("/v1/queues/{queue}", SeesQueue),
    // Naming a process needs the right to bind too, another queue the right to define or put.
    change("PUT", "/v1/queues/{queue}", OnQueue(Define), "queue-define"),
    change(
        "PATCH",
        "/v1/queues/{queue}",
        OnQueue(Define),
        "queue-alter",
    ),
    change(
        "DELETE",
        "/v1/queues/{queue}",
        OnQueue(Define),
        "queue-delete",
    ),
    change(
        "POST",
        "/v1/queues/{queue}/clear",
        OnQueue(Operate),
        "queue-clear",
    ),
    look("/v1/queues/{queue}/messages", OnQueue(Browse)),
    look("/v1/queues/{queue}/messages/{id}", OnQueue(Browse)),
    change(
        "DELETE",
        "/v1/queues/{queue}/messages/{id}",
        OnQueue(Operate),
        "message-remove",
    ),
    change(
        "POST",
        "/v1/queues/{queue}/messages/{id}/release",
        OnQueue(Operate),
        "message-release",
    ),
    change(
        "POST",
        "/v1/queues/{queue}/redrive",
        OnQueue(Operate),
        "queue-redrive",
    ),
    look("/v1/dead-letters", Everywhere(Observe)),
    change(
        "POST",
        "/v1/queues/{queue}/discard",
        OnQueue(Operate),
        "queue-discard",
    ),
    look("/v1/queues/{queue}/explain", SeesQueue),
    change(
        "POST",
        "/v1/queues/{queue}/trigger",
        OnQueue(Operate),
        "queue-trigger",
    ),
    change(
        "POST",
        "/v1/queues/{queue}/pause",
        OnQueue(Operate),
        "queue-pause",
    ),
    change(
        "POST",
        "/v1/queues/{queue}/resume",
        OnQueue(Operate),
        "queue-resume",
    ),
    look("/v1/processes", Everywhere(Observe)),
    look("/v1/processes/{process}", Everywhere(Observe)),
    change(
        "PUT",
        "/v1/processes/{process}",
        Everywhere(Bind),
        "process-define",
    ),
    change(
        "PATCH",
        "/v1/processes/{process}",
        Everywhere(Bind),
        "process-alter",
    ),
    change(
        "DELETE",
        "/v1/processes/{process}",
        Everywhere(Bind),
        "process-delete",
    ),
    change(
        "POST",
        "/v1/processes/{process}/pause",
        Everywhere(Operate),
        "process-pause",
    ),
    change(
        "POST",
        "/v1/processes/{process}/resume",
        Everywhere(Operate),
        "process-resume",
    ),
    look("/v1/plugins", Everywhere(Observe)),
    look("/v1/plugins/{plugin}", Everywhere(Observe)),
    change(
        "POST",
        "/v1/plugins/{plugin}/rollback",
        Everywhere(Operate),
        "plugin-rollback",
    ),
    // Only tasks of queues that are seen; logs and words of handlers to those who may browse.
    look("/v1/tasks", Someone),
    look("/v1/tasks/{task}", Someone),
    look("/v1/tasks/{task}/case", Someone),
    change("POST", "/v1/pause", Everywhere(Operate), "host-pause"),
    change("POST", "/v1/resume", Everywhere(Operate), "host-resume"),
    look("/v1/status", Everywhere(Observe)),
    look("/v1/ledger", Everywhere(Observe)),
    look("/v1/events", Someone),
    look("/metrics", Everywhere(Observe)),
    look("/metrics/detailed", Everywhere(Observe)),
    look("/v1/audit", Everywhere(Admin)),
    // Pages of the console whose paths are not those of the API without `/v1`.
    // They show several queues, and words of handlers: they are for those who may see all of it.
    page("GET", "/", Everywhere(Observe)),
    page("GET", "/queues", Everywhere(Observe)),
    page("GET", "/queues/{queue}", Everywhere(Observe)),
    page("GET", "/tasks", Everywhere(Browse)),
    page("GET", "/tasks/{task}", Everywhere(Browse)),
    page("GET", "/live", Everywhere(Observe)),
    page("GET", "/dead-letters", Everywhere(Browse)),
    page("GET", "/dead-letters/export", Everywhere(Browse)),
    change(
        "POST",
        "/dead-letters/redrive",
        Everywhere(Operate),
        "queue-redrive",
    ),
    change(
        "POST",
        "/dead-letters/discard",
        Everywhere(Operate),
        "queue-discard",
    ),
    page("GET", "/queues/{queue}/put", OnQueue(Put)),
    page("POST", "/queues/{queue}/put", OnQueue(Put)),
    change(
        "POST",
        "/queues/{queue}/enable",
        OnQueue(Define),
        "queue-alter",
    ),
    change(
        "POST",
        "/queues/{queue}/messages/{id}/remove",
        OnQueue(Operate),
        "message-remove",
    ),
    change("POST", "/host/pause", Everywhere(Operate), "host-pause"),
    page("GET", "/login", Nothing),
    page("POST", "/login", Nothing),
    page("POST", "/logout", Someone),
    page("GET", "/assets/{hash}/{name}", Nothing),
    look("/v1/alarms", Everywhere(Observe)),
    look("/livez", Nothing),
    look("/readyz", Nothing),
    look("/startupz", Nothing),
    look("/v1/health/checks/{check}", Everywhere(Observe)),
    look("/openapi.json", Nothing),
];

/// A rule, and the first name in the path.
#[derive(Debug)]
pub(crate) struct Found<'a> {
    pub(crate) rule: &'static Rule,
    /// The first parameter of the path, decoded.
    pub(crate) object: Option<Cow<'a, str>>,
    /// A page for people at a browser, or what it needs.
    pub(crate) is_page: bool,
}

/// Before the paths of the API.
const API: &str = "/v1";

/// The rule of a route, by method and path as they come in a request. `HEAD` is `GET` without a
/// body. A page of the console that has the path of the API, without `/v1`, has its rule.
pub(crate) fn find<'a>(method: &Method, path: &'a str) -> Option<Found<'a>> {
    let method = if *method == Method::HEAD {
        "GET"
    } else {
        method.as_str()
    };
    let of_method = || TABLE.iter().filter(|rule| rule.method == method);
    let found = of_method().find_map(|rule| {
        let object = matches(rule.path, path)?;
        Some((rule, object, rule.is_page))
    });
    let found = found.or_else(|| {
        let of_api = of_method().filter_map(|rule| Some((rule, rule.path.strip_prefix(API)?)));
        let mut of_api = of_api.filter(|_rule| !is_api(path));
        of_api.find_map(|(rule, template)| Some((rule, matches(template, path)?, true)))
    });
    found.map(|(rule, object, is_page)| Found {
        rule,
        object: object.map(decode),
        is_page: is_page || (rule.action.is_some() && !is_api(path)),
    })
}

/// Whether the path is one of the API, and no page.
pub(crate) fn is_api(path: &str) -> bool {
    path.strip_prefix(API)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether a path fits a template, and its first parameter.
fn matches<'a>(template: &str, path: &'a str) -> Option<Option<&'a str>> {
    let mut steps = path.split('/');
    let mut object = None;
    for wanted in template.split('/') {
        let step = steps.next()?;
        if wanted.starts_with('{') {
            if step.is_empty() {
                return None;
            }
            object = object.or(Some(step));
        } else if wanted != step {
            return None;
        }
    }
    steps.next().is_none().then_some(object)
}

/// A step of a path with its `%` encodings read, as the routes read it.
fn decode(step: &str) -> Cow<'_, str> {
    if !step.contains('%') {
        return Cow::Borrowed(step);
    }
    let mut decoded = Vec::with_capacity(step.len());
    let mut rest = step.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_digits| *first == b'%');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let digits = digits.filter(|it| it.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                decoded.push(byte);
                rest = &after[2..];
            }
            None => {
                decoded.push(*first);
                rest = after;
            }
        }
    }
    Cow::Owned(String::from_utf8_lossy(&decoded).into_owned())
}

/// Why an identity may not do what it asks: the right that is missing, and on what.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    pub(crate) right: Right,
    pub(crate) on: String,
}

impl Found<'_> {
    /// Holds an identity to what the route needs.
    ///
    /// # Errors
    /// The right that it lacks.
    pub(crate) fn check(&self, identity: &Identity) -> Result<(), Missing> {
        let queue = || {
            let name = self.object.as_deref().unwrap_or_default();
            // What is no name is no queue, and the route says so to whoever may do it everywhere.
            QueueName::new(name).ok()
        };
        let on_queue = || format!("on queue \"{}\"", self.shown());
        let (is_given, right, on) = match self.rule.need {
            Nothing | Someone => return Ok(()),
            Everywhere(right) => (identity.may(right), right, "on the host".to_owned()),
            Somewhere(right) => (
                identity.may_somewhere(right),
                right,
                "on any queue".to_owned(),
            ),
            OnQueue(right) => {
                let given = match queue() {
                    Some(queue) => identity.may_on(right, &queue),
                    None => identity.may(right),
                };
                (given, right, on_queue())
            }
            SeesQueue => {
                let given = match queue() {
                    Some(queue) => identity.sees(&queue),
                    None => identity.may(Observe),
                };
                (given, Observe, on_queue())
            }
        };
        if is_given {
            Ok(())
        } else {
            Err(Missing { right, on })
        }
    }

    /// The object as it may stand in a sentence or a log.
    pub(crate) fn shown(&self) -> String {
        const SHOWN: usize = 128;
        let object = self.object.as_deref().unwrap_or_default();
        let shown: String = object.chars().take(SHOWN).collect();
        shown.escape_debug().to_string()
    }
}

/// The administrator's right, for a route that is not in the table.
pub(crate) fn unlisted(identity: &Identity) -> Result<(), Missing> {
    if identity.may(Admin) {
        return Ok(());
    }
    Err(Missing {
        right: Admin,
        on: "on the host".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
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
        check(
            Method::GET,
            "/queues/a",
            Some((Everywhere(Observe), Some("a"))),
        );
        check(Method::GET, "/queues/a/messages", on(Browse, "a"));
        check(Method::POST, "/queues/a/pause", on(Operate, "a"));
        check(Method::GET, "/v1", None);
        check(Method::GET, "/", Some((Everywhere(Observe), None)));
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
}
