"""Then: what became of items and why, and what the message list is like."""

import json
from itertools import pairwise

from policyctx.definitions.actions import BY_STATE
from policyctx.messages.markers import unmarked
from policyctx.testing.contents import compact, parts_of
from policyctx.testing.failures import OutcomeError, WordingError
from policyctx.testing.kinds import Amount
from policyctx.testing.selecting import Fate, TurnEvent
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
    """What stays or leaves, as of the last model call and what arrived since; `newly`: in the last
    event. A `kept` item is still there; an offloaded or cleared one has its placeholder in the
    messages; a dropped or summarised one is not in them. A reason is its code or its words, as in
    `policyctx plan`.
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
    why = None if fate.decision is None else fate.decision.reason
    return why is not None and (reason in (why.code, str(why)) or reason in why.sentence)


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
    """What a model sees in its place: its placeholder or its text, such as of the summary. A text
    contains "x" if it reads like "*x*"; `*` stands for anything. `{path}`, `{relative_path}` and
    `{cwd_path}` stand for the item's file, `{root}` for the root folder, `{session_id}` for the
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
    """In the edited messages."""
    for fate in policyctx_world.fates_of(items):
        seen = policyctx_world.text_now(fate)
        if not isinstance(seen, str if form == "a string" else list):
            raise OutcomeError(form, type(seen).__name__, [fate])


def shared_parts(one: object, other: object) -> list[object]:
    """Return the maps and lists in `one` that are in `other` as well, as the same objects."""
    known = {id(part) for part in parts_of(other)}
    found = (part for part in parts_of(one) if isinstance(part, dict | list))
    return [part for part in found if id(part) in known]


@then("the same list is returned")
def _(policyctx_world: World) -> None:
    """Not a copy."""
    turn = policyctx_world.last
    if turn.kind == "arrival":
        raise WordingError("what arrives is no list; say `unchanged messages are the same objects`")
    if turn.messages is not turn.given:
        raise OutcomeError("the list that was given", "another one", turn.fates)


@then("the input is not changed")
def _(policyctx_world: World) -> None:
    """The given list, and all in it, is as it was; also after an error."""
    policyctx_world.require_event()
    for turn in policyctx_world.turns:
        if list(turn.given) != list(turn.before):
            raise OutcomeError(compact(turn.before), compact(turn.given), turn.fates)


@then(
    "{items:items} (is the same object|are the same objects) as before",
    'the result "b" is the same object as before',
    "messages 1 to 3 are the same objects as before",
)
def _(policyctx_world: World, items: str) -> None:
    """Their messages are not copies."""
    for fate in policyctx_world.fates_of(items):
        index = fate.item.message
        if not any(new is fate.turn.given[index] for new in fate.turn.messages):
            raise OutcomeError(f"message {index + 1} to be the object given", "a copy", [fate])


@then(
    "a cache breakpoint stands right before {items:items}",
    'a cache breakpoint stands right before the result "b"',
)
def _(policyctx_world: World, items: str) -> None:
    """A cache marker is on the block before each."""
    for fate in policyctx_world.fates_of(items):
        turn = fate.turn
        if turn.result is None:
            raise WordingError("only a model call has cache breakpoints")
        places = {one.place for one in turn.result.breakpoints if one.part == "messages"}
        if turn.result.plan.items.index(fate.item) - 1 not in places:
            found = ", ".join(one.item or one.part for one in turn.result.breakpoints)
            raise OutcomeError(f"a breakpoint before {fate.item.item_id}", found or "none", [fate])


@then("unchanged messages are the same objects")
def _(policyctx_world: World) -> None:
    """No message that a model sees as it was given is a copy."""
    turn = policyctx_world.last
    objects = {id(message) for message in turn.given}
    copies = [new for new in turn.messages if id(new) not in objects and new in turn.before]
    if copies:
        raise OutcomeError("the objects that were given", f"a copy of {compact(copies[0])}")


@then("changed messages are deep copies")
def _(policyctx_world: World) -> None:
    """At least one message changed, and none shares with the input what may change later."""
    turn = policyctx_world.last
    objects = {id(message) for message in turn.given}
    changed = [message for message in turn.messages if id(message) not in objects]
    if not changed:
        raise OutcomeError("a changed message", "none", turn.fates)
    for message in changed:
        if shared := shared_parts(message, list(turn.given)):
            raise OutcomeError("a deep copy", f"a part of the input in it: {compact(shared[0])}")


@then("the messages are", 'the messages are\n"""\n[{"role": "user", "content": "hello"}]\n"""')
def _(policyctx_world: World, docstring: str) -> None:
    """The edited messages, as JSON; the fields `{root}` and `{session_id}` are filled in."""
    expected = json.loads(filled(policyctx_world, docstring))
    seen = policyctx_world.last.messages
    if list(seen) != expected:
        raise OutcomeError(_pretty(expected), _pretty(list(seen)), policyctx_world.fates)


def _pretty(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1)


@then(
    "the context has {amount:amount} {unit=tokens|messages|characters}",
    "the context has under 2,000 tokens",
    "the context has 3 messages",
)
def _(policyctx_world: World, amount: Amount, unit: str) -> None:
    """What a model call would carry, or how full it is: tokens with the request's system prompt;
    characters of the edited messages' items.
    """
    turn = policyctx_world.last
    if unit == "messages":
        found = len(turn.messages)
    elif unit == "tokens":
        if turn.plan is None:
            raise WordingError("a function has no plan that counts tokens")
        found = turn.plan.tokens_after
    else:
        items = policyctx_world.session.plan(turn.messages).items
        found = sum(len(item.text) for item in items)
    if not amount.holds_for(found):
        raise OutcomeError(f"{amount} {unit}", f"{found:,}", policyctx_world.fates)


@then(
    "the prefix is unchanged( up to message {position:number})",
    "the prefix is unchanged",
    "the prefix is unchanged up to message 4",
)
def _(policyctx_world: World, position: int | None = None) -> None:
    """This call begins with the messages of the one before, or the first of them, byte for byte
    except `cache_control` markers, as a prompt cache needs.
    """
    before, now = _model_calls(policyctx_world)[-2:]
    count = len(before.messages) if position is None else position
    _require_same_prefix(before, now, count)


@then("in every turn the prefix is unchanged up to the first new decision")
def _(policyctx_world: World) -> None:
    """Each model call begins as the one before, except for `cache_control` markers."""
    turns = _model_calls(policyctx_world)
    for before, now in pairwise(turns):
        new = [f.item.message for f in now.fates if f.is_new and f.state != "kept"]
        _require_same_prefix(before, now, min([*new, len(before.messages)]))


def _model_calls(world: World) -> list[TurnEvent]:
    world.require_no_error()
    turns = [turn for turn in world.turns if turn.kind == "model call"]
    if len(turns) == len(turns[:1]):
        raise OutcomeError("two model calls to compare", f"{len(turns)}")
    return turns


def _require_same_prefix(before: TurnEvent, now: TurnEvent, count: int) -> None:
    old, new = before.messages[:count], now.messages[:count]
    for i, (one, other) in enumerate(zip(old, new, strict=False)):
        if compact(unmarked(one)) != compact(unmarked(other)):
            concerned = [fate for fate in now.fates if fate.item.message == i]
            raise OutcomeError(f"message {i + 1} {compact(one)}", compact(other), concerned)
    if len(old) != len(new):
        raise OutcomeError(f"{len(old)} messages before", f"{len(new)} now", now.fates)
