"""`Usage`: what a provider billed for one response, and the correction of counts learnt from it.

A provider's prompt contains what the messages do not show (system prompt, tool schemas, hidden
thinking) and is counted with the provider's own tokenizer. So billed = scale * counted + overhead:
the overhead is set by each response so that the line passes through it, and the scale is learnt
from how both numbers changed between two responses.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, reduce
from operator import add, attrgetter
from typing import Any, NamedTuple, Self

from policyctx.errors import UsageError


class Summable:
    """A dataclass with slots, whose sum with another has the sums of its fields; at least two."""

    __slots__: tuple[str, ...] = ()

    def __add__(self, other: Self) -> Self:
        values = _values(self.__slots__)
        return type(self)(*map(add, values(self), values(other)))

    @classmethod
    def sum_of(cls, many: Iterable[Self]) -> Self:
        """Return the sum of many, from the first on, without an object for each sum between."""
        columns = zip(*map(_values(cls.__slots__), many), strict=True)
        # From Python 3.12 on, `sum` rounds floats otherwise than `+`.
        return cls(
            *(c[0].sum_of(c) if isinstance(c[0], Summable) else reduce(add, c) for c in columns)
        )


@cache
def _values(names: tuple[str, ...]) -> Callable[[object], tuple[Any, ...]]:
    return attrgetter(*names)


FIVE_MINUTES, HOUR = 300, 3600
"""The times for which something may be written to a prompt cache, in seconds."""
MOST_TOKENS = 10**12
"""The largest number of tokens that is taken for one; no context window comes near it."""
_HOUR, _MINUTES = "ephemeral_1h_input_tokens", "ephemeral_5m_input_tokens"
_STANDARD = {"", "auto", "default", "standard", "standard_only"}
_NAME = b'"usage"'
# Of a body, or of one event, that is read.
_MOST_BYTES = 2**23


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens of one model call. Every token of the prompt is in exactly one of the first three.

    `input` was neither read from the prompt cache nor written to it.
    """

    input: int
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    cache_write_1h: int | None = None
    """How many of `cache_write` were written for an hour, the others for five minutes.

    None where the provider does not say for how long, 0 where it says that nothing was written.
    """
    tier: str = field(default="", compare=False, kw_only=True)
    """`priority`, `batch` and the like, where the call was billed at other than standard prices."""

    @classmethod
    def of_whole(
        cls, whole: int, read: int, written: int, output: int, *, tells_writes: bool = False
    ) -> Usage:
        """Return the usage of a prompt whose tokens include those that the cache gave and took.

        With `tells_writes` the bill has a field for `written`, so 0 there says that none were.
        """
        read = min(read, whole)
        hour = 0 if tells_writes and not written else None
        written = min(written, whole - read)
        return cls(whole - read - written, read, written, output, hour)

    @property
    def write_ttl(self) -> int | None:
        """Seconds that the end of what was written stays cached; None if nobody knows.

        A request puts the longer times first, so of two the end has the shorter one.
        """
        if not self.cache_write or self.cache_write_1h is None:
            return None
        return HOUR if self.cache_write_1h >= self.cache_write else FIVE_MINUTES

    def __add__(self, other: Usage) -> Usage:
        wrote = [one for one in (self, other) if one.cache_write] or [self, other]
        hours = [one.cache_write_1h for one in wrote]
        return Usage(
            self.input + other.input,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.output + other.output,
            None if {*hours} == {None} else sum(hour or 0 for hour in hours),
        )

    @property
    def prompt(self) -> int:
        """Tokens of the whole prompt: system, tools and messages."""
        return self.input + self.cache_read + self.cache_write

    def as_record(self) -> dict[str, Any]:
        """Return the fields by which Anthropic's API has it; `usage_of` reads them back."""
        fields: dict[str, Any] = {
            "input_tokens": self.input,
            "cache_read_input_tokens": self.cache_read,
            "cache_creation_input_tokens": self.cache_write,
            "output_tokens": self.output,
        }
        if (hour := self.cache_write_1h) is not None:
            fields["cache_creation"] = {_HOUR: hour, _MINUTES: self.cache_write - hour}
        return fields | ({"service_tier": self.tier} if self.tier else {})


