"""`Usage`: what a provider billed for one response, whichever provider it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from policyctx.errors import UsageError

MOST_TOKENS = 10**12
"""The largest number of tokens that is taken for one; no context window comes near it."""


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens of one model call. Every token of the prompt is in exactly one of the first three.

    `input` was neither read from the prompt cache nor written to it.
    """

    input: int
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0

    @property
    def prompt(self) -> int:
        """Tokens of the whole prompt: system, tools and messages."""
        return self.input + self.cache_read + self.cache_write


def usage_of(usage: object) -> Usage:
    """Read a response's `usage`, a map or an object of the provider's SDK.

    Takes the shapes of the Anthropic Messages API, whose `input_tokens` leave the cached out, and
    of OpenAI's Chat Completions and Responses, whose prompt holds them. Raises `UsageError` for
    anything else, a `Usage` comes back as it is.
    """
    if isinstance(usage, Usage):
        return usage
    fields = _fields(usage)
    if "prompt_tokens" in fields:
        cached = _cached(fields.get("prompt_tokens_details"))
        return _with_cached_inside(fields, "prompt_tokens", "completion_tokens", cached)
    if "input_tokens_details" in fields:
        cached = _cached(fields["input_tokens_details"])
        return _with_cached_inside(fields, "input_tokens", "output_tokens", cached)
    if "input_tokens" in fields:
        return Usage(
            _tokens(fields, "input_tokens"),
            _tokens(fields, "cache_read_input_tokens"),
            _tokens(fields, "cache_creation_input_tokens"),
            _tokens(fields, "output_tokens"),
        )
    raise UsageError(
        "expected a response's `usage` with `input_tokens` or `prompt_tokens`, got "
        + (f"the keys {', '.join(map(repr, fields))}" if fields else type(usage).__name__)
    )


def _with_cached_inside(fields: Mapping[str, Any], prompt: str, output: str, cached: int) -> Usage:
    whole = _tokens(fields, prompt)
    cached = min(cached, whole)
    return Usage(whole - cached, cached, 0, _tokens(fields, output))


def _fields(usage: object) -> Mapping[str, Any]:
    if type(usage) is dict or isinstance(usage, Mapping):  # the first test is the quick one
        return usage
    dump = getattr(usage, "model_dump", None)
    fields = dump() if callable(dump) else None
    return fields if isinstance(fields, Mapping) else {}


def _cached(details: object) -> int:
    fields = _fields(details)
    return _tokens(fields, "cached_tokens") if fields else 0


def _tokens(fields: Mapping[str, Any], key: str) -> int:
    """Return a number of tokens; what is missing or null is none."""
    value = fields.get(key)
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise UsageError(f"`{key}` is no number of tokens: {value!r}")
    if value > MOST_TOKENS:
        raise UsageError(f"`{key}` is above {MOST_TOKENS:,} tokens")
    return value
