//! State: a total for each kind of order, kept between messages and across restarts.
//!
//! The state is in the same unit of work as the message: if this attempt fails, or the host is
//! killed in the middle, the total has not been added to, and is when the message comes again.
//! So no order is counted twice, and none is missed.

use message_handler::{Content, Failure, Guest, Message, PutOptions, queues, store};
use serde::Deserialize;

#[derive(Deserialize)]
struct Order {
    kind: String,
    amount: u64,
}

struct RunningTotal;

impl Guest for RunningTotal {
    fn handle(message: &Message) -> Result<(), Failure> {
        let order: Order = serde_json::from_slice(&message.body())
            .map_err(|fault| Failure::Reject(format!("not an order: {fault}")))?;

        // A plugin has one bucket, `default`. One key for each kind: two tasks that touch
        // different kinds do not conflict; two that read the same key do, and the manager runs
        // the later one again.
        let bucket = store::open("default")?;
        let key = format!("total.{}", order.kind);
        let before = match bucket.get(&key)? {
            Some(bytes) => number(&key, &bytes)?,
            None => 0,
        };
        let total = before
            .checked_add(order.amount)
            .ok_or_else(|| Failure::Reject(format!("{key} would pass 2^64")))?;
        bucket.set(&key, total.to_string().as_bytes())?;

        let answer = serde_json::json!({ "kind": order.kind, "total": total }).to_string();
        let options = PutOptions {
            content_type: Some("application/json".into()),
            ..PutOptions::default()
        };
        queues::put("totals", &Content::Text(answer), &options)?;
        Ok(())
    }
}

/// Totals are kept as decimal text, so that a person can read the state.
fn number(key: &str, bytes: &[u8]) -> Result<u64, Failure> {
    let text = std::str::from_utf8(bytes).ok();
    text.and_then(|text| text.parse().ok())
        .ok_or_else(|| message_handler::retry(format!("state {key} is not a number")))
}

message_handler::export!(RunningTotal);
