"""Message lists in the shapes of the Anthropic and OpenAI chat APIs.

A conversation is drawn once, as rounds of prompts, replies, calls and results, and then written
down in either shape. What real lists suffer from is drawn on purpose: results that are missing,
that nobody asked for or that repeat an id, blocks of unknown kinds, texts that break encoders.
"""

from __future__ import annotations

import itertools
from itertools import count
from operator import mul
from typing import TYPE_CHECKING, Any, NamedTuple

from hypothesis import strategies as st

from policyctx.messages.json_text import compact_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policyctx.definitions.items import Message

_Blocks = list[dict[str, Any]]

# Names that a path is made of, so some of them try to lead out of it.
_TOOLS = ("read", "read", "search", "mcp__web__fetch", "pinned", "../up", "")
_REUSED_IDS = ("again", "again", "../again", "", "x" * 200)

_FRAGMENTS = st.one_of(
    st.sampled_from(
        (
            "",
            "one line\n",
            "a word ",
            "字",
            "漢字とかな。",
            "한국어",
            "👩‍👩‍👧",
            "\0",
            "\ud800",
            "\udfff\ud83d",
            "\u2028",
            "<|endoftext|>",
            '{"a":1}',
            "[Content offloaded to: ./tool-result-again.md]",
        )
    ),
    st.text(st.characters(), max_size=8),
)
# Short ones, such as cross the thresholds of the presets, and two that come again and again.
_TEXTS = st.one_of(
    st.builds(mul, _FRAGMENTS, st.sampled_from((1, 3, 30, 150, 900))),
    st.sampled_from(("the very same words, said again", "one line of many\n" * 300)),
)

_IMAGE = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="},
}
_IMAGE_URL = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
_UNKNOWN = {"type": "not_known_yet", "value": [1, None, {"deep": "字"}]}


class _Result(NamedTuple):
    text: str
    as_blocks: bool
    image: bool
    error: bool


class _Call(NamedTuple):
    tool: str
    reused_id: str | None
    argument: str
    result: _Result | None


class _Reply(NamedTuple):
    text: str
    as_blocks: bool
    thinking: str | None
    calls: list[_Call]
    unknown: bool
    aside: str | None
    orphan: _Result | None


class _Round(NamedTuple):
    prompt: str | None
    as_blocks: bool
    image: bool
    replies: list[_Reply]


def _rarely(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), st.none(), st.none(), strategy)


_SELDOM = st.sampled_from((False, False, False, True))
_RESULTS = st.builds(_Result, _TEXTS, st.booleans(), _SELDOM, _SELDOM)
_CALLS = st.builds(
    _Call,
    st.sampled_from(_TOOLS),
    _rarely(st.sampled_from(_REUSED_IDS)),
    _FRAGMENTS,
    st.one_of(_RESULTS, _RESULTS, _RESULTS, st.none()),
)
_REPLIES = st.builds(
    _Reply,
    _TEXTS,
    st.booleans(),
    _rarely(_FRAGMENTS),
    st.lists(_CALLS, max_size=3),
    _SELDOM,
    _rarely(_TEXTS),
    _rarely(_RESULTS),
)
_ROUNDS = st.builds(
    _Round, st.one_of(_TEXTS, st.none()), st.booleans(), _SELDOM, st.lists(_REPLIES, max_size=3)
)
_SYSTEM = st.one_of(
    st.none(), st.sampled_from(("Be brief. " * 30, [{"type": "text", "text": "字"}]))
)


def message_lists() -> st.SearchStrategy[list[Message]]:
    """Return a strategy for lists of 0 to some 50 messages, in either shape."""
    return st.one_of(anthropic_lists(), openai_lists())


def anthropic_lists() -> st.SearchStrategy[list[Message]]:
    """Return a strategy for lists in the Anthropic shape: all results of a reply in one message."""
    return st.lists(_ROUNDS, max_size=4).map(lambda rounds: list(_anthropic(rounds)))


def openai_lists() -> st.SearchStrategy[list[Message]]:
    """Return a strategy for lists in the OpenAI chat shape: each result is its own message."""
    rounds = st.lists(_ROUNDS, max_size=4)
    return st.builds(lambda system, given: list(_openai(system, given)), _SYSTEM, rounds)


