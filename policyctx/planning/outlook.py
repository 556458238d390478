"""`Outlook`: the message list as the decisions that a plan has made so far would leave it."""

from functools import cached_property
from typing import NamedTuple

from policyctx.definitions.items import Item
from policyctx.definitions.names import READ_TOOL, recall_tool
from policyctx.paths import File, FreePaths
from policyctx.planning.conversation import Conversation, words_of
from policyctx.planning.decisions import Decision
from policyctx.planning.facts import Facts, Unit
from policyctx.planning.placeholders import content_hash


class Outlook:
    """A conversation, which does not change, with the decisions of a plan that is being made."""

    def __init__(self, conversation: Conversation, facts: Facts) -> None:
        self.conversation, self.facts = conversation, facts
        self.at = conversation.checkpoint()
        self.taken: dict[int, Decision] = {}
        self.removed: set[int] = set()
        """Messages that are empty after the plan."""
        self.gone = 0
        """Number of decisions after which other items may become free: those that leave no item."""
        self._lost: dict[Unit, int] = {}

    def take(self, decision: Decision) -> None:
        """Add a decision."""
        for unit in self._lost:
            before = self.size(decision.position, unit)
            self._lost[unit] += before - self._left(decision, unit)
        self.taken[decision.position] = decision
        held = next(self.conversation.inside(decision.position), None) is not None
        self.gone += decision.action.leaves_nothing or decision.item.inside is not None or held

    def fate(self, position: int) -> Decision | None:
        """Return the fate of an item, by this plan or before; None while it stands."""
        return self.taken.get(position) or self.conversation.fates.get(position)

    def is_out(self, position: int, *, even_of_placeholders: bool = False) -> bool:
        """Return whether nothing of the item is left for a step to take."""
        inside = self.conversation.items[position].inside
        if inside is not None and self.fate(inside) is not None:
            return True
        fate = self.fate(position)
        return fate is not None and (not even_of_placeholders or fate.action.leaves_nothing)

    def is_there(self, position: int) -> bool:
        """Return whether anything of the item is left in the list; see `Conversation.is_there`."""
        fate, inside = self.fate(position), self.conversation.items[position].inside
        if inside is not None and self.fate(inside) is not None:
            return False
        return fate is None or not fate.action.leaves_nothing

    def is_removed(self, message: int) -> bool:
        """Return whether nothing is left of a message."""
        return message in self.removed or message in self.conversation.removed

    def size(self, position: int, unit: Unit) -> int:
        """Return the size of an item in the list as it would be."""
        if (decision := self.taken.get(position)) is not None:
            return self._left(decision, unit)
        size = self.conversation.size(position, unit)
        inner = [i for i in self.conversation.inside(position) if i in self.taken]
        lost = sum(self.conversation.size(i, unit) - self.size(i, unit) for i in inner)
        return size - lost

    def total(self, unit: Unit) -> int:
        """Return the size of all messages."""
        total = self.conversation.tally(unit).total
        if not self.taken:
            return total
        if unit not in self._lost:
            outermost = [d for d in self.taken.values() if not self._is_inside_of_taken(d)]
            self._lost[unit] = sum(
                self.conversation.size(d.position, unit) - self._left(d, unit) for d in outermost
            )
        return total - self._lost[unit]

    def tokens_behind(self, message: int) -> int:
        """Return the tokens of all messages behind this one."""
        outermost = (d for d in self.taken.values() if not self._is_inside_of_taken(d))
        lost = sum(
            self.conversation.size(d.position, "tokens") - self._left(d, "tokens")
            for d in outermost
            if d.item.message > message
        )
        tally = self.conversation.tally("tokens")
        return tally.total - tally.before(message + 1) - lost

    def tokens(self, *, corrected: bool = True) -> int:
        """Return the tokens of the list with what is sent beside it, corrected by usage or not."""
        facts, removed = self.facts, len(self.removed) + len(self.conversation.removed)
        around = facts.tokens_around(self.conversation.reading.message_count - removed)
        counted = self.total("tokens") + facts.tokens_beside + around
        return facts.correction.corrected(counted) if corrected else counted

    def file(self, wanted_path: str) -> File:
        """Return the file expected for a path; only the store knows the names on the disk."""
        path = wanted_path
        if self.conversation.policy.store.on_conflict == "suffix":
            self.conversation.note_named_files()
            path = self._paths.take(wanted_path)
        return File(path, f"{self.facts.root}/{path}")

    @cached_property
    def _paths(self) -> FreePaths:
        return FreePaths(beyond=self.conversation.paths)

    def _is_inside_of_taken(self, decision: Decision) -> bool:
        return decision.item.inside is not None and decision.item.inside in self.taken

    def _left(self, decision: Decision, unit: Unit) -> int:
        return 0 if decision.placeholder is None else self.facts.length(decision.placeholder, unit)


class RecallSource(NamedTuple):
    """The place of an item's content: a file of the store, or a call that can be made again."""

    file: File | None
    """None for a call that can be made again, such as a search."""


def source_of(conversation: Conversation, position: int) -> RecallSource | None:
    """Return the source of an item that was read back; None if the item has to be saved.

    A result of another tool than those of the library has a source if it is the very text of a
    file, or if `reads_file` says that the tool returns nothing but the file.
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
        path = asked.input.get("path") if tool == READ_TOOL else None
        return RecallSource(_file_of(path, conversation, by_id=True))
    file = _read_whole(item, asked, conversation) or _read_by_rule(item, asked, conversation)
    return None if file is None else RecallSource(file)


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
