"""Then: which files there are and what is in them; what the session and its store report."""

import json
import os
import re
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from policyctx.errors import StoreError
from policyctx.messages.editing import block_of
from policyctx.store.content import PACKED
from policyctx.store.files import unpacked
from policyctx.testing.contents import compact
from policyctx.testing.failures import OutcomeError
from policyctx.testing.kinds import BOUND, Amount, amount
from policyctx.testing.selecting import Fate
from policyctx.testing.step_definitions import filled, like, then, when
from policyctx.testing.tables import Table, pairs_in
from policyctx.testing.world import World
from policyctx.turns.result import ContextItem


@then("{amount:amount} file(s) (is|are) written", "2 files are written", "no file is written")
def _(policyctx_world: World, amount: Amount) -> None:
    """How many files the scenario's events have saved below the root folder, the store's own apart;
    with `no`, nothing is saved at all.
    """
    policyctx_world.require_event()
    world = policyctx_world
    written = world.written if amount.number else world.all_written
    if not amount.holds_for(len(written)):
        found = f"{len(written)}: {', '.join(written)}" if written else "none"
        raise OutcomeError(f"{amount} written", found, world.fates if world.turns else ())


@then("no folder is made")
def _(policyctx_world: World) -> None:
    """The root folder does not exist."""
    policyctx_world.require_event()
    if policyctx_world.root.exists():
        raise OutcomeError("no root folder", str(policyctx_world.root))


@then("only their owner may read the files")
def _(policyctx_world: World) -> None:
    """The root folder and all below it are for their owner alone."""
    policyctx_world.require_event()
    root = policyctx_world.root
    for path in (root, *sorted(root.rglob("*"))):
        mode = path.stat().st_mode & 0o777
        if mode & 0o077:
            raise OutcomeError(f"{path.relative_to(root.parent)} for its owner", f"{mode:o}")


@then(
    "({only=only} )the file(s) {names:names} (is|are) written( by the {by=writer})",
    'the file "tool-result-a.md" is written',
    'only the files "tool-result-a.md" and "tool-result-a-1.md" are written',
    'the file "tool-result-a.md" is written by the writer',
)
def _(policyctx_world: World, names: tuple[str, ...], only: str = "", by: str = "") -> None:
    """By the scenario's events, below the root folder; `by the writer`, through the writer that a
    step gave a function.
    """
    world = policyctx_world
    paths = (Path(path) for path in world.paths_of_writer)
    by_writer = {path.relative_to(world.root.absolute()).as_posix() for path in paths}
    written = by_writer if by else set(world.written)
    missing = set(names) - written
    others = written - set(names) if only else set()
    if missing or others:
        raise OutcomeError(", ".join(names), ", ".join(sorted(written)) or "no file")


@then("the file(s) {names:names} (is|are) gone", 'the file "tool_result/Bash/a.md" is gone')
def _(policyctx_world: World, names: tuple[str, ...]) -> None:
    """They are not below the root folder, though the scenario's events saved them."""
    saved = policyctx_world.seen_files | {
        decision.file.relative_path
        for turn in policyctx_world.turns
        for decision in (turn.plan.to_save if turn.plan else ())
        if decision.file is not None
    }
    for name in names:
        if name not in saved:
            raise OutcomeError(f"{name} saved once", ", ".join(sorted(saved)) or "no file")
        if (policyctx_world.root / name).exists():
            raise OutcomeError(f"no file {name}", "it is there")


@then(
    "the root folder holds only the file(s) {names:names}",
    'the root folder holds only the file "tool-result-a.md"',
)
def _(policyctx_world: World, names: tuple[str, ...]) -> None:
    """The store's own files and older ones count too."""
    found = policyctx_world.all_files()
    if found != sorted(names):
        raise OutcomeError(", ".join(sorted(names)), ", ".join(found) or "no file")


@then(
    "the result (reports|lists) the file(s) {names:names}",
    'the result reports the file "tool-result-a.md"',
    'the result lists the files "tool-result-a.md" and "tool-result-b.md"',
)
def _(policyctx_world: World, names: tuple[str, ...]) -> None:
    """`Result.files`, in this order: absolute paths, those given below the root."""
    found = policyctx_world.outcome.files
    root = policyctx_world.root.absolute().as_posix()
    expected = [filled(policyctx_world, name) for name in names]
    if [Path(path).as_posix() for path in found] != [f"{root}/{name}" for name in expected]:
        raise OutcomeError(", ".join(expected), ", ".join(found) or "no file")
    if missing := [path for path in found if not Path(path).is_file()]:
        raise OutcomeError(f"the file {missing[0]}", "no such file")


