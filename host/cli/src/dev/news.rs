//! What `oncue dev` says: builds, the plugin's states, and each task with what came of it. For
//! people as lines, for programs as one JSON object a line.
//!
//! It asks the manager for what an event only names, and decides nothing.

use oncue_core::message::Message;
use oncue_core::names::{PluginName, QueueName};
use oncue_core::outcome::Outcome;
use oncue_manager::Handle;
use oncue_manager::status::HostEvent;
use oncue_manager::tasks::TaskId;
use oncue_manager::tasks::record::{MessageOutcome, PutCount, TaskRecord};
use serde_json::{Value, json};

use crate::commands::short_digest;
use crate::exit::Failure;
use crate::render::Screen;
use crate::render::text::{cut_line, escape_line, last_words};
use crate::render::time::{format_bytes, format_duration, format_number, number_of};

/// Puts of a task to one queue that are shown with their bodies.
const MAX_SHOWN_PUTS: usize = 3;

/// Messages of a queue that are looked through for a task's puts.
const MAX_BROWSED: usize = 1_000;

/// Characters of a body that are shown.
const BODY_LENGTH: usize = 160;

/// Bytes of a body that are read to be shown.
const BODY_BYTES: u64 = 1_024;

/// Last lines of a task's log that are shown.
const LOG_LINES: usize = 20;

/// Failed messages of one task that are shown.
const MAX_SHOWN_FAILURES: usize = 5;

/// Says news, and remembers what it said last of the plugin.
pub(super) struct News<'a> {
    screen: &'a Screen,
    handle: Handle,
    plugin: PluginName,
    last: Option<(String, Option<String>)>,
}

impl<'a> News<'a> {
    /// News of a host, its plugin above all.
    pub(super) fn new(screen: &'a Screen, handle: Handle, plugin: PluginName) -> Self {
        Self {
            screen,
            handle,
            plugin,
            last: None,
        }
    }

    /// Another plugin is the project's from now on.
    pub(super) fn follow(&mut self, plugin: PluginName) {
        if self.plugin != plugin {
            self.plugin = plugin;
            self.last = None;
        }
    }

    /// Says a line; `kind` and `fields` are the same for programs.
    pub(super) fn say(&self, kind: &str, line: &str, fields: Value) -> Result<(), Failure> {
        if self.screen.is_json() {
            let mut object = json!({ "kind": kind });
            if let (Some(object), Value::Object(fields)) = (object.as_object_mut(), fields) {
                object.extend(fields);
            }
            self.screen.json(&object)?;
        } else {
            self.screen.text(line)?;
        }
        self.screen.flush()
    }

    /// Says what an event tells, if it is news for an author. Answers true when the plugin serves
    /// another version than before.
    pub(super) async fn event(&mut self, event: HostEvent) -> Result<bool, Failure> {
        match event {
            HostEvent::TaskEnded { task, .. } => self.task(task).await?,
            HostEvent::Plugin { name, .. } if name == self.plugin.as_str() => {
                return self.plugin_state().await;
            }
            HostEvent::Parked { queue, message, .. } => {
                let line = format!("message {message} of queue \"{queue}\" is parked: {PARKED}");
                let fields = json!({ "queue": queue, "message": message });
                self.say("parked", &line, fields)?;
            }
            HostEvent::Store { state, .. } => {
                let line = format!("the store is {state} now");
                self.say("store", &line, json!({ "state": state }))?;
            }
            _ => {}
        }
        Ok(false)
    }

    /// Says the plugin's state, if it is another one. Answers true when another version serves.
    pub(super) async fn plugin_state(&mut self) -> Result<bool, Failure> {
        let Ok(view) = self.handle.plugin(self.plugin.clone()).await else {
            return Ok(false);
        };
        let state = match &view.reason {
            Some(reason) => format!("{}: {reason}", view.state),
            None if view.awaits_next() => format!("{}, compiling the next version", view.state),
            None => view.state.to_owned(),
        };
        let now = (state.clone(), view.digest.clone());
        if self.last.as_ref() == Some(&now) {
            return Ok(false);
        }
        let before = self.last.replace(now);
        let serves = view.digest.as_deref().map(|digest| {
            let style = view.style.map(|style| json!(style));
            let style = style.as_ref().and_then(Value::as_str).unwrap_or_default();
            format!(" ({}, {style} style)", short_digest(digest))
        });
        let line = format!(
            "plugin {}: {state}{}",
            self.plugin,
            serves.unwrap_or_default()
        );
        let fields = json!({
            "plugin": self.plugin, "state": view.state, "reason": view.reason,
            "digest": view.digest,
        });
        self.say("plugin", &line, fields)?;
        let served = before.and_then(|(_, digest)| digest);
        Ok(view.digest.is_some() && view.digest != served)
    }

