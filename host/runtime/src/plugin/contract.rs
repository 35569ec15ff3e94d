//! Types of functions as trees, what the handlers' functions must be, and the first place where
//! another differs. Only what a sentence about a wrong world needs: the sandbox's linker has the
//! final word on every type.

use std::fmt;

/// A type of the component model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    /// `string`, `u64`, ...
    Primitive(String),
    /// Named fields in order.
    Record(Vec<(String, Type)>),
    /// Named cases in order, with what they carry.
    Variant(Vec<(String, Option<Type>)>),
    /// `list<...>`.
    List(Box<Type>),
    /// `option<...>`.
    Option(Box<Type>),
    /// `result<..., ...>`.
    Result(Option<Box<Type>>, Option<Box<Type>>),
    /// `tuple<...>`.
    Tuple(Vec<Type>),
    /// Names in order.
    Enum(Vec<String>),
    /// Names in order.
    Flags(Vec<String>),
    /// An owned resource, by its name.
    Own(String),
    /// A lent resource, by its name.
    Borrow(String),
    /// Anything else, by its kind.
    Other(&'static str),
}

/// A function's type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) asynchronous: bool,
    pub(crate) parameters: Vec<(String, Type)>,
    pub(crate) result: Option<Type>,
}

pub(crate) fn primitive(name: &str) -> Type {
    Type::Primitive(name.to_owned())
}

pub(crate) fn record(fields: Vec<(&str, Type)>) -> Type {
    Type::Record(
        fields
            .into_iter()
            .map(|(name, field)| (name.to_owned(), field))
            .collect(),
    )
}

/// `result<_, failure>`: what both handlers answer.
fn answer() -> Type {
    let retry = record(vec![
        ("reason", primitive("string")),
        ("after", Type::Option(Box::new(primitive("u64")))),
    ]);
    let cases = [
        ("retry", retry),
        ("reject", primitive("string")),
        ("defer", primitive("u64")),
    ];
    let cases = cases
        .into_iter()
        .map(|(name, carried)| (name.to_owned(), Some(carried)));
    Type::Result(None, Some(Box::new(Type::Variant(cases.collect()))))
}

/// `on-message`'s `handle`, as in `wit/handlers.wit`.
pub(crate) fn on_message() -> Function {
    Function {
        asynchronous: false,
        parameters: vec![("message".to_owned(), Type::Borrow("message".to_owned()))],
        result: Some(answer()),
    }
}

/// `on-owned-message`'s `handle`, as in `wit/handlers.wit`.
pub(crate) fn on_owned_message() -> Function {
    Function {
        parameters: vec![("message".to_owned(), Type::Own("message".to_owned()))],
        ..on_message()
    }
}

/// `on-trigger`'s `handle`, as in `wit/handlers.wit`.
pub(crate) fn on_trigger() -> Function {
    let kinds = ["first", "every", "depth"].map(str::to_owned).to_vec();
    let trigger = record(vec![
        ("manager", primitive("string")),
        ("queue", primitive("string")),
        ("process", primitive("string")),
        ("trigger-type", Type::Enum(kinds)),
        ("trigger-data", primitive("string")),
        ("application-id", primitive("string")),
        ("environment-data", primitive("string")),
        ("user-data", primitive("string")),
        ("depth", primitive("u64")),
        ("sequence", primitive("u64")),
        ("fired-at", primitive("u64")),
    ]);
    Function {
        asynchronous: false,
        parameters: vec![("trigger".to_owned(), trigger)],
        result: Some(answer()),
    }
}

/// `wasi:http/incoming-handler`'s `handle`.
pub(crate) fn incoming_handler() -> Function {
    let own = |name: &str, resource: &str| (name.to_owned(), Type::Own(resource.to_owned()));
    Function {
        asynchronous: false,
        parameters: vec![
            own("request", "incoming-request"),
            own("response-out", "response-outparam"),
        ],
        result: None,
    }
}

/// `handle-queue-message` of `fermyon:spin-sqs@2.0.0`.
pub(crate) fn handle_queue_message() -> Function {
    let variant = |cases: Vec<(&str, Type)>| {
        let cases = cases.into_iter();
        Type::Variant(
            cases
                .map(|(name, carried)| (name.to_owned(), Some(carried)))
                .collect(),
        )
    };
    let text = || primitive("string");
    let value = variant(vec![
        ("str", text()),
        ("binary", Type::List(Box::new(primitive("u8")))),
    ]);
    let attribute = record(vec![
        ("name", text()),
        ("data-type", Type::Option(Box::new(text()))),
        ("value", value),
    ]);
    let message = record(vec![
        ("id", Type::Option(Box::new(text()))),
        ("message-attributes", Type::List(Box::new(attribute))),
        ("body", Type::Option(Box::new(text()))),
    ]);
    let action = Type::Enum(["delete", "leave"].map(str::to_owned).to_vec());
    let error = variant(vec![("other", text())]);
    Function {
        asynchronous: false,
        parameters: vec![("message".to_owned(), message)],
        result: Some(Type::Result(Some(Box::new(action)), Some(Box::new(error)))),
    }
}

