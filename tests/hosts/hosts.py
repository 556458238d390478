"""Hosts of different kinds: the message objects of a framework, and the shape that reads them."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from policyctx import Shape


class Host(ABC):
    """How a framework writes a conversation; a class in a module of this folder is found there.

    A call is an id, the name of a tool and its input; a result an id, the name and a text.
    """

    shape: Shape
    joins_results: ClassVar[bool]
    """Whether all results of a reply are in one message."""

    @abstractmethod
    def user(self, text: str) -> Any: ...

    @abstractmethod
    def reply(
        self,
        text: str = "",
        calls: Sequence[tuple[str, str, dict[str, Any]]] = (),
        *,
        opaque: str = "",
    ) -> Any:
        """Return a message of the model; `opaque` is what only the provider can read, if any."""

    @abstractmethod
    def results(self, *results: tuple[str, str, str]) -> list[Any]: ...

    def picture(self, text: str) -> Any:
        """Return a message of the user with a text, and a picture if the framework has any."""
        return self.user(text)

    def opaque(self, _: Any) -> object:
        """Return what only the provider can read; None if the framework has nothing of the kind."""
        return None

    def loaded(self, messages: Sequence[Any]) -> list[Any]:
        """Return the messages as they are after the host has saved and loaded them."""
        return copy.deepcopy(list(messages))
