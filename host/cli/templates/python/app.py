"""Greets: each message is a name, and the greeting goes to the queue `{{name}}.out`."""

from componentize_py_types import Err
from wit_world import exports
from wit_world.imports import logging, queues
from wit_world.imports.types import (
    Content_Text,
    Failure_Reject,
    Failure_Retry,
    Message,
    PutOptions,
    Retry,
)

# Where the greetings go. The manifest grants the put.
OUTPUT = "{{name}}.out"

# A put with the queue's own defaults.
PLAIN = PutOptions(
    correlation_id=None,
    reply_to=None,
    group=None,
    group_sequence=None,
    priority=None,
    persistent=None,
    content_type=None,
    properties=[],
    delay=None,
    expiry=None,
    idempotency_key=None,
)


class OnMessage(exports.OnMessage):
    def handle(self, message: Message) -> None:
        """Handles one message. Returning commits: the message leaves its queue and the greeting is
        there. Raising undoes all of it and says what becomes of the message."""
        try:
            name = message.text()
        except Err:
            # What can never succeed is rejected: it is not tried again, an operator reads the
            # reason.
            raise Err(Failure_Reject("the name is not UTF-8")) from None
        if not name:
            raise Err(Failure_Reject("the name is empty"))
        logging.log(logging.Level.INFO, "{{name}}", f"greets {name}")
        try:
            queues.put(OUTPUT, Content_Text(f"hello {name}"), PLAIN)
        except Err as refused:
            # A call was refused, such as a put to a full queue: try again later, with the refusal
            # as the reason. Any other exception does the same, less readably.
            raise Err(Failure_Retry(Retry(refused.value.value, after=None))) from None
