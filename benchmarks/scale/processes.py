"""A command that is run and watched: its time, its output, and the memory of its processes."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

_POLL_S = 0.05
_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command came to; memory is the peak resident set in bytes, 0 without `/proc`."""

    code: int
    output: str
    seconds: float
    cpu: float
    """Seconds of processor time of all its processes."""
    memory: int
    """Of the process that was started."""
    memory_of_others: int
    """Of the largest of those that it started."""


def ran(command: Sequence[str]) -> Ran:
    """Run a command to its end."""
    peaks: dict[int, int] = {}
    before = _cpu_of_children()
    started = time.perf_counter()
    with TemporaryFile() as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)  # noqa: S603
        while process.poll() is None:
            for pid in (process.pid, *_descendants(process.pid)):
                peaks[pid] = max(peaks.get(pid, 0), _peak(pid))
            time.sleep(_POLL_S)
        seconds = time.perf_counter() - started
        output.seek(0)
        text = output.read().decode("utf-8", "replace")
    own = peaks.pop(process.pid, 0)
    cpu = _cpu_of_children() - before
    return Ran(process.returncode, text, seconds, cpu, own, max(peaks.values(), default=0))


def _cpu_of_children() -> float:
    import resource  # noqa: PLC0415 - not on every system

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _descendants(pid: int) -> Iterator[int]:
    try:
        found = (_PROC / str(pid) / "task" / str(pid) / "children").read_text(encoding="ascii")
    except OSError:
        return
    for child in map(int, found.split()):
        yield child
        yield from _descendants(child)


def _peak(pid: int) -> int:
    """Return the peak resident set of a process in bytes; 0 for one that has ended."""
    try:
        status = (_PROC / str(pid) / "status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0
    sizes = (line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))
    return 1024 * int(next(sizes, 0))
