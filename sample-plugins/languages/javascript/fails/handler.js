// Fails in the way that the body says: "panic", "oom", any body that is no UTF-8. A body that
// starts with "huge" is taken to pieces, as far as the language's speed goes.

import { put } from "oncue:handler/queues@0.1.0";

export const onOwnedMessage = {
  handle(message) {
    // Not caught: a body that is no text is an exception.
    const text = message.text();
    if (text === "panic") panics();
    else if (text === "oom") hoards();
    else if (text.startsWith("huge")) weighs(message, text);
  },
};

function panics() {
  throw new TypeError("boom from JavaScript");
}

function hoards() {
  const all = [];
  for (;;) all.push(new Uint8Array(1 << 20));
}

// Every character and every byte, one by one.
function weighs(message, text) {
  let characters = 0;
  for (const _ of text) characters += 1;
  let sum = 0;
  for (const byte of message.body()) sum += byte;
  const content = { tag: "text", val: `${characters} characters, sum ${sum}` };
  put("fails.out", content, { properties: [] });
}
