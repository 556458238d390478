"""What a replay finds out about one recording: `SimulatedSession`, as values without messages.

Among them are captions for tables: how the session begins, and why a policy left it whole.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain, islice
from typing import Any, Literal, NamedTuple, TypeAlias

from policyctx.definitions.actions import Action
from policyctx.definitions.items import Message
from policyctx.errors import MessagesError
from policyctx.messages.reading import items_of
from policyctx.planning.decisions import Decision
from policyctx.planning.plan import Plan
from policyctx.pricing.dollars import CallPrices
from policyctx.replay.audit import AuditedCompaction
from policyctx.replay.cache import LAYOUTS, LayoutName
from policyctx.replay.recording import SYSTEM_AND_NEWEST, Anew, ClientLayout, Recording, SummedBill
from policyctx.replay.regret.strings import Range
from policyctx.replay.sent_list import Prompt
from policyctx.replay.terms import CallTerms, Contradiction
from policyctx.tokens.usage import Summable, Usage

Kind: TypeAlias = Literal["asked again", "used"]
_RESULT = "tool_result"
_RECENT = frozenset({"recent", "batch_recent"})


@dataclass(frozen=True, slots=True)
class Need:
    """One reply that needed an item which was out of the context."""

    kind: Kind
    """`asked again`: the recording itself reads it again; `used`: what nothing else there held."""
    call: int
    """The number of the call that it replied to."""
    item_id: str
    """Of the item in which the reply shows it: a call of a tool, or a text."""
    found: tuple[str, ...]
    """The strings that show it."""
    ranges: tuple[Range, ...] = ()
    """Of the removed item: what must be read again, in its order."""
    tokens: int = 0
    """Tokens of these ranges, without what an earlier need of the item has."""

    def values(self) -> dict[str, Any]:
        """Return it as plain values, for JSON."""
        return asdict(self) | {"ranges": [one._asdict() for one in self.ranges]}


class SimulatedCall(NamedTuple):
    """One call of a model: what it was sent, and what it would have been sent under the policy."""

    unedited: Prompt
    edited: Prompt
    terms: CallTerms
    anew: bool = False
    """Did the recording itself begin its list anew here, as at a compaction of its own."""
    usage: Usage | None = None
    """What was billed for the unedited one."""
    share: Usage | None = None
    """Its share of what several calls were billed together, where it has no usage of its own."""
    language_model: str | None = None
    at: float | None = None
    """Seconds since 1970, None where the recording does not say."""
    removed: int = 0
    """Items that newly left the context before this call."""
    compacted: bool = False
    """Did the policy replace history by a summary before this call."""
    seconds: float = 0.0
    """Time spent in policyctx."""
    why_anew: Anew | None = None
    """Why the recording itself has another list here; None where it only grew."""

    @property
    def bill(self) -> Usage | None:
        """What was billed for the prompt, or its share of a sum; None where nobody knows."""
        is_known = self.usage is not None and self.usage.prompt > 0
        return self.usage if is_known else self.share

    @property
    def output(self) -> int:
        """Tokens of the reply as far as they are known."""
        known = self.usage if self.usage is not None else self.share
        return 0 if known is None else known.output


@dataclass(frozen=True, slots=True)
class Removal:
    """One decision by which an item, or what was left of it, left the context."""

    call: int
    """Of the model, from 1 on, before which it was made."""
    part: int
    """Of the session, from 0 on; each list that the recording begins anew is one."""
    position: int
    """Of the item in its part, counted from 0 on, in the order in which a model reads."""
    message: int
    """Position of its message in the list as it was recorded."""
    item_id: str
    item_type: str
    tool: str | None
    action: Action
    step: str
    code: str
    reason: str
    rule: str
    """The key that it went by: `tools.mcp__*.min_tokens`."""
    place: str
    """`file:line` of what says so; empty when nothing in a file does."""
    tokens: int
    freed: int
    """What the list lost by this decision."""
    path: str | None = None
    """Of its file below the store's root."""
    bytes: int = 0
    """Of that file."""
    taken: bool = True
    """Was it the step's own choice; False when it had to go with another item."""
    on_arrival: bool = False
    """Is the step one with `on: arrival`."""


@dataclass(frozen=True, slots=True)
class Regret:
    """An item that a policy removed and the agent needed before it came back or left anew.

    An item that leaves twice, first offloaded and later summarised, may be regretted twice.
    """

    removal: Removal
    needs: tuple[Need, ...]
    """What shows it, in the order of the calls."""

    @property
    def tokens(self) -> int:
        """Tokens of what must be read again; never more than the item took."""
        return min(self.removal.tokens, sum(need.tokens for need in self.needs))


class SummaryCall(NamedTuple):
    """A call that would have written a summary of the policy; sizes as the policy counts tokens."""

    call: int
    """The number of the session's call, from 1 on, before which the summary was needed."""
    prompt: int
    output: int
    prices: CallPrices | None = None
    read: int = 0
    """Tokens of the prompt that the provider reads from its cache."""
    written: int = 0
    """Tokens of the prompt that it writes to its cache, where writes are billed."""


