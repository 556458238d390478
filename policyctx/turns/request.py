"""`Request`: what is true of one model call beside its messages."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from policyctx.definitions.items import Message
from policyctx.messages.markers import blocks_of_tools, has_functions, has_schemas
from policyctx.messages.shapes.shape import SYSTEM_ROLES
from policyctx.planning.conversation import Conversation
from policyctx.planning.facts import takes_markers_of


@dataclass(frozen=True, slots=True)
class Request:
    """What is true of one model call beside its messages.

    `system` and `tools` are those of the request: they count towards its size, and where one of the
    tools reads offloaded files, new placeholders in the default wording name it. `model` is the
    model that is called, as the request spells its name; None for that of the session's last
    request, or the policy's `model.name` if none has named one. Gates and `until` see its window,
    200,000 tokens if it is not in the table of models. `window` is used in its place.

    `takes_markers` says whether the API takes `cache_control` markers. None if the caller does not
    know: then the model says it, else what the request has that only such an API takes.
    `reads_once` says whether a call that stands alone shares what it reads with the next one; the
    conversation of its plan then lacks the decisions of the plan.
    """

    system: object = None
    tools: object = None
    model: str | None = None
    window: int | None = None
    takes_markers: bool | None = None
    reads_once: bool = True

    @property
    def beside(self) -> tuple[object, ...]:
        """The parts that count towards the size of the request beside its messages."""
        return tuple(filter(None, (self.system, self.tools)))

    def over(self, known: Request) -> Request:
        """Return the request with what it does not say as it is known of the session."""
        return replace(
            self,
            model=self.model or known.model,
            window=known.window if self.window is None else self.window,
            takes_markers=known.takes_markers if self.takes_markers is None else self.takes_markers,
            reads_once=self.reads_once and known.reads_once,
        )

    def why_unmarked(
        self, conversation: Conversation, given: Sequence[Message], *, is_marked: bool
    ) -> str:
        """Return why no marker is set in a list that is sent with this request; empty if any may.

        No message may be of an API without markers. Of dicts, only OpenAI's lists begin with the
        system, and only OpenAI's tools are functions. `is_marked` says whether the caller has set
        markers in the list.
        """
        reading, tools = conversation.reading, blocks_of_tools(self.tools)
        name = self.model or conversation.policy.model.name
        why = ""
        if self.takes_markers is False:
            why = "the API of the request takes none"
        elif not given:
            why = "the list is empty"
        elif not reading.takes_markers:
            why = "a message is of an API that takes none"
        elif not isinstance(given[0], dict):
            pass  # the shape of a framework says it
        elif reading.roles[0] in SYSTEM_ROLES:
            why = "the list begins with the system prompt, as only OpenAI's lists do"
        elif has_functions(self.tools):
            why = "the tools are functions, as only OpenAI's are"
        elif (said := self.takes_markers or takes_markers_of(name)) is False:
            why = f"the API of {name} takes none"
        # A text beside the list proves nothing: it may be the `instructions` of the Responses API.
        elif not (
            said
            or reading.shows_markers
            or is_marked
            or isinstance(self.system, list | tuple)
            or has_schemas(tools or ())
        ):
            why = f"the model {name} is not in the table of models" if name else "no model is named"
            why += ", and nothing in the request shows that its API takes them"
        return why


def moved_to_request(name: str, field: str) -> Any:  # noqa: ANN401 - an attribute of any type
    """Return an attribute that a session had before it was a field of `Request`; its use warns.

    What is set counts for each later request that says nothing else.
    """
    text = f"Session.{name} is deprecated: pass request=Request({field}=…)"

    def get(self: Any) -> Any:  # noqa: ANN401 - a session, which is not known here
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return getattr(self._knowledge.request, field)

    def put(self: Any, value: object) -> None:  # noqa: ANN401
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        self._knowledge.request = replace(self._knowledge.request, **{field: value})

    return property(get, put)
