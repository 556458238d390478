"""`AnthropicCounter`: the count of Anthropic's API, or a local count if the API does not give one.

The SDK reads the key from its usual places (`ANTHROPIC_API_KEY` or a profile); this module does not
read, keep or show it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from policyctx.definitions.items import RequestContent
from policyctx.definitions.tokenizers import DEFAULT_TOKENIZER
from policyctx.errors import MissingExtraError
from policyctx.tokens import counter
from policyctx.tokens.encoders import measure_for
from policyctx.tokens.sizes import ProviderModel, schemas_of

if TYPE_CHECKING:
    import anthropic

# Counts differ only between generations of models, so one current model represents them.
LANGUAGE_MODEL = "claude-opus-4-8"

_FALLBACK = DEFAULT_TOKENIZER
_TIMEOUT_SECONDS = 10.0
_AT_ONCE = 8
# After a failure this many texts are counted locally before the next request, so that not each of
# them waits for a network that is down.
_PAUSE_TEXTS = 200
# A message of this text is one token more than an empty one, which the API does not take.
_SHORTEST = "x"
# Statuses that reject one request; the next one may succeed.
_REFUSALS = (400, 413, 422)


class AnthropicCounter(counter.MemoCounter):
    """A `TokenCounter` that asks the Anthropic API to count, each text once.

    `client` is an `anthropic.Anthropic`; by default one is made for the first count. A text that
    the API rejects (blank or too large), and every text while the API cannot be reached, is counted
    locally and keeps that count while it is remembered; `stats.estimated` and `stats.problem`
    report this. Raises `MissingExtraError` without the package `anthropic`.
    """

    def __init__(
        self, *, language_model: str | None = None, client: anthropic.Anthropic | None = None
    ) -> None:
        if find_spec("anthropic") is None:
            raise MissingExtraError("the tokenizer `anthropic`", extra="anthropic")
        super().__init__(self._counts, bounds=_bounds)
        self._local = measure_for(_FALLBACK)
        self._model = language_model or LANGUAGE_MODEL
        self._client = client
        self._around_text: int | None = None
        self._pause = self._estimated = 0
        self._problem = ""

    def count_request(
        self, content: RequestContent, tools: object = None, *, model: ProviderModel | None = None
    ) -> int:
        """Return the tokens of a whole request, asked for in one call.

        They are added up from the texts if the API does not answer, rejects the messages, or cannot
        take messages of such a shape.
        """
        if content.body is not None:
            request = {**content.body, "tools": list(schemas_of(tools))} if tools else content.body
            tokens = self._asked(request)
            if tokens is not None:
                return tokens
        return super().count_request(content, tools, model=model)

    def truncate(self, text: str, tokens: int, *, end: bool = False) -> str:
        """Return as much of the start of `text`, or of its end, as has at most so many tokens.

        It is cut by the local count and asked about, until the provider's count fits.
        """
        allowed = tokens
        while True:
            cut = counter.truncated(text, allowed, self._local, end=end)
            used = self.count(cut)
            if used <= max(tokens, 0):
                return cut
            allowed = min(allowed - 1, allowed * tokens // used)

    @property
    def stats(self) -> counter.MemoStats:
        """What was asked and what is held, at this moment."""
        return super().stats._replace(estimated=self._estimated, problem=self._problem)

    def _counts(self, texts: Sequence[str]) -> list[int]:
        """Ask for the first text alone, which tells whether there is anyone to ask."""
        first = [self._count(text) for text in texts[:1]]
        rest = texts[1:]
        if self._pause or len(rest) <= 1:
            return first + [self._count(text) for text in rest]
        with ThreadPoolExecutor(_AT_ONCE) as asking:
            return first + list(asking.map(self._count, rest))

    def _count(self, text: str) -> int:
        if not text:
            return 0
        tokens = self._asked_about(text) if text.strip() else None
        if tokens is None:
            with self._using:
                self._estimated += 1
            (tokens,) = self._local([text])
        return tokens

    def _asked_about(self, text: str) -> int | None:
        if self._around_text is None:
            one = self._asked(_request(_SHORTEST))
            if one is None:
                return None
            self._around_text = one - 1
        tokens = self._asked(_request(text))
        return None if tokens is None else max(1, tokens - self._around_text)

    def _asked(self, request: Mapping[str, Any]) -> int | None:
        """Return what the API counts, None when it does not; says why in `problem`."""
        with self._using:
            if self._pause:
                self._pause -= 1
                return None
        import anthropic  # noqa: PLC0415 - an extra, only when a count is needed

        try:
            if self._client is None:
                self._client = anthropic.Anthropic(timeout=_TIMEOUT_SECONDS, max_retries=1)
            counted = self._client.messages.count_tokens(model=self._model, **request)
        except anthropic.APIStatusError as error:
            refused = error.status_code in _REFUSALS
            self._failed(f"{type(error).__name__} {error.status_code}", lasts=not refused)
            return None
        # Without a key the SDK raises TypeError; what is no JSON, such as NaN, is a ValueError.
        except (anthropic.AnthropicError, TypeError, ValueError) as error:
            self._failed(type(error).__name__, lasts=True)
            return None
        return counted.input_tokens

    def _failed(self, problem: str, *, lasts: bool) -> None:
        with self._using:
            self._problem = problem
            if lasts:
                self._pause = _PAUSE_TEXTS


def _request(text: str) -> dict[str, Any]:
    sound = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return {"messages": [{"role": "user", "content": sound}]}


def _bounds(text: str) -> counter.Bounds:
    """The tokens are not published, but each is a byte or more."""
    return counter.Bounds(min(len(text), 1), counter.utf8_bytes(text))
