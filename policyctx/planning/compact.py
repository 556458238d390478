"""What a `compact` step would replace, or why it replaces nothing; the summary comes later.

It replaces all messages behind the head except for a beginning and an end that stay. The newest
message of the user may stay as well, behind the summary. The head is the system messages that a
list begins with (PRD context-compact F-003).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import filterfalse
from typing import NamedTuple

from policyctx.definitions.items import MEDIA_TYPES, Item
from policyctx.messages.shapes.shape import SYSTEM_ROLES, head_of
from policyctx.planning.decisions import Reason
from policyctx.planning.facts import Added, Facts
from policyctx.planning.gates import AfterReplacing
from policyctx.planning.outlook import Outlook
from policyctx.planning.recency import Shape, shape_of
from policyctx.policy.models import Step
from policyctx.policy.models.compaction import Compaction, Summary
from policyctx.policy.values import Share
from policyctx.tokens.encoders import words_in

# A compaction helps that leaves at most this share of what its gate measures.
_MUCH_LESS = Fraction(3, 4)
_NOTHING_NEW = Reason("nothing_new")
_BESIDE = (
    "the system prompt and the tool schemas have {} tokens: make them smaller, or offer fewer tools"
)


@dataclass(frozen=True, slots=True)
class Partition:
    """The three parts of a message list: what stays before, what is replaced, what stays behind."""

    head: int
    """System messages at the beginning."""
    start: int
    """Position of the first message that is replaced."""
    end: int
    """Position behind the last one; no more than `start` when none is."""
    carried: int | None = None
    """Position of the user's newest message, where it lies between and stays all the same."""
    kept: tuple[int, ...] = ()
    """Positions of the messages between that stay, since no summary may or can tell them."""
    systems: frozenset[int] = frozenset()
    """Positions of those among them that have the role of a system message."""

    @property
    def around(self) -> Around:
        """Positions of what stays around the summary."""
        return Around.of(self.kept, self.carried, self.systems)

    def __contains__(self, message: int) -> bool:
        is_between = self.start <= message < self.end
        return is_between and message != self.carried and message not in self.kept

    def __iter__(self) -> Iterator[int]:
        """Yield the positions of what is replaced."""
        stays = {self.carried, *self.kept}
        return (i for i in range(self.start, self.end) if i not in stays)


class Around(NamedTuple):
    """Messages that stay around a summary, each group in order."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    """Right behind the message with the summary: system messages, and what is kept after them.

    A list of Anthropic's may have one only behind a message of the user, and not at the beginning.
    """
    behind: tuple[int, ...]
    """Behind all that is written: the newest message of the user, and what is kept after it."""

    @classmethod
    def of(cls, kept: tuple[int, ...], carried: int | None, systems: Collection[int]) -> Around:
        """Return where messages stay; `carried` is the user's newest one."""
        end = len(kept) if carried is None else bisect_left(kept, carried)
        first = next((n for n, i in enumerate(kept[:end]) if i in systems), end)
        behind = () if carried is None else (carried, *kept[end:])
        return cls(kept[:first], kept[first:end], behind)


def partition(outlook: Outlook, settings: Compaction, kept: int) -> Partition:
    """Divide the list as a plan has left it so far; `kept` is the number that `keep_recent` keeps.

    Where an edge would separate a call from an answer, it is moved so that more stays. Calls
    that run stay, with all behind them.
    """
    roles = outlook.conversation.roles
    head = head_of(roles)
    tail, unfinished = _tail(outlook, settings, kept, head), outlook.conversation.reading.unfinished
    end = _whole_before(tail if unfinished is None else min(tail, unfinished), outlook)
    start = _whole_behind(_first(outlook, settings, head), outlook)
    newest = _newest_of_user(outlook) if settings.keep_newest_user_message else None
    is_between = newest is not None and start <= newest < end
    carried = newest if is_between else None
    systems = _systems(start, end if settings.keep_system_messages else start, outlook)
    kept_between = _kept(start, end, carried, systems, outlook)
    by_role = frozenset(i for i in systems if roles[i] in SYSTEM_ROLES)
    return Partition(head, start, end, carried, kept_between, by_role)


