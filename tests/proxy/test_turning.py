"""Turning: which session a body belongs to, and what becomes of it when something fails."""

from __future__ import annotations

import gc
import json
import re
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from policyctx.definitions.tokenizers import TOKENIZERS, Counting
from policyctx.messages.asked import api_of
from policyctx.proxy.conversations import Registry
from policyctx.proxy.history import End, saved_end
from policyctx.proxy.policies import Policies
from policyctx.proxy.turning import ListRequest, Turned, Turning
from policyctx.replay.reading import recordings_in
from policyctx.tokens.usage import Usage
from policyctx.turns.driving import finished
from tests.conversations import call, calls, chat_result, results, session_of, user
from tests.counting import functions_called
from tests.drawing import in_profile
from tests.proxy.running import OFFLOADS_OLD

TEXTS = [f"line {i}\n" * 40 for i in range(8)]
TOOLS = [{"name": "Bash", "input_schema": {"type": "object"}}]


class Proxied:
    """A turning over a folder, as the server uses it."""

    def __init__(self, folder: Path, policy: str = OFFLOADS_OLD, **limits: Any) -> None:
        self.root = folder / "root"
        (folder / "p.yaml").write_text(policy)
        self.now = 0.0
        self.read: list[str] = []
        """The sessions whose last end was read from the store."""
        self.registry = Registry(
            memory_bytes=limits.get("memory_bytes", 2**30),
            idle_seconds=limits.get("idle_seconds", 100),
            is_saved=lambda name: (self.root / name).exists(),
            end_of=self.end_of,
            clock=lambda: self.now,
        )
        self.policies = Policies(folder / "p.yaml")
        dry_run = bool(limits.get("dry_run"))
        self.turning = Turning(self.registry, self.policies, self.root, dry_run=dry_run)

    def end_of(self, name: str) -> End | None:
        self.read.append(name)
        return saved_end(self.root, name)

    def turn(
        self,
        messages: list[Any],
        session: str | None = "s",
        *,
        scope: str = "k",
        path: str = "/v1/messages",
        **fields: Any,
    ) -> list[Any]:
        """Return the list that is sent."""
        raw = json.dumps({"messages": messages, **fields}).encode()
        turned = self.turned(raw, session, scope=scope, path=path)
        sent: list[Any] = json.loads(turned.raw or raw)["messages"]
        return sent

    def turned(
        self, raw: bytes, session: str | None = "s", *, scope: str = "k", path: str = "/v1/messages"
    ) -> Turned:
        api = api_of(path)
        assert api is not None
        headers = {} if session is None else {"x-claude-code-session-id": session}
        return finished(self.turning.in_steps(ListRequest(api, scope, headers, raw)))

    def observe(self, turned: Turned, usage: object) -> None:
        finished(self.turning.observe_in_steps(turned, usage))

    @property
    def outcomes(self) -> dict[str, int]:
        return dict(self.turning.counts.requests)

    @property
    def folders(self) -> set[str]:
        return {path.name for path in self.root.iterdir()} if self.root.exists() else set()


def texts_of(messages: list[Any]) -> list[str]:
    blocks = (b for m in messages if isinstance(m["content"], list) for b in m["content"])
    return [block["content"] for block in blocks if block["type"] == "tool_result"]


def are_away(messages: list[Any], count: int) -> bool:
    """Whether exactly the first results have left the list."""
    texts = texts_of(messages)
    return set(texts[:count]).isdisjoint(TEXTS) and set(texts[count:]) <= set(TEXTS)


SHARES = """\
apiVersion: policyctx/v1
name: p
model: {tokenizer: approximate}
items: {tool_result: {offload: true}}
steps: [{name: s, do: offload, when: {tokens: {at_least: 1%}}}]
"""


