"""Policies for property tests: presets, some with every key of planning, and random ones."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from hypothesis import strategies as st

from policyctx.planning.compiled import OffloadPolicy
from policyctx.policy.loading import load_policy, parsed_policy
from policyctx.policy.models import Policy
from policyctx.policy.sources import PolicySource

PRESETS = ("context-offload", "tool-direct-offload", "small-context")

_HEAD = "apiVersion: policyctx/v1\n"
# Small enough that all that they say comes to pass in a list of a few messages.
TINY = """\
name: tiny
min_chars: 20
items:
  tool_result: {offload: true}
  user_message: {offload: true, min_chars: 30}
  assistant_message: {offload: true, min_chars: 40}
tools:
  search: {keep_recent: 1}
  mcp__*: {min_chars: 60, placeholder: "{tool_name} {tool_use_id} {relative_path}"}
  pinned: {pin: true}
placeholder: "[{relative_path}]"
steps:
  - name: large-arrivals
    on: arrival
    do: offload
    select: {types: [tool_result], min_chars: 200}
    must_shrink: false
  - name: old-results
    do: offload
    select: {types: [tool_result], keep_recent: {items: 2, per: all}}
  - name: words
    do: offload
    select: {types: [user_message, assistant_message], keep_recent: {items: 1, per: type}}
"""
DROPPING = """\
name: dropping
min_chars: 20
items:
  tool_result: {offload: true}
  tool_call: {offload: true}
tools:
  pinned: {pin: true}
placeholder: "[{relative_path}]"
steps:
  - {name: shrink, do: offload, select: {types: [tool_result], keep_recent: 1}}
  - {name: forget, do: drop, select: {types: [tool_result, thinking], keep_recent: {turns: 1}}}
  - name: words
    do: drop
    select: {types: [user_message, assistant_message], min_chars: 30, keep_recent: {messages: 4}}
"""
INPUTS = """\
name: inputs
items:
  tool_result: {offload: true, min_chars: 30}
  tool_call: {offload: true, min_chars: 20}
  image: {offload: true}
placeholder: "[{item_id}]"
tools:
  search: {keep_recent: 1}
  read: {keep_recent: {tokens: 20}}
steps:
  - {name: images, do: clear, placeholder: "[image]", select: {types: [image]}}
  - {name: retire, do: clear, placeholder: "[old]", select: {ephemeral: true}}
  - {name: along, do: offload, select: {types: [tool_result], with_input: [read, "*fetch"]}}
  - {name: calls, do: offload, select: {types: [tool_call], keep_recent: 2}}
"""
GATED = """\
name: gated
model: {context_window: 500, tokenizer: approximate}
min_chars: 10
items:
  tool_result: {offload: true}
  user_message: {offload: true}
placeholder: "[{relative_path}]"
steps:
  - name: ratio
    do: offload
    when: {ratio: {at_least: 20%, of: chars}}
    select: {types: [tool_result], keep_recent: 1}
  - name: room
    do: offload
    when: [{tokens: {over: 20%}}, {messages: {over: 9}, turns: {at_least: 2}}]
    select:
      types: [user_message, tool_result]
      order: by_type
      until: {tokens: {under: 15%}}
  - name: largest
    do: drop
    when: {tokens: {over: 150}}
    select: {types: [tool_result], order: largest, until: [{frees: {at_least: 40}}]}
