"""Writes the pictures of the documentation to docs/pictures; run by `scripts/pictures`.

    scripts/pictures [demo] [report] [tune] [proxy]

The demo is its real output. The pages are those of made-up sessions, in which an agent reads files
of this library; each picture is made for light and for dark.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from aiohttp import web
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from benchmarks.browser import chromium, emulated
from tests.proxy.running import posted, upstream
from tests.proxy.running import proxy as running_proxy

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
MODEL = "claude-sonnet-4-5"
PROJECTS = 8
# Characters of a line of the terminal.
WIDTH = 122
# The parts of calls that edit a file, that read one again, and before which the user is away.
_EDITS, _READ_AGAIN, _PAUSES = 0.45, 0.1, 0.05

_LIGHT = TerminalTheme(
    (255, 255, 255),
    (31, 35, 40),
    [(36, 41, 47), (207, 34, 46), (17, 99, 41), (77, 45, 0), (9, 105, 218), (130, 80, 223),
     (27, 124, 131), (110, 119, 129)],
)  # fmt: skip
_DARK = TerminalTheme(
    (13, 17, 23),
    (230, 237, 243),
    [(72, 79, 88), (255, 123, 114), (63, 185, 80), (210, 153, 34), (88, 166, 255), (188, 140, 255),
     (57, 197, 207), (177, 186, 196)],
)  # fmt: skip


def demo(_: Path) -> None:
    """Draw the demo's output as a terminal shows it."""
    # Its own folder is named in digits, so its tokens are the same each time.
    printed = policyctx("demo", FORCE_COLOR="1", COLUMNS=str(WIDTH))
    work = re.findall(r"/\S+/policyctx-demo-\d{6}", printed)[0]
    shutil.rmtree(work)
    shown = printed.replace(work, "/tmp/policyctx-demo").split("\n\n")[0].rstrip()  # noqa: S108
    for name, theme in (("light", _LIGHT), ("dark", _DARK)):
        console = Console(record=True, width=WIDTH, file=StringIO(), force_terminal=True)
        console.print(Text.assemble(("$ policyctx demo\n", "bold"), Text.from_ansi(shown)))
        drawn = console.export_svg(title="policyctx demo", theme=theme, unique_id=f"demo-{name}")
        # A picture loads no font from elsewhere.
        drawn = re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)
        drawn = drawn.replace("Fira Code, monospace", "ui-monospace, Menlo, Consolas, monospace")
        drawn = drawn.replace("rgba(255,255,255,0.35)", "rgba(128,128,128,0.5)")
        (PICTURES / f"demo-{name}.svg").write_text(drawn, encoding="utf-8")


