"""Run as a program: writers of one store are killed at random moments, again and again.

Arguments: a folder, the number of runs, a seed, and after how many seconds each writer is killed at
the latest. Each run has its own store. When a writer has saved
and recorded a file, it reports the file in one write to a pipe. After the kill, every reported file
must read back. Writers also collect, as a process does whose clock is two hours ahead, and close
the store. Prints a line for each error, with its run, and then the seed and how many contents were
checked. An exception of a writer or of a check is an error too. The store of a failed run stays in
the folder.
"""

from __future__ import annotations

import json
import logging
import os
import random
import select
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from policyctx.errors import StoreError
from policyctx.store.collector import live_paths  # noqa: F401 - loaded before the writers fork
from policyctx.store.content import PACKED, Content, Origin
from policyctx.store.files import Format, text_of
from policyctx.store.filesystem import ContextFileSystem
from policyctx.store.journal import parse_lines

WRITERS = 3


def main() -> None:
    folder, runs, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    longest = float(sys.argv[4])
    chance = random.Random(seed)  # noqa: S311 - no secret
    logging.disable()  # a store says what a kill did to it
    looked_at = killed = 0
    for run in range(runs):
        root = folder / str(run)
        told, deaths, crashes = handed_out(root, run, chance, longest)
        killed += deaths
        looked_at += len(told)
        found = [*crashes, *wrongs_or_traceback(root, told, form_of(run))]
        for wrong in found:
            sys.stdout.write(f"run {run} of seed {seed}, store in {root}: {wrong}\n")
        if not found:
            shutil.rmtree(root, ignore_errors=True)
    summary = {"seed": seed, "looked_at": looked_at, "killed": killed}
    sys.stdout.write(json.dumps(summary) + "\n")


def handed_out(
    root: Path, run: int, chance: random.Random, longest: float
) -> tuple[list[list[str]], int, list[str]]:
    """Let writers write until they are killed one by one.

    Return path, id and text of each reported file, the number of kills, and the traceback of each
    writer that ended by itself.
    """
    reading, writing = os.pipe()
    writers = []
    sys.stdout.flush()
    for number in range(WRITERS):
        pid = os.fork()
        if pid == 0:
            write_until_killed(root, writing, number, run)
        writers.append(pid)
    os.close(writing)
    told = b""
    for pid in writers:
        end = time.monotonic() + chance.random() * longest
        while (left := end - time.monotonic()) > 0:
            if select.select([reading], [], [], left)[0]:
                told += os.read(reading, 1 << 20)
        os.kill(pid, signal.SIGKILL)
    ends = [os.waitpid(pid, 0)[1] for pid in writers]
    while more := os.read(reading, 1 << 20):
        told += more
    os.close(reading)
    lines = [json.loads(line) for line in told.splitlines()]
    crashes = [line["crash"] for line in lines if isinstance(line, dict)]
    killed = sum(os.WIFSIGNALED(end) for end in ends)
    if killed + len(crashes) < WRITERS:
        crashes.append(f"writers ended with the wait statuses {ends}")
    return [line for line in lines if isinstance(line, list)], killed, crashes


def write_until_killed(root: Path, pipe: int, number: int, run: int) -> NoReturn:
    """Write; report an exception through the pipe and end."""
    try:
        write_for_ever(root, pipe, number, run)
    except BaseException:  # noqa: BLE001 - whatever it is, the parent reports it
        crash = {"crash": f"writer {number}: {traceback.format_exc()[-1_500:]}"}
        os.write(pipe, f"{json.dumps(crash)}\n".encode())
    os._exit(1)


