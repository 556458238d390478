"""`ModelRow`: the prices of a language model at one time, its window and the rules of its cache.

Prices and most windows are those of the package genai-prices (MIT), which collects what the
providers publish and needs no network; it is imported with the first row, in about 0.2 s. What it
lacks is here, with its source: how each prompt cache works, and some windows.
"""

import re
from calendar import timegm
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cache, lru_cache
from importlib.metadata import version
from typing import Literal, NamedTuple, TypeAlias

from policyctx.definitions.items import HostObject
from policyctx.pricing.dollars import CallPrices, Rates

CacheKind: TypeAlias = Literal["anthropic", "breakpoints", "prefix"]
_LONG = 1_000_000
_BEDROCK = re.compile(r"^(?:(?P<region>[a-z-]+)\.)?anthropic\.(?P<model>claude.*)$")
_VERSION = re.compile(r"(-v\d+)?(:\d+)?$")
_DATES = re.compile(r"(-\d{8}|-\d{4}-\d{2}-\d{2}|-\d{2}-\d{2,4})$")
_LATEST = re.compile(r"-latest$")
# A window or a way to think that is asked for in the name, at the model's own price.
_WAYS = re.compile(r"(\[1m\]|:thinking|:beta|:extended)$")
# What a price is published for beside the standard one; a route or a kind of search is none.
_TIER_KEYS = frozenset({"service_tier", "speed", "processing"})
_HALF_A_DAY = 12
_FREE = CallPrices(Rates(0, 0, 0, 0, 0))


class CacheRules(NamedTuple):
    """The rules of a prompt cache; sizes in tokens of the provider, times in seconds."""

    kind: CacheKind
    """`anthropic`: an entry for each breakpoint of a completed request, found by walking back from
    the breakpoints of a later one. `breakpoints`: a prefix matches at breakpoints only. `prefix`:
    the longest common prefix in whole steps, without breakpoints."""
    min_tokens: int
    """A shorter prefix is not cached."""
    ttl: int = 300
    """How long an entry lives after its last use, where a request says nothing else."""
    step: int = 1
    """`prefix` only: a match is a multiple of this."""
    lookback: int = 20
    """`anthropic` only: the positions that a read tries at each breakpoint, itself included. A run
    of `tool_use` blocks or of `tool_result` blocks is one position."""
    most_breakpoints: int = 4
    """A request may have no more."""
    bills_writes: bool = True
    """Whether a write has a price of its own; otherwise it is billed as input."""


class ModelRow(NamedTuple):
    """One language model, as it was sold in one period."""

    name: str
    """As its provider spells it, without a date."""
    provider: str
    sources: tuple[str, ...]
    """The pages on which the provider publishes the figures."""
    context_window: int
    """In tokens."""
    cache: CacheRules | None
    """None where nothing is sold at a lower price because it is cached."""
    prices: CallPrices
    since: str = ""
    """The first day of the period, `2026-03-13`; empty where no earlier price is known."""
    until: str = ""
    """The day on which the next period begins; empty for the one in force."""
    tiers: tuple[tuple[str, str, CallPrices], ...] = ()
    """Service tiers, the first day on which their prices are known, and these."""

    def billed(self, tier: str, *, at: float | None = None) -> tuple[CallPrices, bool]:
        """Return the prices of a call at a service tier, empty for the standard one.

        The second value says that nobody publishes those of that time, and the standard ones
        stand in.
        """
        at = _now() if at is None else at
        known = (p for name, since, p in self.tiers if name == tier and _seconds(since) <= at)
        of_tier = next(known, None)
        return of_tier or self.prices, bool(tier) and of_tier is None


_ANTHROPIC_DOCS = "https://platform.claude.com/docs/en/build-with-claude/prompt-caching"
_OPENAI_DOCS = "https://developers.openai.com/api/docs/guides/prompt-caching"

