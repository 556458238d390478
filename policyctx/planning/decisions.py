"""Decisions: what happens to an item, which step decided it, the reason, and what arrives for one.

A reason is data: a code with the values compared, and a sentence for people.
"""

from bisect import insort
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import NamedTuple, TypeAlias

from policyctx.definitions.actions import Action
from policyctx.definitions.items import Item
from policyctx.paths import File
from policyctx.planning.facts import Unit
from policyctx.planning.placeholders import Wording, content_hash
from policyctx.policy.lookup import RulePath
from policyctx.policy.models import Step

# The sentence of each code; the fields are the values of the reason.
SENTENCES = {
    "answer_pending": "a call up to here has no answer yet",
    "arrived_before": "it arrived in an earlier turn, and this step takes only what is new",
    "batch_recent": "called together with a recent one",
    "below_threshold": "{size:,} < {threshold:,} {unit}",
    "carried": "the newest message of the user stays, behind the summary",
    "decided": "decided earlier, step {step}",
    "declined": "the hook before a compaction declined it: {why}",
    "emptied": "all that was in it is removed; a short text is there",
    "emptied_with_result": "its input is emptied with its result",
    "excluded_tool": "{tool} is excepted",
    "failed_result": "a failed result stays",
    "first": "among the first messages, {kept:,} kept",
    "gate_closed": "{gate}",
    "hardly_new": "{new:,} of {tokens:,} tokens came since the last compaction, {needed:,} needed",
    "inside": "it went with the result that it is in",
    "invalid": "{problem}",
    "large": "{size:,} >= {threshold:,} {unit}",
    "nothing_long": "no string of its input is longer than the placeholder",
    "not_ephemeral": "no type or tool gives it a keep_recent",
    "not_refused": "the provider has not refused the prompt as too long",
    "not_selected": "the step selects no such item",
    "not_superseded": "no later result that stands shows it again",
    "nothing_new": "nothing has come since the compaction before",
    "nothing_to_summarise": "there is nothing that it may replace: {why}",
    "not_saved": "{error}",
    "offload_off": "its type or tool may not be offloaded",
    "not_replaced": "the summary stands for messages {first} to {last}",
    "not_summarised": "no summary was made; a warning says why",
    "old": "{recency}",
    "old_and_large": "{size:,} >= {threshold:,} {unit}; {recency}",
    "over_gate": "another would help as little as the one before ({gate}); {what}",
    "pinned": "pinned",
    "pins_too_large": "the pinned alone have {pins:,} {unit}, and the summary may have {limit:,}",
    "placeholder": "it names the file to which an earlier call offloaded it",
    "protected": "{why}",
    "recent": "{recency}",
    "restored": "step {step} dropped it earlier; it stays here, since without it {what}",
    "selected": "the step takes all that it selects",
    "stays_too_large": "what no summary replaces has {stays:,} tokens; the window is {window:,}",
    "summarised": "the summary stands for messages {first} to {last}",
    "summary_refused": "the summary before had {summary:,} tokens, and what it would replace has"
    " {tokens:,}, of which `must_shrink_to` allows {limit}; lower `max_words` or `max_share`",
    "superseded": "{by}, a later result, shows it again",
    "system_stays": "a system message stays, whole",
    "unit_stays": "its {unit} stays: {why}",
    "until_reached": "{until}",
    "with_call": "it goes with its call",
    "with_result": "it goes with its result",
    "with_unit": "it goes with its {unit}",
    "without_it": "without it {what}; it stays until {until}",
    "would_not_shrink": "its placeholder has {placeholder:,} {unit}, it has {size:,}",
}
IN_VAIN = frozenset({"over_gate", "summary_refused"})
"""The codes of a compaction that is not repeated, since the one before did not help."""
FAILED = IN_VAIN | {"not_saved", "not_summarised", "pins_too_large", "stays_too_large"}
"""The codes of a compaction that was due and not made; the caller's own refusal is none."""
_RECENCY = {
    "items": "{nth} newest of {among}, {kept:,} kept",
    "messages": "in the {nth} newest message, {kept:,} kept",
    "turns": "in the {nth} newest turn, {kept:,} kept",
    "replies": "in the {nth} newest reply, {kept:,} kept",
    "turns of candidates": "in the {nth} newest turn with one of {among}, {kept:,} kept",
    "replies of candidates": "in the {nth} newest reply with one of {among}, {kept:,} kept",
    "tokens": "{newer:,} newer tokens of {among}, {kept:,} kept",
    "max_tokens": "{rank:,} tokens of {among} with it, at most {kept:,} kept",
}


