"""Random policies with every action, moment and selector that changes a message list."""

from __future__ import annotations

import json
import random
from functools import cache
from typing import Any

from policyctx.errors import PolicyError
from policyctx.planning.compiled import OffloadPolicy
from policyctx.policy.loading import parsed_policy
from policyctx.policy.sources import PolicySource
from tests.fuzz.conversations import TOOLS
from tests.policy_strategies import named_policies

COUNT = 400
"""How many random policies there are; a session draws one of them, or a named one. As many more
also have steps that remove whole messages, groups or turns, and stores of other formats. The third
so many have the newest words of the language."""

_TYPES = (
    "tool_result",
    "tool_call",
    "image",
    "user_message",
    "assistant_message",
    "thinking",
    "document",
)
_PRICE = {"input": 3, "cache_write": 3.75, "cache_read": 0.3, "output": 15}
# What a step must not combine is an error when it is read; the next draw is tried then.
_TRIES = 200


def policy_of(rng: random.Random, count: int = COUNT, *, newest: bool = False) -> OffloadPolicy:
    """Return one of so many random policies; one in eight has a name, such as a preset.

    Those with the `newest` words have none.
    """
    if newest:
        return random_policy(2 * COUNT + rng.randrange(COUNT))
    if rng.random() < 0.125:
        named = named_policies()
        return named[rng.choice(sorted(named))]
    return random_policy(rng.randrange(count))


@cache
def random_policy(number: int) -> OffloadPolicy:
    """Return the random policy with this number."""
    rng = random.Random(number)  # noqa: S311 - no secret
    for _ in range(_TRIES):
        document = _document(rng) if number < COUNT else _wider(_document(rng), rng)
        if number >= 2 * COUNT:
            document = _window(_newest(document, rng), rng) | _redaction(number, document)
        text = json.dumps({"apiVersion": "policyctx/v1", "name": "fuzz", **document})
        try:
            return OffloadPolicy(parsed_policy(PolicySource("fuzz.yaml", text)))
        except PolicyError:
            continue
    raise AssertionError(f"no policy in {_TRIES} draws from {number}")


def _document(rng: random.Random) -> dict[str, Any]:
    types = rng.sample(_TYPES, rng.randint(2, len(_TYPES)))
    document: dict[str, Any] = {
        "model": {
            "context_window": 1000,
            "tokenizer": "approximate",
            "price": _PRICE,
            "cache": {"min_tokens": 0},
        },
        "store": {"sync": "never"},
        "min_chars": rng.choice((0, 0, 5, 30)),
        "items": {item_type: _rules(rng) for item_type in types},
        "steps": [_step(rng, i) for i in range(rng.randint(1, 3))],
    }
    if rng.random() < 0.3:
        document["tools"] = {rng.choice((*TOOLS, "mcp__*")): _rules(rng)}
    if rng.random() < 0.2:
        document["steps"].insert(0, _arrival(rng))
    if rng.random() < 0.2:
        document["steps"].append(_compact(rng))
    return document


