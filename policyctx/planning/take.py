"""What a step makes of an item: whether it may go, what is left, and what goes with it.

The attributes of the step's `Action` decide whether the content is saved, and whether a
placeholder or nothing is left.

Before anything is decided, a `Draft` says what would be left in the item's place. An action that
leaves nothing takes a call together with its result, and thinking together with the last part of
what it led to, since no message may hold nothing but thinking. A removal that would leave an
assistant message first or last, or no message at all, is not made.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Literal, NamedTuple, TypeAlias

from policyctx.definitions.actions import Action
from policyctx.definitions.items import UNKNOWN, Item
from policyctx.messages.editing import shortened_input
from policyctx.messages.reading import Reading
from policyctx.messages.shapes.shape import EMPTY_INPUT, SYSTEM_ROLES
from policyctx.paths import File
from policyctx.planning.compiled import OffloadPolicy, Treatment
from policyctx.planning.conversation import Checkpoint, Conversation, own_path
from policyctx.planning.decisions import Decision, ItemVerdict, Reason
from policyctx.planning.facts import Facts, Unit
from policyctx.planning.outlook import Outlook, source_of
from policyctx.planning.placeholders import Wording, named_path, rendered_placeholder, with_text
from policyctx.policy.lookup import RulePath
from policyctx.policy.models import Step
from policyctx.policy.models.rules import Placeholder

RemovedUnit: TypeAlias = Literal["item", "message", "group", "turn"]


def whole_unit(position: int, unit: RemovedUnit, outlook: Outlook) -> dict[int, Reason | None]:
    """Return what is left of the unit of an item: the items by position, each with the reason.

    The item itself comes first, without a reason; for one inside a result, that is the result.
    """
    items, reading = outlook.conversation.items, outlook.conversation.reading
    around = items[position].inside
    first = position if around is None else around
    found: dict[int, Reason | None] = {first: None}
    for message in sorted(_messages(items[first].message, unit, reading)):
        for i in reading.items_of(message):
            is_out = outlook.is_out(i, even_of_placeholders=True)
            if items[i].inside is None and not is_out:
                found.setdefault(i, Reason("with_unit", {"unit": unit}))
    return found


def stays_with(unit: RemovedUnit, reason: Reason) -> Reason:
    """Return why an item stays with its unit, in which something stays for this reason."""
    return Reason("unit_stays", {"unit": unit, "why": reason.sentence})


def _messages(message: int, unit: RemovedUnit, reading: Reading) -> set[int]:
    found: set[int] = set()
    todo = [message]
    while todo:
        new = [
            i
            for i in _bare_unit(todo.pop(), unit, reading)
            if i not in found and reading.roles[i] not in SYSTEM_ROLES
        ]
        found.update(new)
        for one in new:
            bound = (other for i in reading.items_of(one) for other in reading.bound_to(i))
            todo += {reading.items[other].message for other in bound} - found
    return found


def _bare_unit(message: int, unit: RemovedUnit, reading: Reading) -> range:
    """Return the messages of a unit without those that pairs add."""
    if unit == "group":
        return reading.reply_of(message)
    if unit == "turn":
        starts = reading.turn_starts
        turn = bisect_right(starts, message)
        first = starts[turn - 1] if turn else 0
        return range(first, starts[turn] if turn < len(starts) else reading.message_count)
    return range(message, message + 1)


_NEWEST = Reason("protected", {"why": "the newest user message stays"})
_THINKING = Reason("protected", {"why": "the thinking of the current turn stays"})
_BOUND = Reason("protected", {"why": "reasoning stays with what it led to"})
_REPLY = Reason("protected", {"why": "the reply to a summary stays until the next compaction"})
_PENDING = Reason("answer_pending")
_UNKNOWN = Reason("protected", {"why": "a part that no step may change stays"})
_ONLY_WHOLE = Reason(
    "protected", {"why": "no text may take its place, only a drop or a compaction"}
)


def protection(
    conversation: Conversation, position: int, step: Step, at: Checkpoint
) -> Reason | None:
    """Return why the item cannot be taken yet, None when it can.

    The loop still needs the newest user message, a pending call with all after it, any call without
    an answer, and the thinking of the current turn. The reply to a summary stays with the summary.
    A call is pending while it has no answer and no later assistant message shows that the agent
    went on without one; an abandoned call stays, but nothing after it does. While results arrive
    one by one, calls made together with them still run, so on arrival only the calls themselves
    stay.
    """
    item = conversation.items[position]
    if item.kind == UNKNOWN:  # it goes with something that a step would remove
        return _UNKNOWN
    if item.message >= at.pending and step.on == "model_call":
        return _PENDING
    if item.kind == "tool_call":
        result = conversation.reading.partners.get(position)
        if result is None or result >= at.items:
            return _PENDING
    if item.kind == "user_message" and item.message == at.newest_user:
        return _NEWEST
    if item.kind == "thinking" and item.turn == at.turns:
        return _THINKING
    is_reply = item.kind == "assistant_message" and conversation.is_scripted_reply(position)
    return _REPLY if is_reply else None


NO_FILE = File("", "")


@dataclass(frozen=True, slots=True)
class Draft:
    """An item that a step would take.

    `wanted_path` is the path of its file below the root, whether or not the name is free; empty
    where nothing is saved. `sizes` are those that the step's gates need: what the item takes now in
    `tokens` and `chars`, and the tokens `freed` without it. `left` is the text in its place if the
    expected file is free, where it was made.
    """

    wanted_path: str
    sizes: Mapping[str, int] = field(default_factory=dict)
    left: Left | None = None


class Left(NamedTuple):
    """A text in an item's place that is short enough, and the wording and file that it is of."""

    wording: Wording
    file: File
    text: str | None


