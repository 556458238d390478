"""`Recording`: one agent's recorded session, as the calls of a model that it was made of."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from policyctx.messages.items import Message
    from policyctx.replay.model_call import ModelCall
    from policyctx.tokens.usage import Usage


@dataclass(frozen=True, slots=True)
class SummedBill:
    """What several calls were billed together, where a recording knows no more than the sum."""

    usage: Usage
    """Of all these calls; without a prompt where nobody knows."""
    calls: int
    """How many, from the first of the session on."""
    beside: int = 0
    """Tokens of each prompt that no message shows, such as the schemas of tools."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A session of one agent. A message is the same object from call to call.

    Each record is in the messages, in `not_prompt`, or in `not_understood`.
    """

    name: str
    """The file's, with `#` and the id or number of the conversation where a file holds several."""
    format: str
    """Its reader's name, such as `claude-code`."""
    calls: tuple[ModelCall, ...]
    after: tuple[Message, ...] = ()
    """What came after the last call: its reply, and results that no call was made with."""
    after_anew: bool = False
    """`after` is the whole context: a compaction or rewind was the last that happened."""
    bill: SummedBill | None = None
    """What calls without a usage of their own were billed together."""
    records: int = 0
    """How many it was read from."""
    not_prompt: Mapping[str, int] = field(default_factory=dict)
    """Records that are known to be no part of a prompt: how many, by what they are."""
    not_understood: Mapping[str, int] = field(default_factory=dict)
    """What was passed over because no reader knows what it means: how often, by what it is."""

    def until(self, call: int) -> Recording:
        """Return the recording as it was when a call, counted from 1, was made.

        Its `messages()` are what the call was made with.
        """
        return replace(self, calls=self.calls[:call], after=(), after_anew=False)

    def messages(self) -> list[Message]:
        """Return the context at the end of the recording."""
        context: list[Message] = []
        for context in self.contexts():  # noqa: B007 - the last one is wanted
            pass
        return [*(() if self.after_anew else context), *self.after]

    def contexts(self) -> Iterator[list[Message]]:
        """Yield the context at each call.

        One list grows from call to call, and another one takes its place where the context begins
        anew: copy what is to be kept.
        """
        context: list[Message] = []
        for call in self.calls:
            if call.anew:
                context = []
            context.extend(call.new)
            yield context