def tier_of(fields: Mapping[str, Any]) -> str:
    """Return the tier that a request, a response or its usage names, empty for a standard one."""
    named = (fields.get(key) for key in ("service_tier", "serviceTier", "speed"))
    return next((one for one in named if isinstance(one, str) and one not in _STANDARD), "")


def usage_of(usage: object) -> Usage:
    """Read a response's `usage`, a map or an object of the provider's SDK.

    Takes the shapes of the Anthropic Messages API, whose `input_tokens` leave the cached tokens
    out, and of OpenAI's Chat Completions and Responses, whose prompt includes them, and those that
    were written to the cache. Providers with OpenAI's API that name cached tokens in their own
    way, such as DeepSeek and Moonshot, are read too, and so are Bedrock's Converse API and Google's
    `usageMetadata`. A `Usage` is returned unchanged. Raises `UsageError` for anything else.
    """
    if isinstance(usage, Usage):
        return usage
    fields = _fields(usage)
    found = _counted(fields, usage)
    return replace(found, tier=tier) if (tier := tier_of(fields)) else found


def _counted(fields: Mapping[str, Any], usage: object) -> Usage:
    if "prompt_tokens" in fields:
        return _with_cached_inside(fields, ("prompt_tokens",), ("completion_tokens",))
    if "input_tokens_details" in fields:
        return _with_cached_inside(fields, ("input_tokens",), ("output_tokens",))
    if "input_tokens" in fields:
        return _with_cached_apart(fields)
    if "inputTokens" in fields:
        return _of_bedrock(fields)
    if "promptTokenCount" in fields or "prompt_token_count" in fields:
        snake = {_UPPER.sub(r"_\g<0>", key).lower(): value for key, value in fields.items()}
        prompt = ("prompt_token_count", "tool_use_prompt_token_count")
        return _with_cached_inside(
            snake, prompt, ("candidates_token_count", "thoughts_token_count")
        )
    raise UsageError(
        "expected a response's `usage` with `input_tokens` or `prompt_tokens`, got "
        + (f"the keys {', '.join(map(repr, fields))}" if fields else type(usage).__name__)
    )


def _with_cached_apart(fields: Mapping[str, Any]) -> Usage:
    """Return the usage of a prompt whose `input_tokens` leave the cached tokens out."""
    written = _tokens(fields, "cache_creation_input_tokens")
    return Usage(
        _tokens(fields, "input_tokens"),
        _tokens(fields, "cache_read_input_tokens"),
        written,
        _tokens(fields, "output_tokens"),
        _for_an_hour(fields, written),
    )


def _for_an_hour(fields: Mapping[str, Any], written: int) -> int | None:
    by_ttl = _fields(fields.get("cache_creation"))
    return min(written, _tokens(by_ttl, _HOUR)) if by_ttl.keys() & {_HOUR, _MINUTES} else None


# By the names that providers have for them, beside the prompt's tokens or in their details.
_READ = (
    "cached_tokens",  # OpenAI, Moonshot, xAI, Qwen, OpenRouter
    "prompt_cache_hit_tokens",  # DeepSeek
    "num_cached_tokens",  # Mistral
    "cached_content_token_count",  # Google
    "cache_read_input_tokens",  # Anthropic's models behind OpenAI's API
)
_WRITTEN = (
    "cache_write_tokens",
    "cache_creation_input_tokens",
    "cache_creation_tokens",
    "cache_write_input_tokens",  # Codex
)
_DETAILS = ("prompt_tokens_details", "prompt_token_details", "input_tokens_details")
_UPPER = re.compile("[A-Z]")


