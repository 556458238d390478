"""`PolicyCallback` in agents of smolagents, with its client for OpenAI's API and a server."""

from __future__ import annotations

import copy
import json
import logging
import pickle
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from smolagents import CodeAgent, OpenAIServerModel, Tool, ToolCallingAgent
from smolagents.memory import ActionStep, TaskStep

from policyctx import Session
from policyctx.errors import InputError
from policyctx.integrations.smolagents import (
    PolicyCallback,
    SmolagentsShape,
    StepView,
    SummaryStep,
    views,
)
from tests.integrations.agents import (
    ALL,
    CAREFUL,
    CONTENTS,
    DROP,
    TEXTS,
    check_loop,
    in_parallel,
    long_reply,
    script,
)
from tests.integrations.examples import added_lines, check_example, prompts_of, reading
from tests.integrations.loops import (
    BIG,
    GATED,
    LIMITS,
    LONG,
    OLD,
    SECOND,
    SHARE,
    WINDOW,
    files_of,
    limit_of,
)
from tests.integrations.openai_api import OpenAIAPI, openai_api
from tests.integrations.scripted import Reply, calling, saying
from tests.policies import policy

COMPACT = """\
    compaction: {keep_recent: {messages: 1}, keep_newest_user_message: true}
    steps: [{name: s, do: compact, when: {messages: {at_least: 5}}}]
    """
CALLS = """\
    items: {tool_call: {offload: true, keep_recent: 1}}
    min_tokens: 100
    steps: [{name: s, do: offload, select: {types: [tool_call]}}]
    """


class Read(Tool):  # type: ignore[misc]
    name = "read"
    description = "Read a file."
    inputs = {"name": {"type": "string", "description": "The file."}}  # noqa: RUF012 - as smolagents has it
    output_type = "string"

    def forward(self, name: str) -> str:
        return CONTENTS.get(name, "nothing")


class Bash(Tool):  # type: ignore[misc]
    name = "Bash"
    description = "Run a command."
    inputs = {  # noqa: RUF012
        "n": {"type": "integer", "description": "The turn."},
        "i": {"type": "integer", "description": "The call."},
    }
    output_type = "string"

    def forward(self, n: int, i: int) -> str:
        return TEXTS[f"t{n}_{i}"]


def final(text: str = "Done.") -> Reply:
    return calling(("f", "final_answer", {"answer": text}))


@pytest.fixture
def api() -> Iterator[OpenAIAPI]:
    with openai_api() as server:
        server.script = script(last=final())
        yield server
        assert server.refused == []


@pytest.fixture
def policy_of(tmp_path: Path) -> Callable[[str], PolicyCallback]:
    def make(text: str) -> PolicyCallback:
        return PolicyCallback(policy(text), root=tmp_path, session_id="s")

    return make


def agent_of(api: OpenAIAPI, callback: Any, kind: Any = ToolCallingAgent, **options: Any) -> Any:
    name = options.pop("model", "some")
    model = OpenAIServerModel(name, api_base=api.url, api_key="k")
    tools = options.pop("tools", [Read()])
    calls = [callback] if callback else []
    return kind(tools, model, step_callbacks=calls, verbosity_level=0, **options)


def texts(messages: Any) -> list[str]:
    """Return the text of each message of a request."""
    found = []
    for message in messages:
        content = message["content"]
        if not isinstance(content, str):
            content = "\n".join(block["text"] for block in content)
        found.append(content)
    return found


def results(body: Any) -> list[str]:
    """Return the observations in a request."""
    parts = [re.split(r"Observation:\n", text)[1:] for text in texts(body["messages"])]
    return [text for found in parts for text in found]


@pytest.mark.parametrize(("model", "limit"), LIMITS)
def test_a_share_is_of_the_window_of_the_called_model(
    api: OpenAIAPI, policy_of: Any, model: str, limit: int
) -> None:
    callback = policy_of(SHARE)
    assert agent_of(api, callback, model=model).run("Read both.") == "Done."
    assert limit_of(callback.session) == limit


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_the_next_call_gets_the_edited_steps_and_the_memory_keeps_the_edits(
    api: OpenAIAPI, policy_of: Any, streams: bool
) -> None:
    callback = policy_of(OLD)
    agent = agent_of(api, callback, stream_outputs=streams)
    assert agent.run("Read both.") == "Done."
    first, second = results(api.bodies[2])
    assert first.startswith("[")
    assert second == SECOND.strip()
    assert agent.memory.steps[1].observations == first.strip()
    [file] = files_of(callback.session)
    assert callback.session.read(file) == BIG.strip()
    # The first call is sent before the callback sees a list, so its usage belongs to none.
    assert callback.session.totals().calls == 2
    assert callback.session.totals().tokens_sent == sum(api.prompts[1:])


