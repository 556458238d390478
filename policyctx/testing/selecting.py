"""Which items a step speaks of: `the 2nd Bash result "a"`, `every user message`, `3 results`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from policyctx.policy.models.rules import BUILT_IN_TYPES
from policyctx.testing.failures import OutcomeError, WordingError
from policyctx.testing.fates import STATES, Fate
from policyctx.testing.kinds import KINDS, Amount, Kind, amount, quoted_texts, unquoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


_ORDINALS = {"first": 0, "oldest": 0, "second": 1, "third": 2, "last": -1, "newest": -1}
_PHRASE = re.compile(
    rf"(?P<quantity>nothing|every|each|all(?: the)?|only(?: the)?|the|{KINDS['amount'].regex})?"
    rf"(?:(?:^| )(?P<ordinal>{'|'.join(_ORDINALS)}|\d+(?:st|nd|rd|th)))?"
    rf"(?:(?:^| )(?P<words>[^\"]*?))?"
    rf"(?: (?P<ids>{KINDS['names'].regex}))?"
    rf"(?: from (?P<source>{KINDS['name'].regex}))?"
)
_START = rf"(?!the files? )(?:nothing|every|each|all|only|the|messages?|{KINDS['amount'].regex})"
ITEMS = Kind(rf"{_START}(?: {KINDS['phrase'].regex})?", str, "which items, see below")
_MESSAGES = re.compile(r"(?P<only>only )?messages? (?P<first>\d+)(?: to (?P<last>\d+))?")
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
    "every user message",
    "every offloaded item",
    "3 results",
    "at least 2 mcp__web__get results",
    "no item",
    "nothing",
    'only the results "a" and "b"',
    "message 3",
    "messages 1 to 4",
)


@dataclass(frozen=True, slots=True)
class Selection:
    """The items that a phrase speaks of; what is None or empty leaves all of them."""

    phrase: str
    amount: Amount | None = None
    """How many are to have the outcome; else all of them, and there is one at least."""
    only: bool = False
    """No other item has it."""
    is_one: bool = False
    """The phrase means one item."""
    ordinal: int | None = None
    type: str | None = None
    tool: str | None = None
    state: str | None = None
    """`offloaded` and so on: only items of which that is so."""
    ids: tuple[str, ...] = ()
    positions: range | None = None

    def matches(self, fate: Fate) -> bool:
        """Is this one of the items, their order apart."""
        item = fate.item
        return (
            (self.positions is None or item.message + 1 in self.positions)
            and (self.type is None or self.type in (item.type, item.kind))
            and (self.tool is None or fnmatchcase(item.tool or "", self.tool))
            and (self.state is None or self.state == fate.state)
            and (not self.ids or item.tool_use_id in self.ids)
        )

    def among(self, fates: Sequence[Fate]) -> list[Fate]:
        """Return the items that are meant; raises `OutcomeError` when one named is not there."""
        found = [fate for fate in fates if self.matches(fate)]
        if self.amount is not None:
            return found
        missing = set(self.ids) - {fate.item.tool_use_id for fate in found}
        if not found or missing:
            raise OutcomeError(self.phrase, "no such item in the context", fates)
        if self.ordinal is not None:
            if not -1 <= self.ordinal < len(found):
                raise OutcomeError(self.phrase, f"only {len(found)} of them", found)
            return [found[self.ordinal]]
        if self.is_one and len(found) > 1 and self.positions is None:
            raise OutcomeError(
                self.phrase,
                f"{len(found)} such items",
                found,
                because=f"Say which one, such as `the 2nd {self.phrase.removeprefix('the ')}`.",
            )
        return found

    def require(self, fates: Sequence[Fate], holds: Callable[[Fate], bool], outcome: str) -> None:
        """Raise `OutcomeError` unless the outcome holds for the items as the phrase says."""
        meant = self.among(fates)
        held = [fate for fate in meant if holds(fate)]
        if self.amount is not None:
            if not self.amount.holds_for(len(held)):
                raise OutcomeError(f"{self.phrase} {outcome}", f"{len(held):,}", meant)
            return
        if failing := [fate for fate in meant if fate not in held]:
            found = f"{len(held):,} of {len(meant):,}" if len(meant) > 1 else "not so"
            raise OutcomeError(f"{self.phrase} {outcome}", found, failing)
        others = [fate for fate in fates if fate not in meant and holds(fate)]
        if self.only and others:
            found = f"{len(others):,} other{'s' * (len(others) != 1)} as well"
            raise OutcomeError(f"{self.phrase} {outcome}", found, others)


def selection(phrase: str, types: Iterable[str] = ()) -> Selection:
    """Read a phrase such as those of `EXAMPLES`; `types` are those that the policy adds.

    Raises `WordingError`, which lists the examples or the known types, when it cannot be read.
    """
    if match := _MESSAGES.fullmatch(phrase):
        first, last = int(match["first"]), int(match["last"] or match["first"])
        return Selection(phrase, positions=range(first, last + 1), only=bool(match["only"]))
    if phrase == "nothing":
        return Selection(phrase, amount=Amount(0))
    match = _PHRASE.fullmatch(phrase)
    if match is None or not match["words"]:
        examples = "\n  ".join(EXAMPLES)
        raise WordingError(f"{phrase!r} names no items; it is written\n  {examples}")
    words = match["words"].split()
    state = words.pop(0) if words[0] in STATES.values() and len(words) > 1 else None
    type_, tool = _type_and_tool(words, {*BUILT_IN_TYPES, *types}, phrase)
    if match["source"]:
        tool = unquoted(match["source"])
    quantity, ordinal = match["quantity"] or "the", match["ordinal"]
    is_counted = re.fullmatch(KINDS["amount"].regex, quantity) is not None
    return Selection(
        phrase,
        amount=amount(quantity) if is_counted else None,
        only=quantity.startswith("only"),
        is_one=quantity in {"the", "only the"} and not match["words"].endswith("s"),
        ordinal=None if ordinal is None else _ORDINALS.get(ordinal) or _place(ordinal),
        type=type_,
        tool=tool,
        state=state,
        ids=quoted_texts(match["ids"] or ""),
    )


def _place(ordinal: str) -> int:
    return int(re.sub(r"\D", "", ordinal) or 1) - 1


def _type_and_tool(words: list[str], types: set[str], phrase: str) -> tuple[str | None, str | None]:
    """Return the item type and the tool of `Bash result`, `user messages`, `items`."""
    for start in range(min(2, len(words))):
        name = "_".join(words[start:])
        for form in (name, name.removesuffix("s")):
            known = _ALIASES.get(form, form)
            tool = unquoted(words[0]) if start else None
            if known == "item":
                return None, tool
            if known in types:
                return known, tool
    raise WordingError(
        f"{phrase!r}: no items are called {' '.join(words)!r}; there are items, results, calls,"
        f" {', '.join(sorted(t.replace('_', ' ') for t in types))}"
    )