@then(
    "the file {name:text} (reads {text:text}|reads as follows|contains {part:text})",
    'the file "tool_result/Bash/a.md" reads "exit code 0"',
    'the file "tool_result/Bash/a.json" contains "Größe"',
    'the file "tool_result/Bash/a.md" reads as follows\n"""\nexit code 0\n"""',
)
def _(
    policyctx_world: World,
    name: str,
    text: str | None = None,
    part: str | None = None,
    docstring: str | None = None,
) -> None:
    """The exact text of a file below the root folder, whatever its format, compressed or not."""
    expected = docstring if text is None else text
    found = _content(policyctx_world, name)
    if found != expected if part is None else part not in found:
        raise OutcomeError(repr(expected if part is None else part), repr(found))


@then(
    "the file {name:text} is JSON with",
    'the file "tool_result/Bash/a.json" is JSON with\n| item_type | tool_result |\n'
    "| metadata.tool_name | Bash |\n| offloaded_at | over 1,700,000,000 |",
)
def _(policyctx_world: World, name: str, datatable: Table) -> None:
    """Each value after its key; a dot leads into a map. `*` is anything that is there. A bound such
    as `over 100` holds for a number alone, `a whole number` for one without a fraction.
    """
    document = json.loads(_content(policyctx_world, name))
    for key, expected in pairs_in(datatable):
        found: Any = document
        for part in key.split("."):
            if not isinstance(found, dict) or part not in found:
                raise OutcomeError(f"{key}: {expected}", f"no {key} in {compact(document)}")
            found = found[part]
        shown = found if isinstance(found, str) else compact(found)
        if not _is_so(found, expected):
            raise OutcomeError(f"{key}: {expected}", f"{key}: {shown}")


def _is_so(found: object, expected: str) -> bool:
    if expected == "a whole number":
        return isinstance(found, int) and not isinstance(found, bool)
    if re.fullmatch(BOUND, expected) is None or isinstance(found, str | bool):
        return like(expected, found if isinstance(found, str) else compact(found))
    return isinstance(found, int | float) and amount(expected).holds_for(found)


@then(
    "the file {name:text} holds the original content of {item:items}",
    'the file "tool-result-a.md" holds the original content of the result "a"',
)
def _(policyctx_world: World, name: str, item: str) -> None:
    """A text as it was, the texts of blocks, or by the policy their JSON; in an envelope, its
    `content`.
    """
    for _, saved, _ in policyctx_world.saved_of(item):
        _require_original(saved, _content(policyctx_world, name))


@then(
    "the file of {items:items} holds its original content",
    'the file of the result "a" holds its original content',
    "the file of every offloaded item holds its original content",
)
def _(policyctx_world: World, items: str) -> None:
    """The same, read back through the session as well."""
    world = policyctx_world
    for _, saved, file in world.saved_of(items):
        _require_original(saved, Path(file.path).read_bytes().decode("utf-8", "surrogatepass"))
        _require_original(saved, world.session.read(file.path))


@then(
    "the file of {item:items} is {pattern:text}",
    'the file of the result "a" is "session-abc123/a.md"',
    'the file of the result "a" is "{root}/tool_result/Bash/*.md"',
)
def _(policyctx_world: World, item: str, pattern: str) -> None:
    """Below the root folder, or with `{root}` the whole path. `*` is anything; `{session_id}` is
    the session's.
    """
    for fate, _, file in policyctx_world.saved_of(item):
        path = Path(file.path).as_posix() if "{root}" in pattern else file.relative_path
        wanted = filled(policyctx_world, pattern)
        if not like(wanted, path) or not Path(file.path).is_file():
            raise OutcomeError(wanted, path, [fate])


@then(
    "the original of {name:text} is kept as {text:text}",
    'the original of "api_key" is kept as "sk-0123456789"',
)
def _(policyctx_world: World, name: str, text: str) -> None:
    """What `keep: true` of `redact` has saved in the journal, once."""
    records = (r for r in policyctx_world.store.records() if r.get("record") == "redacted")
    kept = [f"{record['name']}: {record['text']}" for record in records]
    if kept != [f"{name}: {text}"]:
        raise OutcomeError(f"{name}: {text}", ", ".join(kept) or "none")


@then("the paths of the files are absolute")
def _(policyctx_world: World) -> None:
    """Those in `Result.files`: one at least, and each is a file."""
    files = policyctx_world.outcome.files
    if not files:
        raise OutcomeError("files", "none", policyctx_world.fates)
    for path in files:
        if not Path(path).is_absolute() or not Path(path).is_file():
            raise OutcomeError("an absolute path of a file", path)


