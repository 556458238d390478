"""The document's agent in code runs its story: four queries, two results that stay."""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integrations.anthropic_api import AnthropicAPI, anthropic_api
from tests.integrations.examples import example
from tests.integrations.scripted import Reply, calling, saying
from tests.integrations.test_four_queries import FILES, reply, results_in, shown, text_of


@pytest.fixture
def api() -> Iterator[AnthropicAPI]:
    with anthropic_api() as server:
        yield server
        assert server.refused == []


def program(api: AnthropicAPI, folder: Path, script: Callable[[Any], Reply]) -> list[str]:
    """Return the example and its argument, a folder with the document's four files."""
    files = folder / "files"
    files.mkdir()
    for name in FILES:
        (files / name).write_text(text_of(name), encoding="utf-8")
    api.script = script
    return [str(example("agent")), str(files)]


@pytest.fixture(autouse=True)
def _address(api: AnthropicAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", api.url)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")


@pytest.mark.slow
def test_the_first_file_goes_at_the_third_query_and_the_second_at_the_fourth(
    api: AnthropicAPI, tmp_path: Path
) -> None:
    command = [sys.executable, *program(api, tmp_path, reply)]
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    lines = run.stdout.splitlines()
    assert [shown(body) for body in api.bodies] == [
        [],
        ["whole"],
        ["whole"],
        ["whole", "whole"],
        ["whole", "whole"],
        ["placeholder", "whole", "whole"],
        ["placeholder", "whole", "whole"],
        ["placeholder", "placeholder", "whole", "whole"],
    ]
    assert [line.split(": ")[:2] for line in lines] == [
        ["3", "Offloaded"],
        ["4", "Offloaded"],
        ["4", "Offloaded"],
    ]
    paths = [Path(line.split(": ")[2]) for line in lines]
    contents = [json.loads(path.read_text(encoding="utf-8"))["content"] for path in paths]
    assert contents == [text_of(FILES[0]), text_of(FILES[0]), text_of(FILES[1])]
    root = Path(os.environ["HOME"]) / ".agent/context"
    folder, *below = paths[0].relative_to(root).parts
    assert re.fullmatch(r"session_[0-9]{8}_[0-9]{6}_[a-z0-9]{6}", folder)
    assert below[:2] == ["tool_result", "read_file"]


def test_a_file_that_is_not_there_is_a_failed_result(
    api: AnthropicAPI,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def missing(body: Any) -> Reply:
        if len(body["messages"]) == 1:
            return calling(("call_0", "read_file", {"path": "none.txt"}))
        return saying("There is none.")

    command = program(api, tmp_path, missing)
    monkeypatch.setattr(sys, "argv", command)
    runpy.run_path(command[0], run_name="__main__")
    assert capsys.readouterr().out == ""
    assert results_in(api.bodies[1])[0].startswith("FileNotFoundError: ")
