"""`Facts`: the inputs of a plan beside the messages and the policy; `Request`: those of a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from operator import is_
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from policyctx.definitions.items import FileLines, Item
from policyctx.errors import MessagesError
from policyctx.messages.json_text import compact_json
from policyctx.policy.models import Model
from policyctx.policy.models.compaction import Summary
from policyctx.policy.values import Share
from policyctx.pricing.dollars import CallPrices, prices_of
from policyctx.tokens.counter import TokenCounter
from policyctx.tokens.usage import Correction

if TYPE_CHECKING:
    from policyctx.pricing.rows import ModelRow

# Tokens, by who asks for a summary: the window of a model that is in no table.
ASSUMED_WINDOWS = {"anthropic": 200_000, "openai": 128_000}
Unit = Literal["tokens", "chars"]
# Items whose tokens are counted together.
_TOGETHER = 256
# A system prompt and tools, and those of another request of the session between two of them.
_MOST_PARTS = 4


def window_of(model: Model, called: str | None = None, *, at: float | None = None) -> int:
    """Return the tokens that the called model can see; `model` is the policy's.

    A window that the policy writes comes first. Otherwise it is that of the row of `called`, the
    name as a request or a recording spells it, or of the policy's `model.name` where no model is
    named. A model without a row has the default of `model.context_window`. `at` is as in `row_of`.
    """
    name = called or model.name
    if not name or "context_window" in model.model_fields_set:
        return model.context_window
    row = _row(name, at)
    return model.context_window if row is None else row.context_window


def has_unknown_window(model: Model, called: str | None) -> bool:
    """Return whether a model is named, by the policy or the call, whose window nobody knows."""
    name = called or model.name
    return (
        bool(name) and "context_window" not in model.model_fields_set and _row(name, None) is None
    )


def assumed_window(settings: Summary) -> int | None:
    """Return the tokens of the window that is assumed for the model of a summary.

    None where it is known, or where `max_input` does not depend on it.
    """
    assumed, most = ASSUMED_WINDOWS.get(settings.by), settings.max_input
    if assumed is None or (not isinstance(most, Share) and most <= assumed):
        return None
    is_known = "claude" in settings.model or _row(settings.model) is not None
    return None if is_known else assumed


def takes_markers_of(name: str | None) -> bool | None:
    """Return whether the provider of a model takes `cache_control` markers, None if unknown."""
    row = _row(name) if name else None
    return None if row is None else row.cache is not None and row.cache.kind == "anthropic"


@lru_cache(maxsize=256)  # a session names the same model in every call
def _row(name: str, at: float | None = None) -> ModelRow | None:
    from policyctx.pricing.rows import row_of  # noqa: PLC0415 - it reads the table of models

    return row_of(name, at=at)


class KnownParts:
    """The tokens of the system prompt and the tool schemas that were counted last.

    A part is known while it has the same objects. What is changed in place in one of them is not
    noticed; `forget` then.
    """

    def __init__(self) -> None:
        self._known: tuple[tuple[tuple[object, ...], int], ...] = ()

    def tokens(self, part: object, count: Callable[[object], int]) -> int:
        """Return the tokens of a part, counted unless they are known."""
        objects = (type(part), *part) if isinstance(part, list | tuple) else (part,)
        for known, tokens in self._known:
            if len(known) == len(objects) and all(map(is_, known, objects)):
                return tokens
        tokens = count(part)
        self._known = (*self._known, (objects, tokens))[-_MOST_PARTS:]
        return tokens

    def forget(self) -> None:
        """Count everything again."""
        self._known = ()


class Added(NamedTuple):
    """What a compaction writes into the list; tokens are as they are counted."""

    tokens: int = 0
    messages: int = 0
    turns: int = 0


class Attempt(NamedTuple):
    """A compaction that left the gate of its step open, or whose summary was refused as too large.

    It is not repeated until something has changed.
    """

    step: str
    policy: str
    """The digest of the policy."""
    made: int
    """Number of compactions that the session had made by then, this one included."""
    added: Added
    """What it wrote; of a refused summary its tokens alone."""
    is_refused: bool = False

    def record(self) -> dict[str, Any]:
        """Return the attempt as a record for the store."""
        named = self._asdict() | {"added": list(self.added)}
        return {"record": "over_gate", **named}


@dataclass(frozen=True)
class Facts:
    """Where a session's files go, how its tokens are counted, and how long it has been idle.

    `root` is an absolute path; `cwd` is the process's working directory, empty if it is unknown.
    `beside` contains the rest of the request, such as its system prompt and tool schemas.
    `token_scale` is provider tokens per counted token of text; the rules of `language_model` size
    images and documents; `correction` corrects the total of the list by the usage of earlier calls.
    `called_model` is the name of the model that is called, None if it is unknown; its window is
    that of `window_of`, in tokens, unless `context_window` replaces it.
    `cache_ttl` is the TTL of the session's last write to the prompt cache, in seconds, None before
    one is known. `idle` is the time since the last model call in seconds, None before the first.
    `read_tool` is the name of a tool with which the model can read a file of the store, empty if
    none is known.
    `sources` are the files that results were read from, by tool-use id, if the host of the agent
    reports them.
    """

    session_id: str
    root: str
    counter: TokenCounter
    beside: tuple[object, ...] = ()
    token_scale: float = 1.0
    language_model: str | None = None
    correction: Correction = field(default_factory=Correction)
    idle: float | None = None
    cwd: str = ""
    read_tool: str = ""
    context_window: int | None = None
    refused: int | None = None
    """Tokens of a prompt that was too long for the called model; its window is at most this."""
    called_model: str | None = None
    cache_ttl: int | None = None
    sources: Mapping[str, FileLines] = field(default_factory=dict)
    attempt: Attempt | None = None
    """The last compaction of the session, if it did not help."""
    parts: KnownParts = field(default_factory=KnownParts, compare=False, repr=False)
    """The parts of `beside` that earlier plans of the session have counted."""

    def words_like(self, other: Facts) -> bool:
        """Return whether placeholders have the same texts and sizes under these facts."""
        return self is other or (
            self.read_tool == other.read_tool
            and self.sources == other.sources
            and (self.session_id, self.root, self.cwd) == (other.session_id, other.root, other.cwd)
            and self.counter is other.counter
            and self.token_scale == other.token_scale
        )

    def window(self, model: Model) -> int:
        """Return the tokens that the model can see; `model` is the policy's."""
        known = self.context_window
        known = window_of(model, self.called_model) if known is None else known
        return known if self.refused is None else min(known, self.refused)

    def prices(self, model: Model) -> CallPrices | None:
        """Return the prices of the policy's `model`, else those of the model that is called."""
        if model.price is not None:
            return prices_of(model.price)
        row = _row(name) if (name := self.called_model or model.name) else None
        return None if row is None else row.prices

    def source(self, item: Item) -> FileLines | None:
        """Return the lines of a file that the item shows, None if the host reports none."""
        return None if item.tool_use_id is None else self.sources.get(item.tool_use_id)

    def size(self, item: Item, unit: Unit) -> int:
        """Return the item's own size."""
        if unit == "chars":
            return item.chars
        own = self._scaled(self.counter.count(item.counted))
        return own + self._of_media(item) if item.media else own

    def length(self, text: str, unit: Unit) -> int:
        """Return the size of a bare text."""
        return self._scaled(self.counter.count(text)) if unit == "tokens" else len(text)

    def tokens(self, item: Item) -> int:
        """Return what the item costs in the context, in tokens."""
        return self.size(item, "tokens")

    def tokens_of(self, items: Sequence[Item]) -> list[int]:
        """Return what each item costs; counting them together is faster than one by one."""
        counts: list[int] = []
        for first in range(0, len(items), _TOGETHER):  # so that not all texts are made at once
            some = items[first : first + _TOGETHER]
            counts += self.counter.count_many([item.counted for item in some])
        if self.token_scale != 1:
            counts = list(map(self._scaled, counts))
        pairs = zip(counts, items, strict=True)
        return [count + self._of_media(item) if item.media else count for count, item in pairs]

    def reaches(self, item: Item, amount: int, unit: Unit) -> bool:
        """Whether the item is this large; its tokens are counted only if its length is no proof."""
        if unit == "chars":
            return item.chars >= amount
        media = self._of_media(item) if item.media else 0
        least, most = self.counter.bounds(item.counted)
        if self.token_scale != 1:
            least, most = self._scaled(least), self._scaled(most)
        least, most = least + media, most + media
        return least >= amount or (most >= amount and self.tokens(item) >= amount)

    def tokens_around(self, count: int) -> int:
        """Return what so many messages cost beside their texts, in tokens."""
        each: int = getattr(self.counter, "per_message", 0)
        return self._scaled(each * count)

    @cached_property
    def tokens_beside(self) -> int:
        """Tokens of `beside`; raises `MessagesError` for a value that is not JSON."""
        return sum(map(partial(self.parts.tokens, count=self._tokens_of_part), self.beside))

    @property
    def chars_beside(self) -> int:
        """Characters of `beside`; raises `MessagesError` for a value that is not JSON."""
        return sum(len(_text(part)) for part in self.beside)

    def _tokens_of_part(self, part: object) -> int:
        return self.length(_text(part), "tokens")

    def _of_media(self, item: Item) -> int:
        """Return the tokens of the media of an item; these are provider tokens already."""
        from policyctx.tokens.sizes import medium_tokens  # noqa: PLC0415 - few items have media

        return sum(medium_tokens(m, self.counter, self.language_model) for m in item.media)

    def _scaled(self, count: int) -> int:
        return count if self.token_scale == 1 else round(count * self.token_scale)


def _text(part: object) -> str:
    try:
        return part if isinstance(part, str) else compact_json(part)
    except (RecursionError, TypeError, ValueError) as error:
        raise MessagesError(f"system or tools: not JSON: {error}") from error


@dataclass(frozen=True, slots=True)
class Request:
    """What is true of one model call beside its messages.

    `system` and `tools` are those of the request: they count towards its size, and where one of the
    tools reads offloaded files, new placeholders in the default wording name it. `model` is the
    model that is called, as the request spells its name; None for that of the session's last
    request, or the policy's `model.name` if none has named one. Gates and `until` see its window,
    200,000 tokens if it is not in the table of models. `window` is used in its place.

    `takes_markers` says whether the API takes `cache_control` markers. None if the caller does not
    know: then the model says it, else what the request has that only such an API takes.
    `reads_once` says whether a call that stands alone shares what it reads with the next one; the
    conversation of its plan then lacks the decisions of the plan.
    """

    system: object = None
    tools: object = None
    model: str | None = None
    window: int | None = None
    takes_markers: bool | None = None
    reads_once: bool = True

    @property
    def beside(self) -> tuple[object, ...]:
        """The parts that count towards the size of the request beside its messages."""
        return tuple(filter(None, (self.system, self.tools)))
