//! Content-based routing: each order goes to a queue chosen by what its body says.
//!
//! Shows the two kinds of failure. What can never succeed (a body that is no order) is rejected
//! with a reason and goes straight to the backout queue, where a person reads it. What may
//! succeed later (a full queue) is retried.

use message_handler::{Failure, Guest, Message, queues};
use serde_json::{Map, Value};

struct RouteOrders;

impl Guest for RouteOrders {
    fn handle(message: &Message) -> Result<(), Failure> {
        let order = Order::read(&message.body()).map_err(Failure::Reject)?;
        // The manager puts the message on as it is: the body is not copied back out of here.
        queues::forward(message, &order.target().map_err(Failure::Reject)?)?;
        Ok(())
    }
}

/// An order, as far as routing it needs: `{"order":"o-1","kind":"invoice","amount":12.5}`.
struct Order {
    order: String,
    kind: String,
    amount: f64,
}

impl Order {
    /// Reads an order. A body that is none is refused with a reason that says what it lacks.
    fn read(body: &[u8]) -> Result<Self, String> {
        let fields: Map<String, Value> = serde_json::from_slice(body)
            .map_err(|_| "not an order: the body is no JSON object".to_owned())?;
        let text = |name: &str| {
            let text = fields.get(name).and_then(Value::as_str).map(str::to_owned);
            text.ok_or_else(|| format!("not an order: \"{name}\" is missing or no text"))
        };
        let order = text("order")?;
        if order.is_empty() {
            return Err("not an order: \"order\" is empty".to_owned());
        }
        let kind = text("kind")?;
        let amount = fields.get("amount").and_then(Value::as_f64);
        let amount = amount.ok_or("not an order: \"amount\" is missing or no number")?;
        Ok(Self {
            order,
            kind,
            amount,
        })
    }

    /// Where it goes.
    fn target(&self) -> Result<String, String> {
        if self.amount < 0.0 {
            return Err(format!("order {:?}: \"amount\" is below 0", self.order));
        }
        match self.kind.as_str() {
            "invoice" => Ok("invoices".to_owned()),
            // Every other kind has an audit queue of its own; the grant covers `audit.*`. The
            // kind becomes part of a queue's name, so it may not be just anything.
            kind if is_queue_name(kind) => Ok(format!("audit.{kind}")),
            kind => Err(format!(
                "order {:?}: kind {kind:?} is no queue name",
                self.order
            )),
        }
    }
}

fn is_queue_name(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    !text.is_empty() && text.len() <= 64 && text.chars().all(allowed)
}

message_handler::export!(RouteOrders);
