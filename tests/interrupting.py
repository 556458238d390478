"""Turns that are interrupted at random moments, and the descriptors that stay open after them.

python -m tests.interrupting INTERRUPTS SEED
"""

from __future__ import annotations

import gc
import os
import random
import signal
import sys
import tempfile
import threading
from contextlib import suppress
from types import FrameType

from policyctx import Session
from tests.conversations import session_of
from tests.policies import policy

RETIRING = """\
    min_tokens: 0
    items: {tool_result: {offload: true}}
    steps: [{name: retire, do: offload, select: {types: [tool_result], keep_recent: 1}}]
    """
_LEAST_S, _MOST_S = 0.0005, 0.03


def interrupt(_: int, frame: FrameType | None) -> None:
    """Interrupt the program, but not `threading`, whose locks do not bear it: that comes later."""
    while frame is not None:
        if frame.f_code.co_filename == threading.__file__:
            signal.setitimer(signal.ITIMER_REAL, _LEAST_S)
            return
        frame = frame.f_back
    raise KeyboardInterrupt


def open_below(folder: str) -> list[str]:
    """Return what this process holds open below a folder."""
    found = []
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - names of descriptors
        with suppress(FileNotFoundError):  # the one that lists them
            found.append(os.readlink(f"/proc/self/fd/{name}"))  # noqa: PTH115
    return sorted(path for path in found if path.startswith(folder))


def left_open(folder: str, interrupts: int, chance: random.Random) -> list[str]:
    """Interrupt so many turns, close their sessions, and return what is still open."""
    signal.signal(signal.SIGALRM, interrupt)
    compiled, number, interrupted = policy(RETIRING), 0, 0
    # A vocabulary that is loaded is another package's work.
    Session(compiled, root=folder, session_id="warm-up").apply(session_of("a " * 200, "b " * 200))
    while interrupted < interrupts:
        number += 1
        session = Session(compiled, root=folder, session_id=f"s{number % 7}")
        messages = session_of(*(f"result {number} {i} " * 200 for i in range(3)))
        try:
            signal.setitimer(signal.ITIMER_REAL, chance.uniform(_LEAST_S, _MOST_S))
            session.apply(messages)
            signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt:
            interrupted += 1
        session.close()
    gc.collect()
    return open_below(folder)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        found = left_open(scratch, int(sys.argv[1]), random.Random(int(sys.argv[2])))  # noqa: S311 - no secret
    sys.stdout.write("".join(f"{path}\n" for path in found))