def _systems(start: int, end: int, outlook: Outlook) -> list[int]:
    """Return the system messages between; some frameworks have them as a message of the user."""
    conversation, found = outlook.conversation, []
    for message in range(start, end):
        kinds = {conversation.items[i].kind for i in conversation.items_of(message)}
        is_system = conversation.roles[message] in SYSTEM_ROLES or kinds == {"system_prompt"}
        if is_system and not outlook.is_removed(message):
            found.append(message)
    return found


def _kept(
    start: int, end: int, carried: int | None, systems: Sequence[int], outlook: Outlook
) -> tuple[int, ...]:
    """Return what no summary may or can tell, and the calls whose answer may come late.

    What they are bound to stays too: their answers, and the thinking that led to them.
    """
    reading = outlook.conversation.reading
    open_calls = (reading.items[i].message for i in reading.unanswered)
    # A list may neither begin with what the assistant said, so a reply in one message goes, nor
    # end with a call.
    last = carried if carried is not None and end == reading.message_count else end
    late = (m for m in open_calls if m < last and reading.opening_roles[m] != "assistant")
    kept = (message for message in (*reading.staying, *late) if start <= message < end)
    bound = filterfalse(outlook.is_removed, reading.bound_messages(kept))
    return tuple(sorted({m for m in bound if start <= m < end}.union(systems)))


def _newest_of_user(outlook: Outlook) -> int | None:
    """Return the newest message that the user wrote; one with a result stays with its call."""
    conversation = outlook.conversation
    for message in range(len(conversation.roles) - 1, -1, -1):
        kinds = {conversation.items[i].kind for i in conversation.items_of(message)}
        is_users = "user_message" in kinds and "tool_result" not in kinds
        if is_users and not outlook.is_removed(message) and not conversation.is_written(message):
            return message
    return None


def _first(outlook: Outlook, settings: Compaction, head: int) -> int:
    """Return the position behind the messages that `keep_first` keeps."""
    position, left = head, settings.keep_first
    while left and position < len(outlook.conversation.roles):
        left -= not outlook.is_removed(position)
        position += 1
    return position


def _tail(outlook: Outlook, settings: Compaction, kept: int, head: int) -> int:
    """Return the position of the first message that `keep_recent` keeps."""
    conversation = outlook.conversation
    shape, count = shape_of(settings.keep_recent), len(conversation.roles)
    if shape in {"turns", "replies"}:
        reading = conversation.reading
        begun = reading.turn_starts if shape == "turns" else reading.reply_starts
        starts = [i for i in begun if not outlook.is_removed(i)]
        return starts[-kept] if 0 < kept <= len(starts) else (count if kept == 0 else head)
    position = count
    while position > head and kept > 0:
        if not outlook.is_removed(position - 1):
            kept -= _weight(position - 1, shape, outlook)
            if kept < 0 and shape == "max_tokens" and position < count:
                break
        position -= 1
    return position


def _weight(message: int, shape: Shape, outlook: Outlook) -> int:
    if shape in {"tokens", "max_tokens"}:
        return tokens_of(message, outlook) + outlook.facts.tokens_around(1)
    return len(outlook.conversation.items_of(message)) if shape == "items" else 1


def tokens_of(message: int, outlook: Outlook) -> int:
    """Return the tokens of one message as a plan has left it so far."""
    items = outlook.conversation.items
    outermost = (i for i in outlook.conversation.items_of(message) if items[i].inside is None)
    return sum(outlook.size(i, "tokens") for i in outermost)


def _whole_before(edge: int, outlook: Outlook) -> int:
    """Move an edge back until it parts no reply, and no answer behind it from its call."""
    reading = outlook.conversation.reading
    behind = len(reading.items)
    while True:
        edge = reading.reply_of(edge).start
        first = reading.items_of(edge).start
        bound = (other for i in range(first, behind) for other in reading.bound_to(i))
        calls = (reading.items[other].message for other in bound)
        moved = min(calls, default=edge)
        if moved >= edge:
            return edge
        edge, behind = moved, first