class Ending(Enum):
    """What may end the reason why an item stays."""

    MESSAGE_COMES = auto()
    USER_SPEAKS = auto()
    TURN_BEGINS = auto()
    ANSWER_COMES = auto()
    """To the call at a position."""
    PART_LEAVES = auto()
    """Of the message at a position, or all of it."""


class Awaited(NamedTuple):
    """The event that an item waits for, and the position of what that is about, if of anything."""

    event: Ending
    about: int = 0


@dataclass(frozen=True, slots=True)
class Reason:
    """The reason of a decision: a code, and the values compared.

    What concerns recency has `shape` (the key of `keep_recent`), `kept`, and `rank` (1 for the
    newest; with `max_tokens` the tokens up to it) or `newer` (tokens); with `of: candidates`,
    `of` says so. After each of `until` it may not hold any more.
    """

    code: str
    values: Mapping[str, str | int] = field(default_factory=dict)
    until: tuple[Awaited, ...] = ()

    @property
    def sentence(self) -> str:
        """The reason without its code, for people: `812 < 2,000 tokens`."""
        values = dict(self.values)
        if (shape := values.get("shape")) is not None:
            nth = ordinal(int(values.get("rank", 0)))
            form = f"{shape} of candidates" if "of" in values else str(shape)
            values["recency"] = _RECENCY[form].format_map({**values, "nth": nth})
        return SENTENCES[self.code].format_map(values)

    def __str__(self) -> str:
        return f"{self.code}: {self.sentence}"


def ordinal(number: int) -> str:
    """Return `1st`, `2nd`, `3rd`, `4th`, …"""
    suffixes = {1: "st", 2: "nd", 3: "rd"}
    in_teens = number % 100 in {11, 12, 13}
    return f"{number}{'th' if in_teens else suffixes.get(number % 10, 'th')}"


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision on one item: kept, or taken out of the context by the `action` of a step.

    An offloaded item is saved to `file` and leaves its `placeholder`, a cleared one only leaves a
    placeholder, a dropped one is saved to `file` and leaves nothing. A summarised one leaves with
    its message, which a summary replaces; that is not in `Plan.new`. `step` is the step that
    decided.
    """

    position: int
    """Of the item among the plan's items."""
    item: Item
    action: Action
    reason: Reason
    step: str = ""
    rule_path: RulePath = ()
    """The key that decided; empty for what holds under every policy."""
    placeholder: str | None = None
    """The text in the item's place; of a call, the JSON of its input with the placeholder in it."""
    wording: Wording | None = None
    unit: Unit = "tokens"
    """Of the threshold that decided; lengths are measured in it."""
    file: File | None = None
    wanted_path: str = ""
    """The path of the file below the root, if its name were free."""
    is_read_back: bool = False
    """Whether the item was read back from `file`, which holds its content already."""
    saves: bool = False
    """Whether the content of the item is not written yet."""

    @property
    def rule(self) -> str:
        """The key that decided, as text: `tools.mcp__*.min_tokens`."""
        return ".".join(self.rule_path)

    @property
    def is_new(self) -> bool:
        """Whether this plan takes the item, or its placeholder, out of the context."""
        return self.action is not Action.KEEP and self.reason.code != "decided"

    def as_decided(self) -> "Decision":
        """Return the decision as later plans see it."""
        reason = Reason("decided", {"step": self.step})
        return replace(self, reason=reason, rule_path=(), wording=None, saves=False)

    def gives_way_to(self, step: Step) -> bool:
        """Return whether a step may take what is left of the item.

        A placeholder gives way to a removal, and to a step that replaces `placeholders` if it is
        that of another step and names a file. One in the input of a call, or inside a result, does
        not: no part of a returned list is that placeholder alone.
        """
        if step.action.leaves_nothing:
            return not self.action.leaves_nothing
        is_alone = self.item.kind != "tool_call" and self.item.inside is None
        is_other = self.action is step.action and self.step != step.name
        return step.select.placeholders and is_alone and is_other and self.file is not None