/// Where `found` first differs from `wanted`, as it follows after "its function handle"; `None`
/// when it does not. Names of parameters do not count.
pub(crate) fn difference(wanted: &Function, found: &Function) -> Option<String> {
    if found.asynchronous != wanted.asynchronous {
        return Some(
            "is async, which is not supported yet; it must be a plain function".to_owned(),
        );
    }
    let (wanted_count, found_count) = (wanted.parameters.len(), found.parameters.len());
    if wanted_count != found_count {
        return Some(format!(
            "takes {found_count} parameters instead of {wanted_count}"
        ));
    }
    for ((name, wanted), (_, found)) in wanted.parameters.iter().zip(&found.parameters) {
        if let Some((place, text)) = differs(wanted, found) {
            return Some(format!(
                "takes {}",
                placed(&format!("\"{name}\""), &place, &text)
            ));
        }
    }
    match (&wanted.result, &found.result) {
        (None, None) => None,
        (Some(wanted), Some(found)) => {
            let (place, text) = differs(wanted, found)?;
            Some(format!("answers {}", placed("a value", &place, &text)))
        }
        (Some(wanted), None) => Some(format!("answers nothing instead of {}", wanted.kind())),
        (None, Some(found)) => Some(format!("answers {} instead of nothing", found.kind())),
    }
}

fn placed(whole: &str, place: &[String], text: &str) -> String {
    if place.is_empty() {
        format!("{whole} that {text}")
    } else {
        format!("{whole} whose {} {text}", place.join(" "))
    }
}

/// The way to the first difference, and what it is.
type Difference = (Vec<String>, String);

fn within(step: String, difference: Option<Difference>) -> Option<Difference> {
    let (mut place, text) = difference?;
    place.insert(0, step);
    Some((place, text))
}

fn differs(wanted: &Type, found: &Type) -> Option<Difference> {
    let plain = || {
        Some((
            Vec::new(),
            format!("is {} instead of {}", found.kind(), wanted.kind()),
        ))
    };
    match (wanted, found) {
        (Type::Record(wanted), Type::Record(found)) => names_differ(
            "fields",
            wanted.iter().map(|it| &it.0),
            found.iter().map(|it| &it.0),
        )
        .or_else(|| {
            let mut pairs = wanted.iter().zip(found);
            pairs.find_map(|((name, wanted), (_, found))| {
                within(format!("field \"{name}\""), differs(wanted, found))
            })
        }),
        (Type::Variant(wanted), Type::Variant(found)) => names_differ(
            "cases",
            wanted.iter().map(|it| &it.0),
            found.iter().map(|it| &it.0),
        )
        .or_else(|| {
            let mut pairs = wanted.iter().zip(found);
            pairs.find_map(|((name, wanted), (_, found))| {
                within(
                    format!("case \"{name}\""),
                    carried(wanted.as_ref(), found.as_ref()),
                )
            })
        }),
        (Type::Enum(wanted), Type::Enum(found)) | (Type::Flags(wanted), Type::Flags(found)) => {
            names_differ("names", wanted.iter(), found.iter())
        }
        (Type::List(wanted), Type::List(found)) | (Type::Option(wanted), Type::Option(found)) => {
            within("content".to_owned(), differs(wanted, found))
        }
        (Type::Result(ok, error), Type::Result(found_ok, found_error)) => {
            let ok = carried(ok.as_deref(), found_ok.as_deref());
            within("ok".to_owned(), ok).or_else(|| {
                within(
                    "error".to_owned(),
                    carried(error.as_deref(), found_error.as_deref()),
                )
            })
        }
        (Type::Tuple(wanted), Type::Tuple(found)) if wanted.len() == found.len() => {
            let mut pairs = wanted.iter().zip(found).enumerate();
            pairs.find_map(|(index, (wanted, found))| {
                within(format!("part {}", index + 1), differs(wanted, found))
            })
        }
        (wanted, found) if wanted == found => None,
        _ => plain(),
    }
}