def test_the_calls_are_recorded_as_they_are_sent_with_their_usages(tmp_path: Path) -> None:
    proxied = Proxied(tmp_path)
    path = tmp_path / "calls.jsonl"
    proxied.turning = Turning(proxied.registry, proxied.policies, proxied.root, record=path)
    sent = []
    for count in (1, 2, 3):
        raw = json.dumps({"messages": session_of(*TEXTS[:count]), "model": "claude-x"}).encode()
        turned = proxied.turned(raw)
        proxied.observe(turned, {"input_tokens": 1000 * count, "output_tokens": 5})
        sent.append(json.loads(turned.raw or raw)["messages"])
    [recording] = recordings_in(path)
    assert [list(context) for context in recording.contexts()] == sent
    assert are_away(sent[-1], 2)
    assert [call.usage for call in recording.calls] == [
        Usage(1000 * count, output=5) for count in (1, 2, 3)
    ]
    assert {call.language_model for call in recording.calls} == {"claude-x"}
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_share_is_of_the_window_of_the_model_that_a_request_names(tmp_path: Path) -> None:
    """One per cent: 1,280 tokens, 10,000 and, of a model that is not known, 2,000."""
    small, large = session_of("x" * 4 * 1_500), session_of("x" * 4 * 2_100)
    proxied = Proxied(tmp_path, SHARES)
    count = "/v1/messages/count_tokens"
    assert proxied.turn(small, path=count, model="gpt-4o") != small
    assert proxied.turn(small, model="a-model-of-ours") == small
    assert proxied.turn(large, "t", model="claude-opus-4-8") == large
    assert proxied.turn(large, "u", model="a-model-of-ours") != large
    assert proxied.turn(small, model="gpt-4o") != small


def test_a_dry_run_decides_by_the_window_of_the_model_too(tmp_path: Path) -> None:
    proxied = Proxied(tmp_path, SHARES, dry_run=True)
    proxied.turn(session_of("x" * 4 * 1_500), model="claude-opus-4-8")
    assert not proxied.turning.counts.decisions
    proxied.turn(session_of("x" * 4 * 1_500), "t", model="gpt-4o")
    assert sum(proxied.turning.counts.decisions.values()) == 1


def test_an_idle_session_leaves_memory_and_goes_on_from_the_store(tmp_path: Path) -> None:
    proxied = Proxied(tmp_path)
    before = proxied.turn(session_of(*TEXTS[:4]))
    proxied.now = 101
    proxied.registry.forget_idle()
    assert len(proxied.registry) == 0
    after = proxied.turn(session_of(*TEXTS[:5]))
    assert after[: len(before) - 2] == before[:-2]
    assert len(proxied.folders) == 1


def test_sessions_leave_memory_where_it_is_short(tmp_path: Path) -> None:
    proxied = Proxied(tmp_path, memory_bytes=130_000)
    for name in "abcdef":
        proxied.turn(session_of(*TEXTS[:4]), name)
    assert 0 < len(proxied.registry) < 4
    assert are_away(proxied.turn(session_of(*TEXTS[:4]), "a"), 3)


@pytest.mark.parametrize("text", ["a", "a\N{SNOWMAN}", "a\N{GRINNING FACE}"])
@pytest.mark.parametrize("size", [1, in_profile(50_000, 200_000)])
def test_what_a_conversation_is_said_to_take_in_memory_is_what_it_takes(
    tmp_path: Path, text: str, size: int
) -> None:
    raws = {
        name: json.dumps({"messages": [{"role": "user", "content": name + text + "b" * size}]})
        for name in map(str, range(in_profile(10, 20)))
    }

    def measured(folder: Path) -> tuple[int, int]:
        folder.mkdir()
        proxied = Proxied(folder)
        proxied.turned(raws["0"].encode(), "0")
        tracemalloc.start()
        try:
            for name in list(raws)[1:]:
                proxied.turned(raws[name].encode(), name)
            gc.collect()
            taken = tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()
        return taken, sum(one.bytes_kept for one in proxied.registry.live()[:-1])

    # What the process makes once, or another thread beside, is in one of them at most.
    taken, said = min(measured(tmp_path / name) for name in "abc")
    assert taken <= said <= 6 * taken


