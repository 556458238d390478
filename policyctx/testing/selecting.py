"""Which items a step means, such as `the first 2 Bash results`, and the fate of each.

The grammar, in which `[…]` may be left out:

    items    = "nothing" | ["only"] "messages" N {("," | "and") N} | quantity [position] noun
    quantity = "every" | "each" | "all" ["the"] [N] | ["only"] ["the"] [N] | ["only"] AMOUNT
    position = end N | N end | place {("," | "and") ["the"] place}
    place    = end | ORDINAL ["oldest" | "newest" | "last"] | ORDINAL ("to" | "-") ORDINAL
    end      = "first" | "oldest" | "last" | "newest"
    noun     = [state] [TOOL] type [ids] ["from" TOOL]

N and AMOUNT are written in digits or as a word from `one` to `ten`. A range of messages is written
like one of ordinals, in digits: `messages 1 to 4`.
"""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal

from policyctx.definitions.actions import BY_STATE, Action
from policyctx.definitions.items import BUILT_IN_TYPES, Item, PlainValue
from policyctx.errors import PolicyctxError, nearest
from policyctx.messages.shapes.block_texts import joined_text
from policyctx.messages.shapes.blocks import at
from policyctx.messages.sources import position_of
from policyctx.planning.decisions import Decision, ordinal
from policyctx.planning.plan import Plan
from policyctx.recipes import CompactResult, OffloadResult, OffloadResults
from policyctx.testing import kinds
from policyctx.testing.contents import Message, compact
from policyctx.testing.failures import OutcomeError, WordingError
from policyctx.testing.kinds import COUNT_WORD, KINDS, ORDINAL, Kind
from policyctx.turns.result import Result


@dataclass(frozen=True, slots=True)
class Returned:
    """The value that a public function returned, under the names that `Result` has.

    A single message or file is a list of one. Raises `WordingError` for a name that the value does
    not have.
    """

    value: OffloadResults | OffloadResult | CompactResult

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - what the value has
        if isinstance(self.value, OffloadResult) and name in {"messages", "files"}:
            return [getattr(self.value, name.removesuffix("s"))]
        if not hasattr(self.value, name):
            raise WordingError(f"{type(self.value).__name__} has no `{name}`")
        return getattr(self.value, name)