def growing_lists() -> st.SearchStrategy[list[list[Message]]]:
    """Return a strategy for the lists that the model calls of one session are given, in order.

    Each begins with the one before it, in the same message objects; the last is whole.
    """
    return st.builds(_growing, message_lists(), st.lists(st.integers(1, 8), min_size=1))


def _growing(messages: list[Message], steps: list[int]) -> list[list[Message]]:
    ends, end = [], 0
    for step in itertools.cycle(steps):
        end += step
        if end >= len(messages):
            break
        ends.append(end)
    return [messages[:end] for end in (*ends, len(messages))]


def _anthropic(rounds: list[_Round]) -> Iterator[Message]:
    numbers = count()
    for each in rounds:
        if each.prompt is not None:
            shown = [_text(each.prompt), *[dict(_IMAGE)] * each.image]
            yield {"role": "user", "content": shown if each.as_blocks else each.prompt}
        for reply in each.replies:
            ids = _ids(reply, numbers)
            yield {"role": "assistant", "content": _reply_blocks(reply, ids)}
            if answers := _answers(reply, ids):
                yield {"role": "user", "content": answers}


def _openai(system: object, rounds: list[_Round]) -> Iterator[Message]:
    numbers = count()
    if system is not None:
        yield {"role": "system" if isinstance(system, str) else "developer", "content": system}
    for each in rounds:
        if each.prompt is not None:
            shown = [_text(each.prompt), *[dict(_IMAGE_URL)] * each.image]
            yield {"role": "user", "content": shown if each.as_blocks else each.prompt}
        for reply in each.replies:
            ids = _ids(reply, numbers)
            yield _chat_reply(reply, ids)
            for call, call_id in zip(reply.calls, ids, strict=True):
                if call.result is not None:
                    yield _tool_message(call.result, call_id)
            if reply.orphan is not None:
                yield _tool_message(reply.orphan, "lost")
            if reply.aside is not None:
                yield {"role": "user", "content": reply.aside}


def _ids(reply: _Reply, numbers: Iterator[int]) -> list[str]:
    return [
        f"call_{next(numbers)}" if call.reused_id is None else call.reused_id
        for call in reply.calls
    ]


def _reply_blocks(reply: _Reply, ids: list[str]) -> str | _Blocks:
    calls = [
        {"type": "tool_use", "id": call_id, "name": call.tool, "input": {"path": call.argument}}
        for call, call_id in zip(reply.calls, ids, strict=True)
    ]
    thinking = [] if reply.thinking is None else [_thinking(reply.thinking)]
    blocks = [*thinking, _text(reply.text), *[dict(_UNKNOWN)] * reply.unknown, *calls]
    return blocks if reply.as_blocks or len(blocks) > 1 else reply.text


def _answers(reply: _Reply, ids: list[str]) -> _Blocks:
    results = [
        _result_block(call.result, call_id)
        for call, call_id in zip(reply.calls, ids, strict=True)
        if call.result is not None
    ]
    orphan = [] if reply.orphan is None else [_result_block(reply.orphan, "lost")]
    aside = [] if reply.aside is None else [_text(reply.aside)]
    return [*results, *orphan, *aside]


def _chat_reply(reply: _Reply, ids: list[str]) -> Message:
    content = [_text(reply.text)] if reply.as_blocks else reply.text or None
    message: Message = {"role": "assistant", "content": content}
    if reply.calls:
        message["tool_calls"] = [
            {
                "id": call_id,
                "type": "function",
                "function": {
                    "name": call.tool,
                    "arguments": compact_json({"path": call.argument}),
                },
            }
            for call, call_id in zip(reply.calls, ids, strict=True)
        ]
    return message


def _tool_message(result: _Result, call_id: str) -> Message:
    images = [dict(_IMAGE_URL)] if result.image else []
    content = [_text(result.text), *images] if result.as_blocks else result.text
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def _result_block(result: _Result, call_id: str) -> dict[str, Any]:
    images = [dict(_IMAGE)] if result.image else []
    content = [_text(result.text), *images] if result.as_blocks else result.text
    block = {"type": "tool_result", "tool_use_id": call_id, "content": content}
    return {**block, "is_error": True} if result.error else block


def _thinking(text: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": text, "signature": "EqoB"}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