def test_lists_that_begin_alike_are_two_sessions(tmp_path: Path) -> None:
    """Without a name, a list belongs to a session whose last list it continues."""
    proxied = Proxied(tmp_path)
    one, two = TEXTS[:4], [TEXTS[4], *TEXTS[:3]]
    for n in (1, 2, 3, 4):
        assert are_away(proxied.turn(session_of(*one[:n]), None), n - 1)
        assert are_away(proxied.turn(session_of(*two[:n]), None), n - 1)
    assert len(proxied.registry) == 2
    assert len(proxied.folders) == 2


def test_a_list_that_two_sessions_could_continue_continues_the_longer_one(tmp_path: Path) -> None:
    proxied = Proxied(tmp_path)
    before = proxied.turn(session_of(*TEXTS[:3]), None)
    proxied.turn(session_of(), None)
    assert len(proxied.registry) == 2
    after = proxied.turn(session_of(*TEXTS[:4]), None)
    assert after[: len(before) - 2] == before[:-2]
    assert len(proxied.registry) == 2


def test_a_list_without_a_name_costs_the_same_however_many_begin_alike(tmp_path: Path) -> None:
    def cost(count: int) -> int:
        proxied = Proxied(tmp_path / str(count))
        for i in range(count):
            proxied.turn(session_of(f"text {i}"), None)
        proxied.turn(session_of("text 1", "more"), None)
        return functions_called(lambda: proxied.turn(session_of("text 0", "more"), None))

    for count in (20, 80):
        (tmp_path / str(count)).mkdir()
    cost(20)  # what is called once
    assert cost(80) < 1.05 * cost(20)


def test_after_a_restart_each_session_that_begins_alike_is_read_once(tmp_path: Path) -> None:
    first = Proxied(tmp_path)
    lists = [[TEXTS[i], *TEXTS[:3]] for i in range(3, 8)]
    for texts in lists:
        first.turn(session_of(*texts), None)
    proxied = Proxied(tmp_path)
    for texts in lists:
        assert are_away(proxied.turn(session_of(*texts, TEXTS[0]), None), 4)
    assert len(proxied.folders) == len(lists) == len(proxied.read)
    # One that has left memory is read again, with what it decided since.
    proxied.now = 1000
    proxied.turn(session_of("a", "b"), None)
    proxied.registry.forget_idle()
    proxied.turn(session_of(*lists[0], TEXTS[0], TEXTS[1]), None)
    assert len(proxied.folders) == len(lists)
    assert set(proxied.read[len(lists) :]) == set(proxied.read[: len(lists)])


def test_after_a_restart_a_list_with_replies_continues_the_only_session_that_begins_so(
    tmp_path: Path,
) -> None:
    before = Proxied(tmp_path).turn(session_of(*TEXTS[:4]), None)
    after = Proxied(tmp_path).turn(session_of(*TEXTS[:5]), None)
    assert after[: len(before) - 2] == before[:-2]
    proxied = Proxied(tmp_path)
    proxied.turn(session_of(), None)
    proxied.turn(session_of(*TEXTS[:3]), None)
    assert len(proxied.folders) == 2


def test_one_name_under_two_credentials_is_two_sessions(tmp_path: Path) -> None:
    proxied = Proxied(tmp_path)
    sent = [
        proxied.turn(session_of(*TEXTS[:3]), name, scope=scope)
        for name in ("s", None)
        for scope in ("k", "l")
    ]
    assert all(are_away(messages, 2) for messages in sent)
    assert len({text for messages in sent for text in texts_of(messages)[:2]}) == 8
    assert len(proxied.folders) == 4


def test_counting_before_the_first_request_makes_no_second_session(tmp_path: Path) -> None:
    proxied = Proxied(tmp_path)
    path = "/v1/messages/count_tokens"
    counted = proxied.turn(session_of(*TEXTS[:3]), None, path=path)
    assert proxied.folders == set()
    assert proxied.turn(session_of(*TEXTS[:3]), None) == counted
    assert len(proxied.registry) == 1