    async fn task(&self, id: TaskId) -> Result<(), Failure> {
        // One that is no longer known has been told of by its end.
        let Ok(record) = self.handle.task(id).await else {
            return Ok(());
        };
        let quiet = record.messages.is_empty() && record.puts.is_empty();
        if record.outcome == Some(Outcome::NoProgress) && quiet {
            return Ok(());
        }
        if self.screen.is_json() {
            return self.say("task", "", json!({ "task": record }));
        }
        for line in self.lines(&record) {
            self.screen.line(&line)?;
        }
        self.screen.flush()
    }

    fn lines(&self, record: &TaskRecord) -> Vec<String> {
        let mut lines = vec![headline(record)];
        let failed = |message: &&MessageOutcome| message.outcome != Outcome::Committed;
        let failures = record.messages.iter().filter(failed);
        for message in failures.take(MAX_SHOWN_FAILURES) {
            let detail = message.detail.as_deref().unwrap_or_default();
            lines.push(format!(
                "  message {}: {}: {}",
                message.id,
                message.outcome.as_str(),
                escape_line(last_words(detail))
            ));
        }
        for put in &record.puts {
            lines.extend(self.puts(record, put));
        }
        let log = record.cost.log_tail.trim_start_matches('\n');
        let log: Vec<&str> = log.lines().collect();
        let first = log.len().saturating_sub(LOG_LINES);
        if first > 0 || record.cost.log_cut > 0 {
            lines.push(format!("  log: the last {} lines", log.len() - first));
        }
        for line in &log[first..] {
            lines.push(format!("  | {}", escape_line(line)));
        }
        for refusal in &record.cost.refused {
            let (what, times) = (escape_line(&refusal.what), number_of(refusal.times, "time"));
            lines.push(format!("  refused: {what} ({times}); see grants"));
        }
        if record.outcome.is_some_and(Outcome::is_failure) {
            let id = record.id;
            lines.push(format!(
                "  more: oncue task show {id}; to run it again: oncue task export {id}"
            ));
        }
        lines
    }

    /// Where a task's puts went; the bodies of those that are still there.
    fn puts(&self, record: &TaskRecord, put: &PutCount) -> Vec<String> {
        let by = format!("process/{}", record.process);
        let page = self.handle.browse(&put.queue, None, MAX_BROWSED, false);
        let found = page.map(|page| page.messages).unwrap_or_default();
        let own = found
            .iter()
            .map(|browsed| &browsed.message)
            .filter(|message| {
                let header = &message.header;
                header.put_by.as_deref() == Some(by.as_str()) && header.put_time >= record.started
            });
        let own: Vec<&Message> = own.collect();
        // The last ones are this task's, if an earlier one began in the same moment.
        let count = usize::try_from(put.messages).unwrap_or(usize::MAX);
        let shown = own.len().min(count).min(MAX_SHOWN_PUTS);
        let mut lines: Vec<String> = own[own.len() - shown..]
            .iter()
            .map(|message| format!("  put {}: {}", put.queue, self.body(message)))
            .collect();
        if shown < count {
            let more = format_number(put.messages.saturating_sub(shown as u64));
            let word = if shown > 0 { "more" } else { "messages" };
            lines.push(format!("  put {}: {more} {word}", put.queue));
        }
        lines
    }

    fn body(&self, message: &Message) -> String {
        let size = message.body.len();
        let bytes = self.handle.read_body(&message.body, 0, BODY_BYTES);
        match bytes.as_deref().map(std::str::from_utf8) {
            Ok(Ok(text)) => cut_line(text, BODY_LENGTH),
            _ => format_bytes(size),
        }
    }

    /// Makes the queues that the handler may put to, so that a first message can be handled; says
    /// which.
    pub(super) async fn make_queues(&self) -> Result<(), Failure> {
        let process = oncue_core::names::ProcessName::from(&self.plugin);
        let Ok(view) = self.handle.process(process).await else {
            return Ok(());
        };
        let granted = view.attributes.grants.put.iter();
        let names = granted.filter_map(|pattern| QueueName::new(pattern.as_str()).ok());
        for queue in names.chain(view.attributes.output.clone()) {
            if queue.is_reserved() || self.handle.queue(queue.clone()).await.is_ok() {
                continue;
            }
            let made = self.handle.define_queue(queue.clone(), Default::default());
            if made.await.is_ok() {
                let line = format!("queue \"{queue}\" was made: the handler may put to it");
                self.say("queue", &line, json!({ "queue": queue }))?;
            }
        }
        Ok(())
    }
}

/// What a person does about a parked message.
const PARKED: &str = "neither its backout queue nor the dead-letter queue takes it";

fn headline(record: &TaskRecord) -> String {
    let took = record
        .ended
        .map(|ended| format!(" in {}", format_duration(ended.since(record.started))));
    let outcome = record.outcome.map_or("running", Outcome::as_str);
    let failed = match record.failed {
        0 => String::new(),
        failed => format!(", {} failed", format_number(failed)),
    };
    format!(
        "task {} of {}: {outcome}{} ({} committed{failed}; fuel {}, memory {})",
        record.id,
        record.queue,
        took.unwrap_or_default(),
        format_number(record.committed),
        format_number(record.cost.fuel),
        format_bytes(record.cost.peak_memory),
    )
}
