//! An order on standard input, the same order on standard output: a plain program that knows
//! nothing of queues.
//!
//! What can never succeed (a body that is no order, or no invoice) ends with a failure and the last
//! line `oncue-reject: REASON`, and goes straight to the backout queue. Its manifest says where
//! standard output goes.

use std::io::{Read, Write, stdin, stdout};
use std::process::ExitCode;

use serde_json::{Map, Value};

fn main() -> ExitCode {
    let mut body = Vec::new();
    let done = match stdin().read_to_end(&mut body) {
        Err(error) => Err(format!("standard input cannot be read: {error}")),
        // Nothing is written before the order is found good: what is written is put.
        Ok(_) => check(&body).map_err(|reason| format!("oncue-reject: {reason}")),
    };
    let done = done.and_then(|()| {
        let written = stdout().write_all(&body).and_then(|()| stdout().flush());
        written.map_err(|error| format!("standard output cannot be written: {error}"))
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::FAILURE
        }
    }
}

/// Whether a body is an invoice: `{"order":"o-1","kind":"invoice","amount":12.5}`.
fn check(body: &[u8]) -> Result<(), String> {
    let fields: Map<String, Value> = serde_json::from_slice(body)
        .map_err(|_| "not an order: the body is no JSON object".to_owned())?;
    let text = |name: &str| {
        let text = fields.get(name).and_then(Value::as_str);
        text.ok_or_else(|| format!("not an order: \"{name}\" is missing or no text"))
    };
    let order = text("order")?;
    if order.is_empty() {
        return Err("not an order: \"order\" is empty".to_owned());
    }
    let kind = text("kind")?;
    let amount = fields.get("amount").and_then(Value::as_f64);
    let amount = amount.ok_or("not an order: \"amount\" is missing or no number")?;
    if amount < 0.0 {
        return Err(format!("order {order:?}: \"amount\" is below 0"));
    }
    if !is_queue_name(kind) {
        return Err(format!("order {order:?}: kind {kind:?} is no queue name"));
    }
    Ok(())
}

fn is_queue_name(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    !text.is_empty() && text.len() <= 64 && text.chars().all(allowed)
}
