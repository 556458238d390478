"""What the agents of all hosts have in common: policies, scripts, checks, and some of their tests.

The agent of each host has a tool `read`, which gives `CONTENTS`, and in the loop of a hundred turns
one whose results are `TEXTS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from policyctx import Session
from policyctx.errors import InputError
from tests.integrations.loops import BIG, GATED, OLD, SECOND, WINDOW, files_of, long_results
from tests.integrations.scripted import BROKEN, OVERLOADED, Body, Reply, calling, saying

DROP = """\
    steps: [{name: s, do: drop, select: {types: [tool_call], keep_recent: 1}}]
    """
COMPACT = """\
    compaction: {keep_recent: {messages: 1}, keep_newest_user_message: true}
    steps: [{name: s, do: compact, when: {messages: {at_least: 4}}}]
    """
# Every result leaves.
ALL = OLD.replace("keep_recent: 1", "keep_recent: 0")
CONTENTS = {"a": BIG, "b": SECOND}
TEXTS = {id_: text for turn in range(101) for id_, text in long_results(turn)}
CAREFUL = "You are careful. " * 120


def script(*, reasons: bool = False, last: Reply | None = None) -> list[Reply]:
    """Read both contents, one after the other."""
    return [
        calling(("c0", "read", {"name": "a"}), reasons=reasons),
        calling(("c1", "read", {"name": "b"})),
        last or saying("Done."),
    ]


def in_parallel(last: Reply | None = None) -> list[Reply]:
    """Read both contents at once, then one of them again."""
    both = calling(("c0", "read", {"name": "a"}), ("c1", "read", {"name": "b"}))
    return [both, calling(("c2", "read", {"name": "b"})), last or saying("Done.")]


def nested(**asked: Any) -> list[Reply]:
    """Ask an agent inside the tool `ask`, which reads both contents, then read one."""
    inner = [calling((f"i{i}", "read", {"name": name})) for i, name in enumerate("ab")]
    last = [calling(("c1", "read", {"name": "b"})), saying("Done.")]
    return [calling(("c0", "ask", asked)), *inner, saying(f"Found. {BIG}"), *last]


def five_calls(results: Callable[[Any], Sequence[str]]) -> Callable[[Body], Reply]:
    """Return a script for several agents at once: each makes five calls, then ends."""

    def reply(body: Body) -> Reply:
        turn = len(results(body))
        return calling((f"t{turn}", "read", {"name": "ab"[turn % 2]})) if turn < 5 else saying("x")

    return reply


def long_reply(turn: int) -> Reply:
    """Reason and call one to three tools at once; every tenth turn ends with a text."""
    if turn % 10 == 9:
        return saying(f"Part {turn} is done. " + "We go on with the next part. " * 20)
    asked = [(f"t{turn}_{i}", "Bash", {"n": turn, "i": i}) for i in range(1 + turn % 3)]
    return calling(*asked, reasons=turn % 2 == 0)


def long_part(part: int) -> list[Reply]:
    """Return the script of ten turns, in some of which the API fails."""
    lines: list[Reply] = []
    for turn in range(10 * part, 10 * part + 10):
        lines += [[OVERLOADED, BROKEN][turn % 2]] if turn % 13 == 5 else []
        lines.append(long_reply(turn))
    return lines


def check_loop(api: Any, session: Session, turns: int = 100) -> None:
    """Check that every prompt of the loop was accepted, and that the policy edited the list."""
    assert not api.refused
    assert len(api.prompts) == turns
    assert max(api.prompts) <= WINDOW
    totals = session.totals()
    assert "offloaded" in totals.items
    assert totals.compactions > 2


def check_edited(sent: Sequence[str], api: Any, session: Session) -> None:
    """Check the results in the third request of `script`, the file, and the observed usage."""
    assert not api.refused
    first, second = sent
    assert first.startswith("[")
    assert second == SECOND
    [file] = files_of(session)
    assert session.read(file) == BIG
    check_observed(api, session)


def check_observed(api: Any, session: Session) -> None:
    """Check that the session observed the usage of the three calls of `script`."""
    totals = session.totals()
    assert (totals.calls, totals.tokens_sent) == (3, sum(api.prompts))


def check_nested(
    results: Callable[[Any], Sequence[str]], bodies: Sequence[Any], session: Session
) -> None:
    """Check, under `ALL`, that the inner agent of `nested` is no part of the session."""
    assert [*results(bodies[3])] == [BIG, SECOND]
    assert all(text.startswith("[") for text in results(bodies[5]))
    assert session.totals().calls == 3


def check_five_calls(api: Any, sessions: Iterable[Session]) -> None:
    """Check the sessions of all agents of `five_calls`."""
    found = [*sessions]
    assert not api.refused
    assert [len(session.ledger) for session in found] == [4] * len(found)
    assert sum(session.totals().tokens_sent for session in found) == sum(api.prompts)


@dataclass(frozen=True, slots=True)
class Host:
    """One agent of a host, and the server or model that it calls.

    `run` runs it under a policy with instructions and returns its session; `results` are the texts
    of the results in a request. `kind` is the integration, and `folder` the folder of the session.
    """

    api: Any
    run: Callable[[str, str], Session]
    results: Callable[[Any], Sequence[str]]
    kind: Callable[..., object]
    folder: Path

    def sent(self, number: int) -> list[str]:
        """Return the results in the request with this number."""
        assert not self.api.refused
        return [*self.results(self.api.bodies[number])]


class AgentTests:
    """What holds for every host. A module gives the fixture `host`, with `script` as its script."""

    def test_parallel_calls_are_offloaded_one_by_one(self, host: Host) -> None:
        host.api.script = in_parallel()
        host.run(OLD, "Read.")
        assert host.sent(1) == [BIG, SECOND]
        *old, newest = host.sent(2)
        assert [text[0] for text in old] == ["[", "["]
        assert newest == SECOND

    def test_instructions_and_tools_count_towards_the_gates(self, host: Host) -> None:
        host.run(GATED, "rule " * 20_000)
        assert host.sent(2)[0].startswith("[")

    def test_warnings_of_a_turn_are_logged(
        self, host: Host, caplog: pytest.LogCaptureFixture
    ) -> None:
        host.folder.mkdir(parents=True)
        (host.folder / "tool_result").write_text("a file in place of the folder")
        session = host.run(OLD, "Read.")
        records = [record for record in caplog.records if record.name.startswith("policyctx")]
        assert any(f"session {session.session_id}: " in record.getMessage() for record in records)
        assert host.sent(2) == [BIG, SECOND]


class OptionTests:
    """What holds for the integrations that take a policy and the options of its sessions."""

    def test_options_need_a_policy(self, host: Host) -> None:
        with pytest.raises(InputError, match="need a policy"):
            host.kind(lambda *_: None, root=host.folder)


class RetryTests:
    """What holds for hosts whose client tries a request again."""

    @pytest.mark.parametrize("error", [OVERLOADED, BROKEN], ids=["529", "500"])
    def test_a_retried_request_is_sent_byte_for_byte(self, host: Host, error: Reply) -> None:
        host.api.script.insert(2, error)
        session = host.run(OLD, "Read.")
        assert host.api.raw[2] == host.api.raw[3]
        assert len(session.ledger) == 1
