"""`RemoteBackend`: the files of a store as objects below a URL."""

import errno
import io
import re
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from hashlib import sha256
from typing import IO, NamedTuple, Self

from policyctx.store.backend import AwayError, FileStatus, StoreUrl
from policyctx.store.content import STATE_FOLDER
from policyctx.store.journal import JOURNAL, line_start
from policyctx.store.remote.client import ObjectClient
from policyctx.store.remote.spill import Spill, SpillingClient, TakenOverError

PACK_SEGMENTS = 64
# The larger packs keep the requests that open a long journal few.
PACK_SIZES = (PACK_SEGMENTS, PACK_SEGMENTS**2)
# How many segments are asked for at a time when it is not known how many follow.
_WINDOW = 16
# How the first line of a journal begins.
_HEAD = line_start("journal")
_PACK = re.compile(r"([0-9]{10})(?:-([0-9]+))?")
# The buckets, by scheme and name, in which this process saw that creating does not overwrite.
_CREATES: set[tuple[str, str]] = set()


class _Pack(NamedTuple):
    """`size` segments from the `first` on."""

    first: int
    size: int

    @property
    def name(self) -> str:
        return f"{self.first:010}" + (f"-{self.size}" if self.size > PACK_SIZES[0] else "")


class SegmentedLog:
    """The joined segments of a journal, read so far, from where it begins; see `AppendLog`.

        .policyctx/journal.jsonl/0000000000               the first lines
        .policyctx/journal.jsonl/0000000001               the lines of the next write
        .policyctx/journal.jsonl/packs/0000000000         64 segments, joined
        .policyctx/journal.jsonl/packs/0000000000-4096    4,096 segments, joined

    A segment is created and never changed or removed, so its name decides which of two writers was
    first. A segment that begins with the first line of a journal replaces what is before it: then
    the journal was rebuilt. The number of the next one is known, so nobody depends on a listing
    that may come late: where a listing does not show a pack yet, the smaller packs or the segments
    in it are read. A pack holds the bytes of its segments, and whoever writes it writes the same.

    `append` creates one segment, and raises `FileExistsError` when another writer created it. A
    segment that somebody removed counts as empty: the numbers of the lines show what is missing.
    """

    def __init__(self, client: ObjectClient, path: str) -> None:
        self._client, self._path = client, path
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
        with suppress(OSError):
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
            larger = (one for one in PACK_SIZES if one >= size)
            if not any(_Pack(first - first % one, one) in packs for one in larger):
                found.append(_Pack(first, size))
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


