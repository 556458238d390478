"""`breakpoints: auto`: the cache markers that a session sets in the requests of a loop."""

from __future__ import annotations

import asyncio
import copy
from itertools import pairwise
from pathlib import Path
from typing import Any

import mcp.types
import pytest
from anthropic import beta_tool
from google.genai import types
from hypothesis import given, settings
from hypothesis import strategies as st

from policyctx import Request, Session
from policyctx.definitions.items import Message
from policyctx.messages.markers import bare, marker_of, markers_of, with_markers
from policyctx.testing.strategies import message_lists
from policyctx.tokens.usage import Correction, Usage
from policyctx.turns.known_list import KnownList
from policyctx.turns.memory import Memory
from policyctx.turns.result import Result
from tests.conversations import (
    call,
    chat_calls,
    chat_result,
    picture,
    results,
    session_of,
    thinking,
    user,
)
from tests.integrations.anthropic_rules import marked_blocks
from tests.policies import policy

MARKER = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}
RETIRE = """
store: {{sync: never}}
model: {{cache: {{breakpoints: {breakpoints}, ttl: {ttl}}}}}
min_tokens: 20
items: {{tool_result: {{offload: true}}, tool_call: {{offload: true}}}}
steps: [{{name: s, do: {do}, select: {{types: [tool_result], min_tokens: 20, keep_recent: 2}}}}]
"""
CLAUDE = Request(model="claude-sonnet-4-5")
LARGE, SMALL = "x" * 400, "x" * 40
SYSTEM, TOOLS = "be good", [{"name": "Bash"}, {"name": "Read"}]


def session(
    root: Path, *, breakpoints: str = "auto", ttl: str = "5m", do: str = "offload"
) -> Session:
    text = RETIRE.format(breakpoints=breakpoints, ttl=ttl, do=do)
    return Session(policy(text), root=root, session_id="s", clock=lambda: 0.0)


def places(messages: Any) -> list[tuple[int, Any]]:
    """Return the message and the index of each block with a marker."""
    return [(i, path[1]) for i, message in enumerate(messages) for path in markers_of(message)]


def body(result: Result) -> dict[str, Any]:
    found = {"system": result.system, "tools": result.tools, "messages": list(result.messages)}
    return {name: value for name, value in found.items() if value is not None}


def whys(result: Result) -> list[tuple[str, ...]]:
    return [each.why for each in result.breakpoints]


def assert_legal(result: Result) -> None:
    """Check what a provider checks of markers, and that none is on thinking or an empty text."""
    marked = marked_blocks(body(result))
    assert len(marked) <= 4
    ttls = [block["cache_control"].get("ttl", "5m") for block in marked]
    assert all(one == "1h" or other == "5m" for one, other in pairwise(ttls))
    for block in marked:
        assert block.get("type") not in {"thinking", "redacted_thinking"}
        assert block.get("type") != "text" or block["text"].strip()


def test_the_end_of_the_system_prompt_the_anchors_and_the_last_block_are_marked(
    tmp_path: Path,
) -> None:
    loop, full = session(tmp_path), session_of(*[LARGE] * 5)
    first = loop.apply(full[:7], system=SYSTEM, tools=TOOLS)
    assert places(first.messages) == [(3, 0), (6, 0)]
    second = loop.apply(full[:9], system=SYSTEM, tools=TOOLS)
    assert places(second.messages) == [(3, 0), (5, 0), (8, 0)]
    assert whys(second) == [("system",), ("old",), ("anchor",), ("last",)]
    assert second.system == [{"type": "text", "text": SYSTEM, "cache_control": MARKER}]
    assert second.tools is TOOLS


def test_the_list_up_to_the_old_anchor_is_what_was_sent_before(tmp_path: Path) -> None:
    loop, full = session(tmp_path), session_of(*[LARGE] * 9)
    before: list[Message] = []
    anchor = 0
    for end in range(3, len(full) + 1, 2):
        result = loop.apply(full[:end])
        sent = [*result.messages]
        if before:
            assert list(map(bare, sent[: anchor + 1])) == list(map(bare, before[: anchor + 1]))
            assert markers_of(sent[anchor])
        before = sent
        [place] = [each.place for each in result.breakpoints if "anchor" in each.why]
        anchor = result.plan.items[place].message


@beta_tool
def read_offloaded(path: str) -> str:
    """Return the text of a file."""
    return path