def policyctx(*arguments: str, **environment: str) -> str:
    """Run the command and return what it prints."""
    program = "from policyctx.cli import main; main()"
    return subprocess.run(  # noqa: S603 - the project's own command
        [sys.executable, "-c", program, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


TASKS = (
    "Find out why the session reads the journal twice, and mend it.",
    "Add a gate that counts tool calls.",
    "The report shows no dollars for two sessions. Why?",
    "Rename `Removal` to `Leaving` in the replay.",
    "Write a test for the lock of the store.",
    "Speed up the validity check of long lists.",
)


def write_sessions(folder: Path, sessions: int, *, calls: int, chars: int) -> None:
    """Write sessions as Claude Code records them, the same ones each time.

    `calls` is the largest number of calls of a session, `chars` that of characters of a result.
    """
    random = Random(7)  # noqa: S311 - texts for a picture
    files = sorted((ROOT / "policyctx").rglob("*.py"))
    texts = {file: file.read_text(encoding="utf-8") for file in files}
    for number in range(sessions):
        lines = _session(number, random, texts, random.randint(8, calls), chars)
        path = folder / f"project-{number % PROJECTS}" / f"task-{number:02}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def _session(
    number: int, random: Random, texts: dict[Path, str], calls: int, chars: int
) -> Iterator[dict[str, Any]]:
    name = f"task-{number:02}"
    at = datetime(2026, 11, 2, 9, tzinfo=UTC) + timedelta(hours=7 * number)
    cwd = f"/home/you/project-{number % PROJECTS}"
    last, size, cached = None, 14_000, 0

    def record(kind: str, content: object, **more: object) -> dict[str, Any]:
        nonlocal last, size
        size += len(json.dumps(content)) // 4
        line = {"type": kind, "uuid": f"{name}-{at:%d%H%M%S}-{kind}", "parentUuid": last}
        last = line["uuid"]
        stamp = at.isoformat().replace("+00:00", "Z")
        message = {"role": kind, "content": content, **more}
        return {**line, "sessionId": name, "cwd": cwd, "timestamp": stamp, "message": message}

    yield record("user", TASKS[number % len(TASKS)])
    unread, seen = random.sample(sorted(texts), len(texts)), list[Path]()
    for call in range(calls):
        long_pause = random.random() < _PAUSES
        at += timedelta(seconds=random.randint(6, 50) + 600 * long_pause)
        does_edit = bool(seen) and random.random() < _EDITS
        reads_again = bool(seen) and random.random() < _READ_AGAIN
        file = seen[-1] if does_edit else random.choice(seen) if reads_again else unread.pop()
        seen.append(file)
        path, text = file.relative_to(ROOT).as_posix(), texts[file][: random.randint(800, chars)]
        given = {"file_path": f"{cwd}/{path}"}
        if does_edit:
            # Nothing of an edit can leave the context but its short result.
            given |= {"old_string": text[: chars // 6], "new_string": text[: chars // 5]}
            text = "The file was updated."
        read = 0 if long_pause else cached
        usage = {
            "input_tokens": 4,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": size - read,
            "cache_creation": {"ephemeral_5m_input_tokens": size - read},
            "output_tokens": 180,
        }
        cached = size
        name_of_tool = "Edit" if does_edit else "Read"
        used = {"type": "tool_use", "id": f"{name}-{call}", "name": name_of_tool, "input": given}
        said = {"type": "text", "text": f"Next is {path}."}
        more = {"id": f"msg-{name}-{call}", "model": MODEL, "usage": usage}
        yield record("assistant", [said, used], **more)
        at += timedelta(seconds=1)
        result = {"type": "tool_result", "tool_use_id": f"{name}-{call}", "content": text}
        yield record("user", [result])


def photograph(url: str, name: str, *, height: int, heading: str = "") -> None:
    """Take a picture of a page from its top, or from a heading, light and dark."""
    scroll = "[...document.querySelectorAll('h2')].find(h => h.textContent === arguments[0])"
    with chromium(width=1280, height=height) as browser:
        for scheme in ("light", "dark"):
            emulated(browser, width=1280, height=height, scheme=scheme)
            browser.get(url)
            browser.execute_async_script("setTimeout(arguments[0], 1500)")
            if heading:
                browser.execute_script(f"{scroll}.scrollIntoView()", heading)
            browser.save_screenshot(str(PICTURES / f"{name}-{scheme}.png"))


def report(folder: Path) -> None:
    """Take a picture of the page of a replay."""
    write_sessions(folder / "sessions", 24, calls=130, chars=12_000)
    page = folder / "report.html"
    policyctx("replay", "coding-agent", str(folder / "sessions"), "--report", str(page))
    photograph(page.as_uri(), "report", height=700)


def tune(folder: Path) -> None:
    """Take a picture of the page of a study."""
    write_sessions(folder / "sessions", 12, calls=35, chars=30_000)
    page = folder / "tune.html"
    policyctx("tune", str(folder / "sessions"), "--report", str(page), "--jobs", "2")
    photograph(page.as_uri(), "tune", height=640, heading="The front")


_POLICY = """\
apiVersion: policyctx/v1
name: my-agent
min_tokens: 500
items: {tool_result: {offload: true, keep_recent: 3}}
steps: [{name: retire, do: offload, when: {frees: {at_least: 20000}}}]
"""


def proxy(folder: Path) -> None:
    """Take a picture of the proxy's page after the turns of four agents."""
    write_sessions(folder / "sessions", 8, calls=130, chars=12_000)
    with upstream() as provider, running_proxy(folder, provider.url, policy=_POLICY) as running:
        paths = (folder / "sessions").rglob("*.jsonl")
        for path in sorted(paths, key=lambda path: path.stat().st_size)[-4:]:
            provider.answer = _provider()
            for request in _requests(path):
                posted(f"{running.url}/v1/messages", request, x_api_key="k", x_session_id=path.stem)
        photograph(f"{running.url}/_policyctx/", "proxy", height=820)


def _requests(path: Path) -> Iterator[dict[str, Any]]:
    """Return each request of a session."""
    messages = list[Any]()
    for line in path.read_text(encoding="utf-8").splitlines():
        message = json.loads(line)["message"]
        if message["role"] == "assistant":
            yield {"model": MODEL, "max_tokens": 900, "messages": messages}
        messages.append({key: message[key] for key in ("role", "content")})


def _provider() -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """Return a provider whose cache holds each prompt: it reads what begins as the last one did."""
    last = b""

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal last
        sent = await request.read()
        same = len(os.path.commonprefix([last, sent]))  # noqa: RUF071 - bytes, and not paths
        last = sent
        usage = {
            "input_tokens": 4,
            "cache_read_input_tokens": same // 4,
            "cache_creation_input_tokens": (len(sent) - same) // 4,
            "output_tokens": 180,
        }
        return web.json_response({"model": MODEL, "content": [], "usage": usage})

    return answer


def main() -> int:
    """Write the pictures that are named, or all; return the exit code."""
    each = {made.__name__: made for made in (demo, report, tune, proxy)}
    for name in sys.argv[1:] or each:
        with TemporaryDirectory() as folder:
            each[name](Path(folder))
    for path in sorted(PICTURES.iterdir()):
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size // 1000} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
