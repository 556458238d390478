"""Policies as a person might write them, of all that does something in this version."""

import json
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from hypothesis import strategies as st

from policyctx.definitions.actions import ITEM_ACTIONS, Action
from policyctx.definitions.items import PlainValue
from policyctx.errors import PolicyError, present
from policyctx.policy.loading import parsed_policy
from policyctx.policy.models import Policy, Section
from policyctx.policy.models.gates import COMPARISONS, Gate, Gates, Kind, Limits
from policyctx.policy.nodes import model_in
from policyctx.policy.sources import PolicySource

_WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=20)
_ODD_WORDS = st.sampled_from(
    ["on", "1:30", "1e3", "0o17", "null", "~", "", "a: b", "- x", "#", "是", "a\nb\n"]
)
_TEXTS = st.one_of(_WORDS, _ODD_WORDS).map(lambda text: text.replace("{", "(").replace("}", ")"))
_SIZES = st.one_of(
    st.integers(0, 10**9).map(lambda n: {"min_chars": n}), st.just({"min_tokens": "7.5%"})
)
_COUNTS = st.integers(0, 9)
_SHARES = st.sampled_from(["0%", "7.5%", "100%"])
_AMOUNTS = _COUNTS | _SHARES
_BATCHES = st.sampled_from(["whole", "split"])
_GROUPS = st.sampled_from(["tool", "type", "all"])


def _map(
    needed: Mapping[str, st.SearchStrategy[Any]], **others: st.SearchStrategy[Any]
) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({**needed}, optional=others)


_RECENT = st.one_of(
    _COUNTS,
    st.sampled_from(["items", "messages", "turns", "replies"]).flatmap(
        lambda shape: _map({shape: _COUNTS}, batches=_BATCHES)
    ),
    _map({"turns": _COUNTS, "of": st.sampled_from(["all", "candidates"])}, per=_GROUPS),
    st.sampled_from(["tokens", "max_tokens"]).flatmap(
        lambda shape: _map({shape: _AMOUNTS}, per=_GROUPS, batches=_BATCHES)
    ),
)
_EXCERPTS = {"head": {"chars": 3}, "tail": {"lines": 1}, "outline": {"tokens": 20}}
_WORDINGS = _TEXTS.filter(bool) | _map(
    {"text": st.just("{head}{gap}{tail}{outline}"), "gap": _TEXTS.filter(bool)},
    line_numbers=st.booleans() | _map({}, width=st.integers(1, 9), separator=_TEXTS),
    max_line_chars=st.integers(1, 99),
    cut_mark=_TEXTS,
).map(lambda wording: {**wording, **_EXCERPTS})
_RULES = st.builds(
    lambda size, rest: size | rest,
    _SIZES,
    _map({}, offload=st.booleans(), pin=st.booleans(), keep_recent=_RECENT, placeholder=_WORDINGS),
)
_TYPES = st.sampled_from(["tool_result", "user_message", "recalled", "tool_call", "image", "*"])


