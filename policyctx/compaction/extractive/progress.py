"""The state of the work, and the facts in results that were used afterwards.

A fact is a line of a result whose exact value the user, the agent or a later call repeats. Values
that occur in many results are not facts; paths are reported as files instead.
"""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import islice
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from policyctx.compaction.extractive.digest import Statement
from policyctx.compaction.extractive.revisions import references_to, subject_words
from policyctx.compaction.extractive.sentences import one_line, shortened, words_of
from policyctx.compaction.extractive.statements import AGENT, PATH, PROGRAM, USER, values_in
from policyctx.tokens.words import words_in

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from policyctx.compaction.extractive.cues import Cues
    from policyctx.compaction.extractive.digest import Digest
    from policyctx.compaction.extractive.statements import Said, Value
    from policyctx.compaction.extractive.work import Call
    from policyctx.definitions.items import Item

_LAST_CALLS, _LAST_SENTENCES, _LAST_PLANS, _MOST_OPEN = 3, 2, 3, 30
# Replies looked back at for a plan.
_LOOKED_BACK = 3
_LONGEST = 300
_CHECKBOX = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+\[([ xX~/-])\]\s+(\S.*)$", re.MULTILINE)
# The shares of a task's words with which it is known again: in what is said of a task of an earlier
# summary, of one of a list that the agent keeps, and in a command.
_SAME_TASK, _SAME_LISTED, _SAME_COMMAND = 1 / 3, 1 / 2, 1 / 2
_NUMBERS = re.compile(r"\d+ ?")
_CLAUSE_END = re.compile(r"[,;.!?，。；！？]")
# What is around the words of a task.
_AROUND = " -*_([\"'"
# Sentences behind an announcement in one message with which it is carried out.
_CARRIED_OUT = 4
_SAYING = ("user_message", "assistant_message")
# How a sentence ends that announces the call beside it.
_LEADS_TO_CALL = (":", "：")
# How a task is marked that is being worked on.
_ACTIVE = " (in progress)"

Task: TypeAlias = Literal["open", "active", "closed"]
_CLOSED: Task = "closed"


class Status(NamedTuple):
    """Where the work stands."""

    done: tuple[Statement, ...]
    next: tuple[Statement, ...]
    open: tuple[Statement, ...]


def status_of(
    earlier: Digest, items: Sequence[Item], said: Sequence[Said], calls: Sequence[Call], cues: Cues
) -> Status:
    """Return where the work stands; as an earlier summary says it while nothing was done since.

    What an earlier summary announced and nothing since speaks of stays open, for one summary. What
    it had as open stays while the user says nothing new, or something since is about its list.
    """
    by_agent = [one for one in said if one.speaker == AGENT and not one.pasted]
    by_user = [one for one in said if one.speaker == USER and not one.pasted]
    listed = _listed(items, calls, cues)
    listed = {
        text: task if task.state == _CLOSED else task._replace(state=_since(text, task, said, cues))
        for text, task in listed.items()
    }
    open_before = [
        one
        for one in earlier.open
        if not cues.continuations.found_in(one.text)
        and not cues.nothing_open.match(one.text.casefold().strip(_AROUND))
        and not _is_finished(one.text, by_agent, calls, cues)
        and not _is_withdrawn(one.text, by_user, cues)
    ]
    if _all_done(by_agent, cues) or (by_user and not _goes_on(earlier.open, said, calls, cues)):
        open_before = []
    done, announced = earlier.done, earlier.next
    if by_agent or calls:
        # What the agent announced before it went on itself, it did.
        is_left = bool(items) and items[0].kind == "user_message" and items[0].author != PROGRAM
        open_before += [
            one
            for one in earlier.next
            if (is_left or cues.unfinished.found_in(one.text))
            and not one.text.endswith(_LEADS_TO_CALL)
            and not cues.task_lists.found_in(one.text)
            and not _spoken_of(one.text, said, calls, cues)
        ]
        announced = _announced(
            [one for one in by_agent if not _is_housekeeping(one.text, cues)],
            {call.message for call in calls},
        )
        done = _done(by_agent, calls, announced)
    tasks = {one.text.removesuffix(_ACTIVE): one for one in open_before}
    tasks = {text: one for text, one in tasks.items() if text not in listed}
    states = {text: task.state for text, task in listed.items()}
    tasks |= {text: Statement(text + _ACTIVE) for text, one in states.items() if one == "active"}
    tasks |= {text: Statement(text) for text, one in states.items() if one == "open"}
    planned = {one.text for one in announced}
    left = [one for text, one in tasks.items() if text not in planned]
    active = [one for one in left if one.text.endswith(_ACTIVE)]
    others = [one for one in left if not one.text.endswith(_ACTIVE)]
    return Status(done, announced, (*active, *others)[:_MOST_OPEN])


