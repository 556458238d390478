"""`Conversation`: a message list that grows, as the ledger and the steps have left it; its `Tally`.

Each item is read once, when it is new, and its size is kept up to date; a turn costs what is new.
"""

from bisect import bisect_right, insort
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple, TypeAlias

from policyctx.definitions.actions import Action
from policyctx.definitions.items import MEDIA_TYPES, Item, recall_tool
from policyctx.messages.reading import CheckedMessage, Reading
from policyctx.messages.shapes.built_in import BUILT_IN, Shapes
from policyctx.messages.shapes.shape import kind_of_text
from policyctx.messages.sources import Staying
from policyctx.paths import File, FreePaths
from policyctx.planning.compiled import OffloadPolicy
from policyctx.planning.decisions import Arrivals, Arrived, Decision, Ending, Reason, Refused
from policyctx.planning.facts import Facts, Unit
from policyctx.planning.identities import Identities
from policyctx.planning.ledger import ItemKey, Ledger, LedgerEntry, Trace
from policyctx.planning.naming import named_paths, words_of
from policyctx.planning.placeholders import content_hash
from policyctx.planning.reapplying import HeldBack, Marks, all_held_back, may_apply_with
from policyctx.planning.superseded import Superseded


class Tally:
    """The size of a list that grows, as sums over its messages, each in logarithmic time.

    A Fenwick tree: the node at `i` holds the sum of the `i & -i` messages that end there.
    """

    def __init__(self) -> None:
        self.total = 0
        self._tree = [0]

    def __len__(self) -> int:
        return len(self._tree) - 1

    def append(self, amount: int) -> None:
        """Add a message of this size at the end."""
        end = len(self._tree)
        held, width = amount, 1
        while width < end & -end:
            held += self._tree[end - width]
            width *= 2
        self._tree.append(held)
        self.total += amount

    def change(self, message: int, by: int) -> None:
        """Change the size of the message at this position by `by`."""
        self.total += by
        node = message + 1
        while node < len(self._tree):
            self._tree[node] += by
            node += node & -node

    def before(self, message: int) -> int:
        """Return the size of all messages before this position."""
        found, node = 0, min(message, len(self))
        while node:
            found += self._tree[node]
            node -= node & -node
        return found


Watcher: TypeAlias = Callable[[int, Decision], None]


class Checkpoint(NamedTuple):
    """A point in the growth of a conversation: the one that a plan was made at."""

    items: int
    messages: int
    turns: int
    replies: int
    newest_user: int
    """Position of the newest message of the user, -1 without one."""
    pending: float
    """Position of the message with a call that is not answered yet, infinity without one."""
    changes: int
    """Number of changes of fates so far."""


