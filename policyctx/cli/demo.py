"""`policyctx demo`: an agent with a loop, real tools, and a script in place of a model.

What the tools say comes from the files and tests of a small project in a temporary folder.
"""

import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from rich.progress import track

import policyctx
from policyctx.cli import output
from policyctx.cli.plans import decision_report
from policyctx.definitions.items import Message
from policyctx.errors import StoreError
from policyctx.replay.readers.building import tool_result, tool_use
from policyctx.session import Session
from policyctx.turns.result import Result

_TIMING = re.compile(r"in \d+\.\d+s")
_WAY_ON = "name another folder, or leave out --dir"
# In so short a session no edit would pay for itself, so the gate of the preset is left out.
POLICY = """\
apiVersion: policyctx/v1
name: demo
extends: small-context
steps:
  - name: retire-old-results
    do: offload
    select: {types: [tool_result], keep_recent: {items: 5, per: all}}
"""


class Workspace:
    """A throw-away copy of the library's own source, and the tools that work in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        source = Path(policyctx.__file__).parent
        shutil.copytree(source, folder / "policyctx", ignore=_all_but_source)

    def call(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """Run the tool of this name and return what it says; a failure is a text like any other."""
        return str(getattr(self, tool)(**arguments))

    def read_file(self, path: str) -> str:
        """Return the whole file."""
        return (self.folder / path).read_text(encoding="utf-8")

    def search(self, text: str) -> str:
        """Return every line of the source that contains the text, as `path:line: …`."""
        found = []
        for path in sorted(self.folder.rglob("*.py")):
            name = path.relative_to(self.folder).as_posix()
            lines = path.read_text(encoding="utf-8").splitlines()
            found += [f"{name}:{n}: {line}" for n, line in enumerate(lines, 1) if text in line]
        return "\n".join(found) or "nothing found"

    def write_file(self, path: str, content: str) -> str:
        """Write the file."""
        (self.folder / path).write_text(content, encoding="utf-8")
        return f"{path} written"

    def edit_file(self, path: str, old: str, new: str) -> str:
        """Replace the one place where `old` stands."""
        text = self.read_file(path)
        if text.count(old) != 1:
            return f"{path}: the text to replace stands {text.count(old)} times"
        return self.write_file(path, text.replace(old, new))

    def run_tests(self, module: str) -> str:
        """Run a unittest module in a process of its own."""
        run = subprocess.run(  # noqa: S603 - our own interpreter on a file of the demo's
            [sys.executable, "-m", "unittest", "-v", module],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )
        # The time is the one thing in the output that differs from run to run.
        return _TIMING.sub("in a moment", run.stdout + run.stderr)


def _all_but_source(folder: str, names: list[str]) -> set[str]:
    is_source = {n for n in names if n.endswith(".py") or (Path(folder) / n).is_dir()}
    return {name for name in names if name not in is_source or name in ("__pycache__", "shipped")}


TASK = """\
A user reports that a tool called ".." made an offloaded file land outside the session's folder.
Find the cause, hold it with a unittest, repair it, and make sure that nothing else is affected."""

# The fault that the demo plants in its copy of the source, for the agent to find.
FAULTY_FILE = "policyctx/paths.py"
SOUND = 'plain = b"" if not value.strip(".") else _KEPT'
FAULT = "plain = _KEPT"

TASK_MESSAGE = {"role": "user", "content": TASK}

_TEST = """\
import unittest

from policyctx.paths import path_parts, relative_path, safe_part


class PathsStayBelowTheRoot(unittest.TestCase):
    def test_a_name_of_dots_is_encoded(self):
        self.assertEqual(safe_part(".."), "%2E%2E")

    def test_an_ordinary_name_stays_as_it_is(self):
        self.assertEqual(safe_part("toolu_01abc.v2"), "toolu_01abc.v2")

    def test_a_tool_called_dots_cannot_leave_its_folder(self):
        values = dict.fromkeys(("item_type", "tool_use_id", "session_id"), "x")
        values |= {"tool_name": "..", "item_id": "call_1", "ext": "md"}
        parts = path_parts("{item_type}/{tool_name}/{item_id}.{ext}")
        path = relative_path(parts, values)
        self.assertNotIn("..", path.split("/"))
"""

_MORE_TESTS = """

class OddNames(unittest.TestCase):
    def test_a_separator_is_encoded(self):
        self.assertEqual(safe_part("a/b"), "a%2Fb")

    def test_an_empty_name_gets_a_name(self):
        self.assertTrue(safe_part("").startswith("sha256-"))


