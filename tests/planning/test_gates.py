from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from policyctx import Session
from policyctx.planning.plan import Outcome
from tests.conversations import Message, calls, picture, results, session_of, user
from tests.planning.plans import FACTS, adopted, idle, planned, read_more
from tests.policies import policy

LARGE = "x" * 400


def gated(when: str, *, do: str = "offload", more: str = "") -> str:
    return f"""\
        items: {{tool_result: {{offload: true}}, user_message: {{pin: true}}}}
        placeholder: "12345678"
        {more}
        steps: [{{name: s, do: {do}, select: {{types: [tool_result]}}, when: {when}}}]
        """


def outcome(text: str, messages: list[Message], seconds: float | None = None) -> Outcome:
    facts = FACTS if seconds is None else idle(seconds)
    found = planned(text, messages, facts=facts)
    [only] = found.outcomes
    assert bool(found.new) == only.is_open
    return only


def is_open(text: str, messages: list[Message], seconds: float | None = None) -> bool:
    return outcome(text, messages, seconds).is_open


@pytest.mark.parametrize(
    ("comparison", "opens"),
    # For a number below the limit, at it, and above it.
    [
        ("at_least", (False, True, True)),
        ("over", (False, False, True)),
        ("under", (True, False, False)),
        ("at_most", (True, True, False)),
    ],
)
@pytest.mark.parametrize(
    ("gate", "number"),
    [
        # The task, an input of two characters, and the result.
        ("tokens", 2 + 1 + 100),
        ("messages", 3),
        ("turns", 1),
        ("frees", 98),
    ],
)
def test_each_comparison_is_evaluated(
    gate: str, number: int, comparison: str, opens: tuple[bool, ...]
) -> None:
    limits = (number + 1, number, number - 1)
    found = [
        is_open(gated(f"{{{gate}: {{{comparison}: {limit}}}}}"), session_of(LARGE))
        for limit in limits
    ]
    assert found == list(opens)


def test_a_verdict_contains_the_compared_numbers() -> None:
    [verdict] = outcome(gated("{tokens: {at_least: 50%}}"), session_of(LARGE)).gates
    assert verdict.sentence == "tokens: 103 tokens < 100,000 tokens"
    assert (verdict.step, verdict.gate, verdict.comparison) == ("s", "tokens", "at_least")
    assert (verdict.number, verdict.limit, verdict.opens) == (103, 100_000, False)
    assert verdict.rule == ("steps", "s", "when", "tokens", "at_least")


@pytest.mark.parametrize(
    ("window", "share", "open_"),
    # The list has 103 tokens, a third of 309.
    [(1000, "10.3%", True), (1000, "10.300001%", False), (309, "33.333333%", True),
     (309, "33.333334%", False), (103, "100%", True), (104, "100%", False)],
)  # fmt: skip
def test_a_share_of_the_window_is_exact(window: int, share: str, open_: bool) -> None:
    more = f"model: {{context_window: {window}}}"
    assert is_open(gated(f"{{tokens: {{at_least: '{share}'}}}}", more=more), session_of(LARGE)) == (
        open_
    )


def test_tokens_include_the_system_prompt_and_tools() -> None:
    text = gated("{tokens: {over: 103}}")
    assert not is_open(text, session_of(LARGE))
    facts = replace(FACTS, beside=("y" * 4, {"name": "ls"}))
    [verdict] = planned(text, session_of(LARGE), facts=facts).gates
    assert verdict.number == 103 + 1 + 4
    assert verdict.opens


def test_all_gates_of_a_map_must_open() -> None:
    messages = session_of(LARGE)
    assert is_open(gated("{messages: {at_least: 3}, turns: {at_least: 1}}"), messages)
    assert not is_open(gated("{messages: {at_least: 3}, turns: {at_least: 2}}"), messages)
    assert not is_open(gated("{messages: {at_least: 3, under: 3}}"), messages)


def test_any_map_of_a_list_of_maps_opens_the_step() -> None:
    messages = session_of(LARGE)
    alternatives = "[{messages: {over: 400}}, {tokens: {over: 100}, turns: {at_least: 1}}]"
    found = outcome(gated(alternatives), messages)
    assert found.is_open
    assert [verdict.opens for verdict in found.gates] == [False, True, True]
    assert [verdict.alternative for verdict in found.gates] == [0, 1, 1]
    assert not is_open(
        gated("[{messages: {over: 400}}, {tokens: {over: 100}, turns: {over: 1}}]"), messages
    )


@pytest.mark.parametrize(
    ("types", "count"),
    [("[tool_result]", 2), ("[tool_call]", 2), ("[user_message]", 1), ("['*']", 5),
     ("[tool_result, user_message]", 3), ("[image]", 0), ("[page]", 1)],
)  # fmt: skip
def test_items_are_counted_by_their_types(types: str, count: int) -> None:
    page = """\
        items:
          tool_result: {offload: true}
          page: {match: {type: tool_result, tool: fetch}}
        steps:
          - name: s
            do: offload
            select: {types: [tool_result]}
            when: {items: {at_least: 0, types: TYPES}}
        """
    messages = [*session_of(LARGE), calls(("f", "fetch")), results(("f", LARGE))]
    [verdict] = planned(page.replace("TYPES", types), messages).gates
    assert verdict.number == count


