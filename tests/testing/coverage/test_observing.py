"""Which sides of a policy's rules one call makes decide."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from policyctx.policy.sources import PolicySource
from policyctx.testing.contents import pieces
from policyctx.testing.observing import CoverageRule, decided_sides, rules_of
from policyctx.testing.world import World

HEAD = "apiVersion: policyctx/v1\nname: x\nplaceholder: '[x]'\nitems: {tool_result: "
PLAIN = HEAD + "{offload: true}}\n"
STEP = "steps: [{name: s, do: offload"
LARGE, SMALL = "a Bash result of 300 characters", "a Bash result of 50 characters"
OTHER, FAILED = "a Grep result of 300 characters", "a failed Bash result of 300 characters"
USER, TINY = "a user message of 300 characters", 'a Bash result that reads "x"'
SAID = "an assistant message of 300 characters"


class Case(NamedTuple):
    """A side, a policy with its rule, a context that makes it decide, and one that does not."""

    rule: str
    side: str
    policy: str
    decides: tuple[str, ...]
    does_not: tuple[str, ...]


def selecting(select: str, head: str = PLAIN) -> str:
    return f"{head}{STEP}, select: {{{select}}}}}]\n"


def recent(batches: str) -> str:
    return selecting(f"keep_recent: {{items: 1, batches: {batches}}}, min_chars: 100")


RECENT = selecting("keep_recent: 1, min_chars: 100")
BATCHES, PARALLEL = (
    "steps.s.select.keep_recent.batches",
    "2 parallel Bash results of 300 characters",
)
ORDERED = selecting("order: largest, until: {tokens: {under: 200}}")
GATED = PLAIN + STEP + ", when: {messages: {at_least: 3}}}]\n"
ANY = PLAIN + STEP + ", when: [{messages: {at_least: 3}}, {turns: {over: 1}}]}]\n"
EXCERPT = "{offload: true, placeholder: {text: '{head}', head: {chars: 9}, line_numbers: true}}}\n"
WEB = HEAD + "{offload: true}, web: {match: {type: tool_result, tool: Grep}}}\n" + STEP + "}]\n"
REDACTING = f"{PLAIN}redact: {{'a b': {{pattern: '^x$', keep: true}}}}\n{STEP}}}]\n"
CALLS = f"{PLAIN[:-2]}, tool_call: {{offload: true}}}}\n"

CASES = [
    Case("min_chars", "above", f"{PLAIN}min_chars: 100\n{STEP}}}]\n", (LARGE,), (SMALL,)),
    Case("min_chars", "below", f"{PLAIN}min_chars: 100\n{STEP}}}]\n", (SMALL,), (LARGE,)),
    Case("steps.s", "took", selecting("min_chars: 100"), (LARGE,), (SMALL,)),
    Case("steps.s", "left", selecting("min_chars: 100"), (SMALL,), (LARGE,)),
    Case("steps.s.select.min_chars", "above", selecting("min_chars: 100"), (LARGE,), (USER,)),
    Case("steps.s.select.keep_recent", "recent", RECENT, (LARGE,), (SMALL,)),
    Case("steps.s.select.keep_recent", "old", RECENT, (LARGE, LARGE), (SMALL, LARGE)),
    Case("steps.s.select.min_chars", "below", RECENT, (SMALL, LARGE), (LARGE, SMALL)),
    Case(
        "steps.s.select.keep_recent.of",
        "older",
        selecting("keep_recent: {turns: 1, of: candidates}"),
        (USER, LARGE, USER),
        (USER, LARGE),
    ),
    Case(
        "steps.s.select.keep_recent.of",
        "older",
        selecting("keep_recent: {replies: 1, of: candidates}"),
        (LARGE, SAID, USER),
        (USER, LARGE),
    ),
    Case(
        "steps.s.select.unit",
        "along",
        selecting("types: [tool_result], unit: turn").replace("do: offload", "do: drop"),
        (USER, LARGE, USER),
        (USER, USER),
    ),
    Case("redact.a b", "redacted", REDACTING, (TINY,), (USER,)),
    Case(BATCHES, "split", recent("split"), (PARALLEL,), (LARGE, LARGE)),
    Case(BATCHES, "together", recent("whole"), (PARALLEL,), (LARGE, LARGE)),
    Case("steps.s.when.messages.at_least", "opened", GATED, (LARGE, LARGE), (LARGE,)),
    Case("steps.s.when.messages.at_least", "closed", GATED, (LARGE,), (LARGE, LARGE)),
    Case("steps.s.when.0.messages.at_least", "opened", ANY, (LARGE, LARGE), (LARGE,)),
    Case("steps.s.when.1.turns.over", "opened", ANY, (USER, USER), (USER,)),
    Case("items.tool_result.offload", "allowed", f"{PLAIN}{STEP}}}]\n", (LARGE,), (USER,)),
    Case(
        "items.tool_result.offload",
        "refused",
        f"{HEAD}{{offload: false}}}}\n{STEP}}}]\n",
        (LARGE,),
        (USER,),
    ),
    Case(
        "tools.Bash.offload",
        "refused",
        f"{PLAIN}tools: {{Bash: {{offload: false}}}}\n{STEP}}}]\n",
        (LARGE,),
        (OTHER,),
    ),
    Case(
        "tools.B*.pin",
        "pinned",
        f"{PLAIN}tools: {{'B*': {{pin: true}}}}\n{STEP}}}]\n",
        (LARGE,),
        (OTHER,),
    ),
    Case(
        "tools.Bash.pin",
        "not pinned",
        f"{HEAD}{{offload: true, pin: true}}}}\ntools: {{Bash: {{pin: false}}}}\n{STEP}}}]\n",
        (LARGE,),
        (OTHER,),
    ),
    Case("items.web.match", "matched", WEB, (OTHER,), (LARGE,)),
    Case(
        "steps.s.select.types.tool_result",
        "selected",
        selecting("types: [tool_result, user_message]"),
        (SMALL,),
        (USER,),
    ),
    Case("steps.s.select.tools.Ba*", "selected", selecting("tools: ['Ba*']"), (LARGE,), (OTHER,)),
    Case(
        "steps.s.select.except_tools.Bash",
        "excepted",
        selecting("except_tools: [Bash]"),
        (LARGE,),
        (OTHER,),
    ),
    Case("steps.s.select.errors", "left", selecting("errors: false"), (FAILED,), (LARGE,)),
    Case(
        "steps.s.select.ephemeral",
        "others",
        selecting("ephemeral: true", f"{PLAIN}tools: {{Bash: {{keep_recent: 1}}}}\n"),
        (OTHER,),
        (LARGE, LARGE),
    ),
    Case(
        "steps.s.select.ephemeral",
        "ephemeral",
        selecting("ephemeral: true", f"{PLAIN}tools: {{Bash: {{keep_recent: 1}}}}\n"),
        (LARGE, LARGE),
        (OTHER,),
    ),
    Case("steps.s.select.until", "reached", ORDERED, (LARGE,) * 3, (LARGE, USER, USER)),
    Case("steps.s.select.until", "not reached", ORDERED, (LARGE, USER, USER), (LARGE,) * 3),
    Case("steps.s.select.order", "chose", ORDERED, (LARGE,) * 3, (LARGE, USER, USER)),
    Case(
        "steps.s.must_shrink",
        "would not shrink",
        f"{PLAIN}{STEP}, must_shrink: true}}]\n",
        (TINY,),
        (LARGE,),
    ),
    Case(
        "steps.s.must_shrink", "shrank", f"{PLAIN}{STEP}, must_shrink: true}}]\n", (LARGE,), (TINY,)
    ),
    Case(
        "steps.s.must_shrink", "took", f"{PLAIN}{STEP}, must_shrink: false}}]\n", (TINY,), (USER,)
    ),
    Case("placeholder", "used", f"{PLAIN}{STEP}}}]\n", (LARGE,), (USER,)),
    Case(
        "steps.s.placeholder", "used", f"{PLAIN}{STEP}, placeholder: '[y]'}}]\n", (LARGE,), (USER,)
    ),
    Case("items.tool_result.placeholder.head", "used", f"{HEAD}{EXCERPT}{STEP}}}]\n", (LARGE,), ()),
    Case(
        "store.escape",
        "escaped",
        f"{PLAIN}store: {{escape: _}}\n{STEP}}}]\n",
        ('a result "a/b" of 300 characters from Bash',),
        (LARGE,),
    ),
    Case("store.path", "saved", f"{PLAIN}store: {{path: a.md}}\n{STEP}}}]\n", (LARGE,), (USER,)),
    Case(
        "store.on_conflict",
        "taken",
        f"{PLAIN}store: {{path: a.md, on_conflict: suffix}}\n{STEP}}}]\n",
        (LARGE, LARGE),
        (LARGE,),
    ),
]


def decided(folder: Path, case: Case, phrases: tuple[str, ...]) -> bool:
    world = World(folder, folders=[folder])
    world.use_policy(PolicySource("x.yaml", case.policy))
    for phrase in phrases:
        world.add(world.conversation.messages(pieces(phrase)))
    world.plan()
    [plan] = [turn.plan for turn in world.turns]
    assert plan is not None
    assert world.policy.tree is not None
    [rule] = [r for r in rules_of(world.policy.tree) if ".".join(r.path) == case.rule]
    assert case.side in rule.sides
    return (rule.path, case.side) in decided_sides(plan)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule} {case.side}")
def test_a_side_is_seen_where_it_decides_and_nowhere_else(tmp_path: Path, case: Case) -> None:
    assert decided(tmp_path, case, case.decides)
    assert not decided(tmp_path, case, case.does_not)


WITH_INPUT = f"{CALLS}{STEP}, select: {{types: [tool_result], with_input: true}}}}]\n"


@pytest.mark.parametrize(("words", "is_shortened"), [(100, True), (1, False)])
def test_an_input_that_goes_along_is_seen(
    tmp_path: Path, words: int, *, is_shortened: bool
) -> None:
    world = World(tmp_path, folders=[])
    world.use_policy(PolicySource("x.yaml", WITH_INPUT))
    results = world.conversation.results(pieces('a result "c" of 90 characters'))
    call = world.conversation.call([("c", "Write")], {"text": "word " * words})
    world.add([call, *world.conversation.answers(results)])
    world.plan()
    plan = world.last.plan
    assert plan is not None
    rule = ("steps", "s", "select", "with_input")
    assert ((rule, "shortened") in decided_sides(plan)) == is_shortened


def rules(folder: Path, text: str) -> tuple[CoverageRule, ...]:
    world = World(folder, folders=[])
    world.use_policy(PolicySource("x.yaml", text))
    assert world.policy.tree is not None
    return rules_of(world.policy.tree)


def test_keys_that_decide_nothing_by_themselves_are_no_rules(tmp_path: Path) -> None:
    text = f"{PLAIN}model: {{context_window: 9}}\nstore: {{mode: '0600'}}\n"
    text += f"{STEP}, select: {{errors: true, ephemeral: false, order: largest}}}}]\n"
    names = [".".join(rule.path) for rule in rules(tmp_path, text)]
    assert names == ["placeholder", "items.tool_result.offload", "steps.s"]


@pytest.mark.parametrize(
    ("key", "sides"),
    [
        ("min_tokens: 0", ("above",)),
        ("keep_recent: 0", ("old",)),
        ("keep_recent: {turns: 0}", ("old",)),
        ("keep_recent: {turns: 2}", ("recent", "old")),
    ],
)
def test_a_rule_that_can_decide_one_way_has_one_side(
    tmp_path: Path, key: str, sides: tuple[str, ...]
) -> None:
    [rule] = [r for r in rules(tmp_path, selecting(key)) if r.path[2:3] == ("select",)]
    assert rule.sides == sides