if __name__ == "__main__":
    unittest.main()
"""


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of the scripted model: a sentence, and the tools that it calls together."""

    text: str
    calls: Sequence[tuple[str, Mapping[str, Any]]] = ()


def _read(path: str) -> tuple[str, dict[str, Any]]:
    return "read_file", {"path": path}


def _search(text: str) -> tuple[str, dict[str, Any]]:
    return "search", {"text": text}


def _run_tests() -> tuple[str, dict[str, Any]]:
    return "run_tests", {"module": "test_paths"}


def _look_again(seen: Result) -> Reply:
    """Read the oldest offloaded item back, by the path that its placeholder names."""
    oldest = next(d for d in seen.plan.decisions if d.placeholder is not None)
    lines = (oldest.placeholder or "").splitlines()
    path = next(line.removeprefix("Path: ") for line in lines if line.startswith("Path: "))
    return Reply("I want the planner again. It was offloaded, so I read its file.", [_read(path)])


# What the model says at each call; a function says it by what that call would see.
SCRIPT: tuple[Reply | Callable[[Result], Reply], ...] = (
    Reply("I look for where paths of offloaded files are made.", [_search("relative_path")]),
    Reply("paths.py makes them. I read it.", [_read(FAULTY_FILE)]),
    Reply(
        "safe_part encodes each value. I read who uses the paths.",
        [_read("policyctx/planning/planner.py"), _read("policyctx/store/filesystem.py")],
    ),
    Reply(
        "Nothing there changes a name again. A test shall show the fault.",
        [("write_file", {"path": "test_paths.py", "content": _TEST})],
    ),
    Reply("I run it.", [_run_tests()]),
    Reply("Two fail: dots are kept. Who else encodes names?", [_search("safe_part")]),
    Reply(
        "The session's id goes through it as well. I read that and the template.",
        [_read("policyctx/session.py"), _read("policyctx/policy/values.py")],
    ),
    Reply(
        "A name of dots only must lose its dots; one place decides it.",
        [("edit_file", {"path": FAULTY_FILE, "old": FAULT, "new": SOUND})],
    ),
    Reply("I run the tests again.", [_run_tests()]),
    Reply("Green. Is the root itself made safely?", [_read("policyctx/store/local/backend.py")]),
    Reply(
        "It is. What else may a policy put into a path?",
        [_read("policyctx/policy/values.py"), _read("policyctx/policy/models/steps.py")],
    ),
    Reply("Templates are checked there. Every other use of a path:", [_search("Path(")]),
    Reply("I read the edited file once more.", [_read(FAULTY_FILE)]),
    _look_again,
    Reply(
        "Two more cases are worth holding.",
        [("write_file", {"path": "test_paths.py", "content": _TEST + _MORE_TESTS})],
    ),
    Reply("The last run.", [_run_tests()]),
    Reply("Repaired: a name of dots only is percent-encoded, and five tests hold it."),
)


@dataclass(frozen=True, slots=True)
class DemoCall:
    """One call of the loop: what the policy made of the context before it."""

    number: int
    result: Result
    reply: Reply


def model_calls(
    session: Session, workspace: Workspace, history: list[Message]
) -> Iterator[DemoCall]:
    """Run the agent until it has no more to say; `history` grows to the whole, unedited session."""
    workspace.edit_file(FAULTY_FILE, SOUND, FAULT)
    history.append(TASK_MESSAGE)
    for number, said in enumerate(SCRIPT, 1):
        result = session.apply(history)
        # A scripted model bills what was counted.
        session.observe({"input_tokens": result.plan.tokens_after})
        reply = said(result) if callable(said) else said
        history.append(_assistant_message(number, reply))
        if reply.calls:
            history.append(_results(number, reply, workspace))
        yield DemoCall(number, result, reply)


def _assistant_message(number: int, reply: Reply) -> Message:
    content: list[dict[str, Any]] = [{"type": "text", "text": reply.text}]
    for i, (tool, arguments) in enumerate(reply.calls):
        content.append(tool_use(call_id(number, i), tool, arguments))
    return {"role": "assistant", "content": content}


def _results(number: int, reply: Reply, workspace: Workspace) -> Message:
    content = [
        tool_result(call_id(number, i), workspace.call(tool, arguments), is_error=False)
        for i, (tool, arguments) in enumerate(reply.calls)
    ]
    return {"role": "user", "content": content}


def call_id(number: int, call: int) -> str:
    """Return the id of the n-th tool call (from 0) of a model call (from 1)."""
    return f"call_{number:02}_{call + 1}"