@pytest.mark.parametrize(
    "tool",
    [
        mcp.types.Tool(name="read_offloaded", input_schema={"type": "object"}),
        types.FunctionDeclaration(name="read_offloaded"),
        types.Tool(function_declarations=[types.FunctionDeclaration(name="read_offloaded")]),
        read_offloaded,
    ],
    ids=["MCP", "Google's declaration", "Google's tool", "Anthropic's function"],
)
def test_the_objects_of_tools_are_read_and_have_no_marker(tool: object, tmp_path: Path) -> None:
    """A loop passes on what an MCP server lists, or its tools as its SDK runs them."""
    tools = [tool]
    result = session(tmp_path).apply(session_of(*[LARGE * 4] * 5), tools=tools)
    assert result.tools is tools
    assert places(result.messages)
    assert "Use read_offloaded tool" in str(result.messages)


def test_without_auto_everything_is_as_the_caller_gave_it(tmp_path: Path) -> None:
    loop = session(tmp_path, breakpoints="keep")
    messages, system = session_of(SMALL), [{"type": "text", "text": SYSTEM}]
    result = loop.apply(messages, system=system, tools=TOOLS)
    assert result.messages is messages
    assert (result.system, result.tools) == (system, TOOLS)
    assert result.system is system
    assert result.tools is TOOLS
    assert not result.breakpoints
    assert not result.breakpoints.why_none


def test_the_input_is_not_changed_and_other_messages_are_the_same_objects(tmp_path: Path) -> None:
    messages, system = session_of(SMALL, SMALL), [{"type": "text", "text": SYSTEM}]
    given_ = copy.deepcopy((messages, system, TOOLS))
    result = session(tmp_path).apply(messages, system=system, tools=TOOLS)
    assert (messages, system, TOOLS) == given_
    marked = {i for i, _ in places(result.messages)}
    same = [one is other for one, other in zip(result.messages, messages, strict=True)]
    assert [i for i, is_same in enumerate(same) if not is_same] == sorted(marked) == [4]


def test_the_callers_marker_on_the_system_prompt_stays_and_those_of_tools_go(
    tmp_path: Path,
) -> None:
    system = [
        {"type": "text", "text": "fixed", "cache_control": HOUR},
        {"type": "text", "text": "the date"},
    ]
    tools = [{"name": "Bash", "cache_control": HOUR}, {"name": "Read"}]
    loop, full = session(tmp_path), session_of(*[LARGE] * 4)
    loop.apply(full[:7], system=system, tools=tools)
    result = loop.apply(full, system=system, tools=tools)
    assert result.system is system
    assert result.tools == TOOLS
    assert len(marked_blocks(body(result))) == 4


def test_the_callers_marker_on_the_last_block_keeps_its_lifetime(tmp_path: Path) -> None:
    messages = session_of(SMALL, LARGE)
    messages[2] = with_markers(messages[2], {("content", 0): HOUR})
    messages[4] = with_markers(messages[4], {("content", 0): HOUR})
    result = session(tmp_path).apply(messages)
    assert places(result.messages) == [(3, 0), (4, 0)]
    assert [each.ttl for each in result.breakpoints] == ["1h", "1h"]


def test_markers_of_an_hour_are_those_of_the_policy(tmp_path: Path) -> None:
    result = session(tmp_path, ttl="1h").apply(session_of(LARGE), system=SYSTEM)
    assert_legal(result)
    assert {each.ttl for each in result.breakpoints} == {"1h"}
    assert result.system[0]["cache_control"] == HOUR  # type: ignore[index]


def test_what_is_learnt_without_a_write_leaves_the_lifetime_of_the_last_one(
    tmp_path: Path,
) -> None:
    learning = session(tmp_path, ttl="recorded")
    learning.apply(session_of(LARGE))
    learning.observe(Usage(10, 0, 90, cache_write_1h=90))
    learning.take_over(Correction())
    result = learning.apply(session_of(LARGE), system=SYSTEM)
    assert {each.ttl for each in result.breakpoints} == {"1h"}
    learning.take_over(Correction(), write_ttl=300)
    result = learning.apply(session_of(LARGE, SMALL), system=SYSTEM)
    assert {each.ttl for each in result.breakpoints} == {"5m"}


def test_no_marker_is_on_thinking_or_on_an_empty_text(tmp_path: Path) -> None:
    thought = call("a", "Bash", {})
    thought["content"] = [thinking()]
    messages = [
        user("do it"),
        thought,
        {
            "role": "user",
            "content": [{"type": "text", "text": "so"}, {"type": "text", "text": " "}],
        },
    ]
    result = session(tmp_path).apply(messages)
    assert places(result.messages) == [(2, 0)]
    assert_legal(result)


