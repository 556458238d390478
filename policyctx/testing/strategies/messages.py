"""Message lists in the shapes of the Anthropic, OpenAI chat and OpenAI Responses APIs.

A conversation is drawn once, as rounds of prompts, replies, calls and results, and then written in
one shape, or in several. The defects of real lists are drawn on purpose: results that are missing,
that answer no call or that repeat an id, blocks of unknown kinds, texts that break encoders.
"""

import itertools
from collections.abc import Iterator
from itertools import count
from operator import mul
from typing import Any, NamedTuple

from hypothesis import strategies as st

from policyctx.definitions.items import Message
from policyctx.messages.json_text import compact_json
from policyctx.replay.readers import building

_Blocks = list[dict[str, Any]]

# Names that a path is made of, so some of them try to lead out of it.
_TOOLS = ("read", "read", "search", "mcp__web__fetch", "pinned", "../up", "")
_REUSED_IDS = ("again", "again", "../again", "", "x" * 200)

_FRAGMENTS = st.one_of(
    st.sampled_from(
        (
            "", "one line\n", "a word ", "字", "漢字とかな。", "한국어", "👩‍👩‍👧", "\0", "\ud800",
            "\udfff\ud83d", "\u2028", "<|endoftext|>", '{"a":1}',
            "[Content offloaded to: ./tool-result-again.md]",
        )
    ),
    st.text(st.characters(), max_size=8),
)  # fmt: skip
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
_INPUT_IMAGE = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}
_UNKNOWN = {"type": "not_known_yet", "value": [1, None, {"deep": "字"}]}


class _Result(NamedTuple):
    text: str
    as_blocks: bool
    image: bool
    error: bool


class _DrawnCall(NamedTuple):
    tool: str
    reused_id: str | None
    argument: str
    result: _Result | None


class _DrawnReply(NamedTuple):
    text: str
    as_blocks: bool
    thinking: str | None
    calls: list[_DrawnCall]
    unknown: bool
    aside: str | None
    orphan: _Result | None


class _DrawnRound(NamedTuple):
    prompt: str | None
    as_blocks: bool
    image: bool
    replies: list[_DrawnReply]


class _Form(NamedTuple):
    """How one reply and its results are written."""

    reply: str
    """The shape of the reply: `anthropic`, `chat` or `responses`."""
    results: str
    """The same for the results.

    Also `hybrid`, with `tool_result` blocks in the role `tool`, and `joined`, with the blocks in
    one message with what the user says beside them.
    """
    kinds: tuple[str, ...]
    """The type of each call among the items of the Responses API."""
    one_by_one: bool
    """Whether each call has reasoning of its own."""
    encrypted: bool
    """Whether the reasoning has no summary."""
    easy: bool
    """Whether texts are easy messages."""
    opaque: str | None
    """The type of an item that the library does not know."""


def _rarely(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), st.none(), st.none(), strategy)


_SELDOM = st.sampled_from((False, False, False, True))
_RESULTS = st.builds(_Result, _TEXTS, st.booleans(), _SELDOM, _SELDOM)
_CALLS = st.builds(
    _DrawnCall,
    st.sampled_from(_TOOLS),
    _rarely(st.sampled_from(_REUSED_IDS)),
    _FRAGMENTS,
    st.one_of(_RESULTS, _RESULTS, _RESULTS, st.none()),
)
_REPLIES = st.builds(
    _DrawnReply,
    _TEXTS,
    st.booleans(),
    _rarely(_FRAGMENTS),
    st.lists(_CALLS, max_size=3),
    _SELDOM,
    _rarely(_TEXTS),
    _rarely(_RESULTS),
)
_ROUNDS = st.builds(
    _DrawnRound,
    st.one_of(_TEXTS, st.none()),
    st.booleans(),
    _SELDOM,
    st.lists(_REPLIES, max_size=3),
)
_LISTED_ROUNDS = st.lists(_ROUNDS, max_size=4)
_SYSTEM = st.one_of(
    st.none(), st.sampled_from(("Be brief. " * 30, [{"type": "text", "text": "字"}]))
)


