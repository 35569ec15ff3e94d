//! Content-based routing: each order goes to a queue chosen by what its body says.
//!
//! Shows the two kinds of failure. What can never succeed (a body that is no order) is rejected
//! with a reason and goes straight to the backout queue, where a person reads it. What may
//! succeed later (a full queue) is retried.

use message_handler::{Failure, Guest, Message, queues};
use serde::Deserialize;

/// An order, as far as routing it needs: `{"order":"o-1","kind":"invoice","amount":12.5}`.
/// serde's own messages name a field that is missing or of the wrong type.
#[derive(Deserialize)]
struct Order {
    order: String,
    kind: String,
    amount: f64,
}

struct RouteOrders;

impl Guest for RouteOrders {
    fn handle(message: &Message) -> Result<(), Failure> {
        let order: Order = serde_json::from_slice(&message.body())
            .map_err(|fault| Failure::Reject(format!("not an order: {fault}")))?;
        if order.order.is_empty() {
            return Err(Failure::Reject("not an order: \"order\" is empty".into()));
        }
        if order.amount < 0.0 {
            let reason = format!(
                "order {:?}: amount {} is below 0",
                order.order, order.amount
            );
            return Err(Failure::Reject(reason));
        }
        let target = match order.kind.as_str() {
            "invoice" => "invoices".to_string(),
            // Every other kind has an audit queue of its own; the grant covers `audit.*`. The
            // kind becomes part of a queue's name, so it may not be just anything.
            kind if is_queue_name(kind) => format!("audit.{kind}"),
            kind => {
                let reason = format!("order {:?}: kind {kind:?} is no queue name", order.order);
                return Err(Failure::Reject(reason));
            }
        };
        // The manager puts the message on as it is: the body is not copied back out of here.
        queues::forward(message, &target)?;
        Ok(())
    }
}

fn is_queue_name(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    !text.is_empty() && text.len() <= 64 && text.chars().all(allowed)
}

message_handler::export!(RouteOrders);
