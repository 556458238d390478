from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conversations import session_of

pytestmark = pytest.mark.slow

# Any use of a socket ends the process, however it is reached, and says what it was.
UNPLUGGED = """
import os, sys
def unplugged(event, arguments):
    if event.startswith("socket."):
        os.write(2, f"{event} {arguments}".encode())
        os._exit(9)
sys.addaudithook(unplugged)
"""

COUNTED = """
from policyctx.tokens.counter import counter_for, new_counter
from tests.tokens.test_media import document, image, pdf
from tests.tokens.test_image_sizes import png
from tests.tokens.requests import request_tokens
for tokenizer in ("o200k_base", "cl100k_base", "approximate"):
    for counter in (new_counter(tokenizer, fast=False), counter_for(tokenizer)):
        assert counter.count_many(["hello", "\\ud800", "字" * 9_000])[0] > 0
        assert counter.truncate("some more words", 2) in ("some more", "some mor")
        blocks = [image(png(30, 30)), document(pdf("/Type /Page"))]
        message = {"role": "user", "content": blocks}
        assert request_tokens([message], [{"name": "a"}], "a prompt", counter=counter) > 2_000
print("counted")
"""

PLANNED = """
import sys, policyctx, json
for preset in ("coding-agent", "context-offload"):
    session = policyctx.Session(preset, root=sys.argv[1] + "/" + preset)
    session.apply(json.load(open("messages.json", encoding="utf-8")))
print("counted")
"""

COMMAND = """
from policyctx.cli import main
sys.argv = ["policyctx", "tokens", "messages.json"]
main()
"""


@pytest.mark.parametrize(
    "program", [COUNTED, PLANNED, COMMAND], ids=["counters", "sessions", "command"]
)
def test_with_the_network_unplugged_all_is_counted(program: str, tmp_path: Path) -> None:
    messages = session_of("word " * 3_000, "字か " * 800, "x" * 9_000)
    (tmp_path / "messages.json").write_text(json.dumps(messages), encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "-c", UNPLUGGED + program, str(tmp_path / "store")],
        capture_output=True, check=False, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert (run.returncode, run.stderr) == (0, b"")
    assert b"counted" in run.stdout or b"items: " in run.stdout


def test_the_block_notices_a_socket(tmp_path: Path) -> None:
    program = UNPLUGGED + "import socket; socket.create_connection(('localhost', 9))"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=False, cwd=tmp_path
    )
    assert (run.returncode, run.stderr[:7]) == (9, b"socket.")
