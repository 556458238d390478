"""The journal of a session as objects: segments with numbers for names, and packs of them.

    .policyctx/journal.jsonl/0000000000               the first lines
    .policyctx/journal.jsonl/0000000001               the lines of the next write
    .policyctx/journal.jsonl/packs/0000000000         64 segments, joined
    .policyctx/journal.jsonl/packs/0000000000-4096    4,096 segments, joined

A segment is created and never changed or removed, so its name decides which of two writers was
first. A segment that begins with the first line of a journal replaces what is before it: then the
journal was rebuilt. The number of the next one is known, so nobody depends on a listing that may
come late: where a listing does not show a pack yet, the smaller packs or the segments in it are
read. A pack holds the bytes of its segments, and whoever writes it writes the same.
"""

import contextlib
import re
from functools import partial
from hashlib import sha256
from typing import NamedTuple

from policyctx.store.backend import FileStatus
from policyctx.store.journal import line_start
from policyctx.store.remote.client import ObjectClient

PACK_SEGMENTS = 64
# The larger packs keep the requests that open a long journal few.
PACK_SIZES = (PACK_SEGMENTS, PACK_SEGMENTS**2)
# How many segments are asked for at a time when it is not known how many follow.
_WINDOW = 16
# How the first line of a journal begins.
_HEAD = line_start("journal")
_PACK = re.compile(r"([0-9]{10})(?:-([0-9]+))?")


class _Pack(NamedTuple):
    """`size` segments from the `first` on."""

    first: int
    size: int

    @property
    def name(self) -> str:
        return f"{self.first:010}" + (f"-{self.size}" if self.size > PACK_SIZES[0] else "")


