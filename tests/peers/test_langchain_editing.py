"""LangChain's own tests of its edit, over `PolicyMiddleware` and the shipped policy."""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.peers.langchain_editing import downloaded, outcomes

# They read LangChain's notes in the metadata of the messages that were edited.
OF_METADATA = {"test_clear_tool_outputs_and_inputs", "test_clear_tool_outputs_and_inputs_async"}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return downloaded(version("langchain"), tmp_path_factory.mktemp("source"))


@pytest.mark.parametrize("marks", [False, True], ids=["the policy alone", "with LangChain's notes"])
def test_langchains_own_tests_pass(
    marks: bool, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = outcomes(file, tmp_path, marks=marks)
    passing = sum(not how for how in found.values())
    lines = [f"  {name}: {how or 'passes'}" for name, how in found.items()]
    with capsys.disabled():
        sys.stdout.write("\n".join(["", f"{passing} of {len(found)} pass", *lines, ""]))
    assert len(found) == 11
    failed = {name: how for name, how in found.items() if how}
    assert failed == ({} if marks else dict.fromkeys(OF_METADATA, "KeyError('context_editing')"))