def _with_cached_inside(
    fields: Mapping[str, Any], prompt: tuple[str, ...], output: tuple[str, ...]
) -> Usage:
    """Return the usage of a prompt whose tokens include those that the cache gave and took."""
    whole = sum(_tokens(fields, key) for key in prompt)
    places = [*(_fields(fields.get(key)) for key in _DETAILS), fields]
    read, written = (
        next((n for at in places for key in keys if (n := _tokens(at, key))), 0)
        for keys in (_READ, _WRITTEN)
    )
    out = sum(_tokens(fields, key) for key in output)
    is_told = any(at.get(key) is not None for at in places for key in _WRITTEN)
    found = Usage.of_whole(whole, read, written, out, tells_writes=is_told)
    hour = _for_an_hour(fields, found.cache_write)
    return found if hour is None else replace(found, cache_write_1h=hour)


def _of_bedrock(fields: Mapping[str, Any]) -> Usage:
    """Return the usage of Bedrock's form; some clients count the cache in the input."""
    given, output = _tokens(fields, "inputTokens"), _tokens(fields, "outputTokens")
    read, written = (_tokens(fields, f"cache{what}InputTokens") for what in ("Read", "Write"))
    is_whole = given + output == fields.get("totalTokens")
    return (Usage.of_whole if is_whole else Usage)(given, read, written, output)


def _fields(usage: object) -> Mapping[str, Any]:
    if type(usage) is dict or isinstance(usage, Mapping):  # the first test is the quick one
        return usage
    dump = getattr(usage, "model_dump", None)
    fields = dump() if callable(dump) else None
    return fields if isinstance(fields, Mapping) else {}


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


# Until this many tokens have come and gone, the scale stays near 1.
_PRIOR_TOKENS = 2_000
# A step between two responses is outdone by later ones at this rate.
_MEMORY = 0.98
# No tokenizer is further from another; what is did not come from the counted text.
_LEAST_SCALE, _MOST_SCALE = 0.5, 4.0
# A response is out of line from this share of its prompt on, and the further from the last one the
# line was drawn, the later: by this share of the tokens between the two.
_OUT_OF_LINE = 0.2
_OUT_OF_SIGHT = 0.3


class Point(NamedTuple):
    """One response: what was counted for its prompt, and what was billed, in tokens."""

    counted: int
    billed: int


class Correction(NamedTuple):
    """A line from counted totals to billed ones; it corrects a list's total, never an item.

    A response far out of line, such as a side call under the same session or one after a
    compaction that nobody reported, is not believed until the next one agrees with it. A response
    without usage is simply missing: nothing depends on seeing them all.
    """

    scale: float = 1.0
    """Billed tokens for each counted one."""
    overhead: float = 0.0
    """Billed tokens beside the counted ones; negative when the prompt holds less than the list."""
    counted_squares: float = 0.0
    """What the scale was learnt from: decayed sums over the steps between responses."""
    billed_products: float = 0.0
    last: Point | None = None
    doubted: Point | None = None
    """A response that was out of line and waits for the next."""

    def corrected(self, counted: int) -> int:
        """Return what a list counted as so many tokens will be billed as."""
        return max(0, round(self.scale * counted + self.overhead))

    def observed(self, counted: int, usage: Usage, *, is_certain: bool = False) -> Correction:
        """Return the correction after a response whose prompt was counted as so many tokens.

        A usage without a prompt, as interrupted streams report it, teaches nothing; one that is
        certainly of this prompt is believed at once.
        """
        if usage.prompt == 0:
            return self
        point = Point(counted, usage.prompt)
        if self.last is None:
            return _through(point, self.scale, self.counted_squares, self.billed_products)
        if is_certain or self._is_in_line(self.last, point):
            return self._learnt(self.last, point)
        if self.doubted is None or not self._is_in_line(self.doubted, point):
            return self._replace(doubted=point)
        return self._learnt(self.doubted, point)

    def as_record(self) -> dict[str, Any]:
        """Return plain values for a JSON file; `correction_of` reads them back."""
        return {
            "scale": self.scale,
            "overhead": self.overhead,
            "counted_squares": self.counted_squares,
            "billed_products": self.billed_products,
            "last": None if self.last is None else self.last._asdict(),
            "doubted": None if self.doubted is None else self.doubted._asdict(),
        }

    def _is_in_line(self, before: Point, point: Point) -> bool:
        """Say whether a response is billed about as the line through the one before has it."""
        step = point.counted - before.counted
        residual = point.billed - before.billed - self.scale * step
        return abs(residual) <= _OUT_OF_LINE * point.billed + _OUT_OF_SIGHT * abs(step)

    def _learnt(self, before: Point, point: Point) -> Correction:
        """Learn the scale from the step to a response, the more the larger it is."""
        counted, billed = point.counted - before.counted, point.billed - before.billed
        if not _LEAST_SCALE <= (billed / counted if counted else 0) <= _MOST_SCALE:
            return _through(point, self.scale, self.counted_squares, self.billed_products)
        squares = self.counted_squares * _MEMORY + counted * counted
        products = self.billed_products * _MEMORY + counted * billed
        prior = _PRIOR_TOKENS**2
        return _through(point, (products + prior) / (squares + prior), squares, products)


