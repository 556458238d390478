"""Results of tau2-bench: one document with a list of simulations.

Arguments of calls are objects, and a result carries the id of its call as its own. The agent greets
first, with words that no model wrote. What the simulated user's own tools say, the agent does not
see. The domain's policy stands in for the agent's system prompt, which holds it.
"""

from collections.abc import Iterator

from policyctx.replay.readers.building import RecordingBuilder, calls_of, tool_message, usage
from policyctx.replay.readers.source import Source
from policyctx.replay.readers.values import Record, mapping, objects, seconds, word
from policyctx.replay.recording import Recording

FORMAT = "tau2"


def recognises(record: object) -> bool:
    """Is this the outline of a document of results."""
    simulations = mapping(record).get("simulations")
    return isinstance(simulations, list) and any("messages" in mapping(s) for s in simulations)


def recordings(source: Source) -> Iterator[Recording]:
    """Yield a recording for each simulation."""
    names = source.names()
    model = word(source.field("info", "agent_info", "llm")) or None
    system = word(source.field("info", "environment_info", "policy")) or None
    for simulation in map(mapping, source.elements("simulations")):
        conversation = _Conversation(model, system)
        messages, what = simulation.get("messages"), "record that is not a message"
        for message in conversation.builder.objects(messages, what):
            conversation.read(message)
        name = names.of(simulation.get("task_id"), simulation.get("trial"))
        if conversation.builder.is_empty:
            source.pass_over("simulation without a conversation", simulation)
        else:
            yield conversation.builder.recording(name, FORMAT)


class _Conversation:
    def __init__(self, model: str | None, system: str | None) -> None:
        self.builder = RecordingBuilder()
        self._model = model
        self._system = system
        self._asked = False

    def read(self, message: Record) -> None:
        self.builder.records += 1
        role = word(message.get("role"))
        if role == "assistant":
            self._reply(message)
        elif role == "tool":
            for result in objects(message.get("tool_messages")) or [message]:
                self._answer(result)
        elif role in ("user", "system") and not message.get("tool_calls"):
            self._asked = True
            self.builder.add({"role": role, "content": message.get("content")})
        elif role == "user":
            self.builder.pass_over("call of the user's own tools")
        else:
            self.builder.pass_over(f"{role} message", known=False, record=message)

    def _reply(self, message: Record) -> None:
        if self._asked:
            at = seconds(message.get("timestamp"))
            self.builder.called(usage(message.get("usage")), self._model, at, self._system)
        reply: Record = {"role": "assistant", "content": message.get("content")}
        self.builder.add(reply | calls_of(message.get("tool_calls")))

    def _answer(self, message: Record) -> None:
        if message.get("requestor") == "user":
            self.builder.pass_over("result of the user's own tools")
            return
        failed = message.get("error") is True
        result = tool_message(message.get("id"), message.get("content"), is_error=failed)
        self.builder.add(result)
