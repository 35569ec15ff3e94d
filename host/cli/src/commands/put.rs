//! `put`: one message by its headers; many as units of work, each of them durable when its ids are
//! printed.

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read};
use std::path::Path;

use oncue_core::definition::limits::MAX_MESSAGE_LENGTH;
use serde_json::{Map, Value, json};

use super::Context;
use crate::args::messages::{FieldArgs, PutArgs};
use crate::client::{Request, decode_header, property_header};
use crate::exit::{Exit, Failure};
use crate::render::text::to_base64;
use crate::render::time::{format_number, number_of};
use crate::render::values::{at, items, plain};

/// Most messages of one unit.
const MAX_UNIT_MESSAGES: usize = 500;

/// Bytes of bodies after which a unit is full.
const MAX_UNIT_BYTES: usize = 1 << 20;

/// The header of the key that makes a repeat harmless.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// Before the name of a property in a header.
const PROPERTY_PREFIX: &str = "oncue-property-";

/// Puts.
pub(super) fn run(context: &Context, args: &PutArgs) -> Result<(), Failure> {
    let fields = Fields::new(&args.fields);
    let mut putter = Putter {
        context,
        queue: args.queue.as_str(),
        fields,
        put: 0,
    };
    if args.lines {
        putter.lines(args)?;
        return putter.finish();
    }
    let body = read_body(args)?;
    if args.count == 1 {
        return putter.one(body);
    }
    putter.copies(&body, args.count)?;
    putter.finish()
}

/// A message's fields as headers, from the options of their own and from `-H` alike.
struct Fields(Vec<(String, String)>);

impl Fields {
    fn new(args: &FieldArgs) -> Self {
        let text = |number: Option<u64>| number.map(|number| number.to_string());
        let own = [
            ("oncue-correlation-id", args.correlation_id.clone()),
            (
                "oncue-reply-to",
                args.reply_to.as_ref().map(ToString::to_string),
            ),
            ("oncue-group", args.group.clone()),
            (
                "oncue-group-sequence",
                text(args.group_sequence.map(u64::from)),
            ),
            ("oncue-priority", text(args.priority.map(u64::from))),
            ("oncue-persistence", args.persistence.clone()),
            ("oncue-expiry", args.expiry.clone()),
            ("oncue-delay", args.delay.clone()),
            (IDEMPOTENCY_KEY, args.idempotency_key.clone()),
            ("content-type", args.content_type.clone()),
        ];
        let own = own
            .into_iter()
            .filter_map(|(name, text)| Some((name.to_owned(), text?)));
        let properties = args.property.iter();
        let properties = properties.map(|(name, value)| (property_header(name), value.clone()));
        Self(
            args.header
                .iter()
                .cloned()
                .chain(own)
                .chain(properties)
                .collect(),
        )
    }

    /// The fields of the message of that number in a unit's JSON. Each message needs a key of its
    /// own, or all but the first would be repeats.
    fn json(&self, number: u64) -> Result<Map<String, Value>, Failure> {
        let mut json = Map::new();
        let mut properties: Map<String, Value> = Map::new();
        for (name, text) in &self.0 {
            if let Some(property) = name.strip_prefix(PROPERTY_PREFIX) {
                add_property(&mut properties, &decode_header(property.as_bytes()), text);
            } else if name == IDEMPOTENCY_KEY {
                json.insert(name.clone(), format!("{text}-{number}").into());
            } else if name == "content-type" {
                json.insert(name.clone(), text.as_str().into());
            } else if let Some(field) = name.strip_prefix("oncue-") {
                json.insert(field.to_owned(), text.as_str().into());
            } else {
                let message = format!("header \"{name}\" can be given for one message only");
                return Err(Failure::new(Exit::Usage, message));
            }
        }
        if !properties.is_empty() {
            json.insert("properties".to_owned(), Value::Object(properties));
        }
        Ok(json)
    }
}

impl Fields {
    /// What to say when it is not known whether so many messages were put: with a key the same
    /// command is harmless, without one it may put them twice.
    fn when_unknown(&self, queue: &str, count: u64) -> String {
        let (what, them) = match count {
            1 => ("the message was".to_owned(), "it"),
            count => (
                format!("these {} messages were", format_number(count)),
                "them",
            ),
        };
        let key = self.0.iter().find(|(name, _)| name == IDEMPOTENCY_KEY);
        let cure = match key {
            Some((_, key)) => format!(
                "repeat the same command soon: its idempotency key \"{key}\" keeps {them} from \
                 being put twice (for the queue's idempotency-window)"
            ),
            None => format!(
                "see \"oncue browse {queue}\" before you put {them} again; with \
                 --idempotency-key a put can be repeated safely"
            ),
        };
        format!("whether {what} put is not known; {cure}")
    }
}

/// Adds a property; a name that stands for several values has a list of them.
fn add_property(properties: &mut Map<String, Value>, name: &str, text: &str) {
    match properties.get_mut(name) {
        None => {
            properties.insert(name.to_owned(), text.into());
        }
        Some(Value::Array(values)) => values.push(text.into()),
        Some(first) => *first = json!([first.take(), text]),
    }
}

