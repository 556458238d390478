"""Count what one `apply` runs through: modules, functions, calls, depth, shapes asked, climbs.

    python scripts/frames.py

A climb is one function that takes the messages and enters the next function with them: the number
is how often the same list, or one message of it, is handed from one module to another on one path.
"""

import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from policyctx import Session
from policyctx.definitions.items import Message

_PACKAGE = str(Path(__file__).resolve().parents[1] / "policyctx")
# What asks a message for its shape, and what enters the list of a session.
_COUNTED = ("recognises", "checked", "shaped", "known_list", "comparable", "plain", "parts")


class Frames:
    """What a call ran through, in the package only."""

    def __init__(self) -> None:
        self.modules: Counter[str] = Counter()
        self.functions: Counter[tuple[str, str]] = Counter()
        self.deepest = 0
        self.climbs = 0
        self._stack: list[str] = []

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Take an event of `sys.setprofile`."""
        code = frame.f_code
        if not code.co_filename.startswith(_PACKAGE):
            return
        module = code.co_filename.removeprefix(_PACKAGE)[1:]
        if event == "return" and self._stack:
            self._stack.pop()
        elif event == "call":
            self.modules[module] += 1
            self.functions[module, code.co_qualname] += 1
            takes = "messages" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            self.climbs += bool(takes and self._stack and self._stack[-1] != module)
            self._stack.append(module)
            self.deepest = max(self.deepest, len(self._stack))

    def lines(self) -> list[str]:
        """Return the figures."""
        names = Counter[str]()
        for (_, name), count in self.functions.items():
            names[name.rpartition(".")[2]] += count
        asked = ", ".join(f"{name} {names[name]}" for name in _COUNTED)
        return [
            f"modules {len(self.modules)}, functions {len(self.functions)}, "
            f"calls {self.functions.total()}, depth {self.deepest}, climbs {self.climbs}",
            f"entered: {asked}",
        ]


def conversation(turns: int) -> list[Message]:
    """Return a conversation in which each turn is one call and its result."""
    messages: list[Message] = [{"role": "user", "content": "Read the files."}]
    for i in range(turns):
        call = {"type": "tool_use", "id": f"c{i}", "name": "Read", "input": {"file_path": f"{i}"}}
        result = {"type": "tool_result", "tool_use_id": f"c{i}", "content": f"line {i}\n" * 20}
        messages.append({"role": "assistant", "content": [call]})
        messages.append({"role": "user", "content": [result]})
    return messages


def frames(session: Session, messages: Sequence[Message]) -> Frames:
    """Return what one `apply` runs through."""
    found = Frames()
    sys.setprofile(found)
    try:
        session.apply(messages)
    finally:
        sys.setprofile(None)
    return found


def main() -> None:
    """Print the figures of a quiet turn and of one with twenty new messages."""
    messages = conversation(40)
    with tempfile.TemporaryDirectory() as root:
        session = Session("coding-agent", root=root)
        for end in range(3, 42, 2):
            session.apply(messages[:end])
        for new in (2, 20):
            end += new
            found = frames(session, messages[:end])
            print(f"{new} new messages, no decision")
            print("".join(f"  {line}\n" for line in found.lines()), end="")
            if "--all" in sys.argv:
                for (module, name), count in found.functions.most_common():
                    print(f"    {count:5} {module}:{name}")


if __name__ == "__main__":
    main()
