"""A compaction, except the model's part of it, against the least that it could be.

The extractive summary has to look at every message, so it is held against one `json.dumps` of them,
and against finding the words in that text, which is the least that reading them could be.
"""

from __future__ import annotations

import atexit
import json
import re
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

from benchmarks.inputs import sentences, tool_outputs
from benchmarks.planning import wait
from benchmarks.runner import Ratio
from policyctx import compact_messages
from policyctx.compaction.assembly import History
from policyctx.compaction.extractive import extractive_summary
from policyctx.compaction.file_access import FileAccess
from policyctx.compaction.restoration import WorkingFiles, restore
from policyctx.definitions.items import Message
from policyctx.policy.models.compaction import CompactionWording, Restore, Summary
from policyctx.tokens.counter import counter_for

# With results of this many characters the history has about 200,000 tokens.
TURNS, CALLS, CHARS = 40, 4, 3_200
TOOLS = ("Read", "Bash", "Grep", "Edit")
# `json.dumps` of them takes over 2 ms where the summary may take 500 ms: half of that is the goal.
MOST = 120
# Of prose every word is to be read. Turns of so many sentences asked and answered; with so many
# turns it has about 200,000 tokens, which may take 500 ms.
ASKED, ANSWERED, PROSE_TURNS, CHINESE_TURNS = 8, 25, 450, 400
# `json.dumps` of it takes over 2 ms, and over 1.5 ms where it is Chinese.
MOST_OF_PROSE, MOST_OF_CHINESE = 240, 320
# The time may grow with at most this power of the size of the history.
GROWTH, EXPONENT = 8, 1.1
# The sizes of the smaller histories: rows, messages, messages and turns.
ROWS, REQUESTS, UPDATES, TALKS = 5_000, 300, 300, 150
_WORD = re.compile(r"\w+")


def ratios() -> list[Ratio]:
    """The figures of this module; the history is 361 messages, about 700,000 characters."""
    messages = history_messages()
    first, text = History(messages), json.dumps(messages)
    summary = extractive_summary(first, Summary())
    told = CompactionWording().summary.format(summary=summary)
    later = History([{"role": "user", "content": told}, *messages], {0: summary})
    return [
        Ratio(
            "extractive summary / json.dumps",
            ours=lambda: extractive_summary(first, Summary()),
            baseline=lambda: json.dumps(messages),
            bound=MOST,
        ),
        *(
            Ratio(
                f"extractive summary of prose in {language} / json.dumps",
                ours=partial(extractive_summary, History(prose), Summary()),
                baseline=partial(json.dumps, prose),
                bound=bound,
            )
            for language, prose, bound in (
                ("English", prose_messages(PROSE_TURNS), MOST_OF_PROSE),
                ("Chinese", prose_messages(CHINESE_TURNS, chinese=True), MOST_OF_CHINESE),
            )
        ),
        Ratio(
            "extractive summary / the words of its text",
            ours=lambda: extractive_summary(first, Summary()),
            baseline=lambda: _WORD.findall(text),
        ),
        Ratio(
            "extractive summary of a summary and as much again / json.dumps",
            ours=lambda: extractive_summary(later, Summary()),
            baseline=lambda: json.dumps(messages),
        ),
        *growth(),
        *whole_compactions(messages),
    ]


def growth() -> Iterator[Ratio]:
    """The time for a history of several times the size against that for the history."""
    for name, history_of, size in (
        ("one JSON result", json_result, ROWS),
        ("user messages", user_messages, REQUESTS),
        ("updates", updates, UPDATES),
        ("messages of prose", prose_messages, TALKS),
    ):
        smaller, larger = (History(history_of(size * times)) for times in (1, GROWTH))
        yield Ratio(
            f"extractive summary of {GROWTH} times the {name} / of them",
            ours=partial(extractive_summary, larger, Summary()),
            baseline=partial(extractive_summary, smaller, Summary()),
            bound=GROWTH**EXPONENT,
        )


