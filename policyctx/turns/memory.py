"""`Memory`: what a session knows from earlier turns and its records, and its totals.

The records come from a file that others may have changed. A record that no session could have
written is skipped, and a warning is given once.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple, TypeVar

from policyctx.definitions.actions import Action
from policyctx.definitions.items import Message, call_keys
from policyctx.errors import MessagesError, UsageError, counted
from policyctx.messages.reading import items_of
from policyctx.messages.shapes.built_in import BUILT_IN, Shapes
from policyctx.patterns import Original
from policyctx.planning.conversation import Conversation
from policyctx.planning.decisions import Arrived, Decision
from policyctx.planning.facts import Added, Attempt, Facts, Request
from policyctx.planning.ledger import (
    MARK,
    TYPES,
    Ledger,
    LedgerEntry,
    Mark,
    fields_of,
    is_entry,
    is_of,
)
from policyctx.pricing.dollars import prices_of
from policyctx.tokens.usage import Correction, Usage, correction_of
from policyctx.turns.breakpoints import Breakpoints, Placing, why_unmarked
from policyctx.turns.known_list import KnownList
from policyctx.turns.money import Meter, Spent
from policyctx.turns.replacement import Replacement
from policyctx.turns.replacements import Replacements
from policyctx.turns.seen import NO_CHANGES, SeenList, Sums, last_seen

# The whole numbers in such a record, and all of its numbers.
_WHOLE, _NUMBERS = 6, 9
# The tokens spared are below 0 where a summary is larger than what it replaces.
_BELOW_ZERO = (2, 5)
T = TypeVar("T")

_PAIR = ("tool_call", "tool_result")


@dataclass(frozen=True, slots=True)
class Totals:
    """What a session has done so far.

    `failed_writes` and `unrecorded` are those since the `Session` object was made. The rest
    includes what earlier objects with the same `session_id` and root did. `print` shows all in a
    line.
    """

    calls: int = 0
    """Model calls whose usage was observed, or whose reply a later list has."""
    estimated_calls: int = 0
    """Calls of these without usage, such as some streams; their tokens are estimates."""
    tokens_sent: int = 0
    """Tokens of their prompts, as the provider counted them, whether cached or not."""
    tokens_spared: int = 0
    """Tokens that their prompts would have had in addition without the policy."""
    items: Mapping[str, int] = field(default_factory=dict)
    """Number of items by what was done with them, such as `{"offloaded": 12, "dropped": 3}`."""
    files: int = 0
    """Number of files with the content of an item, archives of compactions not included."""
    compactions: int = 0
    dollars: float | None = None
    """What prompts with usage and a known price cost, and summaries; None if there are none."""
    dollars_without: float | None = None
    """About what the same prompts would have cost without the policy: the least that is likely."""
    failed_writes: int = 0
    """Number of writes to the store that failed; what they would have saved stayed in the list."""
    unrecorded: int = 0
    """Number of calls that could not be written to the file of `record`."""

    def __str__(self) -> str:
        """Return them as a line for people; what is 0 is left out."""
        calls = counted(self.calls, "call")
        if self.estimated_calls:
            calls += f" ({self.estimated_calls:,} without usage, estimated)"
        if self.calls:
            whole = self.tokens_sent + self.tokens_spared
            calls += f", {self.tokens_sent:,} tokens sent"
            if whole and (spared := self.tokens_spared):
                verb, share = ("spared", "−") if spared > 0 else ("added", "+")
                share += f"{abs(spared) / whole:.0%}".replace("%", " %")
                calls += f", {abs(spared):,} {verb} ({share})"
        paid = ""
        if self.dollars is not None and self.dollars_without is not None:
            instead = f"about ${self.dollars_without:,.2f}"
            paid = f"${self.dollars:,.2f} in place of {instead} for prompts"
        done = [f"{number:,} {action}" for action, number in self.items.items()]
        done += [counted(self.compactions, "compaction")] if self.compactions else []
        failed = [counted(self.failed_writes, "write")] if self.failed_writes else []
        failed += [counted(self.unrecorded, "recorded call")] if self.unrecorded else []
        parts = (
            calls,
            paid,
            ", ".join(done) or "nothing has left the context",
            counted(self.files, "file") if self.files else "",
            f"failed: {', '.join(failed)}" if failed else "",
        )
        return "; ".join(filter(None, parts))


@dataclass(slots=True)
class Tallied:
    """The sums of a session that goes on, up to the last call."""

    meter: Meter = field(default_factory=Meter)
    estimated: int = 0
    """Calls of these without usage."""
    compacted: int = 0
    """Tokens that the compactions have taken out of the list."""
    _conversation: Conversation | None = None
    _changes: int = 0
    _freed: dict[int, int] = field(default_factory=dict)
    """Tokens that each item of the conversation frees, by position."""
    _sum: int = 0

    def observe(self, sent: Sent, usage: Usage | None, at: float) -> int:
        """Add a call, and return the tokens that the policy has spared it.

        Without usage its tokens are estimated, and it has no dollars.
        """
        spared = self._spared(sent)
        if usage is None:
            self.estimated += 1
            self.meter.spent += Spent(1, Usage(sent.tokens), spared)
            return spared
        model = sent.conversation.policy.model
        own = None if model.price is None else prices_of(model.price)
        name = sent.facts.called_model or model.name
        self.meter.observe(usage, spared=spared, model=name, at=at, prices=own)
        return spared

    def _spared(self, sent: Sent) -> int:
        """Return what the policy has spared of a list; counts only the items whose fate is new."""
        conversation, facts = sent.conversation, sent.facts
        if conversation is not self._conversation:
            self._conversation, self._changes, self._freed, self._sum = conversation, 0, {}, 0
        if len(conversation.history) == self._changes:
            return self.compacted + self._sum
        changed = {position for position, _ in conversation.history[self._changes :]}
        self._changes = len(conversation.history)
        inner = {i for position in changed for i in conversation.inside(position)}
        for position in changed | (conversation.fates.keys() & inner):
            freed = _freed(conversation, position, facts)
            self._sum += freed - self._freed.get(position, 0)
            self._freed[position] = freed
        return self.compacted + self._sum

    def totals(self, ledger: Ledger, compactions: int, answered: Sent | None) -> Totals:
        """Return the sums, with what the ledger knows of the whole session.

        `answered` is a list that has a reply and no usage yet.
        """
        entries = [e for e in ledger.entries.values() if e.action is not Action.KEEP]
        spent, estimated = self.meter.spent, self.estimated
        if answered is not None:
            estimated += 1
            spent += Spent(1, Usage(answered.tokens), self._spared(answered))
        return Totals(
            calls=spent.calls,
            estimated_calls=estimated,
            tokens_sent=spent.usage.prompt,
            tokens_spared=spent.spared,
            items=dict(Counter(entry.action.past for entry in entries)),
            files=len({entry.relative_path for entry in entries} - {None}),
            compactions=compactions,
            dollars=spent.billed + spent.summaries if spent.priced else None,
            dollars_without=spent.without if spent.priced else None,
        )

    def as_record(self) -> list[float]:
        """Return numbers for a JSON file; `tallied_of` reads them back."""
        one = self.meter.spent
        whole = (one.calls, one.usage.prompt, one.spared, one.priced, self.estimated)
        return [*whole, self.compacted, one.billed, one.without, one.summaries]


def tallied_of(record: Sequence[float]) -> Tallied:
    """Read what `as_record` wrote."""
    calls, sent, spared, priced, estimated, compacted = map(int, record[:_WHOLE])
    billed, without, summaries = record[_WHOLE:]
    spent = Spent(calls, Usage(sent), spared, priced, 0, billed, without, summaries)
    return Tallied(Meter(spent), estimated, compacted)


class Sent(NamedTuple):
    """A list that was returned, until its usage is observed."""

    conversation: Conversation
    facts: Facts
    tokens: int
    """Of the request, as the provider is expected to bill it."""


def _freed(conversation: Conversation, position: int, facts: Facts) -> int:
    """Return the tokens of an item less those of its placeholder.

    An item inside one that left is counted with that one. Of an item that came back as its
    placeholder the tokens are not known.
    """
    fate = conversation.fates[position]
    if fate.item.inside in conversation.fates or fate.placeholder == fate.item.text:
        return 0
    left = 0 if fate.placeholder is None else facts.length(fate.placeholder, "tokens")
    return facts.tokens(fate.item) - left


def call_of(
    message: Message, known: KnownList | None, since: Sequence[Message], shapes: Shapes
) -> Message | None:
    """Return the newest message with a call that a result in `message` answers, None for none.

    `since` are the messages that follow the known list. In the known list only calls without a
    result count. A message that cannot be read has no calls.
    """
    keys = _keys(message, "tool_result", shapes)
    if not keys:
        return None
    for asked in reversed(since):
        if not keys.isdisjoint(_keys(asked, "tool_call", shapes)):
            return asked
    if known is None:
        return None
    calls = filter(None, map(known.conversation.reading.open_call, keys))
    newest = max((call.message for call in calls), default=None)
    return None if newest is None else known.given[newest]


def _keys(message: Message, kind: str, shapes: Shapes) -> set[object]:
    """Return the keys by which items of a kind in a message are paired."""
    try:
        items = items_of([message], shapes)
    except MessagesError:  # raised again, with its place, when the message is read to decide
        return set()
    return {key for item in items if item.kind == kind for key in call_keys(item)} - {None}


@dataclass(slots=True)
class Memory:
    """The ledger, the list of the last turn, and when a model was called last."""

    ledger: Ledger = field(default_factory=Ledger)
    known: KnownList | None = None
    lists: tuple[tuple[Sequence[Message], int], ...] = ()
    """The lists that the last turn was given and returned, and their lengths then. The caller may
    have added messages since."""
    judged: Counter[Arrived] = field(default_factory=Counter)
    """The items that the steps on arrival have judged in any list of the session."""
    called_at: float | None = None
    """The time of the last model call, in seconds since 1970."""
    paused: float | None = None
    """Seconds since the last model call of an earlier session, before the first of this one."""
    correction: Correction = field(default_factory=Correction)
    """The correction of token counts, learnt from the usage of responses."""
    write_ttl: int | None = None
    """Seconds that the last billed write to the prompt cache stays there, if it is known."""
    replacements: Replacements = field(default_factory=Replacements)
    """The replacements that compactions made."""
    attempt: Attempt | None = None
    """The last compaction, if it did not help."""
    has_begun: bool = False
    """Whether the store has records: a model was sent what precedes the newest reply of a list."""
    seen: SeenList | None = None
    """What was recorded last of a list, also by the earlier session."""
    sums: Sums | None = None
    """What records the known list."""
    placing: Placing | None = None
    """Places the breakpoints of the known list."""
    sent: Sent | None = None
    """The list that was returned last, until its usage is observed."""
    tallied: Tallied = field(default_factory=Tallied)
    """The sums for `Session.totals`."""
    calls: int = 0
    """Number of lists that were returned since the session object was made."""
    unreadable: tuple[str, ...] = ()
    """The SHA-256 of each unreadable record without a warning yet, which is skipped and kept."""
    originals: set[Original] = field(default_factory=set)
    """The secrets that were replaced in messages and that the store keeps."""

    @classmethod
    def of(cls, records: Sequence[Mapping[str, Any]], shapes: Shapes = BUILT_IN) -> Memory:
        """Return the memory that the records of a session describe; other records are skipped."""
        readable, unreadable = _parted(records, _is_readable)
        of_kind: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
        for record in readable:
            of_kind[str(record.get("record"))].append(record)
        entries = [entry for each in of_kind["decision"] if (entry := LedgerEntry.of(each))]
        lost: list[LedgerEntry] = []
        if halves := _half_pairs(entries):
            lost, entries = _parted(entries, lambda entry: _is_half_pair(entry, halves))
        calls, learnt = of_kind["call"], of_kind["usage"]
        with_totals = bool(learnt) and "totals" in learnt[-1]
        settled = chain.from_iterable(one["sha256"] for one in of_kind["unreadable"])
        skipped = Counter(map(_digest, [*unreadable, *(entry.record() for entry in lost)]))
        ledger = Ledger(entries)
        marks = (Mark.of(record) for record in of_kind["mark"])
        ledger.marks.update((mark.step, mark) for mark in marks if mark is not None)
        made = [Replacement.of(record) for record in of_kind["compaction"]]
        return cls(
            ledger,
            replacements=Replacements([one for one in made if one is not None], shapes),
            attempt=_attempt(of_kind["over_gate"], len(made)),
            called_at=calls[-1]["at"] if calls else None,
            has_begun=len(records) > len(of_kind["redacted"]),
            originals={Original(one["name"], one["text"]) for one in of_kind["redacted"]},
            correction=correction_of(learnt[-1]) if learnt else Correction(),
            write_ttl=learnt[-1].get("write_ttl") if learnt else None,
            tallied=tallied_of(learnt[-1]["totals"]) if with_totals else Tallied(),
            seen=last_seen(readable, ledger),
            unreadable=tuple((skipped - Counter(settled)).elements()),
        )

    @property
    def has_decided(self) -> bool:
        """Whether anything was decided, so that there is something to remember."""
        return bool(self.ledger.entries or self.replacements.made)

    @property
    def replaces(self) -> bool:
        """Whether lists are read with what `replacements` puts in them."""
        return bool(self.replacements.made or self.ledger.dropped_calls)

    def take_over(self, correction: Correction | None, write_ttl: int, idle: float | None) -> None:
        """Replace what is known of earlier calls, where something else is given."""
        self.correction, self.write_ttl = correction or self.correction, write_ttl or self.write_ttl
        self.paused = self.paused if idle is None else idle

    def returned(
        self,
        known: KnownList,
        given: Sequence[Message],
        output: Sequence[Message],
        left: Sequence[Message],
    ) -> None:
        """Remember the list of a turn, as it was given and returned; `left` has no fillers."""
        self.known = known
        came, went = (given, len(given)), (output, len(output))
        self.lists = (came,) if output is given else (came, went)
        known.output = None if output is given else left

    def list_records(
        self,
        known: KnownList,
        decisions: Sequence[Decision] = (),
        changes: Mapping[int, Message | None] = NO_CHANGES,
        entries: Sequence[LedgerEntry] = (),
    ) -> list[dict[str, Any]]:
        """Return the record of the list, if it would tell equal items apart and is a new one.

        It is the list that decisions will leave, see `Sums.seen`; with what arrives, the last one.
        """
        if known.arrives:
            new = self.ledger.drops_after(entries)
            drops = len(self.ledger.drops) + len(new)
            seen = self.seen._replace(drops=drops) if self.seen and new else None
        elif self.ledger.has_drops_alike(entries):
            if self.sums is None or self.sums.known is not known:
                self.sums = Sums(known, self.sums)
            seen = self.sums.seen(decisions, changes, entries)
        else:
            return []
        self.seen = seen or self.seen
        return [seen.record()] if seen else []

    def call_of(self, message: Message, shapes: Shapes) -> Message | None:
        """Return the message with the call that a result answers, None if it is not known."""
        since = [given[i] for given, count in self.lists for i in range(count, len(given))]
        return call_of(message, self.known, since, shapes)

    def placing_of(self, known: KnownList, request: Request) -> Placing | Breakpoints:
        """Return what places the breakpoints of a list, or that there are none.

        It is that of the last turn if the list continues.
        """
        if not known.conversation.policy.places_breakpoints:
            return Breakpoints()
        is_marked = bool(known.marked)
        if why := why_unmarked(request, known.conversation, known.given, is_marked=is_marked):
            return Breakpoints.none(why)
        if self.placing is None or self.placing.known is not known:
            self.placing = Placing(known, self.placing)
        return self.placing

    def call_record(self) -> dict[str, Any]:
        """Return the record of the last model call."""
        return {"record": "call", "at": self.called_at}

    def usage_record(self) -> dict[str, Any]:
        """Return the record of the correction by usage, and of the sums."""
        ttl = {} if self.write_ttl is None else {"write_ttl": self.write_ttl}
        totals = {"totals": self.tallied.as_record()}
        return {"record": "usage", **self.correction.as_record(), **ttl, **totals}

    def settling_record(self) -> dict[str, Any]:
        """Return the record that marks the unreadable records as reported."""
        return {"record": "unreadable", "sha256": [*self.unreadable]}

    def send(self, conversation: Conversation, facts: Facts) -> None:
        """Note the list that is returned."""
        tokens = self.correction.corrected(conversation.counted(facts))
        self.sent = Sent(conversation, facts, tokens)
        self.calls += 1

    def settle(self, count: int) -> bool:
        """Add up the call whose reply a list of so many messages has, if no usage was observed.

        Returns whether there is one. A list of the same length is the same request again.
        """
        if self.sent is None or not self.lists or count == self.lists[0][1]:
            return False
        self.tallied.observe(self.sent, None, 0.0)
        self.sent = None
        return True

    def totals(self) -> Totals:
        """Return the sums so far."""
        has_reply = any(len(given) > count for given, count in self.lists)
        answered = self.sent if has_reply else None
        return self.tallied.totals(self.ledger, len(self.replacements.made), answered)

    def observe(self, usage: Usage) -> int:
        """Learn from the usage of the response to the list that was returned last.

        Returns the tokens that the policy has spared its prompt. A usage without a prompt, which
        some gateways send, is none.
        """
        if not usage.prompt or (sent := self.sent) is None:
            return 0
        self.sent = None
        counted = sent.conversation.counted(sent.facts)
        self.correction = self.correction.observed(counted, usage)
        self.write_ttl = usage.write_ttl or self.write_ttl
        return self.tallied.observe(sent, usage, self.called_at or 0.0)


def _attempt(records: Sequence[Mapping[str, Any]], made: int) -> Attempt | None:
    """Return the last attempt of the records, unless a compaction has helped since."""
    if not records or records[-1]["made"] != made:
        return None
    step, policy, is_refused = (records[-1][key] for key in ("step", "policy", "is_refused"))
    return Attempt(step, policy, made, Added(*records[-1]["added"]), is_refused)


def _parted(values: Iterable[T], condition: Callable[[T], bool]) -> tuple[list[T], list[T]]:
    """Return the values that meet a condition, and the others."""
    met: list[T] = []
    others: list[T] = []
    for value in values:
        (met if condition(value) else others).append(value)
    return met, others


def _half_pairs(entries: list[LedgerEntry]) -> set[str]:
    """Return the tool-use ids whose call or result was dropped while the other half was lost.

    A call may be dropped with several results, one in each form of the list, so only an id with
    no drop of the other half counts. A result that was first seen without its call has no tool, and
    need not have another half.
    """
    if not any(entry.action.leaves_nothing for entry in entries):
        return set()
    newest = {entry.key: entry for entry in entries if entry.rewritten is None}
    dropped = [e for e in newest.values() if e.action.leaves_nothing]
    ids = [(e.key.kind, e.call_id or e.key.tool_use_id, e.tool) for e in dropped]
    calls, answers = ({call for kind, call, _ in ids if kind == half and call} for half in _PAIR)
    paired = {call for kind, call, tool in ids if kind == _PAIR[1] and call and tool}
    return (calls - answers) | (paired - calls)


def _is_half_pair(entry: LedgerEntry, halves: set[str]) -> bool:
    is_dropped = entry.action.leaves_nothing and entry.key.kind in _PAIR
    return is_dropped and (entry.call_id or entry.key.tool_use_id) in halves


def _digest(record: Mapping[str, Any]) -> str:
    """Return the SHA-256, in hex, of a record of any JSON."""
    try:
        text = json.dumps(record, sort_keys=True)
    except RecursionError:
        text = "nested too deeply"
    return hashlib.sha256(text.encode()).hexdigest()


def _is_readable(record: Mapping[str, Any]) -> bool:
    """Whether a session could have written the record, or its kind is not one of a session."""
    kind = record.get("record")
    if kind == "call":
        return is_of(record, _CALL) and math.isfinite(record["at"])
    if kind == "usage":
        return _is_usage(record)
    if kind in ("decision", "mark"):
        return is_entry(record) if kind == "decision" else is_of(record, MARK)
    if kind in ("list", "redacted"):
        return is_of(record, _REDACTED) if kind == "redacted" else SeenList.of(record) is not None
    if kind in ("over_gate", "unreadable"):
        return _is_note(record)
    return kind != "compaction" or _is_compaction(record)


_CALL = fields_of({"at": "number"})
_REDACTED = fields_of({"name": "text", "text": "text"})
_UNREADABLE = fields_of({"sha256": "list"})
_OVER_GATE = fields_of(
    {
        "step": "text",
        "policy": "text",
        "made": "whole number",
        "added": "list",
        "is_refused": "truth",
    }
)
_COMPACTION = fields_of(
    {
        "step": "text",
        "skipped": "whole number",
        "count": "whole number",
        "sha256": "text",
        "messages": "list",
        "types": "list",
        "paths": "list",
        "summary": "text",
        "pinned": "list",
        "gone": "list",
        "archive": "text or nothing",
        "carried?": "whole number or nothing",
        "ends_list?": "truth",
        "kept?": "list",
        "drops?": "whole number",
        "held?": "list",
    }
)
_MESSAGE = fields_of({"role": "text", "content": "text"})
_KEY_TYPES = ("text", "text or nothing", "text", "whole number")


def _is_usage(record: Mapping[str, Any]) -> bool:
    try:
        found = correction_of(record)
    except (UsageError, OverflowError):
        return False
    ttl, totals = record.get("write_ttl"), record.get("totals", [0] * _NUMBERS)
    return (
        (
            isinstance(totals, list)
            and len(totals) == _NUMBERS
            and all(type(n) in TYPES["number"] and math.isfinite(n) for n in totals)
            and all(n >= 0 for i, n in enumerate(totals) if i not in _BELOW_ZERO)
        )
        and all(math.isfinite(number) for number in found[:4])
        and (ttl is None or (type(ttl) is int and ttl > 0))
    )


def _is_compaction(record: Mapping[str, Any]) -> bool:
    if not is_of(record, _COMPACTION):
        return False
    messages, carried = record["messages"], record.get("carried")
    keys = [*record["gone"], *record.get("held", ())]
    texts = [*record["types"], *record["paths"], *record["pinned"]]
    return (
        record["skipped"] >= 0
        and record["count"] > 0
        and (carried is None or 0 <= carried < record["count"])
        and all(type(i) is int and 0 <= i < record["count"] for i in record.get("kept", ()))
        and len(messages) == len(record["types"]) == len(record["paths"])
        and _are_texts(texts)
        and all(isinstance(one, dict) and is_of(one, _MESSAGE) for one in messages)
        and all(isinstance(key, list) and _is_key(key) for key in keys)
    )


def _is_note(record: Mapping[str, Any]) -> bool:
    if record["record"] == "unreadable":
        return is_of(record, _UNREADABLE) and _are_texts(record["sha256"])
    sizes = record["added"] if is_of(record, _OVER_GATE) else ()
    return len(sizes) == len(Added._fields) and all(type(n) is int and n >= 0 for n in sizes)


def _are_texts(values: Iterable[object]) -> bool:
    return all(isinstance(value, str) for value in values)


def _is_key(key: list[Any]) -> bool:
    return len(key) == len(_KEY_TYPES) and all(
        type(part) in TYPES[expected] for part, expected in zip(key, _KEY_TYPES, strict=True)
    )