"""
WRITTEN = {"tiny": TINY, "dropping": DROPPING, "inputs": INPUTS, "gated": GATED}


def _parsed(text: str) -> OffloadPolicy:
    return unflushed(parsed_policy(PolicySource("test.yaml", _HEAD + text)))


def _unmarked(policy: Policy) -> Policy:
    """Have the policy leave the cache markers as they are, since each test moves its own."""
    cache = policy.model.cache.model_copy(update={"breakpoints": "keep"})
    return policy.model_copy(update={"model": policy.model.model_copy(update={"cache": cache})})


def unflushed(policy: Policy) -> OffloadPolicy:
    """Spare the tests the wait for the disk; nothing else of the policy changes."""
    return stored(OffloadPolicy(policy), sync="never")


def stored(policy: OffloadPolicy, **settings: str) -> OffloadPolicy:
    """Change how the policy stores what it offloads, and nothing else of it."""
    store = policy.policy.store.model_copy(update=settings)
    return OffloadPolicy(policy.policy.model_copy(update={"store": store}))


@cache
def named_policies() -> dict[str, OffloadPolicy]:
    """Return the presets and the policies above."""
    presets = {name: unflushed(_unmarked(load_policy(name))) for name in PRESETS}
    return presets | {name: _parsed(text) for name, text in WRITTEN.items()}


_TYPES = ("tool_result", "user_message", "assistant_message", "tool_call", "image", "thinking")
_COUNT = st.integers(0, 3)
_KEEP = st.one_of(
    _COUNT,
    st.builds(
        lambda shape, n, per, more: {
            shape: n * (15 if "tokens" in shape else 1),
            "per": per,
            **more,
        },
        st.sampled_from(("items", "messages", "turns", "replies", "tokens", "max_tokens")),
        _COUNT,
        st.sampled_from(("tool", "type", "all")),
        st.sampled_from(({}, {}, {"batches": "split"}, {"of": "candidates"})),
    ),
)
_SIZE: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.fixed_dictionaries({"min_chars": st.integers(0, 60)}),
    st.fixed_dictionaries({"min_tokens": st.integers(0, 15)}),
    st.just({}),
)
_COMPARED = st.sampled_from(("at_least", "over", "under", "at_most"))


def _maybe(key: str, strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.one_of(st.just({}), strategy.map(lambda value: {key: value}))


def _all_of(*parts: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.tuples(*parts).map(lambda found: {k: v for part in found for k, v in part.items()})


def _rules() -> st.SearchStrategy[dict[str, Any]]:
    return _all_of(
        _SIZE,
        st.sampled_from(({"offload": True}, {"offload": True}, {"offload": True}, {})),
        _maybe("keep_recent", _KEEP),
        st.sampled_from(({}, {}, {}, {}, {"pin": True})),
    )


_WORDINGS: tuple[dict[str, Any], ...] = (
    {"text": "[{item_id}]"},
    {"text": "[{item_id}]"},
    {"text": "{head}{gap}", "head": {"chars": 4}, "gap": "[{omitted_chars} of {chars}]"},
)
_EMPTY = {"with_input": {"leave": "empty"}}
_LISTED = st.lists(st.sampled_from(_TYPES), min_size=1, max_size=4, unique=True)
_SOME_TYPES = st.one_of(st.just(["*"]), _LISTED, st.just(["tool_result"]))
_UNTIL = st.one_of(
    st.integers(0, 120).map(lambda n: {"tokens": {"under": n}}),
    st.integers(0, 60).map(lambda n: {"frees": {"at_least": n}}),
)
_GATE = st.one_of(
    st.builds(lambda c, n: {"tokens": {c: n}}, _COMPARED, st.integers(0, 200)),
    st.builds(lambda c, n: {"messages": {c: n}}, _COMPARED, st.integers(0, 12)),
    st.builds(lambda c, n: {"turns": {c: n}}, _COMPARED, st.integers(0, 4)),
    st.builds(
        lambda c, n, t: {"items": {c: n, "types": t}}, _COMPARED, st.integers(0, 5), _SOME_TYPES
    ),
    st.builds(
        lambda c, n, of: {"ratio": {c: f"{n}%", "of": of}},
        _COMPARED,
        st.integers(0, 100),
        st.sampled_from(("chars", "tokens")),
    ),
    st.builds(lambda c, n: {"frees": {c: n}}, _COMPARED, st.integers(0, 60)),
    st.builds(
        lambda what, c, n: {"since_last": {what: {c: n * (15 if what == "tokens" else 1)}}},
        st.sampled_from(("messages", "turns", "tokens")),
        _COMPARED,
        st.integers(0, 6),
    ),
    st.builds(lambda c, n: {"pays_back": {c: n}}, _COMPARED, st.integers(0, 20) | st.just("25%")),
)


def _select(*, free: bool, arrival: bool) -> st.SearchStrategy[dict[str, Any]]:
    anywhere: list[st.SearchStrategy[dict[str, Any]]] = [
        _maybe("types", _SOME_TYPES),
        _SIZE,
        st.sampled_from(({}, {}, {}, {"except_tools": "read"}, {"tools": ["read", "mcp__*"]})),
        st.sampled_from(({}, {}, {"errors": False})),
        st.sampled_from(({}, {}, {"with_input": True}, {"with_input": "read"}, _EMPTY)),
    ]
    on_call: list[st.SearchStrategy[dict[str, Any]]] = [
        _maybe("keep_recent", _KEEP),
        st.sampled_from(({}, {"order": "largest"}, {"order": "by_type"})),
        st.sampled_from(({}, {}, {}, {"ephemeral": True})),
        st.sampled_from(("item", "item", "message", "group", "turn")).map(lambda u: {"unit": u}),
    ]
    until = [] if free else [_maybe("until", _UNTIL)]
    return _all_of(*anywhere, *([] if arrival else [*on_call, *until]))


def _steps(
    actions: tuple[str, ...], *, free: bool, arrival: bool
) -> st.SearchStrategy[dict[str, Any]]:
    gates = [] if free or arrival else [_maybe("when", st.lists(_GATE, min_size=1, max_size=2))]
    return _all_of(
        st.just({"on": "arrival"} if arrival else {}),
        st.builds(
            lambda do, wording: {
                "do": do,
                "placeholder": {**wording, "text": do + wording["text"]},
            },
            st.sampled_from(actions),
            st.sampled_from(_WORDINGS),
        ),
        _maybe("must_shrink", st.booleans()),
        _select(free=free, arrival=arrival).map(lambda select: {"select": select}),
        *gates,
    )


def random_policies(
    *,
    actions: tuple[str, ...] = ("offload", "clear", "drop"),
    free: bool = False,
    arrival: bool = True,
) -> st.SearchStrategy[OffloadPolicy]:
    """Return a strategy for small policies; a `free` one has neither gates nor `until`."""
    before_call = st.lists(_steps(actions, free=free, arrival=False), min_size=1, max_size=3)
    arriving = st.lists(_steps(actions, free=free, arrival=True), max_size=1)
    steps = st.builds(lambda a, b: [*a, *b], arriving, before_call) if arrival else before_call
    return st.builds(
        _compiled,
        st.dictionaries(st.sampled_from(_TYPES), _rules(), min_size=1, max_size=4),
        st.dictionaries(st.sampled_from(("read", "search", "*")), _rules(), max_size=1),
        _SIZE,
        steps,
    )


def _compiled(
    items: dict[str, Any], tools: dict[str, Any], size: dict[str, Any], steps: list[dict[str, Any]]
) -> OffloadPolicy:
    if any(step["do"] == "drop" for step in steps):
        items, tools = _never_split(items), _never_split(tools)
        steps = [{**step, "select": _never_split(step["select"])} for step in steps]
    price = {"input": 3, "cache_write": 3.75, "cache_read": 0.3, "output": 15}
    # By the name of the first step's action, so that both kinds are drawn.
    by_chars = {"chars_per_token": 3, "round": "down", "per_message": 2}
    tokenizer = by_chars if steps[0]["do"] == "clear" else "approximate"
    model = {"context_window": 1000, "tokenizer": tokenizer, "price": price}
    named = [{"name": f"s{i}", **_without_errors(step)} for i, step in enumerate(steps)]
    cache_ = {"min_tokens": 0}
    document = {"name": "random", "items": items, "tools": tools, "steps": named, **size}
    document["model"] = {**model, "cache": cache_}
    return _parsed_document(json.dumps(document))


def _without_errors(step: dict[str, Any]) -> dict[str, Any]:
    """Return the step without the keys that its others have no use for, which is an error."""
    dropping = step["do"] == "drop"
    unused = ("placeholder", "must_shrink") if dropping else ()
    not_for_it = "with_input" if dropping else "unit"
    select = {k: v for k, v in step["select"].items() if k != not_for_it}
    if select.get("order") == "by_type" and "types" not in select:
        del select["order"]
    return {**{k: v for k, v in step.items() if k not in unused}, "select": select}


def _never_split(value: dict[str, Any]) -> dict[str, Any]:
    """Return a map without `batches`, however deep it is; a `drop` never splits a batch."""
    return {
        key: _never_split(part) if isinstance(part, dict) else part
        for key, part in value.items()
        if key != "batches"
    }


@cache
def _parsed_document(text: str) -> OffloadPolicy:
    found = parsed_policy(PolicySource("test.yaml", f'{{"apiVersion": "policyctx/v1", {text[1:]}'))
    return unflushed(found)


def policies() -> st.SearchStrategy[OffloadPolicy]:
    """Return a strategy for the named policies and random ones."""
    named = st.sampled_from(sorted(named_policies())).map(lambda name: named_policies()[name])
    return st.one_of(named, named, random_policies())


def free_policies() -> st.SearchStrategy[OffloadPolicy]:
    """Return a strategy for policies that decide each item by itself: no gates, no `until`."""
    names = sorted(set(named_policies()) - {"gated"})
    named = st.sampled_from(names).map(lambda name: named_policies()[name])
    return st.one_of(named, random_policies(free=True))
