"""How providers say that a prompt is too long for the model, and what they say of its size.

Each pattern is one wording of a provider or server; `tests/tokens/refusals.yaml` has a recorded
error for it. Numbers are tokens: `size` of the prompt, `total` of prompt and output, `output` what
was asked for beside it, `limit` of the model.
"""

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from policyctx.definitions.items import HostObject

_WORDINGS = (
    # Anthropic, also on Bedrock and Vertex.
    r"prompt is too long(?:: {size} tokens > {limit} maximum)?",
    r"input length and `max_tokens` exceed context limit: {size} \+ {output} > {limit}",
    # OpenAI and Azure, and what vLLM, DeepSeek, OpenRouter and others make of it.
    r"maximum context length is {limit} tokens.{{0,40}}?resulted in {size} tokens",
    r"maximum context length is {limit} tokens.{{0,40}}?requested {output} output tokens and your"
    r" prompt contains (?P<bound>at least) {size} input tokens",
    r"maximum context length is {limit} tokens.{{0,40}}?your request has {size} input tokens"
    r"(?: plus {output} 'max_tokens')?",
    r"maximum context length is {limit} tokens.{{0,40}}?requested (?:about )?{total} tokens"
    r"(?:[^)]{{0,120}}?{output} (?:in|for) the (?:completion|output))?",
    r"maximum context length(?: is {limit} tokens)?",
    r"exceeds? the (?:model's )?context window|context_length_exceeded",
    r"exceed the configured limit of {limit} tokens\. Your messages resulted in {size} tokens",
    # Bedrock.
    r"input is too long for requested model|too many total text bytes",
    # Gemini and Vertex.
    r"input token count \({size}\) exceeds the maximum number of tokens allowed \({limit}\)",
    r"input token count is {size} but model only supports up to {limit}",
    # Mistral, xAI, Moonshot, MiniMax, Copilot.
    r"prompt contains {size} tokens.{{0,80}}?too large for model with {limit} maximum context",
    r"maximum prompt length is {limit} but the request contains {size} tokens",
    r"exceeded model token limit: {limit}(?: \(requested: {size}\))?|context window exceeds limit",
    r"prompt token count of {size} exceeds the limit of {limit}",
    # llama.cpp, vLLM, SGLang, LM Studio, Ollama.
    r"exceeds the available context size|exceed_context_size_error",
    r"prompt \(length {size}\) is longer than the maximum model length of {limit}",
    r"length of prompt_tokens \({size}\) must be less than max_seq_len \({limit}\)",
    r"input length \({size} tokens\) exceeds the maximum allowed length \({limit} tokens\)",
    r"requested tokens \({size}\) exceed context window of {limit}",
    r"greater than the context length|exceeded max context length|exceeds the context length",
    # The classes of LiteLLM, Strands and LangChain.
    r"Context(?:Window)?(?:Exceeded|Overflow)(?:Error|Exception)",
)
_NAMES = ("size", "total", "output", "limit")
# Compiled by the first error.
_PATTERNS = [
    "(?is)" + one.format(**{name: rf"(?P<{name}>[\d,]+)" for name in _NAMES}) for one in _WORDINGS
]
# The fields of llama.cpp's error.
_FIELDS = {
    "size": re.compile(r'"n_prompt_tokens": ?(\d+)'),
    "limit": re.compile(r'"n_ctx": ?(\d+)'),
}
# A refusal because of who asks, or how often, may name tokens too.
_OTHER_STATUSES = frozenset({401, 402, 403, 404, 408, 409, 429})
_MOST_CHARS = 20_000


class Refusal(NamedTuple):
    """A prompt that a provider refused as too long; None for what it did not say."""

    size: int | None = None
    """Tokens of the prompt."""
    limit: int | None = None
    """Tokens that the prompt may have, beside the output that was asked for."""
    is_exact: bool = True
    """Whether `size` is all of the prompt, and no bound, and nothing else."""


def refusal_of(error: object) -> Refusal | None:
    """Return what a provider says of a prompt that is too long; None for any other error.

    `error` is what an SDK raised, or the body of a response: a text, bytes or JSON values.
    """
    for one in _chain(error):
        if getattr(one, "status_code", None) in _OTHER_STATUSES:
            return None
        texts = [_text(one), type(one).__name__]
        texts += [_text(part) for part in (getattr(one, "body", None), _response(one)) if part]
        found = [said for text in texts if (said := _said(text)) is not None]
        if found:
            return max(found, key=lambda said: (said.limit is not None) + (said.size is not None))
    return None


def _chain(error: object) -> Iterator[object]:
    """Yield an error, and those that it was raised from."""
    seen: list[object] = []
    while error is not None and len(seen) < 8:  # noqa: PLR2004 - a chain may be a circle
        seen.append(error)
        yield error
        error = getattr(error, "__cause__", None) or getattr(error, "__context__", None)


def _response(error: HostObject) -> object:
    """Return the error in a response of botocore."""
    found = getattr(error, "response", None)
    return found if isinstance(found, dict) else None


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value[:_MOST_CHARS].decode("utf-8", "replace")
    if isinstance(value, dict | list):
        return json.dumps(value, default=str)[:_MOST_CHARS]
    return str(value)[:_MOST_CHARS]


def _said(text: str) -> Refusal | None:
    found = [match.groupdict() for one in _PATTERNS if (match := re.search(one, text))]
    if not found:
        return None
    fullest = max(found, key=lambda groups: sum(value is not None for value in groups.values()))
    is_exact = not fullest.pop("bound", None)
    said = {name: int(value.replace(",", "")) for name, value in fullest.items() if value}
    for name, pattern in _FIELDS.items():
        if name not in said and (field := pattern.search(text)):
            said[name] = int(field[1])
    output = said.get("output", 0)
    size, limit = said.get("size"), said.get("limit")
    if size is None and "total" in said:
        size, is_exact = said["total"] - output, "output" in said
    if limit is not None and limit > output:
        limit -= output
    return Refusal(size, limit, is_exact)