def drafted(
    conversation: Conversation, position: int, step: Step, treatment: Treatment
) -> Draft | Reason:
    """Return the draft for an item, or why nothing is gained by taking it."""
    item, facts = conversation.items[position], conversation.facts
    out = exit_of(conversation, position, step, treatment.wording)
    path, file = out.wanted_path, out.file
    if step.action.leaves_nothing:
        return Draft(path)
    if not item.takes_text:
        return _ONLY_WHOLE
    if path and (named := named_path(out.wording, item, file, facts)) is not None:
        return Reason("placeholder", {"path": named})
    if not may_be_kept(item, step):
        return Draft(path)
    unit = unit_of(treatment)
    text = left_in_place(item, out.wording, file, facts, unit)
    left = Left(out.wording, file, text)
    return not_shrinking(item, step, text, unit, facts) or Draft(path, left=left)


def freed_tokens(
    conversation: Conversation, position: int, step: Step, treatment: Treatment
) -> int:
    """Return the tokens that the list loses when the step takes this item."""
    now = conversation.size(position, "tokens")
    if step.action.leaves_nothing:
        return now
    item, facts = conversation.items[position], conversation.facts
    out = exit_of(conversation, position, step, treatment.wording)
    text = left_in_place(item, out.wording, out.file, facts, unit_of(treatment))
    return now - (0 if text is None else facts.length(text, "tokens"))


def may_be_kept(item: Item, step: Step) -> bool:
    """Return whether the item may stay because of its size; see `not_shrinking`."""
    return item.kind == "tool_call" or step.must_shrink


def not_shrinking(
    item: Item, step: Step, text: str | None, unit: Unit, facts: Facts
) -> Reason | None:
    """Return why an item stays whose replacement `text` is no shorter, None when it may go."""
    if not may_be_kept(item, step):
        return None
    if text is None:
        return Reason("nothing_long")
    size, placeholder = facts.size(item, unit), facts.length(text, unit)
    if placeholder < size or not step.must_shrink:
        return None
    return Reason("would_not_shrink", {"size": size, "placeholder": placeholder, "unit": unit})


def left_in_place(
    item: Item,
    wording: Wording,
    file: File,
    facts: Facts,
    unit: Unit,
    *,
    planned: File | None = None,
) -> str | None:
    """Return the text that takes the item's place; of a call, the JSON of its input.

    In an input, a placeholder replaces every string that is longer than it; where the file became
    another one than `planned`, that is longer than the placeholder that names `planned`. None when
    no string is.
    """
    if item.kind != "tool_call":
        return rendered_placeholder(wording, item, file, facts)
    if wording.tells_of_text:
        return shortened_input(
            item.text, lambda value: _in_place_of(value, item, wording, file, facts, unit, planned)
        )
    text = rendered_placeholder(wording, item, file, facts)
    expected = text if planned is None else rendered_placeholder(wording, item, planned, facts)
    length = facts.length(expected, unit)
    return shortened_input(
        item.text, lambda value: text if facts.length(value, unit) > length else None
    )


def _in_place_of(  # noqa: PLR0917 - all of `left_in_place`, and the string
    value: str,
    call: Item,
    wording: Wording,
    file: File,
    facts: Facts,
    unit: Unit,
    planned: File | None,
) -> str | None:
    """Return the placeholder of one string in a call's input, None where the string stays."""
    first = file if planned is None else planned
    expected = rendered_placeholder(wording, call, first, facts, string=value)
    if facts.length(value, unit) <= facts.length(expected, unit):
        return None
    # A placeholder of an earlier call tells of another text, so it may be the longer one.
    if named_path(wording, with_text(call, value), first, facts) is not None:
        return None
    if planned is None:
        return expected
    return rendered_placeholder(wording, call, file, facts, string=value)


