"""Logs of requests to either API: bodies with their `messages`, beside the responses where kept.

Every request repeats its whole prompt. Those with one first user message, and one id where the log
has ids, are one conversation; messages that are the same but for cache marks are one object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyctx.replay.readers.building import Names
from policyctx.replay.readers.chat import is_chat_message
from policyctx.replay.readers.exchange import exchange_of
from policyctx.replay.readers.thread import Thread

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policyctx.replay.readers.source import Source
    from policyctx.replay.recording import Recording

FORMAT = "request-log"


def recognises(record: object) -> bool:
    """Is this a request: messages beside a model's name, or inside a record of a request."""
    exchange = exchange_of(record)
    return exchange is not None and is_chat_message(exchange.messages[0])


def recordings(source: Source) -> Iterator[Recording]:
    """Yield the conversations, in the order in which they began."""
    threads: dict[tuple[str, str], Thread] = {}
    for record in source.records():
        exchange = exchange_of(record)
        if exchange is None:
            source.not_understood["record that is no request"] += 1
        else:
            threads.setdefault(exchange.beginning, Thread()).read(exchange)
    names = Names(source.name)
    for position, thread in enumerate(threads.values(), 1):
        thread.end()
        name = names.of(position) if len(threads) > 1 else source.name
        yield thread.builder.recording(name, FORMAT)