@dataclass(frozen=True, slots=True)
class TypeTokens(Summable):
    """Items of one type, and what became of them; sizes in tokens."""

    items: int = 0
    tokens: int = 0
    removed: int = 0
    freed: int = 0


@dataclass(frozen=True, slots=True)
class StepUse(Summable):
    """How often a step fired: in how many calls, and on how many items in all."""

    calls: int = 0
    items: int = 0


@dataclass(frozen=True, slots=True)
class Absence:
    """A time in which an item was not in the context as it was."""

    since: int
    """The first call that was made without it, from 1 on, over the whole session."""
    until: float = float("inf")
    """The first call that had it again."""
    left: str = ""
    """What stood in its place."""


@dataclass(frozen=True, slots=True)
class KeptItem:
    """Why an item was still in the context at the last call of its list."""

    call: int
    """The number of that call, at which the reason is true."""
    step: str
    """The last step that might have taken it."""
    code: str
    reason: str
    rule: str
    place: str
    """`file:line` of what says so; empty when nothing in a file does."""


@dataclass(frozen=True, slots=True)
class SeenItem:
    """One item as it was recorded, its text no longer than the limit that was asked for."""

    part: int
    """Of the session, from 0 on; with `position` the same as a `Removal` has."""
    position: int
    message: int
    """Position of its message in the list as it was recorded, in its part."""
    role: str
    item_type: str
    tool: str | None
    item_id: str
    error: bool
    tokens: int
    chars: int
    """Of its whole text."""
    media: int
    """Images, documents and sounds in it."""
    arrived: int
    """The first call of a model that had it; one more than any when it came after them."""
    inside: bool
    """Does it stand inside a result that is an item itself."""
    text: str
    """Without the bytes of media; of a result in blocks of text, what these say."""
    absences: tuple[Absence, ...] = ()
    """When it was not in the context as it was, and the beginning of what stood in its place."""
    kept: KeptItem | None = None
    """None for what was out at the last call, came after it, or is selected by no step."""


@dataclass(frozen=True, slots=True)
class SimulatedSession:
    """The figures of one recording under one policy.

    All sizes are in tokens as the policy's tokenizer counts them; `billing` knows what a provider
    would have billed for them.
    """

    name: str
    format: str
    path: str
    policy: str
    calls: tuple[SimulatedCall, ...]
    first_words: str = ""
    """Of the user, in one line; empty where no user speaks."""
    is_priced_by_policy: bool = False
    """The prices are `model.price` of the policy."""
    contradictions: Mapping[Contradiction, int] = field(default_factory=Counter)
    """What the policy sets otherwise than the recording has it, and in how many calls."""
    removals: tuple[Removal, ...] = ()
    steps: Mapping[str, StepUse] = field(default_factory=dict)
    """By name, in the order of the policy; those that never fired are there with zeros."""
    types: Mapping[str, TypeTokens] = field(default_factory=dict)
    regrets: tuple[Regret, ...] = ()
    files: int = 0
    bytes: int = 0
    compactions: int = 0
    """By the policy."""
    summaries: tuple[SummaryCall, ...] = ()
    """The calls that would have written them, where a model is asked."""
    tool_call_output: int = 0
    """Tokens of the median reply that calls a tool: as billed, or as counted where that is more."""
    untouched: str = ""
    """Why the policy took nothing; empty when it took something."""
    layout: ClientLayout = SYSTEM_AND_NEWEST
    """Where the client's breakpoints are in calls that do not say."""
    sent_layout: LayoutName = "recorded"
    """Whose breakpoints are sent with the policy: the client's, or those that the policy sets."""
    layouts: tuple[LayoutName, ...] = LAYOUTS
    """Of breakpoints, to be priced side by side, beside what is sent."""
    bill: SummedBill | None = None
    """What the recording knows of several calls together."""
    not_asked: tuple[str, ...] = ()
    """Who would make the policy's summaries; in a replay the text alone does."""
    begun_anew: int = 0
    """How often the recording itself began its list anew, as after a compaction of its own."""
    records: int = 0
    """What the recording was read from."""
    not_prompt: Mapping[str, int] = field(default_factory=dict)
    """Records that are known to be no part of a prompt: how many, by what they are."""
    not_understood: Mapping[str, int] = field(default_factory=dict)
    """What no reader knows the meaning of: how often, by what it is."""
    warnings: Mapping[str, int] = field(default_factory=Counter)
    """What could not be done, and how often."""
    unmarked: Mapping[str, int] = field(default_factory=Counter)
    """Why `breakpoints: auto` would set no marker, and in how many calls."""
    items: tuple[SeenItem, ...] = ()
    """What was said, where the replay was asked to keep it."""
    audited: tuple[AuditedCompaction, ...] = ()
    """What the recording's own compactions lost, where the replay was asked to keep texts."""

    @property
    def is_edited(self) -> bool:
        """Whether any call was sent another prompt than the recorded one."""
        return any(call.edited is not call.unedited for call in self.calls)

    @property
    def began(self) -> float | None:
        """When the first call with a time was recorded, in seconds since 1970."""
        return next((call.at for call in self.calls if call.at is not None), None)

    @property
    def seconds(self) -> float:
        """Time spent in policyctx."""
        return sum(call.seconds for call in self.calls)

    @property
    def regretted_tokens(self) -> int:
        """Tokens of what must be read again of the items that were needed after they had left."""
        return sum(regret.tokens for regret in self.regrets)

    @property
    def regretted_items(self) -> Mapping[tuple[int, int], int]:
        """The tokens of each of these items as a whole, by its part and its position."""
        gone = (regret.removal for regret in self.regrets)
        return {(one.part, one.position): one.tokens for one in gone}