def unit_of(treatment: Treatment) -> Unit:
    """Return the unit of the threshold that selects an item, tokens without one."""
    return "tokens" if treatment.threshold is None else treatment.threshold.unit


def wanted_path(item: Item, step: Step, policy: OffloadPolicy, facts: Facts) -> str:
    """Return the path of an item's file below the root, whether or not the name is free.

    Empty for a step that saves nothing.
    """
    return own_path(item, policy, facts) if step.action.saves else ""


def expected_file(path: str, facts: Facts) -> File:
    """Return the file at a path below the root, `NO_FILE` for an empty path."""
    return File(path, f"{facts.root}/{path}") if path else NO_FILE


@dataclass(frozen=True, slots=True)
class Exit:
    """How a step takes one item: its action, what it leaves, and the file of the content.

    `file` is the expected one if the step `saves`, else one that holds the content already, or
    `NO_FILE`. `wanted_path` is that of `Draft`.
    """

    action: Action
    wording: Wording
    wanted_path: str
    file: File
    saves: bool


@cache
def _call_again() -> Wording:
    return Wording.of(Placeholder(text=Action.CLEAR.text or ""))


def exit_of(
    conversation: Conversation, position: int, step: Step, wording: Wording, path: str = ""
) -> Exit:
    """Return how a step takes an item; `path` is the wanted one if it is known.

    What was read back from a file leaves the name of that file and is not saved again. What a
    search found is cleared instead of offloaded, since the search can be made again.
    """
    item, facts = conversation.items[position], conversation.facts
    path = path or wanted_path(item, step, conversation.policy, facts)
    source = source_of(conversation, position) if path else None
    if source is None:
        return Exit(step.action, wording, path, expected_file(path, facts), saves=bool(path))
    if source.file is not None:
        return Exit(step.action, wording, path, source.file, saves=False)
    action = step.action if step.action.leaves_nothing else Action.CLEAR
    wording = _call_again() if wording.names_file else wording
    return Exit(action, wording, "", NO_FILE, saves=False)


_FIRST = Reason("without_it", {"what": "an assistant message would come first"})
_LAST = Reason("without_it", {"what": "an assistant message would come last"})
_NONE_LEFT = Reason("without_it", {"what": "no message would be left"})
_LONE_THINKING = Reason("without_it", {"what": "only thinking would be left of its message"})
_SIGNS = Reason("without_it", {"what": "the later calls of its message would lack its signature"})


def removed_with(
    position: int, step: Step, outlook: Outlook, at: Checkpoint
) -> dict[int, Reason | None] | Reason:
    """Return the items that leave with a removed one, each with the reason; or why it stays.

    The item itself comes first; its reason is None, since the step's verdict has it.
    """
    conversation = outlook.conversation
    if step.select.unit == "item":
        unit = _with_partner(position, outlook)
    else:
        unit = whole_unit(position, step.select.unit, outlook)
    for member in list(unit):
        rest = [i for i in _left_of_thought(member, outlook) if i not in unit]
        is_thinking = conversation.items[member].kind == "thinking"
        if rest and not is_thinking and all(conversation.items[i].kind == "thinking" for i in rest):
            unit.update(dict.fromkeys(rest, Reason("with_call")))
        elif rest and conversation.reading.is_bound(member):
            return _BOUND
        signed = (i for i in conversation.reading.signed_with(member) if i not in unit)
        if not all(outlook.is_out(i, even_of_placeholders=True) for i in signed):
            return _SIGNS
    return _why_not(unit, step, outlook, at) or unit


def _with_partner(position: int, outlook: Outlook) -> dict[int, Reason | None]:
    unit: dict[int, Reason | None] = {position: None}
    todo, reading = [position], outlook.conversation.reading
    while todo:
        for other in reading.bound_to(todo.pop()):
            if other not in unit and not outlook.is_out(other, even_of_placeholders=True):
                is_call = reading.items[other].is_call
                unit[other] = Reason("with_result" if is_call else "with_call")
                todo.append(other)
    return unit


def _left_of_message(position: int, outlook: Outlook) -> Iterator[int]:
    for i in outlook.conversation.of_message(position):
        if not outlook.is_out(i, even_of_placeholders=True):
            yield i


