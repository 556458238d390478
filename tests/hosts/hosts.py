"""Hosts of different kinds: the message objects of a framework, and the shape that reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from policyctx import Shape


class Host(Protocol):
    """How a framework writes a conversation.

    A call is an id, the name of a tool and its input; a result an id, the name and a text.
    """

    shape: Shape
    joins_results: bool
    """Whether all results of a reply are in one message."""

    def user(self, text: str) -> Any: ...

    def reply(
        self,
        text: str = "",
        calls: Sequence[tuple[str, str, dict[str, Any]]] = (),
        *,
        opaque: str = "",
    ) -> Any:
        """Return a message of the model; `opaque` is what only the provider can read."""
        ...

    def results(self, *results: tuple[str, str, str]) -> list[Any]: ...

    def picture(self, text: str) -> Any:
        """Return a message of the user with a text and a picture."""
        ...

    def opaque(self, message: Any) -> object:
        """Return what only the provider can read."""
        ...

    def loaded(self, messages: Sequence[Any]) -> list[Any]:
        """Return the messages as they are after the host has saved and loaded them."""
        ...
