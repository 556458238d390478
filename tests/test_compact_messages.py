"""`compact_messages`: one call, nothing to configure."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from policyctx import (
    FileReader,
    PolicyError,
    Session,
    UnrestorableFileError,
    compact_messages,
    compact_messages_async,
)
from policyctx.testing.faults import passing_time
from tests.conversations import Message, results, user
from tests.policies import policy

SYSTEM: Message = {"role": "system", "content": "rules"}


def said(text: str = "done") -> Message:
    return {"role": "assistant", "content": text}


def read(path: str) -> Message:
    call = {"type": "tool_use", "id": "a", "name": "read_file", "input": {"path": path}}
    return {"role": "assistant", "content": [call]}


def conversation() -> list[Message]:
    return [
        SYSTEM,
        user("Move the port to 8081. Never touch legacy/."),
        read("port.py"),
        results(("a", "PORT = 8080\n")),
        said("I move it next."),
    ]


def test_only_the_messages_are_required() -> None:
    messages = conversation()
    result = compact_messages(messages)
    assert result.messages is messages
    assert not result.compacted
    assert (result.stats.original_token_count, result.stats.compaction_ratio) == (0, 0.0)
    assert (result.summary, result.archive, result.warnings) == ("", None, ())


def test_from_the_threshold_on_a_summary_without_a_model_takes_the_place(tmp_path: Path) -> None:
    (tmp_path / "port.py").write_text("PORT = 8081\n", encoding="utf-8")
    result = compact_messages(
        conversation(), threshold=1, work_dir=tmp_path, output_dir=tmp_path / "out"
    )
    assert result.compacted
    assert [m["role"] for m in result.messages] == [
        "system", "user", "assistant", "user", "assistant",
    ]  # fmt: skip
    assert "Never touch legacy/." in result.summary
    assert result.messages[3]["content"] == "[Restored after compact] port.py:\nPORT = 8081\n"
    stats = result.stats
    assert (stats.compacted_message_count, stats.retained_message_count) == (4, 1)
    assert stats.restored_file_count == 1
    assert stats.restored_token_count > 0
    assert result.archive is not None
    assert result.archive.startswith(str(tmp_path / "out" / "archive"))


def test_the_threshold_may_be_a_share_of_the_window(tmp_path: Path) -> None:
    for window, compacted in ((10, True), (10_000, False)):
        result = compact_messages(
            conversation(), threshold="50%", context_window=window, output_dir=tmp_path
        )
        assert result.compacted == compacted


def test_a_callable_makes_the_summary(tmp_path: Path) -> None:
    result = compact_messages(
        conversation(), threshold=1, output_dir=tmp_path, summarizer=lambda _: "in short"
    )
    assert result.summary == "in short"


def test_files_stay_away_when_none_may_come_back(tmp_path: Path) -> None:
    (tmp_path / "port.py").write_text("PORT = 8081\n", encoding="utf-8")
    result = compact_messages(
        conversation(), threshold=1, work_dir=tmp_path, output_dir=tmp_path, max_restore_files=0
    )
    assert result.stats.restored_file_count == 0
    assert len(result.messages) == 3


def test_a_missing_file_is_reported_with_a_warning(tmp_path: Path) -> None:
    result = compact_messages(
        conversation(), threshold=1, work_dir=tmp_path, output_dir=tmp_path / "out"
    )
    assert result.compacted
    assert len(result.warnings) == 1
    assert "port.py" in result.warnings[0]


def test_too_little_new_text_is_given_as_the_reason(tmp_path: Path) -> None:
    long = [*conversation(), user("word " * 500)]
    first = compact_messages(
        long, threshold=1, output_dir=tmp_path, summarizer=lambda _: "word " * 400
    )
    again = compact_messages([*first.messages, user("go on")], threshold=1, output_dir=tmp_path)
    assert not again.compacted
    [warning] = again.warnings
    assert warning.startswith("not compacted: ")
    assert "tokens came since the last compaction" in warning


@pytest.mark.parametrize("messages", [[], [SYSTEM]])
def test_nothing_to_summarise_is_given_as_the_reason(
    messages: list[Message], tmp_path: Path
) -> None:
    result = compact_messages(messages, threshold=0, output_dir=tmp_path)
    assert result.messages is messages
    why = "no message follows the system messages" if messages else "the list is empty"
    assert result.warnings == (f"not compacted: there is nothing that it may replace: {why}",)


def test_a_session_explains_the_reason_without_a_warning_in_each_turn(tmp_path: Path) -> None:
    made = policy(
        "store: {sync: never}\n"
        "steps: [{name: summarise, do: compact, when: {tokens: {at_least: 1}}}]"
    )
    used = Session(made, root=tmp_path, summarizer=lambda _: "word " * 400)
    first = used.apply([*conversation(), user("word " * 500)])
    result = used.apply([*first.messages, user("go on")])
    assert (result.compacted, result.warnings) == (False, ())
    verdicts = result.plan.verdicts(0)
    assert "came since the last compaction" in str(verdicts[-1].reason)


class BrokenReader:
    """Raises `error` from one of its methods, or returns `content`."""

    def __init__(self, method: str, error: BaseException | None, content: Any = "") -> None:
        self.method, self.error, self.content = method, error, content

    def resolve(self, path: str, work_dir: str) -> str:
        if self.method == "resolve" and self.error is not None:
            raise self.error
        return f"{work_dir}/{path}"

    def read(self, resolved: str, most_bytes: int) -> str:
        if self.error is not None and resolved and most_bytes:
            raise self.error
        content: str = self.content
        return content


@pytest.mark.parametrize("method", ["resolve", "read"])
@pytest.mark.parametrize(
    ("error", "why"),
    [
        (OSError(5, "Input/output error"), "Input/output error"),
        (PermissionError("no entry"), "no entry"),
        (OSError(), "OSError"),
        (UnrestorableFileError("port.py", "it is locked"), "it is locked"),
        (KeyError("a bug"), "the reader raised KeyError: 'a bug'"),
    ],
)
def test_a_file_that_a_reader_cannot_read_is_skipped_with_a_warning(
    method: str, error: Exception, why: str, tmp_path: Path
) -> None:
    reader: FileReader = BrokenReader(method, error)
    result = compact_messages(conversation(), threshold=1, output_dir=tmp_path, file_reader=reader)
    assert result.compacted
    assert result.stats.restored_file_count == 0
    [warning] = result.warnings
    assert warning == f"'port.py' is not restored: {why}"


@pytest.mark.parametrize("content", [None, b"bytes", 7])
def test_a_reader_that_returns_no_text_is_skipped_with_a_warning(
    content: object, tmp_path: Path
) -> None:
    result = compact_messages(
        conversation(),
        threshold=1,
        output_dir=tmp_path,
        file_reader=BrokenReader("read", None, content),
    )
    assert result.compacted
    assert f"the reader returned {type(content).__name__}, not a text" in result.warnings[0]


def test_a_reader_that_returns_a_path_object_is_told_that_it_must_be_a_str(tmp_path: Path) -> None:
    class Paths(BrokenReader):
        def resolve(self, path: str, work_dir: str) -> Any:
            return Path(work_dir, path)

    reader = Paths("read", None)
    result = compact_messages(conversation(), threshold=1, output_dir=tmp_path, file_reader=reader)
    returned = f"the reader returned {type(tmp_path).__name__}, not a path as a str"
    assert result.warnings == (f"'port.py' is not restored: {returned}",)


def test_a_text_that_is_too_large_to_be_counted_has_no_count_in_its_warning(tmp_path: Path) -> None:
    reader = BrokenReader("read", None, "x " * 1_000_000)
    result = compact_messages(conversation(), threshold=1, output_dir=tmp_path, file_reader=reader)
    assert result.warnings == ("'port.py' is not restored: it has more than 5000 tokens",)


def test_a_reader_may_return_text_that_utf_8_cannot_encode(tmp_path: Path) -> None:
    reader = BrokenReader("read", None, "a\ud800b")
    result = compact_messages(conversation(), threshold=1, output_dir=tmp_path, file_reader=reader)
    assert result.compacted
    assert "cannot be encoded as UTF-8" in result.warnings[0]


def test_an_interrupt_in_a_reader_is_not_swallowed(tmp_path: Path) -> None:
    reader = BrokenReader("read", KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        compact_messages(conversation(), threshold=1, output_dir=tmp_path, file_reader=reader)


def test_a_failed_summary_leaves_the_list_as_it_was(tmp_path: Path) -> None:
    def fails(_: object) -> str:
        raise ConnectionError("unplugged")

    messages, pauses = conversation(), list[float]()
    with passing_time(pauses.append):
        result = compact_messages(messages, threshold=1, output_dir=tmp_path, summarizer=fails)
    assert len(pauses) == 2
    assert result.messages is messages
    assert not result.compacted
    assert "unplugged" in result.warnings[0]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("options", [{"threshold": "many"}, {"max_restore_files": -1}])
def test_an_impossible_value_is_an_error(options: dict[str, object]) -> None:
    with pytest.raises(PolicyError):
        compact_messages(conversation(), **options)  # type: ignore[arg-type]


def test_async_is_the_same(tmp_path: Path) -> None:
    async def answer(_: object) -> str:
        await asyncio.sleep(0)
        return "in short"

    found = asyncio.run(
        compact_messages_async(conversation(), threshold=1, output_dir=tmp_path, summarizer=answer)
    )
    assert found.summary == "in short"


def test_calls_are_independent(tmp_path: Path) -> None:
    messages = conversation()
    for _ in range(2):
        result = compact_messages(messages, threshold=1, output_dir=tmp_path)
        assert result.compacted
    assert json.dumps(messages) == json.dumps(conversation())
