"""`OpenAISummarizer`: the summary by a model of OpenAI or of an endpoint compatible with it."""

from typing import Any, ClassVar
from urllib.parse import urlsplit

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
from policyctx.messages.editing import in_place_chat
from policyctx.policy.models.compaction import Summary
from policyctx.policy.values import Share
from policyctx.pricing.rows import row_of

# The window of a model that has no row, and the tokens of its own for each that is counted here.
_WINDOW, _TOKENS_PER_COUNTED = 128_000, 1.25
# OpenAI's own models take the limit under this name; most compatible endpoints know the older one.
_OWN_HOSTS, _OWN_LIMIT, _LIMIT = ("openai.com", "azure.com"), "max_completion_tokens", "max_tokens"


class OpenAISummarizer(SdkSummarizer):
    """A `Summarizer` that asks a model through the chat completions endpoint.

    `client` is the caller's `openai.OpenAI` or `openai.AsyncOpenAI`, or another client of that SDK.
    A conversation over `max_input` of the model's window (128,000 tokens if the model is not known)
    is shortened first: see `reduced`. Pinned texts are set under the model's summary to the letter.
    """

    package: ClassVar[str] = "openai"
    clients: ClassVar[tuple[str, str]] = ("OpenAI", "AsyncOpenAI")
    key_variable: ClassVar[str] = "OPENAI_API_KEY"

    def _asked(self, request: SummaryRequest, base_url: str) -> dict[str, Any]:
        settings, restored = request.settings, request.history.restored
        earlier = request.history.earlier.values()
        limits = {"model": settings.model, _limit_at(base_url): max_tokens(request)}
        if request.in_place is not None:
            asked = with_objection(
                instructions_in_place(settings, restored, earlier=earlier), request
            )
            return limits | in_place_chat(request.in_place, sound(asked))
        parts = reduced(recorded_parts(request.history, settings), _room(settings), request.counter)
        content = with_objection(transcript(parts), request)
        return limits | {
            "messages": [
                {
                    "role": "system",
                    "content": sound(instructions(settings, restored, earlier=earlier)),
                },
                {"role": "user", "content": sound(content)},
            ],
        }

    def _create(self, client: HostObject, asked: dict[str, Any]) -> HostObject:
        return client.chat.completions.create(**asked)

    def _text(self, answer: object, request: SummaryRequest) -> str:
        choices = getattr(answer, "choices", None)
        choice = choices[0] if isinstance(choices, list) and choices else None
        message = getattr(choice, "message", None)
        if message is None:
            raise SummaryError("the provider's answer is no message")
        if refusal := getattr(message, "refusal", None):
            raise refused(str(refusal))
        if calls := getattr(message, "tool_calls", None):
            raise called(getattr(getattr(calls[0], "function", None), "name", None))
        text = str(getattr(message, "content", None) or "")
        match stopped := getattr(choice, "finish_reason", None):
            case "stop":
                return text
            case "length" if is_taken_cut_off(text, request):
                return text
            case "length":
                raise cut_off(request)
            case "content_filter":
                raise refused()
        raise SummaryError(f"the model stopped for {stopped!r}", answered=True)


def _limit_at(base_url: str) -> str:
    """Return the name of the limit of the answer's tokens at an endpoint."""
    host = urlsplit(base_url).hostname or ""
    return _OWN_LIMIT if host.endswith(_OWN_HOSTS) else _LIMIT


def _room(settings: Summary) -> int:
    """Return how many tokens, as they are counted here, the conversation may have."""
    row = row_of(settings.model)
    window = _WINDOW if row is None else row.context_window
    most = settings.max_input
    tokens = most.of(window) if isinstance(most, Share) else min(most, window)
    return int(tokens / _TOKENS_PER_COUNTED)