@dataclass(frozen=True, slots=True)
class TurnEvent:
    """One event: the list that went in, and what came of it."""

    kind: Literal["arrival", "model call", "plan", "compaction", "function"]
    given: Sequence[Message]
    """The very list that the policy was given."""
    before: Sequence[Message]
    """A deep copy of it, made before."""
    plan: Plan | None = None
    result: Result | None = None
    error: PolicyctxError | None = None
    returned: Returned | None = None
    """What a public function returned; it has no plan."""
    items: tuple[Item, ...] = ()
    """The items of a function's input."""

    @property
    def messages(self) -> Sequence[Message]:
        """What a model would be sent: as edited, or as given where nothing was."""
        outcome = self.result or self.returned
        return self.given if outcome is None else outcome.messages

    def place_of(self, message: int) -> int | None:
        """Return where a message of the list is now; None if it has left."""
        if self.result is not None:
            return position_of(self.result.source_ranges, message)
        if not self.is_compacted:
            return message
        same = (at for at, one in enumerate(self.messages) if one is self.given[message])
        return next(same, None)

    @property
    def is_compacted(self) -> bool:
        """Whether a public function replaced messages, so that others have new places."""
        value = self.returned.value if self.returned else None
        return isinstance(value, CompactResult) and value.compacted

    @property
    def fates(self) -> tuple["Fate", ...]:
        """What became of each item, in their order."""
        if self.plan is None:
            return tuple(Fate(self, item, None) for item in self.items)
        by_place = {(d.item.message, d.item.path): d for d in self.plan.decisions}
        found = [(item, by_place.get((item.message, item.path))) for item in self.plan.items]
        if self.kind == "arrival" and found[-1][0].message == len(self.given):
            # The first message is the call, which the session has found.
            found = [(i._replace(message=i.message - 1), d) for i, d in found if i.message]
        return tuple(Fate(self, item, decision) for item, decision in found)


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of one item; `decision` is None when no step looked at it."""

    turn: TurnEvent
    item: Item
    decision: Decision | None

    @property
    def code(self) -> str:
        """The reason's code."""
        return self.decision.reason.code if self.decision else ""

    @property
    def state(self) -> str:
        """`kept`, `offloaded`, `cleared`, `dropped`, `summarised`.

        A placeholder that an earlier turn left counts as what it stands for: offloaded. So does a
        content that a public function replaced.
        """
        if self.turn.returned is not None:
            if self.turn.is_compacted:
                is_there = self.turn.place_of(self.item.message) is not None
                return (Action.KEEP if is_there else Action.SUMMARISE).past
            seen = at(self.turn.messages[self.item.message], self.item.path)
            return Action.KEEP.past if seen == self.original else Action.OFFLOAD.past
        if self.decision is None:
            return Action.KEEP.past
        return Action.OFFLOAD.past if self.code == "placeholder" else self.decision.action.past

    @property
    def is_new(self) -> bool:
        """Was this decided now, and not in an earlier turn."""
        return self.decision is not None and self.code not in {"decided", "placeholder"}

    @property
    def original(self) -> PlainValue:
        """The content that the item had when it went in."""
        return at(self.turn.before[self.item.message], self.item.path)

    @property
    def original_text(self) -> str:
        """The original as it is saved: blocks are their texts joined, or their JSON."""
        original = self.original
        if isinstance(original, str):
            return original
        whole = compact(original)
        joined = joined_text(original) if isinstance(original, list) else None
        is_json = self.turn.returned is not None or self.item.text == whole
        return whole if joined is None or is_json else joined

    def __str__(self) -> str:
        """Return a line that tells the item, its state and why."""
        item = self.item
        name = item.type.replace("_", " ")
        if item.tool_use_id is not None:
            name += f' "{item.tool_use_id}"'
        source = f" of {item.tool}" if item.tool else ""
        where = f"{name}{source}, message {item.message + 1}, {len(item.text):,} characters"
        if self.decision is None:
            return f"{where}: {self.state}" + (", no step looked at it" if self.turn.plan else "")
        told = f"{where}: {self.state}, {self.decision.reason}"
        by = [f"step {self.decision.step}" if self.decision.step else "", self.decision.rule]
        return " · ".join([told, *filter(None, by)])


Run = tuple[int, int]
_NAME = KINDS["name"].regex
_COUNT = rf"(?:\d+|{COUNT_WORD})"
_END = "(?:first|oldest|last|newest)"
_TO = r"(?: to(?: the)? | ?[\u2013-] ?)"
_AND = "(?:, and |, | and )"
_PLACE = rf"(?:{ORDINAL}{_TO}{ORDINAL}|{ORDINAL} (?:oldest|newest|last)|{_END}|{ORDINAL})"
_POSITION = re.compile(
    rf"(?P<end>{_END}) (?P<count>{_COUNT})(?!\S)|(?P<number>{_COUNT}) (?P<side>{_END})(?!\S)"
    rf"|(?P<places>{_PLACE}(?:{_AND}(?:the )?{_PLACE})*)(?!\S)"
)
_QUANTITY = re.compile(r"(?:every|each|all(?: the)?|only(?: the)?|the)(?!\S)")
_AMOUNT = re.compile(rf"{KINDS['amount'].regex}(?!\S)")
_COUNTED = re.compile(rf"{_COUNT}(?!\S)")
_NOTHING = re.compile("(?!)")
# What may say how many, by the quantity before it.
_NUMBER_AFTER = {"": _AMOUNT, "only": _AMOUNT, "every": _NOTHING, "each": _NOTHING}
_NUMBER_AFTER |= dict.fromkeys(("all", "all the", "only the", "the"), _COUNTED)
_NEWEST = frozenset({"newest", "last"})
_NOUN = re.compile(
    rf"(?P<words>{_NAME}(?: {_NAME})*?)"
    rf"(?: (?P<ids>{KINDS['names'].regex}))?(?: from (?P<source>{_NAME}))?"
)
_NUMBERS = rf"\d+(?:{_TO}\d+)?"
_MESSAGES = re.compile(
    rf"(?P<only>only )?(?:the )?messages? (?P<numbers>{_NUMBERS}(?:{_AND}{_NUMBERS})*)"
)
_FAILING = re.compile(r"\b(fail|error|broken)", re.IGNORECASE)