def test_a_dropped_call_leaves_with_its_step(api: OpenAIAPI, policy_of: Any) -> None:
    agent = agent_of(api, policy_of(DROP))
    agent.run("Read both.")
    assert results(api.bodies[2]) == [SECOND.strip()]
    assert "'c0'" not in str(api.bodies[2])
    steps = [step for step in agent.memory.steps if isinstance(step, ActionStep)]
    assert [step.tool_calls[0].id for step in steps] == ["c1", "f"]


def test_the_input_of_an_old_call_is_offloaded(api: OpenAIAPI, policy_of: Any) -> None:
    api.script = [calling((f"c{i}", "read", {"name": "x" * 3000})) for i in range(2)] + [final()]
    agent = agent_of(api, policy_of(CALLS))
    agent.run("Read.")
    old = agent.memory.steps[1].tool_calls[0].arguments["name"]
    assert old.startswith("[")
    assert old.split("\n")[0] in str(api.bodies[2])
    assert str(api.bodies[2]).count("x" * 3000) == 1


def test_the_results_of_parallel_calls_are_one_item(api: OpenAIAPI, policy_of: Any) -> None:
    api.script = in_parallel(final())
    callback = policy_of(OLD)
    agent_of(api, callback).run("Read both.")
    first, second = results(api.bodies[2])
    assert first.startswith("[")
    assert second == SECOND.strip()
    [file] = files_of(callback.session)
    assert sorted(callback.session.read(file).split("\n")) == sorted(
        text.strip() for text in (BIG, SECOND)
    )


def test_history_is_replaced_by_a_summary(api: OpenAIAPI, policy_of: Any) -> None:
    callback = policy_of(COMPACT)
    agent = agent_of(api, callback, instructions="Be brief.")
    agent.run("Read both.")
    assert callback.session.totals().compactions >= 1
    assert "alpha" not in str(results(api.bodies[2]))
    assert "Be brief." in texts(api.bodies[2]["messages"])[0]
    assert any(isinstance(step, SummaryStep) for step in agent.memory.steps)
    assert agent.memory.get_full_steps()


@pytest.mark.parametrize("text", [OLD, DROP, COMPACT], ids=["offload", "drop", "compact"])
@pytest.mark.parametrize("form", ["edited", "original"])
def test_a_restart_sends_the_same_bytes(
    api: OpenAIAPI, policy_of: Any, tmp_path: Path, text: str, form: str
) -> None:
    kept: list[Any] = []
    for callback in (None, policy_of(text)):
        api.script = [*script(last=final())[:2], Reply(status=400)]
        agent = agent_of(api, callback)
        with pytest.raises(Exception, match="scripted"):
            agent.run("Read both.")
        kept.append(agent.memory.steps)
    sent = texts(api.bodies[5]["messages"])
    steps = kept[form == "edited"]
    session = Session(policy(text), root=tmp_path, session_id="s", shapes=[SmolagentsShape()])
    given = views(pickle.loads(pickle.dumps(steps)))  # noqa: S301 - our own
    again = session.preview(given)
    said = "\n".join(view.text or view.result or "" for view in again)
    if form == "edited":
        assert list(again) == given
    assert BIG.strip() not in said
    for view in again:
        wanted = view.result if view.result is not None else view.text
        assert wanted is None or wanted.strip() in "\n".join(sent)


def test_the_error_of_a_failed_call_stays_as_it_is(api: OpenAIAPI, policy_of: Any) -> None:
    class Broken(Read):
        def forward(self, name: str) -> str:
            raise ValueError(BIG + name)

    callback = policy_of(ALL)
    agent_of(api, callback, tools=[Broken()]).run("Read both.")
    assert str(api.bodies[2]).count(f"ValueError: {BIG}") == 2
    assert files_of(callback.session) == []


def test_an_error_of_the_model_ends_the_run_and_the_next_one_goes_on(
    api: OpenAIAPI, policy_of: Any
) -> None:
    callback = policy_of(OLD)
    agent = agent_of(api, callback)
    api.script = [*script(last=final())[:2], Reply(status=400)]
    with pytest.raises(Exception, match="scripted"):
        agent.run("Read both.")
    api.script = [final()]
    agent.run("Go on.", reset=False)
    before, after = results(api.bodies[2]), results(api.bodies[3])
    assert after[0] == before[0]
    assert after[1].startswith(before[1])
    assert "Go on." in after[1]


def test_a_code_agent_has_its_code_and_its_logs_edited(api: OpenAIAPI, policy_of: Any) -> None:
    code = "Thought: look.\n<code>\nprint(read(name='{}'))\n</code>"
    end = "<code>\nfinal_answer('Done.')\n</code>"
    api.script = [saying(code.format("a")), saying(code.format("b")), saying(end)]
    callback = policy_of(OLD)
    agent = agent_of(api, callback, CodeAgent, code_block_tags=("<code>", "</code>"))
    assert agent.run("Read both.") == "Done."
    first, second = results(api.bodies[2])[-2:]  # the system prompt shows others
    assert first.startswith("[")
    assert SECOND.strip() in second
    assert {item.tool for item in callback.session.items if item.tool} == {"python_interpreter"}


