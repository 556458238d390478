"""Every error that policyctx raises, and the diagnostics of a policy.

PolicyctxError
├── PolicyError                    a policy cannot be read, or contains mistakes
│   └── UnknownPolicyError         no preset and no file has this name
├── InputError                     a call was given a value that it cannot use
│   ├── MessagesError              the value is not a message list
│   │   ├── BrokenMessagesError    a provider would refuse the list, and `on_broken` is `refuse`
│   │   └── ShapeError             a shape that was given to the session breaks its contract
│   ├── UnknownOptionError         the function has no option of this name (also a TypeError)
│   ├── UnknownTokenizerError      no tokenizer has this name
│   ├── UsageError                 the value is not the usage of a response
│   └── SettingsError              a settings file of an agent cannot be edited
├── InvalidResultError             a provider would reject the edited messages
├── StoreError                     a file of the store cannot be written or read
│   ├── CorruptContentError        a file no longer contains what was saved in it
│   ├── AmbiguousSessionError      several sessions share the folder, and none was chosen
│   └── UnknownArchiveError        no archive of a compaction has this name
├── CompactionError                a compaction cannot be made, or not completely
│   ├── SummaryError               one attempt at a summary failed
│   ├── UnknownSummarizerError     no summarizer has this name
│   └── UnrestorableFileError      a file cannot be restored after a compaction
├── ReplayError                    a recording cannot be read, or a report cannot be written
│   ├── UnreadableRecordingError   a file is not a recording of a known format
│   ├── ReaderError                a reader that another package registered cannot be used
│   ├── ReportError                a report cannot be written to its file
│   └── ClusterError               a cluster cannot be used
├── MutationError                  the mutants of a policy cannot be judged
└── InstallationError              the installation is incomplete
    ├── VocabularyError            a token vocabulary of the package is missing or damaged
    └── MissingExtraError          an optional dependency is not installed
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeVar

# The most characters of another package's error that a sentence shows.
_SHOWN_CHARS = 200

T = TypeVar("T")
# Characters that are shown as escapes. Control characters would work a terminal; those that change
# the direction of a text, or that nothing shows, would make it read as another one. Joiners
# (U+200C, U+200D) stay: scripts and emoji need them.
HIDDEN = (
    *(code for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"),
    0xAD, 0x61C, 0x180E, 0x200B, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2060, 0x2070),
    0xFEFF, *range(0xFFF9, 0xFFFC), *range(0xE0000, 0xE0080),
)  # fmt: skip
_SURROGATES = range(0xD800, 0xE000)


class PolicyctxError(Exception):
    """Base of all errors that policyctx raises on purpose; its text is one paragraph for a person.

    An error can be copied and pickled, also for another process.
    """

    def __reduce__(self) -> tuple[object, ...]:
        return _error_again, (type(self), self.args, self.__dict__)


def _error_again(
    kind: type[PolicyctxError], args: tuple[object, ...], attributes: dict[str, object]
) -> PolicyctxError:
    """Return an error with these attributes, without a call of its constructor.

    The arguments of the constructor are not known: it made the text from them.
    """
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(attributes)
    return error


@dataclass(frozen=True, slots=True)
class Location:
    """A location in a file: 1-based line and column in characters; line 0 is the whole file."""

    file: str
    line: int = 0
    column: int = 0
    source_line: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file

    def seen_from(self, other: "Location") -> str:
        """Return the location for a message at another one: `line 3`, or with its file."""
        if self.file != other.file:
            return str(self)
        in_line = f", column {self.column}" if self.line == other.line else ""
        return f"line {self.line}{in_line}"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One error or warning about a policy.

    `code` is stable, such as `PC101`; `docs/diagnostics.md` explains each code.
    """

    place: Location
    code: str
    sentence: str
    hint: str = ""
    """A suggestion; empty if there is none."""
    severity: Literal["error", "warning", "notice"] = "error"
    """A notice is advice about what may be meant; `check --strict` lets it pass."""

    def __str__(self) -> str:
        """Return `file:line:column: code: sentence; hint`."""
        hint = f"; {self.hint}" if self.hint else ""
        return f"{self.place}: {self.code}: {self.sentence}{hint}"


class PolicyError(PolicyctxError):
    """A policy cannot be read, or contains mistakes.

    `diagnostics` holds every mistake, in the order of the files and their lines.
    """

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n".join(map(str, self.diagnostics)))