class Conversation:
    """The items of one session under one policy, and the fate of each.

    `facts` give sizes and the store's root; `written` are the texts of what compactions wrote, with
    the type of each, empty for a mere reply. Only `extend` and `adopt` change what a plan is made
    from, and inform those that `watch`.
    """

    def __init__(
        self,
        policy: OffloadPolicy,
        ledger: Ledger,
        facts: Facts,
        judged: Counter[Arrived] | None = None,
        *,
        gone: frozenset[ItemKey] = frozenset(),
        written: Mapping[str, str] | None = None,
        shapes: Shapes = BUILT_IN,
    ) -> None:
        self.policy, self.ledger, self.facts = policy, ledger, facts
        self.gone_before, self._written = gone, written or {}
        self.reading = Reading(shapes)
        self.items: list[Item] = []
        """With the types of the policy; a placeholder has those of the item that it stands for."""
        self.newest_user = -1
        """Position of the newest message with a `user_message` item, -1 without one."""
        self.roles = self.reading.roles
        self.fates: dict[int, Decision] = {}
        """The decision on each item that is not in the context as it was, by position."""
        are_judged = bool(policy.steps("arrival"))
        self.arrivals = Arrivals(self.items, self.fates, judged, are_judged=are_judged)
        self.held_back: dict[int, Reason] = {}
        """Why each item stays that was dropped according to the ledger, by position."""
        self.history: list[tuple[int, Decision | None]] = []
        """Each change of a fate, with the fate before it."""
        self.counts: Counter[str] = Counter()
        """Number of items by type, without those of which nothing is left."""
        self.removed: set[int] = set()
        """Messages of which nothing is left."""
        self.staying = Staying()
        """The other ones."""
        self._removed_in_order: list[int] = []
        self._removed_turns: list[int] = []
        """Of the removed messages those that began a turn, in order."""
        self.sent = 0
        """Number of messages, from the first on, that were sent to a model."""
        self.paths = FreePaths(ledger.paths)
        """The files that the ledger knows, and those of `note_named_files`."""
        self._noted = 0
        self._watchers: list[Watcher] = []
        self._as_json = policy.store.blocks == "json"
        self.identities = Identities(self.reading.items, ledger, gone)
        counting = policy.counting_since
        self.marks = Marks(ledger.marks, counting, self.reading, self.identities, self.is_there)
        self._tallies: dict[Unit, Tally] = {}
        self._tallied: dict[Unit, int] = {}

    def watch(self, watcher: Watcher) -> None:
        """Call a function with the position and the fate of each item whose fate changes."""
        self._watchers.append(watcher)

    def extend(
        self,
        checked: deque[CheckedMessage],
        *,
        is_valid: Callable[[Mapping[int, Decision]], bool] = lambda _: True,
    ) -> None:
        """Add what came after the messages known so far, as `reading` has checked it.

        `is_valid` says whether a provider takes the list after these earlier decisions, by the
        positions of the new items; where it does not, nothing that was dropped is dropped again.
        """
        known, turns = self.reading.message_count, len(self.reading.turn_starts)
        self.reading.add(checked)
        self.staying.grow(range(known, self.reading.message_count))
        items = self.reading.items
        new = range(len(self.items), len(items))
        for i in new:
            if items[i].blocks is not None:
                items[i] = self.ledger.as_decided(items[i], as_json=self._as_json)
        fates = self._reapplied(new, is_valid) if self.ledger.entries else {}
        for position in new:
            self._see(position, fates.get(position))
        if not self.arrivals.are_judged:
            return
        if known < self.reading.message_count:
            self.arrivals.happened(Ending.MESSAGE_COMES)
        if turns < len(self.reading.turn_starts):
            self.arrivals.happened(Ending.TURN_BEGINS)
        self.arrivals.extend(new, self.reading.partners)

    def adopt(
        self,
        decisions: Sequence[Decision],
        *,
        judged: int = 0,
        refused: Iterable[Refused] = (),
        entries: Iterable[LedgerEntry] | None = None,
    ) -> None:
        """Add decisions that were carried out to the ledger and to the fates of the items.

        The steps on arrival have `judged` so many of the items that are due, and `refused` some,
        which may arrive again. `entries` are those of the decisions, by default made here, and
        those of the results inside which the decisions change something.
        """
        self.arrivals.settle(judged, refused)
        entries = list(self.entries_of(decisions) if entries is None else entries)
        marks = self.marks.after(decisions)
        for decision in decisions:
            position, message = decision.position, decision.item.message
            before = {unit: self._share(position, unit) for unit in self._tallies_up_to_date()}
            self._set_fate(position, decision.as_decided())
            for unit, size in before.items():
                self._tallies[unit].change(message, self._share(position, unit) - size)
            if decision.file is not None:
                self.paths.add(decision.file.relative_path)
        self.ledger.add(entries)
        self.marks.adopt(marks)

    def entries_of(self, decisions: Iterable[Decision]) -> Iterator[LedgerEntry]:
        """Yield the entry of each decision for the ledger.

        What is dropped, and only held back in this list, stays dropped in others.
        """
        for decision in decisions:
            yield self.entry(decision)
            if decision.position in self.held_back and not decision.action.leaves_nothing:
                dropped = self.identities.entry(decision.position)
                if dropped is not None and dropped.action.leaves_nothing:
                    yield dropped

    def entry(self, decision: Decision) -> LedgerEntry:
        """Return the entry of a decision for the ledger."""
        position, action = decision.position, decision.action
        path = decision.file.relative_path if decision.file else None
        leaves_nothing, known = action.leaves_nothing, self._known(position)
        return known._replace(
            action=action,
            step=decision.step,
            policy=self.policy.digest,
            placeholder=decision.placeholder,
            relative_path=path,
            alike=self.identities.alike(position, known.key) if leaves_nothing else 0,
            rewritten=None,
        )

    def rewritten(self, position: int, text: str) -> LedgerEntry:
        """Return the entry by which a result is recognised when only this text is left of it."""
        known, rewritten = self._known(position), content_hash(text)
        return known._replace(action=Action.KEEP, placeholder=None, rewritten=rewritten)

    def entries(self) -> dict[int, LedgerEntry]:
        """Return the ledger's entry of each item that is out, by position."""
        found = {i: self.identities.entry(i) for i in sorted(self.fates)}
        return {position: entry for position, entry in found.items() if entry is not None}

    def trace(self, message: int) -> Trace:
        """Return what a message is recognised by in each of its forms."""
        return self.identities.trace(self.items_of(message))

    def held_before(self, message: int) -> tuple[ItemKey, ...]:
        """Return the keys of the dropped items that stay all the same, before a message."""
        held = (i for i in self.held_back if self.items[i].message < message and self.is_there(i))
        return tuple(map(self.identities.key, held))

    def known_keys(self, messages: Iterable[int]) -> tuple[ItemKey, ...]:
        """Return the keys of the items in these messages that the ledger may know.

        With those of words: the same words, said again, are counted from there on.
        """
        return tuple(
            self.identities.key(i)
            for message in messages
            for i in self.items_of(message)
            if self.items[i].tool_use_id is None
            or self.ledger.may_know(self.items[i])
            or self.identities.replaced(i)
        )

    @property
    def gone(self) -> frozenset[ItemKey]:
        """The keys of what left without a trace, from this list and before it came back.

        That is what was dropped, and what stood inside a result that left.
        """
        left = {i for i, fate in self.fates.items() if fate.action.leaves_nothing}
        left.update(i for position in self.fates for i in self.inside(position))
        return self.gone_before | {self.identities.key(i) for i in left}

    def may_drop_again_with(self, more: Sequence[Item]) -> bool:
        """Return whether an earlier removal that is held back may apply once these items follow."""
        return may_apply_with(self.reading, self.held_back, more)

    @cached_property
    def superseded(self) -> Superseded:
        """The results that a later one shows again, as far as it was asked to look."""
        return Superseded(self.policy, self.items, self.reading.partners)

    def note_named_files(self) -> None:
        """Add to `paths` the files that placeholders of the list name and the ledger does not know.

        An earlier call left them, or a session whose store keeps no records.
        """
        new = range(self._noted, len(self.items))
        there = (self.items[position] for position in new if position not in self.fates)
        for path in named_paths(there, self.policy, self.facts):
            self.paths.add(path)
        self._noted = len(self.items)

    def checkpoint(self) -> Checkpoint:
        """Return how far the conversation has come."""
        pending = self.reading.pending
        return Checkpoint(
            items=len(self.items),
            messages=self.reading.message_count,
            turns=len(self.reading.turn_starts),
            replies=len(self.reading.reply_starts),
            newest_user=self.newest_user,
            pending=float("inf") if pending is None else pending,
            changes=len(self.history),
        )

    def fates_at(self, at: Checkpoint) -> dict[int, Decision]:
        """Return the fates that the items had at a point, by position."""
        fates = dict(self.fates)
        for position, earlier in reversed(self.history[at.changes :]):
            if earlier is None:
                del fates[position]
            else:
                fates[position] = earlier
        return {position: fate for position, fate in fates.items() if position < at.items}

    def inside(self, position: int) -> Iterator[int]:
        """Yield the items that stand inside of this one."""
        after = position + 1
        while after < len(self.items) and self.items[after].inside == position:
            yield after
            after += 1

    def items_of(self, message: int) -> range:
        """Return the positions of a message's items."""
        return self.reading.items_of(message)

    def of_message(self, position: int) -> Iterator[int]:
        """Yield the items of the same message, except those inside of another."""
        for i in self.items_of(self.items[position].message):
            if self.reading.items[i].inside is None:
                yield i

    def size(self, position: int, unit: Unit) -> int:
        """Return the present size of an item; one inside a result is a part of that one's size."""
        item, fate = self.items[position], self.fates.get(position)
        if fate is None:
            own = self.facts.size(item, unit)
            if not item.media:
                return own
            return own + sum(self._change_of(i, unit) for i in self.inside(position))
        return 0 if fate.placeholder is None else self.facts.length(fate.placeholder, unit)

    def own_tokens(self, position: int) -> int:
        """Return the tokens of an item as it was before a placeholder stood for it."""
        replaced = self.identities.replaced(position)
        known = None if replaced is None else replaced.tokens
        return self.facts.tokens(self.items[position]) if known is None else known

    def is_there(self, position: int) -> bool:
        """Return whether anything of the item, also of one inside another, is left in the list."""
        fate, inside = self.fates.get(position), self.items[position].inside
        return (fate is None or not fate.action.leaves_nothing) and inside not in self.fates

    def tally(self, unit: Unit) -> Tally:
        """Return the size of the list as it is now, message by message."""
        if (tally := self._tallies.get(unit)) is None:
            tally = self._tallies[unit] = Tally()
        if (first := len(tally)) == self.reading.message_count:
            return tally
        amounts = [0] * (self.reading.message_count - first)
        new = range(self._tallied.get(unit, 0), len(self.items))
        outside = [i for i in new if self.items[i].inside is None]
        as_given = [i for i in outside if i not in self.fates and not self.items[i].media]
        own = [self.items[i] for i in as_given]
        counted = self.facts.tokens_of(own) if unit == "tokens" else [item.chars for item in own]
        sizes = dict(zip(as_given, counted, strict=True))
        for i in outside:
            size = sizes[i] if i in sizes else self.size(i, unit)
            amounts[self.items[i].message - first] += size
        for amount in amounts:
            tally.append(amount)
        self._tallied[unit] = len(self.items)
        return tally

    def counted(self, facts: Facts) -> int:
        """Return the tokens of the list as it is now with what is sent beside it, uncorrected."""
        messages = self.reading.message_count - len(self.removed)
        return self.tally("tokens").total + facts.tokens_beside + facts.tokens_around(messages)

    def turns(self) -> int:
        """Return the number of turns begun in the list as it is now."""
        return len(self.reading.turn_starts) - len(self._removed_turns)

    def messages_behind(self, message: int) -> int:
        """Return the number of messages behind this one in the list as it is now."""
        removed = len(self._removed_in_order) - bisect_right(self._removed_in_order, message)
        return self.reading.message_count - 1 - message - removed

    def turns_behind(self, message: int) -> int:
        """Return the number of turns begun behind this message in the list as it is now."""
        starts, removed = self.reading.turn_starts, self._removed_turns
        begun = len(starts) - bisect_right(starts, message)
        return begun - (len(removed) - bisect_right(removed, message))

    def _see(self, position: int, fate: Decision | None) -> None:
        item = self._typed(position)
        self.items.append(item)
        if item.kind == "user_message":
            self.newest_user = item.message
        self.counts[item.type] += item.inside not in self.fates
        if fate is not None:
            self._set_fate(position, replace(fate, item=item))
        if self.ledger.marks:
            self.marks.see(position)

    def _reapplied(
        self, new: range, is_valid: Callable[[Mapping[int, Decision]], bool]
    ) -> dict[int, Decision]:
        """Return the earlier decisions that apply to these items again, by position."""
        found = ((i, self.identities.entry(i)) for i in new)
        entries = {i: entry for i, entry in found if entry is not None}
        fates = {i: self._remembered(i, entry) for i, entry in entries.items()}
        held = HeldBack(self.reading, fates, self.fates, self.removed, self.newest_user).reasons()
        applied = {i: fate for i, fate in fates.items() if i not in held}
        drops = any(fate.action.leaves_nothing for fate in applied.values())
        if drops and not is_valid(applied):
            held |= all_held_back(applied)
        self.held_back |= held
        before = ((i, self.ledger.before_drop.get(entries[i].key)) for i in held)
        return {
            **{i: fate for i, fate in fates.items() if i not in held},
            **{i: self._remembered(i, entry) for i, entry in before if entry is not None},
        }

    def _typed(self, position: int) -> Item:
        item = self.reading.items[position]
        replaced = self.identities.replaced(position) if self.ledger.entries else None
        if replaced is not None:
            return self.policy.as_before(item, replaced.key.kind, replaced.item_type)
        if item.kind == "tool_result" and self._reads_back(position):
            return self.policy.typed(item, "recalled")
        is_said = self._written and item.kind == "user_message"
        return self.policy.typed(item, (is_said and self._written.get(item.text)) or None)

    def _known(self, position: int) -> LedgerEntry:
        """Return the entry of what an item stands for, or one without a decision."""
        if (earlier := self.identities.replaced(position)) is not None:
            return earlier
        item = self.items[position]
        is_medium = item.kind in MEDIA_TYPES and item.inside is None
        return LedgerEntry(
            key=self.identities.key(position),
            chars=len(item.text),
            item_id=item.item_id,
            item_type=item.type,
            action=Action.KEEP,
            step="",
            policy=self.policy.digest,
            tool=item.tool,
            reads_as=kind_of_text(item.role) if is_medium else "",
            names_file=item.kind == "tool_call" and self._names_file(item),
            tokens=self.facts.tokens(item) if self.policy.keeps_by_tokens else None,
            saved=content_hash(item.text) if item.media and item.identity != item.text else None,
            call_id=item.other_id if item.is_answer else None,
        )

    def is_written(self, message: int) -> bool:
        """Return whether a compaction wrote all of a message: a summary, a file, a reply to one."""
        return all(map(self._is_written, self.items_of(message)))

    def _is_written(self, position: int) -> bool:
        item = self.items[position]
        is_left = self.policy.left_by_compaction(item) is not None
        return is_left or item.text in self._written or self.is_scripted_reply(position)

    def is_scripted_reply(self, position: int) -> bool:
        """Return whether an item is the assistant's reply that a compaction wrote."""
        item = self.items[position]
        if item.role != "assistant" or not self.policy.compaction_forms.is_reply(item.text):
            return False
        # The same words are a reply only to what a compaction wrote.
        return item.message > 0 and self.is_written(item.message - 1)

    def _reads_back(self, position: int) -> bool:
        """Return whether a result answers a recall tool, or a call that names a stored file."""
        call = self.reading.partners.get(position)
        if recall_tool(self.reading.items[position].tool) is not None:
            return True
        if call is None or not self.ledger.entries:
            return False
        replaced = self.identities.replaced(call)
        return (
            self._names_file(self.reading.items[call]) if replaced is None else replaced.names_file
        )

    def _names_file(self, call: Item) -> bool:
        may_name = self.ledger.may_name_file(call.text)
        return may_name and any(map(self.ledger.has_file, words_of(call)))

    def _remembered(self, position: int, entry: LedgerEntry) -> Decision:
        item, path = self.reading.items[position], entry.relative_path
        file = None if path is None else File(path, f"{self.facts.root}/{path}")
        reason, left = Reason("decided", {"step": entry.step}), entry.placeholder
        return Decision(
            position, item, entry.action, reason, entry.step, placeholder=left, file=file
        )

    def _set_fate(self, position: int, fate: Decision) -> None:
        earlier = self.fates.get(position)
        there = [i for i in (position, *self.inside(position)) if self.is_there(i)]
        self.history.append((position, earlier))
        self.fates[position] = fate
        self.arrivals.waiting.pop(position, None)
        self.counts.subtract(self.items[i].type for i in there if not self.is_there(i))
        if fate.action.leaves_nothing and (earlier is None or not earlier.action.leaves_nothing):
            self._note_removal(position)
            self.arrivals.happened(Ending.PART_LEAVES, self.items[position].message)
        for watcher in self._watchers:
            watcher(position, fate)

    def _note_removal(self, position: int) -> None:
        fates = map(self.fates.get, self.of_message(position))
        if all(fate is not None and fate.action.leaves_nothing for fate in fates):
            message = self.items[position].message
            self.removed.add(message)
            self.staying.remove(message)
            insort(self._removed_in_order, message)
            if self.reading.begins_turn(message):
                insort(self._removed_turns, message)

    def _share(self, position: int, unit: Unit) -> int:
        """Return the item's part of its message's size; none for one inside an item that is out."""
        return 0 if self.items[position].inside in self.fates else self.size(position, unit)

    def _change_of(self, position: int, unit: Unit) -> int:
        """Return by how much the fate of an item inside another has changed the size."""
        if position not in self.fates:
            return 0
        return self.size(position, unit) - self.facts.size(self.items[position], unit)

    def _tallies_up_to_date(self) -> tuple[Unit, ...]:
        return tuple(unit for unit in self._tallies if self.tally(unit) is not None)