@then("every file is below the root folder")
def _(policyctx_world: World) -> None:
    """Nothing was written beside it, whatever the ids and names; there is one file at least."""
    world = policyctx_world
    own = (world.root.resolve(), world.work.resolve())
    files = [(path, path.resolve()) for path in _files(world.home)]
    beside = [path for path, real in files if not any(map(real.is_relative_to, own))]
    if beside or not world.written:
        raise OutcomeError(f"files below {own[0]}", ", ".join(map(str, beside)) or "no file")


def _files(folder: Path) -> list[Path]:
    return [Path(at) / name for at, _, names in os.walk(folder) for name in names]


def _content(world: World, name: str) -> str:
    path = world.root / filled(world, name)
    if not path.is_file():
        raise OutcomeError(f"the file {name}", ", ".join(world.all_files()) or "no file")
    return bytes_of(path).decode("utf-8", "surrogatepass")


def bytes_of(path: Path) -> bytes:
    """Return the bytes of a file, without compression."""
    raw = path.read_bytes()
    return unpacked(raw) if path.suffix == PACKED else raw


def _require_original(fate: Fate, found: str) -> None:
    expected = fate.original_text
    if found not in {expected, _enveloped(found, fate)}:
        raise OutcomeError(repr(expected), repr(found), [fate])


def _enveloped(found: str, fate: Fate) -> str | None:
    """The text itself, where it is an envelope with the original in it."""
    try:
        document = json.loads(found)
    except ValueError:
        return None
    is_envelope = isinstance(document, dict) and "schema_version" in document
    if not is_envelope:
        return None
    return found if document.get("content") in (fate.original, fate.original_text) else None


@when("the store is collected")
def _(policyctx_world: World) -> None:
    """As by `policyctx store gc`: what `store.retention` does not keep goes, and what no
    placeholder names is compressed.
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
    """The first date and time in the id, as in `20240115_103045`, are now, in UTC."""
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
    """By `Session.items`. Offloaded: the absolute path is of a file. Destroyed: the content is not
    in the context any more. Kept: neither.
    """
    for fate in policyctx_world.fates_of(items):
        listed = [
            one
            for one in policyctx_world.session.items
            if (one.item_id, one.type) == (fate.item.item_id, fate.item.type)
        ]
        if not any(_is_listed(one, state, policyctx_world, fate) for one in listed):
            found = "\n".join(map(str, listed)) or "not listed"
            raise OutcomeError(f"listed as {state}", found, [fate])


def _is_listed(one: ContextItem, state: str, world: World, fate: Fate) -> bool:
    if state == "destroyed":
        return one.destroyed
    if state == "kept":
        return not (one.destroyed or one.offloaded or one.offload_path)
    path = one.offload_path or ""
    is_there = Path(path).is_absolute() and Path(path).is_file()
    return one.offloaded and is_there and path == world.saved(fate)[1].path


@then(
    "{items:items} can be read back",
    'the result "a" can be read back',
    "every offloaded item can be read back",
)
def _(policyctx_world: World, items: str) -> None:
    """The original text, by the file's path and by the item's id, compressed or not."""
    for fate, saved, file in policyctx_world.saved_of(items):
        key = saved.item.item_id
        is_own = sum(one.item.item_id == key for one in saved.turn.fates) == 1
        ids = [key] if is_own and saved.item.kind != "tool_call" else []
        for key in (file.path, *ids):
            try:
                found = policyctx_world.store.read(key)
            except StoreError as error:
                raise OutcomeError("its text", str(error), [fate]) from error
            if found != saved.item.text:
                raise OutcomeError(repr(saved.item.text), repr(found), [fate])


@then("{items:items} can be restored", 'the result "a" can be restored')
def _(policyctx_world: World, items: str) -> None:
    """`ContextFileSystem.restore` returns the original block or message."""
    for fate, saved, file in policyctx_world.saved_of(items):
        original = block_of(saved.turn.before[saved.item.message], saved.item)
        try:
            found = policyctx_world.store.restore(file.path)
        except StoreError as error:
            raise OutcomeError(compact(original), str(error), [fate]) from error
        if found != original:
            raise OutcomeError(compact(original), compact(found), [fate])


@then(
    "the history tells that {items:items} (was|were) {what=saved|packed|removed}",
    'the history tells that the result "a" was saved',
)
def _(policyctx_world: World, items: str, what: str) -> None:
    """As in `policyctx store history`."""
    events = policyctx_world.store.history()
    for fate, _, file in policyctx_world.saved_of(items):
        found = [event.what for event in events if event.path == file.relative_path]
        if what not in found:
            raise OutcomeError(what, ", ".join(found) or "nothing", [fate])