# The pages that a provider names for its prices and its cache, and the prefixes under which a
# gateway sells its models at the same price.
_PROVIDERS: dict[str, HostObject] = {
    "anthropic": {
        "sources": ["https://platform.claude.com/docs/en/about-claude/pricing", _ANTHROPIC_DOCS],
        "hosts": ["anthropic", "openrouter", "vertex_ai", "vertex", "bedrock", "azure_ai"],
    },
    "aws": {
        "sources": ["https://aws.amazon.com/bedrock/pricing/", _ANTHROPIC_DOCS],
        "hosts": ["bedrock", "converse", "invoke"],
    },
    "openai": {
        "sources": ["https://developers.openai.com/api/docs/pricing", _OPENAI_DOCS],
        "hosts": ["openai", "openrouter", "azure"],
    },
    "google": {
        "sources": [
            "https://ai.google.dev/gemini-api/docs/pricing",
            "https://ai.google.dev/gemini-api/docs/caching",
        ],
        "hosts": ["google", "gemini", "vertex_ai", "openrouter", "models"],
    },
    "x-ai": {"sources": ["https://docs.x.ai/docs/models"], "hosts": ["x-ai", "xai", "openrouter"]},
    "zai": {"sources": ["https://docs.z.ai/guides/overview/pricing"], "hosts": ["zai", "z-ai"]},
    "deepseek": {
        "sources": ["https://api-docs.deepseek.com/quick_start/pricing"],
        "hosts": ["deepseek"],
    },
    "moonshotai": {
        "sources": ["https://platform.kimi.ai/docs/pricing/chat.md"],
        "hosts": ["moonshotai", "moonshot"],
    },
    "mistral": {"sources": ["https://mistral.ai/pricing/api"], "hosts": ["mistral", "mistralai"]},
    "openrouter": {
        "sources": ["https://openrouter.ai/models"],
        "hosts": ["openrouter", "meta-llama"],
    },
}

# Sizes and steps: the caching guides among the sources of each provider. Providers that publish
# neither are taken to match like OpenAI's older models, whose API they copy. OpenAI says "5 to 10
# minutes", and recorded bills of OpenAI's and Z.ai's models fit 10 and more.
_CACHES = {
    **{f"claude-{n}": CacheRules("anthropic", n) for n in (512, 1024, 2048, 4096)},
    "openai-prefix": CacheRules("prefix", 1024, 600, 128, bills_writes=False),
    "openai-breakpoints": CacheRules("breakpoints", 1024, 1800),
    "gemini-1024": CacheRules("prefix", 1024, bills_writes=False),
    "gemini-4096": CacheRules("prefix", 4096, bills_writes=False),
    "prefix-64": CacheRules("prefix", 64, 3600, 64, bills_writes=False),
    "prefix-128": CacheRules("prefix", 1024, 600, 128, bills_writes=False),
    "prefix-billed": CacheRules("prefix", 1024, step=128),
}

# The first pattern that is found in a model's name decides. For Opus 5.5, Sonnet 5.5, Haiku 5.5 and
# the later Fables no page was at hand; they are taken to have the minimum of the model before.
_RULES: dict[str, tuple[tuple[str, str], ...]] = {
    "anthropic": (
        (r"(opus|fable|mythos)-5(-\d)?$", "claude-512"),
        (r"opus-4-7", "claude-2048"),
        (r"opus-4-[56]|haiku-[45]-5", "claude-4096"),
        (r"haiku", "claude-2048"),
        (r"", "claude-1024"),
    ),
    "openai": ((r"^gpt-(5\.[6-9]|[6-9])", "openai-breakpoints"), (r"", "openai-prefix")),
    "google": ((r"flash", "gemini-1024"), (r"", "gemini-4096")),
    "deepseek": ((r"", "prefix-64"),),
    "moonshotai": ((r"kimi-k[3-9]", "prefix-billed"), (r"", "prefix-128")),
}
_OTHERS = ((r"", "prefix-128"),)