def test_markers_inside_results_are_taken_away(tmp_path: Path) -> None:
    inner = {"type": "text", "text": "seen", "cache_control": MARKER}
    messages = [user(), call("a", "Look", {}), results(("a", [inner, picture()]))]
    result = session(tmp_path).apply(messages)
    assert [path for message in result.messages for path in markers_of(message)] == [
        ("content", 0),
        ("content", 0),
    ]


@pytest.mark.parametrize("form", ["given", "returned"])
def test_the_same_list_again_gets_the_same_markers(form: str, tmp_path: Path) -> None:
    loop, full = session(tmp_path), session_of(*[LARGE] * 5)
    loop.apply(full[:9], system=SYSTEM, tools=TOOLS)
    first = loop.apply(full, system=SYSTEM, tools=TOOLS)
    if form == "given":
        again = loop.apply(full, system=SYSTEM, tools=TOOLS)
    else:
        again = loop.apply(first.messages, system=first.system, tools=first.tools)
        assert again.messages is first.messages
        assert again.system is first.system
    assert body(again) == body(first)


def test_a_session_that_was_restarted_sets_the_same_markers(tmp_path: Path) -> None:
    full = session_of(*[LARGE] * 6)
    one = session(tmp_path / "a")
    for end in (7, 9, 11):
        expected = one.apply(full[:end], system=SYSTEM)
    for end in (7, 9, 11):
        two = session(tmp_path / "b")
        found = two.apply(full[:end], system=SYSTEM)
    assert places(found.messages) == places(expected.messages)
    assert whys(found) == whys(expected) == [("system",), ("old",), ("anchor",), ("last",)]