def _since(text: str, task: _Listed, said: Iterable[Said], cues: Cues) -> Task:
    """Return how far a task of a list is by what was said after its list."""
    later = [one for one in said if one.message > task.message and not one.pasted]
    by_agent = [one for one in later if one.speaker == AGENT]
    told = (one.text for one in by_agent if _tells_end(one.text, cues))
    done = _is_in(subject_words(text, cues), told, _SAME_LISTED, cues) or _all_done(by_agent, cues)
    by_user = [one for one in later if one.speaker == USER]
    return _CLOSED if done or _is_withdrawn(text, by_user, cues) else task.state


def _all_done(said: Iterable[Said], cues: Cues) -> bool:
    """Whether the agent says that all tasks are done."""
    return any(
        _tells_end(one.text, cues)
        and cues.all_tasks.found_in(_NUMBERS.sub("", one.text))
        and not cues.negations.found_in(one.text)
        for one in said
    )


def _tells_end(text: str, cues: Cues) -> bool:
    """Whether a sentence says that something is done, or mended, and nothing is left of it."""
    ends = cues.finished.found_in(text) or cues.remedies.found_in(text)
    return ends and not cues.unfinished.found_in(text)


def _is_withdrawn(text: str, by_user: Iterable[Said], cues: Cues) -> bool:
    """Whether the user took a task back: the words have half of its own, or all theirs are its."""
    words = subject_words(text.removesuffix(_ACTIVE), cues)
    for one in by_user:
        if not words or len(one.text) > _LONGEST or not cues.withdrawals.found_in(one.text):
            continue
        for clause in _CLAUSE_END.split(one.text):
            if cues.withdrawals.found_in(clause):
                theirs = subject_words(cues.withdrawals.words.sub(" ", clause.casefold()), cues)
                common = len(words & theirs)
                if common and (common >= _SAME_COMMAND * len(words) or common == len(theirs)):
                    return True
    return False


def _goes_on(
    earlier: Sequence[Statement], said: Sequence[Said], calls: Sequence[Call], cues: Cues
) -> bool:
    """Whether anything new is about one of the tasks that an earlier summary has as open.

    It has an exact value of the task, or words of it.
    """
    named = {value.text for one in earlier for value in values_in(one.text)}
    named = {text for text in named if len(text) >= _SHORTEST}
    if any(value.text in named for one in said for value in one.values):
        return True
    return any(_spoken_of(one.text.removesuffix(_ACTIVE), said, calls, cues) for one in earlier)


def _is_housekeeping(text: str, cues: Cues) -> bool:
    """Whether a sentence is about the session, or its list of tasks, and not about the work."""
    return cues.continuations.found_in(text) or cues.task_lists.found_in(text)


def _announced(said: Sequence[Said], calling: Container[int]) -> tuple[Statement, ...]:
    """Return what the agent's last replies announce.

    What a reply before the last announces beside a call, it does with that call.
    """
    recent = sorted({one.message for one in said})[-_LOOKED_BACK:]
    for message in reversed(recent):
        together = [one for one in said if one.message == message]
        plans = [
            Statement(one.text, source=message)
            for left, one in zip(range(len(together) - 1, -1, -1), together, strict=True)
            if one.plans and left <= _CARRIED_OUT
        ]
        if plans and (message == recent[-1] or message not in calling):
            return tuple(plans[-_LAST_PLANS:])
    return ()


def _done(
    said: Sequence[Said], calls: Sequence[Call], announced: Sequence[Statement]
) -> tuple[Statement, ...]:
    """Return the last calls, and the last that the agent said of what it did, in order."""
    planned = {one.text for one in announced}
    told = [
        (one.message, one.text) for one in said[-20:] if one.text not in planned and not one.leads
    ]
    lines = told[-_LAST_SENTENCES:]
    # A list of tasks is shown by what is open.
    for call in [call for call in calls if '"status"' not in call.text][-_LAST_CALLS:]:
        how = " (failed)" if call.failed else " (no answer yet)" if call.result is None else ""
        lines.append((call.message, f"{call.name}{how}"))
    lines.sort(key=lambda line: line[0])
    done = {shortened(one_line(text), _LONGEST): message for message, text in lines}
    return tuple(Statement(text, source=message) for text, message in done.items())