class UnknownPolicyError(PolicyError):
    """No preset has this name and no file this path.

    `name` is the name or path that was given, `presets` are the names that exist, and `nearest` is
    the most similar of them or None.
    """

    def __init__(self, name: str, presets: Sequence[str], nearest: str | None) -> None:
        self.name, self.presets, self.nearest = name, tuple(presets), nearest
        hint = _listed("presets", self.presets, nearest)
        sentence = "no such policy: it is neither a file nor a preset"
        super().__init__([Diagnostic(Location(name or "''"), "PC001", sentence, hint)])


class InputError(PolicyctxError):
    """A call was given a value that it cannot use."""


class MessagesError(InputError):
    """The value is not a message list of a known provider.

    `index` is the 0-based position of the wrong message, None if the whole document is wrong.
    """

    def __init__(self, text: str, *, index: int | None = None) -> None:
        self.index = index
        super().__init__(text)

    def at(self, index: int) -> "MessagesError":
        """Return the same error about the message at a position."""
        if index == self.index:
            return self
        text = str(self).replace(f"message {self.index}: ", f"message {index}: ", 1)
        return MessagesError(text, index=index)

    def among(self, places: Sequence[int | None]) -> "MessagesError":
        """Return the same error about a list in which the messages have these places."""
        place = None if self.index is None else places[self.index]
        return self if place is None else self.at(place)


class BrokenMessagesError(MessagesError):
    """A provider would refuse the list as it was given, and the policy has `on_broken: refuse`.

    `problems` has a sentence for each reason.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__(f"a provider would refuse the messages: {'; '.join(problems)}")


class ShapeError(MessagesError):
    """A shape that was given to the session breaks the contract of `Shape`.

    `shape` is the name of its class, `mistake` says what it did, and `index` is the position of the
    message that it was asked about, None where no message is known.
    """

    def __init__(self, shape: str, mistake: str, *, index: int | None = None) -> None:
        self.shape, self.mistake = shape, mistake
        place = "" if index is None else f"message {index}: "
        super().__init__(f"{place}the shape {shape} is wrong: {mistake}", index=index)

    def at(self, index: int) -> "ShapeError":
        """Return the same error about the message at a position."""
        return ShapeError(self.shape, self.mistake, index=index)


class UnknownOptionError(InputError, TypeError):
    """A function was called with an option that it does not have.

    `function` is the name of the function, `name` that of the option, `known` are the options of
    the function, and `nearest` is the most similar of them or None. `removed` says what replaces an
    option of an earlier version; it is empty for an option that never existed.
    """

    def __init__(
        self, function: str, name: str, known: Sequence[str], nearest: str | None, removed: str = ""
    ) -> None:
        self.function, self.name, self.removed = function, name, removed
        self.known, self.nearest = tuple(known), nearest
        hint = removed or _listed("options", self.known, nearest)
        super().__init__(f"{function}() has no option {name!r}; {hint}")


class UnknownTokenizerError(InputError):
    """No tokenizer has the name in a policy's `model.tokenizer`.

    `name` is the name that was given, `known` are the names that exist, and `nearest` is the most
    similar of them or None.
    """

    def __init__(self, name: str, known: Sequence[str], nearest: str | None) -> None:
        self.name, self.known, self.nearest = name, tuple(known), nearest
        others = _registered("tokenizer", self.known, nearest)
        super().__init__(f"no tokenizer is named {name!r}; {others}")


class UsageError(InputError):
    """The value is not the usage of a response, or not a record of a correction by usage."""


class SettingsError(InputError):
    """A settings file of an agent, such as Claude Code, cannot be edited; it is as it was.

    `path` is the file.
    """

    def __init__(self, text: str, *, path: str) -> None:
        self.path = path
        super().__init__(text)


class InvalidResultError(PolicyctxError):
    """A provider would reject the edited messages, but not the messages that were given.

    Nothing was decided. `problems` holds one sentence for each broken rule.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("the edited messages are not valid: " + "; ".join(self.problems))


class StoreError(PolicyctxError):
    """A file of the store cannot be written or read; no placeholder names an incomplete file.

    `path` is the file or folder; the operating system's error is the `__cause__`.
    """

    def __init__(self, text: str, *, path: str) -> None:
        self.path = path
        super().__init__(text)


class CorruptContentError(StoreError):
    """A file of the store no longer contains the text that was saved in it.

    The text is not returned. `path` is the file, `expected` the sha256 of the saved text, and
    `found` that of the present content, or the reason why there is no text.
    """

    def __init__(self, *, path: str, expected: str, found: str) -> None:
        self.expected, self.found = expected, found
        super().__init__(
            f"{path} no longer holds what was saved: sha256 {found}, not {expected}", path=path
        )