def _forms(replies: tuple[str, ...], results: tuple[str, ...]) -> st.SearchStrategy[_Form]:
    calls = ("function_call", "function_call", "custom_tool_call", "local_shell_call")
    kinds = st.sampled_from(calls)
    opaque = st.sampled_from(("compaction", "mcp_call", "item_reference"))
    return st.builds(
        _Form,
        st.sampled_from(replies),
        st.sampled_from(results),
        st.tuples(kinds, kinds, kinds),
        _SELDOM,
        st.booleans(),
        _SELDOM,
        _rarely(opaque),
    )


_Forms = list[tuple[_DrawnRound, list[_Form]]]


def _lists_of(forms: st.SearchStrategy[_Form]) -> st.SearchStrategy[list[Message]]:
    rounds = st.tuples(_ROUNDS, st.lists(forms, min_size=3, max_size=3))
    return st.lists(rounds, max_size=4).map(lambda drawn: list(_written(drawn)))


def message_lists() -> st.SearchStrategy[list[Message]]:
    """Return a strategy for lists of 0 to some 50 messages, in any shape or in several."""
    return st.one_of(anthropic_lists(), openai_lists(), responses_lists(), mixed_lists())


def anthropic_lists() -> st.SearchStrategy[list[Message]]:
    """Return a strategy for lists in the Anthropic shape: all results of a reply in one message."""
    return _LISTED_ROUNDS.map(lambda rounds: _in_one_form(rounds, "anthropic", "joined"))


def openai_lists() -> st.SearchStrategy[list[Message]]:
    """Return a strategy for lists in the OpenAI chat shape: each result is its own message."""
    return st.builds(
        lambda system, rounds: [*_system(system), *_in_one_form(rounds, "chat", "chat")],
        _SYSTEM,
        _LISTED_ROUNDS,
    )


def responses_lists() -> st.SearchStrategy[list[Message]]:
    """Return a strategy for the items of OpenAI's Responses API: several for each reply."""
    return _lists_of(_forms(("responses",), ("responses",)))


def mixed_lists() -> st.SearchStrategy[list[Message]]:
    """Return a strategy for lists in which each message may have another shape.

    A result may have another shape than its call, or be a `tool_result` block in a message of the
    role `tool`.
    """
    replies = ("anthropic", "chat", "responses", "responses")
    return _lists_of(_forms(replies, ("anthropic", "hybrid", "chat", "responses", "responses")))


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


def _system(content: object) -> list[Message]:
    if content is None:
        return []
    return [{"role": "system" if isinstance(content, str) else "developer", "content": content}]


def _in_one_form(rounds: list[_DrawnRound], reply: str, results: str) -> list[Message]:
    kinds = ("function_call",) * 3
    form = _Form(reply, results, kinds, one_by_one=False, encrypted=False, easy=False, opaque=None)
    return list(_written([(each, [form] * 3) for each in rounds]))


def _written(rounds: _Forms) -> Iterator[Message]:
    numbers = count()
    for each, forms in rounds:
        if each.prompt is not None:
            yield _prompt(each, forms[0])
        for reply, form in zip(each.replies, forms, strict=False):
            ids = _ids(reply, numbers)
            if form.reply == "responses":
                yield from _items(reply, ids, form, numbers)
            elif form.reply == "chat":
                yield _chat_reply(reply, ids)
            else:
                yield {"role": "assistant", "content": _reply_blocks(reply, ids)}
            yield from _results(reply, ids, form)
            if reply.aside is not None and form.results != "joined":
                yield {"role": "user", "content": reply.aside}


def _prompt(each: _DrawnRound, form: _Form) -> Message:
    text = str(each.prompt)
    if form.reply != "responses":
        image = _IMAGE if form.reply == "anthropic" else _IMAGE_URL
        shown = [_text(text), *[dict(image)] * each.image]
        return {"role": "user", "content": shown if each.as_blocks else text}
    if form.easy or not each.as_blocks:
        return {"role": "user", "content": text}
    shown = [_text(text, "input_text"), *[dict(_INPUT_IMAGE)] * each.image]
    return {"type": "message", "role": "user", "content": shown}


def _items(
    reply: _DrawnReply, ids: list[str], form: _Form, numbers: Iterator[int]
) -> Iterator[Message]:
    """Yield the items of a reply: reasoning, what it led to, and perhaps the same again."""
    calls = [*zip(reply.calls, ids, form.kinds, strict=False)]
    stretches = [[call] for call in calls] if form.one_by_one else [calls]
    for i, stretch in enumerate(stretches or [[]]):
        if reply.thinking is not None:
            yield _reasoning(reply.thinking, form, numbers)
        if i == 0:
            if reply.unknown:
                yield {"type": "web_search_call", "id": _id("ws", numbers), "status": "completed"}
            if form.opaque is not None:
                yield {"type": form.opaque, "id": _id("op", numbers), "encrypted_content": "gAAA"}
            if reply.text or not calls:
                yield _said(reply.text, form, numbers)
        yield from (_call_item(*call, numbers) for call in stretch)


