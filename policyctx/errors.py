"""Every error that policyctx raises, and what a wrong policy is told.

PolicyctxError
├── PolicyError            a policy cannot be read, or says something that cannot be
│   └── UnknownPolicyError no preset and no file has that name
├── MessagesError          the input is no message list
├── UnknownOptionError     a function has no option of that name (also a TypeError)
├── StoreError             a file could not be written or read back
│   ├── CorruptContentError a file holds something else than was saved in it
│   └── AmbiguousSessionError several sessions share the folder, and none was chosen
├── InvalidResultError     the edited messages would be refused by a provider
├── SummaryError           one try at a summary gave none that can be used
├── UnknownArchiveError    no compaction's archive has that name (a StoreError)
├── UnknownSummarizerError nothing that makes summaries has that name
├── UnrestorableFileError  a file cannot be brought back after a compaction
├── VocabularyError        the token vocabulary in the package is missing or damaged
├── MutationError          the mutants of a policy cannot be judged
├── UnreadableRecordingError a file is no recording of a known format
├── ReaderError            a reader that another package registered is none
├── ReportError            a report cannot be written to its file
├── UsageError             what a provider billed cannot be read
└── MissingExtraError      an optional dependency is not installed
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence


# The most characters of another package's error that a sentence shows.
_SHOWN_CHARS = 200


class PolicyctxError(Exception):
    """Base of all errors raised on purpose; its text is one paragraph for a person.

    An error can be copied and pickled, also from another process.
    """

    def __reduce__(self) -> tuple[object, ...]:
        return _error_again, (type(self), self.args, self.__dict__)


def _error_again(
    kind: type[PolicyctxError], args: tuple[object, ...], attributes: dict[str, object]
) -> PolicyctxError:
    """Return an error with these attributes; its constructor made the text from other arguments."""
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(attributes)
    return error


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a file: 1-based line and column, in characters; line 0 is the file as a whole."""

    file: str
    line: int = 0
    column: int = 0
    source_line: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One mistake in a policy, or one thing in it that is worth a second look.

    `code` is stable, such as `PC101`; `docs/diagnostics.md` has a paragraph on each.
    """

    place: Place
    code: str
    sentence: str
    hint: str = ""
    """What may have been meant, or would be right; empty when nothing likely is known."""
    severity: Literal["error", "warning"] = "error"

    def __str__(self) -> str:
        """Return `file:line:column: code: sentence; hint`."""
        hint = f"; {self.hint}" if self.hint else ""
        return f"{self.place}: {self.code}: {self.sentence}{hint}"


class PolicyError(PolicyctxError):
    """A policy was refused when it was read.

    `diagnostics` holds every mistake, in the order of the files and their lines.
    """

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n".join(map(str, self.diagnostics)))


class UnknownPolicyError(PolicyError):
    """No preset has this name and no file this path.

    `name` is what was asked for, `presets` the names that exist, `nearest` the likeliest or None.
    """

    def __init__(self, name: str, presets: Sequence[str], nearest: str | None) -> None:
        self.name = name
        self.presets = tuple(presets)
        self.nearest = nearest
        meant = f"did you mean {nearest!r}? The" if nearest else "the"
        hint = f"{meant} presets are {', '.join(self.presets)}"
        sentence = "no such policy: it is neither a file nor a preset"
        super().__init__([Diagnostic(Place(name or "''"), "PC001", sentence, hint)])


class MessagesError(PolicyctxError):
    """The input is no message list that a provider would know.

    `index` is the 0-based position of the message at fault, None when it is the whole document.
    """

    def __init__(self, text: str, *, index: int | None = None) -> None:
        self.index = index
        super().__init__(text)


class UnknownOptionError(PolicyctxError, TypeError):
    """A function was called with an option that it does not have.

    `function` is its name, `name` the option, `known` the options that it has, and `nearest` the
    likeliest of them or None. `removed` says what replaces an option that no longer exists, and
    is empty for one that never did.
    """

    def __init__(
        self, function: str, name: str, known: Sequence[str], nearest: str | None, removed: str = ""
    ) -> None:
        self.function = function
        self.name = name
        self.known = tuple(known)
        self.nearest = nearest
        self.removed = removed
        meant = f"did you mean {nearest!r}? The" if nearest else "the"
        hint = removed or f"{meant} options are {', '.join(self.known)}"
        super().__init__(f"{function}() has no option {name!r}; {hint}")


class StoreError(PolicyctxError):
    """A file of the store could not be written or read back; nothing names a file half written.

    `path` is the file or folder concerned; the operating system's error is the `__cause__`.
    """

    def __init__(self, text: str, *, path: str) -> None:
        self.path = path
        super().__init__(text)


class UnknownArchiveError(StoreError):
    """No archive of a compaction has this name.

    `name` is what was asked for, None for the newest of any; `known` the names that there are, the
    oldest first; `nearest` the likeliest or None; `path` the store's root.
    """

    def __init__(
        self, name: str | None, known: Sequence[str], nearest: str | None, *, path: str
    ) -> None:
        self.name = name
        self.known = tuple(known)
        self.nearest = nearest
        named = "archive" if name is None else f"archive {name!r}"
        meant = f"did you mean {nearest!r}? " if nearest else ""
        there = f"; {meant}there are {', '.join(self.known)}" if self.known else "; there is none"
        super().__init__(f"no {named} in {path}{'' if name is None else there}", path=path)


class AmbiguousSessionError(StoreError):
    """Several sessions share a store's folder, and the call does not say which one it means.

    `key` is the id or path that more than one session has; None where the call needs a session at
    all. `sessions` are the ids to choose from, "" for that of the folder itself; `path` the root.
    """

    def __init__(self, key: str | None, sessions: Sequence[str], *, path: str) -> None:
        self.key = key
        self.sessions = tuple(sessions)
        of_key = f"the id {key} exists in several sessions"
        what = f"{path} is a folder for several sessions" if key is None else of_key
        known = ", ".join(name or "'' (the folder's own)" for name in self.sessions)
        super().__init__(f"{what}; choose one with `session` (--session): {known}", path=path)


class CorruptContentError(StoreError):
    """A file of the store no longer holds the text that was saved in it; it is not handed out.

    `path` is the file, `expected` the sha256 of the saved text, `found` that of what is there now,
    or why there is no text at all.
    """

    def __init__(self, *, path: str, expected: str, found: str) -> None:
        self.expected = expected
        self.found = found
        super().__init__(
            f"{path} no longer holds what was saved: sha256 {found}, not {expected}", path=path
        )


class InvalidResultError(PolicyctxError):
    """The messages after a plan break a rule that the messages before it kept.

    Nothing was committed. `problems` holds one sentence per broken rule.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("the edited messages are not valid: " + "; ".join(self.problems))


