"""Spans and metrics of OpenTelemetry: the one module that imports `opentelemetry`.

Names of the GenAI conventions are used where there are any, written out, since the constants of the
installed conventions may be older. All other names begin with `policyctx.`. No text of a message is
in them unless `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` asks for it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from time import perf_counter
from typing import Any

from opentelemetry import metrics, trace
from opentelemetry.trace import Span, StatusCode, Tracer

from policyctx.planning.compact import Replacing
from policyctx.planning.plan import StepReport
from policyctx.tokens.usage import Usage
from policyctx.turns.result import Compacted, NotCompacted, Result

CONVERSATION = "gen_ai.conversation.id"
COMPACTED = "gen_ai.conversation.compacted"
POLICY = "policyctx.policy"
STEP = "policyctx.step"
ACTION = "policyctx.action"
OUTCOME = "policyctx.outcome"
ERROR = "error.type"
_SETTING = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_WITH_TEXT = frozenset({"1", "true", "span_only", "event_only", "span_and_event"})
# Of a cached part of the prompt: the name of the conventions, and the one that they had before.
_CACHE_READ = ("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens")
_CACHE_WRITE = (
    "gen_ai.usage.cache_creation.input_tokens",
    "gen_ai.usage.cache_creation_input_tokens",
)


@cache
def telemetry() -> Telemetry:
    """Return the telemetry of this process.

    Each call of the API for an instrument makes one more as long as no SDK is installed, so they
    are made once. Those that were made before an SDK is installed report to it later.
    """
    return Telemetry()


class Telemetry:
    """The tracer of this process, and its instruments."""

    def __init__(self) -> None:
        self._tracer: Tracer = trace.get_tracer("policyctx")
        meter = metrics.get_meter("policyctx")
        self.turns = meter.create_histogram(
            "policyctx.turn.duration", "s", "Duration of a turn, a compaction included."
        )
        self.items = meter.create_counter(
            "policyctx.items", "{item}", "Items that steps took out of the context."
        )
        self.freed = meter.create_counter(
            "policyctx.tokens.freed", "{token}", "Tokens that left the context, net."
        )
        self.compactions = meter.create_counter(
            "policyctx.compactions", "{compaction}", "Compactions that were due, by outcome."
        )
        self.warnings = meter.create_counter(
            "policyctx.warnings", "{warning}", "Warnings of results."
        )
        self.tokens = meter.create_counter(
            "policyctx.usage.tokens", "{token}", "Tokens of observed model calls, by their kind."
        )

    @contextmanager
    def turn(self, operation: str, session_id: str, policy: str) -> Iterator[TurnSpan]:
        """Open the span of a turn, and measure how long the turn takes."""
        started, labels = perf_counter(), {POLICY: policy, "policyctx.operation": operation}
        attributes = {CONVERSATION: session_id, POLICY: policy}
        try:
            with self._span(f"policyctx.{operation}", attributes) as span:
                yield TurnSpan(self, span, policy)
        except BaseException as error:
            labels[ERROR] = type(error).__name__
            raise
        finally:
            self.turns.record(perf_counter() - started, labels)

    @contextmanager
    def compaction(
        self, replacing: Replacing, session_id: str, policy: str
    ) -> Iterator[CompactionSpan]:
        """Open the span of a compaction."""
        attributes = {
            CONVERSATION: session_id,
            POLICY: policy,
            STEP: replacing.step,
            "policyctx.compaction.messages": replacing.messages,
            "policyctx.compaction.tokens.replaced": replacing.tokens,
        }
        with self._span("policyctx.compact", attributes) as span:
            yield CompactionSpan(self, span, {POLICY: policy, STEP: replacing.step})

    def usage(self, usage: Usage, session_id: str, policy: str) -> None:
        """Report the usage of a model call as a span without duration, and count its tokens."""
        kinds = {
            "input": usage.input,
            "cache_read": usage.cache_read,
            "cache_write": usage.cache_write,
            "output": usage.output,
        }
        for kind, count in kinds.items():
            self.tokens.add(count, {POLICY: policy, "policyctx.usage.kind": kind})
        attributes = {
            CONVERSATION: session_id,
            POLICY: policy,
            "gen_ai.usage.input_tokens": usage.prompt,
            "gen_ai.usage.output_tokens": usage.output,
            **dict.fromkeys(_CACHE_READ, usage.cache_read),
            **dict.fromkeys(_CACHE_WRITE, usage.cache_write),
        }
        with self._span("policyctx.observe", attributes):
            pass

    @contextmanager
    def _span(self, name: str, attributes: dict[str, Any]) -> Iterator[Span]:
        """Open a span; of an exception it gets the class, since its text may quote a message."""
        with self._tracer.start_as_current_span(
            name, attributes=attributes, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield span
            except BaseException as error:
                span.set_attribute(ERROR, type(error).__name__)
                span.set_status(StatusCode.ERROR)
                raise


@dataclass(frozen=True, slots=True)
class TurnSpan:
    """The span of a turn, until its result is known."""

    telemetry: Telemetry
    span: Span
    policy: str

    def end(self, result: Result, steps: Sequence[StepReport]) -> None:
        """Count what the turn did, and write it to the span."""
        for step in steps:
            labels = {POLICY: self.policy, STEP: step.step}
            for action, count in step.items.items():
                self.telemetry.items.add(count, {**labels, ACTION: action.past})
            if step.items:
                self.telemetry.freed.add(max(0, step.freed_tokens), labels)
        if result.warnings:
            self.telemetry.warnings.add(len(result.warnings), {POLICY: self.policy})
        if self.span.is_recording():
            self._record(result, steps)

    def _record(self, result: Result, steps: Sequence[StepReport]) -> None:
        span = self.span
        if result.compacted:
            span.set_attribute(COMPACTED, value=True)  # the conventions know no false
        span.set_attribute("policyctx.items", sum(sum(s.items.values()) for s in steps))
        span.set_attribute("policyctx.tokens.freed", sum(step.freed_tokens for step in steps))
        span.set_attribute("policyctx.warnings", len(result.warnings))
        if why := result.breakpoints.why_none:
            span.set_attribute("policyctx.breakpoints.why_none", why)
        for step in steps:
            attributes: dict[str, Any] = {
                STEP: step.step,
                "policyctx.step.open": step.is_open,
                "policyctx.items": sum(step.items.values()),
                "policyctx.tokens.freed": step.freed_tokens,
                "policyctx.reason": step.why,
            }
            span.add_event("policyctx.step", attributes)
        with_text = _captures_text()
        for decision in result.plan.new:
            attributes = {
                STEP: decision.step,
                ACTION: decision.action.past,
                "policyctx.item.id": decision.item.item_id,
                "policyctx.item.type": decision.item.type,
                "policyctx.reason": str(decision.reason),
            }
            if decision.item.tool:
                attributes["gen_ai.tool.name"] = decision.item.tool
            if with_text:
                attributes["policyctx.item.text"] = decision.item.text
            span.add_event("policyctx.decision", attributes)


@dataclass(frozen=True, slots=True)
class CompactionSpan:
    """The span of a compaction, until its outcome is known."""

    telemetry: Telemetry
    span: Span
    labels: dict[str, str]

    def end(self, made: Compacted | NotCompacted) -> None:
        """Count the compaction by its outcome, and write that to the span."""
        span = self.span
        outcome = made.reason.code if isinstance(made, NotCompacted) else "made"
        self.telemetry.compactions.add(1, {**self.labels, OUTCOME: outcome})
        span.set_attribute(OUTCOME, outcome)
        if isinstance(made, NotCompacted):
            return
        before, after = made.stats.original_token_count, made.stats.compacted_token_count
        self.telemetry.freed.add(max(0, before - after), self.labels)
        span.set_attribute(COMPACTED, value=True)
        span.set_attribute("policyctx.tokens.before", before)
        span.set_attribute("policyctx.tokens.after", after)
        span.set_attribute("policyctx.restored_files", made.stats.restored_file_count)
        if _captures_text():
            span.set_attribute("policyctx.summary", made.summary)


def _captures_text() -> bool:
    """Whether the setting of the GenAI conventions asks for the text of messages."""
    return os.environ.get(_SETTING, "").strip().lower() in _WITH_TEXT