def _some(**keys: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return _map({}, **keys).filter(bool)


def _compared(numbers: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return _some(at_least=numbers, over=numbers, under=numbers, at_most=numbers)


_NUMBERS: dict[Kind, st.SearchStrategy[Any]] = {
    "tokens": _AMOUNTS,
    "count": _COUNTS,
    "calls": _COUNTS | _SHARES,
    "ratio": _SHARES | st.floats(0, 1, width=16),
    "seconds": st.sampled_from(["0s", "5m", "cache_ttl"]),
}

# The keys of a gate that are not comparisons.
_OWN_KEYS: dict[str, st.SearchStrategy[Any]] = {
    "types": st.lists(_TYPES),
    "of": st.sampled_from(["chars", "tokens"]),
}


def _gates(model: type[Section]) -> st.SearchStrategy[dict[str, Any]]:
    """Some gates of a map of gates."""
    drawn = {}
    for name, gate in model.noted(Gate).items():
        field = model.model_fields[name]
        inner = model_in(field.annotation)
        if inner is not None and gate.holds_gates:
            drawn[name] = _gates(inner)
        elif inner is not None and issubclass(inner, Limits):
            drawn[name] = _gate(inner, gate)
        elif field.annotation != str | None:  # a name is that of a step that is not drawn
            drawn[name] = st.sampled_from(present(field.examples))
    return _some(**drawn)


def _gate(model: type[Section], gate: Gate) -> st.SearchStrategy[dict[str, Any]]:
    numbers = _compared(_NUMBERS.get(gate.kind, _COUNTS))
    own = {
        key: _OWN_KEYS.get(key, st.sampled_from(field.examples or [field.default]))
        for key, field in model.model_fields.items()
        if key not in COMPARISONS
    }
    return st.builds(lambda number, keys: number | keys, numbers, _map({}, **own))


_GATES = _gates(Gates)
_UNTIL = _some(tokens=_map({"under": _AMOUNTS}), frees=_map({"at_least": _AMOUNTS}))
_INPUTS = st.one_of(
    st.booleans(),
    st.sampled_from(["*", ["read*"]]),
    _map({"leave": st.sampled_from(["short_strings", "empty"])}),
)
_SELECTS = st.builds(
    lambda size, rest, types: size | rest | types,
    _SIZES,
    _map(
        {},
        errors=st.booleans(),
        keep_recent=_RECENT,
        keep_first=_map({"messages": _COUNTS}),
        ephemeral=st.booleans(),
        superseded=st.booleans(),
        until=_UNTIL | st.lists(_UNTIL, max_size=2),
        with_input=_INPUTS,
    ),
    st.one_of(
        _map({}, order=st.just("largest")),
        _map({"types": st.lists(_TYPES, max_size=3)}, order=st.just("by_type")),
    ),
)

_UNIT = st.sampled_from(["item", "message", "group", "turn"])
_FEW = _some(tokens=_map({"under": _AMOUNTS}), messages=_map({"under": _COUNTS}))
_MORE = _map({}, unit=_UNIT, until=_FEW)
_DROPPED = st.builds(lambda select, more: select | more, _SELECTS, _MORE)


def _steps(action: Action) -> st.SearchStrategy[dict[str, Any]]:
    keys = {
        "select": (_DROPPED if action.leaves_nothing else _SELECTS).map(
            lambda given: {k: v for k, v in given.items() if k not in action.selection_without_use}
        ),
        "when": _GATES | st.lists(_GATES, max_size=2),
        "placeholder": _WORDINGS,
        "must_shrink": st.booleans(),
        "save": st.booleans(),
    }
    return _map(
        {"name": st.from_regex(r"[a-z0-9-]{1,8}", fullmatch=True), "do": st.just(str(action.do))},
        **{key: drawn for key, drawn in keys.items() if key not in action.keys_without_use},
    )


# A step that replaces placeholders, whose own shows nothing of the text.
_REPLACING = st.builds(
    lambda step, shown: (
        step | {"placeholder": shown, "select": {**step.get("select", {}), "placeholders": True}}
    ),
    _steps(Action.OFFLOAD),
    st.sampled_from(["{path}", "[{tool_name} in {relative_path}]"]),
)

# A summary, and a step that runs if it fails; their names are longer than those that are drawn.
_FAILING = st.one_of(
    st.just([]),
    st.builds(
        lambda gates, step: [
            {"name": "summarise", "do": "compact", "when": gates},
            step | {"name": "in-its-place", "when": {"failed": "summarise"}},
        ],
        _GATES,
        st.one_of([*map(_steps, ITEM_ACTIONS)]),
    ),
)
_STEPS = st.builds(
    list.__add__,
    st.lists(
        st.one_of([*map(_steps, ITEM_ACTIONS), _REPLACING]),
        max_size=3,
        unique_by=lambda step: step["name"],
    ),
    _FAILING,
)

_PATTERNS = st.sampled_from(["sk-[a-z]{4,}", "password=(\\S+)", "(?i)aé+"])
_SECRETS = st.dictionaries(
    _TEXTS.filter(lambda text: text != "<<"),
    _PATTERNS | _map({"pattern": _PATTERNS}, keep=st.booleans()),
    max_size=3 if find_spec("re2") else 0,
)


def _priced(policy: dict[str, Any]) -> dict[str, Any]:
    return policy | {"model": {**policy.get("model", {}), "price": _PRICES}}


def _unsplit(policy: dict[str, Any]) -> dict[str, Any]:
    """Leave out every `batches` where a step drops, which never splits one."""
    drops = any(step["do"] == "drop" for step in policy.get("steps", ()))
    return _without_batches(policy) if drops else policy


def _without_batches(value: PlainValue) -> PlainValue:
    if isinstance(value, list):
        return [_without_batches(part) for part in value]
    if not isinstance(value, dict):
        return value
    return {key: _without_batches(part) for key, part in value.items() if key != "batches"}


_PRICES = {"input": 3.0, "cache_write": 3.75, "cache_read": 0.3, "output": 15.0}

_PROMPTS = _TEXTS.map(lambda text: f"{text}{{sections}}{{rules}}")
_SUMMARIES = _map({"by": st.just("anthropic")}, prompt=_PROMPTS)
_TOKENIZERS = st.sampled_from(["cl100k_base", "approximate"]) | _map(
    {"chars_per_token": st.sampled_from([1, 2.5, 4])},
    round=st.sampled_from(["up", "down", "nearest"]),
    per_message=st.integers(0, 9),
)
_MODELS = st.just({"cache": {"ttl": "5m", "min_tokens": 0}, "token_scale": 1.5}) | _map(
    {"tokenizer": _TOKENIZERS}
)
_NAMED = st.sampled_from(["tool_result", "user_message", "recalled", "image"])
_TOOLS = _TEXTS.filter(lambda text: text != "<<")


def policy_documents() -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy for policies as plain values, as JSON or YAML would hold them.

    Most of them load; what one key alone cannot tell may be wrong in the others.
    """
    drawn = _map(
        {"apiVersion": st.just("policyctx/v1"), "name": _TEXTS.filter(bool)},
        description=_TEXTS,
        model=_MODELS,
        placeholder=_WORDINGS,
        items=st.dictionaries(_NAMED, _RULES),
        tools=st.dictionaries(_TOOLS, _RULES, max_size=3),
        redact=_SECRETS,
        compaction=_map({"summary": _SUMMARIES}),
        store=_map({"escape": st.sampled_from(["percent", "_"])}),
        steps=_STEPS,
    )
    return drawn.map(_priced).map(_unsplit)


def policies() -> st.SearchStrategy[Policy]:
    """Return a strategy for policies that load."""
    return policy_documents().map(_loaded).filter(lambda policy: policy is not None).map(present)


def _loaded(document: dict[str, Any]) -> Policy | None:
    try:
        return parsed_policy(PolicySource("drawn.yaml", json.dumps(document, ensure_ascii=False)))
    except PolicyError:
        return None