def _spoken_of(text: str, said: Iterable[Said], calls: Iterable[Call], cues: Cues) -> bool:
    """Whether anything later is about the same thing: a third of the words come in one message."""
    words = subject_words(text, cues)
    if not words:
        return True
    messages: dict[int, list[str]] = {}
    for one in said:
        messages.setdefault(one.message, []).append(one.text)
    later = [" ".join(texts) for texts in messages.values()] + [call.name for call in calls]
    return any(len(words & subject_words(one, cues)) >= _SAME_TASK * len(words) for one in later)


def _is_finished(text: str, said: Sequence[Said], calls: Sequence[Call], cues: Cues) -> bool:
    """Whether a thing was done later.

    The agent said so with a third of its words, or ran a command with half of them.
    """
    words = subject_words(text.removesuffix(_ACTIVE), cues)
    if not words:
        return False
    told = (one.text for one in said if _tells_end(one.text, cues))
    ran = (call.command for call in calls if call.command is not None and not call.failed)
    return _is_in(words, told, _SAME_TASK, cues) or _is_in(words, ran, _SAME_COMMAND, cues)


def _is_in(words: frozenset[str], texts: Iterable[str], share: float, cues: Cues) -> bool:
    """Whether one of the texts has such a share of the words, of which there are some."""
    return bool(words) and any(
        len(words & subject_words(one, cues)) >= share * len(words) for one in texts
    )


class _Listed(NamedTuple):
    """How far a task of a list is, and the message that has the list."""

    state: Task
    message: int


def _listed(items: Iterable[Item], calls: Iterable[Call], cues: Cues) -> dict[str, _Listed]:
    """Return the tasks of the lists that were kept, each with how far it is.

    A list is what a call gives as objects with a `status`, of which the newest of each tool counts,
    or lines with a box to tick.
    """
    lists: dict[str, dict[str, _Listed]] = {}
    for call in calls:
        if '"status"' in call.text and (tasks := _tasks_in(call.fields, cues)):
            before = lists.get(call.tool, {})
            # What the agent has taken off its list is no longer open, but closes what it was.
            states = {**dict.fromkeys(before, _CLOSED), **tasks}
            lists[call.tool] = {text: _Listed(one, call.message) for text, one in states.items()}
    listed: dict[str, _Listed] = {}
    for found in lists.values():
        listed |= found
    for item in items:
        if item.kind in _SAYING and item.author != PROGRAM and "[" in item.text:
            for box, text in _CHECKBOX.findall(item.text):
                state: Task = "open" if box in " ~/-" else "closed"
                listed[shortened(one_line(text), _LONGEST)] = _Listed(state, item.message)
    return listed


def _tasks_in(fields: Mapping[str, object], cues: Cues) -> dict[str, Task]:
    tasks: dict[str, Task] = {}
    for value in fields.values():
        for entry in value if isinstance(value, list) else ():
            status = entry.get("status") if isinstance(entry, dict) else None
            if isinstance(status, str):
                told = [v for k, v in entry.items() if isinstance(v, str) and k != "status"]
                if text := shortened(one_line(max(told, key=len, default="")), _LONGEST):
                    tasks[text] = _state(status, cues)
    return tasks


def _state(status: str, cues: Cues) -> Task:
    if cues.finished.found_in(status):
        return "closed"
    return "active" if cues.active.found_in(status) else "open"