def _about_failing(phrase: str) -> str:
    """Return how a step names a failed result, if a phrase seems to mean one."""
    if _FAILING.search(phrase) is None:
        return ""
    return '; a failed result has no word here: name it by its id, such as `the result "a"`'


# What is no tool unless it is quoted.
_NO_TOOL = re.compile(rf"\d[\d,.]*|{ORDINAL}|{_END}|and|to|the|{COUNT_WORD}")

_START = rf"(?!the files? )(?:nothing|every|each|all|only|the|messages?|{KINDS['amount'].regex})"
ITEMS = Kind(rf"{_START}(?: {KINDS['phrase'].regex})?", str, "which items, see below")
_ALIASES = {
    "result": "tool_result",
    "call": "tool_call",
    "system_message": "system_prompt",
    "thinking_block": "thinking",
    "summary": "compaction_summary",
}

EXAMPLES = (
    'the result "toolu_01abc"',
    'the results "a", "b" and "c"',
    'the 2nd result "twice"',
    "the last Bash result",
    "the 2nd newest Bash result",
    "the first 2 results",
    "the 3 newest Bash results",
    "the 1st, 3rd and 5th results",
    "the 2nd to 4th user messages",
    "every user message",
    "every offloaded item",
    "all 3 Bash results",
    "3 results",
    "at least 2 mcp__web__get results",
    "no item",
    "nothing",
    'only the results "a" and "b"',
    "only 2 results",
    "message 3",
    "messages 1 to 4",
    "messages 1, 3 and 5",
)