class SegmentedLog:
    """The joined segments of a journal, read so far, from where it begins; see `AppendLog`.

    `append` creates one segment, and raises `FileExistsError` when another writer created it. A
    segment that somebody removed counts as empty: the numbers of the lines show what is missing.
    """

    def __init__(self, client: ObjectClient, path: str) -> None:
        self._client = client
        self._path = path
        self._identity = (0, int.from_bytes(sha256(path.encode()).digest()[:8]))
        self._raw = bytearray()
        self._ends: list[int] = []
        """For each segment where it ends in the joined bytes."""
        self._start = 0
        """Where the journal begins in the joined bytes."""
        self._is_read = False
        self._due: list[_Pack] = []
        """The packs that the next write makes beside its own segment."""

    @property
    def status(self) -> FileStatus:
        """The status of the joined bytes."""
        size = len(self._raw) - self._start
        return FileStatus(is_file=True, size=size, modified=0.0, identity=self._identity)

    @property
    def is_empty(self) -> bool:
        """Whether no segment is known."""
        return not self._ends

    def refresh(self) -> None:
        """Read the segments that were written since."""
        count = 1
        if self._is_read and self._client.is_spilling:  # only what waits is new
            while (raw := self._client.waiting(self._segment(len(self._ends)))) is not None:
                self._add(raw)
            return
        packs: set[_Pack] = set()
        if not self._ends:
            packs, count = self._read_packs(), _WINDOW
        while True:
            first = len(self._ends)
            found = self._segments(range(first, first + count))
            known = max((i for i, raw in enumerate(found, 1) if raw is not None), default=0)
            for raw in found[:known]:
                self._add(raw or b"")
            if known < count:
                if not self._is_read:
                    self._due = _lacking(len(self._ends), packs)
                self._is_read = True
                return
            count = _WINDOW

    def read(self, start: int = 0, size: int | None = None) -> bytes:
        """Return `size` bytes from `start` on, by default all."""
        start += self._start
        return bytes(self._raw[start : None if size is None else start + size])

    def append(self, raw: bytes, *, flush: bool = True) -> None:  # noqa: ARG002 - always durable
        """Create the next segment. Raises `FileExistsError` when its name is taken."""
        number = len(self._ends)
        due = [] if self._client.is_spilling else self._due
        calls = [lambda: self._client.create_segment(self._segment(number), raw)]
        calls += [partial(self._write, pack) for pack in due]
        if self._client.all(calls)[0] is not None:
            raise FileExistsError(self._segment(number))
        self._due = [pack for pack in self._due if pack not in due]
        self._add(raw)
        count = len(self._ends)
        self._due += [_Pack(count - size, size) for size in PACK_SIZES if count % size == 0]

    def written_at(self) -> float:
        """Return when the last known segment was written, in seconds since 1970; 0.0 for none."""
        if not self._ends:
            return 0.0
        return self._client.info(self._segment(len(self._ends) - 1)).modified

    def truncate(self, size: int) -> None:
        """Do nothing: a segment is whole or not there."""

    def close(self) -> None:
        """Do nothing: no connection is held."""

    def _add(self, raw: bytes) -> None:
        if raw.startswith(_HEAD):
            self._start = len(self._raw)
        self._raw += raw if raw.endswith(b"\n") or not raw else raw + b"\n"
        self._ends.append(len(self._raw))

    def _segments(self, numbers: range) -> list[bytes | None]:
        keys = [self._segment(number) for number in numbers]
        return self._client.all([partial(self._client.find, key) for key in keys])

    def _segment(self, number: int) -> str:
        return f"{self._path}/{number:010}"

    def _write(self, pack: _Pack) -> None:
        """Write a pack; without it smaller packs or the segments are read."""
        begin = self._ends[pack.first - 1] if pack.first else 0
        ends = [end - begin for end in self._ends[pack.first : pack.first + pack.size]]
        head = ",".join(map(str, ends)).encode() + b"\n"
        with contextlib.suppress(OSError):
            raw = head + bytes(self._raw[begin : begin + ends[-1]])
            self._client.create(f"{self._path}/packs/{pack.name}", raw)

    def _read_packs(self) -> set[_Pack]:
        """Read the packs from the first segment on, the largest ones; return those that exist."""
        names = self._client.names(f"{self._path}/packs")
        listed = {pack for name in names if (pack := _named(name)) is not None}
        usable = set(listed)
        while row := self._row(usable):
            keys = [f"{self._path}/packs/{pack.name}" for pack in row]
            found = self._client.all([partial(self._client.find, key) for key in keys])
            for pack, raw in zip(row, found, strict=True):
                segments = _unpacked(raw, pack.size)
                if segments is None:  # what is in it is read from smaller packs, or one by one
                    usable.discard(pack)
                    break
                for segment in segments:
                    self._add(segment)
            else:
                break
        return listed

    def _row(self, packs: set[_Pack]) -> list[_Pack]:
        """Return the packs that follow the last known segment one after the other."""
        largest = {pack.first: pack for pack in sorted(packs)}
        row: list[_Pack] = []
        first = len(self._ends)
        while (pack := largest.get(first)) is not None:
            row.append(pack)
            first += pack.size
        return row


def _named(name: str) -> _Pack | None:
    """Return the pack of a name, None for a name of something else."""
    if (found := _PACK.fullmatch(name)) is None:
        return None
    pack = _Pack(int(found[1]), int(found[2] or PACK_SIZES[0]))
    is_pack = pack.size in PACK_SIZES and pack.first % pack.size == 0 and pack.name == name
    return pack if is_pack else None


def _lacking(segments: int, packs: set[_Pack]) -> list[_Pack]:
    """Return the packs that a journal of this many segments should have and does not have."""
    found: list[_Pack] = []
    for size in reversed(PACK_SIZES):
        for first in range(0, segments - size + 1, size):
            pack = _Pack(first, size)
            if not any(
                _Pack(first - first % one, one) in packs for one in PACK_SIZES if one >= size
            ):
                found.append(pack)
    return found


def _unpacked(pack: bytes | None, count: int) -> list[bytes] | None:
    """Return the `count` segments of a pack, None if the pack is missing or damaged."""
    if pack is None:
        return None
    head, _, raw = pack.partition(b"\n")
    try:
        ends = [int(end) for end in head.split(b",")]
    except ValueError:
        return None
    if len(ends) != count or ends != sorted(ends) or ends[-1] != len(raw):
        return None
    return [raw[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]
