"""Then: what became of items, and why."""

import json

from policyctx.definitions.actions import BY_STATE
from policyctx.testing.failures import OutcomeError
from policyctx.testing.selecting import Fate
from policyctx.testing.step_definitions import filled, like, then
from policyctx.testing.world import World


@then(
    "{items:items} {verb=is|are} ({newly=newly} ){state=" + "|".join(BY_STATE) + "}"
    "( by the step {step:name})( by the rule {rule:name})( because {reason:text})",
    'the result "a" is offloaded',
    "3 results are newly offloaded",
    "nothing is offloaded",
    'only the results "a" and "b" are offloaded by the step "retire-old-results"',
    'the result "b" is kept by the rule "min_chars" because "99 < 100 chars"',
    'every Bash result is kept because "recent"',
)
def _(
    policyctx_world: World,
    items: str,
    verb: str,
    state: str,
    newly: str = "",
    step: str | None = None,
    rule: str | None = None,
    reason: str | None = None,
) -> None:
    """What became of items, as of the last model call and what arrived since. A `kept` item is
    still there, a `dropped` one is gone. `newly`: decided in that very event. A reason is its code
    or its words, as `policyctx plan` shows them; what is offloaded or cleared has its placeholder
    in the messages, and what is dropped or summarised is not in them.
    """

    def holds(fate: Fate) -> bool:
        decision = fate.decision
        return (
            fate.state == state
            and (not newly or fate.is_new)
            and (step is None or (decision is not None and decision.step == step))
            and (rule is None or (decision is not None and decision.rule == rule))
            and (reason is None or _is_because(fate, reason))
            and _is_rendered(policyctx_world, fate)
        )

    ways = (("by the step", step), ("by the rule", rule), ("because", reason))
    told = (f"{way} {name}" for way, name in ways if name is not None)
    outcome = " ".join([verb, *filter(None, [newly]), state, *told])
    policyctx_world.select(items).require(policyctx_world.fates, holds, outcome)


def _is_because(fate: Fate, reason: str) -> bool:
    if fate.decision is None:
        return False
    return reason in (fate.code, str(fate.decision.reason)) or (
        reason in fate.decision.reason.sentence
    )


def _is_rendered(world: World, fate: Fate) -> bool:
    """Does the model see what was decided: the item as it was, its placeholder, or nothing."""
    if fate.turn.result is None:
        return True
    if not BY_STATE[fate.state].keeps_place:
        if world.is_seen(fate):
            raise OutcomeError("the model to see nothing of it", repr(fate.original), [fate])
        return True
    expected = fate.original
    if fate.code != "placeholder" and fate.state != "kept":
        expected = fate.decision.placeholder if fate.decision else None
    seen = world.text_now(fate)
    is_input = fate.item.kind == "tool_call" and isinstance(expected, str)
    if is_input and not isinstance(seen, str):
        expected = json.loads(expected)  # a decision holds the JSON of an input
    if seen != expected:
        raise OutcomeError(f"the model to see {expected!r}", repr(seen), [fate])
    return True


@then(
    "{items:items} read(s) (like {pattern:text}|{text:text}|as follows)",
    'the result "a" reads "[Content offloaded to: ./tool-result-a.md]"',
    'the result "a" reads "[Tool result offloaded to file: {path}]"',
    'every Bash result reads like "[Content offloaded to: *.md]"',
    'the result "a" reads as follows\n"""\n[Content offloaded]\nPath: {path}\n"""',
)
def _(
    policyctx_world: World,
    items: str,
    text: str | None = None,
    pattern: str | None = None,
    docstring: str | None = None,
) -> None:
    """What a model sees in the item's place: its placeholder or its text, such as of the summary. A
    text contains "x" if it reads like "*x*"; `*` stands for anything. `{path}`, `{relative_path}`
    and `{cwd_path}` stand for the item's file, `{root}` for the root folder, `{session_id}` for the
    session.
    """
    expected = docstring if text is None and pattern is None else text
    for fate in policyctx_world.fates_of(items):
        seen = policyctx_world.text_now(fate)
        wanted = filled(policyctx_world, expected if pattern is None else pattern, fate)
        if not (like(wanted, seen) if pattern is not None else seen == wanted):
            raise OutcomeError(wanted, seen, [fate])


@then(
    "the content of {items:items} (is|are) {form=a string|a list of blocks}",
    'the content of the result "b" is a string',
)
def _(policyctx_world: World, items: str, form: str) -> None:
    """Which form the content has in the edited messages."""
    for fate in policyctx_world.fates_of(items):
        seen = policyctx_world.text_now(fate)
        if not isinstance(seen, str if form == "a string" else list):
            raise OutcomeError(form, type(seen).__name__, [fate])