class ItemVerdict(NamedTuple):
    """One step's verdict on one candidate: whether it may be taken, why, and by which key."""

    taken: bool
    reason: Reason
    rule: RulePath = ()


# What identifies an item that arrives: its kind, its tool-use id and the hash of its text.
Arrived: TypeAlias = tuple[str, str | None, str]
# A step that leaves an item, the position of that, and why.
Refused: TypeAlias = tuple[str, int, Reason]


class Arrivals:
    """The arrival of the `items` of a list that grows.

    `fates` are what became of them, by position. With `are_judged` a step judges them. `judged` are
    those that were judged in any list of the session, and how often each occurred in one.
    """

    def __init__(
        self,
        items: Sequence[Item],
        fates: Mapping[int, Decision],
        judged: Counter[Arrived] | None,
        *,
        are_judged: bool,
    ) -> None:
        self._items, self._fates, self.are_judged = items, fates, are_judged
        self._judged = Counter[Arrived]() if judged is None else judged
        self._met = Counter[Arrived]()
        self.due: list[int] = []
        """Positions of the items that are judged next, in order."""
        self.waiting: defaultdict[int, dict[str, Reason]] = defaultdict(dict)
        """Why an item waits that steps would take, by position, and there by step."""
        self._waits: defaultdict[Awaited, list[int]] = defaultdict(list)

    def extend(self, positions: Iterable[int], partners: Mapping[int, int]) -> None:
        """Add new items, except those that were judged in another list.

        `partners` are the answers to calls and the calls of answers, by position.
        """
        for position in positions:
            item = self._items[position]
            if item.kind == "user_message":
                self.happened(Ending.USER_SPEAKS)
            elif position in partners:
                self.happened(Ending.ANSWER_COMES, partners[position])
            arrived = _arrived(item, item.text)
            self._met[arrived] += 1
            if self._met[arrived] > self._judged[arrived]:
                self.due.append(position)

    def settle(self, judged: int, refused: Iterable[Refused]) -> None:
        """Note that so many items were judged, some of which wait for what their reasons say."""
        del self.due[:judged]
        for step, position, reason in refused:
            for wait in reason.until:
                self.waiting[position][step] = reason
                self._waits[wait].append(position)

    def happened(self, event: Ending, about: int = 0) -> None:
        """Let the items arrive again that wait for this."""
        for position in self._waits.pop(Awaited(event, about), ()):
            if self.waiting.pop(position, None) is not None:
                insort(self.due, position)

    def report(self) -> None:
        """Note what was judged, also what is left of it, so that it is not new in another list."""
        if not self.are_judged:
            return
        unjudged, seen = {*self.due, *self.waiting}, Counter[Arrived]()
        for position, item in enumerate(self._items):
            if position not in unjudged:
                fate = self._fates.get(position)
                left = None if fate is None else fate.placeholder
                for text in {item.text, item.text if left is None else left}:
                    seen[_arrived(item, text)] += 1
        self._judged |= seen


def _arrived(item: Item, text: str) -> Arrived:
    return item.kind, item.tool_use_id, content_hash(text)
