"""Spans and metrics, as OpenTelemetry's own SDK exports them."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from policyctx import Request, Session, StoreError
from tests.compaction.compacting import compacting, conversation
from tests.conversations import calls, results, session_of, user
from tests.policies import policy

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

POLICY = """\
    model: {tokenizer: approximate}
    items: {tool_result: {offload: true, min_tokens: 100}}
    steps:
    - {name: early, on: arrival, do: offload, select: {types: [tool_result], min_tokens: 5000}}
    - {name: retire, do: offload, select: {types: [tool_result], keep_recent: 1}}
    - {name: room, do: drop, when: {tokens: {at_least: 90%}}, select: {types: [tool_result]}}
    """
TEXT = "what the user wrote "
MESSAGES = session_of(TEXT * 40, "short", TEXT * 50)
# A process has one provider of each, so they are installed once.
_EXPORTER, _READER = InMemorySpanExporter(), InMemoryMetricReader()


@pytest.fixture(scope="module")
def installed() -> None:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(_EXPORTER))
    trace.set_tracer_provider(provider)
    metrics.set_meter_provider(MeterProvider([_READER]))


@pytest.fixture
def spans(installed: None) -> Iterator[InMemorySpanExporter]:
    del installed
    _EXPORTER.clear()
    yield _EXPORTER
    _EXPORTER.clear()


def named(exporter: InMemorySpanExporter, name: str) -> ReadableSpan:
    [found] = [span for span in exporter.get_finished_spans() if span.name == name]
    return found


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def events(span: ReadableSpan, name: str) -> list[dict[str, Any]]:
    return [dict(event.attributes or {}) for event in span.events if event.name == name]


def points(metric: str, policy_name: str) -> list[Any]:
    """Return the points of a metric, of one policy: those of other tests are in the reader too."""
    read = _READER.get_metrics_data()
    assert read is not None
    return [
        point
        for resource in read.resource_metrics
        for scope in resource.scope_metrics
        if scope.scope.name == "policyctx"
        for one in scope.metrics
        if one.name == metric
        for point in one.data.data_points
        if (point.attributes or {})["policyctx.policy"] == policy_name
    ]


@pytest.mark.parametrize(("model", "is_marked"), [("claude-sonnet-4-5", True), ("gpt-5.1", False)])
def test_a_span_says_why_auto_sets_no_cache_markers(
    model: str, tmp_path: Path, spans: InMemorySpanExporter, *, is_marked: bool
) -> None:
    auto = policy(POLICY.replace("approximate}", "approximate, cache: {breakpoints: auto}}"))
    Session(auto, root=tmp_path, session_id="s").apply(MESSAGES, request=Request(model=model))
    said = attributes(named(spans, "policyctx.apply")).get("policyctx.breakpoints.why_none", "")
    assert (said == "") == is_marked


def test_a_turn_is_a_span_with_an_event_for_each_step_and_item(
    tmp_path: Path, spans: InMemorySpanExporter
) -> None:
    result = Session(policy(POLICY), root=tmp_path, session_id="s").apply(MESSAGES)
    span = named(spans, "policyctx.apply")
    freed = attributes(span)["policyctx.tokens.freed"]
    assert attributes(span) == {
        "gen_ai.conversation.id": "s",
        "policyctx.policy": "test",
        "policyctx.items": 1,
        "policyctx.tokens.freed": result.plan.tokens_before - result.plan.tokens_after,
        "policyctx.warnings": 0,
    }
    steps = events(span, "policyctx.step")
    assert [step["policyctx.step"] for step in steps] == ["early", "retire", "room"]
    assert [step["policyctx.step.open"] for step in steps] == [True, True, False]
    assert [step["policyctx.tokens.freed"] for step in steps] == [0, freed, 0]
    [decision] = events(span, "policyctx.decision")
    assert decision == {
        "policyctx.step": "retire",
        "policyctx.action": "offloaded",
        "policyctx.item.id": result.plan.new[0].item.item_id,
        "policyctx.item.type": "tool_result",
        "gen_ai.tool.name": "Bash",
        "policyctx.reason": str(result.plan.new[0].reason),
    }


def test_an_arriving_result_is_a_span(tmp_path: Path, spans: InMemorySpanExporter) -> None:
    session = Session(policy(POLICY), root=tmp_path, session_id="s")
    session.on_tool_result(results(("a", TEXT * 2000)), call=calls(("a", "Bash")))
    assert attributes(named(spans, "policyctx.on_tool_result"))["policyctx.items"] == 1


@pytest.mark.parametrize("is_async", [False, True])
def test_a_compaction_is_a_child_span_in_which_the_summary_is_made(
    tmp_path: Path, spans: InMemorySpanExporter, is_async: bool
) -> None:
    def summary(_: object) -> str:
        with trace.get_tracer("test").start_as_current_span("chat"):
            return "the summary"

    session = Session(compacting(), root=tmp_path, session_id="s", summarizer=summary)
    with trace.get_tracer("test").start_as_current_span("agent"):
        if is_async:
            result = asyncio.run(session.apply_async(conversation()))
        else:
            result = session.apply(conversation())
    assert result.compaction is not None
    agent, turn, compact, chat = (
        named(spans, name) for name in ("agent", "policyctx.apply", "policyctx.compact", "chat")
    )
    for child, parent in ((turn, agent), (compact, turn), (chat, compact)):
        assert child.parent is not None
        assert parent.context is not None
        assert child.parent.span_id == parent.context.span_id
    assert attributes(turn)["gen_ai.conversation.compacted"] is True
    found = attributes(compact)
    assert found["gen_ai.conversation.compacted"] is True
    assert found["gen_ai.conversation.id"] == "s"
    assert found["policyctx.step"] == "summarise"
    assert found["policyctx.outcome"] == "made"
    assert found["policyctx.compaction.messages"] == 6
    assert found["policyctx.tokens.before"] == 14
    assert found["policyctx.tokens.after"] == result.compaction.stats.compacted_token_count


def test_a_declined_compaction_is_not_called_compacted(
    tmp_path: Path, spans: InMemorySpanExporter
) -> None:
    Session(compacting(), root=tmp_path, before_compaction=lambda _: False).apply(conversation())
    compact = attributes(named(spans, "policyctx.compact"))
    assert compact["policyctx.outcome"] == "declined"
    for name in ("policyctx.compact", "policyctx.apply"):
        assert "gen_ai.conversation.compacted" not in attributes(named(spans, name))


def test_an_observed_usage_is_a_span(tmp_path: Path, spans: InMemorySpanExporter) -> None:
    session = Session(policy(POLICY), root=tmp_path, session_id="s")
    session.apply(MESSAGES)
    usage = {
        "input_tokens": 5,
        "cache_read_input_tokens": 20,
        "cache_creation_input_tokens": 3,
        "output_tokens": 7,
    }
    session.observe(usage)
    assert attributes(named(spans, "policyctx.observe")) == {
        "gen_ai.conversation.id": "s",
        "policyctx.policy": "test",
        "gen_ai.usage.input_tokens": 28,
        "gen_ai.usage.output_tokens": 7,
        "gen_ai.usage.cache_read.input_tokens": 20,
        "gen_ai.usage.cache_read_input_tokens": 20,
        "gen_ai.usage.cache_creation.input_tokens": 3,
        "gen_ai.usage.cache_creation_input_tokens": 3,
    }


def test_the_names_of_the_conventions_are_those_that_are_installed() -> None:
    from opentelemetry.semconv._incubating.attributes import gen_ai_attributes  # noqa: PLC0415

    names = {value for value in vars(gen_ai_attributes).values() if isinstance(value, str)}
    assert {
        "gen_ai.conversation.id",
        "gen_ai.tool.name",
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.output_tokens",
        "gen_ai.usage.cache_read.input_tokens",
        "gen_ai.usage.cache_creation.input_tokens",
    } <= names


def test_an_error_is_named_by_its_class_alone(tmp_path: Path, spans: InMemorySpanExporter) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    session = Session(policy(POLICY + "store: {on_failure: raise}"), root=blocked, session_id="s")
    with pytest.raises(StoreError):
        session.apply(MESSAGES)
    span = named(spans, "policyctx.apply")
    assert attributes(span)["error.type"] == "StoreError"
    assert span.status.status_code is trace.StatusCode.ERROR
    assert span.events == ()
    assert span.status.description is None


@pytest.mark.parametrize(("setting", "is_there"), [("", False), ("false", False), ("true", True)])
def test_the_text_of_messages_is_there_only_if_the_setting_asks_for_it(
    tmp_path: Path,
    spans: InMemorySpanExporter,
    monkeypatch: pytest.MonkeyPatch,
    setting: str,
    is_there: bool,
) -> None:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", setting)
    text = f"{POLICY}- {{name: sum, do: compact, when: {{messages: {{over: 2}}}}}}\n"
    session = Session(policy(text), root=tmp_path, session_id="s", summarizer=lambda _: TEXT)
    session.apply([user(TEXT), *MESSAGES], system=TEXT)
    written = "".join(span.to_json() for span in spans.get_finished_spans())
    assert ("what the user wrote" in written) == is_there
    if is_there:
        [decision] = events(named(spans, "policyctx.apply"), "policyctx.decision")
        assert decision["policyctx.item.text"] == TEXT * 40
        assert attributes(named(spans, "policyctx.compact"))["policyctx.summary"] == TEXT


def test_metrics_count_items_tokens_turns_and_compactions(
    tmp_path: Path, spans: InMemorySpanExporter
) -> None:
    del spans
    text = f"{POLICY}- {{name: sum, do: compact, when: {{messages: {{over: 2}}}}}}\n"
    counted = policy(text).policy.model_copy(update={"name": "counted"})
    session = Session(counted, root=tmp_path, session_id="s", summarizer=lambda _: "all of it")
    result = session.apply(MESSAGES)
    session.observe({"input_tokens": 5, "cache_read_input_tokens": 20, "output_tokens": 7})
    assert result.compaction is not None
    [items] = points("policyctx.items", "counted")
    assert items.value == 1
    assert items.attributes["policyctx.step"] == "retire"
    assert items.attributes["policyctx.action"] == "offloaded"
    freed = {
        p.attributes["policyctx.step"]: p.value for p in points("policyctx.tokens.freed", "counted")
    }
    stats = result.compaction.stats
    assert freed == {
        "retire": result.plan.tokens_before - result.plan.tokens_after,
        "sum": stats.original_token_count - stats.compacted_token_count,
    }
    [turn] = points("policyctx.turn.duration", "counted")
    assert (turn.count, turn.attributes["policyctx.operation"]) == (1, "apply")
    [compaction] = points("policyctx.compactions", "counted")
    assert (compaction.value, compaction.attributes["policyctx.outcome"]) == (1, "made")
    tokens = {
        p.attributes["policyctx.usage.kind"]: p.value
        for p in points("policyctx.usage.tokens", "counted")
    }
    assert tokens == {"input": 5, "cache_read": 20, "cache_write": 0, "output": 7}
    assert all("s" not in p.attributes.values() for p in [items, turn, compaction])


def test_a_program_that_does_not_use_opentelemetry_never_imports_it(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from policyctx import Session\n"
        "session = Session('coding-agent', root=sys.argv[1])\n"
        "session.apply([{'role': 'user', 'content': 'hello'}])\n"
        "session.observe({'input_tokens': 5, 'output_tokens': 7})\n"
        "assert not [name for name in sys.modules if name.startswith('opentelemetry')]\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True)
