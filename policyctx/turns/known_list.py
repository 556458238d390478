"""`KnownList`: the message list of a session, as it was given and as it was returned.

Most turns bring the list of the previous turn with a few more messages, either as the caller kept
it or as the session returned it. Both are recognised, and only the new messages are read. The
known ones may be new objects, and their `cache_control` markers may have moved.
"""

from collections import ChainMap, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain, islice
from typing import NamedTuple, cast

from policyctx.definitions.items import Message, Path, Ttl, call_keys
from policyctx.errors import InvalidResultError
from policyctx.messages.editing import Edit, block_of, edited_shaped, keep_structure
from policyctx.messages.markers import markers_of, places_of, with_markers
from policyctx.messages.reading import CheckedMessage, Reading, items_of
from policyctx.messages.shapes.built_in import Shaped, Shapes
from policyctx.messages.sources import (
    Sources,
    are_alike,
    differences,
    have_same_ends,
    moved,
    position_of,
)
from policyctx.messages.validity import new_problems_around
from policyctx.planning.conversation import Conversation
from policyctx.planning.decisions import Decision
from policyctx.planning.ledger import ItemKey, LedgerEntry
from policyctx.planning.plan import Plan
from policyctx.planning.planner import Planner
from policyctx.planning.reapplying import Form
from policyctx.store.content import Content, Origin


class _Made(NamedTuple):
    """A message that a plan has edited."""

    given: Message
    edits: list[Edit]
    new: Message | None