_CHARS = 80
# The words are among the first messages; a text is looked at so far.
_MESSAGES, _TEXT = 20, 8_000
# What a program wrote around the words of a person: `<environment>…</environment>`.
_ELEMENT = re.compile(r"<([a-zA-Z][\w.:-]*)(?:\s[^<>]*)?>.*?</\1\s*>", re.DOTALL)
_TAG = re.compile(r"</?[a-zA-Z][\w.:-]*(?:\s[^<>]*)?>")
# The marks of Markdown: at the beginning of a line, around a block of code, and around words.
_MARKS = re.compile(
    r"^[ \t]*(?:#{1,6}[ \t]+|>[ \t]?|[-*+][ \t]+|(?:```|~~~)[^\n]*$)"
    r"|`|(?<![\w*])\*\*(?=\w)|(?<=[\w.!?:)])\*\*(?![\w*])",
    re.MULTILINE,
)
# Marks of direction, control characters and lone surrogates; joiners are parts of words.
_INVISIBLE = ("Cc", "Cf", "Cs", "Co", "Cn")
_UNUSUAL = re.compile(r"[^ -~]")
_JOINERS = "\u200c\u200d"


def first_words(recording: Recording) -> str:
    """Return the first words of the user in one line of at most 80 characters; empty without any.

    Elements that a program put around them are left out, unless there is nothing else; so are the
    marks of Markdown.
    """
    first = islice(chain.from_iterable(call.new for call in recording.calls), _MESSAGES)
    messages = [*first] or recording.after[:_MESSAGES]
    outside = (_one_line(_MARKS.sub("", _outside_elements(text))) for text in _said(messages))
    inside = (_one_line(_MARKS.sub("", _TAG.sub(" ", text[:_TEXT]))) for text in _said(messages))
    return _shortened(next(filter(None, chain(outside, inside)), ""))


def _said(messages: Iterable[Message]) -> Iterator[str]:
    """Yield what the user wrote, message by message."""
    for message in messages:
        try:
            items = items_of([message])
        except MessagesError:
            continue
        # One message holds what the user wrote and what a program put beside it.
        yield "\n".join(item.text for item in items if item.kind == "user_message")


def _outside_elements(text: str) -> str:
    """Return the beginning of a text without its elements."""
    left = _ELEMENT.sub(" ", text[:_TEXT])
    cut = _TAG.search(left) if len(text) > _TEXT else None
    return left[: cut.start()] if cut else left


def _one_line(text: str) -> str:
    return " ".join(_UNUSUAL.sub(_shown, text).split())


def _shown(unusual: re.Match[str]) -> str:
    one = unusual[0]
    is_shown = one in _JOINERS or unicodedata.category(one) not in _INVISIBLE
    return " " if one.isspace() else one if is_shown else ""


def _shortened(line: str) -> str:
    """Shorten a line, at a space where one is near, never inside of a composed character."""
    if len(line) <= _CHARS:
        return line
    end = _CHARS - 1
    space = line.rfind(" ", end - 15, end + 1)
    end = space if space > 0 else end
    while end and (unicodedata.combining(line[end]) or line[end] in _JOINERS):
        end -= 1
    return f"{line[:end].rstrip(_JOINERS + ' ')}…"


def why_untouched(plans: Sequence[Plan]) -> str:
    """Return why nothing was removed, as of the last plan of each list of a session.

    The same reason is the same text in every session, so that reasons can be counted.
    """
    if not any(plan.conversation.policy.all_steps for plan in plans):
        return "the policy has no step"
    results = [item for plan in plans for item in plan.items if item.kind == _RESULT]
    kept = [decision for plan in plans for decision in plan.decisions]
    of_results = [decision for decision in kept if decision.item.kind == _RESULT]
    if not results and all(decision.reason.code == "gate_closed" for decision in kept):
        return "no tool result is sent to a model"
    return _why_kept(of_results or kept, "result" if of_results else "item")


def _why_kept(kept: Sequence[Decision], what: str) -> str:
    reasons = Counter(decision.reason.code for decision in kept)
    small = next((d.reason for d in kept if d.reason.code == "below_threshold"), None)
    others = set(reasons) - {"below_threshold"}
    if small is not None and not others:
        return f"every {what} is below min_{small.values['unit']}"
    if "gate_closed" in others:
        return "the gate of every step that selects items stayed closed"
    if others and others <= _RECENT:
        large = "large " if small is not None else ""
        return f"keep_recent keeps every {large}{what}"
    if not kept:
        return "no step selects any item"
    [(code, _)] = reasons.most_common(1)
    return next(d.reason.sentence for d in kept if d.reason.code == code)
