"""Run as a program: journals and indexes of real sessions are damaged at random, again and again.

Arguments: the number of runs, a seed. Each run copies the folder of a session, changes up to
twenty bits or bytes of its journal and its index, or takes lines out, doubles or cuts them, and
goes on with the session. Prints a line for each thing that is wrong, and how many runs there were.
"""

from __future__ import annotations

import json
import logging
import random
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from policyctx.errors import InvalidResultError, StoreError
from policyctx.session import Session
from policyctx.store.filesystem import ContextFileSystem
from tests.store import playing
from tests.store.contents import result
from tests.store.playing import FORMS, TURNS, TURNS_MADE, Clock, played, session

WRITTEN_BY_0_1 = Path(__file__).with_name("written_by_0_1")


@dataclass(frozen=True, slots=True)
class Folder:
    """A session's folder as it was left, and the texts in it."""

    path: Path
    form: str
    contents: dict[str, str]
    ids: dict[str, set[str]]
    """The texts that each id may stand for."""
    is_checked: bool
    """Has every line a checksum, as policyctx 0.1 wrote none."""


def main() -> None:
    runs, seed = int(sys.argv[1]), int(sys.argv[2])
    logging.disable()  # a store says what it found damaged
    chance = random.Random(seed)  # noqa: S311 - no secret
    kinds: Counter[str] = Counter()
    with TemporaryDirectory() as scratch:
        folders = list(made_in(Path(scratch)))
        for run in range(runs):
            folder = folders[run % len(folders)]
            root = Path(shutil.copytree(folder.path, Path(scratch) / "damaged"))
            done = damage(root, chance)
            kinds.update(kind for _, kind in done)
            for wrong in wrongs(root, folder, done):
                sys.stdout.write(f"run {run}, {folder.path.name}, {done}: {wrong}\n")
            shutil.rmtree(root)
    sys.stdout.write(json.dumps({"runs": runs, "damage": kinds}) + "\n")


def made_in(scratch: Path) -> Iterator[Folder]:
    """Yield the folders of sessions that were closed, that were not, and that 0.1 wrote."""
    for form in FORMS:
        for end in ("closed", "left"):
            root, clock = scratch / f"{form} {end}", Clock()
            one = session(form, root, clock)
            played(one, clock, range(1, TURNS_MADE + 1))
            if end == "closed":
                one.close()
            yield folder_of(root, form, one, is_checked=True)
        root = Path(shutil.copytree(WRITTEN_BY_0_1 / form, scratch / f"{form} of 0.1"))
        yield folder_of(root, form, session(form, root, Clock()), is_checked=False)


def folder_of(root: Path, form: str, one: Session, *, is_checked: bool) -> Folder:
    assert isinstance(one.store, ContextFileSystem)
    texts: dict[str, set[str]] = {}
    for entry in one.store.list():
        texts.setdefault(str(entry.item_id), set()).add(one.store.read(entry.path))
    return Folder(root, form, playing.contents_of(one.store), texts, is_checked)


def damage(root: Path, chance: random.Random) -> list[tuple[str, str]]:
    """Damage the journal, the index or both; return the name of each file and what was done."""
    [state] = (root / ".policyctx").iterdir()
    names = chance.choice([["journal.jsonl"], ["journal.jsonl"], ["index.json"], list(_FILES)])
    done = []
    for name in names:
        kind = chance.choice(list(_DAMAGE))
        path = root / name if (root / name).exists() else state / name
        path.write_bytes(_DAMAGE[kind](path.read_bytes(), chance))
        done.append((name, kind))
    return done


def wrongs(root: Path, folder: Folder, done: list[tuple[str, str]]) -> Iterator[str]:
    """Yield what is not as it should be after the damage."""
    is_changed = any(
        path.read_bytes() != (folder.path / path.relative_to(root)).read_bytes()
        for path in (*root.rglob(".policyctx/*/*.json*"), *root.glob("index.json"))
    )
    clock = Clock()
    clock.turn = TURNS_MADE
    try:
        yield from _unreadable(root, folder)
        one = session(folder.form, root, clock)
        assert isinstance(one.store, ContextFileSystem)
        list(one.store.search("line of")), one.store.verify(), one.store.history()
        warnings: list[str] = []
        for turn in range(TURNS_MADE, TURNS + 1):
            clock.turn = turn
            warnings += one.apply(playing.conversation(turn)).warnings
        if is_changed and folder.is_checked and not warnings and not _is_unseen(done):
            yield "no warning"
        one.store.save([result("after", "after")])
        one.close()
        again = session(folder.form, root, clock).store
        assert isinstance(again, ContextFileSystem)
        if again.read("after") != "after":
            yield "the session does not go on"
        if again.notices:
            yield f"not mended: {again.notices}"
        yield from _unreadable(root, folder, by_id=False)  # it may have used an id again
    except StoreError as error:
        yield f"StoreError: {error}"
    except InvalidResultError as error:
        # A digit that changed in a decision of 0.1 may part a dropped call from its result.
        if folder.is_checked:
            yield repr(error)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is wrong
        yield repr(error)


def _unreadable(root: Path, folder: Folder, *, by_id: bool = True) -> Iterator[str]:
    """Yield what does not read back. In lines of 0.1 a changed hash or path cannot be noticed."""
    store = session(folder.form, root, Clock()).store
    for path, text in folder.contents.items():
        try:
            if store.read(path) != text:
                yield f"{path} reads as another text"
        except StoreError as error:
            if folder.is_checked:
                yield f"{path}: {error}"
    for item_id, texts in folder.ids.items() if by_id else ():
        try:
            if store.read(item_id) not in texts:
                yield f"{item_id} reads as another text"
        except StoreError as error:
            if folder.is_checked:
                yield f"{item_id}: {error}"


def _is_unseen(done: list[tuple[str, str]]) -> bool:
    """Whether no reader can know: lines were cut off behind the last that an index covers."""
    return ("journal.jsonl", "cut") in done


def _flipped(content: bytes, chance: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(chance.randint(1, 20)):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _overwritten(content: bytes, chance: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(chance.randint(1, 20)):
        changed[chance.randrange(len(changed))] = chance.randrange(256)
    return bytes(changed)


def _without_lines(content: bytes, chance: random.Random) -> bytes:
    lines = content.splitlines(keepends=True)
    for _ in range(min(chance.randint(1, 5), len(lines) - 1)):
        # Without its last line a journal is what it was a moment before.
        del lines[chance.randrange(len(lines) - 1)]
    return b"".join(lines)


def _with_lines_twice(content: bytes, chance: random.Random) -> bytes:
    lines = content.splitlines(keepends=True)
    for _ in range(chance.randint(1, 5)):
        lines.insert(chance.randint(0, len(lines)), chance.choice(lines))
    return b"".join(lines)


def _cut(content: bytes, chance: random.Random) -> bytes:
    return content[: chance.randrange(len(content))]


_FILES = ("journal.jsonl", "index.json")
_DAMAGE: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "bits": _flipped,
    "bytes": _overwritten,
    "without lines": _without_lines,
    "lines twice": _with_lines_twice,
    "cut": _cut,
}


if __name__ == "__main__":
    main()
