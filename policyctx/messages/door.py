"""`Door`: where messages enter a session: without secrets, and repaired if the policy says so.

What `redact` of a policy matches leaves a message before anything else reads it. Under `on_broken`,
a list that a provider would refuse as it was given is repaired or refused: a call without a result
leaves, and a result without a call becomes a message of the user, so nothing that a tool said is
lost. What some provider takes counts as broken here only if the API of the message refuses it.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, count, repeat
from operator import is_
from typing import Any, Literal, NamedTuple

from policyctx.definitions.items import Item, Message, call_key
from policyctx.definitions.names import RESULT_OF
from policyctx.errors import BrokenMessagesError, MessagesError
from policyctx.messages.editing import Edit, edited_message, is_object, shortened_input
from policyctx.messages.fillers import Fillers
from policyctx.messages.json_text import compact_json
from policyctx.messages.reading import Reading, listed
from policyctx.messages.shapes.built_in import Shapes
from policyctx.messages.shapes.shape import RESULT_ROLES, SYSTEM_ROLES, Part
from policyctx.patterns import Original, Secrets

# Fields that an API reads itself, and bytes that a provider or a decoder checks.
_KEPT = frozenset(
    {"type", "id", "role", "name", "status", "tool_use_id", "tool_call_id", "call_id", "item_id"}
    | {"file_id", "signature", "thoughtSignature", "thought_signature", "encrypted_content"}
    | {"media_type", "mime_type", "mimeType", "cache_control"}
)
_THOUGHT = frozenset({"thinking", "redacted_thinking", "reasoning"})
_INPUTS = frozenset({"input", "args", "arguments"})
_TEXTS = frozenset({"system_prompt", "user_message", "assistant_message", "tool_result"})
BEGINNING = "[The beginning of the conversation is missing.]"
INTERRUPTED = "[The last call was interrupted before it had a result.]"
# A message, and its place in the list that was given; None for a new one.
_Placed = tuple[int | None, Message]


class Fault(NamedTuple):
    """What a provider would refuse, and what a repair makes of it."""

    problem: str
    repair: str


class Entered(NamedTuple):
    """A list as it is read, and what was wrong with the one that was given."""

    messages: Sequence[Message]
    places: Sequence[int | None] = ()
    """Where each message is in the list that was given; empty where they have the same places."""
    faults: tuple[Fault, ...] = ()
    alike: list[Message] | None = None
    """The list again, of the objects of the one before as far as they are equal, if that is known;
    so that who knows these objects need not compare the messages a second time."""


class _Searched(NamedTuple):
    """A list as it was given, and what was found in it."""

    given: list[Message]
    copies: list[Message | None]
    """The messages as they were searched; None where that is not known, and for host's objects."""
    redacted: dict[int, Message]
    """Those that had secrets, without them, by position."""

    def passed(self, messages: list[Message]) -> list[Message]:
        """Return these messages, or equal ones, without secrets."""
        return [*map(self.redacted.get, count(), messages)] if self.redacted else messages


