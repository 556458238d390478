"""A hook that remembers a bound answers as one without, byte for byte."""

from __future__ import annotations

import json
import re
import shutil
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
from hypothesis import event as note
from hypothesis import given, settings
from hypothesis import strategies as st

from policyctx.integrations import arrival_bounds, claude_code
from policyctx.integrations.arrival_bounds import LeastSize, load_and_remember
from policyctx.integrations.claude_code import Options
from tests.integrations.claude_code import bash, event, read

WORDINGS = st.sampled_from(
    [
        "[{path}]",
        "[{relative_path} {tool_name} {tool_use_id} {item_id} {item_type} {session_id}]",
        "{head}\n[{omitted_lines} lines, {omitted_chars} of {chars} are in {cwd_path}]\n{tail}",
        "{head}{gap}{tail}{store_path}",
        "{sha256} {lines} {source_path} {source_first_line}-{source_last_line}",
        "{head}[{tokens} tokens, {path}]",
        "[Content offloaded]\nPath: {path}",
    ]
)
EXTENTS = st.sampled_from([{"lines": 2}, {"chars": 9}, {"lines": 0}, {"chars": 90}, {"tokens": 3}])
EXCERPTS: list[dict[str, Any]] = [
    {"max_line_chars": 4},
    {"max_line_chars": 3, "cut_mark": "[cut]"},
    {"line_numbers": True},
    {"line_numbers": {"width": 3, "separator": ":"}},
]
PATHS = st.sampled_from(["{tool_name}/{tool_use_id}.{ext}", "all.{ext}", "{item_id}.{ext}"])


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Draw a policy that takes results on arrival."""
    size = st.integers(0, 60)
    wording: dict[str, Any] = {"text": draw(WORDINGS)}
    for name in ("head", "tail"):
        if f"{{{name}}}" in wording["text"]:
            wording[name] = draw(EXTENTS)
            wording |= draw(st.sampled_from([{}, *EXCERPTS]))
    if "{gap}" in wording["text"]:
        wording["gap"] = "<{omitted_lines} of {lines}>"
    step = {
        "name": "a",
        "on": "arrival",
        "do": "offload",
        "select": {"types": ["tool_result"]},
        "must_shrink": draw(st.booleans()),
    }
    document: dict[str, Any] = {
        "apiVersion": "policyctx/v1",
        "name": "p",
        draw(st.sampled_from([*["min_chars"] * 7, "min_tokens"])): draw(size),
        "items": {"tool_result": {"offload": True}},
        "tools": {
            "Bash": draw(st.sampled_from([{}, {"min_chars": 5}, {"min_chars": 20}, {"pin": True}]))
        },
        "placeholder": wording,
        "store": {
            "root": draw(st.sampled_from(["files/{session_id}", "files"])),
            "path": draw(PATHS),
            "escape": draw(st.sampled_from(["percent", "_"])),
            "format": draw(st.sampled_from(["text", "envelope"])),
            "on_conflict": draw(st.sampled_from(["suffix", "suffix", "overwrite", "error"])),
            "sync": "never",
        },
        "model": {"tokenizer": "approximate"},
        "steps": [step],
    }
    if draw(st.sampled_from([False] * 7 + [True])):
        match = {"type": "tool_result", "text": {"contains": "a"}}
        document["items"]["mine"] = {"match": match, "min_chars": 3}
    return json.dumps(document)


TEXTS = st.one_of(
    st.text(st.sampled_from("ab \n\r{é中😀\ud800"), max_size=90),
    st.sampled_from(["a line\n" * 40, '{"a": [1, 2]}' * 9, "[Content offloaded]\nPath: /x/a.md"]),
)
COMMANDS = st.sampled_from(
    [{}, {"command": "make"}, {"command": "cat files/s1/Bash/toolu_0.md"}, {"command": "cat x.md"}]
)


@st.composite
def events(draw: st.DrawFn, project: Path) -> list[dict[str, Any]]:
    """Draw some events of a session; ids come again, and commands name files of the store."""
    found = []
    for _ in range(draw(st.integers(1, 4))):
        tool = draw(
            st.sampled_from(["Bash", "Read", "mcp__x__y", *["Bash"] * 4, "mcp__c__read_offloaded"])
        )
        text = draw(TEXTS)
        errors = draw(st.sampled_from(["", "", "an error\n" * 9]))
        response: dict[str, object] = {
            "Bash": bash(text, errors),
            "Read": read(f"{project}/a.py", text, first=7),
        }
        # Claude Code gives no id to calls of two tools.
        name = f"toolu_{'' if tool == 'Bash' else tool}{draw(st.integers(0, 3))}"
        made = response.get(tool, text)
        found.append(event(tool, made, cwd=project, tool_use_id=name, tool_input=draw(COMMANDS)))
    return found


def contents_of(folder: Path) -> dict[str, str]:
    """Every file below a folder, without what differs between two runs: times and random ids."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != "lock" and "writing-" not in path.name:
            text = path.read_bytes().decode("utf-8", "surrogatepass")
            text = re.sub(r'"(saved_at|offloaded_at)": ?[0-9.]+', "", text)
            text = re.sub(r'"crc32": ?"[0-9a-f]{8}"|"bytes": ?[0-9]+', "", text)
            found[str(path.relative_to(folder))] = re.sub(r'"[0-9a-f]{16}(-[0-9]+)?"', "", text)
    return found


@settings(deadline=None)
@given(st.data())
def test_a_remembered_bound_changes_no_answer_and_no_file(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    base = tmp_path_factory.mktemp("bounds")
    project, document = base / "project", data.draw(documents())
    drawn = data.draw(events(project))

    def outcome(*, remembers: bool) -> tuple[list[object], dict[str, str]]:
        """Run the hook on every event, in a new project."""
        project.mkdir()
        (project / "p.yaml").write_text(document, encoding="utf-8")
        answers: list[object] = []
        with pytest.MonkeyPatch.context() as patch, chdir(project):
            patch.setenv("XDG_CACHE_HOME", str(base / "cache"))
            if not remembers:
                patch.setattr(arrival_bounds, "remembered", lambda *_: LeastSize("chars", 0))
            for one in drawn:
                shutil.rmtree(base / "cache", ignore_errors=True)
                if remembers:
                    load_and_remember("p.yaml", one["tool_name"])
                raw = json.dumps(one).encode()
                answers.append(claude_code._answer(Options("p.yaml"), raw, []))
                note(f"replaced: {answers[-1] is not None}")
        files = contents_of(project)
        shutil.rmtree(project)
        return answers, files

    assert outcome(remembers=True) == outcome(remembers=False)