def _wider(document: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """Return the document with what only the policies from `COUNT` on have."""
    for step in document["steps"]:
        if step["do"] == "drop" and "on" not in step and rng.random() < 0.6:
            step["select"]["unit"] = rng.choice(("message", "group", "turn"))
        if step["do"] != "compact" and rng.random() < 0.1:
            step["select"]["except_tools"] = [rng.choice(TOOLS)]
    stores: tuple[dict[str, str], ...] = (
        {},
        {},
        {"blocks": "json"},
        {"format": "envelope"},
        {"on_conflict": "overwrite"},
    )
    document["store"] |= rng.choice(stores)
    return document


def _newest(document: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """Return the document with the newest words of the language."""
    steps = document["steps"]
    if rng.random() < 0.6:
        types = rng.sample(_TYPES[:5], rng.randint(1, 4))
        first = _offloading("preview", "[a long text before the path {relative_path}]", types)
        # What a reply says beside its calls does not arrive with their results.
        arrives = rng.random() < 0.3 and "assistant_message" not in types
        more = {"on": "arrival"} if arrives else {}
        steps.insert(0, first | more | {"must_shrink": False})
        later = _offloading("smaller", rng.choice(("[{relative_path}]", "{store_path}")), types)
        later["select"] |= {"placeholders": True}
        if rng.random() < 0.7:
            replies = {"replies": rng.randint(0, 3)}
            later["select"]["keep_recent"] = rng.choice((_recent(rng), replies))
        if rng.random() < 0.3:
            later["when"] = _gate(rng)
        steps.insert(len(steps) - (steps[-1]["do"] == "compact"), later)
    if rng.random() < 0.5:
        stale = _offloading("stale", "[gone to {relative_path}]", ["tool_result"])
        stale["select"]["superseded"] = True
        if rng.random() < 0.5:
            stale["do"] = rng.choice(("clear", "drop"))
            stale["placeholder"] = "[gone]"
        if stale["do"] == "drop":
            del stale["placeholder"]
        steps.insert(0, stale)
    return document


def _window(document: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """Return the document with steps that keep the beginning, count messages or save nothing."""
    files = {"read": {"reads_file": "path"}, "search": {"edits_file": "path"}}
    document["tools"] = {**files, **document.get("tools", {})}
    for step in document["steps"]:
        if step["do"] == "compact" and rng.random() < 0.3:
            step["compaction"]["keep_recent"] = {"replies": rng.randint(1, 2)}
        if step["do"] == "drop" and "on" not in step and rng.random() < 0.2:
            step["select"] = {"types": ["thinking"], "keep_recent": {"replies": rng.randint(0, 3)}}
        if step["do"] != "compact" and "on" not in step and rng.random() < 0.3:
            step["select"]["keep_first"] = {"messages": rng.randint(0, 3)}
        if step["do"] == "drop":
            if rng.random() < 0.3:
                step["save"] = False
            if rng.random() < 0.3:
                step["select"]["until"] = {"messages": {"under": rng.randint(0, 9)}}
    return document


def _redaction(number: int, document: dict[str, Any]) -> dict[str, Any]:
    """Return what one policy in five redacts, by a draw of its own."""
    rng = random.Random(f"redaction of {number}")  # noqa: S311 - no secret
    keep = rng.random() < 0.5 and document["store"].get("format") != "envelope"
    words = {"pattern": "word(?: word)+", "keep": keep}  # the long texts, and no marker of one
    return {"redact": {"words": words}} if rng.random() < 0.2 else {}


def _offloading(name: str, placeholder: str, types: list[str]) -> dict[str, Any]:
    return {
        "name": name,
        "do": "offload",
        "placeholder": placeholder,
        "select": {"types": types, "min_chars": 0},
    }


_WITH_GAP = {"text": "{head}{gap}", "head": {"chars": 4}, "gap": "[{omitted_chars}]"}


def _rules(rng: random.Random) -> dict[str, Any]:
    rules: dict[str, Any] = {"offload": True}
    if rng.random() < 0.2:
        rules["keep_recent"] = _recent(rng)
    if rng.random() < 0.05:
        rules["pin"] = True
    return rules


def _recent(rng: random.Random) -> Any:
    shape = rng.choice(("count", "count", "items", "messages", "turns", "tokens"))
    if shape == "count":
        return rng.randint(0, 3)
    count = rng.randint(0, 3) * (20 if shape == "tokens" else 1)
    # Drawn with what is there, so that a seed still means the same session.
    key = "max_tokens" if shape == "tokens" and count == 20 else shape
    return {key: count, "per": rng.choice(("tool", "type", "all"))}


def _step(rng: random.Random, number: int) -> dict[str, Any]:
    do = rng.choice(("drop", "drop", "drop", "offload", "offload", "clear"))
    select = _select(rng)
    step: dict[str, Any] = {"name": f"s{number}", "do": do, "select": select}
    if do != "drop":
        step["placeholder"] = rng.choice(
            ("[{item_id}]", "[gone]", "[gone to {relative_path}]", _WITH_GAP)
        )
        if rng.random() < 0.5:
            step["must_shrink"] = rng.random() < 0.5
        if rng.random() < 0.2:
            select["with_input"] = rng.choice((True, {"leave": "empty"}))
    if rng.random() < 0.25:
        step["when"] = _gate(rng)
    return step


def _select(rng: random.Random) -> dict[str, Any]:
    keys: tuple[tuple[float, str, Any], ...] = (
        (0.6, "keep_recent", _recent(rng)),
        (0.2, "order", rng.choice(("largest", "by_type"))),
        (0.15, "errors", False),
        (0.15, "tools", [rng.choice(TOOLS), "mcp__*"]),
        (0.1, "ephemeral", True),
        (0.15, "until", {"tokens": {"under": rng.choice((20, 80, 150))}}),
    )
    types = rng.sample(_TYPES, rng.choice((1, 1, 2, 3)))
    return {"types": types} | {key: value for often, key, value in keys if rng.random() < often}


def _gate(rng: random.Random) -> dict[str, Any]:
    return rng.choice(
        (
            {"tokens": {"over": rng.choice((20, 60, 150))}},
            {"messages": {"at_least": rng.randint(1, 9)}},
            {"turns": {"over": rng.randint(0, 3)}},
            {"frees": {"at_least": rng.choice((5, 30))}},
        )
    )


def _arrival(rng: random.Random) -> dict[str, Any]:
    do = rng.choice(("offload", "offload", "drop", "clear"))
    types = rng.sample(("tool_result", "image", "document"), rng.choice((1, 2)))
    step = {"name": "arrival", "on": "arrival", "do": do, "select": {"types": types}}
    return step if do == "drop" else step | {"placeholder": "[{item_id}]", "must_shrink": False}


def _compact(rng: random.Random) -> dict[str, Any]:
    # The extractive summariser, which is the default: no model is asked.
    settings = {
        "keep_recent": {"messages": rng.randint(1, 4)},
        "keep_first": rng.choice((0, 0, 1)),
        "keep_newest_user_message": rng.random() < 0.3,
    }
    gate = {"messages": {"over": rng.randint(4, 8)}}
    return {"name": "compact", "do": "compact", "when": gate, "compaction": settings}
