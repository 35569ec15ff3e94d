// Content-based routing: each order goes to a queue chosen by what its body says. The same work
// as ../../../polite/route-orders, which is in Rust.
//
// Two kinds of failure. What can never succeed (a body that is no order) is rejected with a
// reason and goes straight to the backout queue, where a person reads it. What may succeed later
// (a full queue) is retried.

import type { OnOwnedMessage } from "oncue:handler/on-owned-message@0.1.0";
import { forward } from "oncue:handler/queues@0.1.0";
import type { CallError, Failure, Message } from "oncue:handler/types@0.1.0";

/** An order, as far as routing it needs: `{"order":"o-1","kind":"invoice","amount":12.5}`. */
interface Order {
  order: string;
  kind: string;
  amount: number;
}

export const onOwnedMessage: OnOwnedMessage = {
  handle(message) {
    const { order, kind, amount } = parse(message);
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
      retry(refused as CallError);
    }
  },
};

function parse(message: Message): Order {
  const fields = object(message);
  const { order, kind, amount } = fields;
  if (typeof order !== "string") reject('not an order: "order" is missing or no text');
  if (order === "") reject('not an order: "order" is empty');
  if (typeof kind !== "string") reject('not an order: "kind" is missing or no text');
  if (typeof amount !== "number") reject('not an order: "amount" is missing or no number');
  return { order, kind, amount };
}

/** The body as an object. QuickJS has no TextDecoder: the manager gives the body as text. */
function object(message: Message): Record<string, unknown> {
  let value: unknown = null;
  try {
    value = JSON.parse(message.text());
  } catch {
    // Neither UTF-8 nor JSON: the same to whoever sent it.
  }
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    reject("not an order: the body is no JSON object");
  }
  return value as Record<string, unknown>;
}

/**
 * A failure is thrown as WIT has it. Any other exception is a trap: it is retried too, with the
 * exception's text and stack in the task's record.
 */
function fail(failure: Failure): never {
  throw failure;
}

function reject(reason: string): never {
  fail({ tag: "reject", val: reason });
}

/** Tries the whole message again later. A refused call throws an error whose payload says why. */
function retry(refused: CallError): never {
  const why = refused.payload;
  if (!why) throw refused;
  fail({ tag: "retry", val: { reason: "val" in why ? why.val : why.tag, after: null } });
}

function quoted(text: string): string {
  return JSON.stringify(text);
}
