// Fails in the way that the body says: "panic", "oom", any body that is no UTF-8. A body that
// starts with "huge" is taken to pieces, as far as the language's speed goes.

import type { OnOwnedMessage } from "oncue:handler/on-owned-message@0.1.0";
import { put } from "oncue:handler/queues@0.1.0";
import type { Content, Message } from "oncue:handler/types@0.1.0";

export const onOwnedMessage: OnOwnedMessage = {
  handle(message) {
    // Not caught: a body that is no text is an exception.
    const text = message.text();
    if (text === "panic") panics();
    else if (text === "oom") hoards();
    else if (text.startsWith("huge")) weighs(message, text);
  },
};

function panics(): never {
  throw new TypeError("boom from TypeScript");
}

function hoards(): never {
  const all: Uint8Array[] = [];
  for (;;) all.push(new Uint8Array(1 << 20));
}

/** Every character and every byte, one by one. */
function weighs(message: Message, text: string): void {
  let characters = 0;
  for (const _ of text) characters += 1;
  let sum = 0;
  for (const byte of message.body()) sum += byte;
  const content: Content = { tag: "text", val: `${characters} characters, sum ${sum}` };
  put("fails.out", content, { properties: [] });
}