def _left_of_thought(position: int, outlook: Outlook) -> Iterator[int]:
    conversation = outlook.conversation
    for i in conversation.reading.thought_of(position):
        is_inside = conversation.items[i].inside is not None
        if not (is_inside or outlook.is_out(i, even_of_placeholders=True)):
            yield i


def _why_not(
    unit: dict[int, Reason | None], step: Step, outlook: Outlook, at: Checkpoint
) -> Reason | None:
    conversation = outlook.conversation
    for member, reason in unit.items():
        item = conversation.items[member]
        held = protection(conversation, member, step, at)
        if held is _THINKING and reason == Reason("with_call"):
            # Reasoning that is a message of its own leaves with all that it led to.
            held = None if conversation.reading.is_bound(member) else held
        if held is None and conversation.policy.pinned(item.type, item.tool) is not None:
            held = Reason("pinned")
        if held is None:
            continue
        if reason is not None and reason.code == "with_unit":
            return stays_with(step.select.unit, held)
        is_thinking = item.kind == "thinking" and held.code != "pinned"
        return _LONE_THINKING if is_thinking and reason is not None else held
    gone = set(messages_without(unit, outlook))
    if not gone:
        return None
    if not _leaves_any(gone, outlook):
        return _NONE_LEFT
    roles = conversation.roles
    forwards, backwards = range(len(roles)), range(len(roles) - 1, -1, -1)
    if _turns_to_assistant(forwards, conversation.reading.opening_roles, gone, outlook):
        return _FIRST
    return _LAST if _turns_to_assistant(backwards, roles, gone, outlook) else None


def messages_without(unit: Iterable[int], outlook: Outlook) -> Iterator[int]:
    """Yield the messages that are empty without these items."""
    going = set(unit)
    for message, member in {outlook.conversation.items[i].message: i for i in going}.items():
        if outlook.conversation.items[member].inside is None and all(
            i in going for i in _left_of_message(member, outlook)
        ):
            yield message


def _leaves_any(gone: set[int], outlook: Outlook) -> bool:
    """Whether a message other than a system message stays."""
    roles = outlook.conversation.roles
    return any(
        roles[i] not in SYSTEM_ROLES and i not in gone and not outlook.is_removed(i)
        for i in range(len(roles) - 1, -1, -1)
    )


def _turns_to_assistant(
    messages: Iterable[int], roles: Sequence[str], gone: set[int], outlook: Outlook
) -> bool:
    """Whether the first of these to stay is an assistant message, which the first now is not."""
    is_changed = False
    for message in messages:
        if roles[message] in SYSTEM_ROLES or outlook.is_removed(message):
            continue
        if message not in gone:
            return is_changed and roles[message] == "assistant"
        if not is_changed and roles[message] == "assistant":
            return False
        is_changed = True
    return False


