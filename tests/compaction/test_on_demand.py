"""`Session.compact`: a compaction on demand, as a user of an agent writes `/compact`."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from policyctx import Result, Session
from policyctx.compaction.assembly import SummaryRequest
from policyctx.compaction.prompt import instructions
from policyctx.definitions.items import Message
from tests.compaction.compacting import REPLY, SUMMARY, SYSTEM, conversation, said
from tests.conversations import user
from tests.fuzz.conversations import ALL_SHAPES, Shape, Writer
from tests.fuzz.histories import SHAPES_OF_HOSTS
from tests.fuzz.memory_store import MemoryStore
from tests.fuzz.rules import broken
from tests.policies import policy

NEVER = "{name: summarise, do: compact, when: {messages: {over: 400}}}"
SUMMARISED = [SYSTEM, user(f"{SUMMARY}the summary"), said(REPLY)]


def session(
    root: Path,
    steps: str = NEVER,
    more: str = "",
    summarizer: Callable[[SummaryRequest], str] | None = lambda _: "the summary",
) -> Session:
    under = policy(f"store: {{sync: never}}\n{more}\nsteps: [{steps}]\n")
    return Session(under, root=root, session_id="s", summarizer=summarizer)


@pytest.mark.parametrize("steps", [NEVER, ""])
def test_a_compaction_is_made_whatever_the_gates_say(tmp_path: Path, steps: str) -> None:
    used, messages = session(tmp_path, steps), conversation()
    assert used.apply(messages).messages is messages
    result = used.compact(messages)
    assert list(result.messages) == SUMMARISED
    assert result.compaction is not None
    assert Path(result.compaction.archive_path or "").is_file()
    assert used.totals().compactions == 1


@pytest.mark.parametrize("steps", [NEVER, ""])
@pytest.mark.parametrize("restarted", [False, True])
def test_the_next_call_replaces_the_same_history(
    tmp_path: Path, steps: str, *, restarted: bool
) -> None:
    used, messages = session(tmp_path, steps), conversation()
    made = used.compact(messages).messages
    if restarted:
        used = session(tmp_path, steps, summarizer=None)
    longer = [*messages, user("and now")]
    assert list(used.apply(longer).messages) == [*made, user("and now")]
    back = [*made, user("and now")]
    assert used.apply(back).messages is back


def test_asynchronously_the_same_is_done(tmp_path: Path) -> None:
    async def summarize(_: SummaryRequest) -> str:
        await asyncio.sleep(0)
        return "the summary"

    used = Session(policy(f"steps: [{NEVER}]"), root=tmp_path, summarizer=summarize)
    result = asyncio.run(used.compact_async(conversation()))
    assert list(result.messages) == SUMMARISED


PROMPT = "compaction: {summary: {prompt: 'In {max_words} words.'}}"


@pytest.mark.parametrize("more", ["", PROMPT])
def test_instructions_are_in_the_prompt_of_this_summary_alone(tmp_path: Path, more: str) -> None:
    asked = []

    def summarize(request: SummaryRequest) -> str:
        asked.append(instructions(request.settings))
        return "the summary"

    used, messages = session(tmp_path, more=more, summarizer=summarize), conversation()
    used.compact(messages, instructions="Keep {every} table's name.")
    used.compact([*messages, user("and now"), said("yes")])
    assert [text.count("Keep {every} table's name.") for text in asked] == [1, 0]


def test_a_summary_that_no_model_makes_says_that_it_follows_no_instructions(tmp_path: Path) -> None:
    result = session(tmp_path, summarizer=None).compact(conversation(), instructions="Be brief.")
    assert result.compacted
    assert result.warnings == ("no model makes the summary, so the instructions have no effect",)


def test_the_policy_says_what_is_kept_and_worded(tmp_path: Path) -> None:
    more = "compaction: {keep_recent: {messages: 2}, wording: {summary: 'So far: {summary}'}}"
    messages = conversation()
    result = session(tmp_path, "", more).compact(messages)
    assert result.messages[-2:] == messages[-2:]
    assert result.messages[1] == user("So far: the summary")


def test_a_second_compaction_replaces_the_first_summary(tmp_path: Path) -> None:
    used, messages = session(tmp_path), conversation()
    for number in range(1, 4):
        messages = [*used.compact(messages).messages, user(f"and {number}")]
        assert used.totals().compactions == number
    assert list(messages) == [*SUMMARISED, user("and 3")]


def test_a_list_without_history_stays_and_the_result_says_why(tmp_path: Path) -> None:
    used, messages = session(tmp_path), [SYSTEM]
    result = used.compact(messages)
    assert result.messages is messages
    assert result.compaction is None
    why = "there is nothing that it may replace: no message follows the system messages"
    assert result.warnings == (f"not compacted: {why}",)
    used.compact(conversation())
    [warning] = used.compact(SUMMARISED).warnings
    assert warning.startswith("not compacted: ")


def test_a_failure_leaves_the_list(tmp_path: Path) -> None:
    messages = conversation()
    used = session(tmp_path, more="compaction: {summary: {attempts: 1}}", summarizer=lambda _: "")
    result = used.compact(messages)
    assert result.messages is messages
    assert result.warnings == ("not compacted, after 1 attempt: no summary: the answer is empty",)


def test_each_call_says_that_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    used, messages = session(tmp_path / "file"), conversation()
    told = [used.compact([*messages, user(f"and {i}")]).warnings for i in range(3)]
    why = f"not compacted: {tmp_path / 'file'} cannot be written: Not a directory"
    assert [warnings.count(why) for warnings in told] == [1, 1, 1]
    assert [len(warnings) for warnings in told] == [2, 1, 1]  # the first says what stops, too


def test_a_call_says_what_a_turn_said_before(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    always = "{name: summarise, do: compact, when: {messages: {over: 1}}}"
    used, messages = session(tmp_path / "file", always), conversation()
    assert used.apply(messages).warnings
    again = [*messages, user("and now")]
    assert used.apply(again).warnings == ()
    why = f"not compacted: {tmp_path / 'file'} cannot be written: Not a directory"
    assert used.compact(again).warnings == (why,)


def test_a_caller_may_decline(tmp_path: Path) -> None:
    asked = []

    def decline(ahead: object) -> bool:
        asked.append(ahead)
        return False

    under = policy("steps: []")
    used = Session(under, root=tmp_path, session_id="s", before_compaction=decline)
    assert not used.compact(conversation()).compacted
    assert len(asked) == 1


def test_a_policy_without_state_compacts_and_remembers_nothing(tmp_path: Path) -> None:
    under = policy("store: {state: none, sync: never}\nsteps: []")
    used = Session(under, root=tmp_path, summarizer=lambda _: "the summary")
    messages = conversation()
    assert list(used.compact(messages).messages) == SUMMARISED
    assert used.apply(messages).messages is messages


@pytest.mark.parametrize("shape", dict.fromkeys(ALL_SHAPES))
def test_lists_of_each_shape_stay_valid(shape: Shape) -> None:
    for seed in range(8):
        rng = random.Random(seed)  # noqa: S311 - no secret
        messages: list[Message] = Writer(rng, shape, repeats=False, hosted=True).conversation(4)
        used = Session(
            policy("steps: []"),
            session_id="s",
            store=MemoryStore(),
            shapes=SHAPES_OF_HOSTS.get(shape, ()),
            summarizer=lambda _: "the summary",
        )
        before = broken(messages)
        made: Result = used.compact(messages)
        assert made.compacted, made.warnings
        assert not broken(made.messages) - before, made.messages
        assert used.apply(messages).messages == made.messages
