"""Write `policyctx/pricing/models.json` anew from the price data of the package genai-prices.

    pip install -e '.[dev]' && python scripts/prices.py --date 2026-11-23

genai-prices (https://github.com/pydantic/genai-prices, MIT) collects the prices that the providers
publish. The file takes over numbers, names and dates. This script holds what the package lacks,
with its source: how each prompt cache works, and windows that it leaves out. To update the file,
raise the version of genai-prices in `pyproject.toml`, which a test holds the file against. Read the
diff before you commit it, and compare each changed row with the page that it names as its source.
"""

# ruff: noqa: ANN401 - the objects of genai-prices are only looked at
from __future__ import annotations

import argparse
import json
import re
from datetime import date
from pathlib import Path
from typing import Any

OUT = Path(__file__).resolve().parent.parent / "policyctx" / "pricing" / "models.json"

ANTHROPIC_DOCS = "https://platform.claude.com/docs/en/build-with-claude/prompt-caching"
OPENAI_DOCS = "https://developers.openai.com/api/docs/guides/prompt-caching"

# The pages that a provider names for its prices and its cache, and the prefixes under which a
# gateway sells its models at the same price.
PROVIDERS: dict[str, dict[str, Any]] = {
    "anthropic": {
        "sources": [
            "https://platform.claude.com/docs/en/about-claude/pricing",
            ANTHROPIC_DOCS,
        ],
        "hosts": ["anthropic", "openrouter", "vertex_ai", "vertex", "bedrock", "azure_ai"],
    },
    "aws": {
        "sources": ["https://aws.amazon.com/bedrock/pricing/", ANTHROPIC_DOCS],
        "hosts": ["bedrock", "converse", "invoke"],
    },
    "openai": {
        "sources": ["https://developers.openai.com/api/docs/pricing", OPENAI_DOCS],
        "hosts": ["openai", "openrouter", "azure"],
    },
    "google": {
        "sources": [
            "https://ai.google.dev/gemini-api/docs/pricing",
            "https://ai.google.dev/gemini-api/docs/caching",
        ],
        "hosts": ["google", "gemini", "vertex_ai", "openrouter", "models"],
    },
    "x-ai": {
        "sources": ["https://docs.x.ai/docs/models"],
        "hosts": ["x-ai", "xai", "openrouter"],
    },
    "zai": {
        "sources": ["https://docs.z.ai/guides/overview/pricing"],
        "hosts": ["zai", "z-ai"],
    },
    "deepseek": {
        "sources": ["https://api-docs.deepseek.com/quick_start/pricing"],
        "hosts": ["deepseek"],
    },
    "moonshotai": {
        "sources": ["https://platform.kimi.ai/docs/pricing/chat.md"],
        "hosts": ["moonshotai", "moonshot"],
    },
    "mistral": {
        "sources": ["https://mistral.ai/pricing/api"],
        "hosts": ["mistral", "mistralai"],
    },
    "openrouter": {
        "sources": ["https://openrouter.ai/models"],
        "hosts": ["openrouter", "meta-llama"],
    },
}

_CLAUDE = {"kind": "anthropic", "ttl": 300, "lookback": 20, "most_breakpoints": 4}
# Sizes and steps: the caching guides among the sources of each provider. Providers that publish
# neither are taken to match like OpenAI's older models, whose API they copy. OpenAI says "5 to 10
# minutes", and recorded bills of OpenAI's and Z.ai's models fit 10 and more.
CACHES: dict[str, dict[str, Any]] = {
    **{f"claude-{n}": {**_CLAUDE, "min_tokens": n} for n in (512, 1024, 2048, 4096)},
    "openai-prefix": {
        "kind": "prefix", "min_tokens": 1024, "step": 128, "ttl": 600, "bills_writes": False,
    },
    "openai-breakpoints": {
        "kind": "breakpoints", "min_tokens": 1024, "ttl": 1800, "most_breakpoints": 4,
    },
    "gemini-1024": {
        "kind": "prefix", "min_tokens": 1024, "ttl": 300, "bills_writes": False,
    },
    "gemini-4096": {
        "kind": "prefix", "min_tokens": 4096, "ttl": 300, "bills_writes": False,
    },
    "prefix-64": {
        "kind": "prefix", "min_tokens": 64, "step": 64, "ttl": 3600, "bills_writes": False,
    },
    "prefix-128": {
        "kind": "prefix", "min_tokens": 1024, "step": 128, "ttl": 600, "bills_writes": False,
    },
    "prefix-billed": {"kind": "prefix", "min_tokens": 1024, "step": 128, "ttl": 300},
}  # fmt: skip

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
    "openai": (
        (r"^gpt-(5\.[6-9]|[6-9])", "openai-breakpoints"),
        (r"", "openai-prefix"),
    ),
    "google": (
        (r"flash", "gemini-1024"),
        (r"", "gemini-4096"),
    ),
    "deepseek": ((r"", "prefix-64"),),
    "moonshotai": (
        (r"kimi-k[3-9]", "prefix-billed"),
        (r"", "prefix-128"),
    ),
}
_OTHERS = ((r"", "prefix-128"),)

