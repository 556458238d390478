"""`PolicyCallback`: a session in an agent of smolagents.

    policy = PolicyCallback("coding-agent", session_id="fix-the-tests")
    agent = ToolCallingAgent(tools, model, step_callbacks=[policy])

The agent calls it after each step. It edits the steps in the agent's memory, so the next model call
is made from the edited ones: smolagents has no other place for an edited list, and the edits stay.
`SmolagentsShape` reads and edits the `StepView`s of steps.

Importing this module raises `MissingExtraError` without smolagents, and `InstallationError` with a
version whose steps repeat a call in their text.
"""

from __future__ import annotations

import base64
import copy
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from policyctx.definitions.items import HostObject, Message, Path, SessionOption
from policyctx.errors import required
from policyctx.integrations.host_sessions import HostSessions, PolicyLike, Recent, Turn, at_once
from policyctx.messages.asked import Asked, model_name
from policyctx.messages.json_text import JSON, SPACED
from policyctx.messages.shapes.shape import Part, Shape
from policyctx.session import Session
from policyctx.tokens.usage import Usage

with required(
    "the callback for smolagents", "smolagents", needs="smolagents>=1.21", extra="smolagents"
):
    import smolagents
    from smolagents.memory import ActionStep, MemoryStep, PlanningStep, TaskStep
    from smolagents.models import ChatMessage, MessageRole, get_tool_json_schema
    from smolagents.tools import BaseTool  # noqa: F401 - older versions send a call twice

SessionOf: TypeAlias = Callable[[Any], Session | None]
_json = SPACED.encode
# The sessions whose last turn may still learn what it was billed.
_MOST_TURNS = 64


@dataclass
class SummaryStep(MemoryStep):  # type: ignore[misc]
    """What replaces the steps that a compaction has summarised."""

    text: str
    role: str = "user"

    def to_messages(self, summary_mode: bool = False) -> list[Any]:  # noqa: ARG002, FBT001, FBT002 - as in smolagents
        """Return the message of the model's prompt."""
        role = MessageRole.ASSISTANT if self.role == "assistant" else MessageRole.USER
        return [ChatMessage(role=role, content=[{"type": "text", "text": self.text}])]


@dataclass(frozen=True, slots=True)
class StepView:
    """What a step says, or what came back: the values of a step at one moment.

    A reply has the text of the model and the call; its results are one text, also of several calls
    at once. `step` is the step that they are from; None for a summary.
    """

    role: str
    text: str | None = None
    call: str | None = None
    """The input of the call as JSON; of several calls a list with their names."""
    tool: str | None = None
    call_id: str | None = None
    result: str | None = None
    fixed: tuple[str, ...] = ()
    """What no policy changes: pictures, errors, and observations without a call."""
    step: Any = field(default=None, compare=False, repr=False)


class SmolagentsShape(Shape):
    """The shape of the views of smolagents' steps."""

    def recognises(self, message: object) -> bool:
        """Return whether a value is a view of a step."""
        return isinstance(message, StepView)

    def role(self, message: StepView) -> str:
        """Return `assistant` for what the model said, `user` for tasks and results."""
        return message.role

    def parts(self, message: StepView) -> Iterator[Part]:
        """Yield the text, the call, the result and what stays as it is."""
        if message.text is not None:
            kind = "assistant_message" if message.role == "assistant" else "user_message"
            yield Part(("text",), kind, message.text)
        if message.call is not None:
            call_id = message.call_id
            yield Part(("call",), "tool_call", message.call, tool=message.tool, call_id=call_id)
        if message.result is not None:
            yield Part(("result",), "tool_result", message.result, call_id=message.call_id)
        for i, text in enumerate(message.fixed):
            yield Part(("fixed", i), "unknown", text)

    def replaced(self, message: StepView, texts: Mapping[Path, str | None]) -> StepView | None:
        """Return the view with these parts replaced or removed."""
        changes: dict[str, Any] = {str(path[0]): text for path, text in texts.items()}
        new = replace(message, **changes)
        return new if any(True for _ in self.parts(new)) else None

    def written(self, role: str, text: str) -> StepView:
        """Return a view of a summary."""
        return StepView(role, text)

    def plain(self, message: StepView) -> JSON:
        """Return the values of a view."""
        names = ("role", "text", "call", "tool", "call_id", "result")
        found: dict[str, JSON] = {name: getattr(message, name) for name in names}
        return {**found, "fixed": list(message.fixed)}


def views(steps: Iterable[Any]) -> list[StepView]:
    """Return the views of steps, in the order in which a model reads them."""
    return [view for step in steps for view in _views(step)]


def _views(step: HostObject) -> Iterator[StepView]:
    if isinstance(step, ActionStep):
        yield from _action_views(step)
    elif isinstance(step, PlanningStep):
        yield StepView("assistant", step.plan, step=step)
    elif isinstance(step, TaskStep):
        yield StepView("user", step.task, fixed=_pictures(step.task_images), step=step)
    elif isinstance(step, SummaryStep):
        yield StepView(step.role, step.text, step=step)
    else:
        texts = tuple(_json(message.dict()) for message in step.to_messages())
        if texts:
            yield StepView("user", fixed=texts, step=step)


def _action_views(step: HostObject) -> Iterator[StepView]:
    calls = step.tool_calls or ()
    tool, id_ = (calls[0].name, calls[0].id) if calls else (None, None)
    said = step.model_output
    text = said.strip() if isinstance(said, str) else said and _json(said)
    if text or calls:
        yield StepView("assistant", text or None, _input(calls), tool, id_, step=step)
    result, fixed = step.observations, _pictures(step.observations_images)
    if step.error is not None:
        fixed += (str(step.error),)
    if result is not None and not calls:
        fixed, result = (*fixed, result), None
    if result is not None or fixed:
        yield StepView("user", None, None, None, id_, result, fixed, step)


