"""`RecordingBuilder`: gathers what a reader finds until the recording is complete."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from policyctx.definitions.items import Message
from policyctx.errors import UsageError
from policyctx.messages.reading import is_message
from policyctx.replay.readers.values import Record, as_text, objects, size_of, word
from policyctx.replay.recording import Anew, MarkedPlace, ModelCall, Recording, SummedBill, Unread
from policyctx.tokens.usage import Usage, usage_of


def usage(fields: object) -> Usage | None:
    """Return a response's usage, None when there is none that can be read."""
    try:
        return usage_of(fields)
    except UsageError:
        return None


def function_call(call_id: object, name: object, arguments: object) -> Record:
    """Return a call in the form of the chat API, whose arguments are JSON text."""
    function = {"name": word(name), "arguments": as_text(arguments)}
    return {"id": word(call_id), "type": "function", "function": function}


def calls_of(calls: object, call_id: str = "id", name: str = "name") -> Record:
    """Return the field of a reply that has its calls, nothing without any; their keys are named."""
    found = objects(calls)
    made = [function_call(one.get(call_id), one.get(name), one.get("arguments")) for one in found]
    return {"tool_calls": made} if made else {}


def tool_use(call_id: object, name: object, arguments: object) -> Record:
    """Return the block of a call."""
    return {"type": "tool_use", "id": word(call_id), "name": word(name), "input": arguments}


def tool_message(
    call_id: object, content: object, *, name: str | None = None, is_error: bool = False
) -> Record:
    """Return what a call gave in the form of the chat API."""
    message: Record = {"role": "tool", "tool_call_id": word(call_id)}
    if name is not None:
        message["name"] = name
    message["content"] = content
    return {**message, "is_error": True} if is_error else message


def tool_result(call_id: object, content: object, *, is_error: bool) -> Record:
    """Return the block of what a call gave."""
    result = {"type": "tool_result", "tool_use_id": word(call_id), "content": content}
    return {**result, "is_error": True} if is_error else result


def thinking(text: object, signature: object = "") -> Record:
    """Return the block of what a model thought."""
    return {"type": "thinking", "thinking": text, "signature": word(signature)}


