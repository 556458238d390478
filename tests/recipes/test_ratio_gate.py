"""The document "ratio gate", row by row, and both documents as a whole."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyctx import OffloadResults, PolicyError, Session, offload_tool_results
from tests.conversations import Message, calls, results
from tests.recipes.offloaded import blocks, words
from tests.writers import Memory


@pytest.mark.parametrize(("others", "count"), [(400, 1), (399, 1), (401, 0), (0, 1), (100_000, 0)])
def test_from_a_fifth_of_all_characters_on_results_are_offloaded(
    tmp_path: Path, others: int, count: int
) -> None:
    messages = [words(others), results(("a", "x" * 100))]
    result = offload_tool_results(messages, output_dir=tmp_path)
    assert result.offloaded_count == count


def test_a_ratio_just_below_the_threshold_is_below_it(tmp_path: Path) -> None:
    messages = [words(4_000_001), results(("a", "x" * 1_000_000))]
    result = offload_tool_results(messages, output_dir=tmp_path)
    assert result.messages is messages


def test_below_the_ratio_nothing_is_touched(tmp_path: Path) -> None:
    messages = [words(401), results(("a", "x" * 100))]
    result = offload_tool_results(messages, output_dir=tmp_path / "out")
    assert result == OffloadResults(messages, 0, 0, ())
    assert result.messages is messages
    assert not (tmp_path / "out").exists()


def test_short_results_count_in_the_total_and_not_as_removable(tmp_path: Path) -> None:
    messages = [results(("a", "x" * 100), ("b", "y" * 99), ("c", "z" * 99), ("d", "z" * 99))]
    assert offload_tool_results(messages, output_dir=tmp_path).offloaded_count == 1
    messages = [results(("a", "x" * 100), *((str(i), "y" * 99) for i in range(5)))]
    assert offload_tool_results(messages, output_dir=tmp_path).offloaded_count == 0


def test_every_block_counts_by_its_content(tmp_path: Path) -> None:
    call = calls(("a", "Bash"))
    call["content"][0]["input"] = {"command": "c" * 186}  # 200 characters of JSON
    messages = [words(100), call, results(("a", blocks(100)))]
    assert offload_tool_results(messages, output_dir=tmp_path).offloaded_count == 1
    messages = [words(201), call, results(("a", blocks(100)))]
    assert offload_tool_results(messages, output_dir=tmp_path).offloaded_count == 0


@pytest.mark.parametrize(
    ("threshold", "others", "count"),
    [
        ("0", 1_000_000, 1),
        ("0.5", 100, 1),
        ("0.5", 101, 0),
        ("50%", 100, 1),
        (" 0.5", 100, 1),
        ("0.5 ", 101, 0),
        ("\t.5\n", 100, 1),
        (" 50% ", 100, 1),
        (" ", 400, 1),
        (" ", 401, 0),
        ("1", 0, 1),
        ("1", 1, 0),
        ("", 400, 1),
        ("", 401, 0),
    ],
)
def test_the_environment_sets_the_threshold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threshold: str, others: int, count: int
) -> None:
    monkeypatch.setenv("OFFLOAD_RATIO_THRESHOLD", threshold)
    messages = [words(others), results(("a", "x" * 100))]
    assert offload_tool_results(messages, output_dir=tmp_path).offloaded_count == count


def test_the_environment_is_read_at_every_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = [words(100), results(("a", "x" * 100))]
    for threshold, count in (("0.6", 0), ("0.5", 1), ("0.6", 0)):
        monkeypatch.setenv("OFFLOAD_RATIO_THRESHOLD", threshold)
        assert offload_tool_results(messages, output_dir=tmp_path).offloaded_count == count


@pytest.mark.parametrize("threshold", ["0", "0.2"])
@pytest.mark.parametrize(
    "messages", [[], [words(0)], [words(500)], [results(("a", "x" * 99), ("b", "y" * 99))]]
)
def test_with_nothing_to_offload_the_same_list_comes_back_at_any_threshold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threshold: str, messages: list[Message]
) -> None:
    monkeypatch.setenv("OFFLOAD_RATIO_THRESHOLD", threshold)
    result = offload_tool_results(messages, output_dir=tmp_path / "out")
    assert result.messages is messages
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("messages", "note"),
    [
        ([], "nothing_measured"),
        ([words(500)], "nothing_selected"),
        ([words(0)], "nothing_measured"),
    ],
)
def test_an_empty_list_is_distinguished_from_one_without_long_results(
    tmp_path: Path, messages: list[Message], note: str
) -> None:
    [verdict] = Session("context-offload", root=tmp_path).plan(messages).gates
    assert (verdict.opens, verdict.note) == (False, note)


@pytest.mark.parametrize("threshold", ["abc", "1.5", "-0.1", "0.5x"])
def test_an_invalid_ratio_threshold_is_an_error_at_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threshold: str
) -> None:
    monkeypatch.setenv("OFFLOAD_RATIO_THRESHOLD", threshold)
    with pytest.raises(PolicyError, match=r"from 0 to 1 .* got the value of \$\{OFFLOAD") as raised:
        offload_tool_results([], output_dir=tmp_path)
    [diagnostic] = raised.value.diagnostics
    assert diagnostic.place.file == "context-offload.yaml"
    assert "OFFLOAD_RATIO_THRESHOLD" in diagnostic.place.source_line


# Context offload and ratio gate, as a whole.

SIZES = st.sampled_from((0, 1, 20, 99, 100, 101, 300))
BLOCKS = st.one_of(
    SIZES.map(lambda size: {"type": "text", "text": "w" * size}),
    st.builds(
        lambda id_, size: results((id_, "x" * size))["content"][0], st.sampled_from("abc"), SIZES
    ),
    st.builds(
        lambda id_, size: results((id_, blocks(size)))["content"][0],
        st.sampled_from("abc"),
        st.sampled_from((50, 99, 100, 200)),
    ),
)
LISTS = st.lists(
    st.lists(BLOCKS, max_size=4).map(lambda found: {"role": "user", "content": found}), max_size=6
)


def shown(block: Message) -> str:
    found = block["text"] if block["type"] == "text" else block["content"]
    return found if isinstance(found, str) else json.dumps(found, separators=(",", ":"))


def as_the_documents_say(messages: list[Message], threshold: float) -> dict[str, str]:
    """The names and contents of the files that there should be."""
    found = [block for message in messages for block in message["content"]]
    leaving = [b for b in found if b["type"] == "tool_result" and len(shown(b)) >= 100]
    total = sum(len(shown(block)) for block in found)
    freed = sum(len(shown(block)) for block in leaving)
    files: dict[str, str] = {}
    if total == 0 or freed == 0 or freed / total < threshold:
        return files
    for block in leaving:
        names = itertools.chain([""], (f"-{n}" for n in itertools.count(1)))
        wanted = (f"tool-result-{block['tool_use_id']}{name}.md" for name in names)
        files[next(name for name in wanted if name not in files)] = shown(block)
    return files


@given(messages=LISTS, threshold=st.sampled_from(("0", "0.2", "0.5", "1")))
def test_any_list_is_offloaded_as_the_documents_specify(
    messages: list[Message], threshold: str
) -> None:
    memory = Memory()
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("OFFLOAD_RATIO_THRESHOLD", threshold)
        result = offload_tool_results(messages, output_dir="/out", writer=memory)
    expected = as_the_documents_say(messages, float(threshold))
    assert {path.removeprefix("/out/"): t for path, t in memory.files.items()} == expected
    assert result.offloaded_count == len(expected)
    assert result.freed_chars == sum(map(len, expected.values()))
    assert (result.messages is messages) == (not expected)
    before = (b for message in messages for b in message["content"])
    after = (b for message in result.messages for b in message["content"])
    names = iter(expected)
    for old, new in zip(before, after, strict=True):
        if new != old:
            placeholder = f"[Content offloaded to: ./{next(names)}]"
            assert new == {**old, "content": placeholder}
    assert list(names) == []