class Door:
    """Where the messages of a session enter; it remembers the last list by its objects.

    A message without a secret stays the same object. One that was in the list before is not
    searched again, nor one that equals the one at its place. What no later message can change is
    repaired once.
    """

    def __init__(
        self,
        redact: Mapping[str, str],
        on_broken: Literal["keep", "repair", "refuse"],
        shapes: Shapes,
        keep: Iterable[str] = (),
    ) -> None:
        self._secrets = Secrets(redact, keep) if redact else None
        self.originals: dict[Original, None] = self._secrets.originals if self._secrets else {}
        """What was replaced and is to be kept; what is saved has to be removed from it."""
        self._on_broken, self._shapes = on_broken, shapes
        self.fillers = Fillers(shapes)
        self.is_open = self._secrets is None
        """Whether no text changes."""
        self._passes = self.is_open and on_broken == "keep"
        self._last = _Searched([], [], {})
        self._border = 0
        """The number of its messages that are repaired for good."""
        self._settled: list[_Placed] = []
        """Them as they were repaired."""
        self._faults: tuple[Fault, ...] = ()

    @property
    def changes_nothing(self) -> bool:
        """Whether every list is read, and sent, as it is."""
        return self._passes and not self.fillers.are_needed

    def let_in(self, messages: Sequence[Message], *, changed: bool = False) -> Entered:
        """Return the list that is read, without fillers: the same object without a change.

        With `changed` an object may be another message than before. Raises `BrokenMessagesError`
        under `on_broken: refuse`, and `MessagesError` like `Reading` where a list is repaired.
        """
        left, own = self.fillers.taken_out(messages)
        if own is None:
            return self._let_in(left, changed=changed)
        try:
            entered = self._let_in(left, changed=changed)
        except MessagesError as error:
            raise error.among(own) from error.__cause__
        places = entered.places or range(len(own))
        return entered._replace(places=[None if i is None else own[i] for i in places])

    def _let_in(self, messages: Sequence[Message], *, changed: bool) -> Entered:
        if self._passes:
            return Entered(messages)
        given = [*listed(messages)]
        if changed:
            self._last = _Searched([], [], {})
        border = self._border
        if changed or len(given) < border or not all(map(is_, given, self._last.given[:border])):
            self._border, self._settled, self._faults = 0, [], ()
        last, alike = self._searched(given)
        self._last = last
        passed = last.passed(given)
        if self._on_broken == "keep" or not (found := self._repaired(passed)).faults:
            alike = None if alike is None else last.passed(alike)
            return Entered(passed if last.redacted else messages, alike=alike)
        if self._on_broken == "refuse":
            raise BrokenMessagesError([fault.problem for fault in found.faults])
        return found

    def _searched(self, given: list[Message]) -> tuple[_Searched, list[Message] | None]:
        """Return the list with its secrets found; what was in the last one is not searched.

        The second value has equal messages, those of the last list as far as they are in it.
        """
        if self._secrets is None:
            return _Searched(given, [], {}), None
        last, copies, redacted = self._last
        known, alike = min(len(last), len(given)), None
        if len(copies) > known:
            copies = copies[:known]
        if all(map(is_, last, given)) or copies == given[:known]:
            # In place where that is possible: each copy of a list touches all its messages.
            alike = last[:known]
            alike += given[known:]
            new = {at: one for at, one in redacted.items() if at < known}
            new |= enumerate(map(self.redacted, given[known:]), known)
            copies += map(_copied, given[known:])
        else:
            before = {id(one): redacted.get(at, one) for at, one in enumerate(last)}
            before |= {id(one): one for one in redacted.values()}
            new, copied, copies = {}, chain(copies[: len(last)], repeat(None)), []
            for at, (one, copy) in enumerate(zip(given, copied, strict=False)):
                is_same = copy is not None and one == copy
                found = redacted.get(at, one) if is_same else before.get(id(one))
                new[at] = self.redacted(one) if found is None else found
                copies.append(copy if is_same else _copied(one) if found is None else None)
        redacted = {i: one for i, one in new.items() if one is not given[i]}
        return _Searched(given, copies, redacted), alike

    def _repaired(self, given: Sequence[Message]) -> Entered:
        """Return the list as a provider takes it."""
        known = self._border
        placed: list[_Placed] = list(zip(count(known), given[known:], strict=False))
        border = next((i for i in range(len(given) - 1, known, -1) if self._parts(given, i)), 0)
        if border:
            head, faults = self._rounds(placed[: border - known])
            # Where replies are split, the result of a call may come behind the border.
            if not (faults and self._shapes.checked(given[border], border).shape.splits_replies):
                self._settled, self._faults = self._settled + head, self._faults + faults
                self._border, placed = border, placed[border - known :]
        tail, faults = self._rounds(placed, is_last=True)
        every, faults = self._settled + tail, self._faults + faults
        return Entered([message for _, message in every], [place for place, _ in every], faults)

    def _parts(self, given: Sequence[Message], place: int) -> bool:
        """Whether no pair reaches over the beginning of a message."""
        shape, message = self._shapes.checked(given[place], place)
        match shape.role(message):
            case "user":
                return "tool_result" not in {part.kind for part in shape.parts(message)}
            case "assistant" if not shape.splits_replies:
                before = self._shapes.checked(given[place - 1], place - 1)
                return before.shape.role(before.message) != "assistant"
        return False

    def _rounds(
        self, placed: list[_Placed], *, is_last: bool = False
    ) -> tuple[list[_Placed], tuple[Fault, ...]]:
        faults: tuple[Fault, ...] = ()
        known = (self._shapes.role(message) for _, message in self._settled)
        begins = all(role in SYSTEM_ROLES for role in known)
        while True:
            one = _Round(placed, self._shapes, begins_list=begins, ends_list=is_last)
            placed = one.repaired()
            if not one.faults:
                return placed, faults
            faults += (*one.faults,)

    def redacted(self, given: Message) -> Message:
        """Return a message without secrets: the same object where it has none.

        What cannot be read as a message stays, and is refused where it is read.
        """
        if self._secrets is None:
            return given
        if type(given) is dict:
            return self._value(given)
        try:
            shape, message = self._shapes.shaped(given)
            if shape not in self._shapes.host:
                new = self._value(message)
                return given if new is message else new
            texts = {p.path: self._part(p) for p in shape.parts(message)}
            texts = {path: text for path, text in texts.items() if text is not None}
            return (shape.replaced(message, texts) if texts else None) or given
        except (AttributeError, KeyError, TypeError, RecursionError):
            return given

    def text(self, text: str) -> str:
        """Return a text without secrets."""
        return text if self._secrets is None else self._secrets.replaced(text)

    def _part(self, part: Part) -> str | None:
        """Return the new text of a part of a host's message, None to leave it."""
        text = str(part.text)
        if part.kind == "tool_call":
            return shortened_input(text, self._changed)
        is_text = part.kind in _TEXTS and part.takes_text
        return self._changed(text) if is_text else None

    def _changed(self, text: str) -> str | None:
        new = self.text(text)
        return None if new == text else new

    def _value(self, value: Any, *, is_input: bool = False) -> Any:  # noqa: ANN401 - JSON
        """Return a JSON value without secrets in its texts: the same object where it has none."""
        if isinstance(value, str):
            return value if value.startswith("data:") else self.text(value)
        if isinstance(value, list):
            new = [self._value(one, is_input=is_input) for one in value]
            return value if all(map(is_, value, new)) else new
        if not isinstance(value, dict):
            return value
        if not is_input and (value.get("type") in _THOUGHT or value.get("thought") is True):
            return value
        fields = {key: self._field(key, one, value, is_input) for key, one in value.items()}
        return value if all(map(is_, value.values(), fields.values())) else fields

    def _field(self, key: str, value: Any, block: Mapping[str, Any], is_input: bool) -> Any:  # noqa: ANN401, FBT001
        if is_input or key in _INPUTS:
            is_text = isinstance(value, str)
            return self._input(value) if is_text else self._value(value, is_input=True)
        is_media = key == "data" and block.get("type") != "text"
        return value if key in _KEPT or is_media else self._value(value)

    def _input(self, text: str) -> str:
        """Return the text of a call's input; a JSON object stays one, whatever matches."""
        new = self._value(shortened_input(text, self._changed) or text)
        if new != text and is_object(text) and not is_object(new):
            return compact_json({"redacted": new})
        return text if new == text else new