@dataclass(frozen=True, slots=True)
class Selection:
    """The items that a phrase means; what is None or empty selects all of them."""

    phrase: str
    amount: kinds.Amount | None = None
    """How many have the outcome; else all of them have it, and there is at least one."""
    only: bool = False
    """No other item has it."""
    is_one: bool = False
    """The phrase means one item."""
    count: int | None = None
    """How many such items there are."""
    runs: tuple[Run, ...] = ()
    """Only the items at these positions among those that match."""
    type: str | None = None
    tool: str | None = None
    state: str | None = None
    """`offloaded` and so on: only items of which that is so."""
    ids: tuple[str, ...] = ()
    messages: tuple[Run, ...] = ()
    """Only the items of these messages."""

    def matches(self, fate: Fate) -> bool:
        """Return whether this is one of the items; positions among them do not count."""
        item = fate.item
        return (
            (not self.messages or any(a <= item.message + 1 <= b for a, b in self.messages))
            and (self.type is None or self.type in (item.type, item.kind))
            and (self.tool is None or fnmatchcase(item.tool or "", self.tool))
            and (self.state is None or self.state == fate.state)
            and (not self.ids or item.tool_use_id in self.ids)
        )

    def require_tool(self, known: Collection[str]) -> None:
        """Raise `OutcomeError` when the phrase names a tool that is not among the known ones."""
        tool = self.tool
        if tool is None or any(fnmatchcase(name, tool) for name in known):
            return
        names = sorted(known)
        near = nearest(tool, names)
        hint = f"did you mean {near!r}? " if near else ""
        there = f"It has {', '.join(names)}" if names else "no tool is known: no call is in it"
        there += _about_failing(self.phrase)
        raise OutcomeError(self.phrase, f"no tool {tool!r} in the context; {hint}{there}")

    def among(self, fates: Sequence[Fate]) -> list[Fate]:
        """Return the selected items; raises `OutcomeError` when one that is named is missing."""
        found = [fate for fate in fates if self.matches(fate)]
        missing = set(self.ids) - {fate.item.tool_use_id for fate in found}
        there = max((len(fate.turn.before) for fate in fates), default=0)
        if any(last > there for _, last in self.messages):
            raise OutcomeError(self.phrase, f"only {there} messages", fates)
        if missing or (self.amount is None and not found):
            raise OutcomeError(self.phrase, "no such item in the context", fates)
        if self.count is not None and self.count != len(found):
            raise OutcomeError(self.phrase, f"{len(found)} of them", found)
        if self.is_one and len(found) > 1:
            raise OutcomeError(
                self.phrase,
                f"{len(found)} such items",
                found,
                because=f"Say which one, such as `the 2nd {self.phrase.removeprefix('the ')}`.",
            )
        return self._placed(found) if self.runs else found

    def _placed(self, found: list[Fate]) -> list[Fate]:
        there = len(found)
        if max(abs(end) for run in self.runs for end in run) > there:
            raise OutcomeError(self.phrase, f"only {there} of them", found)
        runs = [
            (first % (there + 1), last % (there + 1))  # -1 is the last of them
            for first, last in self.runs
        ]
        return [fate for i, fate in enumerate(found, 1) if any(a <= i <= b for a, b in runs)]

    def require(self, fates: Sequence[Fate], holds: Callable[[Fate], bool], outcome: str) -> None:
        """Raise `OutcomeError` unless the outcome holds for the items as the phrase says."""
        meant = self.among(fates)
        held = [fate for fate in meant if holds(fate)]
        if self.amount is not None:
            if not self.amount.holds_for(len(held)):
                found = f"{len(held):,}"
                why = _warnings(fates)
                raise OutcomeError(f"{self.phrase} {outcome}", found, meant, because=why)
        elif failing := [fate for fate in meant if fate not in held]:
            found = f"{len(held):,} of {len(meant):,}" if len(meant) > 1 else "0 of 1"
            why = _warnings(failing)
            raise OutcomeError(f"{self.phrase} {outcome}", found, failing, because=why)
        if not self.only:
            return
        if others := [fate for fate in fates if fate not in meant and holds(fate)]:
            found = f"{len(others):,} other{'s' * (len(others) != 1)} as well"
            raise OutcomeError(f"{self.phrase} {outcome}", found, others)


def _warnings(fates: Iterable[Fate]) -> str:
    """Return the warnings that were given when these items met their fate, in a line each."""
    results = (fate.turn.result for fate in fates)
    given = dict.fromkeys(text for result in results if result for text in result.warnings)
    return "\n".join(f"warning:  {text}" for text in given)


def selection(phrase: str, types: Iterable[str] = ()) -> Selection:
    """Read a phrase such as those of `EXAMPLES`; `types` are those that the policy adds.

    Raises `WordingError`, which lists the examples or the known types, when it cannot be read.
    """
    if match := _MESSAGES.fullmatch(phrase):
        return Selection(phrase, only=bool(match["only"]), messages=_runs(match["numbers"], phrase))
    if phrase == "nothing":
        return Selection(phrase, amount=kinds.Amount(0))
    return _Reader(phrase, phrase).selection({*BUILT_IN_TYPES, *types})