def test_dropped_items_are_not_counted() -> None:
    text = """\
        steps:
          - {name: first, do: drop, select: {types: [tool_result], keep_recent: 1}}
          - name: second
            do: drop
            select: {types: [tool_result]}
            when: {items: {at_least: 2, types: [tool_result]}}
        """
    [verdict] = planned(text, session_of(LARGE, LARGE)).gates
    assert verdict.number == 1
    after = adopted(text, session_of(LARGE, LARGE))
    [again] = after.plan(FACTS).gates
    assert again.number == 1


def test_an_image_goes_from_the_count_with_the_result_that_it_is_in() -> None:
    text = """\
        steps:
          - {name: first, do: drop, select: {types: [tool_result]}}
          - name: second
            do: drop
            select: {types: [image]}
            when: {items: {at_least: 1, types: [image]}}
        """
    messages = session_of([picture()])
    [verdict] = planned(text, messages).gates
    assert verdict.number == 0
    [again] = adopted(text, messages).plan(FACTS).gates
    assert again.number == 0


class TestRatio:
    """`ratio` compares what is selected with all messages."""

    def test_it_is_exact_at_its_bound(self) -> None:
        messages = [user("y" * 398), calls(("a", "Bash")), results(("a", "x" * 100))]
        of_chars = gated("{ratio: {at_least: 20%, of: chars}}")
        found = outcome(of_chars, messages)
        assert found.gates[0].number == Fraction(1, 5)
        assert found.is_open
        messages[0] = user("y" * 399)
        assert not is_open(of_chars, messages)

    @pytest.mark.parametrize("of", ["chars", "tokens"])
    def test_nothing_measured_closes_it_before_all_else(self, of: str) -> None:
        text = gated(f"{{ratio: {{at_least: 0, of: {of}}}}}")
        for messages in ([], [user("")]):
            found = outcome(text, messages)
            assert not found.is_open
            assert found.gates[0].note == "nothing_measured"
            assert found.gates[0].number is None

    @pytest.mark.parametrize("of", ["chars", "tokens"])
    def test_nothing_selected_closes_it_before_the_division(self, of: str) -> None:
        found = outcome(gated(f"{{ratio: {{at_least: 0, of: {of}}}}}"), [user(LARGE)])
        assert not found.is_open
        assert found.gates[0].note == "nothing_selected"
        assert found.gates[0].sentence == "ratio: nothing is selected"

    @pytest.mark.parametrize("comparison", ["under", "at_most"])
    def test_nothing_selected_closes_it_under_an_upper_bound_too(self, comparison: str) -> None:
        assert not is_open(gated(f"{{ratio: {{{comparison}: 1}}}}"), [user(LARGE)])

    def test_a_bound_of_nothing_opens_when_something_is_selected(self) -> None:
        assert is_open(gated("{ratio: {at_least: 0, of: chars}}"), session_of(LARGE))

    def test_a_bound_of_all_opens_only_when_all_is_selected(self) -> None:
        whole = gated("{ratio: {at_least: 1, of: chars}}")
        assert is_open(whole, [results(("a", LARGE))])
        assert not is_open(whole, session_of(LARGE))

    def test_the_system_prompt_is_not_measured(self) -> None:
        text = gated("{ratio: {at_least: 0}}")
        session = Session(policy(text), root="unused", session_id="s")
        bare = session.plan(session_of(LARGE)).gates[0].number
        assert session.plan(session_of(LARGE), system="x" * 9_999).gates[0].number == bare

    def test_only_items_that_the_step_would_take_are_selected(self) -> None:
        text = gated("{ratio: {at_least: 50%, of: chars}}", more="min_chars: 400")
        messages = [calls(("a", "Bash")), results(("a", "x" * 400)), *session_of("y" * 398)[1:]]
        assert outcome(text, messages).gates[0].number == Fraction(400, 2 + 400 + 2 + 398)

    def test_replaced_items_are_not_selected_and_count_by_their_placeholder(self) -> None:
        text = gated("{ratio: {at_least: 0, of: chars}}")
        messages = session_of(LARGE)
        after = adopted(text, messages)
        read_more(after, [calls(("d", "Bash")), results(("d", LARGE))])
        [verdict] = after.plan(FACTS).gates
        assert verdict.number == Fraction(400, len("the task") + 2 + 8 + 2 + 400)

    def test_an_offloaded_image_does_not_count_towards_its_result(self) -> None:
        text = """\
            items: {tool_result: {offload: true}, image: {offload: true}}
            placeholder: "12345678"
            steps:
              - {name: images, do: offload, select: {types: [image]}}
              - name: s
                do: offload
                select: {types: [tool_result]}
                when: {ratio: {at_least: 0, of: chars}}
            """
        content = [{"type": "text", "text": LARGE}, picture("y" * 999)]
        messages = session_of(content)
        [within] = planned(text, messages).gates
        assert isinstance(within.number, Fraction)
        left = within.number.numerator
        assert left < within.number.denominator < 600
        alone = text.replace("{at_least: 0, of: chars}", "{at_least: 1, of: chars}")
        [later] = adopted(alone, messages).plan(FACTS).gates
        assert later.number == within.number