struct Putter<'a> {
    context: &'a Context,
    queue: &'a str,
    fields: Fields,
    put: u64,
}

impl Putter<'_> {
    /// Puts one message, whatever its size.
    fn one(&mut self, body: Vec<u8>) -> Result<(), Failure> {
        let mut request = Request::post(&["queues", self.queue, "messages"])
            .body(body)
            .when_unknown(self.fields.when_unknown(self.queue, 1));
        for (name, text) in &self.fields.0 {
            request = request.header(name, text);
        }
        let answer = self.context.client.ask(request)?;
        self.put += 1;
        if self.context.screen.is_json() {
            return self.context.screen.json(&answer);
        }
        self.print_ids(std::slice::from_ref(&answer))
    }

    /// Puts a full batch as one unit of work.
    fn unit(&mut self, bodies: Vec<Vec<u8>>) -> Result<(), Failure> {
        let mut puts = Vec::with_capacity(bodies.len());
        for (number, body) in (self.put + 1..).zip(bodies) {
            let mut put = self.fields.json(number)?;
            put.insert("queue".to_owned(), self.queue.into());
            match String::from_utf8(body) {
                Ok(text) => put.insert("body".to_owned(), text.into()),
                Err(bytes) => {
                    let written = to_base64(bytes.as_bytes());
                    put.insert("body-base64".to_owned(), written.into())
                }
            };
            puts.push(Value::Object(put));
        }
        let count = puts.len() as u64;
        let request = Request::post(&["units"])
            .json(&json!({ "puts": puts }))
            .when_unknown(self.fields.when_unknown(self.queue, count));
        let answer = self
            .context
            .client
            .ask(request)
            .map_err(|failure| self.after(failure))?;
        self.put += count;
        if self.context.screen.is_json() {
            self.context.screen.json(&answer)?;
        } else {
            self.print_ids(items(&answer))?;
        }
        // Whoever reads the ids knows at once what is durable.
        self.context.screen.flush()?;
        let (put, queue) = (self.put, self.queue);
        self.context
            .screen
            .progress(|| format!("queue \"{queue}\": {} put", number_of(put, "message")));
        Ok(())
    }

    fn print_ids(&self, answers: &[Value]) -> Result<(), Failure> {
        for answer in answers {
            self.context.screen.text(&plain(at(answer, "id")))?;
            if at(answer, "repeated").as_bool() == Some(true) {
                self.context
                    .screen
                    .say("an earlier put with this key had made it");
            }
        }
        Ok(())
    }

    /// Says how far a long put had come.
    fn after(&self, failure: Failure) -> Failure {
        if self.put == 0 {
            return failure;
        }
        let done = number_of(self.put, "message");
        Failure {
            message: format!("after {done}: {}", failure.message),
            ..failure
        }
    }

    fn copies(&mut self, body: &[u8], count: u64) -> Result<(), Failure> {
        let by_bytes = (MAX_UNIT_BYTES / body.len().max(1)).max(1);
        let full = by_bytes.min(MAX_UNIT_MESSAGES) as u64;
        while self.put < count {
            let batch = full.min(count - self.put);
            let batch = usize::try_from(batch).expect("a unit's bound fits");
            self.unit(vec![body.to_vec(); batch])?;
        }
        Ok(())
    }

    fn lines(&mut self, args: &PutArgs) -> Result<(), Failure> {
        let mut reader = open_lines(args)?;
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while let Some(line) = next_line(&mut *reader)? {
            bytes += line.len();
            batch.push(line);
            if bytes >= MAX_UNIT_BYTES || batch.len() >= MAX_UNIT_MESSAGES {
                self.unit(std::mem::take(&mut batch))?;
                bytes = 0;
            }
        }
        if batch.is_empty() {
            Ok(())
        } else {
            self.unit(batch)
        }
    }

    fn finish(&self) -> Result<(), Failure> {
        self.context.screen.end_progress();
        let (put, queue) = (number_of(self.put, "message"), self.queue);
        self.context
            .screen
            .say(&format!("queue \"{queue}\": {put} put"));
        Ok(())
    }
}

fn unreadable(path: &str, error: &io::Error) -> Failure {
    let exit = match error.kind() {
        io::ErrorKind::NotFound => Exit::NotFound,
        _ => Exit::Failed,
    };
    Failure::new(exit, format!("\"{path}\" cannot be read: {error}"))
}

fn open(path: &Path) -> Result<File, Failure> {
    File::open(path).map_err(|error| unreadable(&path.display().to_string(), &error))
}

