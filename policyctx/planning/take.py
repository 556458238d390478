"""What a step makes of an item: whether it may go, what is left, and where its content goes.

The attributes of the step's `Action` decide whether the content is saved, and whether a
placeholder or nothing is left. Before anything is decided, a `Draft` says what would be left in the
item's place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from policyctx.definitions.actions import Action
from policyctx.definitions.items import ARCHIVE_TYPE, NOTHING_FOUND, SEARCH_TOOL, Item, recall_tool
from policyctx.messages.editing import shortened_input
from policyctx.messages.shapes.shape import EMPTY_INPUT
from policyctx.paths import File
from policyctx.planning.compiled import OffloadPolicy, Treatment
from policyctx.planning.conversation import Checkpoint, Conversation
from policyctx.planning.decisions import Decision, ItemVerdict, Reason
from policyctx.planning.facts import Facts, Unit
from policyctx.planning.naming import own_path, words_of
from policyctx.planning.outlook import Outlook, messages_without, removed_with, stays_with
from policyctx.planning.placeholders import (
    Wording,
    content_hash,
    named_path,
    rendered_placeholder,
    with_text,
)
from policyctx.policy.lookup import RulePath
from policyctx.policy.models import Step
from policyctx.policy.models.rules import Placeholder

_ONLY_WHOLE = Reason(
    "protected", {"why": "no text may take its place, only a drop or a compaction"}
)
NO_FILE = File("", "")
# A line of what a search of the store found: the file, where in it, and the text there.
_MATCH = re.compile(r"(.+?):\d+(?::\d+)?: ")
_NO_SIZES: Mapping[str, int] = {}  # a read-only view of it could not be pickled


class Draft(NamedTuple):
    """An item that a step would take.

    `wanted_path` is the path of its file below the root, whether or not the name is free; empty
    where nothing is saved. `sizes` are those that the step's gates need: what the item takes now in
    `tokens` and `chars`, and the tokens `freed` without it. `left` is the text in its place if the
    expected file is free, where it was made.
    """

    wanted_path: str
    sizes: Mapping[str, int] = _NO_SIZES
    left: Left | None = None


class Left(NamedTuple):
    """A text in an item's place that is short enough, and the wording and file that it is of."""

    wording: Wording
    file: File
    text: str | None


def drafted(
    conversation: Conversation,
    position: int,
    step: Step,
    treatment: Treatment,
    fate: Decision | None,
) -> Draft | Reason:
    """Return the draft for an item with a fate, or why nothing is gained by taking it."""
    item, facts = conversation.items[position], conversation.facts
    if fate is not None and is_replaced(fate, step):
        smaller = smaller_placeholder(fate, treatment, facts)
        return smaller if isinstance(smaller, Reason) else Draft("")
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


def is_replaced(fate: Decision, step: Step) -> bool:
    """Return whether a step leaves another placeholder in place of the one that is there."""
    return step.action.leaves_placeholder and fate.gives_way_to(step)


def smaller_placeholder(fate: Decision, treatment: Treatment, facts: Facts) -> str | Reason:
    """Return the placeholder of a step for the file of an earlier one, or why that one stays."""
    unit, file = unit_of(treatment), fate.file or NO_FILE
    text = rendered_placeholder(treatment.wording, fate.item, file, facts)
    size, left = facts.length(fate.placeholder or "", unit), facts.length(text, unit)
    if left < size:
        return text
    return Reason("would_not_shrink", {"size": size, "placeholder": left, "unit": unit})