def _input(calls: HostObject) -> str | None:
    if not calls:
        return None
    if len(calls) == 1:
        return _json(calls[0].arguments)
    return _json([{"name": call.name, "arguments": call.arguments} for call in calls])


def _pictures(images: HostObject) -> tuple[str, ...]:
    found = []
    for image in images or ():
        image.save(written := io.BytesIO(), format="PNG")
        found.append(base64.b64encode(written.getvalue()).decode())
    return tuple(found)


def put_back(
    steps: list[Any], newest: Message, given: list[StepView], sent: Iterable[StepView]
) -> None:
    """Edit the steps so that they have the views that are sent; `newest` is not in the list yet.

    A step of which nothing is left goes. The newest one is emptied: the agent appends it itself.
    """
    before: dict[int, list[StepView]] = {}
    after: dict[int, list[StepView]] = {}
    for view in given:
        before.setdefault(id(view.step), []).append(view)
    order: list[Any] = []
    for view in sent:
        step = SummaryStep(view.text or "", view.role) if view.step is None else view.step
        if id(step) not in after:
            order.append(step)
        after.setdefault(id(step), []).append(view)
    for step in [*steps, newest]:
        if (old := before.get(id(step))) is not None and old != (new := after.get(id(step), [])):
            _edit(step, old, new)
    places = {id(step): i for i, step in enumerate(order)}
    silent = {id(step) for step in steps} - before.keys()
    # A step that says nothing has no view: it stays behind the step that it follows.
    placed = [(i, 0, step) for i, step in enumerate(order) if step is not newest]
    last = -1
    for number, step in enumerate(steps, 1):
        if id(step) in silent:
            placed.append((last, number, step))
        last = places.get(id(step), last)
    steps[:] = [step for _, _, step in sorted(placed, key=lambda entry: entry[:2])]


def _edit(step: HostObject, old: list[StepView], new: list[StepView]) -> None:
    """Give a step the values of its new views; what they lack is removed."""
    if not isinstance(step, ActionStep):
        for view in new:
            name = "plan" if isinstance(step, PlanningStep) else "task"
            setattr(step, "text" if isinstance(step, SummaryStep) else name, view.text or "")
        return
    said, seen, was_said, was_seen = (
        next((view for view in views if view.role == role), StepView(role))
        for views in (new, old)
        for role in ("assistant", "user")
    )
    if said.text != was_said.text:
        step.model_output = said.text
    if said.call != was_said.call:
        step.tool_calls = _calls(step.tool_calls, said.call)
    if seen.result != was_seen.result:
        step.observations = seen.result
    if was_seen.fixed and not seen.fixed:
        step.observations_images = step.error = step.observations = None


def _calls(calls: HostObject, text: str | None) -> HostObject:
    if text is None:
        return None
    new, given = copy.deepcopy(calls), json.loads(text)
    if len(new) == 1:
        new[0].arguments = given
    else:
        for call, values in zip(new, given, strict=True):
            call.arguments = values["arguments"]
    return new


class PolicyCallback:
    """Applies a policy to the steps of an agent, and observes the usage of its model calls.

    With a policy there is one session, with these `options` of `Session`, of which `session_id`
    names the conversation. A `Session` needs `shapes=[SmolagentsShape()]`. The steps of other
    agents stay as they are: see `AgentLoop.is_own`. With a function from the agent to a session or
    None, its answer holds, and None means unchanged.

    The warnings of turns are logged. `Session.apply` raises its errors through the run.
    """

    def __init__(self, session: Session | SessionOf | PolicyLike, **options: SessionOption) -> None:
        if not (isinstance(session, Session) or callable(session)):
            options.setdefault("session_id", None)  # one session, with an id of its own
        self._sessions = HostSessions(session, SmolagentsShape(), options)
        self._turns: Recent[str, Turn] = Recent(_MOST_TURNS)

    @property
    def session(self) -> Session:
        """The session; `InputError` if a function chooses it."""
        return self._sessions.of_id("")

    def __call__(self, step: HostObject, agent: HostObject) -> None:
        """Observe the usage of a step, and edit the agent's memory for the next one."""
        if (session := self._sessions.chosen(agent)) is None:
            return
        steps = agent.memory.steps
        given: list[Any] = views([*steps, step])
        system = agent.memory.system_prompt.system_prompt
        model = model_name(getattr(agent.model, "model_id", None))
        asked = Asked(None, given, system, _tools(agent), agent.name, _compared, model)
        if (turn := self._sessions.turn(session, asked, blocks=True)) is None:
            return
        if (last := self._turns.get(session.session_id)) is not None:
            at_once(last.observe(_usage(step)))
        sent = at_once(turn.apply())
        self._turns.put(session.session_id, turn)
        if sent.messages is not given:
            put_back(steps, step, given, sent.messages)


def _compared(view: HostObject) -> dict[str, Any]:
    return {"role": view.role, "content": _json([view.call_id, view.text, view.call, view.result])}


def _tools(agent: HostObject) -> list[dict[str, Any]]:
    """Return what the tools add to a request; those of a code agent are in its system prompt."""
    if isinstance(agent, smolagents.CodeAgent):
        return []
    every = [*agent.tools.values(), *agent.managed_agents.values()]
    return [get_tool_json_schema(tool) for tool in every]


def _usage(step: HostObject) -> Usage | None:
    """Return the usage of a step, None if it has none; smolagents does not show cached tokens."""
    given = getattr(step, "token_usage", None)
    if given is None or not given.input_tokens:
        return None
    return Usage(given.input_tokens, 0, 0, given.output_tokens or 0)