/// The whole body: the argument, a file, or stdin.
fn read_body(args: &PutArgs) -> Result<Vec<u8>, Failure> {
    match (&args.body, &args.file) {
        (Some(body), _) if body != "-" => Ok(body.clone().into_bytes()),
        (Some(_), _) => read_whole("stdin", io::stdin().lock()),
        (None, Some(path)) => read_whole(&path.display().to_string(), open(path)?),
        (None, None) => {
            let message = "no body is given; write it, name a --file, or write - for stdin";
            Err(Failure::new(Exit::Usage, message))
        }
    }
}

fn read_whole(name: &str, reader: impl Read) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    let read = reader.take(MAX_MESSAGE_LENGTH + 1).read_to_end(&mut body);
    read.map_err(|error| unreadable(name, &error))?;
    if body.len() as u64 > MAX_MESSAGE_LENGTH {
        return Err(too_long(name));
    }
    Ok(body)
}

fn too_long(name: &str) -> Failure {
    let message = format!("{name} has more than {MAX_MESSAGE_LENGTH} bytes, the longest body");
    Failure::coded(oncue_core::code::Code::TooLarge, message)
}

fn open_lines(args: &PutArgs) -> Result<Box<dyn BufRead>, Failure> {
    match (&args.body, &args.file) {
        (Some(body), _) if body != "-" => {
            let message = "--lines takes its lines from --file or stdin, not from an argument";
            Err(Failure::new(Exit::Usage, message))
        }
        (_, Some(path)) => Ok(Box::new(BufReader::new(open(path)?))),
        (None, None) if io::stdin().is_terminal() => {
            let message = "no lines are given; name a --file, or write - to type them";
            Err(Failure::new(Exit::Usage, message))
        }
        _ => Ok(Box::new(BufReader::new(io::stdin()))),
    }
}

/// The next line that is not empty, without its end.
fn next_line(mut reader: &mut dyn BufRead) -> Result<Option<Vec<u8>>, Failure> {
    loop {
        let mut line = Vec::new();
        // One more than the longest body and a line end, so that a longer line is noticed.
        let read = (&mut reader)
            .take(MAX_MESSAGE_LENGTH + 2)
            .read_until(b'\n', &mut line);
        if read.map_err(|error| unreadable("the lines", &error))? == 0 {
            return Ok(None);
        }
        if line.ends_with(b"\n") {
            line.pop();
        }
        if line.ends_with(b"\r") {
            line.pop();
        }
        if line.len() as u64 > MAX_MESSAGE_LENGTH {
            return Err(too_long("a line"));
        }
        if !line.is_empty() {
            return Ok(Some(line));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_the_same_as_headers_and_as_json() {
        let args = FieldArgs {
            header: vec![("oncue-priority".to_owned(), "5".to_owned())],
            delay: Some("5s".to_owned()),
            idempotency_key: Some("k".to_owned()),
            property: [("Region", "eu"), ("b", "1"), ("b", "2")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .to_vec(),
            ..FieldArgs::default()
        };
        let fields = Fields::new(&args);
        let names: Vec<&str> = fields.0.iter().map(|(name, _)| name.as_str()).collect();
        let wanted = [
            "oncue-priority",
            "oncue-delay",
            "idempotency-key",
            "oncue-property-%52egion",
            "oncue-property-b",
            "oncue-property-b",
        ];
        assert_eq!(names, wanted);
        assert_eq!(
            Value::Object(fields.json(7).expect("fields")),
            json!({
                "priority": "5", "delay": "5s", "idempotency-key": "k-7",
                "properties": { "Region": "eu", "b": ["1", "2"] },
            })
        );
    }

    #[test]
    fn a_put_of_which_nothing_is_known_says_how_it_is_repeated() {
        let check = |key: Option<&str>, count, parts: &[&str]| {
            let args = FieldArgs {
                idempotency_key: key.map(str::to_owned),
                ..FieldArgs::default()
            };
            let text = Fields::new(&args).when_unknown("orders", count);
            for part in parts {
                assert!(text.contains(part), "{text}");
            }
        };
        check(
            None,
            1,
            &[
                "the message was put",
                "\"oncue browse orders\"",
                "--idempotency-key",
            ],
        );
        check(
            Some("k"),
            1,
            &["the message was put", "repeat the same command", "\"k\""],
        );
        check(
            Some("k"),
            500,
            &["these 500 messages were put", "keeps them"],
        );
    }

    #[test]
    fn a_header_that_json_cannot_say_is_for_one_message() {
        let args = FieldArgs {
            header: vec![("ce-id".to_owned(), "1".to_owned())],
            ..FieldArgs::default()
        };
        assert_eq!(
            Fields::new(&args).json(1).expect_err("refused").exit,
            Exit::Usage
        );
    }

    #[test]
    fn lines_are_read_without_their_ends_and_empty_ones_are_passed_over() {
        let mut reader = io::Cursor::new(b"one\r\n\n two \n\r\n\xff\nlast".to_vec());
        let mut lines = Vec::new();
        while let Some(line) = next_line(&mut reader).expect("read") {
            lines.push(line);
        }
        assert_eq!(lines, [&b"one"[..], b" two ", b"\xff", b"last"]);
    }
}
