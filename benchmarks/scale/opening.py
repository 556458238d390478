"""A session at a URL that is opened again: requests for its journal, and the time that they take.

The journal has one object for each write, and a pack for each 64. It is in a folder behind the
client of an object store, which waits 30 ms before each request, as a service elsewhere would take.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any

from benchmarks.runner import markdown_table
from policyctx.store.backend import StoreUrl, store_root
from policyctx.store.remote.backend import SegmentedLog
from policyctx.store.remote.client import ObjectClient

LATENCY_S = 0.03
_LINE = b"x" * 1_200 + b"\n"
_TIMEOUT_S = 30.0


class CountingClient(ObjectClient):
    """A client that counts its requests, and waits before each."""

    def __init__(self, url: StoreUrl, *, latency: float) -> None:
        super().__init__(url, timeout=_TIMEOUT_S)
        self.latency = latency
        self.requests = 0
        self._counting = Lock()

    def _tried(self, *given: Any, **options: Any) -> Any:  # noqa: ANN401 - those of the client
        with self._counting:
            self.requests += 1
        time.sleep(self.latency)
        return super()._tried(*given, **options)


@dataclass(frozen=True, slots=True)
class Opened:
    """What opening a journal came to."""

    writes: int
    requests: int
    seconds: float


def measured(writes: Sequence[int]) -> Iterator[Opened]:
    """Yield the figures of journals with the given numbers of writes."""
    for count in writes:
        with TemporaryDirectory(prefix="policyctx-bench-") as folder:
            url = store_root(Path(folder).as_uri())
            if not isinstance(url, StoreUrl):
                raise TypeError(f"{url} is no URL")
            written = SegmentedLog(CountingClient(url, latency=0), "journal.jsonl")
            for _ in range(count):
                written.append(_LINE)
            client = CountingClient(url, latency=LATENCY_S)
            read = SegmentedLog(client, "journal.jsonl")
            started = time.perf_counter()
            read.refresh()
            seconds = time.perf_counter() - started
            if read.status.size != written.status.size:
                raise RuntimeError("the journal was not read whole")
            yield Opened(count, client.requests, seconds)


def table(found: Sequence[Opened]) -> str:
    """Return the figures as a Markdown table."""
    rows = [(f"{o.writes:,}", f"{o.requests}", f"{1e3 * o.seconds:,.0f} ms") for o in found]
    return markdown_table(("writes", "requests", "time"), rows, numeric=range(3))
