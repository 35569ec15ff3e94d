//! Which right a request needs, by its route, and whether its identity has it. What each route
//! needs stands in [`table`].

mod table;

use std::borrow::Cow;

use axum::http::Method;
use oncue_core::names::QueueName;

use self::Need::{Everywhere, Identity as Someone, Nothing, OnQueue, SeesQueue, Somewhere};
use self::table::TABLE;
use super::identity::Identity;
use super::identity::Right::{self, Admin, Observe};

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

impl Rule {
    /// Whether the path of a request bears a lease's token.
    pub(crate) fn bears_a_token(&self) -> bool {
        self.path.contains("{token}")
    }
}

impl std::fmt::Display for Rule {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} {}", self.method, self.path)
    }
}

/// A rule, and the first name in the path.
#[derive(Debug)]
pub(crate) struct Found<'a> {
    pub(crate) rule: &'static Rule,
    /// The first parameter of the path, decoded.
    pub(crate) object: Option<Cow<'a, str>>,
    /// The second one: a message.
    pub(crate) message: Option<Cow<'a, str>>,
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
        let named = matches(rule.path, path)?;
        Some((rule, named, rule.is_page))
    });
    let found = found.or_else(|| {
        let of_api = of_method().filter_map(|rule| Some((rule, rule.path.strip_prefix(API)?)));
        let mut of_api = of_api.filter(|_rule| !is_api(path));
        of_api.find_map(|(rule, template)| Some((rule, matches(template, path)?, true)))
    });
    found.map(|(rule, [object, message], is_page)| Found {
        rule,
        object: object.map(decode),
        message: message.map(decode),
        is_page: is_page || (rule.action.is_some() && !is_api(path)),
    })
}

/// Whether the path is one of the API, and no page.
pub(crate) fn is_api(path: &str) -> bool {
    path.strip_prefix(API)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether a path fits a template, and its first two parameters.
fn matches<'a>(template: &str, path: &'a str) -> Option<[Option<&'a str>; 2]> {
    let mut steps = path.split('/');
    let (mut first, mut second) = (None, None);
    for wanted in template.split('/') {
        let step = steps.next()?;
        if wanted.starts_with('{') {
            if step.is_empty() {
                return None;
            }
            match first {
                None => first = Some(step),
                Some(_) => second = second.or(Some(step)),
            }
        } else if wanted != step {
            return None;
        }
    }
    steps.next().is_none().then_some([first, second])
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
        shown(self.object.as_deref().unwrap_or_default())
    }

    /// The message, if the path names one, in the same way.
    pub(crate) fn shown_message(&self) -> Option<String> {
        self.message.as_deref().map(shown)
    }
}

fn shown(text: &str) -> String {
    const SHOWN: usize = 128;
    let shown: String = text.chars().take(SHOWN).collect();
    shown.escape_debug().to_string()
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
mod tests;