def freed_tokens(
    conversation: Conversation, position: int, step: Step, treatment: Treatment, draft: Draft
) -> int:
    """Return the tokens that the list loses when the step takes this item as its draft says."""
    now = conversation.size(position, "tokens")
    if step.action.leaves_nothing:
        return now
    item, facts = conversation.items[position], conversation.facts
    fate = conversation.fates.get(position)
    if fate is not None and is_replaced(fate, step):
        smaller = smaller_placeholder(fate, treatment, facts)
        return 0 if isinstance(smaller, Reason) else now - facts.length(smaller, "tokens")
    if draft.left is None:
        out = exit_of(conversation, position, step, treatment.wording)
        text = left_in_place(item, out.wording, out.file, facts, unit_of(treatment))
    else:
        text = draft.left.text
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
    first = file if planned is None else planned

    def in_place_of(value: str) -> str | None:
        """Return the placeholder that describes one string; None where the string stays."""
        expected = rendered_placeholder(wording, item, first, facts, string=value)
        if facts.length(value, unit) <= facts.length(expected, unit):
            return None
        # A placeholder of an earlier call describes another text, so it may be longer.
        if named_path(wording, with_text(item, value), first, facts) is not None:
            return None
        if planned is None:
            return expected
        return rendered_placeholder(wording, item, file, facts, string=value)

    if wording.tells_of_text:
        return shortened_input(item.text, in_place_of)
    text = rendered_placeholder(wording, item, file, facts)
    expected = text if planned is None else rendered_placeholder(wording, item, planned, facts)
    length = facts.length(expected, unit)
    return shortened_input(
        item.text, lambda value: text if facts.length(value, unit) > length else None
    )


def unit_of(treatment: Treatment) -> Unit:
    """Return the unit of the threshold that selects an item, tokens without one."""
    return "tokens" if treatment.threshold is None else treatment.threshold.unit


def wanted_path(item: Item, step: Step, policy: OffloadPolicy, facts: Facts) -> str:
    """Return the path of an item's file below the root, whether or not the name is free.

    Empty for a step that saves nothing.
    """
    return own_path(item, policy, facts) if step.saves else ""


def expected_file(path: str, facts: Facts) -> File:
    """Return the file at a path below the root, `NO_FILE` for an empty path."""
    return File(path, f"{facts.root}/{path}") if path else NO_FILE


