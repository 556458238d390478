"""`AnthropicSummarizer`: the summary that a model of Anthropic writes, through the real SDK."""

import re
from typing import Any, ClassVar

from policyctx.compaction.assembly import SummaryRequest
from policyctx.compaction.prompt import (
    instructions,
    instructions_in_place,
    recorded_parts,
    reduced,
    transcript,
)
from policyctx.compaction.summarizers import (
    SdkSummarizer,
    called,
    cut_off,
    is_taken_cut_off,
    max_tokens,
    refused,
    sound,
    with_objection,
)
from policyctx.definitions.items import HostObject
from policyctx.errors import SummaryError
from policyctx.messages.editing import in_place_anthropic
from policyctx.policy.models.compaction import Summary
from policyctx.policy.values import Share

# Claude docs, "Models overview": a million tokens from 4.6 on, except Haiku. Counted with o200k,
# text has about so many fewer tokens; 1.5 is on the safe side for models not known.
_WINDOW, _LARGE_WINDOW = 200_000, 1_000_000
_LARGE_FROM, _LARGE_FAMILIES = (4, 6), ("opus", "sonnet", "fable")
_TOKENS_PER_COUNTED, _TOKENS_PER_COUNTED_BEFORE, _DENSER_FROM = 1.5, 1.25, (4, 7)

_FINISHED = ("end_turn", "stop_sequence")


class AnthropicSummarizer(SdkSummarizer):
    """A `Summarizer` that asks a Claude model.

    `client` is the caller's `anthropic.Anthropic` or `anthropic.AsyncAnthropic`, or another client
    of that SDK. A conversation over `max_input` of the model's window is shortened first: see
    `reduced`. Pinned texts are no part of what the model writes: they are set under its summary to
    the letter.
    """

    package: ClassVar[str] = "anthropic"
    clients: ClassVar[tuple[str, str]] = ("Anthropic", "AsyncAnthropic")
    key_variable: ClassVar[str] = "ANTHROPIC_API_KEY"

    def _asked(self, request: SummaryRequest, base_url: str) -> dict[str, Any]:
        del base_url
        settings, restored = request.settings, request.history.restored
        earlier = request.history.earlier.values()
        limits = {"model": settings.model, "max_tokens": max_tokens(request)}
        if request.in_place is not None:
            asked = with_objection(
                instructions_in_place(settings, restored, earlier=earlier), request
            )
            return limits | in_place_anthropic(request.in_place, sound(asked))
        parts = reduced(recorded_parts(request.history, settings), _room(settings), request.counter)
        content = with_objection(transcript(parts), request)
        return limits | {
            "system": sound(instructions(settings, restored, earlier=earlier)),
            "messages": [{"role": "user", "content": sound(content)}],
        }

    def _create(self, client: HostObject, asked: dict[str, Any]) -> HostObject:
        return client.messages.create(**asked)

    def _text(self, answer: object, request: SummaryRequest) -> str:
        blocks, stopped = getattr(answer, "content", None), getattr(answer, "stop_reason", None)
        if not isinstance(blocks, list):
            raise SummaryError("the provider's answer is no message")
        tools = [block for block in blocks if getattr(block, "type", None) == "tool_use"]
        if tools or stopped == "tool_use":
            raise called(getattr(next(iter(tools), None), "name", None))
        texts = (getattr(block, "text", None) for block in blocks)
        text = "\n\n".join(text for text in texts if isinstance(text, str))
        if stopped in _FINISHED or (stopped == "max_tokens" and is_taken_cut_off(text, request)):
            return text
        raise _unfinished(stopped, request)


def _unfinished(stopped: object, request: SummaryRequest) -> SummaryError:
    """Return the error for an answer that its model did not finish.

    The same request would be refused, or not fit, once more.
    """
    match stopped:
        case "max_tokens":
            return cut_off(request)
        case "refusal":
            return refused()
        case "model_context_window_exceeded":
            why = "the conversation is larger than the model's window"
            return SummaryError(why, answered=True, is_final=True)
    return SummaryError(f"the model stopped for {stopped!r}", answered=True)


def _room(settings: Summary) -> int:
    """Return how many tokens, as they are counted here, the conversation may have."""
    numbers = re.findall(r"(?<!\d)\d{1,2}(?!\d)", settings.model)
    version = tuple(map(int, numbers[:2]))
    is_large = version >= _LARGE_FROM and any(name in settings.model for name in _LARGE_FAMILIES)
    window, most = _LARGE_WINDOW if is_large else _WINDOW, settings.max_input
    tokens = most.of(window) if isinstance(most, Share) else min(most, window)
    is_older = "claude" in settings.model and () < version < _DENSER_FROM
    return int(tokens / (_TOKENS_PER_COUNTED_BEFORE if is_older else _TOKENS_PER_COUNTED))