# Windows that genai-prices leaves out: the providers' pages of models.
_WINDOWS = {
    "gemini-2.5-pro": 1_048_576, "gemini-3-pro-preview": 1_048_576,
    "gemini-3.1-pro-preview": 1_048_576, "gemini-2.5-flash-preview": 1_048_576,
    "GLM-4.5": 131_072, "GLM-4.5-Air": 131_072, "GLM-4.6": 200_000, "GLM-4.7": 200_000,
    "GLM-5": 200_000, "GLM-5.1": 200_000, "meta-llama/llama-4-maverick": 1_048_576,
    "meta-llama/llama-4-scout": 327_680, "meta-llama/llama-3.3-70b-instruct": 131_072,
    "mistral-large": 131_072, "mistral-medium-3-1": 131_072, "mistral-medium-latest": 131_072,
    "mistral-small-latest": 131_072, "devstral-small": 131_072, "kimi-k2": 131_072,
}  # fmt: skip
# Until that day a longer window was a beta that a request had to ask for.
_EARLIER_WINDOWS = {
    "claude-opus-4-6": ("2026-03-13", 200_000),
    "claude-sonnet-4-6": ("2026-03-13", 200_000),
}
_ALSO = {
    "claude-sonnet-4-0": ["claude-sonnet-4"],
    "gemini-2.5-pro": ["gemini-2.5-pro-preview"],
    "gemini-2.5-flash": ["gemini-2.5-flash-preview-09"],
    "kimi-k2-turbo-preview": ["kimi-k2-turbo-preview"],
}
_WANTED = {
    "anthropic": r"^claude-(?!2|v1)",
    "openai": (
        r"^(gpt-4o(-mini)?$|gpt-4o-2024-05-13|chatgpt-4o|gpt-4\.1|gpt-4-turbo|gpt-[5-9]|o\d|codex)"
    ),
    "google": r"^gemini-",
    "x-ai": r"^grok-(?!voice)",
    "zai": r"^GLM-(?!OCR)",
    "deepseek": r"",
    "moonshotai": r"^kimi",
    "mistral": r"^(mistral-(large|medium|small)-|mistral-large$|devstral|codestral|magistral)",
    "openrouter": r"^meta-llama/llama-(4|3\.3)[^:]*$",
}
_NOT_TEXT = re.compile(
    r"image|tts|live|audio|embed|search|deep-research|ocr|realtime|robot|comput", re.IGNORECASE
)
_DATED = re.compile(r"[-@](\d{8}|\d{4}-\d{2}-\d{2})$")


class _Known(NamedTuple):
    """The periods of one model, the oldest first, and where its name may come from."""

    names: tuple[str, ...]
    """As they are spelt, its own first."""
    hosts: frozenset[str]
    rows: tuple[ModelRow, ...]

    def row(self, at: float | None) -> ModelRow:
        at = _now() if at is None else at
        return next(row for row in self.rows if not row.until or at < _seconds(row.until))


def row_of(name: str | None, *, at: float | None = None) -> ModelRow | None:
    """Return the row of a language model, as a request or a recording spells its name.

    `at` is a time in seconds since 1970, whose prices are wanted; without it they are today's.
    Prefixes of gateways (`openai/gpt-4o`, `us.anthropic.claude-…-v1:0`), dates
    (`-20250929`, `@20250929`, `-2025-08-07`) and upper case make no difference. None for a model
    that is not known, and for one that another host sells at a price of its own.
    """
    if not name:
        return None
    hosts, keys = _spelt(name)
    known = next((found for key in keys if (found := _table().get(key)) is not None), None)
    if known is None or not hosts <= known.hosts:
        return None
    row = known.row(at)
    is_long = "[1m]" in name.lower() and row.context_window < _LONG
    return row._replace(context_window=_LONG) if is_long else row


def prices_source() -> str:
    """Return where the prices are from, such as `genai-prices 0.2.3`."""
    return f"genai-prices {version('genai-prices')}"


