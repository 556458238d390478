"""Policies as a person might write them, of all that does something in this version."""

from __future__ import annotations

from hypothesis import strategies as st

WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=20)
ODD_WORDS = st.sampled_from(
    ["on", "1:30", "1e3", "0o17", "null", "~", "", "a: b", "- x", "#", "是", "a\nb\n"]
)
TEXTS = st.one_of(WORDS, ODD_WORDS).map(lambda text: text.replace("{", "(").replace("}", ")"))
SIZES = st.one_of(
    st.integers(0, 10**9).map(lambda n: {"min_chars": n}), st.just({"min_tokens": "7.5%"})
)
RECENT = st.one_of(st.integers(0, 9), st.fixed_dictionaries({"items": st.integers(0, 9)}))
RULES = st.builds(
    lambda size, rest: size | rest,
    SIZES,
    st.fixed_dictionaries(
        {},
        optional={
            "offload": st.booleans(),
            "pin": st.booleans(),
            "keep_recent": RECENT,
            "placeholder": TEXTS.filter(bool),
        },
    ),
)
STEPS = st.lists(
    st.fixed_dictionaries(
        {"name": st.from_regex(r"[a-z0-9-]{1,8}", fullmatch=True), "do": st.just("offload")},
        optional={"placeholder": TEXTS.filter(bool), "must_shrink": st.booleans(), "select": SIZES},
    ),
    max_size=3,
    unique_by=lambda step: step["name"],
)
POLICIES = st.fixed_dictionaries(
    {"apiVersion": st.just("policyctx/v1"), "name": TEXTS.filter(bool)},
    optional={
        "description": TEXTS,
        "placeholder": TEXTS.filter(bool),
        "items": st.dictionaries(st.sampled_from(["tool_result", "user_message"]), RULES),
        "tools": st.dictionaries(TEXTS.filter(lambda text: text != "<<"), RULES, max_size=3),
        "steps": STEPS,
    },
)
