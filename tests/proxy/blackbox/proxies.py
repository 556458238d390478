"""The proxy as a user starts it: the command, in a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from select import select
from time import monotonic
from typing import IO

from tests.cli.running import Started, started

PLACEHOLDER = "[Offloaded to "
SUMMARY = "[Conversation compressed]"
WINDOW = 20_000
# Offload the older results at half of a small window, and summarise at three fifths of it.
POLICY = f"""\
apiVersion: policyctx/v1
name: small-window
model: {{context_window: {WINDOW}}}
min_tokens: 200
items:
  tool_result: {{offload: true}}
placeholder: "{PLACEHOLDER}{{path}}]"
compaction:
  keep_recent: {{messages: 2}}
  keep_newest_user_message: true
  summary: {{max_tokens: 1000}}
steps:
  - name: offload-old-results
    do: offload
    when: {{tokens: {{at_least: 50%}}}}
    select: {{types: [tool_result], keep_recent: {{items: 1}}}}
  - name: summarise
    do: compact
    when: {{tokens: {{at_least: 60%}}}}
"""
# Takes each result but the newest, on each turn.
EAGER = f"""\
apiVersion: policyctx/v1
name: eager
min_tokens: 20
items:
  tool_result: {{offload: true}}
placeholder: "{PLACEHOLDER}{{path}}]"
steps:
  - name: offload-old-results
    do: offload
    select: {{types: [tool_result], keep_recent: {{items: 1}}}}
"""
NOTHING = "apiVersion: policyctx/v1\nname: nothing\n"
_LISTENS = re.compile(r"policyctx proxy listens on (http://\S+)")
# The longest that a start and a stop may take, in seconds.
_LONGEST = 120


@dataclass(frozen=True, slots=True)
class Proxy:
    """A running proxy: its URL, the folder of its files, its process and what it logs."""

    url: str
    root: Path
    process: Started | subprocess.Popen[str]
    log: Path

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self.url.rpartition(":")[2])

    @property
    def logged(self) -> str:
        """What it wrote to the standard error stream."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def kill(self) -> None:
        """End it without a chance to clean up."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        """Ask it to stop, and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(_LONGEST)

    def files(self) -> list[Path]:
        """Return the files with offloaded texts."""
        found = (path for path in self.root.rglob("*") if path.is_file())
        return sorted(p for p in found if not any(s.startswith(".") for s in _below(p, self.root)))

    def peak_memory(self) -> int:
        """Return the most memory that it has held, in bytes."""
        return self._memory("VmHWM")

    def memory(self) -> int:
        """Return the memory that it holds now, in bytes."""
        return self._memory("VmRSS")

    def _memory(self, name: str) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        line = next(line for line in status.splitlines() if line.startswith(name))
        return int(line.split()[1]) * 1024


def _below(path: Path, root: Path) -> tuple[str, ...]:
    return path.relative_to(root).parts


@contextmanager
def proxied(
    upstream: str,
    folder: Path,
    *options: str,
    policy: str = POLICY,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Proxy]:
    """Run the proxy in front of both providers at one URL until the block ends.

    Its policy is written to `folder / "policy.yaml"`, its files go below `folder / "root"`. Started
    again in the same folder it goes on with these files.
    """
    with process(upstream, folder, *options, policy=policy, environment=environment) as running:
        url = _url(running)
        yield Proxy(url, folder / "root", running, folder / "log.txt")


@contextmanager
def process(
    upstream: str,
    folder: Path,
    *options: str,
    policy: str = POLICY,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Started | subprocess.Popen[str]]:
    """Start the command, and end it with the block; it need not come to listen."""
    folder.mkdir(exist_ok=True)
    (folder / "policy.yaml").write_text(policy)
    own = {"HOME": str(folder / "home"), "PYTHONUTF8": "1", "PYTHONUNBUFFERED": "1"}
    arguments = [
        *("--policy", str(folder / "policy.yaml"), "--root", str(folder / "root")),
        *("--upstream", f"anthropic={upstream},openai={upstream}"),
        *(() if "--port" in options else ("--port", "0")),
        *options,
    ]
    variables = {**os.environ, **own, **(environment or {})}
    running = started(["proxy", *arguments], folder / "log.txt", variables)
    try:
        yield running
    finally:
        if running.poll() is None:
            running.terminate()
        try:
            running.wait(_LONGEST)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()
            raise
        finally:
            _out(running).close()


def _url(running: Started | subprocess.Popen[str]) -> str:
    """Return the URL in the line that the command prints when it listens."""
    end = monotonic() + _LONGEST
    out, printed = _out(running), ""
    while monotonic() < end:
        if select([out], [], [], 0.2)[0]:
            line = out.readline()
            printed += line
            if found := _LISTENS.search(line):
                return found[1].rstrip("/.")
            if not line:
                break
    message = f"the proxy does not listen; it printed {printed!r}"
    raise AssertionError(message)


def _out(running: Started | subprocess.Popen[str]) -> IO[str]:
    if running.stdout is None:
        raise AssertionError
    return running.stdout