class AmbiguousSessionError(StoreError):
    """Several sessions share a store's folder, and the call does not choose one.

    `key` is the id or path that several sessions have; None if the call needs a session in any
    case. `sessions` are the ids to choose from, "" for the folder's own session; `path` is the
    root.
    """

    def __init__(self, key: str | None, sessions: Sequence[str], *, path: str) -> None:
        self.key, self.sessions = key, tuple(sessions)
        of_key = f"the id {key} exists in several sessions"
        what = f"{path} is a folder for several sessions" if key is None else of_key
        known = ", ".join(name or "'' (the folder's own)" for name in self.sessions)
        super().__init__(f"{what}; choose one with `session` (--session): {known}", path=path)


class UnknownArchiveError(StoreError):
    """No archive of a compaction has this name.

    `name` is the name that was given, None for the newest archive; `known` are the names that
    exist, the oldest first; `nearest` is the most similar of them or None; `path` is the store's
    root.
    """

    def __init__(
        self, name: str | None, known: Sequence[str], nearest: str | None, *, path: str
    ) -> None:
        self.name, self.known, self.nearest = name, tuple(known), nearest
        named = "archive" if name is None else f"archive {name!r}"
        meant = f"did you mean {nearest!r}? " if nearest else ""
        there = f"; {meant}there are {', '.join(self.known)}" if self.known else "; there is none"
        super().__init__(f"no {named} in {path}{'' if name is None else there}", path=path)


class CompactionError(PolicyctxError):
    """A compaction cannot be made, or not completely."""


