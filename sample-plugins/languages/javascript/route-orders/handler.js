// Content-based routing: each order goes to a queue chosen by what its body says. The same work
// as ../../../polite/route-orders, which is in Rust.
//
// Two kinds of failure. What can never succeed (a body that is no order) is rejected with a
// reason and goes straight to the backout queue, where a person reads it. What may succeed later
// (a full queue) is retried.

import { forward } from "oncue:handler/queues@0.1.0";

export const onOwnedMessage = {
  handle(message) {
    const { order, kind, amount } = parse(message);
    if (typeof order !== "string") reject('not an order: "order" is missing or no text');
    if (order === "") reject('not an order: "order" is empty');
    if (typeof kind !== "string") reject('not an order: "kind" is missing or no text');
    if (typeof amount !== "number") reject('not an order: "amount" is missing or no number');
    if (amount < 0) reject(`order ${quoted(order)}: "amount" is below 0`);
    // Every kind but invoice has an audit queue of its own; the grant covers `audit.*`. The kind
    // becomes part of a queue's name, so it may not be just anything.
    if (!/^[A-Za-z0-9._-]{1,64}$/.test(kind)) {
      reject(`order ${quoted(order)}: kind ${quoted(kind)} is no queue name`);
    }
    try {
      // The manager puts the message on as it is: the body is not copied back out of here.
      forward(message, kind === "invoice" ? "invoices" : `audit.${kind}`);
    } catch (refused) {
      retry(refused);
    }
  },
};

// The body as an object. QuickJS has no TextDecoder: the manager gives the body as text.
function parse(message) {
  let value = null;
  try {
    value = JSON.parse(message.text());
  } catch {
    // Neither UTF-8 nor JSON: the same to whoever sent it.
  }
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    reject("not an order: the body is no JSON object");
  }
  return value;
}

// A failure is thrown as WIT has it. Any other exception is a trap: it is retried too, with the
// exception's text and stack in the task's record.
function reject(reason) {
  throw { tag: "reject", val: reason };
}

// Tries the whole message again later. A refused call throws an error whose payload says why.
function retry(refused) {
  if (!refused.payload) throw refused;
  throw { tag: "retry", val: { reason: refused.payload.val, after: null } };
}

function quoted(text) {
  return JSON.stringify(text);
}
