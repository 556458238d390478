"""A turn and a plan, against the least that either could be.

A turn in which nothing is to be decided has to find that out, so it is held against comparing the
list with the one of the turn before (the same message objects) and copying it; a tenth and a
hundredth of the messages show how both grow. A plan has to look at every message, so it is held
against one `json.dumps` of them, which a model call needs as well.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count, cycle
from tempfile import TemporaryDirectory
from time import perf_counter

from benchmarks.inputs import tool_outputs
from benchmarks.runner import Ratio
from policyctx.definitions.items import Message
from policyctx.policy.loading import load_policy
from policyctx.policy.models import Policy
from policyctx.policy.models.steps import Store
from policyctx.session import Session
from policyctx.store.opening import session_store
from policyctx.turns.driving import Driver, finished
from policyctx.turns.effects import Turn
from policyctx.turns.reporting import Reporting, Writes
from policyctx.turns.result import Result

MESSAGES = 1_000
# How the list grows, the messages of a session turn by turn, and the items of a plan.
LENGTHS = (1_000, 10_000, 100_000)
TURN_BY_TURN = 800
NEW_ITEMS = 100_000
# What a turn may cost: so many times the comparison and the copy, and a fixed part in seconds.
TIMES, FIXED = 5, 0.000_5
# Characters of one tool result after another.
SIZES = (200, 900, 2_500, 6_000)
TOOLS = ("Read", "Bash", "Grep", "Edit")


def ratios() -> list[Ratio]:
    """The figures of this module; 1,000 messages have about a million characters."""
    messages = conversation(MESSAGES)
    by_characters = Session("context-offload", session_id="benchmark")
    small = list(items_by_characters(NEW_ITEMS))
    length, quarter = LENGTHS[1], TURN_BY_TURN // 4
    return [
        *(one_more(n) for n in LENGTHS),
        Ratio(
            f"a new message in {length:,} / {TIMES} times compare and copy, and half a millisecond",
            ours=turn_of_one(length),
            baseline=allowed(length),
            bound=1,
        ),
        Ratio(
            f"report a turn without a log or OpenTelemetry / a new message in {LENGTHS[0]:,}",
            ours=report_of_nothing(),
            baseline=turn_of_one(LENGTHS[0]),
            bound=0.05,
        ),
        Ratio(
            f"a session of {TURN_BY_TURN} messages turn by turn / four of {quarter}",
            ours=partial(turn_by_turn, messages[:TURN_BY_TURN]),
            baseline=partial(several_times, 4, partial(turn_by_turn, messages[:quarter])),
            bound=1.5,
        ),
        Ratio(
            "plan by characters / json.dumps",
            ours=lambda: by_characters.plan(messages),
            baseline=lambda: json.dumps(messages),
        ),
        Ratio(
            f"plan {NEW_ITEMS:,} new items by characters / one second",
            ours=lambda: Session("context-offload", session_id="benchmark").plan(small),
            baseline=partial(wait, 1.0),
            bound=1,
        ),
    ]


def one_more(messages: int) -> Ratio:
    """A turn with one new message and nothing to decide, as the list grows."""
    return Ratio(
        f"a new message in {messages:,} / compare and copy the list",
        ours=turn_of_one(messages),
        baseline=compared_and_copied(messages),
    )


def turn_of_one(messages: int) -> Callable[[], object]:
    """Return a call that puts one more message to a settled list, and applies the policy."""
    grown = conversation(messages)
    session = settled_session(grown)
    number = count()

    def turn() -> object:
        grown.append({"role": "assistant", "content": f"That was step {next(number)}."})
        return session.apply(grown)

    return turn


def report_of_nothing() -> Callable[[], object]:
    """Return a call that reports a turn in which nothing happens."""
    store = session_store(Store(), "benchmark")
    result = Result((), Session("context-offload", session_id="benchmark").plan([]))
    reporting = Reporting("benchmark", "benchmark")

    def turn() -> Turn[Result]:
        yield from ()
        return result

    driver = Driver(store, Writes(), lambda: None, lambda error: error)
    return lambda: finished(driver.in_steps(reporting.turn("apply", turn())))


def compared_and_copied(messages: int) -> Callable[[], object]:
    """Return a call that compares two lists of the same messages, and copies one."""
    grown = conversation(messages)
    before = list(grown)
    return lambda: before == grown and list(grown)


def allowed(messages: int) -> Callable[[], object]:
    """Return a call that takes as long as a turn may."""
    compare_and_copy = compared_and_copied(messages)

    def allowance() -> None:
        for _ in range(TIMES):
            compare_and_copy()
        wait(FIXED)

    return allowance


def wait(seconds: float) -> None:
    """Keep the processor busy."""
    until = perf_counter() + seconds
    while perf_counter() < until:
        pass


def turn_by_turn(messages: Sequence[Message]) -> None:
    """Apply a policy before each model call of a session."""
    with TemporaryDirectory() as root:
        session = Session(unflushed("coding-agent"), root=root)
        for end in range(2, len(messages) + 1, 2):
            session.apply(messages[:end])


def several_times(times: int, call: Callable[[], object]) -> None:
    """Make a call more than once."""
    for _ in range(times):
        call()


def items_by_characters(items: int) -> Iterator[Message]:
    """Yield a task, then calls and their results, of which each tenth is worth offloading."""
    yield {"role": "user", "content": "Repair it."}
    for i in range(items // 2):
        call = {"type": "tool_use", "id": f"c{i}", "name": "Bash", "input": {"command": f"run {i}"}}
        yield {"role": "assistant", "content": [call]}
        content = f"line {i} " * (4 if i % 10 else 400)
        result = {"type": "tool_result", "tool_use_id": f"c{i}", "content": content}
        yield {"role": "user", "content": [result]}


def unflushed(preset: str) -> Policy:
    """Return a preset that does not wait for the disk."""
    policy = load_policy(preset)
    return policy.model_copy(update={"store": policy.store.model_copy(update={"sync": "never"})})


def settled_session(messages: Sequence[Message]) -> Session:
    """Return a session that has seen these messages: its next `apply` finds nothing to save."""
    with TemporaryDirectory() as root:
        session = Session(unflushed("coding-agent"), root=root)
        session.apply(messages)
    return session


def conversation(length: int = MESSAGES) -> list[Message]:
    """Return a system prompt, then turns of ten messages, the last one still going on."""
    results = cycle(tool_outputs(SIZES * (MESSAGES // len(SIZES)), seed=2))
    messages: list[Message] = [{"role": "system", "content": "You repair this project's code."}]
    while len(messages) < length:
        messages += _turn(len(messages), results)
    return messages[:length]


def _turn(start: int, results: Iterator[str]) -> Iterator[Message]:
    """Yield a question, a call of each tool with its result, and an answer."""
    yield {"role": "user", "content": f"Why does case {start} fail? Repair it."}
    for i, tool in enumerate(TOOLS):
        call_id = f"toolu_{start:05}{i}"
        arguments = {"path": f"src/case_{start}.py", "limit": 200}
        call = {"type": "tool_use", "id": call_id, "name": tool, "input": arguments}
        words = {"type": "text", "text": f"I use {tool} next."}
        yield {"role": "assistant", "content": [words, call]}
        result = {"type": "tool_result", "tool_use_id": call_id, "content": next(results)}
        yield {"role": "user", "content": [result]}
    yield {"role": "assistant", "content": f"Case {start} passes now."}