def rows() -> tuple[ModelRow, ...]:
    """Return all rows, by provider, name and time."""
    return tuple(row for known in _models() for row in known.rows)


@lru_cache(maxsize=256)  # a client names the same model in every call
def _spelt(name: str) -> tuple[frozenset[str], list[str]]:
    """Return the hosts before a model's name, and the keys to look for, the most exact first."""
    *before, last = name.strip().lower().split("/")
    hosts = frozenset(one.lstrip("~") for one in before if not one.startswith("arn:aws:bedrock"))
    last = _WAYS.sub("", last)
    if found := _BEDROCK.match(last):
        bare = found["model"]
        last = bare if found["region"] == "global" else f"regional.anthropic.{bare}"
    whole = _key(last.partition("@")[0])
    keys = [whole]
    for pattern in (_VERSION, _DATES, _LATEST):
        if (shorter := pattern.sub("", keys[-1])) != keys[-1]:
            keys.append(shorter)
    return hosts, keys


def _key(name: str) -> str:
    return name.lower().replace(".", "-")


@cache
def _table() -> dict[str, _Known]:
    table: dict[str, _Known] = {}
    for known in _models():
        for name in known.names:
            table.setdefault(_key(name), known)
    return table


@cache
def _models() -> tuple[_Known, ...]:
    """Return the models that reply in text, sorted by provider and name."""
    from genai_prices.data import providers  # noqa: PLC0415 - it takes 0.2 s

    models = {one.id: one.models for one in providers}
    found = {
        known.names[0]: known
        for provider, wanted in _WANTED.items()
        for model in models.get(provider, ())
        if re.search(wanted, model.id) and not _NOT_TEXT.search(model.id)
        if (known := _known(provider, model)) is not None
    }
    for model in models["aws"]:
        if model.id.startswith("regional.anthropic."):
            _add_regional(model, found)
    return tuple(sorted(found.values(), key=lambda one: (one.rows[0].provider, one.names[0])))


def _known(provider: str, model: HostObject) -> _Known | None:
    window = model.context_window or _WINDOWS.get(model.id)
    if not window:
        return None
    name = model.id.removeprefix("meta-llama/").removesuffix("-latest").lower()
    also = {_bare(one) for one in [*_names(model.match), *_ALSO.get(model.id, [])]}
    rules = _RULES.get(provider, _OTHERS)
    cached = next(_CACHES[rule] for pattern, rule in rules if re.search(pattern, name))
    rows = _rows(ModelRow(name, provider, (), window, cached, _FREE), model)
    until, earlier = _EARLIER_WINDOWS.get(model.id, ("", 0))
    rows = [r._replace(context_window=earlier) if "" < r.until <= until else r for r in rows]
    hosts = frozenset(_PROVIDERS[provider]["hosts"])
    return _Known((name, *sorted(also - {name})), hosts, tuple(rows)) if rows else None


def _add_regional(model: HostObject, found: dict[str, _Known]) -> None:
    """Add a regional endpoint of Bedrock; one at the common price is another name of its model."""
    bare = _bare(re.sub(r"-v\d+(:\d+)?$", "", model.id.removeprefix("regional.anthropic.")))
    base = next((one for one in found.values() if _key(bare) in map(_key, one.names)), None)
    if base is None:
        return
    name, common = f"regional.anthropic.{bare}", base.rows[-1]
    rows = _rows(common._replace(name=name, provider="aws"), model)
    if rows[-1].prices.base.input == common.prices.base.input:
        found[base.names[0]] = base._replace(names=(*base.names, name))
    else:
        found[name] = _Known((name,), frozenset(_PROVIDERS["aws"]["hosts"]), tuple(rows))