def test_another_conversation_under_the_same_name_changes_nothing_in_the_first(
    tmp_path: Path,
) -> None:
    """Such as a request for a title, which has other tools and another system prompt."""
    proxied = Proxied(tmp_path)
    both: dict[str, Any] = {"system": "You are an agent.", "tools": TOOLS}
    first = proxied.turn(session_of(*TEXTS[:3]), **both)
    title = [user("Give this a title: the task")]
    assert proxied.turn(title, system="You name things.") == title
    second = proxied.turn(session_of(*TEXTS[:4]), **both)
    assert second[: len(first) - 2] == first[:-2]
    assert len(proxied.registry) == 2


@pytest.mark.parametrize("end", [3, 5])
def test_a_session_follows_a_client_that_rewinds(tmp_path: Path, end: int) -> None:
    proxied = Proxied(tmp_path)
    both: dict[str, Any] = {"system": "You are an agent.", "tools": TOOLS}
    first = proxied.turn(session_of(*TEXTS[:4]), **both)
    rewound = proxied.turn([*session_of(*TEXTS[:4])[:end], user("rather not")], **both)
    assert len(proxied.registry) == 1
    assert rewound[:3] == first[:3]


def test_a_session_follows_a_client_that_compacts(tmp_path: Path) -> None:
    proxied = Proxied(tmp_path)
    both: dict[str, Any] = {"system": "You are an agent.", "tools": TOOLS}
    proxied.turn(session_of(*TEXTS[:4]), **both)
    compacted = [user("summary so far"), calls(("d0", "Bash")), results(("d0", TEXTS[5]))]
    assert proxied.turn(compacted, **both) == compacted
    more = [*compacted, calls(("d1", "Bash")), results(("d1", TEXTS[6]))]
    assert are_away(proxied.turn(more, **both), 1)
    assert len(proxied.registry) == 1
    assert len(proxied.folders) == 1


def test_a_store_that_fails_keeps_earlier_decisions(tmp_path: Path) -> None:
    proxied = Proxied(tmp_path, OFFLOADS_OLD + "store: {on_failure: raise}\n")
    first = proxied.turn(session_of(*TEXTS[:4]))
    [folder] = proxied.root.iterdir()
    folder.rename(tmp_path / "moved")
    folder.write_text("no folder any more")
    second = proxied.turn(session_of(*TEXTS[:5]))
    assert second == [*first, *session_of(*TEXTS[:5])[len(first) :]]
    assert proxied.outcomes["reapplied"] == 1
    shorter = proxied.turn([*session_of(*TEXTS[:5])[:5], user("stop")])
    assert shorter == [*first[:5], user("stop")]


def test_a_session_that_cannot_be_made_sends_the_request_as_it_came(tmp_path: Path) -> None:
    proxied = Proxied(tmp_path)
    proxied.root.write_text("no folder")
    messages = session_of(*TEXTS[:3])
    assert proxied.turn(messages) == messages


@pytest.mark.parametrize("depth", [230, 255, 1000, 1023, 1024, 5000])
@pytest.mark.parametrize("place", ["a field", "a field behind the list", "a message", "a result"])
def test_a_body_that_is_nested_deep_is_no_error(tmp_path: Path, depth: int, place: str) -> None:
    """Such a body is sent as it came, at the beginning of a session and later."""
    proxied = Proxied(tmp_path)
    nested = b"[" * depth + b"]" * depth
    listed = json.dumps(session_of(*TEXTS[:3])).encode()
    raw = b'{"messages":%b}' % listed
    if place == "a field":
        raw = b'{"a":%b,%b' % (nested, raw[1:])
    elif place == "a field behind the list":
        raw = b'%b,"a":%b}' % (raw[:-1], nested)
    elif place == "a message":
        raw = b'%b,{"role":"user","content":"a","a":%b}]}' % (raw[:-2], nested)
    else:
        raw = raw.replace(json.dumps(TEXTS[0]).encode(), nested)
    proxied.turn(session_of(*TEXTS[:2]))
    for body in (raw, raw.replace(b",", b", ")):
        for session in ("s", "t"):
            proxied.turned(body, session)
    outcomes = proxied.outcomes
    assert outcomes.pop("edited") + outcomes.get("untouchable", 0) == 5
    assert outcomes.get("untouchable", 0) == (4 if depth > 250 else 0)
    assert not proxied.turning.counts.errors


