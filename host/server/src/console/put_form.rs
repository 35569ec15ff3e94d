//! Putting a message by hand: a form of its own page, which comes back with what was typed when
//! something is wrong.

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use oncue_core::code::Code;
use oncue_core::definition::{Fault, Raw};
use oncue_core::names::QueueName;
use oncue_manager::tasks::port::{PutOptions, PutRequest};
use serde::de::IgnoredAny;

use super::form::Form;
use super::frame::Frame;
use super::page::{Page, PageError, not_done, page};
use super::params::Params;
use super::queue_actions::OnQueue;
use super::viewer::Viewer;
use crate::app::App;
use crate::auth::Who;
use crate::error::Problem;
use crate::extract::QueuePath;
use crate::wire::put;

/// Bytes of a body that are written back into the form.
const MAX_TYPED: usize = 1 << 20;

/// What a body may be typed as: the word of the form, and for people.
const KINDS: [(&str, &str); 3] = [
    ("text", "text, as typed"),
    ("json", "JSON, checked"),
    ("hex", "hexadecimal"),
];

/// The choices of persistence.
const PERSISTENCE: [(&str, &str); 3] = [
    ("", "the queue's default"),
    ("persistent", "persistent"),
    ("non-persistent", "non-persistent"),
];

/// A field of one line: its name, what it is called, what it may look like, its longest text.
type Line = (&'static str, &'static str, &'static str, usize);

/// The fields of one line that are fields of a message too.
const LINES: [Line; 9] = [
    (
        "content-type",
        "Content type",
        "such as application/json",
        200,
    ),
    ("correlation-id", "Correlation id", "", 256),
    ("priority", "Priority", "0 to 9", 20),
    ("reply-to", "Reply to", "a queue", 128),
    ("delay", "Delay", "such as 5s", 20),
    ("expiry", "Expiry", "such as 10m, or never", 20),
    ("group", "Group", "", 256),
    ("group-sequence", "Group sequence", "a number", 20),
    ("idempotency-key", "Idempotency key", "", 256),
];

/// A field as the page shows it.
#[derive(Debug)]
struct Field {
    name: &'static str,
    label: &'static str,
    hint: &'static str,
    longest: usize,
    typed: String,
    fault: Option<String>,
}

#[derive(Template)]
#[template(path = "put.html")]
struct PutPage {
    frame: Frame,
    queue: String,
    /// What went wrong, whole.
    error: Option<String>,
    kinds: [(&'static str, &'static str); 3],
    kind: String,
    body: String,
    body_fault: Option<String>,
    /// A file was chosen, which a page cannot choose again.
    had_file: bool,
    lines: Vec<Field>,
    persistence: [(&'static str, &'static str); 3],
    persistent: String,
    properties: String,
    properties_fault: Option<String>,
}

/// The page with what was typed, and what is wrong with it.
fn written(
    frame: Frame,
    queue: &QueueName,
    form: &Form,
    faults: &[Fault],
    error: Option<String>,
) -> PutPage {
    let fault = |name: &str| {
        let mut of_it = faults.iter().filter(|it| it.path.concat() == name);
        of_it.next().map(|it| it.message.clone())
    };
    let typed = |name: &str| form.text(name).to_owned();
    let body = body_of(form);
    let body_fault = fault("body");
    let too_long = (body.len() > MAX_TYPED).then(|| {
        "is too long to be shown again; go back in the browser, or send a file".to_owned()
    });
    PutPage {
        frame: frame.still(),
        queue: queue.to_string(),
        error,
        kinds: KINDS,
        kind: typed("kind"),
        body_fault: body_fault.or(too_long.clone()),
        body: too_long.map_or(body, |_| String::new()),
        had_file: form.file.is_some(),
        lines: LINES
            .map(|(name, label, hint, longest)| Field {
                name,
                label,
                hint,
                longest,
                typed: typed(name),
                fault: fault(name),
            })
            .into(),
        persistence: PERSISTENCE,
        persistent: typed("persistence"),
        properties: typed("properties"),
        properties_fault: fault("properties"),
    }
}

/// The page, with nothing typed yet.
pub(super) async fn show(
    State(app): State<App>,
    queue: Result<QueuePath, Problem>,
    viewer: Viewer,
    params: Params,
) -> Page {
    let QueuePath(queue) = queue?;
    // Says that the queue is unknown before somebody types.
    app.handle.queue(queue.clone()).await?;
    let frame = Frame::new(&app, "/queues", &params, &viewer).await?;
    page(&written(frame, &queue, &Form::default(), &[], None))
}

/// Puts a message, or shows the form again.
pub(super) async fn put(who: Who, viewer: Viewer, it: OnQueue) -> Page {
    let (faults, error) = match read(&it.form) {
        Ok((options, body)) => {
            let request = PutRequest {
                queue: it.queue.clone(),
                body,
                options,
            };
            match it.app.handle.put(vec![request], who.putter()).await {
                Ok(answers) => {
                    let ids = answers.iter().map(|answer| answer.id.to_string());
                    let ids: Vec<String> = ids.collect();
                    let done = format!("Message {} is on \"{}\".", ids.join(", "), it.queue);
                    return Ok(it.back::<PageError>(Ok(done)));
                }
                Err(error) => (Vec::new(), PageError::from(error)),
            }
        }
        Err(faults) => {
            let problem = Problem::with_faults(Code::InvalidMessage, faults.clone());
            (faults, PageError::from(problem))
        }
    };
    again(&it, &viewer, &faults, &error).await
}

/// The form with what was typed, and what is wrong.
async fn again(it: &OnQueue, viewer: &Viewer, faults: &[Fault], error: &PageError) -> Page {
    let frame = Frame::new(&it.app, "/queues", &Params::default(), viewer).await?;
    let text = Some(error.text().to_owned());
    let written = written(frame, &it.queue, &it.form, faults, text);
    let shown: Response = page(&written)?;
    let status: StatusCode = error.status();
    Ok(not_done((status, shown).into_response(), error))
}

/// What was typed as the body. Browsers send the ends of lines as two characters, which nobody
/// typed.
fn body_of(form: &Form) -> String {
    let typed = form.all("body").next().unwrap_or_default();
    typed.replace("\r\n", "\n")
}

/// Reads the form; all its faults at once.
fn read(form: &Form) -> Result<(PutOptions, Bytes), Vec<Fault>> {
    let mut options = PutOptions::default();
    let mut faults = Vec::new();
    let fields = LINES.iter().map(|line| line.0).chain(["persistence"]);
    for field in fields {
        if let Some(text) = form.get(field) {
            let set = put::set(&mut options, field, &Raw::Text(text.trim().to_owned()));
            faults.extend(set.err().map(|message| Fault::new(field, message)));
        }
    }
    for line in form.text("properties").lines() {
        match line.split_once(['=', ':']) {
            _ if line.trim().is_empty() => {}
            Some((name, text)) if !name.trim().is_empty() => {
                let (name, text) = (name.trim().to_owned(), text.trim().to_owned());
                options.properties.push((name, text));
            }
            _ => faults.push(Fault::new(
                "properties",
                "has a line without \"=\"; write each as name=value",
            )),
        }
    }
    let body = read_body(form, &mut options).map_err(|fault| Fault::new("body", fault));
    match body {
        Ok(body) if faults.is_empty() => Ok((options, body)),
        Ok(_) => Err(faults),
        Err(fault) => {
            faults.insert(0, fault);
            Err(faults)
        }
    }
}

/// The body, from what was typed or from the file; says what it is where nobody else did.
fn read_body(form: &Form, options: &mut PutOptions) -> Result<Bytes, String> {
    let typed = body_of(form);
    let is_json = form.text("kind") == "json";
    let body = match &form.file {
        Some(_) if !typed.is_empty() => {
            return Err("is typed, and a file is chosen too; empty one of them".to_owned());
        }
        Some(file) => {
            let kind = file.content_type.clone().filter(|_| !is_json);
            options.content_type = options.content_type.take().or(kind);
            file.bytes.clone()
        }
        None if form.text("kind") == "hex" => from_hex(&typed)?.into(),
        None => typed.into(),
    };
    if is_json {
        serde_json::from_slice::<IgnoredAny>(&body)
            .map_err(|error| format!("is not JSON: {error}; correct it, or put it as text"))?;
        let json = || "application/json".to_owned();
        options.content_type.get_or_insert_with(json);
    }
    Ok(body)
}

/// The bytes that hexadecimal digits are, with space between them or without.
fn from_hex(text: &str) -> Result<Vec<u8>, String> {
    let mut digits = Vec::with_capacity(text.len());
    for (at, c) in text.chars().enumerate().filter(|(_, c)| !c.is_whitespace()) {
        let digit = c.to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        digits.push(digit.ok_or_else(|| {
            let shown = c.escape_debug();
            format!(
                "has '{shown}' at position {}; write each byte as two of 0-9 and a-f",
                at + 1
            )
        })?);
    }
    let pairs = digits.chunks_exact(2);
    if !pairs.remainder().is_empty() {
        let count = digits.len();
        return Err(format!(
            "has {count} digits, and a byte has two; write the one that is missing"
        ));
    }
    Ok(pairs.map(|pair| pair[0] << 4 | pair[1]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_put_is_read_from_its_form() {
        let form = "kind=text&body=a%0D%0Ab&content-type=text%2Fplain&priority=7&group=&\
                    expiry=never&persistence=non-persistent&properties=x%3D1%0D%0A%0D%0Ay%3A+2";
        let (options, body) = read(&Form::of(form)).expect("a put");
        assert_eq!(body, "a\nb");
        assert_eq!(options.content_type.as_deref(), Some("text/plain"));
        assert_eq!((options.priority, options.group), (Some(7), None));
        assert_eq!(
            (options.persistent, options.expiry),
            (Some(false), Some(u64::MAX))
        );
        let pair = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        assert_eq!(options.properties, [pair("x", "1"), pair("y", "2")]);
    }

    #[test]
    fn every_fault_of_a_put_is_named() {
        let form = "kind=json&body=%7B&priority=x&delay=soon&properties=bare";
        let faults = read(&Form::of(form)).expect_err("four faults");
        let names: Vec<String> = faults.iter().map(|fault| fault.path.concat()).collect();
        assert_eq!(names, ["body", "priority", "delay", "properties"]);
    }

    #[test]
    fn a_body_is_what_it_is_typed_as() {
        let check = |form: &str, wanted: Result<(&[u8], Option<&str>), &str>| {
            let mut options = PutOptions::default();
            let body = read_body(&Form::of(form), &mut options);
            match (body, wanted) {
                (Ok(body), Ok((wanted, kind))) => {
                    assert_eq!((&body[..], options.content_type.as_deref()), (wanted, kind));
                }
                (Err(fault), Err(wanted)) => assert!(fault.starts_with(wanted), "{fault}"),
                (body, _) => panic!("{form}: {body:?}"),
            }
        };
        check("body=a", Ok((b"a", None)));
        check("", Ok((b"", None)));
        check(
            "kind=json&body=%7B%22a%22%3A1%7D",
            Ok((b"{\"a\":1}", Some("application/json"))),
        );
        check(
            "kind=json&body=%7B%22a%22%3A%0A1%2C%7D",
            Err("is not JSON: key must be a string at line 2"),
        );
        check("kind=json&body=", Err("is not JSON"));
        check("kind=hex&body=00+fF%0D%0A7a", Ok((b"\x00\xff\x7a", None)));
        check("kind=hex&body=0", Err("has 1 digits"));
        check("kind=hex&body=00+0x", Err("has 'x' at position 5"));
    }

    #[test]
    fn a_file_is_a_body() {
        let file = |kind: Option<&str>, bytes: &'static [u8]| super::super::form::File {
            content_type: kind.map(str::to_owned),
            bytes: Bytes::from_static(bytes),
        };
        let put = |text: &str, kind, bytes| {
            let mut form = Form::of(text);
            form.file = Some(file(kind, bytes));
            let mut options = PutOptions::default();
            read_body(&form, &mut options).map(|body| (body.to_vec(), options.content_type))
        };
        let png = Some("image/png".to_owned());
        assert_eq!(put("", Some("image/png"), b"\0"), Ok((vec![0], png)));
        assert_eq!(put("kind=hex", None, b"\r\n"), Ok((b"\r\n".to_vec(), None)));
        let json = Some("application/json".to_owned());
        assert_eq!(
            put("kind=json", Some("text/x"), b"{}"),
            Ok((b"{}".to_vec(), json))
        );
        assert!(put("kind=json", None, b"\xff").is_err());
        assert!(put("body=x", None, b"y").is_err());
    }
}