# Windows that genai-prices leaves out: the providers' pages of models.
WINDOWS = {
    "gemini-2.5-pro": 1_048_576, "gemini-3-pro-preview": 1_048_576,
    "gemini-3.1-pro-preview": 1_048_576, "gemini-2.5-flash-preview": 1_048_576,
    "GLM-4.5": 131_072, "GLM-4.5-Air": 131_072, "GLM-4.6": 200_000, "GLM-4.7": 200_000,
    "GLM-5": 200_000, "GLM-5.1": 200_000, "meta-llama/llama-4-maverick": 1_048_576,
    "meta-llama/llama-4-scout": 327_680, "meta-llama/llama-3.3-70b-instruct": 131_072,
    "mistral-large": 131_072, "mistral-medium-3-1": 131_072, "mistral-medium-latest": 131_072,
    "mistral-small-latest": 131_072, "devstral-small": 131_072, "kimi-k2": 131_072,
}  # fmt: skip
# Until that day a longer window was a beta that a request had to ask for.
EARLIER_WINDOWS = {
    "claude-opus-4-6": ("2026-03-13", 200_000),
    "claude-sonnet-4-6": ("2026-03-13", 200_000),
}
ALSO = {
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


def models(providers: dict[str, Any], today: str) -> list[dict[str, Any]]:
    """Return the rows, sorted by provider and name."""
    rows = [
        row
        for provider, wanted in _WANTED.items()
        for model in providers[provider].models
        if re.search(wanted, model.id) and not _NOT_TEXT.search(model.id)
        if (row := _row(provider, model, today)) is not None
    ]
    rows += _regional(providers["aws"], {row["name"]: row for row in rows}, today)
    return sorted(rows, key=lambda row: (row["provider"], row["name"]))


def _row(provider: str, model: Any, today: str) -> dict[str, Any] | None:
    window = model.context_window or WINDOWS.get(model.id)
    periods = _periods(model.prices, today)
    if not window or not periods:
        return None
    name = model.id.removeprefix("meta-llama/").removesuffix("-latest").lower()
    also = {_bare(one) for one in [*_names(model.match), *ALSO.get(model.id, [])]}
    until, earlier = EARLIER_WINDOWS.get(model.id, ("", 0))
    row: dict[str, Any] = {"name": name, "provider": provider}
    if also := {one for one in also if _key(one) != _key(name)}:
        row["also"] = sorted({_key(one): one for one in sorted(also)}.values())
    row["context_window"] = window
    row["cache"] = _cache(provider, name, periods)
    for period in periods:
        if period.get("until", "9") <= until:
            period["context_window"] = earlier
    row["periods"] = periods
    return row


def _regional(aws: Any, rows: dict[str, dict[str, Any]], today: str) -> list[dict[str, Any]]:
    """Return rows for the regional endpoints of Bedrock; one at the common price is an alias."""
    found = []
    for model in aws.models:
        if not model.id.startswith("regional.anthropic."):
            continue
        name = _bare(re.sub(r"-v\d+(:\d+)?$", "", model.id.removeprefix("regional.anthropic.")))
        base = next(
            (r for r in rows.values() if _key(name) in map(_key, [r["name"], *r.get("also", ())])),
            None,
        )
        if base is None:
            continue
        periods = _periods(model.prices, today)
        now, common = periods[-1], base["periods"][-1]
        if now["input"] == common["input"]:
            base["also"] = sorted([*base.get("also", ()), f"regional.anthropic.{name}"])
        else:
            row = {"name": f"regional.anthropic.{name}", "provider": "aws"}
            found.append(
                {**row, **{k: base[k] for k in ("context_window", "cache")}, "periods": periods}
            )
    return found


def _cache(provider: str, name: str, periods: list[dict[str, Any]]) -> str | None:
    if all(period["read"] == period["input"] for period in periods):
        return None
    rules = _RULES.get(provider, _OTHERS)
    return next(cache for pattern, cache in rules if re.search(pattern, name))


def _periods(prices: Any, today: str) -> list[dict[str, Any]]:
    if not isinstance(prices, list):
        return [_prices(prices)] if prices.input_mtok is not None else []
    found: dict[str, Any] = {}
    for one in prices:
        start = getattr(one.constraint, "start_date", None)
        hours = _hours(one.constraint)
        if hours is not None and hours <= _HALF_A_DAY:
            continue  # the price of most hours of the day is taken
        begins = start.isoformat() if isinstance(start, date) else ""
        if begins <= today and one.prices.input_mtok is not None:
            found[begins] = _prices(one.prices)
    periods: list[dict[str, Any]] = []
    for begins, period in sorted(found.items()):
        if (
            periods
            and {k: v for k, v in periods[-1].items() if k not in ("from", "until")} == period
        ):
            continue
        if periods:
            periods[-1]["until"] = begins
        periods.append(({"from": begins} if begins else {}) | period)
    return [_ordered(period) for period in periods]


def _hours(constraint: Any) -> float | None:
    """Return for how many hours of a day a price is valid, None where it is for all of them."""
    start, end = (getattr(constraint, name, None) for name in ("start_time", "end_time"))
    if start is None or end is None:
        return None
    return float((end.hour - start.hour) % 24 + (end.minute - start.minute) / 60)


def _ordered(period: dict[str, Any]) -> dict[str, Any]:
    first = {key: period[key] for key in ("from", "until") if key in period}
    return first | period


_HALF_A_DAY = 12
_KINDS = {
    "input": "input_mtok",
    "write_5m": "cache_write_mtok",
    "write_1h": "cache_write_1h_mtok",
    "read": "cache_read_mtok",
    "output": "output_mtok",
}


def _prices(prices: Any) -> dict[str, Any]:
    """Return all prices of one period; where nothing is cached apart it costs what input costs."""
    fields = {kind: getattr(prices, name) for kind, name in _KINDS.items()}
    fields["read"] = fields["input"] if fields["read"] is None else fields["read"]
    fields["write_5m"] = fields["input"] if fields["write_5m"] is None else fields["write_5m"]
    fields["write_1h"] = fields["write_5m"] if fields["write_1h"] is None else fields["write_1h"]
    if fields["output"] is None:
        fields["output"] = 0
    sizes = sorted({t.start for f in fields.values() for t in getattr(f, "tiers", ())})
    row: dict[str, Any] = {kind: _at(field, 0) for kind, field in fields.items()}
    if sizes:
        row["above"] = [
            {"tokens": size, **{kind: _at(field, size) for kind, field in fields.items()}}
            for size in sizes
        ]
    return row


def _at(field: Any, size: int) -> float:
    price = getattr(field, "base", field)
    for tier in getattr(field, "tiers", ()):
        if tier.start <= size:
            price = tier.price
    number = float(price)
    return int(number) if number == int(number) else number


def _names(match: Any) -> list[str]:
    if hasattr(match, "or_"):
        return [name for one in match.or_ for name in _names(one)]
    if hasattr(match, "and_"):
        return [name for one in match.and_ for name in _names(one)]
    found = [
        getattr(match, key, None) for key in ("equals", "starts_with", "ends_with", "contains")
    ]
    return [
        name
        for name in found
        if name
        and not name.endswith(("-", "@", "-2025"))
        and re.search(r"\d", name)
        and not _NOT_TEXT.search(name)
    ]


def _bare(name: str) -> str:
    name = name.rpartition("/")[2].lower().removesuffix("-latest")
    return name if name == "gpt-4o-2024-05-13" else _DATED.sub("", name)


def _key(name: str) -> str:
    return name.replace(".", "-")


def text(day: str) -> str:
    """Return the file's text, of the installed genai-prices, as read on a day (2026-11-23)."""
    from genai_prices.data import providers  # noqa: PLC0415

    rows = models({one.id: one for one in providers}, day)
    used = {row["cache"] for row in rows}
    order = ("name", "provider", "also", "context_window", "cache", "periods")
    rows = [{key: row[key] for key in order if key in row} for row in rows]
    lines = ",\n    ".join(json.dumps(row) for row in rows)
    head = {
        "date": day,
        "providers": PROVIDERS,
        "caches": {name: rules for name, rules in CACHES.items() if name in used},
    }
    return json.dumps(head, indent=2)[:-2] + f',\n  "models": [\n    {lines}\n  ]\n}}\n'


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--date", required=True, help="when the data was read: 2026-11-23")
    day: str = parser.parse_args().date
    OUT.write_text(text(day), encoding="utf-8")


if __name__ == "__main__":
    main()