class ObjectBatch:
    """The objects of one save. See `WriteBatch`.

    `created` holds the SHA-256 of each object that this process created and no journal names yet,
    by its path.
    """

    def __init__(self, client: ObjectClient, created: dict[str, bytes]) -> None:
        self._client, self._unnamed = client, created
        self._staged: dict[str, tuple[str, bytes]] = {}
        self._created: set[str] = set()
        self._taken: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave everything as it is: there are no temporary names."""

    def stage(self, path: str, content: bytes) -> str:
        """Keep a content for the next `flush`; return the name of the batch for it."""
        name = f"{len(self._staged)}:{path}"
        self._staged[name] = path, content
        return name

    def expect(self, path: str) -> None:
        """Do nothing: what is there is durable."""

    def flush(self) -> None:
        """Create everything staged since, at the same time; a taken name is no error yet."""
        known = self._created | self._taken
        new = {path: content for path, content in self._staged.values() if path not in known}
        again = {path for path in new if self._unnamed.get(path) == _digest(new[path])}
        self._created |= again
        calls = [partial(self._create, *one) for one in new.items() if one[0] not in again]
        self._client.all(calls)

    def is_taken(self, path: str) -> bool:
        """Whether `flush` found that something, unread so far, has the name of a staged content."""
        return path in self._taken

    def publish(self, temporary: str, path: str) -> None:
        """See to it that a staged content has its name. Raises `FileExistsError`."""
        _, content = self._staged[temporary]
        if path not in self._created and self._client.create(path, content) is not None:
            raise FileExistsError(path)
        self._created.add(path)

    def replace(self, temporary: str, path: str) -> None:
        """Write a staged content in the place of what has the name."""
        if path not in self._created:
            self._client.put(path, self._staged[temporary][1])

    def link(self, path: str, new: str) -> None:  # noqa: ARG002
        """Raise `OSError`: an object has one name."""
        raise OSError(errno.ENOTSUP, "an object has one name", new)

    def flush_folders(self) -> None:
        """Do nothing: an object that was created is durable, with its name."""

    def _create(self, path: str, content: bytes) -> None:
        if self._client.create_new(path, content):
            self._created.add(path)
            self._unnamed[path] = _digest(content)
        else:
            self._taken.add(path)


def _digest(content: bytes) -> bytes:
    return sha256(content).digest()


class RemoteBackend:
    """The objects below a URL. See `Backend`.

    It is kept for the life of a store, since it knows the journals that were read. Nothing is
    locked: the journal decides which of two writers was first.
    """

    is_remote = True

    def __init__(self, url: StoreUrl, *, timeout: float, spill: Spill | None = None) -> None:
        self._client = (
            ObjectClient(url, timeout=timeout)
            if spill is None
            else SpillingClient(url, timeout=timeout, spill=spill)
        )
        self._spill, self._timeout = spill, timeout
        self._next_upload = 0.0
        self.is_taken_over = False
        """Whether another process went on with the session while its objects waited."""
        self.news: list[str] = []
        """What the store is to report, a sentence each; whoever reports it empties the list."""
        self._logs: dict[str, SegmentedLog] = {}
        self._created: dict[str, bytes] = {}
        self._name = str(url)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Stay open for the next call."""

    def close(self) -> None:
        """Close the connections; the next request opens new ones."""
        self._client.close()

    def prepare_to_write(self, *, may_spill: bool) -> None:
        """Raise `StoreError` for a service that overwrites what must only be created.

        It is asked once for each bucket in a process. What waits in a folder is uploaded. Where
        the service is away and the session `may_spill`, what is written waits from now on.
        """
        self.upload_waiting()
        if self.is_spilling:
            return
        try:
            self._check_creating()
        except AwayError:
            if not may_spill or not self.begin_spilling():
                raise

    @property
    def is_spilling(self) -> bool:
        """Whether what is written waits in a folder of this computer."""
        return self._client.is_spilling

    def begin_spilling(self) -> bool:
        """Let all that is written wait in the folder, if there is one; return whether it does."""
        if self._spill is None:
            return False
        self._spill.is_used = True
        self._next_upload = time.monotonic() + self._timeout
        self.news.append(f"the service is away; texts wait in {self._spill.folder}")
        return True

    def upload_waiting(self, *, at_once: bool = False) -> None:
        """Upload what waits in a folder, unless the service was just found away.

        It was if that is less than the time limit ago, where not `at_once`. Whether the service
        answers is tried once. Raises `OSError` for what waiting does not cure.
        """
        if not isinstance(self._client, SpillingClient) or not self.is_spilling:
            return
        if not at_once and time.monotonic() < self._next_upload:
            return
        try:
            self._check_creating(patient=False)
            count = self._client.upload()
        except AwayError:
            self._next_upload = time.monotonic() + self._timeout
        except TakenOverError as error:
            self._end()
            self.news.append(str(error))
        else:
            if count:
                objects = "1 object" if count == 1 else f"{count:,} objects"
                self.news.append(f"the service answers again; {objects} that waited were uploaded")

    def upload(self) -> None:
        """Upload what waits in a folder. Raises `OSError`, and `StoreError` for a taken session."""
        if isinstance(self._client, SpillingClient):
            self._check_creating(patient=False)
            try:
                self._client.upload()
            except TakenOverError:
                self._end()
                raise

    def _end(self) -> None:
        """Read the journal anew, and end the writer that relied on it as it was."""
        self.is_taken_over = any(not log.is_empty for log in self._logs.values())
        self._logs.clear()

    @property
    def waiting(self) -> int:
        """How many objects wait in the folder."""
        return 0 if self._spill is None else sum(map(len, self._spill.waiting()))

    def _check_creating(self, *, patient: bool = True) -> None:
        scheme, _, rest = self._client.url.text.partition("://")
        bucket = scheme, "" if scheme == "file" else rest.partition("/")[0]
        if bucket not in _CREATES:
            self._client.check_creating(patient=patient)
            _CREATES.add(bucket)

    @property
    def root(self) -> StoreUrl:
        """The URL."""
        return self._client.url

    def roots(self) -> tuple[StoreUrl, ...]:
        """Return the URL."""
        return (self.root,)

    def read(self, path: str) -> bytes:
        """Return the bytes of an object."""
        return self._client.get(path)

    def open(self, path: str) -> IO[bytes]:
        """Return an object as a file; it is read whole."""
        return io.BytesIO(self.read(path))

    def open_log(self, path: str, *, writing: bool) -> SegmentedLog:
        """Return the journal at a path, read up to its end, where `writing` as known."""
        log = self.log(path)
        if log.is_empty or not writing:
            log.refresh()
        if log.is_empty:
            raise FileNotFoundError(path)
        return log

    def log(self, path: str) -> SegmentedLog:
        """Return the journal at a path as far as it was read; it need not exist."""
        return self._logs.setdefault(path, SegmentedLog(self._client, path))

    def status(self, path: str) -> FileStatus:
        """Return the status of an object."""
        identity = (0, int.from_bytes(sha256(f"{self._name}/{path}".encode()).digest()[:8]))
        found = self._client.info(path)
        return FileStatus(is_file=True, size=found.size, modified=found.modified, identity=identity)

    def names(self, folder: str) -> list[str]:
        """Return the names of all entries of a folder, sorted; none for a missing folder."""
        return self._client.names(folder)

    def files(self, *, without: frozenset[str]) -> Iterator[str]:
        """Yield the path of every object, in order, but skip `without` in the root."""
        return (key for key in self._client.listed() if key.partition("/")[0] not in without)

    def stores(self) -> Iterator[str]:
        """Yield the prefix of each store below this one, in order; "" for this one itself.

        What is in a store is none, whatever its name.
        """
        found = set()
        for key in self._client.listed():
            above, mark, state = f"/{key}".partition(f"/{STATE_FOLDER}/")
            if mark and f"/{JOURNAL}/" in f"/{state}":
                found.add(above)
        for prefix in sorted(found):
            parts = prefix.split("/")
            if not any("/".join(parts[:end]) in found for end in range(1, len(parts))):
                yield prefix.removeprefix("/")

    def write(self, path: str, content: bytes, *, flush: bool) -> FileStatus:  # noqa: ARG002
        """Write an object in the place of what is at `path`; return its status."""
        self._client.put(path, content)
        return self.status(path)

    def batch(self, name: str | None = None) -> ObjectBatch:  # noqa: ARG002 - no temporary names
        """Return a batch to create objects with."""
        return ObjectBatch(self._client, self._created)

    def forget_created(self) -> None:
        """Forget which objects no journal names yet: one was written, or there is none."""
        self._created.clear()

    def remove(self, path: str) -> None:
        """Remove an object."""
        self._client.remove(path)

    def lock(self, path: str) -> AbstractContextManager[None]:  # noqa: ARG002
        """Return a lock that excludes nobody: an object cannot be locked."""
        return nullcontext()

    def is_locked(self, path: str) -> bool:  # noqa: ARG002
        """Return False: no object is locked."""
        return False

    def time_in(self, folder: str) -> float:  # noqa: ARG002
        """Return the time by the clock of this computer."""
        return time.time()
