"""Sentences: what they match, and the values that they find."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from policyctx.testing.kinds import Amount, Size, amount, unquoted
from policyctx.testing.step_definitions import LIBRARY, Definitions, StepDefinition, StepSentence
from policyctx.testing.steps import MODULES


@pytest.mark.parametrize(
    ("template", "step", "values"),
    [
        ("it rains", "it rains", {}),
        ("it rains", "it rains:", {}),
        ("it rains", "it rains a lot", None),
        ("it (rains|snows)", "it snows", {}),
        ("it (rains|snows)", "it ", None),
        ("it rains( on {place:name})", "it rains", {}),
        ("it rains( on {place:name})", "it rains on Rome", {"place": "Rome"}),
        ("it rains( on {place:name})", 'it rains on "New York"', {"place": "New York"}),
        ("a {what=cat|dog} sits", "a dog sits", {"what": "dog"}),
        ("a {what=cat|dog} sits", "a cow sits", None),
        ("{n:number} drop(s)", "1 drop", {"n": 1}),
        ("{n:number} drop(s)", "2,500 drops", {"n": 2500}),
        ("{n:number} drop(s)", "0.5 drops", {"n": 0.5}),
        ("{of:size}", "3,000 tokens", {"of": Size(3000, "tokens")}),
        ("{of:size}", "1 character", {"of": Size(1, "characters")}),
        ("all of {them:names}", 'all of "a", "b" and "c"', {"them": ("a", "b", "c")}),
        ("all of {them:names}", 'all of "a"', {"them": ("a",)}),
        ("what is (this) {called:name}?", "what is this dog?", {"called": "dog"}),
    ],
)
def test_a_sentence_matches_its_steps(
    template: str, step: str, values: dict[str, Any] | None
) -> None:
    sentence = StepSentence(template)
    assert sentence.is_matching(step) == (values is not None)
    assert sentence.parse_arguments(step) == values


@pytest.mark.parametrize(
    ("words", "holding", "failing"),
    [
        ("3", [3], [2, 4]),
        ("exactly 3", [3], [2, 4]),
        ("no", [0], [1]),
        ("one", [1], [0, 2]),
        ("at least 3", [3, 4], [2]),
        ("at most 3", [2, 3], [4]),
        ("more than 3", [4], [3]),
        ("over 3", [4], [3]),
        ("fewer than 3", [2], [3]),
        ("under 2,000", [1_999], [2_000]),
    ],
)
def test_an_amount_is_a_number_or_a_bound(
    words: str, holding: list[int], failing: list[int]
) -> None:
    meant = amount(words)
    assert all(map(meant.holds_for, holding))
    assert not any(map(meant.holds_for, failing))


def test_an_amount_reads_as_it_is_written() -> None:
    assert [str(amount(words)) for words in ("at least 2,000", "3")] == ["at least 2,000", "3"]
    assert str(Amount(0.5)) == "0.5"


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ('"a b"', "a b"),
        ("`a b`", "a b"),
        ("ab", "ab"),
        (r'"\"a\" \\ \n\t\r\0"', '"a" \\ \n\t\r\0'),
        (r'"\u5b57\ud800"', "字\ud800"),
        (r'"C:\dir\[x]"', r"C:\dir\[x]"),
        ('""', ""),
    ],
)
def test_a_text_is_unquoted(written: str, text: str) -> None:
    assert unquoted(written) == text


@pytest.fixture(scope="module")
def library() -> Definitions:
    for module in MODULES:
        importlib.import_module(f"policyctx.testing.steps.{module}")
    return Definitions(
        StepDefinition(d.type, StepSentence(d.sentence, d.examples), d.function, (0, False))
        for d in LIBRARY
    )


PARAPHRASES = [
    ("when", "the agent was idle for 10 minutes", "When 1 hour passes"),
    ("when", "the agent is waiting for 2 hours", "When 1 hour passes"),
    ("given", "3 Bash results that failed", "Given a failed result of 300 characters from Bash"),
    ("given", "a Bash result with an error", "Given a failed result of 300 characters from Bash"),
    ("given", "the agent sleeps for 10 minutes", "When 1 hour passes"),
    ("given", "the last call was an hour ago", "When 1 hour passes"),
    ("when", "the prompt cache expires", "When 1 hour passes"),
    ("given", "the cache has expired", "When 1 hour passes"),
    ("when", "the session restarts", "When the process restarts"),
    (
        "when",
        'the agent opens the file of the result "a"',
        "When the model reads the file of the result",
    ),
    ("then", "a compaction happened", "Then the history is compacted"),
    ("then", "there was a warning", "Then 1 warning is given"),
    ("then", "the prompt cache stays valid", "Then the prefix is unchanged"),
    ("then", "nothing was written to disk", "Then no file is written"),
    ("given", "the store cannot be written to", "Given the root folder cannot be written"),
    ("when", "garbage collection runs on the store", "When the store is collected"),
    ("when", "the model greps the offloaded files", "When the model searches the files for"),
    ("given", "a tool whose results are ephemeral", "Given the tool read_file is ephemeral"),
    ("then", 'the result "a" was offloaded', 'Then the result "a" is offloaded'),
    ("given", "the agent was idle for 10 minutes", "When 1 hour passes"),
    ("given", "the agent was idle for two hours", "When 1 hour passes"),
    (
        "given",
        "three Bash results that failed",
        "Given a failed result of 300 characters from Bash",
    ),
    ("when", "the policy is aplied", "When the policy is applied"),
    ("given", "a conversation with 50 messages", "Given a session with"),
    ("given", "the agent has read 4 files", "Given the agent has read the file"),
    ("given", "20 tool results of 3000 characters each", "Given a failed result of 300 characters"),
    ("given", "the context is 90% full", "Then the context has under 2,000 tokens"),
    ("when", "the session is restarted", "When the process restarts"),
    ("when", "the next request is sent", "When the policy is applied"),
    ("then", "the newest 3 results are still there", "Then only the results"),
    ("then", "the old results are gone", 'Then the result "a" is offloaded'),
    ("then", "nothing was saved", "Then no file is written"),
    ("then", 'the summary contains "refund policy"', 'Then the result "a" reads'),
    ("then", "the context is smaller than 50000 tokens", "Then the context has under 2,000 tokens"),
    ("given", "the agent paused for an hour", "When 1 hour passes"),
    ("given", "the agent waits 6 minutes", "When 1 hour passes"),
    ("given", "10 minutes go by", "When 1 hour passes"),
    ("then", "some time passes", "When 1 hour passes"),
    ("given", "nobody typed anything for a day", "When 1 hour passes"),
    ("given", "the model was not called for 2 hours", "When 1 hour passes"),
    ("given", "results that failed from Bash", "Given a failed result of 300 characters from Bash"),
    ("then", "results that failed are kept", 'Then every Bash result is kept because "recent"'),
    ("then", "errors are not offloaded", 'Then the result "a" is offloaded'),
    ("when", "the agent crashes", "When the process restarts"),
]


@pytest.mark.parametrize(("type_", "text", "meant"), PARAPHRASES)
def test_an_unknown_step_is_answered_with_the_step_that_says_the_same(
    type_: str, text: str, meant: str, library: Definitions
) -> None:
    found = [f"{kind.capitalize()} {step}" for kind, step in library.nearest(type_, text)]
    assert any(step.startswith(meant) for step in found), found


@pytest.mark.parametrize("text", ["the moon is made of cheese", "xyzzy", "we order pizza"])
def test_a_step_like_no_other_gets_no_suggestion(text: str, library: Definitions) -> None:
    assert library.nearest("given", text) == []
