"""Logs of requests to either API: bodies with their `messages`, beside the responses where kept.

Every request repeats its whole prompt. One that goes on where another ended belongs to the same
conversation; messages that are the same but for cache marks are one object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyctx.replay.readers.building import Names
from policyctx.replay.readers.chat import is_chat_message
from policyctx.replay.readers.exchange import Exchange, exchange_of
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
    threads: list[Thread] = []
    by_beginning: dict[tuple[str, str], list[Thread]] = {}
    for record in source.records():
        exchange = exchange_of(record)
        if exchange is None:
            source.not_understood["record that is no request"] += 1
            continue
        thread = _thread(by_beginning.setdefault(exchange.beginning, []), exchange)
        if thread is None:
            thread = Thread()
            threads.append(thread)
            by_beginning[exchange.beginning].append(thread)
        thread.read(exchange)
    names = Names(source.name)
    for position, thread in enumerate(threads):
        thread.end()
        name = names.of(position + 1) if len(threads) > 1 else source.name
        yield thread.builder.recording(name, FORMAT)


def _thread(candidates: list[Thread], exchange: Exchange) -> Thread | None:
    """Return the conversation that a request continues, of those that began as it does.

    One whose beginning was changed, as by a compaction, continues the newest of them.
    """
    if not candidates:
        return None
    return max(reversed(candidates), key=lambda thread: thread.shared_with(exchange))