class SummaryError(CompactionError):
    """One attempt at a summary failed, or its answer cannot be used.

    `cause` is the exception that the summarizer raised, None if it raised none or if the exception
    would reveal credentials. `status` is the provider's HTTP status, None if there was none.
    `is_final` says that another attempt would fail as well. `retry_after` is the number of seconds
    that the provider asks to wait, None if it asks for no wait. `answered` says that there was an
    answer that cannot be used: the next attempt follows at once and can tell the model why.
    `max_tokens` is the token limit that truncated the answer, None if it was not truncated.
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
        self.why, self.cause, self.answered, self.is_final = why, cause, answered, is_final
        self.status, self.retry_after, self.max_tokens = status, retry_after, max_tokens
        super().__init__(f"no summary: {why}")


class UnknownSummarizerError(CompactionError):
    """No summarizer has the name in a policy's `by`.

    `name` is the name that was given, `known` are the names that exist, and `nearest` is the most
    similar of them or None.
    """

    def __init__(self, name: str, known: Sequence[str], nearest: str | None) -> None:
        self.name, self.known, self.nearest = name, tuple(known), nearest
        others = _registered("summarizer", self.known, nearest)
        super().__init__(f"no summarizer is named {name!r}; {others}")


class UnrestorableFileError(CompactionError):
    """A file cannot be restored after a compaction.

    `path` is the path that was given, `why` the reason.
    """

    def __init__(self, path: str, why: str) -> None:
        self.path, self.why = path, why
        super().__init__(f"{path!r}: {why}")


class ReplayError(PolicyctxError):
    """A recording cannot be read, or a report on recordings cannot be written."""


class UnreadableRecordingError(ReplayError):
    """A file is not a recording of a known format.

    `path` is the file, `why` the reason; `format` is the format that was recognised, None if none
    was. `is_other` says that the file was read and its content is of no known format; it is False
    for a file that could not be read. `is_seen` says that `why` tells what the file is instead:
    JSON lines, a database, or what a known agent writes.
    """

    def __init__(
        self,
        path: str,
        why: str,
        *,
        format_: str | None = None,
        is_other: bool = False,
        is_seen: bool = False,
    ) -> None:
        self.path, self.why, self.format = path, why, format_
        self.is_other, self.is_seen = is_other, is_seen
        super().__init__(f"{path}: {why}")


class ReaderError(ReplayError):
    """A reader of recordings that another package registered cannot be used.

    `reader` is the name of its entry point.
    """

    def __init__(self, reader: str, why: str) -> None:
        self.reader = reader
        super().__init__(f"the reader {reader!r}, registered by another package, {why}")


class ReportError(ReplayError):
    """A report cannot be written to its file.

    `path` is the file; the operating system's error is the `__cause__`, if there was one.
    """

    def __init__(self, path: str, why: str) -> None:
        self.path, self.why = path, why
        super().__init__(f"the report {path} cannot be written: {why}")


class ClusterError(ReplayError):
    """No scheduler answers, or its workers cannot do the work."""


class MutationError(PolicyctxError):
    """The mutants of a policy cannot be judged: a scenario fails unchanged, or a list is wrong.

    `failing` are the node ids of the scenarios and features that fail before the policy is
    changed.
    """

    def __init__(self, text: str, *, failing: tuple[str, ...] = ()) -> None:
        self.failing = failing
        super().__init__(text)


class InstallationError(PolicyctxError):
    """The installation of policyctx is incomplete."""


class VocabularyError(InstallationError):
    """A token vocabulary of the package is missing or damaged.

    `vocabulary` is its name, such as `o200k_base`.
    """

    def __init__(self, text: str, *, vocabulary: str) -> None:
        self.vocabulary = vocabulary
        super().__init__(text)


class MissingExtraError(InstallationError):
    """The call needs an optional package that is not installed.

    `extra` is the name of the extra that installs it.
    """

    def __init__(self, wanted: str, *, extra: str) -> None:
        self.extra = extra
        super().__init__(f"{wanted} needs a package: {install_command(extra)}")


def _listed(what: str, known: Iterable[str], nearest: str | None) -> str:
    meant = f"did you mean {nearest!r}? The" if nearest else "the"
    return f"{meant} {what} are {', '.join(known)}"


def _registered(kind: str, known: Iterable[str], nearest: str | None) -> str:
    meant = f"did you mean {nearest!r}? " if nearest else ""
    return f"{meant}known are {', '.join(known)}; others are registered with register_{kind}"


def nearest(word: object, known: Iterable[str], least: float = 0.6) -> str | None:
    """Return the known word that `word` is a misspelling of, by its likeness; None if none is near.

    `least` is the likeness of the two that is enough, from 0 to 1, which is for equal words.
    """
    from difflib import get_close_matches  # noqa: PLC0415 - for an error only

    names, letters = list(known), sorted(str(word).lower())
    # Two letters of a short word swapped are too few alike for a ratio.
    swapped = [name for name in names if sorted(name.lower()) == letters]
    return next(iter(swapped or get_close_matches(str(word), names, n=1, cutoff=least)), None)


@contextmanager
def required(wanted: str, package: str, *, needs: str, extra: str) -> Iterator[None]:
    """Import what `wanted` needs of an optional package in the body.

    Raises `MissingExtraError` if the package is not installed, and `InstallationError` if it lacks
    what is imported: it is older than `needs`, such as `litellm>=1.100`.
    """
    try:
        yield
    except ImportError as error:
        if package not in sys.modules:
            raise MissingExtraError(wanted, extra=extra) from error
        version = getattr(sys.modules[package], "__version__", "another")
        found = f"{wanted} needs {needs}, and {version} is installed: pip install '{needs}'"
        raise InstallationError(found) from error


def install_command(extra: str) -> str:
    """Return the shell command that installs an extra beside this very installation.

    For a checkout or a wheel file it names that, otherwise the package.
    """
    import json  # noqa: PLC0415 - for an error only
    from importlib.metadata import PackageNotFoundError, distribution  # noqa: PLC0415
    from shlex import quote  # noqa: PLC0415
    from urllib.parse import unquote  # noqa: PLC0415

    # PEP 610: pip notes where a package came from, unless it was an index.
    try:
        noted = distribution("policyctx").read_text("direct_url.json")
        origin = json.loads(noted or "{}")
    except (PackageNotFoundError, OSError, ValueError):
        origin = {}
    url = str(origin.get("url", ""))
    if url.startswith("file://") and origin.get("dir_info", {}).get("editable"):
        return f"pip install -e {quote(f'{unquote(url[7:])}[{extra}]')}"
    return f"pip install {quote(f'policyctx[{extra}]' + (f' @ {url}' if url else ''))}"


def in_words(error: BaseException) -> str:
    """Return the class and the text of an error on one line, such as `OSError: the text`.

    A long text is cut off.
    """
    name = type(error).__name__
    try:
        text = " ".join(str(error).split())
    except Exception:  # noqa: BLE001 - an error whose text cannot be had
        return name
    return f"{name}: {text[:_SHOWN_CHARS]}" if text else name


def visible(text: str) -> str:
    """Return text for people, with an escape for each hidden or control character."""
    return text if text.isascii() and text.isprintable() else text.translate(_escapes())


@cache
def _escapes() -> dict[int, str]:
    return {code: _escape(code) for code in (*HIDDEN, *_SURROGATES)}


def _escape(code: int) -> str:
    if code < 0x100:  # noqa: PLR2004 - two digits
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"  # noqa: PLR2004 - four digits


def counted(number: int, word: str) -> str:
    """Return a number with its word, such as `1 file` and `1,204 files`."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def present(value: T | None) -> T:
    """Return a value that the caller knows to be there."""
    assert value is not None  # noqa: S101 - what `present` is for
    return value
