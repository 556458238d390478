"""The recorded sessions beside the checkout, against what their manifest counted in them."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from policyctx.definitions.items import Message
from policyctx.messages.reading import items_of
from policyctx.messages.validity import new_problems
from policyctx.replay.reading import recordings_in
from policyctx.replay.recording import Recording
from policyctx.session import Session
from tests.recordings import TRACES, each_recording

FOLDERS = (
    "claude-code", "codex", "gemini", "inspect", "mini-swe", "openai-chat", "openhands", "pi",
    "swe-agent", "tau-bench", "tau2",
)  # fmt: skip
# Their manifest counts messages as the API would; the others' are spread over several records.
BY_MESSAGE = ("inspect", "mini-swe", "openai-chat", "swe-agent", "tau-bench", "tau2")
# In the others the manifest took a sum that is of no call, or input with what was cached in it.
BILLED = ("claude-code", "codex", "gemini", "mini-swe", "openhands", "pi", "tau2")


def counted(path: Path) -> dict[str, str]:
    """What the manifest says of a file."""
    with (TRACES / "MANIFEST.tsv").open(encoding="utf-8") as file:
        rows = {row["file"]: row for row in csv.DictReader(file, delimiter="\t")}
    return rows[str(path.relative_to(TRACES))]


def every_message(recording: Recording) -> Iterator[Message]:
    """Each message once, those that a compaction or rewind took out of the context as well."""
    seen: set[int] = set()
    for message in [m for call in recording.calls for m in call.new] + [*recording.after]:
        if id(message) not in seen:
            seen.add(id(message))
            yield message


@each_recording(*BILLED)
def test_billed_usage_is_read(path: Path) -> None:
    found: Counter[str] = Counter()
    for recording in recordings_in(path):
        for usage in (call.usage for call in recording.calls if call.usage is not None):
            found["billed_input_uncached"] += usage.input
            found["billed_cache_read"] += usage.cache_read
            found["billed_cache_write"] += usage.cache_write
            found["billed_output"] += usage.output
    row = counted(path)
    assert found == {name: int(row[name]) for name in row if name in found}


@each_recording(*(folder for folder in FOLDERS if folder != "openhands"))
def test_every_result_call_and_image_is_found(path: Path) -> None:
    kinds: Counter[str] = Counter()
    unsent = 0
    for recording in recordings_in(path):
        kinds.update(item.kind for item in items_of(list(every_message(recording))))
        unsent += recording.not_prompt.get("message that no call was made with", 0)
    row = counted(path)
    columns = {"tool_result": "tool_results", "tool_call": "tool_calls", "image": "images"}
    missing = {kind: int(row[column]) - kinds[kind] for kind, column in columns.items()}
    if row["format"] == "codex-rollout":
        # What the provider searched by itself has no result, and is carried along unknown.
        missing["tool_call"] -= min(kinds["unknown"], missing["tool_call"])
    assert all(number >= 0 for number in missing.values())
    assert any(missing.values()) <= (unsent > 0)


@each_recording("openhands")
def test_each_observation_of_a_tool_is_a_result(path: Path) -> None:
    # The manifest counts events, which are more than the responses that they came from.
    text = path.read_text(encoding="utf-8")
    lines = [text] if text.count("\n") > 100 else text.splitlines()
    events = [event for line in lines for event in json.loads(line)["history"]]
    observed = [e for e in events if "observation" in e and "tool_call_metadata" in e]
    found = list(recordings_in(path))
    kinds = Counter(i.kind for one in found for i in items_of(list(every_message(one))))
    assert kinds["tool_result"] == len(observed)
    assert sum(len(one.calls) for one in found) == int(counted(path)["billed_calls"])


@each_recording(*BY_MESSAGE)
def test_every_message_and_conversation_is_found(path: Path) -> None:
    found = list(recordings_in(path))
    row = counted(path)
    assert sum(len(recording.messages()) for recording in found) == int(row["messages"])
    assert len(found) == int(row["conversations"])
    assert len({recording.name for recording in found}) == len(found)


@each_recording("claude-code", "codex", "pi")
def test_every_line_is_a_record(path: Path) -> None:
    lines = [line for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
    assert sum(recording.records for recording in recordings_in(path)) == len(lines)


@each_recording(*FOLDERS)
def test_every_record_is_understood(path: Path) -> None:
    found: Counter[str] = Counter()
    for recording in recordings_in(path):
        found.update(recording.not_understood)
    assert found == Counter({"line that is not JSON": int(counted(path)["bad_lines"])}) - Counter()


@each_recording(*FOLDERS)
def test_a_session_takes_the_context_of_every_call(path: Path, tmp_path: Path) -> None:
    for recording in recordings_in(path):
        session = Session("small-context", root=tmp_path / recording.name.replace("/", "_"))
        for call, context in zip(recording.calls, recording.contexts(), strict=True):
            result = session.apply(context, system=call.system, tools=call.tools)
            # A compaction puts a summary and its reply in the place of what it replaces.
            assert 0 < len(result.messages) <= len(context) + 2
        messages = recording.messages()
        assert new_problems(messages, session.apply(messages).messages) == []