def _whole_behind(edge: int, outlook: Outlook) -> int:
    """Move an edge on until it parts no reply, and no call before it from an answer."""
    reading = outlook.conversation.reading
    before = 0
    while True:
        reply = reading.reply_of(edge)
        edge = edge if edge == reply.start else reply.stop
        last = reading.items_of(edge).start
        bound = (other for i in range(before, last) for other in reading.bound_to(i))
        results = (reading.items[other].message for other in bound)
        moved = max(results, default=-1) + 1
        if moved <= edge:
            return edge
        edge, before = moved, last


class Replacing(NamedTuple):
    """The messages that a compaction is to replace."""

    step: str
    settings: Compaction
    parts: Partition
    messages: int
    """Number of messages that are replaced, without those that earlier steps removed."""
    tokens: int
    """Their size as the steps before have left them."""
    pinned: tuple[str, ...] = ()
    """Texts among them that the summary carries over as they are."""
    left: AfterReplacing = AfterReplacing()
    """What its gates compare without them."""


def replacing(
    step: Step, outlook: Outlook, left_without: Callable[[Sequence[int], int], AfterReplacing]
) -> Replacing | Reason:
    """Return what a step with open gates replaces, or why it replaces nothing.

    `left_without` returns what the gates compare without some messages of so many tokens.
    """
    policy = outlook.conversation.policy
    settings = policy.compaction(step)
    parts = partition(outlook, settings, policy.kept(settings.keep_recent))
    there = [i for i in parts if not outlook.is_removed(i)]
    if not there:
        why = _why_nothing(parts, outlook, settings)
        return Reason("nothing_to_summarise", {"why": why})
    new = [message for message in there if not outlook.conversation.is_written(message)]
    if not new:
        return _NOTHING_NEW
    tokens = sum(tokens_of(message, outlook) for message in there)
    came = sum(tokens_of(message, outlook) for message in new)
    needed = -(-tokens * settings.min_new.numerator // settings.min_new.denominator)
    # `min_new` only matters where a part was summarised before.
    if came < tokens and came < needed:
        return Reason("hardly_new", {"new": came, "tokens": tokens, "needed": needed})
    # The provider rejects the request all the same, and most of it stays.
    stays, window = outlook.tokens() - tokens, outlook.facts.window(policy.model)
    if stays > max(window, tokens):
        return Reason("stays_too_large", {"stays": stays, "window": window})
    pinned = tuple(_pinned(parts, outlook))
    if (too_large := _too_large(pinned, tokens, settings.summary, outlook.facts)) is not None:
        return too_large
    found = Replacing(
        step.name, settings, parts, len(there), tokens, pinned, left_without(there, tokens)
    )
    return _in_vain(found, outlook) or found


def _in_vain(found: Replacing, outlook: Outlook) -> Reason | None:
    """Return why a compaction is not repeated that did not help before; None if it may help now.

    It helps if it closes the gate, lets a request into the window that is over it, or makes what
    the gate measures much smaller.
    """
    attempt, policy = outlook.facts.attempt, outlook.conversation.policy
    is_same = attempt is not None and attempt[:2] == (found.step, policy.digest)
    if attempt is None or not is_same or not found.settings.min_new:
        return None
    limit, added = found.settings.summary.must_shrink_to, attempt.added
    if attempt.is_refused and isinstance(limit, Share) and added.tokens > limit.of(found.tokens):
        values: dict[str, str | int] = {
            "summary": added.tokens,
            "tokens": found.tokens,
            "limit": str(limit),
        }
        return Reason("summary_refused", values)
    is_open, tokens = found.left.still_open(added), found.left.tokens_with(added)
    window = outlook.facts.window(policy.model)
    is_less = any(number <= _MUCH_LESS * (one.number or 0) for one, number in is_open)
    if not is_open or is_less or tokens <= window < outlook.tokens():
        return None
    gates = "; ".join(
        f"{one.gate}: {number:,} left, limit {float(one.limit):,.10g}" for one, number in is_open
    )
    return Reason("over_gate", {"gate": gates, "what": _in_the_way(found, tokens, added, outlook)})


def _in_the_way(found: Replacing, tokens: int, added: Added, outlook: Outlook) -> str:
    """Say what keeps the gate open, and what to change."""
    roles = enumerate(outlook.conversation.roles)
    stay = (m for m, role in roles if role not in SYSTEM_ROLES and m not in found.parts)
    staying = sum(tokens_of(m, outlook) for m in stay if not outlook.is_removed(m))
    most, what = max(
        (tokens - staying - added.tokens, _BESIDE),
        (staying, "the messages that stay have {} tokens: let `keep_recent` keep less"),
        (added.tokens, "the summary and the files have {} tokens: lower `max_words` or `restore`"),
    )
    return f"{what.format(f'{most:,}')}, or raise the gate"


def _why_nothing(parts: Partition, outlook: Outlook, settings: Compaction) -> str:
    """Say which rule keeps every message, of a list of which none is to be replaced."""
    count, pending = len(outlook.conversation.roles), outlook.conversation.reading.pending
    if parts.head == count:
        return "no message follows the system messages" if count else "the list is empty"
    if parts.start < parts.end:
        return "what is between stays: the user's newest message, or what no summary can tell"
    if pending is not None and pending == parts.end:
        return f"a call in {_newest(count - pending)} has no result yet"
    if parts.end >= count and settings.keep_first:
        return f"`keep_first: {settings.keep_first}` keeps every message"
    kept = _newest(count - parts.end)
    first = f", and `keep_first` the {settings.keep_first} before" if settings.keep_first else ""
    return f"`keep_recent` keeps {kept}{first}; calls stay with their results"


def _newest(messages: int) -> str:
    # Not by their numbers: a feature counts messages from 1 on, a plan from 0 on.
    return "the newest message" if messages == 1 else f"the newest {messages:,} messages"


def _too_large(
    pinned: tuple[str, ...], tokens: int, settings: Summary, facts: Facts
) -> Reason | None:
    """Return why a summary of so many tokens of history cannot hold what is pinned, if it cannot.

    Its limits are those of its length and `must_shrink_to`. The same text counts once.
    """
    texts, share = dict.fromkeys(pinned), settings.must_shrink_to
    tokens_of = partial(facts.length, unit="tokens")
    limits: list[tuple[str, int | None, Callable[[str], int]]] = [
        ("words", settings.max_words, words_in),
        ("tokens", settings.max_tokens, tokens_of),
        ("characters", settings.max_chars, len),
    ]
    if isinstance(share, Share):
        limits.insert(0, ("tokens", share.of(tokens), tokens_of))
    for unit, most, size in limits:
        if most is not None and (pins := sum(map(size, texts))) > most:
            return Reason("pins_too_large", {"pins": pins, "limit": most, "unit": unit})
    return None


def _pinned(parts: Partition, outlook: Outlook) -> Iterator[str]:
    conversation = outlook.conversation
    for position, item in enumerate(conversation.items):
        if item.message in parts and outlook.is_there(position):
            whole = (item,) if item.inside is None else (item, conversation.items[item.inside])
            if any(conversation.policy.pinned(one.type, one.tool) is not None for one in whole):
                yield from _quotable(item)


def _quotable(item: Item) -> Iterator[str]:
    """Yield the text of an item; a summary can only name the media in it, which it leaves."""
    if item.kind in MEDIA_TYPES:
        texts = [text for one in item.media for text in one.parts if isinstance(text, str)]
        name = " ".join(filter(None, (item.kind, item.media_type)))
        yield "\n".join((f"[{name}]", *texts))
    elif not item.media:
        yield item.text
    elif item.counted and not item.is_media_alone:
        yield item.counted
