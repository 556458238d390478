"""A program that is killed in the middle of a session, and started again."""

from __future__ import annotations

import signal
from pathlib import Path
from textwrap import dedent
from typing import Any

from tests.cli.running import policyctx
from tests.integrations.anthropic_api import AnthropicAPI
from tests.integrations.loops import OLD
from tests.integrations.openai_api import OpenAIAPI


def check_goes_on(program: str, folder: Path, api: AnthropicAPI | OpenAIAPI, messages: str) -> None:
    """Kill a program after its fifth call, start it again, and check what it sends.

    Its arguments are the folder with its policy `p.yaml`, the server's URL, and the turn at whose
    end it kills itself. It makes 8 calls and has a file store in `store`. `messages` is the field
    of a body with the list.
    """
    text = OLD.replace("keep_recent: 1", "keep_recent: 2")
    (folder / "p.yaml").write_text("apiVersion: policyctx/v1\nname: p\n" + dedent(text))
    file = folder / "program.py"
    file.write_text(program)
    assert policyctx(folder, api.url, "4", program=file).returncode == -signal.SIGKILL
    assert policyctx(folder, api.url, "-1", program=file).returncode == 0
    assert api.refused == []
    assert len(api.bodies) == 8
    before, after = ([*body[messages]] for body in api.bodies[4:6])
    # The third newest result left at the first call after the kill, and nothing else changed.
    assert [i for i, item in enumerate(before) if after[i] != item] == [6]
    files: list[Any] = [*(folder / "store").rglob("*.txt"), *(folder / "store").rglob("*.md")]
    assert len(files) == len({file.read_bytes() for file in files})
