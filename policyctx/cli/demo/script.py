"""What the demo's agent says and does: a small repair, as a coding agent would go about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from policyctx.turns.result import Result

TASK = """\
A user reports that a tool called ".." made an offloaded file land outside the session's folder.
Find the cause, hold it with a unittest, repair it, and make sure that nothing else is affected."""

# The fault that the demo plants in its copy of the source, for the agent to find.
FAULTY_FILE = "policyctx/planning/paths.py"
SOUND = 'plain = b"" if not value.strip(".") else _KEPT'
FAULT = "plain = _KEPT"

TASK_MESSAGE = {"role": "user", "content": TASK}

_TEST = """\
import unittest

from policyctx.planning.paths import path_parts, relative_path, safe_part


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
        [_read("policyctx/session.py"), _read("policyctx/policy/template.py")],
    ),
    Reply(
        "A name of dots only must lose its dots; one place decides it.",
        [("edit_file", {"path": FAULTY_FILE, "old": FAULT, "new": SOUND})],
    ),
    Reply("I run the tests again.", [_run_tests()]),
    Reply("Green. Is the root itself made safely?", [_read("policyctx/store/local/tree.py")]),
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
