//! Tries everything that it was not given, and reports how each attempt went.
//!
//! The report on `reaches-out.out` has a line for each: `tcp`, `environment`, `arguments`,
//! `file`, `folder`, `put`, `get`. Sockets and queues are refused and recorded; environment and
//! files are simply empty. Ends as `committed`.

use std::net::{SocketAddr, TcpStream};

use message_handler::queues::{self, GetOptions};
use message_handler::{Content, Failure, Guest, Message, PutOptions};

struct ReachesOut;

impl Guest for ReachesOut {
    fn handle(_: &Message) -> Result<(), Failure> {
        let anything = Content::Text("not granted".into());
        let options = PutOptions::default();
        let elsewhere = GetOptions {
            queue: Some("secrets".into()),
            ..GetOptions::default()
        };
        let report = [
            attempt(
                "tcp",
                TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], 7373))),
            ),
            format!("environment: {} variables", std::env::vars_os().count()),
            format!("arguments: {}", std::env::args_os().count()),
            attempt("file", std::fs::read("/etc/hostname")),
            attempt("folder", std::fs::read_dir(".")),
            attempt("put", queues::put("secrets", &anything, &options)),
            attempt("get", queues::get(&elsewhere)),
        ];
        let report = Content::Text(report.join("\n"));
        queues::put("reaches-out.out", &report, &options)?;
        Ok(())
    }
}

/// A line of the report: `NAME: allowed`, or `NAME: refused: WHY`.
fn attempt<T, E: std::fmt::Debug>(name: &str, result: Result<T, E>) -> String {
    match result {
        Ok(_) => format!("{name}: allowed"),
        Err(why) => format!("{name}: refused: {why:?}"),
    }
}

message_handler::export!(ReachesOut);
