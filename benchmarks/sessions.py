"""A session turn by turn, against the least that it could be, and how both grow.

The policy offloads each large result once three newer ones are there, and does not wait for the
disk. No solution could do without counting each text once and writing each large one to a file, so
that is the floor. Its files go to temporary names first, as a file that a crash must not leave in
half has to. Each timing has new texts, so both sides count them.

The same list with `state: none` decides each call anew, which is what a library without a memory
does. A single call, on a session that has seen nothing, is held against reading the list as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

from benchmarks.planning import conversation, several_times
from benchmarks.runner import Ratio
from policyctx.definitions.items import Message
from policyctx.planning.compiled import OffloadPolicy
from policyctx.policy.loading import parsed_policy
from policyctx.policy.sources import PolicySource
from policyctx.session import Session
from policyctx.tokens.counter import counter_for

TOKENIZER = "o200k_base"
MESSAGES = 500
# How often the list is as long, for the growth.
TIMES = 4
LEAST_TOKENS = 500
KEPT = 3

_POLICY = """\
apiVersion: policyctx/v1
name: benchmark
min_tokens: {least}
items: {{tool_result: {{offload: true}}}}
store: {{sync: never, state: {state}}}
steps: [{{name: retire, do: {do}, select: {{keep_recent: {{items: {kept}, per: all}}}}}}]
"""

Call: TypeAlias = Callable[[], object]


def ratios() -> list[Ratio]:
    """The figures of this module."""
    messages, new = conversation(MESSAGES), NewTexts(conversation(MESSAGES))
    longer = [*several(messages, TIMES)]
    counter_for(TOKENIZER).count_many([*results(longer)])
    offloading, clearing = compiled("offload"), compiled("clear")
    forgetting, trimming = compiled("clear", state="none"), compiled("clear", kept=80)
    return [
        Ratio(
            f"offloading turn by turn, {MESSAGES} messages / count once and write",
            ours=lambda: turn_by_turn(offloading, new.messages),
            baseline=lambda: floor(new.messages),
            setup=new.made,
        ),
        Ratio(
            f"the same, {MESSAGES * TIMES:,} messages / {TIMES} of {MESSAGES}",
            ours=partial(turn_by_turn, offloading, longer),
            baseline=partial(several_times, TIMES, partial(turn_by_turn, offloading, messages)),
            bound=TIMES**0.1,
        ),
        Ratio(
            "clearing turn by turn with `state: none` / with a memory",
            ours=partial(turn_by_turn, forgetting, messages),
            baseline=partial(turn_by_turn, clearing, messages),
        ),
        Ratio(
            f"one call that clears the results of {MESSAGES} messages / json.dumps of them",
            ours=partial(one_call, forgetting, messages),
            baseline=lambda: json.dumps(messages),
        ),
        Ratio(
            f"one call that clears some results of {MESSAGES} messages / json.dumps of them",
            ours=partial(one_call, trimming, messages),
            baseline=lambda: json.dumps(messages),
        ),
    ]


def compiled(do: str, *, state: str = "kept", kept: int = KEPT) -> OffloadPolicy:
    """Return a policy that takes each large result that is not among the newest."""
    text = _POLICY.format(do=do, state=state, kept=kept, least=LEAST_TOKENS)
    return OffloadPolicy(parsed_policy(PolicySource("benchmark.yaml", text), variables={}))


def turn_by_turn(policy: OffloadPolicy, messages: Sequence[Message]) -> None:
    """Apply a policy before each model call of a session."""
    with TemporaryDirectory() as root:
        session = Session(policy, root=root, session_id="benchmark")
        for end in range(2, len(messages) + 1, 2):
            session.apply(messages[:end])


def one_call(policy: OffloadPolicy, messages: Sequence[Message]) -> None:
    """Apply a policy once, as a program does that is started for each call."""
    with TemporaryDirectory() as root:
        Session(policy, root=root, session_id="benchmark").apply(messages)


def floor(messages: Sequence[Message]) -> None:
    """Count each large result once, and write each large result to a file by a temporary name."""
    counter = counter_for(TOKENIZER)
    with TemporaryDirectory() as root:
        folder = Path(root)
        for i, text in enumerate(results(messages)):
            if counter.count(text) >= LEAST_TOKENS:
                temporary = folder / f".{i}"
                temporary.write_text(text, encoding="utf-8")
                temporary.rename(folder / str(i))


def results(messages: Sequence[Message]) -> Iterator[str]:
    """Yield the text of each tool result."""
    for message in messages:
        content = message["content"]
        if isinstance(content, list):
            yield from (part["content"] for part in content if part["type"] == "tool_result")


def several(messages: Sequence[Message], times: int) -> Iterator[Message]:
    """Yield the messages `times` times, each time with other ids and texts."""
    for number in range(times):
        yield from stamped(messages, f"{number}-")


def stamped(messages: Sequence[Message], stamp: str) -> list[Message]:
    """Return the messages with a stamp before each id and each result."""
    written = json.dumps(messages)
    for key in ("id", "tool_use_id"):
        written = written.replace(f'"{key}": "', f'"{key}": "{stamp}')
    found: list[Message] = json.loads(written)
    for message in found:
        for part in message["content"] if isinstance(message["content"], list) else ():
            if part["type"] == "tool_result":
                part["content"] = f"{stamp}\n{part['content']}"
    return found


class NewTexts:
    """Messages whose results no counter has seen, made anew for each timing."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._first, self._numbers = messages, count()
        self.messages: list[Message] = []

    @contextmanager
    def made(self) -> Iterator[None]:
        """Make the messages of one timing."""
        self.messages = stamped(self._first, f"new-{next(self._numbers)}-")
        yield
