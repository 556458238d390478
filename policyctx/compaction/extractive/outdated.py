"""What an earlier summary says and later events contradict.

A file that was removed or renamed since takes the lines along that are about it alone. A problem
takes its line along when the agent says that it is solved. A short errand of the user, such as
"commit", stays with a note once a command with its words succeeded; it then ranks behind all that
is still to do. Nothing else that the user said is touched.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from policyctx.compaction.extractive.revisions import subject_words
from policyctx.compaction.extractive.sentences import one_line, shortened
from policyctx.compaction.extractive.statements import AGENT, PATH, values_in
from policyctx.compaction.extractive.work import files_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from policyctx.compaction.assembly import PathFields
    from policyctx.compaction.extractive.cues import Cues
    from policyctx.compaction.extractive.digest import Digest, Statement
    from policyctx.compaction.extractive.statements import Said
    from policyctx.compaction.extractive.work import Call

_GONE = ("deleted", "moved")
# The share of the words of a line that tells of a problem, or of an errand, that must come again.
_SAME = 1 / 2
# Words of a line that says enough to be known again, and of an errand.
_LEAST_WORDS, _LONGEST_ERRAND = 2, 7
_LONGEST_NOTE = 60


def up_to_date(
    earlier: Digest,
    calls: Sequence[Call],
    said: Sequence[Said],
    reads_file: Mapping[str, PathFields],
    cues: Cues,
) -> Digest:
    """Return an earlier digest without what the calls, and the agent's words, contradict."""
    if not calls and not said:
        return earlier
    files = files_of((), calls, reads_file)
    gone = [file.path.removeprefix("./") for file in files if file.last in _GONE]
    solved = [
        subject_words(one.text, cues)
        for one in said
        if one.speaker == AGENT and cues.remedies.found_in(one.text)
    ]

    def holds(one: Statement) -> bool:
        return not (_is_about(one.text, gone) or _is_solved(one.text, solved, cues))

    return replace(
        earlier,
        told=tuple(_carried_out(one, calls, cues) for one in earlier.told),
        agent=tuple(filter(holds, earlier.agent)),
        found=tuple(one for one in earlier.found if not _is_about(one.text, gone)),
        carried=tuple(filter(holds, earlier.carried)),
        edits=tuple(one for one in earlier.edits if not _is_about(one.text, gone)),
        next=tuple(filter(holds, earlier.next)),
        open=tuple(filter(holds, earlier.open)),
    )


def _is_about(text: str, gone: Sequence[str]) -> bool:
    """Whether all files that a text names are gone, and it names one."""
    paths = [value.text for value in values_in(text) if value.kind == PATH] if gone else []
    return bool(paths) and all(any(_is_one(path, other) for other in gone) for path in paths)


def _is_one(path: str, other: str) -> bool:
    path = path.removeprefix("./")
    return path == other or path.endswith(f"/{other}") or other.endswith(f"/{path}")


def _is_solved(text: str, solved: Sequence[frozenset[str]], cues: Cues) -> bool:
    """Whether a text tells of a problem that later words with half of its own say is solved."""
    if not solved or cues.remedies.found_in(text):
        return False
    if not (cues.setbacks.found_in(text) or cues.failures.search(text)):
        return False
    words = subject_words(text, cues)
    return len(words) >= _LEAST_WORDS and any(
        len(words & one) >= _SAME * len(words) for one in solved
    )


def _carried_out(one: Statement, calls: Sequence[Call], cues: Cues) -> Statement:
    """Return a statement, a short errand with the command by which it was carried out."""
    text = one.text
    is_short = text.isascii() and len(text.split()) <= _LONGEST_ERRAND and not values_in(text)
    if one.done or not is_short or text.endswith("?"):
        return one
    binds = cues.orders.count_in(text) > cues.errands.count_in(text) or cues.wishes.found_in(text)
    words = subject_words(text, cues)
    if binds or not words:
        return one
    for call in reversed(calls):
        command = call.command
        if command is None or call.failed or call.result is None:
            continue
        if len(words & subject_words(command, cues)) > _SAME * len(words):
            return one._replace(done=shortened(one_line(command), _LONGEST_NOTE))
    return one
