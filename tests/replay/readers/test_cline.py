"""Tasks of Cline, Roo Code and Kilo Code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from policyctx.messages.reading import items_of
from policyctx.replay.reading import recordings_in
from policyctx.replay.recording import Recording
from policyctx.tokens.usage import Usage
from tests.cli.running import policyctx
from tests.replay.readers.reading import lengths, roles

Record = dict[str, Any]
DETAILS = (
    "<environment_details>\n# Current Working Directory (/srv/app) Files\na.py\n"
    "<model>claude-y</model>\n</environment_details>"
)


def text(words: str) -> Record:
    return {"type": "text", "text": words}


def user(*blocks: Record | str, **more: Any) -> Record:
    said = [text(one) if isinstance(one, str) else one for one in blocks]
    return {"role": "user", "content": [*said, text(DETAILS)], **more}


def call(call_id: str, name: str = "read_file") -> Record:
    return {"type": "tool_use", "id": call_id, "name": name, "input": {"path": "a.py"}}


def reply(*blocks: Record | str, **more: Any) -> Record:
    said = [text(one) if isinstance(one, str) else one for one in blocks]
    return {"role": "assistant", "content": said, **more}


def request(second: int, *numbers: int, **more: Any) -> Record:
    names = ("tokensIn", "tokensOut", "cacheWrites", "cacheReads")
    said = {"request": "…", **dict(zip(names, numbers, strict=False))}
    at = 1_767_225_600_000 + 1000 * second
    return {"ts": at, "type": "say", "say": "api_req_started", "text": json.dumps(said), **more}


def read(tmp_path: Path, history: list[Record], screen: list[Record] | None = None) -> Recording:
    path = tmp_path / "api_conversation_history.json"
    path.write_text(json.dumps(history))
    if screen is not None:
        (tmp_path / "ui_messages.json").write_text(json.dumps(screen))
    (recording,) = recordings_in(path)
    return recording


def shown(recording: Recording) -> list[tuple[str, str | None, str]]:
    items = items_of(recording.messages())
    return [(one.kind, one.tool, one.text) for one in items if DETAILS not in one.text]


TASK = user("<task>\nRead both.\n</task>")


def test_results_as_text_are_the_results_of_the_calls(tmp_path: Path) -> None:
    recording = read(
        tmp_path,
        [
            TASK,
            reply("So.", call("1"), call("2", "list_files"), call("3")),
            user(
                "[list_files for 'src'] Result:\na.py",
                "[read_file for 'a.py'] Result:",
                "print(1)",
                "Tool [read_file] was not executed because a tool has already been used.",
            ),
            reply("Done."),
        ],
    )
    assert (recording.format, recording.project) == ("cline", "/srv/app")
    assert roles(recording) == ["user", "assistant", "user", "assistant"]
    assert lengths(recording) == [1, 3]
    assert [call.language_model for call in recording.calls] == ["claude-y"] * 2
    results = [one for one in shown(recording) if one[0] == "tool_result"]
    assert sorted(results) == [
        ("tool_result", "list_files", "a.py"),
        ("tool_result", "read_file", "Tool [read_file] was not executed because a tool has already"
         " been used."),
        ("tool_result", "read_file", "print(1)"),
    ]  # fmt: skip
    pairs = {block["tool_use_id"]: block["content"] for block in recording.messages()[2]["content"]
             if block["type"] == "tool_result"}  # fmt: skip
    assert (pairs["1"], pairs["2"]) == ("print(1)", "a.py")
    assert [one.author for one in items_of(recording.messages()) if one.text == DETAILS] == [
        "program",
        "program",
    ]


def test_results_as_blocks_stay_as_they_are(tmp_path: Path) -> None:
    result = {"type": "tool_result", "tool_use_id": "1", "content": "print(1)"}
    task = {**TASK, "ts": request(0)["ts"]}
    recording = read(tmp_path, [task, reply(call("1")), user(result), reply("Done.")])
    assert ("tool_result", "read_file", "print(1)") in shown(recording)


def test_calls_as_text_become_calls_if_they_have_a_result(tmp_path: Path) -> None:
    said = "So.\n<read_file>\n<path>a.py</path>\n</read_file>"
    nested = "<read_file><args><file><path>b.py</path></file></args></read_file> <b>not a call</b>"
    history = [
        TASK, reply(said), user("[read_file for 'a.py'] Result:\nprint(1)"),
        reply(nested), user("[read_file for 'b.py'] Result:", "print(2)"), reply("<b>Done.</b>"),
    ]  # fmt: skip
    assert shown(read(tmp_path, history))[1:] == [
        ("assistant_message", None, "So."),
        ("tool_call", "read_file", '{"path":"a.py"}'),
        ("tool_result", "read_file", "print(1)"),
        ("assistant_message", None, "<b>not a call</b>"),
        ("tool_call", "read_file", '{"path":"b.py"}'),
        ("tool_result", "read_file", "print(2)"),
        ("assistant_message", None, "<b>Done.</b>"),
    ]


def test_a_field_ends_at_its_own_tag_and_one_without_an_end_is_none(tmp_path: Path) -> None:
    fields = "</b><open><a>1 <b>2</b> <a>3</a><open></a><b>\n4</b>" + "<a>" * 20_000
    said = f"So.\n<read_file>{fields}</read_file>"
    history = [TASK, reply(said), user("[read_file for 'a.py'] Result:\nx")]
    (call_,) = [one for one in shown(read(tmp_path, history)) if one[0] == "tool_call"]
    assert json.loads(call_[2]) == {"a": "1 <b>2</b> <a>3", "b": "4"}


def test_a_failed_result_says_so_and_images_belong_to_it(tmp_path: Path) -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "x"}}
    error = "The tool execution failed with the following error:\n<error>none</error>"
    answers = user("[browser_action for 'launch'] Result:", "seen", image)
    failed = user(f"[read_file for 'a.py'] Result:\n{error}")
    history = [TASK, reply(call("1", "browser_action")), answers, reply(call("2")), failed]
    first, second = (read(tmp_path, history).messages()[n]["content"][0] for n in (2, 4))
    assert [block["type"] for block in first["content"]] == ["text", "image"]
    assert (second["content"], second["is_error"]) == (error, True)


TURNS = [
    TASK,
    reply(call("1")), user("[read_file for 'a.py'] Result:\n1"),
    reply(call("2")), user("[read_file for 'b.py'] Result:\n2"),
    reply("Done."),
]  # fmt: skip


def test_the_screen_has_the_bills(tmp_path: Path) -> None:
    model = {"modelId": "claude-z", "providerId": "x"}
    screen = [
        request(1, 10, 5, 900, 0, modelInfo=model),
        {"type": "say", "say": "text", "text": "So."},
    ]
    screen += [request(2, 12, 6, 50, 900), request(3, 7, 1, 0, 950)]
    recording = read(tmp_path, TURNS, screen)
    assert [one.usage for one in recording.calls] == [
        Usage(10, 0, 900, 5), Usage(12, 900, 50, 6), Usage(7, 950, 0, 1)
    ]  # fmt: skip
    assert recording.calls[0].language_model == "claude-z"
    assert [one.at for one in recording.calls] == [1767225601.0, 1767225602.0, 1767225603.0]


def test_an_input_that_is_never_less_than_what_was_cached_includes_it(tmp_path: Path) -> None:
    screen = [request(1, 910, 5, 900, 0), request(2, 962, 6, 50, 900), request(3, 957, 1, 0, 950)]
    assert [one.usage for one in read(tmp_path, TURNS, screen).calls] == [
        Usage(10, 0, 900, 5), Usage(12, 900, 50, 6), Usage(7, 950, 0, 1)
    ]  # fmt: skip


@pytest.mark.parametrize("timed", [True, False])
def test_requests_without_a_reply_bill_no_other(tmp_path: Path, timed: bool) -> None:
    failed = [request(2), *([request(3, 3, 0)] if timed else [])]
    screen = [request(1, 10, 5), *failed, request(4, 12, 6), request(6, 7, 1)]
    seconds = (0, 1, 1, 5, 5, 7)
    history = [
        {**one, "ts": request(at)["ts"]} if timed else one
        for one, at in zip(TURNS, seconds, strict=True)
    ]
    recording = read(tmp_path, history, screen)
    assert [one.usage and one.usage.input for one in recording.calls] == [10, 12, 7]


def test_a_history_without_its_screen_has_the_bills_of_its_messages(tmp_path: Path) -> None:
    tokens = {"prompt": 10, "completion": 5, "cached": 900}
    said = reply("Done.", metrics={"tokens": tokens}, modelInfo={"modelId": "claude-x"})
    (one,) = read(tmp_path, [TASK, said]).calls
    assert (one.usage, one.language_model) == (Usage(10, 900, 0, 5), "claude-x")


def test_a_range_that_was_deleted_is_left_out_from_then_on(tmp_path: Path) -> None:
    deleted = {"conversationHistoryDeletedRange": [1, 2]}
    screen = [request(1, 1), request(2, 2), request(3, 3), {"ts": 4, "type": "say", **deleted}]
    recording = read(tmp_path, TURNS, screen)
    assert lengths(recording) == [1, 3, 3]
    assert [one.why_anew for one in recording.calls] == [None, None, "compaction"]
    assert ("tool_result", "read_file", "1") not in shown(recording)
    assert shown(recording)[-1] == ("assistant_message", None, "Done.")


def test_a_summary_takes_the_place_of_what_was_before(tmp_path: Path) -> None:
    summary = {"role": "user", "content": [text("All was read.")], "isSummary": True}
    recording = read(tmp_path, [*TURNS, summary, user("On."), reply("Done.")])
    assert lengths(recording) == [1, 3, 5, 2]
    assert recording.calls[3].why_anew == "compaction"
    assert items_of(recording.messages())[0].author == "summary"


def test_a_summary_of_the_assistant_is_no_call_and_stands_behind_the_task(tmp_path: Path) -> None:
    summary = reply("All was read.", isSummary=True)
    recording = read(tmp_path, [*TURNS, summary, user("On."), reply("Done.")])
    assert lengths(recording) == [1, 3, 5, 3]
    assert [one[2] for one in shown(recording)][:2] == [TASK["content"][0]["text"], "All was read."]


def test_what_a_truncation_hid_is_left_out_from_its_marker_on(tmp_path: Path) -> None:
    hidden = [{**one, "truncationParent": "t"} for one in TURNS[1:3]]
    marker = user("[Sliding window]", isTruncationMarker=True, truncationId="t")
    history = [TURNS[0], *hidden, marker, *TURNS[3:]]
    recording = read(tmp_path, history)
    assert lengths(recording) == [1, 2, 4]
    assert recording.calls[1].why_anew == "compaction"
    assert ("tool_result", "read_file", "1") not in shown(recording)


def test_what_is_not_known_is_counted(tmp_path: Path) -> None:
    history = [*TURNS, user({"type": "hologram", "data": "x"}), {"role": "user", "content": []}]
    recording = read(tmp_path, history)
    assert recording.not_understood == {"block of the type hologram": 1}
    assert recording.not_prompt == {"empty message": 1}


def test_the_screen_alone_says_where_the_messages_are(tmp_path: Path) -> None:
    path = tmp_path / "ui_messages.json"
    path.write_text(json.dumps([request(1, 10)]))
    with pytest.raises(Exception, match=r"api_conversation_history\.json beside it has"):
        list(recordings_in(path))


@pytest.mark.slow
def test_a_command_that_reads_one_list_looks_at_the_screen_too(tmp_path: Path) -> None:
    deleted = {"conversationHistoryDeletedRange": [1, 2]}
    screen = [request(1, 1), request(2, 2), request(3, 3), {"ts": 4, "type": "say", **deleted}]
    read(tmp_path, TURNS, screen)
    history = tmp_path / "api_conversation_history.json"
    run = policyctx("apply", "tool-direct-offload", history, cwd=tmp_path)
    assert len(json.loads(run.stdout)["messages"]) == 4
