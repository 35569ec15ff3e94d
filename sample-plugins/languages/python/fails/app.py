"""Fails in the way that the body says: "panic", "oom", any body that is no UTF-8. A body that
starts with "huge" is taken to pieces, as far as the language's speed goes."""

from wit_world import exports
from wit_world.imports import queues
from wit_world.imports.types import Content_Text, Message, PutOptions

PLAIN = PutOptions(
    correlation_id=None, reply_to=None, group=None, group_sequence=None, priority=None,
    persistent=None, content_type=None, properties=[], delay=None, expiry=None,
    idempotency_key=None,
)


class OnMessage(exports.OnMessage):
    def handle(self, message: Message) -> None:
        # Not caught: a body that is no text is an exception.
        text = message.text()
        if text == "panic":
            panics()
        elif text == "oom":
            hoards()
        elif text.startswith("huge"):
            weighs(message, text)


def panics() -> None:
    raise ValueError("boom from Python")


def hoards() -> None:
    everything = []
    while True:
        everything.append(bytearray(1 << 20))


def weighs(message: Message, text: str) -> None:
    """Every character and every byte, one by one."""
    characters = 0
    for _ in text:
        characters += 1
    total = 0
    for byte in message.body():
        total += byte
    queues.put("fails.out", Content_Text(f"{characters} characters, sum {total}"), PLAIN)