class Exit(NamedTuple):
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
        fate = self._outlook.fate(position)
        if fate is not None:
            smaller = self._smaller(fate, treatment, verdict)
            if isinstance(smaller, Reason):
                return smaller
            decision = smaller
        else:
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

    def _smaller(
        self, fate: Decision, treatment: Treatment, verdict: ItemVerdict
    ) -> Decision | Reason:
        """Return the decision to leave a smaller placeholder for the same file, or why not."""
        text = smaller_placeholder(fate, treatment, self._facts)
        if isinstance(text, Reason):
            return text
        return replace(
            fate,
            reason=verdict.reason,
            step=self._step.name,
            rule_path=verdict.rule,
            placeholder=text,
            wording=treatment.wording,
            unit=unit_of(treatment),
            # An earlier turn has found the file, and only the placeholder may be left of the text.
            is_read_back=fate.is_read_back and fate.is_new,
        )

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
        path = "" if draft is None else draft.wanted_path
        out = exit_of(self._in, position, self._step, wording, path)
        file = self._file(out)
        left = draft.left if draft is not None and self._words_as_drafted else None
        if left is not None and left.wording is out.wording and left.file == file:
            text = left.text
        else:
            text = left_in_place(self._in.items[position], out.wording, file, self._facts, unit)
        return self._leaving(
            position, out, file, reason, rule, placeholder=text, wording=out.wording, unit=unit
        )

    def _file(self, out: Exit) -> File:
        return self._outlook.file(out.wanted_path) if out.saves else out.file

    def _leaving(
        self,
        position: int,
        out: Exit,
        file: File,
        reason: Reason,
        rule: RulePath,
        *,
        placeholder: str | None = None,
        wording: Wording | None = None,
        unit: Unit = "tokens",
    ) -> Decision:
        """Return the decision that an item leaves so, by default with nothing in its place."""
        return Decision(
            position,
            self._in.items[position],
            out.action,
            reason,
            step=self._step.name,
            rule_path=rule,
            placeholder=placeholder,
            wording=wording,
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
        is_out = self._outlook.is_out_for(call, self._step)
        if is_out or not (is_own and policy.goes_along(item.type, item.tool)):
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
        unit, first = self._step.select.unit, self._step.select.keep_first
        if unit != "item":
            held = next(filter(None, map(self._held, going)), None)
            if held is not None:
                return stays_with(unit, held)
        elif first is not None:
            found = (reason for reason in map(self._held, going) if reason is not None)
            held = next((reason for reason in found if reason.code == "first"), None)
            if held is not None:
                return held
        self._outlook.remove(messages_without(going, self._outlook))
        for member, reason in going.items():
            self._outlook.take(self._removed(member, reason or verdict.reason, verdict.rule))
        return None

    def _removed(self, position: int, reason: Reason, rule: RulePath) -> Decision:
        fate = self._outlook.fate(position)
        if fate is None or fate.file is None or (fate.is_new and not self._step.saves):
            out = exit_of(self._in, position, self._step, _call_again())
            return self._leaving(position, out, self._file(out), reason, rule)
        # Its content has a file already, or an earlier step of this plan saves it.
        return Decision(
            position,
            self._in.items[position],
            self._step.action,
            reason,
            step=self._step.name,
            rule_path=rule,
            file=fate.file,
            wanted_path=fate.wanted_path,
            saves=fate.saves,
        )


class RecallSource(NamedTuple):
    """The place of an item's content: a file of the store, or a call that can be made again."""

    file: File | None
    """None for a call that can be made again, such as a search."""


def source_of(conversation: Conversation, position: int) -> RecallSource | None:
    """Return the source of an item that was read back; None if the item has to be saved.

    A result of another tool than those of the library has a source if it is the very text of a
    file, or if `reads_file` says that the tool returns nothing but the file. What was read or found
    in files of other sessions has none, unless this one has a file of the same relative path.
    """
    item, policy = conversation.items[position], conversation.policy
    if item.type == item.kind or "recalled" not in policy.types.lineage(item.type):
        return None
    call = conversation.reading.partners.get(position)
    is_whole = call is not None and call not in conversation.fates
    replaces = policy.store.on_conflict == "overwrite"  # a file may hold another content by now
    if call is None or not is_whole or replaces or item.error or item.media:
        return None
    asked = conversation.reading.items[call]
    if (tool := recall_tool(item.tool)) is not None:
        if tool == SEARCH_TOOL:
            is_ours = _finds_again(item.text, conversation)
            return RecallSource(None) if is_ours else None
        path = asked.input.get("path")
        file = _file_of(path, conversation, by_id=True)
        is_there = file is not None or _is_archive(path, conversation)
        return RecallSource(file) if is_there else None
    file = _read_whole(item, asked, conversation) or _read_by_rule(item, asked, conversation)
    return None if file is None else RecallSource(file)


def _finds_again(found: str, conversation: Conversation) -> bool:
    """Return whether all that a search found is in files of the store, its archives among them."""
    paths = {match[1] for match in map(_MATCH.match, found.split("\n")) if match}
    are_there = (_is_archive(one, conversation) or _file_of(one, conversation) for one in paths)
    return all(are_there) if paths else found.startswith(NOTHING_FOUND)


def _is_archive(path: object, conversation: Conversation) -> bool:
    folder = f"{conversation.facts.root}/{ARCHIVE_TYPE}/"
    return isinstance(path, str) and path.startswith(folder)


def _read_by_rule(item: Item, call: Item, conversation: Conversation) -> File | None:
    """Return the file that a tool with `reads_file` was called with."""
    values = call.input
    paths = (values.get(field) for field in conversation.policy.path_fields(item.tool or ""))
    path = next((path for path in paths if path is not None), None)
    return _file_of(path, conversation)


def _read_whole(item: Item, call: Item, conversation: Conversation) -> File | None:
    """Return the file that the call names and that holds exactly the text of the result."""
    found = (_file_of(word, conversation) for word in words_of(call))
    for file in found:
        if file is not None:
            known = conversation.ledger.saved_hash(file.relative_path)
            return file if known == content_hash(item.text) else None
    return None


def _file_of(path: object, conversation: Conversation, *, by_id: bool = False) -> File | None:
    """Return the file of the store that a path means: absolute, or below the root or `cwd`.

    A path may begin with the root's own name, where a tool reads the files of several roots.
    """
    if not isinstance(path, str):
        return None
    ledger, facts = conversation.ledger, conversation.facts
    plain = path.removeprefix("./")
    inner = plain.removeprefix(f"{facts.root.rpartition('/')[2]}/")
    for full in (plain, f"{facts.root}/{plain}", f"{facts.root}/{inner}", f"{facts.cwd}/{plain}"):
        below = full.removeprefix(f"{facts.root}/")
        if below != full and below in ledger.paths:
            return File(below, full)
    known = ledger.path_of(inner) if by_id else None
    return None if known is None else File(known, f"{facts.root}/{known}")
