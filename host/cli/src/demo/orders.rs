//! The demo's orders: the same ones every time, some of them broken in ways that orders are broken.

use serde_json::{Value, json};

/// What can be ordered, and the queue to which `route-orders` sends it.
pub(super) const KINDS: [(&str, &str); 3] = [
    ("invoice", "invoices"),
    ("refund", "audit.refund"),
    ("quote", "audit.quote"),
];

/// Every so many orders, one is broken.
const BROKEN_EVERY: u64 = 25;

/// One order.
pub(super) struct Order {
    /// What is put.
    pub(super) body: String,
    /// Its kind and amount; `None` for a broken one.
    pub(super) valid: Option<(&'static str, u64)>,
}

/// The order of that number.
pub(super) fn order(number: u64) -> Order {
    let name = format!("o-{number}");
    let kinds = KINDS.len() as u64;
    let (kind, _) = KINDS[usize::try_from(number % kinds).unwrap_or_default()];
    let amount = 10 + number * 7 % 90;
    if number % BROKEN_EVERY == BROKEN_EVERY - 1 {
        let body = match number / BROKEN_EVERY % 3 {
            0 => format!("order {name}: one {kind}, please"),
            1 => json!({ "order": name, "kind": kind, "amount": -5 }).to_string(),
            _ => json!({ "order": name, "amount": amount }).to_string(),
        };
        return Order { body, valid: None };
    }
    let body = json!({ "order": name, "kind": kind, "amount": amount }).to_string();
    Order {
        body,
        valid: Some((kind, amount)),
    }
}

/// The unit of work that puts an order to both handlers' queues: both get it, or none.
pub(super) fn puts(order: &Order) -> [Value; 2] {
    ["orders", "running-total"].map(
        |queue| json!({ "queue": queue, "body": order.body, "content-type": "application/json" }),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_orders_of_every_kind_and_some_broken_ones() {
        let orders: Vec<Order> = (0..500).map(order).collect();
        let broken = orders.iter().filter(|order| order.valid.is_none()).count();
        assert_eq!(broken, 20);
        for (kind, _) in KINDS {
            let of_kind = |order: &&Order| order.valid.is_some_and(|(name, _)| name == kind);
            assert!(orders.iter().filter(of_kind).count() > 100, "{kind}");
        }
        let first: Value = serde_json::from_str(&orders[0].body).expect("JSON");
        assert_eq!(
            first,
            json!({ "order": "o-0", "kind": "invoice", "amount": 10 })
        );
    }
}
