from __future__ import annotations

from dataclasses import replace

import pytest

from tests.conversations import calls, results, session_of, user
from tests.planning.plans import FACTS, planner, read_more

LARGE = "x" * 400
TEXT = """\
items: {tool_result: {offload: true}, user_message: {offload: true}}
tools: {Read: {pin: true}, Bash: {keep_recent: 1}}
min_chars: 100
steps:
  - name: s
    do: offload
    select: {types: [tool_result, user_message], except_tools: [Grep]}
"""


def test_ready_items_are_those_that_the_order_of_evaluation_takes() -> None:
    tools = ("Bash", "Bash", "Read", "Grep", "Glob", "Glob", "Bash")
    sizes = (400, 50, 400, 400, 400, 50, 400)
    found = planner(TEXT, [])
    read_more(found, [user(LARGE)])
    for number, (tool, size) in enumerate(zip(tools, sizes, strict=True)):
        message = [calls((f"c{number}", tool)), results((f"c{number}", "x" * size))]
        read_more(found, message)
        plan = found.plan(FACTS)
        candidates = plan.candidates["s"]
        verdicts = {
            i: candidates.verdict(i, plan.at, plan.conversation.fates.get)
            for i in range(plan.at.items)
        }
        taken = {i for i, verdict in verdicts.items() if verdict is not None and verdict.taken}
        assert set(candidates.ready) == taken
    assert {plan.items[i].item_id for i in taken} == {"c0", "c4"}


@pytest.mark.parametrize(
    ("tool", "text", "code"),
    [
        ("Bash", "x", "recent"),
        ("Read", "x", "pinned"),
        ("Grep", "x", "excluded_tool"),
        ("Glob", "x", "below_threshold"),
    ],
)
def test_the_first_obstacle_in_the_order_is_reported(tool: str, text: str, code: str) -> None:
    found = planner(TEXT, [user("go"), calls(("a", tool)), results(("a", text))])
    [verdict] = found.plan(FACTS).verdicts(2)
    assert (verdict.taken, verdict.reason.code) == (False, code)


def test_a_plan_explains_itself_after_the_conversation_has_grown() -> None:
    found = planner(TEXT, session_of(LARGE))
    plan = found.plan(replace(FACTS, session_id="t"))
    before = plan.verdicts(2)
    read_more(found, [calls(("z", "Bash")), results(("z", LARGE))])
    found.plan(FACTS)
    assert plan.verdicts(2) == before
