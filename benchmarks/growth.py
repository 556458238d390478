"""How the work grows with what it works on: a table, a line for each quantity.

    python -m benchmarks.growth [--rounds N]

Each quantity doubles some times. The processor time of the whole work is fitted as a power of the
quantity, over the least time of each size: with the exponent 1 twice as much takes twice as long.
The goal is 1.1. It exits with 1 when an exponent is larger.
"""

from __future__ import annotations

import argparse
import gc
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from tempfile import TemporaryDirectory
from time import process_time

from benchmarks.inputs import tool_outputs
from benchmarks.planning import conversation
from benchmarks.sessions import compiled, one_call, stamped, turn_by_turn
from policyctx.planning.compiled import OffloadPolicy
from policyctx.policy.loading import parsed_policy
from policyctx.policy.sources import PolicySource
from policyctx.session import Session
from policyctx.store.content import Content
from policyctx.store.filesystem import ContextFileSystem

GOAL = 1.1
_ROUNDS = 3
_SHORT = 40
_HEAD = "| grows with | sizes | least times | exponent |\n|---|---|---|--:|"
_stamps = count()


@dataclass(frozen=True, slots=True)
class Growth:
    """Some work, and the sizes at which it is timed, each twice the one before."""

    name: str
    sizes: tuple[int, ...]
    prepared: Callable[[int], Callable[[], None]]
    """Returns the work of a size, which is made anew for each timing."""


def growths() -> list[Growth]:
    """Return what is measured."""
    doubled = (500, 1000, 2000, 4000)
    return [
        Growth("messages of a session, turn by turn", doubled, _turns),
        Growth("messages of one call", doubled, _call),
        Growth("sessions in a process", (10, 20, 40, 80), _sessions),
        Growth("items in a store, saved one by one", doubled, _items),
        Growth("rules in a policy, read and applied", (25, 50, 100, 200), _rules),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("--rounds", type=int, default=_ROUNDS, metavar="N", help="of each size")
    rounds = parser.parse_args(arguments).rounds
    print(_HEAD)
    is_met = True
    for growth in growths():
        times = least_times(growth, rounds)
        found = exponent(growth.sizes, times)
        sizes = ", ".join(f"{size:,}" for size in growth.sizes)
        shown = ", ".join(f"{time:.3g} s" for time in times)
        print(f"| {growth.name} | {sizes} | {shown} | {found:.2f} |", flush=True)
        is_met = is_met and found <= GOAL
    return int(not is_met)


def least_times(growth: Growth, rounds: int) -> list[float]:
    """Return the least processor time at each size, in seconds; the sizes take turns."""
    times: list[list[float]] = [[] for _ in growth.sizes]
    growth.prepared(growth.sizes[0])()
    for _ in range(rounds):
        for found, size in zip(times, growth.sizes, strict=True):
            work = growth.prepared(size)
            gc.collect()
            began = process_time()
            work()
            found.append(process_time() - began)
    return list(map(min, times))


def exponent(sizes: Sequence[float], times: Sequence[float]) -> float:
    """Return the exponent of the power that fits best, by least squares of the logarithms."""
    xs, ys = [math.log(size) for size in sizes], [math.log(time) for time in times]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    pairs = zip(xs, ys, strict=True)
    return sum((a - x) * (b - y) for a, b in pairs) / sum((a - x) ** 2 for a in xs)


def _turns(size: int) -> Callable[[], None]:
    policy, messages = compiled("offload"), stamped(conversation(size), f"{next(_stamps)}-")
    return lambda: turn_by_turn(policy, messages)


def _call(size: int) -> Callable[[], None]:
    policy, messages = compiled("clear", state="none"), conversation(size)
    return lambda: one_call(policy, messages)


def _sessions(size: int) -> Callable[[], None]:
    policy, messages = compiled("offload"), conversation(_SHORT)

    def work() -> None:
        with TemporaryDirectory() as root:
            made = [Session(policy, root=root, session_id=f"s{i}") for i in range(size)]
            for end in range(2, len(messages) + 1, 2):
                for session in made:
                    session.apply(messages[:end])

    return work


def _items(size: int) -> Callable[[], None]:
    texts = tool_outputs([1000] * size, seed=3)
    contents = [Content(f"{i}.md", text, f"{i}.md") for i, text in enumerate(texts)]

    def work() -> None:
        with TemporaryDirectory() as root:
            store = ContextFileSystem(root, sync="never")
            for one in contents:
                store.save([one])

    return work


def _rules(size: int) -> Callable[[], None]:
    rules = "\n".join(f"  tool_{i}_*: {{min_tokens: {100 + i}}}" for i in range(size))
    steps = "steps: [{name: s, do: clear, select: {keep_recent: {items: 3}}}]"
    items = "items: {tool_result: {offload: true}}"
    text = f"apiVersion: policyctx/v1\nname: p\n{items}\ntools:\n{rules}\n{steps}\n"
    messages = conversation(_SHORT)

    def work() -> None:
        policy = OffloadPolicy(parsed_policy(PolicySource("growth.yaml", text), variables={}))
        with TemporaryDirectory() as root:
            Session(policy, root=root, session_id="benchmark").apply(messages)

    return work


if __name__ == "__main__":
    sys.exit(main())
