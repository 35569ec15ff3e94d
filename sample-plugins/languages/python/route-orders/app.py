"""Content-based routing: each order goes to a queue chosen by what its body says. The same work
as ../../../polite/route-orders, which is in Rust.

Two kinds of failure. What can never succeed (a body that is no order) is rejected with a reason
and goes straight to the backout queue, where a person reads it. What may succeed later (a full
queue) is retried.
"""

import json
import re

from componentize_py_types import Err
from wit_world import exports
from wit_world.imports import queues
from wit_world.imports.types import Failure_Reject, Failure_Retry, Message, Retry

# What may be part of a queue's name.
QUEUE_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")


class OnMessage(exports.OnMessage):
    def handle(self, message: Message) -> None:
        fields = parse(message)
        order, kind, amount = (fields.get(name) for name in ("order", "kind", "amount"))
        if not isinstance(order, str):
            raise reject('not an order: "order" is missing or no text')
        if not order:
            raise reject('not an order: "order" is empty')
        if not isinstance(kind, str):
            raise reject('not an order: "kind" is missing or no text')
        # To Python, true is a number.
        if not isinstance(amount, (int, float)) or isinstance(amount, bool):
            raise reject('not an order: "amount" is missing or no number')
        if amount < 0:
            raise reject(f'order {quoted(order)}: "amount" is below 0')
        # Every kind but invoice has an audit queue of its own; the grant covers `audit.*`. The
        # kind becomes part of a queue's name, so it may not be just anything.
        if not QUEUE_NAME.fullmatch(kind):
            raise reject(f"order {quoted(order)}: kind {quoted(kind)} is no queue name")
        try:
            # The manager puts the message on as it is: the body is not copied back out of here.
            queues.forward(message, "invoices" if kind == "invoice" else f"audit.{kind}")
        except Err as refused:
            raise retry(refused) from None


def parse(message: Message) -> dict:
    """The body as an object."""
    try:
        value = json.loads(message.text(), parse_constant=no_json)
    except (Err, ValueError, RecursionError):
        # Neither UTF-8 nor JSON: the same to whoever sent it.
        value = None
    if not isinstance(value, dict):
        raise reject("not an order: the body is no JSON object")
    return value


def no_json(word: str):
    """Python reads NaN and Infinity, JSON has no such words."""
    raise ValueError(word)


# A failure is raised as WIT has it. Any other exception is a trap: it is retried too, with the
# traceback in the task's record.
def reject(reason: str) -> Err:
    return Err(Failure_Reject(reason))


def retry(refused: Err) -> Err:
    """Tries the whole message again later. A refused call raises an error that says why."""
    return Err(Failure_Retry(Retry(reason=refused.value.value, after=None)))


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
