"""Lists that another call or session has compacted: the wording alone tells what was left."""

from __future__ import annotations

from pathlib import Path

from policyctx import CompactResult, compact_messages
from policyctx.compaction.assembly import SummaryRequest
from policyctx.planning.placeholders import CompactionForms
from policyctx.policy.models.compaction import CompactionWording
from tests.conversations import Message, call, results, session_of, user


class Noted:
    """Summarises, and keeps what it was asked."""

    def __init__(self) -> None:
        self.requests: list[SummaryRequest] = []

    def __call__(self, request: SummaryRequest) -> str:
        self.requests.append(request)
        return "what was done"


def compacted(messages: list[Message], noted: Noted, folder: Path) -> CompactResult:
    return compact_messages(
        messages, summarizer=noted, threshold=0, work_dir=folder, output_dir=folder / "out"
    )


def test_a_call_on_an_already_compacted_list_makes_no_summary(tmp_path: Path) -> None:
    noted = Noted()
    first = compacted(session_of("one"), noted, tmp_path)
    again = compacted(list(first.messages), noted, tmp_path)
    assert len(noted.requests) == 1
    assert list(again.messages) == list(first.messages)


def test_an_earlier_summary_is_recognised_by_the_next_call(tmp_path: Path) -> None:
    noted = Noted()
    first = compacted(session_of("one"), noted, tmp_path)
    compacted([*first.messages, user("next, go on with the other part")], noted, tmp_path)
    history = noted.requests[1].history
    assert history.earlier == {0: "what was done"}
    assert history.written == {1}


def test_the_same_words_without_a_summary_are_the_assistants_own(tmp_path: Path) -> None:
    noted = Noted()
    reply = CompactionWording().summary_reply
    compacted([user("hello"), {"role": "assistant", "content": reply}], noted, tmp_path)
    assert noted.requests[0].history.written == frozenset()


def test_a_file_that_an_earlier_call_brought_back_counts_as_read_there(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / f"{name}.txt").write_text(f"now {name}")
    noted = Noted()

    def read(name: str) -> list[Message]:
        return [call(name, "read_file", {"path": f"{name}.txt"}), results((name, "then"))]

    first = compacted([user("read"), *read("a"), *read("b")], noted, tmp_path)
    second = compacted([*first.messages, user("read"), *read("c")], noted, tmp_path)
    files = [m["content"] for m in second.messages if "Restored after" in m["content"]]
    assert files == [
        "[Restored after compact] c.txt:\nnow c",
        "[Restored after compact] a.txt:\nnow a",
        "[Restored after compact] b.txt:\nnow b",
    ]


def test_a_path_ends_where_the_wording_goes_on_for_the_first_time() -> None:
    left = CompactionForms([CompactionWording()]).left("[Restored after compact] a b:\nx:\ny\n")
    assert left == ("restored_file", "a b")


def test_a_wording_that_begins_with_a_field_shows_nothing() -> None:
    wording = CompactionWording.model_validate({"summary": "{summary}", "restored": "{path}"})
    assert CompactionForms([wording]).left("anything") is None


def test_a_summary_beside_the_path_of_its_archive_is_found() -> None:
    text = "Summary of {archive_path}:\n{summary}\n(end)"
    wording = CompactionWording.model_validate({"summary": text})
    left = CompactionForms([wording]).left("Summary of /x/y:\nfirst\nsecond\n(end)")
    assert left == ("compaction_summary", "first\nsecond")