@dataclass(slots=True)
class _Reader:
    """Reads a phrase from its beginning; `rest` is what is left of it."""

    phrase: str
    rest: str

    def selection(self, types: set[str]) -> Selection:
        """Return what the phrase means; raises `WordingError`."""
        quantity = self._take(_QUANTITY)
        counted = "" if _POSITION.match(self.rest) else self._take(_NUMBER_AFTER[quantity])
        place = _POSITION.match(self.rest)
        if place and (counted or quantity in {"every", "each"}):
            raise self._wrong("write `the` or `only the` before a position")
        runs = () if place is None else _runs_at(place, self.phrase)
        self._take(_POSITION)
        noun = _NOUN.fullmatch(self.rest)
        if noun is None:
            raise self._unreadable()
        state, type_, tool = self._kind(re.findall(_NAME, noun["words"]), types)
        is_plural = noun["words"].endswith("s") and noun["words"] not in types
        if place and place["places"] and len(runs) == 1 and len(set(runs[0])) == 1 and is_plural:
            raise self._wrong(f"say how many, such as `the last 2 {noun['words']}`")
        is_amount = quantity in {"", "only"} and counted
        return Selection(
            self.phrase,
            amount=kinds.amount(counted) if is_amount else None,
            only=quantity.startswith("only"),
            is_one=quantity in {"the", "only the"} and not (runs or counted or is_plural),
            count=int(kinds.count(counted)) if counted and not is_amount else None,
            runs=runs,
            type=type_,
            tool=kinds.unquoted(noun["source"]) if noun["source"] else tool,
            state=state,
            ids=kinds.quoted_texts(noun["ids"] or ""),
        )

    def _take(self, pattern: re.Pattern[str]) -> str:
        """Take what matches off the beginning; empty when nothing does."""
        match = pattern.match(self.rest)
        if match is None:
            return ""
        self.rest = self.rest[match.end() :].lstrip()
        return match[0]

    def _kind(self, words: list[str], types: set[str]) -> tuple[str | None, str | None, str | None]:
        """Return the state, the item type and the tool of `kept Bash result`, `user messages`."""
        state = words.pop(0) if words[0] in BY_STATE and len(words) > 1 else None
        for start in range(min(2, len(words))):
            name = "_".join(words[start:])
            tool = kinds.unquoted(words[0]) if start else None
            if tool == words[0] and _NO_TOOL.fullmatch(tool):
                raise self._unreadable()
            for form in (name, name.removesuffix("s")):
                known = _ALIASES.get(form, form)
                if known in types or known == "item":
                    return state, None if known == "item" else known, tool
        if _NO_TOOL.fullmatch(words[0]):
            raise self._unreadable()
        raise self._wrong(
            f"no items are called {' '.join(words)!r}; there are items, results, calls,"
            f" {', '.join(sorted(t.replace('_', ' ') for t in types))}{_about_failing(self.phrase)}"
        )

    def _wrong(self, reason: str) -> WordingError:
        return WordingError(f"{self.phrase!r}: {reason}")

    def _unreadable(self) -> WordingError:
        examples = "\n  ".join(EXAMPLES)
        return WordingError(f"{self.phrase!r} names no items; it is written\n  {examples}")


def _runs_at(position: re.Match[str], phrase: str) -> tuple[Run, ...]:
    """Return the runs that a position means: `first 2`, `1st, 3rd and 5th`."""
    if position["places"]:
        return _runs(position["places"], phrase)
    number = int(kinds.count(position["count"] or position["number"]))
    is_newest = (position["end"] or position["side"]) in _NEWEST
    return (_checked((-number, -1) if is_newest else (1, number), phrase),)


def _runs(places: str, phrase: str) -> tuple[Run, ...]:
    """Return the runs of a list of places: `1st, 3rd to 5th and last`, or `1, 3 to 5`."""
    runs = []
    for place in re.split(_AND, places):
        ends = [_place(end, phrase) for end in re.split(_TO, place.removeprefix("the "))]
        runs.append(_checked((ends[0], ends[-1]), phrase))
    return tuple(runs)


def _place(words: str, phrase: str) -> int:
    """Return the position of `2`, `2nd`, `second`, `last` or `2nd newest`.

    Raises `WordingError` for an ordinal with the ending of another one, such as `2st`.
    """
    number, _, side = words.partition(" ")
    position = kinds.position(number)
    right = ordinal(position)
    if number[:1].isdecimal() and number not in {str(position), right}:
        raise WordingError(f"{phrase!r}: write `{right}` instead of `{number}`")
    return -position if (side or number) in _NEWEST else position


def _checked(run: Run, phrase: str) -> Run:
    if 0 in run:
        raise WordingError(f"{phrase!r}: positions begin at 1")
    if run[0] > run[1]:
        raise WordingError(f"{phrase!r}: the range runs backwards")
    return run