class KnownList:
    """A list that grows, and the list that the plans carried out so far have made of it.

    `is_guess` says that the items which were taken out of the list earlier were inferred from the
    items that it lacked when it was read, or from a longer list, or that it may go on with them. A
    list that `forgets` is only read: plans for it are carried out by `applied`, and change neither
    it nor its conversation. One that `arrives` is not a list of the session, but what follows its
    last one.
    """

    def __init__(
        self,
        conversation: Conversation,
        *,
        is_guess: bool = False,
        forgets: bool = False,
        arrives: bool = False,
    ) -> None:
        self.conversation, self.planner = conversation, Planner(conversation)
        self.is_guess = is_guess and bool(conversation.gone_before)
        self.forgets, self.arrives = forgets, arrives
        self._shapes = conversation.reading.shapes
        self.messages: Sequence[Message] = ()
        """The list object that was read last."""
        self.given: list[Message] = []
        """The messages as the caller kept them, by position."""
        self.left: list[Message | None] = []
        """The messages as they are returned, by position; None for one that was removed."""
        self._edited: set[int] = set()
        """Positions at which the two lists differ."""
        self._made: dict[int, _Made] = {}
        """The edits that were made last of each message, if this list forgets them."""
        self._checked: Mapping[int, Message | None] = {}
        """The changes of the plan before, if this list forgets them; they were valid."""
        self._restructured: frozenset[int] = frozenset()
        """The messages of which that plan changed more than texts."""
        self._first_removed: int | None = None
        """The position of the first message that was removed; None if none was."""
        self.output: Sequence[Message] | None = None
        """The list object that the session returned last, unless it is the one that was given."""
        self.comes_back = False
        """Whether the caller gave the list that the session returned, not a list of its own."""
        self._changed_since: set[int] = set()
        """Positions whose message changed since the caller gave the list."""
        self._given_at = conversation.checkpoint()
        """The point at which the caller gave the returned list again."""
        self.marked: set[int] = set()
        """Positions of messages that may have markers, if the policy places breakpoints."""
        self._may_drop = any(s.action.leaves_nothing for s in conversation.policy.policy.steps)
        self._follows_markers = conversation.policy.places_breakpoints
        self._is_outdated = False
        """Whether a decision was made on a call of this list when its result arrived."""

    def continue_with(
        self, messages: Sequence[Message], alike: list[Message] | None = None
    ) -> bool:
        """Read the messages if they begin with this list, and return whether they do.

        They may begin with it as it was given or as it was returned. Messages are equal if they are
        the same object or have equal values but for their `cache_control` markers; an SDK's message
        object equals the dict that was saved of it. A returned list from which messages were
        removed does not count, and is read anew; see `_is_output`. Neither does a list whose new
        messages make a withheld removal possible, or contain an item that seemed to be missing.
        `alike` are messages equal to these, of which objects may be known; see `Entered`.
        """
        known = len(self.given)
        if self._is_outdated or len(messages) < known or self._is_output(messages):
            return False
        given = messages if type(messages) is list else [*messages]
        for comes_back in (self.comes_back, not self.comes_back):
            other = self.left if comes_back else self.given
            if comes_back and not self._edited:
                continue
            if (differing := differences(alike or given, other, self._shapes)) is not None:
                more = self.conversation.reading.checked(messages[known:])
                if self._reads_otherwise(more):
                    return False
                self.comes_back = comes_back
                self._take(given, differing)
                self._changed_since = set()
                if comes_back:
                    self._given_at = self.conversation.checkpoint()
                self._read(messages, more)
                return True
        return False

    def note_arrival(self, decisions: Iterable[Decision]) -> None:
        """Note decisions on a result that arrived: on a call that is in this list, too."""
        calls = (d.item for d in decisions if d.item.kind == "tool_call")
        keys = (key for call in calls for key in call_keys(call))
        self._is_outdated |= any(map(self.conversation.reading.open_call, keys))

    def _is_output(self, messages: Sequence[Message]) -> bool:
        """Whether this is the list that was returned, less removed messages, by its objects.

        If messages are equal, a list may begin with both forms of this one. Then the list object
        decides, or else the first message that is an object of one form and not of the other.
        """
        output, given, first = self.output, self.given, self._first_removed
        if output is None or first is None:
            return False
        if messages is not output:
            both = range(first, min(len(messages), len(output), len(given)))
            if not both or not are_alike(messages[first], output[first], self._shapes):
                return False
            deciding = (i for i in both if (messages[i] is output[i]) != (messages[i] is given[i]))
            found = next(deciding, None)
            if found is None or messages[found] is given[found]:
                return False
        return _begins_alike(messages, self._returned, self._shapes)

    @property
    def _returned(self) -> list[Message]:
        there = (self.left[one.start : one.stop] for one in self.conversation.staying.sources)
        return [*chain.from_iterable(there)]

    @property
    def sources(self) -> Sources:
        """The positions of the messages that were not removed."""
        return self.conversation.staying.sources

    def place(self, message: int) -> int | None:
        """Return the place of a message in the list that is returned, None if it was removed."""
        return message if self._first_removed is None else position_of(self.sources, message)

    @property
    def edited_positions(self) -> AbstractSet[int]:
        """The positions of messages that are not returned as the caller gave them."""
        return self._changed_since if self.comes_back else self._edited

    def places_left(self, edited: Iterable[int]) -> dict[int, Mapping[Path, Path]]:
        """Return where each place for a marker is left in these edited messages, by position.

        By its path in the message that the caller gave, which may have come back edited.
        """
        fates, at = self.conversation.fates, self._given_at
        back = self.conversation.fates_at(at) if self.comes_back else {}
        found: dict[int, Mapping[Path, Path]] = {}
        for message in edited:
            found[message] = now = self._places_left(message, fates)
            if self.comes_back and message < at.messages:
                before = self._places_left(message, back)
                found[message] = {path: now[one] for one, path in before.items() if one in now}
        return found

    def placeholders(self, files: Collection[str]) -> int:
        """Return the number of placeholders that name a file.

        Without a ledger, each item whose text contains the path of one of these files is one: a
        text that names a file which was never there is not.
        """
        conversation = self.conversation
        if conversation.ledger.entries:
            fates = conversation.fates.values()
            return sum(f.file is not None and f.placeholder is not None for f in fates)
        return sum(any(file in item.text for file in files) for item in conversation.items)

    def _take(self, messages: list[Message], differing: Collection[int]) -> None:
        """Replace the known messages by these equal objects, so that these are returned.

        Of a list without edits it is left to `_take_objects`, if most are known objects. At
        the `differing` positions markers may have moved. In an edited message they move in both
        forms, the one that the caller gave and the other one.
        """
        if not (self._edited or differing) and have_same_ends(messages, self.given):
            return
        given = messages[: len(self.given)]
        left = cast("list[Message | None]", given[:])
        new = {}
        for message in self._edited.intersection(differing):
            given_now = self.conversation.reading.shaped(message, given[message])
            new[message] = markers_of(given_now.message)
        known, other = (self.given, given) if self.comes_back else (self.left, left)
        for message in self._edited:
            other[message] = known[message]
        for message, markers in new.items():
            places = self._places_left(message, self.conversation.fates)
            if self.comes_back:
                back = {after: before for before, after in places.items()}
                given[message] = moved(self.given[message], markers, back, self._shapes)
            elif (old := self.left[message]) is not None:
                left[message] = moved(old, markers, places, self._shapes)
        self.given, self.left = given, left
        self._note_markers(differing)

    def _places_left(self, message: int, fates: Mapping[int, Decision]) -> Mapping[Path, Path]:
        """Return where these fates leave each place of a message as it was given at first."""
        edits = list(self._edits(message, fates))
        shape, given = self.conversation.reading.shaped(message, self.given[message])
        named = with_markers(given, {path: path for path in places_of(given)})
        left = edited_shaped(Shaped(shape, named), edits) if edits else named
        return {} if left is None else {before: after for after, before in markers_of(left).items()}

    def form_of(self, messages: Sequence[Message]) -> Form | None:
        """Return the form of this list with which another list begins, None if there is none.

        If the form goes on where the other list ends, it is a guess: the other list may go on with
        the dropped items. A list that begins with both forms counts as it was given, unless its
        objects show that it was returned; see `_is_output`.
        """
        conversation, ended = self.conversation, list[ItemKey]()
        form, gone = self.given, conversation.gone_before
        if self._is_output(messages) or not _begins_alike(messages, form, self._shapes):
            form, gone = self._returned, conversation.gone
            if not _begins_alike(messages, form, self._shapes):
                return None
            # The objects may be those of an earlier output, with what was dropped since.
            goes_on = messages is self.output and len(messages) > len(form)
            ended = [] if goes_on else [*self._ended()]
            # What the list lacked when it was given may have been before that.
            ended += conversation.gone_before if ended else ()
        return Form(messages[len(form) :], gone, self.is_guess or len(messages) < len(form), ended)

    def _ended(self) -> Iterator[ItemKey]:
        """Yield the items of the messages that were removed behind all that is left."""
        for message in range(len(self.left) - 1, -1, -1):
            if self.left[message] is not None:
                return
            yield from map(self.conversation.identities.key, self.conversation.items_of(message))

    def _reads_otherwise(self, more: deque[CheckedMessage]) -> bool:
        """Whether the messages that follow change the meaning of the known ones."""
        conversation = self.conversation
        drops = self._edited and self._may_drop
        if not more or not (conversation.held_back or conversation.gone_before or drops):
            return False
        reading = Reading(self._shapes)
        reading.add(more.copy())
        items = [*map(conversation.ledger.as_decided, reading.items)]
        is_wrong = self.is_guess and any(map(conversation.ledger.may_have_left, items))
        if is_wrong or conversation.may_drop_again_with(items):
            return True
        calls = (conversation.reading.call_of(item) for item in items if item.is_answer)
        asked = any(call is not None and not conversation.is_there(call) for call in calls)
        return asked or self._goes_on_without_thinking(more[0].role)

    def _goes_on_without_thinking(self, role: str) -> bool:
        """Whether a message continues a reply whose thinking was removed when nothing followed."""
        reading, is_there = self.conversation.reading, self.conversation.is_there
        if not reading.items or role != "assistant":
            return False
        newest = reading.thought_of(len(reading.items) - 1)
        return any(reading.is_bound(i) and not is_there(i) for i in newest)

    def sent_of(self, messages: Sequence[Message]) -> int:
        """Return the number of messages at the start of another list that this one sent."""
        sent = self.conversation.sent
        returned = [message for message in self.left[:sent] if message is not None]
        return max(_alike(other, messages, self._shapes) for other in (self.given[:sent], returned))

    def read(self, messages: Sequence[Message]) -> None:
        """Read the messages that a continuation of this list adds; raises `MessagesError`."""
        self._read(messages, self.conversation.reading.checked(messages[len(self.given) :]))

    def _read(self, messages: Sequence[Message], checked: deque[CheckedMessage]) -> None:
        self.messages = messages
        known, items = len(self.given), len(self.conversation.items)
        more = list(messages[known:])
        if not more:
            return
        self.conversation.extend(checked, is_valid=lambda fates: not self._problems(more, fates))
        self.given += more
        self.left += more
        self._note_markers(range(known, len(self.left)))
        if fates := self.conversation.fates:
            new = range(items, len(self.conversation.items))
            remembered = {i: fates[i] for i in new if i in fates}
            if edits := self._edits_by_message(remembered):
                self._take_objects()
            self._put(self._changed(edits))

    def _problems(self, more: list[Message], fates: Mapping[int, Decision]) -> list[str]:
        """Return the rules that earlier decisions on the items in `more` would break.

        The conversation has read the items, but has not applied the decisions yet.
        """
        given, after = [*self.given, *more], [*self.left, *more]
        edits = self._edits_by_message(fates)
        for message, found in edits.items():
            after[message] = self._edited_as(message, given[message], found)
        restructured = self._restructuring(edits)
        return self._new_problems(given, after, restructured, [*self.left, *more])

    def _new_problems(
        self,
        given: Sequence[Message],
        after: Sequence[Message | None],
        changed: Collection[int],
        left: Sequence[Message | None],
    ) -> list[str]:
        reading, staying = self.conversation.reading, self.conversation.staying
        return new_problems_around(given, after, changed, reading, staying, left=left)

    def edited(self, plan: Plan) -> Mapping[int, Message | None]:
        """Return the messages that the plan changes, by position; None for one that it removes.

        Raises `InvalidResultError` if a provider would reject the list because of it.
        """
        if plan.new or plan.compaction:
            self._take_objects()
        if not plan.new:
            self._checked, self._restructured = {}, frozenset()
            return {}
        edits = self._edits_by_message({decision.position: decision for decision in plan.new})
        changes = self._changed(edits)
        restructured = self._restructuring(edits)
        if unchecked := self._unchecked(changes, restructured):
            after = self._left_after(changes)
            if problems := self._new_problems(self.given, after, unchecked, self.left):
                raise InvalidResultError(problems)
        if self.forgets:
            self._checked, self._restructured = changes, restructured
        return changes

    def _take_objects(self) -> None:
        """Take the objects of the list that was read last, before its first edit."""
        if not self._edited:
            self.given = [*islice(self.messages, len(self.given))]
            self.left = [*self.given]

    def _restructuring(self, edits: Mapping[int, Sequence[Edit]]) -> frozenset[int]:
        """Return the messages of which these edits change more than texts."""
        items, items_of = self.conversation.reading.items, self.conversation.items_of
        return frozenset(
            message
            for message, found in edits.items()
            if not keep_structure([items[i] for i in items_of(message)], found)
        )

    def _unchecked(
        self, changes: Mapping[int, Message | None], restructured: frozenset[int]
    ) -> Collection[int]:
        """Return where the list would break other rules than as the plan before it left it.

        That plan was checked. A message of which only texts change breaks no other rule.
        """
        before = self._checked
        if not before:
            return restructured
        new = {i for i, message in changes.items() if i not in before or before[i] is not message}
        found = new.union(before.keys() - changes.keys())
        return found & (restructured | self._restructured)

    def entries(self, plan: Plan, changes: Mapping[int, Message | None]) -> list[LedgerEntry]:
        """Return what the ledger keeps of a plan: its decisions, and what `_rewritten` returns."""
        return [*self.conversation.entries_of(plan.new), *self._rewritten(plan, changes)]

    def _rewritten(self, plan: Plan, changes: Mapping[int, Message | None]) -> list[LedgerEntry]:
        """Return an entry for each result that stays while the plan changes items inside it.

        By this entry the result is recognised when the returned list comes back.
        """
        inside = {d.item.inside for d in plan.new if d.item.inside is not None}
        if not inside:
            return []
        conversation = self.conversation
        fates = {**conversation.fates, **{d.position: d for d in plan.new}}
        entries = []
        for position in sorted(inside - fates.keys()):
            message = conversation.items[position].message
            if (left := changes.get(message)) is not None:
                inner = conversation.items_of(message)
                results = (i for i in inner if conversation.items[i].kind == "tool_result")
                there = [i for i in results if i not in fates or not fates[i].action.leaves_nothing]
                texts = [
                    item.whole
                    for item in items_of([left], self._shapes)
                    if item.kind == "tool_result"
                ]
                entries.append(conversation.rewritten(position, texts[there.index(position)]))
        return entries

    def content(self, decision: Decision) -> Content:
        """Return the content that the store saves for a decision, and its origin."""
        assert decision.file is not None  # noqa: S101 - every saved content has a file
        item = decision.item
        # Tokens are costly to count: the index alone is no reason for it.
        by_tokens = decision.unit == "tokens"
        origin = Origin.of(
            item,
            tokens=self.conversation.facts.tokens(item) if by_tokens else None,
            block=block_of(self.given[item.message], item, self._shapes),
        )
        path = decision.file.relative_path
        return Content(path, item.text, decision.wanted_path, origin)

    def apply(self, changes: Mapping[int, Message | None]) -> Sequence[Message]:
        """Apply the changes, and return the list to send: the given one if it needs no edit."""
        if changes:
            self._put(changes)
        if not (self._changed_since if self.comes_back else self._edited):
            return self.messages
        if self._first_removed is None:
            return cast("list[Message]", self.left[:])
        return self._returned

    def applied(self, changes: Mapping[int, Message | None]) -> tuple[Sequence[Message], Sources]:
        """Return the list to send after these changes, and its sources, without making them."""
        if not (changes or self.edited_positions):
            return self.messages, self.sources
        staying = self.conversation.staying.copy()
        for i, new in changes.items():
            if new is None:
                staying.remove(i)
        after = self._left_after(changes)
        return [message for message in after if message is not None], staying.sources

    def _edited_as(self, message: int, given: Message, edits: Sequence[Edit]) -> Message | None:
        reading, gone = self.conversation.reading, {e.item.path for e in edits if e.text is None}
        items = (reading.items[i] for i in reading.items_of(message))
        if all(item.inside is not None or item.path in gone for item in items):
            return None
        return edited_shaped(reading.shaped(message, given), edits)

    def previewed(self, plan: Plan) -> tuple[Sequence[Message], Sources]:
        """Return what `applied` returns for the changes of a plan.

        A plan whose edits a provider would reject changes nothing.
        """
        try:
            changes = self.edited(plan)
        except InvalidResultError:
            changes = {}
        return self.applied(changes)

    def _left_after(self, changes: Mapping[int, Message | None]) -> list[Message | None]:
        after = list(self.left)
        for i, new in changes.items():
            after[i] = new
        return after

    def _note_markers(self, positions: Iterable[int]) -> None:
        """Note which of these messages have markers."""
        if self._follows_markers:
            for i in positions:
                is_marked = self.with_markers(i, {}) is not self.left[i]
                (self.marked.add if is_marked else self.marked.discard)(i)

    def with_markers(self, message: int, ttls: Mapping[Path, Ttl]) -> Message | None:
        """Return a message with markers at the parts with these paths, and nowhere else.

        It is the message at a position as it is left, None if it was removed. Without a change it
        is the same object; of an SDK's object it is a dict.
        """
        left = self.left[message]
        if left is None:
            return None
        shape, shaped = self.conversation.reading.shaped(message, left)
        if not shape.takes_markers:
            return left
        new = shape.marked(shaped, ttls)
        return left if new is shaped else new

    def ttl(self, position: int) -> Ttl | None:
        """Return the lifetime that the marker on an item asks for, None if there is none."""
        message = self.conversation.items[position].message
        shape, shaped = self.conversation.reading.shaped(message, self.left[message])
        found = shape.ttls(shaped) if shape.takes_markers else {}
        return found.get(self.path_left(position)) if found else None

    def path_left(self, position: int) -> Path:
        """Return the path that an item has in the message as it is returned."""
        conversation, message = self.conversation, self.conversation.items[position].message
        shape, shaped = conversation.reading.shaped(message, self.left[message])
        before = range(conversation.items_of(message).start, position)
        there = sum(
            conversation.items[i].inside is None and conversation.is_there(i) for i in before
        )
        left = [part.path for part in shape.parts(shaped) if not part.number]
        return left[there]

    def _put(self, changes: Mapping[int, Message | None]) -> None:
        for message, new in changes.items():
            self.left[message] = new
            self._edited.add(message)
            self._changed_since.add(message)
            if new is None:
                first = self._first_removed
                self._first_removed = message if first is None else min(first, message)

    def _changed(self, edits: Mapping[int, list[Edit]]) -> dict[int, Message | None]:
        if self.forgets:
            return {message: self._made_again(message, edits[message]) for message in edits}
        return {
            message: self._edited_as(message, self.given[message], edits[message])
            for message in edits
        }

    def _made_again(self, message: int, edits: list[Edit]) -> Message | None:
        """Return the message with these edits; that of the plan before if nothing differs."""
        given, known = self.given[message], self._made.get(message)
        if known is None or known.given is not given or known.edits != edits:
            new = self._edited_as(message, given, edits)
            self._made[message] = known = _Made(given, edits, new)
        return known.new

    def _edits_by_message(self, new: Mapping[int, Decision]) -> dict[int, list[Edit]]:
        """Return the edits of each message that these decisions change, by its position."""
        messages = sorted({fate.item.message for fate in new.values() if not _is_as_left(fate)})
        earlier = self.conversation.fates
        fates = ChainMap(dict(new), earlier) if earlier else new
        edits = {message: list(self._edits(message, fates)) for message in messages}
        return {message: found for message, found in edits.items() if found}

    def _edits(self, message: int, fates: Mapping[int, Decision]) -> Iterable[Edit]:
        """Yield the edits of a message as it was given, by the fates of its items."""
        conversation = self.conversation
        for position in conversation.items_of(message):
            fate, inside = fates.get(position), conversation.reading.items[position].inside
            if fate is None or _is_as_left(fate):
                continue
            if inside not in fates:
                yield Edit(fate.item, fate.placeholder)


def _is_as_left(fate: Decision) -> bool:
    """Whether an item is already what the decision leaves of it."""
    return fate.placeholder == fate.item.identity


def _begins_alike(some: Sequence[Message], other: list[Message], shapes: Shapes) -> bool:
    """Whether one of two lists begins with the other."""
    return differences(list(islice(some, len(other))), other[: len(some)], shapes) is not None


def _alike(some: Sequence[Message], others: Sequence[Message], shapes: Shapes) -> int:
    """Return the number of equal messages at the beginning of two lists."""
    pairs = enumerate(zip(some, others, strict=False))
    ends = (i for i, (one, other) in pairs if not are_alike(one, other, shapes))
    return next(ends, min(len(some), len(others)))