def _rows(row: ModelRow, model: HostObject) -> list[ModelRow]:
    """Return a row for each period in which its price was another one."""
    published = model.prices
    prices: dict[str, tuple[CallPrices, HostObject]] = {}
    for one in published if isinstance(published, list) else [None]:
        start = getattr(one and one.constraint, "start_date", None)
        price = published if one is None else one.prices
        hours = None if one is None else _hours(one.constraint)
        # Of prices by the hour, the one of most hours of the day is taken.
        if price.input_mtok is not None and (hours is None or hours > _HALF_A_DAY):
            prices["" if start is None else start.isoformat()] = _prices(vars(price)), price
    periods = sorted((begins, *of_period) for begins, of_period in prices.items())
    first = [one for i, one in enumerate(periods) if not i or one[1] != periods[i - 1][1]]
    ends = [begins for begins, *_ in first[1:]]
    sources = tuple(_PROVIDERS[row.provider]["sources"])
    return [
        row._replace(
            sources=sources,
            prices=price,
            cache=row.cache if price.base.read < price.base.input else None,
            since=begins,
            until=end,
            tiers=tuple(_tiers(model, standard)),
        )
        for (begins, price, standard), end in zip(first, [*ends, ""], strict=False)
    ]


def _tiers(model: HostObject, standard: HostObject) -> Iterator[tuple[str, str, CallPrices]]:
    """Yield the service tiers of a model; what one does not price has the standard price."""
    for one in model.price_variants or ():
        own = {key: price for key, price in vars(one.prices).items() if price is not None}
        if own and len(one.when) == 1 and one.when.keys() <= _TIER_KEYS:
            start = getattr(one.constraint, "start_date", None)
            since = "1970-01-01" if start is None else start.isoformat()
            yield next(iter(one.when.values())), since, _prices(vars(standard) | own)


def _hours(constraint: HostObject) -> float | None:
    """Return for how many hours of a day a price is valid, None where it is for all of them."""
    start, end = (getattr(constraint, name, None) for name in ("start_time", "end_time"))
    if start is None or end is None:
        return None
    return float((end.hour - start.hour) % 24 + (end.minute - start.minute) / 60)


def _prices(published: Mapping[str, HostObject]) -> CallPrices:
    """Return all prices of one period; where nothing is cached apart it costs what input costs."""
    names = ("input", "cache_write", "cache_write_1h", "cache_read", "output")
    given = {name: published.get(f"{name}_mtok") for name in names}
    plain, write, hour, read, output = given.values()
    write = plain if write is None else write
    kinds = plain, write, write if hour is None else hour, plain if read is None else read, output
    sizes = sorted({tier.start for kind in kinds for tier in getattr(kind, "tiers", ())})
    at = [(size, Rates(*(_at(kind, size) for kind in kinds))) for size in [0, *sizes]]
    return CallPrices(at[0][1], tuple(at[1:]))


def _at(kind: HostObject, size: int) -> float:
    price = getattr(kind, "base", kind)
    for tier in getattr(kind, "tiers", ()):
        if tier.start <= size:
            price = tier.price
    return float(price or 0)


def _names(match: HostObject) -> Iterator[str]:
    """Yield the names that a model is found by, those without a number and open ones apart."""
    for one in getattr(match, "or_", None) or getattr(match, "and_", None) or ():
        yield from _names(one)
    for key in ("equals", "starts_with", "ends_with", "contains"):
        name = getattr(match, key, None) or ""
        is_open = name.endswith(("-", "@", "-2025"))
        if re.search(r"\d", name) and not is_open and not _NOT_TEXT.search(name):
            yield name


def _bare(name: str) -> str:
    name = name.rpartition("/")[2].lower().removesuffix("-latest")
    return name if name == "gpt-4o-2024-05-13" else _DATED.sub("", name)


@cache
def _now() -> float:
    return datetime.now(UTC).timestamp()


def _seconds(day: str) -> int:
    """Return when a day begins, in UTC, in seconds since 1970."""
    year, month, date = map(int, day.split("-"))
    return timegm((year, month, date, 0, 0, 0))