def correction_of(record: Mapping[str, Any]) -> Correction:
    """Read what `as_record` wrote. Raises `UsageError` for what is no such record."""
    try:
        return Correction(
            float(record["scale"]),
            float(record["overhead"]),
            float(record["counted_squares"]),
            float(record["billed_products"]),
            _point(record["last"]),
            _point(record["doubted"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"no record of a correction: {error!r}") from error


def _point(record: Mapping[str, Any] | None) -> Point | None:
    return None if record is None else Point(int(record["counted"]), int(record["billed"]))


def _through(point: Point, scale: float, squares: float, products: float) -> Correction:
    """Return the line of this scale that goes through a response."""
    overhead = point.billed - scale * point.counted
    return Correction(scale, overhead, squares, products, last=point)


class BodyUsage:
    """The usage in one body, JSON or server-sent events, whose pieces are added in order."""

    def __init__(self, content_type: str) -> None:
        self._has_events = "text/event-stream" in content_type
        self._is_found = False
        self._left = bytearray()
        """What was not read yet: all of a JSON body, or the end of the events."""

    def after(self, piece: str | bytes) -> Usage | None:
        """Return the usage if the body shows it with this piece, None otherwise."""
        if self._is_found:
            return None
        raw = piece.encode() if isinstance(piece, str) else piece
        is_over = len(self._left) + len(raw) > _MOST_BYTES
        if is_over and not self._has_events:
            self._is_found = True  # nothing is kept of what is too large
            self._left.clear()
            return None
        if is_over:
            self._left.clear()
            raw = raw.partition(b"\n")[2][-_MOST_BYTES:]
        self._left += raw
        if not self._has_events or b"\n" not in raw:
            return None
        *lines, self._left = self._left.split(b"\n")
        events = (
            line.removeprefix(b"data:")
            for line in lines
            if line.startswith(b"data:") and _NAME in line
        )
        return next(filter(None, map(self._usage, events)), None)

    def at_end(self) -> Usage | None:
        """Return the usage if only the end of the body shows it, None otherwise."""
        return None if self._has_events or self._is_found else self._usage(self._left)

    def _usage(self, text: bytearray) -> Usage | None:
        """Return the usage of a prompt in a response, or in an event that has one inside."""
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return None
        if not isinstance(value, dict):
            return None
        for holder in (value, value.get("message"), value.get("response")):
            found = _of_prompt(holder) if isinstance(holder, dict) else None
            if found is not None:
                self._is_found = True
                return found
        return None


def _of_prompt(response: Mapping[str, Any]) -> Usage | None:
    """Return the usage of a prompt, None without one: the first events of a stream have none."""
    if not isinstance(usage := response.get("usage"), dict):
        return None
    try:
        found = usage_of({"service_tier": response.get("service_tier"), **usage})
    except UsageError:
        return None
    return found if found.prompt > 0 else None