fn carried(wanted: Option<&Type>, found: Option<&Type>) -> Option<Difference> {
    match (wanted, found) {
        (None, None) => None,
        (Some(wanted), Some(found)) => differs(wanted, found),
        (Some(wanted), None) => Some((
            Vec::new(),
            format!("carries nothing instead of {}", wanted.kind()),
        )),
        (None, Some(found)) => Some((
            Vec::new(),
            format!("carries {} instead of nothing", found.kind()),
        )),
    }
}

fn names_differ<'a>(
    what: &str,
    wanted: impl Iterator<Item = &'a String>,
    found: impl Iterator<Item = &'a String>,
) -> Option<Difference> {
    let (wanted, found): (Vec<_>, Vec<_>) = (wanted.collect(), found.collect());
    if wanted == found {
        return None;
    }
    let list = |names: &[&String]| {
        let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
        if names.is_empty() {
            "nothing".to_owned()
        } else {
            names.join(", ")
        }
    };
    let missing: Vec<&String> = wanted
        .iter()
        .filter(|it| !found.contains(it))
        .copied()
        .collect();
    let extra: Vec<&String> = found
        .iter()
        .filter(|it| !wanted.contains(it))
        .copied()
        .collect();
    let text = match (missing.is_empty(), extra.is_empty()) {
        (true, true) => format!("has its {what} in another order: {}", list(&found)),
        (false, true) => format!("lacks the {what} {}", list(&missing)),
        (true, false) => format!("has the unknown {what} {}", list(&extra)),
        (false, false) => format!("has {what} {} instead of {}", list(&extra), list(&missing)),
    };
    Some((Vec::new(), text))
}

impl Type {
    /// The type in a word or two.
    fn kind(&self) -> String {
        match self {
            Self::Primitive(name) => name.clone(),
            Self::Record(_) => "a record".to_owned(),
            Self::Variant(_) => "a variant".to_owned(),
            Self::List(_) => "a list".to_owned(),
            Self::Option(_) => "an option".to_owned(),
            Self::Result(..) => "a result".to_owned(),
            Self::Tuple(parts) => format!("a tuple of {}", parts.len()),
            Self::Enum(_) => "an enum".to_owned(),
            Self::Flags(_) => "flags".to_owned(),
            Self::Own(name) => format!("own<{name}>"),
            Self::Borrow(name) => format!("borrow<{name}>"),
            Self::Other(kind) => (*kind).to_owned(),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.kind())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(wanted: &Function, change: impl FnOnce(&mut Function), text: Option<&str>) {
        let mut found = wanted.clone();
        change(&mut found);
        assert_eq!(difference(wanted, &found).as_deref(), text);
    }

    /// The record of the trigger message.
    fn fields(function: &mut Function) -> &mut Vec<(String, Type)> {
        match &mut function.parameters[0].1 {
            Type::Record(fields) => fields,
            other => panic!("{other} is no record"),
        }
    }

    #[test]
    fn a63_the_first_difference_is_named() {
        let (message, trigger) = (on_message(), on_trigger());
        check(&message, |_| {}, None);
        check(&trigger, |_| {}, None);
        check(&message, |f| f.parameters[0].0 = "other".to_owned(), None);
        let text = "is async, which is not supported yet; it must be a plain function";
        check(&message, |f| f.asynchronous = true, Some(text));
        check(
            &message,
            |f| f.parameters.clear(),
            Some("takes 0 parameters instead of 1"),
        );
        check(
            &message,
            |f| f.parameters[0].1 = Type::List(Box::new(primitive("u8"))),
            Some("takes \"message\" that is a list instead of borrow<message>"),
        );
        check(
            &message,
            |f| f.result = None,
            Some("answers nothing instead of a result"),
        );
        check(
            &message,
            |f| f.result = Some(Type::Result(None, Some(Box::new(primitive("string"))))),
            Some("answers a value whose error is string instead of a variant"),
        );
        check(
            &trigger,
            |f| fields(f).truncate(9),
            Some("takes \"trigger\" that lacks the fields sequence, fired-at"),
        );
        check(
            &trigger,
            |f| fields(f)[8].1 = primitive("u32"),
            Some("takes \"trigger\" whose field \"depth\" is u32 instead of u64"),
        );
        check(
            &trigger,
            |f| fields(f)[3].1 = Type::Enum(vec!["first".to_owned(), "every".to_owned()]),
            Some("takes \"trigger\" whose field \"trigger-type\" lacks the names depth"),
        );
    }
}
