// Greets: each message is a name, and the greeting goes to the queue `{{name}}.out`.

import { put } from "oncue:handler/queues@0.1.0";
import { log } from "wasi:logging/logging@0.1.0-draft";

// Where the greetings go. The manifest grants the put.
const OUTPUT = "{{name}}.out";

// The one export. QuickJS gives a lent message back too late, so it is given the message for good.
export const onOwnedMessage = {
  // Handles one message. Returning commits: the message leaves its queue and the greeting is
  // there. Throwing undoes all of it and says what becomes of the message.
  handle(message) {
    const name = text(message);
    if (name === "") throw reject("the name is empty");
    log("info", "{{name}}", `greets ${name}`);
    try {
      // What is not said of the message takes the queue's default; `properties` has none.
      put(OUTPUT, { tag: "text", val: `hello ${name}` }, { properties: [] });
    } catch (refused) {
      throw later(refused);
    }
  },
};

// The body as text. There is no TextDecoder: the manager decodes, and refuses what is not UTF-8.
function text(message) {
  try {
    return message.text();
  } catch {
    throw reject("the name is not UTF-8");
  }
}

// What can never succeed is rejected: it is not tried again, an operator reads the reason.
function reject(reason) {
  return { tag: "reject", val: reason };
}

// A call was refused, such as a put to a full queue: try again later, with the refusal as the
// reason. Any other exception does the same, less readably.
function later(refused) {
  const why = refused.payload?.val;
  return why === undefined ? refused : { tag: "retry", val: { reason: why, after: null } };
}
