"""The proxy from end to end: what an upstream gets for what a client sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.conversations import session_of
from tests.proxy.running import Running, Upstream, posted, proxy, upstream

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow
TEXTS = [f"line {i}\n" * 40 for i in range(6)]


@pytest.fixture(scope="module")
def api() -> Iterator[Upstream]:
    with upstream() as made:
        yield made


@pytest.fixture
def running(api: Upstream, tmp_path: Path) -> Iterator[Running]:
    api.seen.clear()
    api.answer = None
    with proxy(tmp_path, api.url) as made:
        yield made


def turn(running: Running, count: int, **headers: str) -> None:
    body = {"model": "m", "messages": session_of(*TEXTS[:count]), "max_tokens": 5}
    headers = {"x_claude_code_session_id": "s1", "x_api_key": "k1", **headers}
    status, _ = posted(running.url + "/v1/messages?beta=true", body, **headers)
    assert status == 200


def results_of(body: Any) -> list[str]:
    return [
        block["content"]
        for message in body["messages"]
        if isinstance(message["content"], list)
        for block in message["content"]
        if block["type"] == "tool_result"
    ]


def test_old_results_leave_and_the_prefix_stays(running: Running, api: Upstream) -> None:
    for count in (1, 2, 3, 4):
        turn(running, count)
    lists = [results_of(seen.body) for seen in api.seen]
    assert [len(found) for found in lists] == [1, 2, 3, 4]
    assert lists[0] == TEXTS[:1]
    for found, count in zip(lists, (1, 2, 3, 4), strict=True):
        assert found[-1] == TEXTS[count - 1]
        assert all("Path: " in text or "path" in text.lower() for text in found[:-1])
    assert lists[3][:2] == lists[2][:2]
    assert api.seen[3].path == "/v1/messages?beta=true"