_TOKEN = re.compile(r"[A-Za-z0-9_#$€£¥][A-Za-z0-9_.:@$%,#+-]*[A-Za-z0-9_%]")
# How a line of code ends, or what only code holds: a file's lines can be read again.
_CODE = re.compile(r"[;{(]\s*$|\)\s*:?$|\w\(\w*\)|->|::|/\*|^\s*\d+\s*[→|:]")
_LIKE_CODE = 2.0
# What a line weighs by who spoke of its value.
_BY_USER, _BY_AGENT, _BY_CALL = 3.0, 2.0, 1.0
# A date in a document: what nobody spoke of yet may still bind.
_DATED = 0.5
_LONGEST_DOCUMENT, _MOST_DATED, _LEAST_WORDS = 4_000, 3, 4
_MONTH = (
    r"(?:jan|f[eé]v|feb|m[aä]r|apr|avr|abr|ma[iy]|jui?n|jui?l|ao[uû]t|aug|sep|o[ck]t|nov|d[eé][cz])"
    r"[a-zé]{0,7}\.?"
)
_DATE = re.compile(
    rf"(?:\b\d{{1,2}}\.? {_MONTH}|\b{_MONTH} \d{{1,2}}\b|\b20\d\d-\d\d-\d\d\b"
    r"|\d{1,2} ?月 ?\d{1,2} ?[日号])(?![T ]?\d)",
    re.IGNORECASE,
)
_SHORTEST = 3
# A value that occurs in more results than this is not a fact.
_MOST_RESULTS = 3
# Characters around a value where its line is longer than both together.
_BEFORE, _AFTER = 90, 110
_MOST_FOUND = 40
# Of a result only so much at each end is looked through: enough for any that a model was shown.
_MOST_READ = 1_000_000


def findings_of(
    results: Sequence[Item], said: Sequence[Said], calls: Iterable[Call], cues: Cues
) -> list[Statement]:
    """Return the lines of results that matter, the oldest first, those of most weight only."""
    mentions = _mentions(said, calls)
    found: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for item in results:
        text = words_of(item.text)[:_MOST_READ]
        for token in mentions.keys() & set(_TOKEN.findall(text)):
            if mentions[token][0] > item.message:
                places = found[token]
                if len(places) <= _MOST_RESULTS:
                    places.append((item.message, _line_with(text, token)))
    weights: dict[tuple[int, str], float] = defaultdict(float)
    for token, places in found.items():
        if len(places) <= _MOST_RESULTS:
            weights[places[-1]] += mentions[token][1]
    for reference in references_to(results, said, cues):
        weight = _BY_USER if reference.by_user else _BY_AGENT
        weights[reference.message, reference.line] += weight / 2
    for dated in _dated(results):
        weights[dated] += _DATED
    for place in weights:
        weights[place] -= _LIKE_CODE if _CODE.search(place[1]) else 0
    worth = (place for place in weights if weights[place] > 0)
    heaviest = sorted(worth, key=lambda place: (-weights[place], -place[0], place[1]))[:_MOST_FOUND]
    return [Statement(line) for _, line in sorted(heaviest)]


def _dated(results: Iterable[Item]) -> Iterator[tuple[int, str]]:
    """Yield the lines of short documents that state a date, such as a deadline, with their place.

    A date with a time of day beside it is when something was logged.
    """
    for item in results:
        text = words_of(item.text)
        if len(text) <= _LONGEST_DOCUMENT and _DATE.search(text):
            lines = (line for line in text.split("\n") if _DATE.search(line))
            said = (line for line in lines if words_in(line) >= _LEAST_WORDS)
            yield from ((item.message, _shown(line)) for line in islice(said, _MOST_DATED))


def _shown(line: str) -> str:
    return shortened(one_line(line), _LONGEST)


def _mentions(said: Sequence[Said], calls: Iterable[Call]) -> Mapping[str, tuple[int, float]]:
    """Return by value the last message that names it, and its weight: more by the user's words."""
    mentions: dict[str, tuple[int, float]] = {}

    def mention(values: Iterable[Value], message: int, weight: float) -> None:
        for value in values:
            word = value.text
            if value.kind != PATH and len(word) >= _SHORTEST and any(map(str.isdigit, word)):
                _, before = mentions.get(word, (0, 0.0))
                mentions[word] = (message, max(weight, before))

    for one in said:
        mention(one.values, one.message, _BY_USER if one.speaker == USER else _BY_AGENT)
    longest = 80
    for call in calls:
        for given in call.fields.values():
            if isinstance(given, str) and len(given) <= longest:
                mention(values_in(given), call.message, _BY_CALL)
    return mentions


def _line_with(text: str, token: str) -> str:
    """Return the line that a value is in; of a long one what is around the value."""
    at = text.find(token)
    start = max(text.rfind("\n", 0, at) + 1, at - _BEFORE)
    end = text.find("\n", at)
    end = min(len(text) if end < 0 else end, at + len(token) + _AFTER)
    return one_line(text[start:end])
