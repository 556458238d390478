"""`TokenCounter`: the number of tokens of a text, and counters that remember each text."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, Protocol, TypeAlias

from policyctx.definitions.items import RequestContent
from policyctx.definitions.tokenizers import TOKENIZERS, ByChars, CharRule
from policyctx.errors import UnknownTokenizerError, nearest
from policyctx.tokens.encoders import Measure, approximate, measure_for, pieces
from policyctx.tokens.sizes import ProviderModel, provider_model, request_tokens

# The longest token of o200k_base and of cl100k_base, in bytes.
LONGEST_TOKEN = 128
# Small, because the piece that does not fit is measured a dozen times.
_PIECE_CHARS = 4_096
_ENCODED_CHARS = 1 << 16
# Of a counter that a caller gives, nothing is known of how many tokens a text can have.
_MOST_TOKENS = 1 << 62


class Bounds(NamedTuple):
    """The fewest and the most tokens that a text can have."""

    least: int
    most: int


def byte_bounds(text: str) -> Bounds:
    """Bound the count of any tokenizer over bytes whose tokens are published.

    A token is at least one byte and at most 128; in UTF-8 a character is one byte or more.
    """
    size = utf8_bytes(text)
    return Bounds(-(-size // LONGEST_TOKEN), size)


def reaches(counter: "TokenCounter", text: str, tokens: int) -> bool:
    """Say whether `text` has at least so many tokens, counting only where the bounds do not tell.

    Prefer it to `count(text) >= tokens` where the count itself is not shown.
    """
    least, most = counter.bounds(text)
    return least >= tokens or (most >= tokens and counter.count(text) >= tokens)


def utf8_bytes(text: str) -> int:
    """Return the length in UTF-8, in bytes; a lone surrogate takes three, as U+FFFD does."""
    if text.isascii():
        return len(text)
    # In pieces, so that no long text is copied as a whole.
    cuts = range(0, len(text), _ENCODED_CHARS)
    return sum(len(text[at : at + _ENCODED_CHARS].encode("utf-8", "surrogatepass")) for at in cuts)


def truncated(text: str, tokens: int, measure: Measure, *, end: bool = False) -> str:
    """Return as much of the start of `text`, or of its end, as has at most so many tokens.

    It never has more, and is `text` itself where that fits. Where a further character would close
    a token again, a little more can fit; that is not looked for.
    """
    tokens = max(tokens, 0)
    # A text that cannot fit is not counted as a whole.
    if len(text) <= tokens * LONGEST_TOKEN and measure([text])[0] <= tokens:
        return text
    allowed = tokens
    while True:
        cut = _cut(text, allowed, measure, end=end)
        excess = measure([cut])[0] - tokens
        if excess <= 0:
            return cut
        # A long run without a break is parted elsewhere when it begins elsewhere.
        allowed -= excess


def _cut(text: str, tokens: int, measure: Measure, *, end: bool) -> str:
    """Take whole pieces while they fit, and of the next one what still does."""
    parts = list(pieces(text, _PIECE_CHARS))
    taken = 0
    for part in reversed(parts) if end else parts:
        used = measure([part])[0]
        if used > tokens:
            taken += _fitting(part, tokens, measure, end=end)
            break
        tokens -= used
        taken += len(part)
    return _part(text, taken, end=end)


def _fitting(piece: str, tokens: int, measure: Measure, *, end: bool) -> int:
    """Find, by halving, how many characters of a piece fit that is too large as a whole."""
    fits, too_many = 0, len(piece)
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        if measure([_part(piece, middle, end=end)])[0] <= tokens:
            fits = middle
        else:
            too_many = middle
    return fits


def _part(text: str, chars: int, *, end: bool) -> str:
    return text[len(text) - chars :] if end else text[:chars]


MEMO_BYTES = 64 * 1024 * 1024

# What an entry takes beside its text's characters: the string's head, the count, the links.
_ENTRY_BYTES = 200
# CPython takes 1, 2 or 4 bytes for each character of a text; only the first is known at once.
_WIDE_CHAR_BYTES = 4
# A longer text is known by its hash and its length, so that it need not stay in memory.
_HELD_CHARS = 1_000
_Key: TypeAlias = "str | tuple[int, int]"


class MemoStats(NamedTuple):
    """What a counter has been asked since it was made, and what it holds now.

    `hits` are the counts answered from memory, `misses` the texts that were measured. `held_bytes`
    is the memory of what is remembered, a non-ASCII character taken for 4 bytes. `estimated` are
    the misses counted locally though the policy asks for the provider's count, and `problem` says
    what kept the last of them from it.
    """

    hits: int = 0
    misses: int = 0
    held_bytes: int = 0
    estimated: int = 0
    problem: str = ""


class MemoCounter:
    """A `TokenCounter` over a `measure`, with the counts of the texts seen last in memory.

    What was not asked for longest is forgotten first, so that no more than `memo_bytes` are held.
    One counter serves all threads.
    """

    def __init__(
        self,
        measure: Measure,
        *,
        bounds: Callable[[str], Bounds] = byte_bounds,
        memo_bytes: int = MEMO_BYTES,
        per_message: int = 0,
    ) -> None:
        self.per_message = per_message
        """Tokens that each message of a list adds."""
        self._measure, self._bounds, self._memo_bytes = measure, bounds, memo_bytes
        self.shared_as: Callable[[], object] | None = None
        """Returns the process's counter, where this is it."""
        self._memo: OrderedDict[_Key, int] = OrderedDict()
        self._using = threading.Lock()
        self._hits = self._misses = self._held = 0

    def __reduce__(self) -> tuple[Callable[[], object], tuple[()]]:
        """Copy and pickle a counter of the process as that: another process uses its own."""
        if self.shared_as is None:
            raise TypeError("a token counter that the process does not share cannot be copied")
        return self.shared_as, ()

    def count(self, text: str) -> int:
        """Return the number of tokens of `text`; see `TokenCounter`."""
        key = _key(text)
        with self._using:
            known = self._memo.get(key)
            if known is not None:
                self._memo.move_to_end(key)
                self._hits += 1
                return known
        return self._measured([text])[text]

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text; new ones are measured together."""
        keys = list(map(_key, texts))
        with self._using:
            counts = list(map(self._memo.get, keys))
            if None not in counts:
                for key in keys:
                    self._memo.move_to_end(key)
                self._hits += len(texts)
                return counts  # type: ignore[return-value]
        new = self._measured([t for t, n in zip(texts, counts, strict=True) if n is None])
        with self._using:
            self._hits += len(texts) - len(new)
        return [new[t] if n is None else n for t, n in zip(texts, counts, strict=True)]

    def bounds(self, text: str) -> Bounds:
        """Return what `count` cannot be below nor above, without counting."""
        return self._bounds(text)

    def truncate(self, text: str, tokens: int, *, end: bool = False) -> str:
        """Return the start of `text`, or its end, in at most so many tokens."""
        return truncated(text, tokens, self._measure, end=end)

    def count_request(
        self, content: RequestContent, tools: object = None, *, model: ProviderModel | None = None
    ) -> int:
        """Return the tokens of a whole request; see `TokenCounter`."""
        return request_tokens(
            self, content.pieces, tools, model or provider_model(content.provider)
        )

    @property
    def stats(self) -> MemoStats:
        """What was asked and what is held, at this moment."""
        with self._using:
            return MemoStats(self._hits, self._misses, self._held)

    def _measured(self, texts: Sequence[str]) -> dict[str, int]:
        """Measure the texts, each once, outside the lock, and remember them."""
        new = list(dict.fromkeys(texts))
        counts = dict(zip(new, self._measure(new), strict=True))
        with self._using:
            self._misses += len(new)
            for text, tokens in counts.items():
                self._remember(text, tokens)
        return counts

    def _remember(self, text: str, tokens: int) -> None:
        key = _key(text)
        size = _held_bytes(key)
        if key in self._memo or size > self._memo_bytes:
            return
        self._memo[key] = tokens
        self._held += size
        while self._held > self._memo_bytes:
            oldest, _ = self._memo.popitem(last=False)
            self._held -= _held_bytes(oldest)


def _key(text: str) -> _Key:
    return text if len(text) <= _HELD_CHARS else (hash(text), len(text))


def _held_bytes(key: _Key) -> int:
    """Return the same for equal texts, however they are stored."""
    if isinstance(key, tuple):
        return _ENTRY_BYTES
    return _ENTRY_BYTES + len(key) * (1 if key.isascii() else _WIDE_CHAR_BYTES)


class CharCounter(MemoCounter):
    """A counter by the number of characters alone."""

    def __init__(self, rule: CharRule) -> None:
        super().__init__(
            lambda texts: [rule.tokens(len(text)) for text in texts],
            bounds=lambda text: Bounds(rule.tokens(len(text)), rule.tokens(len(text))),
            per_message=rule.per_message,
        )
        self._rule = rule

    def truncate(self, text: str, tokens: int, *, end: bool = False) -> str:
        """Return the start of `text`, or its end, in at most so many tokens."""
        most = self._rule.chars(max(tokens, 0))
        return text if len(text) <= most else _part(text, max(most, 0), end=end)


class TokenCounter(Protocol):
    """Counts the tokens of texts and requests.

    Takes any text whatever and never hangs; the same text has the same count while the counter
    remembers it. Only a damaged installation raises: `VocabularyError`, at the first count.

    A counter of the caller's may have a number `per_message`: the tokens that each message of the
    list adds beside its texts.
    """

    def count(self, text: str) -> int:
        """Return the number of tokens of `text`, 0 or more."""

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text; quicker than one by one."""

    def bounds(self, text: str) -> Bounds:
        """Return what `count` cannot be below nor above, without counting."""

    def truncate(self, text: str, tokens: int, *, end: bool = False) -> str:
        """Return as much of the start of `text`, or of its end, as has at most so many tokens."""

    def count_request(
        self, content: RequestContent, tools: object = None, *, model: ProviderModel | None = None
    ) -> int:
        """Return the tokens of a whole request, with what the provider's API adds to its texts.

        `tools` are the schemas of the available tools. `model` has the API's constants; by default
        they are those of the provider in whose shape the messages are.
        """

    @property
    def stats(self) -> MemoStats:
        """What was asked and what is held, at this moment."""


