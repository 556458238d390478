"""Replaying recorded sessions, against the least that it could take, and against their length.

A replay has to parse the files and to count every text once, so it is held against just that:
orjson over the same bytes, and the texts counted together with tiktoken, as both sides count. Four
times as much is the bound. What was counted once is not counted again, so each side begins with a
counter that knows nothing.

A turn costs what is new in it, so a session that is so many times as long may take so many times as
long, and no longer: it is held against replaying the short one as often.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import orjson

from benchmarks.inputs import tool_outputs
from benchmarks.runner import Ratio
from policyctx.definitions.items import Message
from policyctx.errors import UnreadableRecordingError
from policyctx.messages.json_text import compact_json
from policyctx.messages.reading import items_of
from policyctx.planning.compiled import OffloadPolicy
from policyctx.replay.reading import files_in, recordings_in
from policyctx.replay.recording import ModelCall, Recording
from policyctx.replay.simulation import simulated
from policyctx.replay.summing import figures_of
from policyctx.tokens import counter
from policyctx.tokens.counter import MemoCounter, new_counter

TRACES = Path(__file__).parents[2] / "shared" / "traces"
POLICY = "small-context"
TOKENIZER = "o200k_base"
BOUND = 4
GROWTH = 1.5
TIMES = (2, 4, 8, 16)
# Characters of one tool result after another, and how many a session has.
SIZES = (200, 900, 2_500, 6_000)
RESULTS = 80


def ratios() -> list[Ratio]:
    """The figures of this module; the first only where recordings lie beside the checkout."""
    policy = OffloadPolicy.load(POLICY)
    once = session(1)
    return [
        *(_against_parsing(policy) if TRACES.is_dir() else ()),
        *(
            Ratio(
                f"a session {times} times as long / it {times} times",
                ours=partial(_replayed, session(times), policy),
                baseline=partial(_replayed, once, policy, times=times),
                bound=GROWTH,
            )
            for times in TIMES
        ),
    ]


def session(times: int) -> Recording:
    """Return a session of `RESULTS` results so many times over; no text in it occurs twice."""
    outputs = tool_outputs(SIZES * (RESULTS * times // len(SIZES)), seed=3)
    new: list[Message] = [{"role": "user", "content": "Find out why it fails, and repair it."}]
    calls: list[ModelCall] = []
    for i, output in enumerate(outputs):
        calls.append(ModelCall(tuple(new), anew=not calls))
        path = {"path": f"src/part_{i % 50}/case_{i}.py"}
        use = {"type": "tool_use", "id": f"toolu_{i:06}", "name": "Read", "input": path}
        words = {"type": "text", "text": f"Next I look at case {i} and what it needs."}
        result = {"type": "tool_result", "tool_use_id": use["id"], "content": output}
        new = [
            {"role": "assistant", "content": [words, use]},
            {"role": "user", "content": [result]},
        ]
    return Recording("session", "generated", tuple(calls), tuple(new))


def _against_parsing(policy: OffloadPolicy) -> Iterator[Ratio]:
    found = [path for path in files_in([TRACES]) if _is_recording(path)]
    texts = sorted({text for path in found for text in _texts(path)})
    yield Ratio(
        f"replay of {len(found)} files / orjson over them and counting each text once",
        ours=lambda: _replayed_files(found, policy),
        baseline=lambda: _parsed_and_counted(found, texts),
        bound=BOUND,
    )


def _replayed_files(paths: Sequence[Path], policy: OffloadPolicy) -> None:
    _forget()
    for path in paths:
        for recording in recordings_in(path):
            figures_of(simulated(recording, policy))


def _replayed(recording: Recording, policy: OffloadPolicy, *, times: int = 1) -> None:
    for _ in range(times):
        _forget()
        figures_of(simulated(recording, policy))


def _forget() -> None:
    """Let sessions count with what knows nothing: the process's counter is theirs."""
    cold = _cold_counter()
    cold.shared_as = partial(counter.counter_for, TOKENIZER)
    counter._counters[TOKENIZER, None] = cold  # noqa: SLF001


def _cold_counter() -> MemoCounter:
    return new_counter(TOKENIZER, fast=False)


def _parsed_and_counted(found: Sequence[Path], texts: Sequence[str]) -> None:
    for path in found:
        raw = path.read_bytes()
        try:
            orjson.loads(raw)
        except ValueError:
            for line in raw.split(b"\n"):
                _parse(line)
    _cold_counter().count_many(texts)


def _parse(line: bytes) -> None:
    try:
        orjson.loads(line)
    except ValueError:
        return


def _is_recording(path: Path) -> bool:
    try:
        return any(True for _ in recordings_in(path))
    except UnreadableRecordingError:
        return False


def _texts(path: Path) -> Iterator[str]:
    """Yield every text that a replay has to count: of the messages, and sent beside them."""
    for recording in recordings_in(path):
        for call in recording.calls:
            beside = (part for part in (call.system, call.tools) if part)
            yield from (part if isinstance(part, str) else compact_json(part) for part in beside)
        messages = [message for call in recording.calls for message in call.new]
        for item in items_of([*messages, *recording.after]):
            yield item.counted
