"""The rules of providers that an edited list breaks, and the list before the edit did not.

A rule that the input breaks already is no reason to reject the output.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple

from policyctx.definitions.items import UNKNOWN, Item, Message, call_key, call_keys
from policyctx.messages.json_text import Text, json_text
from policyctx.messages.reading import Reading, items_of, unsigned
from policyctx.messages.shapes.built_in import BUILT_IN, Shaped, Shapes
from policyctx.messages.shapes.shape import RESULT_ROLES, SYSTEM_ROLES, Shape
from policyctx.messages.sources import Staying


def new_problems(
    before: Sequence[Message],
    after: Sequence[Message],
    items: Sequence[Item] | None = None,
    shapes: Shapes = BUILT_IN,
    items_after: Sequence[Item] | None = None,
) -> list[str]:
    """Return a sentence for each rule that `after` breaks and `before` did not.

    The result of a call must be in the messages right after it that contain only results, or in the
    message that follows these. What is further away, such as a late or second result, or the result
    of a tool that the provider runs, must at least have its call before it. `items` are those of
    `before`, if the caller has them already, and `items_after` those of `after`.
    """
    whole = _seen(before, items_of(before, shapes) if items is None else items, shapes)
    new = items_of(after, shapes) if items_after is None else items_after
    edited = _seen(after, new, shapes)
    return _new_problems([_Stretch(whole)], [_Stretch(edited)], _newly_parted(whole, edited))


def new_problems_around(
    before: Sequence[Message],
    after: Sequence[Message | None],
    changed: Collection[int],
    reading: Reading,
    staying: Staying | None = None,
    *,
    left: Sequence[Message | None] | None = None,
) -> list[str]:
    """Return the sentences of `new_problems`, but check only the surroundings of the edits.

    `after` is aligned with `before`, with None for a removed message. `changed` are the positions
    to check; the lists may also differ at positions that were checked before. `reading` is that of
    `before`. `staying` are the places at which earlier edits left a message, by default all, and
    `left` the list as they left it. The cost grows with `changed` and the results around it, not
    with the list. Only where an edit breaks a rule that was kept in `left` does it also grow with
    what earlier edits removed there.
    """
    everything = Staying([range(len(before))])
    there = everything if staying is None else staying
    near = _Around(before, after, changed, reading, there)
    if near.is_sound() or (left is not None and not near.problems_beside(left)):
        return []
    view = _Around(before, after, changed, reading, everything)
    stretches = list(view.stretches())
    parted = view.newly_parted(chain.from_iterable(stretches))
    if parted:  # an id may have been used before, so another call may be there
        parted &= view.newly_parted(range(len(before)))
    return _new_problems(
        [view.stretch(places, view.before) for places in stretches],
        [view.stretch(places, view.after) for places in stretches],
        parted,
    )


class _Seen(NamedTuple):
    """A message with its shape, its role and its items."""

    shape: Shape
    message: Message
    role: str
    items: Sequence[Item]

    @classmethod
    def of(cls, shaped: Shaped, items: Sequence[Item]) -> _Seen:
        """Return a message as its shape sees it."""
        shape, message = shaped
        return cls(shape, message, shape.role(message), items)

    @property
    def holds_only_results(self) -> bool:
        """Whether the message may be between a call and the result of a parallel call."""
        if self.role in RESULT_ROLES:
            return True
        return bool(self.items) and all(
            item.kind == "tool_result" or item.inside is not None for item in self.items
        )

    @property
    def may_not_be_first(self) -> bool:
        """Whether a list may not begin with the message.

        The Responses API takes any item first, and that of Anthropic the block of its compaction.
        """
        is_free = self.shape.splits_replies or self.shape.stays(self.message)
        return self.role == "assistant" and not is_free

    @property
    def may_not_be_last(self) -> bool:
        """Whether a list may not end with the message; the Responses API takes an opaque item."""
        return self.role == "assistant" and not self.shape.stays(self.message)

    def is_of_split_reply(self, before: bool) -> bool:  # noqa: FBT001
        """Return whether the message may be one of several that make up a reply.

        `before` says whether the message before it is one. Reasoning may lead to an easy message.
        """
        return self.role == "assistant" and (before or self.shape.splits_replies)

    @property
    def is_thinking(self) -> bool:
        """Whether the message holds nothing but thinking."""
        return bool(self.items) and all(item.kind == "thinking" for item in self.items)

    @property
    def needs_what_led_to_it(self) -> bool:
        """Whether the message is an item of the provider, which knows a text by its id only."""
        if not all(item.kind == "assistant_message" for item in self.items):
            return self.shape.splits_replies
        plain = self.shape.plain(self.message)
        return not isinstance(plain, dict) or plain.get("id") is not None


def _seen(messages: Sequence[Message], items: Sequence[Item], shapes: Shapes) -> list[_Seen]:
    found: list[list[Item]] = [[] for _ in messages]
    for item in items:
        found[item.message].append(item)
    pairs = zip(messages, found, strict=True)
    return [_Seen.of(shapes.shaped(message), its_items) for message, its_items in pairs]


class _Stretch(NamedTuple):
    """Messages that follow each other in a list.

    Where the list goes on beyond the first or the last of them, that one is a border: its results
    may answer calls before the stretch, and results behind the stretch may answer its calls.
    """

    seen: Sequence[_Seen]
    begins_list: bool = True
    ends_list: bool = True


def _new_problems(
    before: Sequence[_Stretch], after: Sequence[_Stretch], parted: Counter[str]
) -> list[str]:
    broken = Counter(chain.from_iterable(map(_broken, after)))
    broken -= Counter(chain.from_iterable(map(_broken, before)))
    broken |= parted  # what lost its call right before it and has none elsewhere counts once
    broken += _unsigned(after) - _unsigned(before)
    changed = _thinking(after) - _thinking(before)
    return [*broken.elements(), *["the bytes of a thinking block changed"] * changed.total()]


def _broken(stretch: _Stretch) -> Iterator[str]:
    first = next((each for each in stretch.seen if each.role not in SYSTEM_ROLES), None)
    if stretch.begins_list and first is not None and first.may_not_be_first:
        yield "the list begins with an assistant message"
    for each in stretch.seen:
        if each.shape.is_empty(each.message):
            yield f"a message of role {each.role} is empty"
        if each.role == "assistant" and each.is_thinking and not each.shape.splits_replies:
            yield "an assistant message holds nothing but thinking"
    yield from _parted_thinking(stretch)
    yield from _unpaired(stretch)
    if stretch.ends_list and stretch.seen and stretch.seen[-1].may_not_be_last:
        yield "the list ends with an assistant message"


def _parted_thinking(stretch: _Stretch) -> Iterator[str]:
    """Yield a sentence where a split reply lacks its thinking, or thinking what it led to."""
    was_reply = was_thinking = is_led = False
    for place, each in enumerate(stretch.seen):
        is_reply = each.is_of_split_reply(was_reply)
        if not was_reply:
            is_led = place == 0 and not stretch.begins_list  # by what is before the stretch
        if is_reply and not is_led and each.needs_what_led_to_it:
            if not each.is_thinking:
                yield "a reply begins without the reasoning that led to it"
            is_led = True
        if was_thinking and not is_reply:
            yield "reasoning is not followed by what it led to"
        was_reply, was_thinking = is_reply, is_reply and each.is_thinking
    if stretch.ends_list and was_thinking:
        yield "reasoning is not followed by what it led to"


def _newly_parted(before: Iterable[_Seen], after: Iterable[_Seen]) -> Counter[str]:
    return Counter(_parted_pairs(after)) - Counter(_parted_pairs(before))


def _parted_pairs(seen: Iterable[_Seen]) -> Iterator[str]:
    """Yield a sentence for half of a pair without the other half, however far away that is."""
    calls, waiting = set[object](), _Calls()
    for item in (item for each in seen for item in each.items):
        key = call_key(item)
        if key is None or item.inside is not None:
            continue
        if item.is_call:
            calls.update(call_keys(item))
            if item.kind == UNKNOWN:
                waiting.add(item)
        elif item.is_answer:
            waiting.take(item)
            if key not in calls:
                yield f"the result {_name(item)} has no call right before it"
    yield from map("the call {} has no result right after it".format, waiting.names())


def _unpaired(stretch: _Stretch) -> Iterator[str]:
    waiting, was_reply = _Calls(), False
    for place, each in enumerate(stretch.seen):
        calls, may_lack_call = _Calls(), place == 0 and not stretch.begins_list
        for item in each.items:
            if item.kind == "tool_call":
                calls.add(item)
            elif item.is_answer:
                is_answer = waiting.take(item) or calls.take(item)
                if not (is_answer or may_lack_call or item.kind == UNKNOWN):
                    yield f"the result {_name(item)} has no call right before it"
        is_reply = each.is_of_split_reply(was_reply)
        if was_reply and is_reply:
            waiting.add_all(calls)
        elif not each.holds_only_results:
            yield from map("the call {} has no result right after it".format, waiting.names())
            waiting = calls
        was_reply = is_reply
    if stretch.ends_list:
        yield from map("the call {} has no result right after it".format, waiting.names())


class _Calls:
    """Calls without a result so far."""

    def __init__(self) -> None:
        self._calls: dict[object, list[Item]] = {}
        self._named: dict[object, object] = {}

    def add(self, call: Item) -> None:
        if call.other_id is not None:
            self._named[call.other_id] = call_key(call)
        self._calls.setdefault(call_key(call), []).append(call)

    def add_all(self, more: _Calls) -> None:
        """Add the calls of a message that continues the reply."""
        for calls in more._calls.values():
            for call in calls:
                self.add(call)

    def take(self, result: Item) -> bool:
        """Remove the call that the result answers, and return whether there is one."""
        key = call_key(result)
        if key not in self._calls:
            key = self._named.get(key)
        if key is None or not (calls := self._calls.get(key)):
            return False
        calls.pop()
        return True

    def names(self) -> Iterator[str]:
        return (_name(call) for calls in self._calls.values() for call in calls)


def _name(item: Item) -> str:
    return str(item.tool if item.tool_use_id is None else item.tool_use_id)


def _thinking(stretches: Sequence[_Stretch]) -> Counter[Text]:
    return Counter(
        json_text(seen.shape.block(seen.message, item.path))
        for stretch in stretches
        for seen in stretch.seen
        for item in seen.items
        if item.kind == "thinking"
    )


def _unsigned(stretches: Sequence[_Stretch]) -> Counter[str]:
    """Count what would be said of each call that no signed call of its message leads."""
    return Counter(
        f"the call {_name(seen.items[i])} lacks the signature of its message"
        for stretch in stretches
        for seen in stretch.seen
        for i in unsigned(seen.items, range(len(seen.items)))
    )


class _Around:
    """Two lists at the positions where they differ."""

    def __init__(
        self,
        before: Sequence[Message],
        after: Sequence[Message | None],
        changed: Collection[int],
        reading: Reading,
        staying: Staying,
    ) -> None:
        self._before, self._after, self._in = before, after, reading
        self._items, self._shapes = reading.items, reading.shapes
        self._changed, self._staying = frozenset(changed), staying
        self._seen: dict[int, _Seen] = {}
        self._edited: dict[int, _Seen] = {}

    def stretches(self, *, exactly: bool = True) -> Iterator[list[int]]:
        """Yield the changed messages and those by which a rule could tell the difference.

        Around each change these are all up to an unchanged message that parts what is before it
        from what is after it. What lies beyond reads the same with and without the change, so
        a result in one stretch answers no call in another, even if their ids are the same.

        Not `exactly`, a reply before a change ends them too where earlier edits have joined it to
        those before it. Alone it lacks what led to it, so that a rule may seem broken.
        """
        places = set(self._changed)
        for i in self._changed:
            places.update(self._up_to_a_border(self._staying.before(i), joins=exactly))
            places.update(self._up_to_a_border(self._staying.after(i), joins=True))
            bound = (other for one in self._in.items_of(i) for other in self._in.bound_to(one))
            places.update(self._items[other].message for other in bound)
        stretch: list[int] = []
        for i in sorted(places):
            if stretch and i > next(self._staying.after(stretch[-1]), i):
                yield stretch
                stretch = []
            stretch.append(i)
        if stretch:
            yield stretch

    def stretch(self, places: Sequence[int], seen_at: Callable[[int], _Seen | None]) -> _Stretch:
        """Return what is at these places, without the messages that are gone."""
        seen = [found for i in places if (found := seen_at(i)) is not None]
        begins, ends = self._staying.before(places[0]), self._staying.after(places[-1])
        return _Stretch(seen, next(begins, None) is None, next(ends, None) is None)

    def is_sound(self) -> bool:
        """Return whether what is left around the changes breaks no rule, whatever was there."""
        left = [self.stretch(places, self.after) for places in self.stretches(exactly=False)]
        if any(next(_broken(one), "") for one in left):
            return False
        if next(_parted_pairs(seen for one in left for seen in one.seen), ""):
            return False
        # An unchanged message has its thinking and its signatures.
        edited = [i for i in self._changed if self.after(i) is not self.before(i)]
        now = [_Stretch([seen for i in edited if (seen := self.after(i)) is not None])]
        was = [_Stretch([*map(self.before, edited)])]
        return not (_unsigned(now) - _unsigned(was) or _thinking(now) - _thinking(was))

    def problems_beside(self, left: Sequence[Message | None]) -> list[str]:
        """Return the problems around the changes that this list does not have there."""
        parts = [*self.stretches(exactly=False)]
        was = [self.stretch(places, partial(self._seen_in, left)) for places in parts]
        now = [self.stretch(places, self.after) for places in parts]
        seen, others = (chain.from_iterable(one.seen for one in each) for each in (was, now))
        return _new_problems(was, now, _newly_parted(seen, others))

    def newly_parted(self, places: Iterable[int]) -> Counter[str]:
        """Return the sentences on pairs that are parted only afterwards, at these places."""
        there = list(places)
        left = (seen for i in there if (seen := self.after(i)) is not None)
        return _newly_parted(map(self.before, there), left)

    def before(self, i: int) -> _Seen:
        if (seen := self._seen.get(i)) is None:
            items = [self._items[position] for position in self._in.items_of(i)]
            seen = self._seen[i] = _Seen.of(self._in.shaped(i, self._before[i]), items)
        return seen

    def after(self, i: int) -> _Seen | None:
        return self._seen_in(self._after, i)

    def _seen_in(self, edited: Sequence[Message | None], i: int) -> _Seen | None:
        message = edited[i]
        if message is None or message is self._before[i]:
            return None if message is None else self.before(i)
        if (seen := self._edited.get(id(message))) is None:
            seen = _Seen.of(self._shapes.shaped(message), items_of([message], self._shapes))
            self._edited[id(message)] = seen
        return seen

    def _up_to_a_border(self, places: Iterable[int], *, joins: bool) -> Iterator[int]:
        for i in places:
            if i in self._changed:  # its own surroundings are checked too
                return
            yield i
            seen, left = self.before(i), self.after(i)
            if left is None or seen.role in SYSTEM_ROLES or seen.holds_only_results:
                continue
            stays = left is seen or not left.holds_only_results
            if stays and not self._may_continue_reply(i, seen, joins=joins):
                return

    def _may_continue_reply(self, i: int, seen: _Seen, *, joins: bool) -> bool:
        """Whether a message belongs to the reply before it, or an edit `joins` it to that."""
        if seen.role != "assistant" or i == 0:
            return False
        if not joins:
            between = range(i - 1, next(self._staying.before(i), i) - 1, -1)
            return bool(between) and all(self.before(j).role == "assistant" for j in between)
        if self.before(i - 1).role == "assistant":
            return True
        there = (place for place in self._staying.before(i) if self._after[place] is not None)
        place = next(there, -1)
        if place < 0 or (place == i - 1 and place not in self._changed):
            return False
        message = self._after[place]
        return message is not None and self._shapes.role(message) == "assistant"