def demo(
    folder: Annotated[
        Path | None,
        output.option("An empty folder to work in; a temporary one by default.", "--dir"),
    ] = None,
    as_json: output.Json = False,
) -> None:
    """Watch a policy shrink the context of an agent at work.

    A scripted agent repairs a fault in a throw-away copy of this library's source, with real
    tools; a policy that keeps the five newest results runs before each of its model calls. Needs
    no network and no key.

    Example: policyctx demo
    """
    folder = _empty_folder(folder)
    policy = folder / "policy.yaml"
    policy.write_text(POLICY, encoding="utf-8")
    session = Session(policy, root=folder / "offloaded", session_id="demo")
    history: list[Message] = []
    running = model_calls(session, Workspace(folder / "work"), history)
    err = output.console(stderr=True)
    calls = list(
        track(
            running, "The agent works", total=len(SCRIPT), console=err, disable=not err.is_terminal
        )
    )
    _write(folder / "session.json", history)
    _write(folder / "context.json", list(calls[-1].result.messages))
    if as_json:
        output.print_json(_report(folder, calls))
    else:
        _show(output.console(), folder, calls)


def _empty_folder(wanted: Path | None) -> Path:
    """Make the folder; a random one is named in digits, which count alike in tokens every time."""
    name = f"policyctx-demo-{secrets.randbelow(10**6):06}"
    folder = (wanted or Path(tempfile.gettempdir()) / name).absolute()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=wanted is not None)
        if any(folder.iterdir()):
            raise StoreError(f"{folder} is not empty: {_WAY_ON}", path=str(folder))
    except OSError as error:
        raise StoreError(f"{folder} cannot be made: {error.strerror}", path=str(folder)) from error
    return folder


def _write(path: Path, messages: list[Message]) -> None:
    path.write_text(output.json_text(messages) + "\n", encoding="utf-8")


def _totals(calls: list[DemoCall]) -> tuple[int, int]:
    plans = [call.result.plan for call in calls]
    return sum(plan.tokens_before for plan in plans), sum(plan.tokens_after for plan in plans)


def _show(out: Console, folder: Path, calls: list[DemoCall]) -> None:
    columns = ("call", "the agent", "without", "with", "offloaded, and why")
    labels = _labels(calls)
    rows = (_row(call, labels) for call in calls)
    out.print(output.Grid(columns, rows, numeric={"call", "without", "with"}))
    before, after = _totals(calls)
    count = sum(call.result.offloaded_count for call in calls)
    out.print(f"tokens sent in {len(calls)} calls: {output.saving(before, after)}")
    where = folder / "offloaded"
    output.print_wrapped(out, f"{count} results offloaded to {where}, each readable there in full")
    out.print("\nTry next:", style="bold")
    program = _program()
    for line in (
        f"cd {folder}",
        f"{program} plan policy.yaml session.json",
        f"{program} apply context-offload session.json --root all -o smaller.json",
    ):
        out.print(f"  {line}")


def _program() -> str:
    """How a shell reaches this command: by its name where that finds it, else by its path."""
    ran = Path(sys.argv[0])
    return "policyctx" if shutil.which("policyctx") or not ran.is_file() else str(ran.absolute())


def _labels(calls: list[DemoCall]) -> dict[str, str]:
    return {
        call_id(call.number, i): f"{tool} {Path(next(iter(given.values()))).name}"
        for call in calls
        for i, (tool, given) in enumerate(call.reply.calls)
    }


def _row(call: DemoCall, labels: dict[str, str]) -> tuple[object, ...]:
    plan = call.result.plan
    made = [labels[call_id(call.number, i)] for i in range(len(call.reply.calls))]
    offloaded = [f"{labels[d.item.item_id]}: {d.reason.sentence}" for d in plan.to_save]
    said = tuple(made) or "answers"
    return call.number, said, plan.tokens_before, plan.tokens_after, tuple(offloaded)


def _report(folder: Path, calls: list[DemoCall]) -> dict[str, Any]:
    before, after = _totals(calls)
    return {
        "policy": POLICY,
        "folder": str(folder),
        "tokens_before": before,
        "tokens_after": after,
        "calls": [
            {
                "call": call.number,
                "tools": [tool for tool, _ in call.reply.calls],
                "tokens_before": call.result.plan.tokens_before,
                "tokens_after": call.result.plan.tokens_after,
                "offloaded": [
                    decision_report(d, call.result.plan.conversation.policy)
                    for d in call.result.plan.to_save
                ],
            }
            for call in calls
        ],
    }
