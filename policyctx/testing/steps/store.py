"""When the store is looked after; then: what the session and its store tell of items."""

import re
import time
from datetime import UTC, datetime
from pathlib import Path

from policyctx.errors import StoreError, present
from policyctx.messages.editing import block_of
from policyctx.paths import File
from policyctx.testing.contents import compact
from policyctx.testing.failures import OutcomeError
from policyctx.testing.selecting import Fate
from policyctx.testing.step_definitions import then, when
from policyctx.testing.world import World
from policyctx.turns.result import ContextItem


@when("the store is collected")
def _(policyctx_world: World) -> None:
    """What the policy's `store.retention` lets go of goes, and what no placeholder names is
    compressed, as by `policyctx store gc`.
    """
    policyctx_world.require_no_error()
    policyctx_world.begin()
    limits = policyctx_world.policy.store.retention
    age = limits.max_age.seconds if limits and limits.max_age else None
    size = limits.max_bytes.bytes if limits and limits.max_bytes else None
    number = limits.max_contents if limits else None
    policyctx_world.store.collect(max_age=age, max_bytes=size, max_contents=number)


@then(
    "the session's id matches {pattern:text}",
    'the session\'s id matches "session_[0-9]{8}_[0-9]{6}_[a-z0-9]{6}"',
)
def _(policyctx_world: World, pattern: str) -> None:
    """The whole id, by a regular expression."""
    found = policyctx_world.session.session_id
    if re.fullmatch(pattern, found) is None:
        raise OutcomeError(pattern, found)


@then("the session's id has the time to the second")
def _(policyctx_world: World) -> None:
    """The first date and time in the id, `20240115_103045`, are those of now, in UTC."""
    found = policyctx_world.session.session_id
    digits = re.search(r"[0-9]{8}_[0-9]{6}", found)
    began, now = int(policyctx_world.began), time.time()
    if digits is not None:
        named = datetime.strptime(digits[0], "%Y%m%d_%H%M%S").replace(tzinfo=UTC)
        if began <= named.timestamp() <= now:
            return
    raise OutcomeError(f"a time from {began} to {now:.0f}", found)


@then(
    "{items:items} (is|are) listed as {state=offloaded|destroyed|kept}",
    'the result "a" is listed as offloaded',
    "every user message is listed as kept",
)
def _(policyctx_world: World, items: str, state: str) -> None:
    """What `Session.items` says. Offloaded: with the absolute path of its file, which is there.
    Destroyed: its content is not in the context any more. Kept: neither.
    """
    for fate in policyctx_world.fates_of(items):
        listed = [
            one
            for one in policyctx_world.session.items
            if (one.item_id, one.type) == (fate.item.item_id, fate.item.type)
        ]
        if not any(_is_so(one, state, policyctx_world, fate) for one in listed):
            found = "\n".join(map(str, listed)) or "not listed"
            raise OutcomeError(f"listed as {state}", found, [fate])


def _is_so(one: ContextItem, state: str, world: World, fate: Fate) -> bool:
    if state == "destroyed":
        return one.destroyed
    if state == "kept":
        return not (one.destroyed or one.offloaded or one.offload_path)
    path = one.offload_path or ""
    is_there = Path(path).is_absolute() and Path(path).is_file()
    return one.offloaded and is_there and path == _file_of(world, fate).path


@then(
    "{items:items} can be read back",
    'the result "a" can be read back',
    "every offloaded item can be read back",
)
def _(policyctx_world: World, items: str) -> None:
    """The store hands out the original text, by the file's path and by the item's id, compressed
    or not. The id of a call is that of its result; one that several items have is not asked for.
    """
    for fate in policyctx_world.fates_of(items):
        saved, _ = policyctx_world.saved(fate)
        key = saved.item.item_id
        is_own = sum(one.item.item_id == key for one in saved.turn.fates) == 1
        ids = [key] if is_own and saved.item.kind != "tool_call" else []
        for key in (_file_of(policyctx_world, fate).path, *ids):
            try:
                found = policyctx_world.store.read(key)
            except StoreError as error:
                raise OutcomeError("its text", str(error), [fate]) from error
            if found != saved.item.text:
                raise OutcomeError(repr(saved.item.text), repr(found), [fate])


@then("{items:items} can be restored", 'the result "a" can be restored')
def _(policyctx_world: World, items: str) -> None:
    """`ContextFileSystem.restore` returns the original block, or message, ready to go back."""
    for fate in policyctx_world.fates_of(items):
        saved, _ = policyctx_world.saved(fate)
        original = block_of(saved.turn.before[saved.item.message], saved.item)
        try:
            found = policyctx_world.store.restore(_file_of(policyctx_world, fate).path)
        except StoreError as error:
            raise OutcomeError(compact(original), str(error), [fate]) from error
        if found != original:
            raise OutcomeError(compact(original), compact(found), [fate])


@then(
    "the history tells that {items:items} (was|were) {what=saved|packed|removed}",
    'the history tells that the result "a" was saved',
)
def _(policyctx_world: World, items: str, what: str) -> None:
    """What `policyctx store history` shows of the item's file."""
    events = policyctx_world.store.history()
    for fate in policyctx_world.fates_of(items):
        path = _file_of(policyctx_world, fate).relative_path
        found = [event.what for event in events if event.path == path]
        if what not in found:
            raise OutcomeError(what, ", ".join(found) or "nothing", [fate])


def _file_of(world: World, fate: Fate) -> File:
    _, decision = world.saved(fate)
    return present(decision.file)