def _copied(message: Message) -> Message | None:
    """Return a dict with maps and lists of its own, None for a host's object."""
    return _own(message) if type(message) is dict else None


def _own(value: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, dict):
        return {key: _own(one) for key, one in value.items()}
    return [*map(_own, value)] if isinstance(value, list) else value


class _Round:
    """One pass over messages; a repair may leave what the next pass repairs."""

    def __init__(
        self,
        placed: Sequence[_Placed],
        shapes: Shapes,
        *,
        begins_list: bool,
        ends_list: bool,
    ) -> None:
        self._placed, self._shapes = placed, shapes
        self._begins_list, self._ends_list = begins_list, ends_list
        try:
            self._in = Reading(shapes, [message for _, message in placed])
        except MessagesError as error:
            raise error.among([place for place, _ in placed]) from error.__cause__
        self.faults: list[Fault] = []

    def repaired(self) -> list[_Placed]:
        """Return the list with what this pass finds repaired."""
        left: list[_Placed] = []
        said: list[_Placed] = []  # behind the results between which it was found
        begins = self._begins_list
        for at, (place, message) in enumerate(self._placed):
            if not self._holds_only_results(at):
                left, said = [*left, *said], []
            if begins and self._in.roles[at] not in SYSTEM_ROLES:
                begins = False
                if self._in.opening_roles[at] == "assistant":
                    self._note("the list begins with an assistant message", "a prompt precedes it")
                    left.append((None, self._written(BEGINNING, message)))
            new, words = self._repaired(at, message)
            left += [(place, new)] if new is not None else []
            said += [(None, one) for one in words]
        return left + said

    def _repaired(self, at: int, message: Message) -> tuple[Message | None, list[Message]]:
        """Return what stays of a message, and the messages of the user that say the rest."""
        items = [self._in.items[i] for i in self._in.items_of(at)]
        shape, own = self._in.shaped(at, message)
        role, thinks = self._in.roles[at], all(item.kind == "thinking" for item in items)
        if shape.is_empty(own):
            self._note(f"a message of role {role} is empty", "dropped")
            return None, []
        leads_on = at < self._in.reply_of(at)[-1]  # to more of its reply
        if role == "assistant" and thinks and items and not leads_on:
            self._note("thinking is not followed by what it led to", "dropped")
            return None, []
        halves = [i for i in self._in.items_of(at) if self._is_half(i)]
        words: list[Message] = []
        for i in halves:
            item = self._in.items[i]
            name = item.tool_use_id or item.tool
            if item.kind == "tool_call":
                self._note(f"the call {name} has no result right after it", "dropped")
            else:
                problem = f"the result {name} has no call right before it"
                self._note(problem, "now a message of the user")
                words.append(self._said(item, message))
        if not halves:
            return message, words
        edits = [Edit(self._in.items[i], None) for i in halves]
        left = edited_message(message, edits, self._shapes)
        if self._ends_list and at == len(self._placed) - 1 and role == "assistant":
            words.append(self._written(INTERRUPTED, message))
        return left, words

    def _is_half(self, position: int) -> bool:
        """Whether a call has no result, or a result no call, where the API wants it."""
        item, partner = self._in.items[position], self._in.partners.get(position)
        if item.kind not in ("tool_call", "tool_result") or item.inside is not None:
            return False
        if call_key(item) is None:
            return False
        splits = self._in.shaped(item.message, self._placed[item.message][1]).shape.splits_replies
        if splits:
            return next(self._in.bound_to(position), None) is None
        if partner is None or self._in.partners.get(partner) != position:
            return True
        first, last = sorted((item.message, self._in.items[partner].message))
        end = max(first, self._in.reply_of(first)[-1])
        return not all(map(self._holds_only_results, range(end + 1, last)))

    def _holds_only_results(self, at: int) -> bool:
        items = [self._in.items[i] for i in self._in.items_of(at)]
        only = bool(items) and all(i.kind == "tool_result" or i.inside is not None for i in items)
        return only or self._in.roles[at] in RESULT_ROLES

    def _said(self, item: Item, beside: Message) -> Message:
        head = f"{RESULT_OF}{item.tool_use_id or item.tool}:"
        shape, message = self._shapes.shaped(beside)
        said = shape.written_with(head, message, item.path) if item.media else None
        return self._written(f"{head}\n{item.text}", beside) if said is None else said

    def _written(self, text: str, beside: Message) -> Message:
        return self._shapes.writing([beside]).written("user", text)

    def _note(self, problem: str, repair: str) -> None:
        self.faults.append(Fault(problem, repair))