class TestIdle:
    """`idle` is the time since the last model call."""

    def test_it_is_compared_with_a_duration(self) -> None:
        text = gated("{idle: {at_least: 5m}}")
        assert not is_open(text, session_of(LARGE), 299.9)
        assert is_open(text, session_of(LARGE), 300)

    def test_it_is_compared_with_the_providers_cache_lifetime(self) -> None:
        text = gated("{idle: {over: cache_ttl}}", more="model: {cache: {ttl: 1h}}")
        assert not is_open(text, session_of(LARGE), 3600)
        assert is_open(text, session_of(LARGE), 3601)

    @pytest.mark.parametrize("comparison", ["over: 0s", "under: 30d"])
    def test_it_is_closed_before_the_first_call(self, comparison: str) -> None:
        found = outcome(gated(f"{{idle: {{{comparison}}}}}"), session_of(LARGE))
        assert not found.is_open
        assert found.gates[0].sentence == "idle: the time since the last model call is not known"

    def test_a_session_counts_from_its_last_call(self, tmp_path: Path) -> None:
        now = [1000.0]
        text = gated("{idle: {over: 5m}}", more="store: {sync: never}")
        session = Session(policy(text), root=tmp_path, session_id="s", clock=lambda: now[0])
        messages = session_of(LARGE)
        assert session.apply(messages).offloaded_count == 0
        now[0] += 300
        assert session.plan(messages).gates[0].number == 300
        assert session.apply(messages).offloaded_count == 0
        now[0] += 301
        assert session.apply(messages).offloaded_count == 1


def test_frees_is_net_of_placeholders() -> None:
    [verdict] = outcome(gated("{frees: {at_least: 0}}"), session_of(LARGE, LARGE)).gates
    assert verdict.number == 2 * (100 - 2)


def test_a_drop_frees_the_whole_size_of_the_item() -> None:
    [verdict] = outcome(gated("{frees: {at_least: 0}}", do="drop"), session_of(LARGE)).gates
    assert verdict.number == 100


def test_a_step_counts_the_list_that_earlier_steps_left() -> None:
    text = """\
        items: {tool_result: {offload: true}}
        placeholder: "12345678"
        steps:
          - {name: first, do: offload, select: {types: [tool_result], keep_recent: 1}}
          - {name: second, do: offload, select: {types: [tool_result]}, when: {tokens: {over: 0}}}
        """
    found = planned(text, session_of(LARGE, LARGE))
    [verdict] = found.gates
    assert verdict.number == 2 + 1 + 2 + 1 + 100
    assert [d.step for d in found.new] == ["first", "second"]


def test_a_list_with_images_out_is_counted_once(tmp_path: Path) -> None:
    """The image that goes before its result is not counted as gone twice."""
    text = """\
        items: {tool_result: {offload: true}, image: {offload: true}}
        placeholder: "12345678"
        steps:
          - {name: images, do: offload, select: {types: [image]}}
          - {name: rest, do: offload, select: {types: [tool_result]}}
          - {name: never, do: offload, when: {tokens: {under: 0}}}
        """
    content = [{"type": "text", "text": LARGE}, picture("y" * 999)]
    found = planned(text, session_of(content))
    [verdict] = found.gates
    assert verdict.number == found.tokens_after == 2 + 1 + 2
    session = Session(policy(f"{text}\n        store: {{sync: never}}"), root=tmp_path)
    messages = session_of(content)
    session.apply(messages)
    assert session.plan(messages).gates[0].number == session.plan(messages).tokens_after


@pytest.mark.parametrize(
    "when",
    [
        "{tokens: {over: 99999}}",
        "{ratio: {at_least: 1}}",
        "{idle: {over: 1s}}",
        "{turns: {over: 9}}",
    ],
)
def test_a_closed_gate_costs_nothing(when: str, tmp_path: Path) -> None:
    session = Session(policy(gated(when)), root=tmp_path / "root", session_id="s")
    messages = session_of(LARGE)
    result = session.apply(messages)
    assert result.messages is messages
    assert not (tmp_path / "root").exists()
    assert session.ledger.entries == {}


def test_an_item_kept_by_a_closed_gate_has_that_reason() -> None:
    found = planned(gated("{tokens: {over: 99999}, turns: {over: 0}}"), session_of(LARGE))
    [decision] = [d for d in found.decisions if d.item.tool]
    assert str(decision.reason) == "gate_closed: tokens: 103 tokens <= 99,999 tokens"
    assert decision.rule == "steps.s.when.tokens.over"