@pytest.mark.parametrize(
    "wrong",
    [
        {"role": "user", "content": 7},
        {"role": "user", "content": [[]]},
        {"role": "user", "content": [{"type": 5}]},
        {"role": 5, "content": "x"},
        {"content": "x"},
        {"role": "robot", "content": "x"},
        {"role": "user", "text": "x"},
    ],
)
def test_a_list_that_no_api_takes_is_no_error_of_the_proxy(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, wrong: dict[str, Any]
) -> None:
    proxied = Proxied(tmp_path)
    assert proxied.turn([wrong]) == [wrong]
    assert proxied.turn([wrong]) == [wrong]
    short = session_of("short")  # nothing was decided
    assert proxied.turn(short, "s") == short
    assert proxied.turn([*short, wrong], "s") == [*short, wrong]
    assert "sent unchanged" in caplog.text
    assert "applied again" not in caplog.text
    before = proxied.turn(session_of(*TEXTS[:3]), "t")
    caplog.clear()
    assert proxied.turn([*session_of(*TEXTS[:3]), wrong], "t") == [*before, wrong]
    assert "applied again" in caplog.text
    assert "sent unchanged" not in caplog.text
    assert proxied.outcomes == {"untouchable": 3, "unchanged": 1, "edited": 1, "reapplied": 1}
    assert not proxied.turning.counts.errors
    assert {one.levelname for one in caplog.records} == {"WARNING"}


