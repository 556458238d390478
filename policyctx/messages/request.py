"""A request body, or a bare message list, as a JSON document; and back with new messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from policyctx.errors import MessagesError
from policyctx.messages.reading import checked_messages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from policyctx.messages.items import Message


@dataclass(frozen=True, slots=True)
class Request:
    """What a model call is made of: the messages, and the body around them where there is one."""

    messages: Sequence[Message]
    body: Mapping[str, Any] | None = None

    @property
    def system(self) -> object:
        """The request's own `system`: a string, a list of blocks, or None."""
        return self.body and self.body.get("system")

    @property
    def tools(self) -> object:
        """The schemas of the tools on offer, or None."""
        return self.body and self.body.get("tools")

    def document_with(self, messages: Sequence[Message]) -> object:
        """Return the document that was read, with these messages in the place of its own."""
        return list(messages) if self.body is None else {**self.body, "messages": list(messages)}


def request_of(document: object) -> Request:
    """See a JSON document as a request.

    Takes an array of messages, or an object with `messages`; raises `MessagesError` for anything
    else, naming the message at fault.
    """
    if isinstance(document, Mapping):
        if "messages" not in document:
            raise MessagesError(
                'expected a list of messages or a request body, got an object without "messages"'
            )
        return Request(checked_messages(document["messages"]), document)
    return Request(checked_messages(document))