def write_for_ever(root: Path, pipe: int, number: int, run: int) -> NoReturn:
    # Some runs wait for the disk; the rest reach more moments in the same time.
    store = ContextFileSystem(root, sync="always" if run % 8 == 0 else "never", format=form_of(run))
    turn = 0
    while True:
        turn += 1
        contents = [content(number, turn, i) for i in range(1 + turn % 3)]
        files = store.save(contents, recorded=True)
        if turn % 3 == number:
            ahead = ContextFileSystem(
                root, sync="never", format=form_of(run), clock=two_hours_ahead
            )
            ahead.collect(max_age=1)
        ids = [one.origin.item_id for one in contents if one.origin]
        store.remember(
            [
                {"item_id": item_id, "path": file.relative_path, "state": "offloaded"}
                for item_id, file in zip(ids, files, strict=True)
            ]
        )
        if turn % 7 == number:
            store.collect(max_age=0)
        if turn % 4 == number:
            store.close()
        for file, item_id, one in zip(files, ids, contents, strict=True):
            line = f"{json.dumps([file.path, item_id, one.text])}\n".encode()
            assert len(line) <= select.PIPE_BUF  # so that a pipe takes it whole or not at all
            os.write(pipe, line)


def two_hours_ahead() -> float:
    """The time by a clock that is wrong."""
    return time.time() + 2 * 3600


def content(number: int, turn: int, i: int) -> Content:
    """A content of its own, one that others have too, or one whose name others want."""
    item_id = f"{number}_{turn}_{i}" if turn % 2 else f"shared_{turn}_{i}"
    text = f"of {item_id} by {number if turn % 3 else 'anyone'}\n" * (turn % 5 * 20 + 1)
    return Content(f"tool_result/Bash/{item_id}.md", text, origin=Origin(item_id, "tool_result"))


def form_of(run: int) -> Format:
    """In which format a run's store writes."""
    return "envelope" if run % 3 == 0 else "text"


def wrongs_or_traceback(root: Path, told: list[list[str]], form: Format) -> list[str]:
    """Return what is wrong; an exception of a check is an error like the others."""
    try:
        return wrongs(root, told, form)
    except Exception:  # noqa: BLE001 - whatever it is, it is wrong
        return [traceback.format_exc()]


def wrongs(root: Path, told: list[list[str]], form: Format) -> list[str]:
    """Return what is not as it was handed out."""
    store = ContextFileSystem(root, sync="never", format=form)
    found = [wrong for one in told for wrong in wrong_reads(store, one, form)]
    recorded = {record["path"] for record in store.records()}
    names = {os.path.relpath(path, root) for path, _, _ in told}
    found += [f"{path} is not recorded" for path in names - recorded]
    found += [str(harm) for harm in store.verify().harmed]
    journal = root / ".policyctx/journal.jsonl"
    lines = journal.read_bytes().split(b"\n")[:-1] if journal.exists() else []
    found += parse_lines(lines, -1).damage  # a torn last line is none
    # Afterwards it goes on as if nothing had been.
    store.save([Content("after.md", "after")])
    if ContextFileSystem(root, format=form).read("after.md") != "after":
        found.append("the store does not go on")
    ContextFileSystem(root, sync="never", format=form, clock=two_hours_ahead).collect(max_age=1)
    found += [f"{path.name} is left over" for path in root.rglob("*writing-*")]
    found += [
        f"{path} was collected, though a record names it"
        for path, _, _ in told
        if not is_there(path)
    ]
    return found


def wrong_reads(store: ContextFileSystem, told: list[str], form: Format) -> Iterator[str]:
    """Yield what is wrong with a file, and what the journal says of its item."""
    path, item_id, text = told
    try:
        if text_of(Path(path).read_bytes(), form) != text:
            yield f"{path} holds another text"
        if store.read(path) != text:
            yield f"{path} reads back as another text"
        if store.read(item_id)[:3] != text[:3]:
            yield f"{item_id} is not known"
    except (OSError, ValueError, StoreError) as error:
        journal = Path(store.root) / ".policyctx/journal.jsonl"
        lines = journal.read_text(errors="replace").splitlines() if journal.exists() else []
        named = [line for line in lines if f"{item_id}." in line or f'"{item_id}"' in line]
        yield "\n  ".join([f"{path} does not read back: {error!r}; the journal:", *named])


def is_there(path: str) -> bool:
    """Is there a file, packed or not."""
    return Path(path).exists() or Path(path + PACKED).exists()


if __name__ == "__main__":
    main()