def whole_compactions(messages: list[Message]) -> Iterator[Ratio]:
    """A compaction except the model's part of it, and files that come back, against their limits.

    The texts are counted before, as in a session that has come so far.
    """
    folder = mkdtemp()
    atexit.register(rmtree, folder)
    files = {f"file_{i}.py": text for i, text in enumerate(tool_outputs([12_000] * 5, seed=9))}
    for name, text in files.items():
        Path(folder, name).write_text(text, encoding="utf-8")
    settings = Restore(work_dir=folder)
    accessed = [FileAccess(path) for path in files]
    counter = counter_for("o200k_base")
    yield Ratio(
        "compact 200,000 tokens except the model / 300 ms",
        ours=lambda: compact_messages(
            messages, threshold=1, output_dir=Path(folder, "out"), summarizer=lambda _: "short"
        ),
        baseline=partial(wait, 0.3),
        bound=1,
    )
    yield Ratio(
        "restore five files / 50 ms",
        ours=lambda: restore(accessed, settings, WorkingFiles(), counter),
        baseline=partial(wait, 0.05),
        bound=1,
    )


def history_messages() -> list[Message]:
    """Return a session of about 200,000 tokens: turns of a request, four calls and an answer."""
    results = iter(tool_outputs([CHARS] * (TURNS * CALLS), seed=5))
    messages: list[Message] = []
    for turn in range(TURNS):
        asked = f"Keep part {turn} below {turn * 3 + 20} MB, and never touch lib/v{turn}."
        messages.append({"role": "user", "content": asked})
        for i, tool in enumerate(TOOLS):
            call_id, path = f"toolu_{turn:03}{i}", f"src/part_{turn}.py"
            call = {"type": "tool_use", "id": call_id, "name": tool, "input": {"path": path}}
            said = f"The limit of `part_{turn}` is read twice. Next I look at it with {tool}."
            messages.append(
                {"role": "assistant", "content": [{"type": "text", "text": said}, call]}
            )
            result = {"type": "tool_result", "tool_use_id": call_id, "content": next(results)}
            messages.append({"role": "user", "content": [result]})
    messages.append({"role": "assistant", "content": "All parts are within their limits now."})
    return messages


def json_result(rows: int) -> list[Message]:
    """Return a question, a call whose result is a JSON list with `rows` rows, and an answer."""
    listed = [
        {"id": i, "name": f"row {i}", "total": i * 7, "note": "as before"} for i in range(rows)
    ]
    call = {"type": "tool_use", "id": "c", "name": "query", "input": {"table": "totals"}}
    result = {"type": "tool_result", "tool_use_id": "c", "content": json.dumps(listed)}
    return [
        {"role": "user", "content": "Find the total of row 17."},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": "The total of row 17 is 119."},
    ]


def user_messages(count: int) -> list[Message]:
    """Return messages of the user, each with an order about another thing."""
    written = sentences(count, seed=11)
    return [
        {"role": "user", "content": f"{text} Never rename table t_{i}."}
        for i, text in enumerate(written)
    ]


def updates(count: int) -> list[Message]:
    """Return corrections of the user, each of one of many limits."""
    parts = ("reads", "writes", "uploads", "exports", "mails", "retries", "threads", "pages")
    places = ("Ghent", "Porto", "Turku", "Lagos", "Osaka", "Quito", "Perth", "Izmir", "Lima")
    things = [f"{part} in {place}" for place in places for part in parts]
    told = (f"Actually set the limit of {things[i % len(things)]} to {i} MB." for i in range(count))
    return [{"role": "user", "content": text} for text in told]


def prose_messages(turns: int, *, chinese: bool = False) -> list[Message]:
    """Return a talk without calls: turns of a request and an answer of some sentences each."""
    written = iter(sentences(turns * (ASKED + ANSWERED), seed=7, chinese=chinese))
    between = "" if chinese else " "
    return [
        {"role": role, "content": between.join(islice(written, count))}
        for _ in range(turns)
        for role, count in (("user", ASKED), ("assistant", ANSWERED))
    ]