class SummaryError(PolicyctxError):
    """One attempt at a summary gave none that can be used.

    `cause` is the exception that the summarizer raised, None if it raised none or if the exception
    would carry credentials along. `status` is the provider's HTTP status, None if there was none.
    `is_final` says that another attempt would fail as well. `retry_after` is the number of seconds
    that the provider asks to wait, None if it asks for no wait. `answered` says that there was an
    answer which cannot be used: the next attempt follows at once and can tell the model why.
    `max_tokens` is the limit of tokens that cut the answer off, None if it was not cut off.
    """

    def __init__(
        self,
        why: str,
        *,
        cause: Exception | None = None,
        status: int | None = None,
        is_final: bool = False,
        retry_after: float | None = None,
        answered: bool = False,
        max_tokens: int | None = None,
    ) -> None:
        self.why = why
        self.cause = cause
        self.status = status
        self.is_final = is_final
        self.retry_after = retry_after
        self.answered = answered
        self.max_tokens = max_tokens
        super().__init__(f"no summary: {why}")


class UnknownSummarizerError(PolicyctxError):
    """Nothing that makes summaries has the name that a policy's `by` gives.

    `name` is what was asked for, `known` the names that exist, `nearest` the likeliest or None.
    """

    def __init__(self, name: str, known: Sequence[str], nearest: str | None) -> None:
        self.name = name
        self.known = tuple(known)
        self.nearest = nearest
        meant = f"did you mean {nearest!r}? " if nearest else ""
        super().__init__(
            f"no summarizer is named {name!r}; {meant}known are {', '.join(self.known)};"
            " others are registered with register_summarizer"
        )


class UnrestorableFileError(PolicyctxError):
    """A file cannot be brought back after a compaction.

    `path` is the path as it was asked for, `why` says what stands against it.
    """

    def __init__(self, path: str, why: str) -> None:
        self.path = path
        self.why = why
        super().__init__(f"{path!r}: {why}")


class VocabularyError(PolicyctxError):
    """A token vocabulary that ships with the package is missing or not what was shipped.

    `vocabulary` is its name, such as `o200k_base`.
    """

    def __init__(self, text: str, *, vocabulary: str) -> None:
        self.vocabulary = vocabulary
        super().__init__(text)


class MutationError(PolicyctxError):
    """The mutants of a policy cannot be judged: a scenario fails as it is, or a list is wrong.

    `failing` are the node ids of the scenarios, and of the features, that fail before anything is
    changed.
    """

    def __init__(self, text: str, *, failing: tuple[str, ...] = ()) -> None:
        self.failing = failing
        super().__init__(text)


class UnreadableRecordingError(PolicyctxError):
    """A file gives no recording.

    `path` is the file, `why` says what is wrong with it; `format` is that of a file whose format
    was recognised, None when it is not known. `is_other` says that the file was read and its
    content is of no known format; it is False for a file that could not be read.
    """

    def __init__(
        self, path: str, why: str, *, format_: str | None = None, is_other: bool = False
    ) -> None:
        self.path = path
        self.why = why
        self.format = format_
        self.is_other = is_other
        super().__init__(f"{path}: {why}")


class ReaderError(PolicyctxError):
    """A reader of recordings that another package registered cannot be used.

    `reader` is the name of its entry point.
    """

    def __init__(self, reader: str, why: str) -> None:
        self.reader = reader
        super().__init__(f"the reader {reader!r}, registered by another package, {why}")


class ReportError(PolicyctxError):
    """A report cannot be written.

    `path` is its file; the operating system's error is the `__cause__`, where it was one.
    """

    def __init__(self, path: str, why: str) -> None:
        self.path = path
        self.why = why
        super().__init__(f"the report {path} cannot be written: {why}")


class UsageError(PolicyctxError):
    """What was given as a response's usage, or as a record of what usage taught, is neither."""


class MissingExtraError(PolicyctxError):
    """What was asked for needs a package that is not installed.

    `extra` is the name to install it by.
    """

    def __init__(self, wanted: str, *, extra: str) -> None:
        self.extra = extra
        super().__init__(f"{wanted} needs a package: pip install 'policyctx[{extra}]'")


def in_words(error: BaseException) -> str:
    """Return `OSError: the text`, on one line and not too long, for an error of any code."""
    name = type(error).__name__
    try:
        text = " ".join(str(error).split())
    except Exception:  # noqa: BLE001 - an error whose text cannot be had
        return name
    return f"{name}: {text[:_SHOWN_CHARS]}" if text else name