@settings(deadline=None)
@given(
    sizes=st.lists(st.sampled_from([LARGE, SMALL]), min_size=2, max_size=8),
    do=st.sampled_from(["offload", "drop"]),
    attempts=st.integers(1, 2),
)
def test_a_restart_at_any_turn_moves_no_marker(
    sizes: list[str], do: str, attempts: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root, full = tmp_path_factory.mktemp("s"), session_of(*sizes)
    one = session(root / "one", do=do)
    for end in range(3, len(full) + 1, 2):
        two = session(root / "two", do=do)
        for _ in range(attempts):
            expected = one.apply(full[:end], system=SYSTEM, tools=TOOLS)
            foreseen = two.breakpoints(full[:end], system=SYSTEM, tools=TOOLS)
            found = two.apply(full[:end], system=SYSTEM, tools=TOOLS)
            assert found.breakpoints == foreseen == expected.breakpoints


def test_a_list_of_which_the_caller_says_that_it_changed_keeps_its_markers(tmp_path: Path) -> None:
    one, two = session(tmp_path / "a"), session(tmp_path / "b")
    full = session_of(*[LARGE] * 6)
    for end in (7, 9, 11, 11, 13):
        expected = one.apply(full[:end], system=SYSTEM)
        assert (
            two.apply(full[:end], system=SYSTEM, changed=True).breakpoints == expected.breakpoints
        )


def test_a_list_that_was_only_looked_at_is_no_request(tmp_path: Path) -> None:
    one, two = session(tmp_path / "a"), session(tmp_path / "b")
    full = session_of(*[SMALL] * 6)
    for end in (5, 11):
        expected = one.apply(full[:end], system=SYSTEM)
        two.breakpoints(full[: end - 2], system=SYSTEM)
        assert two.apply(full[:end], system=SYSTEM).breakpoints == expected.breakpoints


def test_turns_without_a_decision_write_nothing(tmp_path: Path) -> None:
    loop, full = session(tmp_path), session_of(*[SMALL] * 9)
    loop.apply(full[:3], system=SYSTEM)
    [journal] = tmp_path.rglob("journal.jsonl")
    first = journal.read_bytes()
    for end in range(5, len(full) + 1, 2):
        assert "last" in str(loop.apply(full[:end], system=SYSTEM).breakpoints)
    assert journal.read_bytes() == first


def test_a_list_that_begins_anew_has_no_old_anchor(tmp_path: Path) -> None:
    loop = session(tmp_path)
    loop.apply(session_of(*[LARGE] * 4), system=SYSTEM)
    other = [user("something else"), *session_of(*["y" * 500] * 4)[1:]]
    result = loop.apply(other, system=SYSTEM)
    assert whys(result) == [("system",), ("anchor",), ("last",)]


def test_a_list_of_one_message_is_marked_once(tmp_path: Path) -> None:
    loop = session(tmp_path)
    result = loop.apply([user("do it")], request=CLAUDE)
    assert result.messages == [
        {"role": "user", "content": [{"type": "text", "text": "do it", "cache_control": MARKER}]}
    ]
    assert loop.apply([]).breakpoints == ()


def test_a_text_that_became_a_block_still_continues_the_known_list(tmp_path: Path) -> None:
    loop = session(tmp_path)
    first = loop.apply([user("do it")], request=CLAUDE)
    second = loop.apply([*first.messages, *session_of(SMALL)[1:]])
    third = loop.apply([user("do it"), *session_of(SMALL, SMALL)[1:]])
    assert first.plan.conversation is second.plan.conversation is third.plan.conversation


def test_a_list_of_another_api_has_no_markers(tmp_path: Path) -> None:
    chat = [user(), chat_calls(("a", "Bash", "{}")), chat_result("a", LARGE)]
    loop = session(tmp_path)
    assert loop.apply(chat, system=SYSTEM).messages is chat
    headed = [{"role": "system", "content": "be good"}, user()]
    assert loop.apply(headed).messages is headed
    asked = [user()]
    functions = [{"type": "function", "function": {"name": "Bash"}}]
    assert loop.apply(asked, tools=functions).messages is asked
    blocks: Any = [{"type": "text", "text": SYSTEM}]
    other = Request(blocks, takes_markers=False)
    assert loop.apply(session_of(SMALL), request=other).system is blocks


SCHEMA = {"name": "Bash", "input_schema": {"type": "object"}}
TEXT = [{"type": "text", "text": "List."}]
PLAIN = [{"role": "user", "content": "List."}]
IMAGE_URL = {"type": "image_url", "image_url": {"url": "https://a.org/b.png"}}


@pytest.mark.parametrize(
    ("messages", "request_"),
    [
        (PLAIN, Request()),
        (PLAIN, Request(model="gpt-4o")),
        (PLAIN, Request(model="openrouter/google/gemini-2.5-pro")),
        (PLAIN, Request(model="a-model-of-ours")),
        (PLAIN, Request("the instructions of the Responses API")),
        (PLAIN, Request(tools=[{"type": "web_search"}])),
        (PLAIN, Request(tools=[{"type": "custom", "name": "run"}])),
        (PLAIN, Request([TEXT[0]], [SCHEMA], takes_markers=False)),
        (PLAIN, Request(model="claude-sonnet-4-5", takes_markers=False)),
        ([{"role": "user", "content": TEXT}], Request()),
        ([*PLAIN, {"role": "assistant", "content": "a b"}, user("more")], Request()),
        (
            [
                {
                    "role": "user",
                    "content": [*TEXT, IMAGE_URL],
                }
            ],
            Request(),
        ),
    ],
)
def test_a_list_that_may_be_of_another_api_is_sent_as_it_is(
    messages: list[Message], request_: Request, tmp_path: Path
) -> None:
    loop = session(tmp_path)
    foreseen = loop.breakpoints(messages, request=request_)
    assert not foreseen
    assert foreseen.why_none
    result = loop.apply(messages, request=request_)
    assert result.breakpoints.why_none == foreseen.why_none
    assert copy.deepcopy(foreseen).why_none == foreseen.why_none
    assert result.messages is messages
    assert (result.system, result.tools) == (request_.system, request_.tools)
    assert loop.apply([*messages, user("and")], request=request_).messages[0] is messages[0]


@pytest.mark.parametrize(
    ("messages", "request_"),
    [
        (PLAIN, Request(takes_markers=True)),
        (PLAIN, Request(model="claude-sonnet-4-5")),
        (PLAIN, Request(model="us.anthropic.claude-sonnet-4-5-20250929-v1:0")),
        (PLAIN, Request([TEXT[0]])),
        (PLAIN, Request(tools=[SCHEMA])),
        ([{"role": "user", "content": [{**TEXT[0], "cache_control": MARKER}]}], Request()),
        ([{"role": "user", "content": [*TEXT, picture()]}], Request()),
        (session_of(SMALL), Request()),
    ],
)
def test_a_list_of_an_api_that_takes_markers_gets_them(
    messages: list[Message], request_: Request, tmp_path: Path
) -> None:
    loop = session(tmp_path)
    foreseen = loop.breakpoints(messages, request=request_)
    assert loop.apply(messages, request=request_).breakpoints == foreseen
    assert foreseen


def test_breakpoints_are_known_before_they_are_set(tmp_path: Path) -> None:
    loop, full = session(tmp_path), session_of(*[LARGE] * 6)
    for end in (5, 7, 11, 13):
        foreseen = loop.breakpoints(full[:end], system=SYSTEM, tools=TOOLS)
        assert loop.apply(full[:end], system=SYSTEM, tools=TOOLS).breakpoints == foreseen
    assert session(tmp_path / "b", breakpoints="keep").breakpoints(full) == ()


def test_both_drivers_set_the_same_markers(tmp_path: Path) -> None:
    full = session_of(*[LARGE] * 4)
    one = session(tmp_path / "a").apply(full, system=SYSTEM, tools=TOOLS)
    other = asyncio.run(session(tmp_path / "b").apply_async(full, system=SYSTEM, tools=TOOLS))
    assert places(one.messages) == places(other.messages)
    assert (one.system, one.tools) == (other.system, other.tools)


def test_dropped_messages_leave_no_marker_behind(tmp_path: Path) -> None:
    loop, full = session(tmp_path, do="drop"), session_of(*[LARGE] * 6)
    for end in range(3, len(full) + 1, 2):
        result = loop.apply(full[:end], system=SYSTEM)
        assert_legal(result)
        assert places(result.messages)[-1] == (len(result.messages) - 1, 0)


@pytest.mark.parametrize("anchor", [None, {"chars": 1, "sha256": ""}, {"chars": "1"}])
def test_the_record_of_an_earlier_version_says_that_a_request_was_sent(anchor: object) -> None:
    memory = Memory.of([{"record": "breakpoints", "anchor": anchor, "last": None}])
    assert memory.has_begun
    assert memory.unreadable == ()


def test_a_turn_visits_what_is_new_of_a_hundred_thousand_items(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = session(tmp_path)
    full = [user(), *[{"role": "user", "content": "so"}] * 100_000]
    claude = Request(SYSTEM, model="claude-sonnet-4-5")
    loop.apply(full, request=claude)
    memory = loop._knowledge.memory
    assert memory is not None
    assert memory.known is not None
    visited = []
    visit = type(memory.known).with_markers

    def counted(known: KnownList, message: int, ttls: Any) -> Message | None:
        visited.append(message)
        return visit(known, message, ttls)

    monkeypatch.setattr(type(memory.known), "with_markers", counted)
    assert loop.apply([*full, user("more")], request=claude).breakpoints
    assert len(visited) < 20


_WANTED: list[list[dict[str, str]]] = [
    [],
    [HOUR],
    [MARKER],
    [HOUR, MARKER],
    [HOUR, HOUR, MARKER, MARKER],
]


@settings(deadline=None)
@given(data=st.data(), ttl=st.sampled_from(["5m", "1h"]), do=st.sampled_from(["offload", "drop"]))
def test_every_request_of_a_loop_has_legal_markers(
    data: st.DataObject, ttl: str, do: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The caller may set its own markers in any legal arrangement, and restart the session."""
    root = tmp_path_factory.mktemp("s")
    is_marked: st.SearchStrategy[bool] = st.booleans()
    loop, full = session(root, ttl=ttl, do=do), data.draw(message_lists())
    anthropic = [m for m in full if m.get("role") in {"user", "assistant"}]
    for _ in range(data.draw(st.integers(1, 4))):
        messages = anthropic[: data.draw(st.integers(0, len(anthropic)))]
        wanted = list(data.draw(st.sampled_from(_WANTED)))
        system: list[dict[str, Any]] = [
            {"type": "text", "text": f"part {i}"} for i in range(data.draw(st.integers(0, 3)))
        ]
        for block in system:
            marks: bool = data.draw(is_marked)
            if wanted and marks:
                block["cache_control"] = wanted.pop(0)
        given_ = copy.deepcopy((messages, system))
        result = loop.apply(messages, system=system, tools=TOOLS)
        assert (messages, system) == given_
        assert_legal(result)
        kept = [i for i, block in enumerate(system) if marker_of(block)]
        if kept and result.breakpoints:
            assert result.system[kept[-1]] is system[kept[-1]]  # type: ignore[index]
        again = loop.apply(messages, system=system, tools=TOOLS)
        assert body(again) == body(result)
        restarts: bool = data.draw(is_marked)
        if restarts:
            loop = session(root, ttl=ttl, do=do)
