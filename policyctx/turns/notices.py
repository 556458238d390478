"""`Notices`: the warnings that a session gives beside the outcome of a turn.

They are about the surroundings of the turn, not about its decisions: writes that fail, damage that
the store found, a folder that was removed while the session ran, and a usage that nobody reports.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from policyctx.errors import StoreError
from policyctx.turns.effects import FindRoot, Recall, Remember

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from policyctx.planning.compiled import OffloadPolicy
    from policyctx.turns.effects import Record, SessionStore, Turn
    from policyctx.turns.known_list import KnownList
    from policyctx.turns.memory import Memory

# Before that many calls a loop may not have come to a response.
_CALLS_WITHOUT_USAGE = 5


def note(record: Record) -> Turn[None]:
    """Keep a record that may get lost: a failure to write it is not reported."""
    with suppress(StoreError):
        yield from Remember((record,), important=False).ask()


class Writes:
    """The writes of a session to its store: how many failed, and what was said about it."""

    def __init__(self) -> None:
        self.failed = 0
        """Number of writes that failed."""
        self.problem = ""
        """The error of the last write; empty if it succeeded."""
        self.said = ""
        """The error that was reported last, without the file; empty if writes worked then."""
        self._kind = ""

    @contextmanager
    def watched(self, *, completes: bool = True) -> Iterator[None]:
        """Note how a write ends; one that `completes` what it belongs to shows that writes work."""
        try:
            yield
        except StoreError as error:
            self.failed += 1
            self.problem = str(error)
            self._kind = self.problem.replace(error.path, "")
            raise
        if completes:
            self.problem = self._kind = ""

    def news(self) -> Iterator[str]:
        """Yield a warning if writes began to fail, fail for another reason, or work again."""
        before, self.said = self.said, self._kind
        if before == self._kind:
            return
        if self.problem:
            yield (
                f"offloading has stopped: {self.problem}; the list is sent whole, but for what left"
                " it before, until a write succeeds"
            )
        else:
            yield "offloading works again: a write to the store has succeeded"


class Notices:
    """What a session has warned of so far, and the folder that its store had in the last turn."""

    def __init__(self, store: SessionStore) -> None:
        self.writes = Writes()
        self._store = store
        self._given = 0
        """Number of the store's own notices that are in earlier results."""
        self._files: set[str] = set()
        """The files that placeholders may name, where no ledger knows them."""
        self._root: tuple[int, int] | None = None
        """The outcome of the last `FindRoot`."""

    def after(self, memory: Memory) -> Turn[tuple[str, ...]]:
        """Return a warning for each damage that was found since the last result."""
        new = self._new()
        if count := len(memory.unreadable):
            noun = "record" if count == 1 else "records"
            new.append(
                f"{count} {noun} of the session could not be read; the session decides anew what"
                f" {'it' if count == 1 else 'they'} said"
            )
            yield from note(memory.settling_record())
            memory.unreadable = ()
        return tuple(new)

    def of_root(self, known: KnownList | None, memory: Memory) -> Turn[tuple[str, ...]]:
        """Return a warning if the store's folder was removed since the last turn.

        The warning includes the store's own notices, so the store reads its records again for it.
        """
        if known is None:
            return ()
        before, self._root = self._root, (yield from FindRoot().ask())
        if before in {None, self._root}:
            return ()
        file = memory.ledger.newest_path
        if file and (yield from FindRoot(file).ask()) is not None:
            return ()  # it was moved away and put back, or copied
        if not (count := known.placeholders(self._files)):
            return ()
        with suppress(StoreError):
            yield from Recall().ask()
        names = "1 placeholder names a file" if count == 1 else f"{count:,} placeholders name files"
        warning = (
            f"the folder {self._store.root} was removed or replaced while the session ran: {names}"
            " in it that can no longer be read"
        )
        notices = self._new()
        return (f"{warning} ({'; '.join(notices)})" if notices else warning,)

    def find_root(self, files: Iterable[str]) -> Turn[None]:
        """Look the store's folder up, if no turn has found it; a turn may just have made it.

        `files` are those that the turn has saved.
        """
        self._files.update(files)
        if self._root is None:
            self._root = yield from FindRoot().ask()

    def _new(self) -> list[str]:
        """Return the damage that the store found since the last call."""
        every: tuple[str, ...] = getattr(self._store, "notices", ())
        given, self._given = self._given, len(every)
        return [*every[given:]]


def blindness(memory: Memory, policy: OffloadPolicy, session_id: str) -> Iterator[str]:
    """Yield a warning, once, if a gate compares tokens and no usage was ever observed."""
    is_due = memory.calls == _CALLS_WITHOUT_USAGE and memory.correction.last is None
    if is_due and policy.asks_for_request_size:
        warning = (
            f"the gates on tokens see estimates only: the usage of none of {memory.calls} calls"
            " was observed; call session.observe(response.usage) after each model call"
        )
        import logging  # noqa: PLC0415 - slow to import

        logging.getLogger("policyctx").warning("session %s: %s", session_id, warning)
        yield warning