def test_a_managed_agent_is_no_part_of_the_session(
    api: OpenAIAPI, policy_of: Any, caplog: pytest.LogCaptureFixture
) -> None:
    callback = policy_of(ALL)
    helper = agent_of(api, callback, name="helper", description="Looks.")
    api.script = [
        calling(("c", "read", {"name": "b"})),
        calling(("q", "helper", {"task": "Where?", "additional_args": {}})),
        *script(last=final())[:2],
        final(f"Found. {BIG}"),
        final(),
    ]
    agent = agent_of(api, callback, name="worker", managed_agents=[helper])
    with caplog.at_level(logging.WARNING):
        agent.run("Work.")
    assert results(api.bodies[4]) == [BIG.strip(), SECOND.strip()]
    assert all(text.startswith("[") for text in results(api.bodies[5]))
    assert "sent unchanged" in caplog.text


def test_a_function_chooses_the_session_of_an_agent(api: OpenAIAPI, tmp_path: Path) -> None:
    session = Session(policy(OLD), root=tmp_path, session_id="s", shapes=[SmolagentsShape()])
    callback = PolicyCallback(lambda agent: session if agent.name == "mine" else None)
    for name, count in (("other", 0), ("mine", 1)):
        api.script = script(last=final())
        agent_of(api, callback, name=name, description="x").run("Read both.")
        assert len(session.ledger) == count
    with pytest.raises(InputError, match="by a function"):
        _ = callback.session


def test_options_need_a_policy(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="need a policy"):
        PolicyCallback(lambda _: None, root=tmp_path)


def test_an_error_of_the_session_ends_the_run(api: OpenAIAPI) -> None:
    def broken(_: object) -> None:
        raise InputError("no session for this agent")

    with pytest.raises(InputError, match="no session for this agent"):
        agent_of(api, PolicyCallback(broken)).run("Read both.")


def test_the_system_prompt_and_the_tools_count_towards_the_gates(
    api: OpenAIAPI, policy_of: Any
) -> None:
    agent_of(api, policy_of(GATED), instructions="rule " * 20_000).run("Read both.")
    assert results(api.bodies[2])[0].startswith("[")


def test_a_hundred_turns_stay_valid_and_within_the_window(api: OpenAIAPI, policy_of: Any) -> None:
    turns = iter(range(100))

    def reply(_: Any) -> Reply:
        turn = next(turns)
        said = long_reply(turn)
        return final(said.text) if said.text else replace(said, reasons=False)

    api.script, api.window = reply, WINDOW
    callback = policy_of(LONG)
    agent = agent_of(api, callback, tools=[Bash()], instructions=CAREFUL)
    for part in range(10):
        if part % 3 == 2:  # a restart: other objects, and a session from the store
            steps = pickle.loads(pickle.dumps(agent.memory.steps))  # noqa: S301 - our own
            callback = policy_of(LONG)
            agent = agent_of(api, callback, tools=[Bash()], instructions=CAREFUL)
            agent.memory.steps = steps
        agent.run(f"Do part {part}.", reset=False)
    check_loop(api, callback.session)


def test_the_shape_returns_what_it_is_given() -> None:
    shape, step = SmolagentsShape(), TaskStep("the task")
    [view] = views([step])
    assert [part.kind for part in shape.parts(view)] == ["user_message"]
    edited = shape.replaced(view, {("text",): "other"})
    assert edited == StepView("user", "other")
    assert edited is not None
    assert edited.step is step
    assert shape.replaced(view, {("text",): None}) is None
    assert json.dumps(shape.plain(view))
    assert copy.deepcopy(view) == view


NAME, PAGE = "smolagents_agent", "smolagents"


def run_example(program: Path, folder: Path) -> list[int]:
    with openai_api() as api:
        api.script = reading(results, final)
        given = {"OPENAI_BASE_URL": api.url, "OPENAI_API_KEY": "k"}
        return prompts_of(api, program, folder, given)


def test_the_example_and_the_program_without_policyctx_give_the_same_answer(
    tmp_path: Path,
) -> None:
    check_example(NAME, tmp_path, PAGE, run_example)


def test_the_program_without_policyctx_differs_by_two_lines_and_imports() -> None:
    assert added_lines(NAME, PAGE) == [
        'policy = PolicyCallback("coding-agent", session_id="smolagents-agent")',
        "agent = ToolCallingAgent([read_file], model, step_callbacks=[policy], **limits)",
    ]
