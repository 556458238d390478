"""One fixed session that uses every kind of line and file that a store keeps.

`tests/store/written_by_0_1` holds the folders that policyctx 0.1.0 (commit c3be02e) wrote:

- `text` and `envelope`: the first twenty turns of the session, in a root that sessions share. The
  JSON file beside each holds the contents, the list of messages that turn 20 returned, and the
  lists that 0.1.0 returned for the turns after a restart.
- `alone`: a store that owns its root, after `collect` removed some contents and packed others, and
  what `export` wrote of it.

To write the same folders with another version, run in a checkout of it:

    python -m tests.store.playing FOLDER

All texts are synthetic. The roots lie below /tmp/policyctx-0.1, so that the paths in old
placeholders are known.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from policyctx import Session
from policyctx.definitions.items import Message
from policyctx.store.filesystem import ContextFileSystem
from tests.conversations import call, results, user
from tests.policies import policy
from tests.store.contents import result

MADE_IN = Path("/tmp/policyctx-0.1")  # noqa: S108 - a name, so that placeholders are known
FORMS = ("text", "envelope")
TURNS_MADE, TURNS = 20, 25

_POLICY = """
    model: {{tokenizer: approximate, context_window: 40000}}
    min_tokens: 50
    store: {{sync: never, format: {form}, compress: zstd}}
    compaction: {{keep_recent: {{messages: 4}}, archive: true}}
    items: {{tool_result: {{offload: true}}}}
    steps:
      - {{name: forget, do: drop, when: {{idle: {{over: 5m}}}},
          select: {{types: [tool_result], tools: [Glob], keep_recent: 1, min_tokens: 0}}}}
      - {{name: tidy, do: clear, select: {{types: [tool_result], tools: [Grep], keep_recent: 1}}}}
      - {{name: retire, do: offload, select: {{types: [tool_result], keep_recent: 3}},
          placeholder: {wording}}}
      - {{name: summarise, do: compact, when: {{messages: {{over: 24}}}}}}
"""
# The default of 0.1.
_WORDING = r'"[Content offloaded]\nPath: {path}\nUse Read tool to view details."'
_TOOLS = ("Read", "Bash", "Glob", "Grep")


class Clock:
    """A minute passes with each turn, and ten with every sixth."""

    def __init__(self) -> None:
        self.turn = 0

    def __call__(self) -> float:
        return 1_700_000_000.0 + 60 * self.turn + 600 * (self.turn // 6)


def session(form: str, root: Path, clock: Clock) -> Session:
    """Return a session under the policy of this test, in a folder."""
    return Session(
        policy(_POLICY.format(form=form, wording=_WORDING)),
        root=root,
        session_id="old",
        clock=clock,
        summarizer=lambda request: f"A summary of {len(request.history.messages)} messages.",
    )


def conversation(turns: int) -> list[Message]:
    """Return the messages before the model call of a turn; one id is used twice."""
    messages = [user("the task, \ud800 读")]
    for i in range(turns):
        tool = _TOOLS[i % 4]
        call_id = f"call_{i if i != 9 else 5}"
        text = f"line of {tool} {i} " * 20 if i % 7 else "the same text in several results " * 10
        messages += [call(call_id, tool, {"n": i}), results((call_id, f"{text}\n读\r\n"))]
    return messages


def played(one: Session, clock: Clock, turns: range) -> list[list[Message]]:
    """Apply the policy in each of these turns, and return every list that came of it."""
    made = []
    for turn in turns:
        clock.turn = turn
        result = one.apply(conversation(turn))
        assert result.warnings == (), result.warnings
        one.observe({"input_tokens": 900 + 150 * turn, "output_tokens": 20})
        made.append(list(result.messages))
    return made


def written_alone(root: Path) -> ContextFileSystem:
    """Write a store that owns its root, and collect: some contents are removed, some packed."""
    times = iter(range(1_700_000_000, 1_800_000_000, 36_000))
    store = ContextFileSystem(root, format="envelope", sync="never", clock=lambda: next(times))
    for i in range(40):
        contents = [result(f"call_{i // 2}", f"result {i} " * (150 if i % 5 == 0 else 5))]
        [file] = store.save(contents, recorded=True)
        state = "dropped" if i % 3 else "offloaded"
        store.remember([{"item_id": f"call_{i // 2}", "path": file.relative_path, "state": state}])
    store.collect(max_age=1_200_000)
    return store


def contents_of(store: ContextFileSystem) -> dict[str, str]:
    """Return every text by the path of its file below the root."""
    return {entry.path: store.read(entry.path) for entry in store.list()}


def main() -> None:
    folder = Path(sys.argv[1])
    shutil.rmtree(MADE_IN, ignore_errors=True)
    alone = written_alone(MADE_IN / "alone")
    shutil.copytree(MADE_IN / "alone", folder / "alone")
    alone.export(folder / "alone.tar.zst")
    _write(folder / "alone.json", {"contents": contents_of(alone)})
    for form in FORMS:
        root, clock = MADE_IN / form, Clock()
        one = session(form, root, clock)
        before = played(one, clock, range(1, TURNS_MADE + 1))
        assert isinstance(one.store, ContextFileSystem)
        contents = contents_of(one.store)
        shutil.copytree(root, folder / form)
        after = played(session(form, root, clock), clock, range(TURNS_MADE, TURNS + 1))
        found = {"contents": contents, "before": before[-1], "after": after}
        _write(folder / f"{form}.json", found)
    for lock in folder.rglob("lock"):
        lock.unlink()
    shutil.rmtree(MADE_IN)


def _write(path: Path, found: dict[str, Any]) -> None:
    path.write_text(f"{json.dumps(found, indent=1)}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