class RecordingBuilder:
    """A recording that is being read: its messages in order, and the calls between them."""

    def __init__(self, *, of_messages: bool = True) -> None:
        self.records = 0
        self._of_messages = of_messages
        """Whether a message is a record, and no part of one."""
        self.not_prompt: Counter[str] = Counter()
        self.not_understood: Counter[str] = Counter()
        self.unread = Unread()
        self.project = ""
        """What the session was recorded in, such as the working directory; the first counts."""
        self.context: list[Message] = []
        """The whole of it as it is now."""
        self._calls: list[ModelCall] = []
        self._new: list[Message] = []
        self._left: list[Message] = []
        """What was in a context that no call was made with, when it was begun anew."""
        self._left_since: list[Message] = []
        """What of these came after the last call and before a compaction."""
        self._anew = True
        self._why_anew: Anew | None = None
        self._sum: SummedBill | None = None

    @property
    def is_empty(self) -> bool:
        """Whether no message and no call was found."""
        return not self._calls and not self._new

    @property
    def calls(self) -> int:
        """How many calls of a model were found so far."""
        return len(self._calls)

    def add(self, message: Message) -> bool:
        """Put a message into the context; one that is none is counted, and False returned."""
        if not is_message(message):
            kind = message.get("type")
            is_item = "role" not in message and isinstance(kind, str)
            what = f"{kind} item" if is_item else f"{message.get('role')} message"
            self.not_understood[what] += 1
            self.unread += Unread(int(self._of_messages), size_of(message))
            return False
        self._new.append(message)
        self.context.append(message)
        return True

    def extend(self, role: str, blocks: list[Record]) -> None:
        """Add blocks to the newest message if it has this role, else as a message of their own.

        A message that a call was made with is never changed.
        """
        newest = self._new[-1] if self._new else {}
        if newest.get("role") == role and isinstance(newest.get("content"), list):
            newest["content"].extend(blocks)
        else:
            self.add({"role": role, "content": list(blocks)})

    def pass_over(self, what: str, *, known: bool = True, record: object = None) -> None:
        """Count a record that gives no message: a known one, or one not understood."""
        (self.not_prompt if known else self.not_understood)[what] += 1
        if not known:
            self.unread += Unread(1, size_of(record))

    def miss(self, what: str, part: object) -> None:
        """Count a part of a message that is not understood."""
        self.not_understood[what] += 1
        self.unread += Unread(bytes=size_of(part))

    def objects(self, values: object, what: str) -> Iterator[Record]:
        """Yield the objects of a list; its other values are records that are not understood."""
        for value in values if isinstance(values, list) else ():
            if isinstance(value, dict):
                yield value
            else:
                self.records += 1
                self.pass_over(what, known=False, record=value)

    def count(self, other: RecordingBuilder) -> None:
        """Add what another one counted."""
        self.records += other.records
        self.not_prompt += other.not_prompt
        self.not_understood += other.not_understood
        self.unread += other.unread

    def begin_anew(self, context: Iterable[Message] = (), *, why: Anew) -> None:
        """Replace the whole context, as a compaction or a rewind does.

        A context that begins with the whole one before it only grows. What came after the last
        call and is not kept was in no prompt; it is counted as such.
        """
        kept = list(context)
        if kept[: len(self.context)] == self.context:
            for message in kept[len(self.context) :]:
                self.add(message)
            return
        self._left += self._new
        self._left_since = [*self._left_since, *self._new] if why == "compaction" else []
        self._new, self.context = [], []
        self.mark_anew(why)
        for message in kept:
            self.add(message)

    def mark_anew(self, why: Anew) -> None:
        """Say why the next call has another context, where no message is read.

        A change after a compaction and before a call is a part of it.
        """
        self._anew = True
        if self._calls and self._why_anew != "compaction":
            self._why_anew = why

    def leave(self, message: Message) -> None:
        """Count a message that is not in the context, as one that no call was made with."""
        self._left.append(message)

    def called(
        self,
        usage: Usage | None = None,
        language_model: str | None = None,
        at: float | None = None,
        system: object = None,
        tools: object = None,
        *,
        marks: tuple[MarkedPlace, ...] | None = None,
        window: int | None = None,
        call_id: str = "",
    ) -> int:
        """Say that a model was called with the context as it is now; return the call's number."""
        new = tuple(self._new)
        anew = self._anew
        why = self._why_anew
        beside = marks, why, window, call_id, tuple(self._left_since)
        call = ModelCall(new, anew, usage, language_model, at, system, tools, *beside)
        self._calls.append(call)
        self._left_since = []
        self._new, self._anew, self._why_anew = [], False, None
        return len(self._calls) - 1

    def forget_marks(self) -> None:
        """Say that nobody knows where the requests had markers."""
        self._calls = [replace(call, marks=None) for call in self._calls]

    def bill(self, call: int, usage: Usage) -> None:
        """Say what was billed for a call, when that shows later than the call."""
        self._calls[call] = replace(self._calls[call], usage=usage)

    def bill_together(self, usage: Usage, calls: int | None = None, beside: int = 0) -> None:
        """Say what the first calls were billed as a sum, by default all of them.

        `beside` are the tokens of each prompt that no message shows.
        """
        self._sum = SummedBill(usage, len(self._calls) if calls is None else calls, beside)

    def found(self, name: str, format_: str) -> Iterator[Recording]:
        """Yield what was gathered, if there is a message or a call."""
        if not self.is_empty:
            yield self.recording(name, format_)

    def recording(self, name: str, format_: str) -> Recording:
        """Return what was gathered."""
        not_prompt = Counter(self.not_prompt)
        sent = {id(message) for message in self._new}
        sent.update(id(message) for call in self._calls for message in call.new)
        unsent = {id(message) for message in self._left} - sent
        not_prompt["message that no call was made with"] = len(unsent)
        return Recording(
            name,
            format_,
            tuple(self._calls),
            tuple(self._new),
            after_anew=self._anew,
            bill=self._sum,
            records=self.records,
            not_prompt=dict(+not_prompt),
            not_understood=dict(self.not_understood),
            unread=self.unread,
            project=self.project,
        )


class RecordingNames:
    """Names for the recordings of one file; one that is used already gets a number."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._used: set[str] = set()
        self._times: Counter[str] = Counter()

    def numbered(self) -> str:
        """Return a name with the number of the recording in its file, from 1."""
        return self.after(str(len(self._used) + 1))

    def of(self, *parts: object) -> str:
        """Return the file's name, `#`, and those of the parts that say something."""
        return self.after("-".join(str(part) for part in parts if part is not None and part != ""))

    def after(self, said: str) -> str:
        """Return the file's name, `#` and a text."""
        name = first = f"{self._file}#{said}"
        while name in self._used:
            self._times[first] += 1
            name = f"{first}-{self._times[first] + 1}"
        self._used.add(name)
        return name