def register_tokenizer(name: str, counter: TokenCounter | Callable[[str], int]) -> None:
    """Let a policy's `model.tokenizer` name this counter, in this process.

    A callable takes a text and returns its number of tokens. A name that is taken, a shipped one
    too, is taken over.
    """
    with _making:
        _registered[name] = counter_of(counter)


def counter_of(given: TokenCounter | Callable[[str], int]) -> TokenCounter:
    """Return a counter for one, or for a callable that `register_tokenizer` would take."""
    if not callable(given):
        return given

    def measured(texts: Sequence[str]) -> list[int]:
        return [given(text) for text in texts]

    return MemoCounter(measured, bounds=lambda _: Bounds(0, _MOST_TOKENS))


def counter_for(tokenizer: str | ByChars, *, language_model: str | None = None) -> TokenCounter:
    """Return the process's counter for a `model.tokenizer`, which holds its memo.

    `language_model` is whose count `anthropic` asks for; to the others it is nothing. Nothing is
    loaded until the first count. Raises `MissingExtraError` for `anthropic` without the package
    of that name, and `UnknownTokenizerError` for a name that is neither shipped nor registered.
    """
    if isinstance(tokenizer, str):
        with _making:
            if tokenizer in _registered:
                return _registered[tokenizer]
        if tokenizer not in TOKENIZERS:
            raise _unknown(tokenizer)
        is_remote = TOKENIZERS[tokenizer].is_remote
        key: tuple[str | CharRule, str | None] = (tokenizer, language_model if is_remote else None)
    else:
        key = CharRule.of(tokenizer), None
    with _making:
        if key not in _counters:
            counter = new_counter(key[0], language_model=language_model)
            counter.shared_as = partial(counter_for, tokenizer, language_model=key[1])
            _counters[key] = counter
        return _counters[key]


def _unknown(name: str) -> UnknownTokenizerError:
    known = sorted({*TOKENIZERS, *_registered})
    return UnknownTokenizerError(name, known, nearest(name, known))


def new_counter(
    tokenizer: str | CharRule, *, language_model: str | None = None, fast: bool | None = None
) -> MemoCounter:
    """Return a counter that shares nothing with any other; see `measure_for` for `fast`."""
    if not isinstance(tokenizer, str):
        return CharCounter(tokenizer)
    if TOKENIZERS[tokenizer].is_remote:
        from policyctx.tokens.anthropic_api import AnthropicCounter  # noqa: PLC0415 - an extra

        return AnthropicCounter(language_model=language_model)
    measure = measure_for(tokenizer, fast=fast)
    bounds = _exact_bounds if measure is approximate else byte_bounds
    return MemoCounter(measure, bounds=bounds)


def _exact_bounds(text: str) -> Bounds:
    (tokens,) = approximate([text])
    return Bounds(tokens, tokens)


_counters: dict[tuple[str | CharRule, str | None], TokenCounter] = {}
_registered: dict[str, TokenCounter] = {}
_making = threading.Lock()