def _reasoning(text: str, form: _Form, numbers: Iterator[int]) -> Message:
    item = {"type": "reasoning", "id": _id("rs", numbers), "summary": []}
    if form.encrypted:
        return {**item, "encrypted_content": f"gAAA{text}"}
    return {**item, "summary": [_text(text, "summary_text")], "encrypted_content": "gAAA"}


def _said(text: str, form: _Form, numbers: Iterator[int]) -> Message:
    if form.easy:
        return {"role": "assistant", "content": text}
    message = {"type": "message", "id": _id("msg", numbers), "role": "assistant"}
    return {**message, "content": [_text(text, "output_text")]}


def _call_item(call: _DrawnCall, call_id: str, kind: str, numbers: Iterator[int]) -> Message:
    item = {"type": kind, "id": _id("fc", numbers), "call_id": call_id}
    if kind == "local_shell_call":
        return {**item, "action": {"type": "exec", "command": ["cat", call.argument]}}
    if kind == "custom_tool_call":
        return {**item, "name": call.tool, "input": call.argument}
    return {**item, "name": call.tool, "arguments": compact_json({"path": call.argument})}


def _results(reply: _DrawnReply, ids: list[str], form: _Form) -> Iterator[Message]:
    calls = zip(reply.calls, ids, form.kinds, strict=False)
    given = [(call.result, call_id, kind) for call, call_id, kind in calls if call.result]
    if reply.orphan is not None:
        given.append((reply.orphan, "lost", "function_call"))
    if form.results in {"anthropic", "hybrid", "joined"}:
        blocks = [
            building.tool_result(call_id, _content(result, _IMAGE), is_error=result.error)
            for result, call_id, _ in given
        ]
        if form.results == "joined" and reply.aside is not None:
            blocks.append(_text(reply.aside))
        if blocks:
            yield {"role": "tool" if form.results == "hybrid" else "user", "content": blocks}
    elif form.results == "chat":
        for result, call_id, _ in given:
            yield building.tool_message(call_id, _content(result, _IMAGE_URL))
    elif form.results == "responses":
        for result, call_id, kind in given:
            output = _content(result, _INPUT_IMAGE, "input_text")
            yield {"type": f"{kind}_output", "call_id": call_id, "output": output}


def _id(kind: str, numbers: Iterator[int]) -> str:
    return f"{kind}_{next(numbers)}"


def _ids(reply: _DrawnReply, numbers: Iterator[int]) -> list[str]:
    return [
        f"call_{next(numbers)}" if call.reused_id is None else call.reused_id
        for call in reply.calls
    ]


def _reply_blocks(reply: _DrawnReply, ids: list[str]) -> str | _Blocks:
    calls = [
        building.tool_use(call_id, call.tool, {"path": call.argument})
        for call, call_id in zip(reply.calls, ids, strict=True)
    ]
    blocks = [_text(reply.text), *[dict(_UNKNOWN)] * reply.unknown, *calls]
    if reply.thinking is not None:
        blocks.insert(0, building.thinking(reply.thinking, "EqoB"))
    return blocks if reply.as_blocks or len(blocks) > 1 else reply.text


def _chat_reply(reply: _DrawnReply, ids: list[str]) -> Message:
    content = [_text(reply.text)] if reply.as_blocks else reply.text or None
    message: Message = {"role": "assistant", "content": content}
    if reply.calls:
        message["tool_calls"] = [
            building.function_call(call_id, call.tool, {"path": call.argument})
            for call, call_id in zip(reply.calls, ids, strict=True)
        ]
    return message


def _content(result: _Result, image: dict[str, Any], kind: str = "text") -> str | _Blocks:
    """Return what a result says, with an image of this form if it has one."""
    images = [dict(image)] if result.image else []
    return [_text(result.text, kind), *images] if result.as_blocks else result.text


def _text(text: str, kind: str = "text") -> dict[str, Any]:
    return {"type": kind, "text": text}