def test_the_log_says_that_decisions_were_applied_again_only_when_they_were(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxied = Proxied(tmp_path)
    proxied.turn(session_of(*TEXTS[:3]), "t")
    monkeypatch.setattr(proxied.policies, "policy_of", {}.__getitem__)
    proxied.turn(session_of(*TEXTS[:3]))
    assert "sent unchanged" in caplog.text
    assert "applied again" not in caplog.text
    caplog.clear()
    proxied.turn(session_of(*TEXTS[:4]), "t")
    assert "applied again" in caplog.text
    assert "sent unchanged" not in caplog.text
    caplog.clear()
    begun = session_of(*TEXTS[:3])[:1]  # an agent that went back before all that was edited
    assert proxied.turn([*begun, {"role": "user", "content": "Other."}], "t")[:1] == begun
    assert "sent unchanged" in caplog.text
    assert "applied again" not in caplog.text
    assert proxied.outcomes == {"edited": 1, "failed_open": 2, "reapplied": 1}


def test_the_log_names_each_model_without_a_price_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    proxied = Proxied(tmp_path)
    usage = {"input_tokens": 5000, "output_tokens": 1}
    for model in ("a-model-of-ours", "claude-sonnet-4-5", "a-model-of-ours", "x\n" * 5000, None):
        fields = {} if model is None else {"model": model}
        raw = json.dumps({"messages": session_of(TEXTS[0]), **fields}).encode()
        proxied.observe(proxied.turned(raw, str(model)[:9]), usage)
    lines = [one.getMessage() for one in caplog.records if "no known price" in one.getMessage()]
    assert [line.split()[:3] for line in lines[::2]] == [
        ["model", "'a-model-of-ours'", "has"],
        ["a", "request", "without"],
    ]
    assert len(lines) == 3
    assert len(lines[1]) < 300
    assert "\n" not in lines[1]


def test_a_service_tier_with_prices_of_its_own_costs_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    billed = []
    for tier in ("default", "priority", "flex"):
        (tmp_path / tier).mkdir()
        proxied = Proxied(tmp_path / tier)
        usage = {"prompt_tokens": 5000, "completion_tokens": 1, "service_tier": tier}
        raw = json.dumps({"model": "gpt-5.5", "messages": session_of(TEXTS[0])}).encode()
        proxied.observe(proxied.turned(raw), usage)
        billed.append(proxied.turning.counts.spent.billed)
        assert proxied.turning.counts.spent.tiered == 0
    assert billed == pytest.approx([0.025, 0.0625, 0.0125])
    assert "service tier" not in caplog.text


def test_the_log_says_once_that_a_service_tier_counts_at_standard_prices(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    proxied = Proxied(tmp_path)
    usage = {"input_tokens": 5000, "output_tokens": 1, "service_tier": "priority"}
    raw = json.dumps({"model": "claude-opus-4-8", "messages": session_of(TEXTS[0])}).encode()
    for _ in range(2):
        proxied.observe(proxied.turned(raw), usage)
    lines = [one.getMessage() for one in caplog.records if "service tier" in one.getMessage()]
    assert lines == [
        "model 'claude-opus-4-8' at the service tier 'priority': the dollars are standard prices"
    ]
    assert proxied.turning.counts.spent.tiered == 2


def test_a_usage_is_observed_for_its_own_turn_alone(tmp_path: Path) -> None:
    proxied = Proxied(tmp_path)
    first = proxied.turned(json.dumps({"messages": session_of(*TEXTS[:2])}).encode())
    second = proxied.turned(json.dumps({"messages": session_of(*TEXTS[:3])}).encode())
    assert second.conversation is not None
    assert second.conversation.session is not None
    proxied.observe(first, {"input_tokens": 5000})
    session = second.conversation.session
    assert session.totals().calls == session.totals().estimated_calls
    proxied.observe(second, {"input_tokens": 5000})
    proxied.observe(second, {"input_tokens": "many"})
    assert session.totals().calls == session.totals().estimated_calls + 1


def test_after_a_restart_a_list_continues_no_session_whose_last_list_it_does_not_begin_with(
    tmp_path: Path,
) -> None:
    Proxied(tmp_path).turn(session_of(*TEXTS[:4]), None)
    other = session_of(*TEXTS[:3], TEXTS[5], TEXTS[6])
    assert are_away(Proxied(tmp_path).turn(other, None), 4)
    assert len(Proxied(tmp_path).folders) == 2
    # Each goes on as its own session, although both begin alike.
    proxied = Proxied(tmp_path)
    for one in (session_of(*TEXTS[:5]), session_of(*TEXTS[:3], *TEXTS[5:8])):
        proxied.turn(one, None)
    assert len(proxied.folders) == 2
    shorter = Proxied(tmp_path)
    shorter.turn(session_of(*TEXTS[:2]), None)
    assert len(shorter.folders) == 3


def test_markers_of_the_cache_do_not_part_a_list_from_its_session(tmp_path: Path) -> None:
    first = session_of(*TEXTS[:4])
    first[-1]["content"][-1]["cache_control"] = {"type": "ephemeral"}
    Proxied(tmp_path).turn(first, None)
    proxied = Proxied(tmp_path)
    proxied.turn(session_of(*TEXTS[:5]), None)
    assert len(proxied.folders) == 1


def test_warming_up_writes_and_counts_nothing(tmp_path: Path) -> None:
    proxied = Proxied(tmp_path)
    proxied.turning.warm_up()
    assert not proxied.root.exists()
    assert proxied.outcomes == {}
    assert proxied.turning.counts.errors == {}


def test_a_policy_with_breakpoints_moves_the_markers_and_keeps_the_other_bytes(
    tmp_path: Path,
) -> None:
    policy = OFFLOADS_OLD + "model: {cache: {breakpoints: auto}}\n"
    proxied = Proxied(tmp_path, policy)
    messages = json.dumps(session_of(*TEXTS[:1])).encode()
    raw = b'{"n":1.50,"cache_control":{"type":"ephemeral"},"system":"s","messages":%b}' % messages
    new = proxied.turned(raw).raw
    assert new is not None
    assert b'{"n":1.50,"system":[{' in new
    assert json.loads(new).keys() == {"n", "system", "messages"}
    assert new.count(b"cache_control") <= 4


def steps_left(proxied: Proxied, count: int, **fields: Any) -> bool:
    """Whether a turn with so many results is not over after its first step; finishes it."""
    raw = json.dumps({"messages": session_of(*TEXTS[:count]), **fields}).encode()
    api = api_of("/v1/messages")
    assert api is not None
    headers = {"x-claude-code-session-id": "s"}
    steps = proxied.turning.in_steps(ListRequest(api, "k", headers, raw))
    if next(steps, steps) is steps:
        return False
    finished(steps)
    return True


@pytest.fixture
def _untraced(monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn that is traced is in one thread; other tests import the API."""
    for name in ("opentelemetry.trace", "opentelemetry.metrics"):
        monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.mark.usefixtures("_untraced")
def test_a_turn_that_decides_nothing_is_over_after_its_first_step(tmp_path: Path) -> None:
    proxied = Proxied(tmp_path, OFFLOADS_OLD.replace("keep_recent: 1", "keep_recent: 3"))
    assert steps_left(proxied, 1)  # makes the session
    assert not steps_left(proxied, 2)
    assert not steps_left(proxied, 3)
    assert steps_left(proxied, 4)  # saves a result
    assert steps_left(proxied, 5, system="a long prompt " * 10_000)


def test_a_turn_waits_for_the_one_before_it_in_a_later_step(tmp_path: Path) -> None:
    proxied = Proxied(tmp_path, OFFLOADS_OLD.replace("keep_recent: 1", "keep_recent: 3"))
    first = proxied.turned(json.dumps({"messages": session_of(TEXTS[0])}).encode())
    assert first.conversation is not None
    raw = json.dumps({"messages": session_of(*TEXTS[:2])}).encode()
    api = api_of("/v1/messages")
    assert api is not None
    request = ListRequest(api, "k", {"x-claude-code-session-id": "s"}, raw)
    with first.conversation.lock:
        steps = proxied.turning.in_steps(request)
        assert next(steps, steps) is not steps
    assert finished(steps).turn == 2
    assert not first.conversation.lock.locked()


def test_a_turn_that_is_given_up_lets_the_next_one_go_on(tmp_path: Path) -> None:
    proxied = Proxied(tmp_path)
    first = proxied.turned(json.dumps({"messages": session_of(*TEXTS[:2])}).encode())
    one = first.conversation
    assert one is not None
    raw = json.dumps({"messages": session_of(*TEXTS[:4])}).encode()
    api = api_of("/v1/messages")
    assert api is not None
    steps = proxied.turning.in_steps(ListRequest(api, "k", {"x-claude-code-session-id": "s"}, raw))
    assert next(steps, steps) is not steps
    assert one.lock.locked()
    steps.close()  # its client has gone before a thread was free
    assert (one.users, one.lock.locked()) == (0, False)
    assert are_away(proxied.turn(session_of(*TEXTS[:4])), 3)


@pytest.mark.usefixtures("_untraced")
def test_a_turn_whose_tokens_another_machine_counts_is_not_for_an_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxied = Proxied(tmp_path, OFFLOADS_OLD.replace("keep_recent: 1", "keep_recent: 3"))
    assert steps_left(proxied, 1)
    name = proxied.policies.general.model.tokenizer
    assert isinstance(name, str)
    monkeypatch.setitem(TOKENIZERS, name, Counting(is_remote=True))
    assert steps_left(proxied, 2)


# Each is another text than the one that orjson or `json` writes for its value.
NUMBERS = b"[1E5,1e5,1.50,-0,-0e0,1e-400,0.12345678901234567890,9007199254740993.0,1e+2,2.0e0]"
ALL_LEAVE = """\
apiVersion: policyctx/v1
name: all
min_tokens: 20
items: {tool_result: {offload: true}, tool_call: {offload: true}}
steps: [{name: all, do: offload, select: {types: [tool_result, tool_call]}}]
"""
LONG = "line\n" * 200
SHELL = {"type": "shell_call", "call_id": "c", "action": {"commands": [LONG], "n": "NUMBERS"}}
FUNCTION = {"name": "write", "arguments": {"text": LONG, "n": "NUMBERS"}}
WITH_NUMBERS: dict[str, list[Any]] = {
    "/v1/messages": [
        call("c", "write", {"text": LONG, "n": ["NUMBERS", {"n": "NUMBERS"}]}),
        results(("c", LONG)) | {"n": "NUMBERS"},
        call("d", "read", {"n": "NUMBERS"}),
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "d", "content": LONG, "n": "NUMBERS"},
                {"type": "text", "text": "go on", "n": "NUMBERS"},
            ],
        },
    ],
    "/v1/chat/completions": [
        {
            "role": "assistant",
            "n": "NUMBERS",
            "tool_calls": [
                {"id": "c", "type": "function", "function": FUNCTION},
                {
                    "id": "d",
                    "type": "function",
                    "function": FUNCTION | {"arguments": json.dumps(FUNCTION["arguments"])},
                },
            ],
        },
        chat_result("c", LONG) | {"n": "NUMBERS"},
        chat_result("d", LONG),
    ],
    "/v1/responses": [
        SHELL,
        {"type": "shell_call_output", "call_id": "c", "output": LONG, "n": "NUMBERS"},
        {
            "type": "function_call",
            "call_id": "d",
            "name": "write",
            "n": "NUMBERS",
            "arguments": json.dumps({"text": LONG, "n": "NUMBERS"}),
        },
        {"type": "function_call_output", "call_id": "d", "output": LONG, "n": "NUMBERS"},
    ],
}


@pytest.mark.parametrize("separators", [(",", ":"), (" , ", " : ")])
@pytest.mark.parametrize("path", WITH_NUMBERS)
def test_a_number_in_what_is_edited_keeps_its_characters(
    tmp_path: Path, path: str, separators: tuple[str, str]
) -> None:
    proxied = Proxied(tmp_path, ALL_LEAVE)
    api = api_of(path)
    assert api is not None
    messages = [user(), *WITH_NUMBERS[path]]
    for _ in range(2):
        given = {"n": "NUMBERS", api.messages: messages, "m": "NUMBERS"}
        text = json.dumps(given, separators=separators)
        raw = re.sub(r'\\*"NUMBERS\\*"', NUMBERS.decode(), text).encode()
        new = proxied.turned(raw, path=path).raw
        assert new is not None
        assert LONG[:50] not in json.loads(new)[api.messages]
        assert new.count(NUMBERS) == raw.count(NUMBERS)
        assert len(new) < len(raw) / 2
        messages = [*messages, user("go on")]


def test_a_number_keeps_its_characters_where_markers_are_set(tmp_path: Path) -> None:
    proxied = Proxied(tmp_path, OFFLOADS_OLD + "model: {cache: {breakpoints: auto}}\n")
    tools = [{"name": "Bash", "input_schema": {"type": "object", "n": "NUMBERS"}}]
    system = [{"type": "text", "text": "s", "n": "NUMBERS"}]
    last = {"role": "user", "content": [{"type": "text", "text": "go on", "n": "NUMBERS"}]}
    given = {"tools": tools, "system": system, "messages": [*session_of(*TEXTS[:1]), last]}
    raw = json.dumps(given).encode().replace(b'"NUMBERS"', NUMBERS)
    new = proxied.turned(raw).raw
    assert new is not None
    assert new.count(b"cache_control") > raw.count(b"cache_control")
    assert new.count(NUMBERS) == 3