class Taking:
    """What one step takes in a plan: decisions on the items, and on what goes with them.

    `held` returns why the selection of the step keeps an item, for items that go with others.
    """

    def __init__(
        self,
        outlook: Outlook,
        step: Step,
        at: Checkpoint,
        held: Callable[[int], Reason | None] = lambda _: None,
    ) -> None:
        self._outlook, self._step, self._at = outlook, step, at
        self._held = held
        self._in, self._facts = outlook.conversation, outlook.facts
        self._words_as_drafted = self._facts.words_like(self._in.facts)
        self.left: list[tuple[int, Reason]] = []
        """What was ready and stays, by position."""
        self.took: dict[int, ItemVerdict] = {}
        """What the step took and why, by position, without what went along with it."""

    def is_out(self, position: int) -> bool:
        """Return whether nothing of the item is left for this step to take."""
        return self._outlook.is_out(position, even_of_placeholders=self._step.action.leaves_nothing)

    def take(self, position: int, treatment: Treatment, verdict: ItemVerdict, draft: Draft) -> None:
        """Decide that the item leaves, with what has to leave with it; or note why it stays."""
        if self._step.action.leaves_nothing:
            refused = self._remove(position, verdict)
        else:
            refused = self._replace(position, treatment, verdict, draft)
        if refused is None:
            self.took[position] = verdict
        else:
            self.left.append((position, refused))

    def put_off(self) -> list[int]:
        """Remove from `left`, and return, what stayed for the sake of the rest of the list."""
        found = [position for position, reason in self.left if reason.code == "without_it"]
        self.left = [(p, reason) for p, reason in self.left if reason.code != "without_it"]
        return found

    def _replace(
        self, position: int, treatment: Treatment, verdict: ItemVerdict, draft: Draft
    ) -> Reason | None:
        """Leave a placeholder for an item, and one in the input of its call; or return why not."""
        item, unit = self._in.items[position], unit_of(treatment)
        decision = self._replaced(
            position, treatment.wording, unit, verdict.reason, verdict.rule, draft=draft
        )
        left = draft.left
        # A draft's text was found to be short enough.
        if left is None or decision.placeholder is not left.text:
            refused = not_shrinking(item, self._step, decision.placeholder, unit, self._facts)
            if refused is not None:
                return refused
        self._outlook.take(decision)
        call = self._in.reading.partners.get(position) if item.kind == "tool_result" else None
        if treatment.with_input and call is not None:
            self._shorten(call, unit, empties=treatment.empties_input)
        return None

    def _replaced(
        self,
        position: int,
        wording: Wording,
        unit: Unit,
        reason: Reason,
        rule: RulePath,
        *,
        draft: Draft | None = None,
    ) -> Decision:
        item, path = self._in.items[position], "" if draft is None else draft.wanted_path
        out = exit_of(self._in, position, self._step, wording, path)
        file = self._outlook.file(out.wanted_path) if out.saves else out.file
        left = draft.left if draft is not None and self._words_as_drafted else None
        if left is not None and left.wording is out.wording and left.file == file:
            text = left.text
        else:
            text = left_in_place(item, out.wording, file, self._facts, unit)
        return Decision(
            position,
            item,
            out.action,
            reason,
            step=self._step.name,
            rule_path=rule,
            placeholder=text,
            wording=out.wording,
            unit=unit,
            file=None if file is NO_FILE else file,
            wanted_path=out.wanted_path,
            is_read_back=file is not NO_FILE and not out.saves,
            saves=out.saves,
        )

    def _shorten(self, call: int, unit: Unit, *, empties: bool) -> None:
        """Empty the input of a call whose result was taken, or replace its long strings."""
        item, policy = self._in.items[call], self._in.policy
        is_own = item.kind == "tool_call"  # what the provider runs keeps its bytes
        if self.is_out(call) or not (is_own and policy.goes_along(item.type, item.tool)):
            return
        if empties:
            self._empty(call, unit)
            return
        wording = policy.wording(self._step, item.type, item.tool)
        wanted = wanted_path(item, self._step, policy, self._facts)
        # An input that stays as it is uses up no name of a file.
        if not self._shortens(item, wording, expected_file(wanted, self._facts), unit):
            return
        rule = self._rule_of_inputs
        decision = self._replaced(call, wording, unit, Reason("with_result"), rule)
        if self._shortens(item, wording, decision.file or NO_FILE, unit):
            self._outlook.take(decision)

    def _empty(self, call: int, unit: Unit) -> None:
        """Leave nothing of an input; no wording is left in it, so none is part of the decision."""
        if not self._in.items[call].input:
            return
        decision = self._removed(call, Reason("emptied_with_result"), self._rule_of_inputs)
        self._outlook.take(replace(decision, placeholder=EMPTY_INPUT, unit=unit))

    @property
    def _rule_of_inputs(self) -> RulePath:
        return "steps", self._step.name, "select", "with_input"

    def _shortens(self, item: Item, wording: Wording, file: File, unit: Unit) -> bool:
        text = left_in_place(item, wording, file, self._facts, unit)
        return text is not None and self._facts.length(text, unit) < self._facts.size(item, unit)

    def _remove(self, position: int, verdict: ItemVerdict) -> Reason | None:
        """Leave nothing of an item and of what has to go with it, or return why they stay."""
        going = removed_with(position, self._step, self._outlook, self._at)
        if isinstance(going, Reason):
            return going
        unit = self._step.select.unit
        if unit != "item":
            held = next(filter(None, map(self._held, going)), None)
            if held is not None:
                return stays_with(unit, held)
        self._outlook.removed.update(messages_without(going, self._outlook))
        for member, reason in going.items():
            self._outlook.take(self._removed(member, reason or verdict.reason, verdict.rule))
        return None

    def _removed(self, position: int, reason: Reason, rule: RulePath) -> Decision:
        item, fate = self._in.items[position], self._outlook.fate(position)
        decision = Decision(
            position, item, self._step.action, reason, step=self._step.name, rule_path=rule
        )
        if fate is not None and fate.file is not None:  # its content has a file already
            return replace(decision, file=fate.file, wanted_path=fate.wanted_path, saves=fate.saves)
        out = exit_of(self._in, position, self._step, _call_again())
        file = self._outlook.file(out.wanted_path) if out.saves else out.file
        return replace(
            decision,
            file=None if file is NO_FILE else file,
            wanted_path=out.wanted_path,
            is_read_back=file is not NO_FILE and not out.saves,
            saves=out.saves,
        )
