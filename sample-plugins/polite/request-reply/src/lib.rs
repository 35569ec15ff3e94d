//! Request and reply: ask another handler for a quote, wait, and put the answer on.
//!
//! The question is the one put that does not wait for the commit, else nobody could answer it.
//! If this attempt fails later on, the next one asks the same question and is given the same
//! answer: nobody is asked twice.

use message_handler::wasi::config;
use message_handler::wasi::logging::logging::{self, Level};
use message_handler::{Content, Failure, Guest, Message, PutOptions, queues, retry};

/// How long to wait for a quote when the configuration does not say, in milliseconds.
const DEFAULT_WAIT: u64 = 5_000;

struct RequestReply;

impl Guest for RequestReply {
    fn handle(message: &Message) -> Result<(), Failure> {
        let wait = wait_from_config()?;
        let question = Content::Bytes(message.body());
        let options = PutOptions::default();

        // Waiting burns no fuel and holds no task slot, but the deadline runs on: the manifest's
        // deadline is longer than the wait.
        let answer = queues::request("quotes", &question, &options, wait)?;

        let about = answer.metadata();
        let line = format!("quote {} of {} bytes", about.id, about.size);
        logging::log(Level::Info, "request-reply", &line);

        // The answer goes on as it is, without its body passing through here.
        queues::forward(&answer, "quoted")?;
        Ok(())
    }
}

/// The manifest's `[process.config]` can set `wait`, in milliseconds.
fn wait_from_config() -> Result<u64, Failure> {
    match config::store::get("wait") {
        Ok(Some(text)) => text
            .parse()
            .map_err(|_| retry(format!("config wait: {text:?}"))),
        Ok(None) => Ok(DEFAULT_WAIT),
        Err(error) => Err(retry(format!("config wait: {error:?}"))),
    }
}

message_handler::export!(RequestReply);
