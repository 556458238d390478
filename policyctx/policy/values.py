"""The values of a policy that are more than a number or a word: shares, sizes, texts with fields.

In a text such as `Path: {path}`, `{name}` is a field, and `{{` and `}}` are literal braces; nothing
else is evaluated.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from policyctx.definitions.items import PlainValue
from policyctx.definitions.names import PATH_FIELDS, ROOT_FIELDS, is_url, url_problem
from policyctx.errors import nearest
from policyctx.patterns import linear_pattern

SHARE_PATTERN = r"[0-9]{1,3}(\.[0-9]{1,6})?%"
DURATION_PATTERN = r"[0-9]{1,9}(s|m|h|d)"
BYTES_PATTERN = r"[0-9]{1,9}(B|KB|MB|GB|TB|KiB|MiB|GiB|TiB)"
MODE_PATTERN = r"0?[67][0-7]{2}"

ASSUMED_TTL = 300
"""Seconds that a write to the prompt cache is taken to live for where nobody says."""

_FLAG_WORDS = frozenset({"yes", "no", "on", "off", "true", "false"})
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
_PIECE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


@dataclass(frozen=True, slots=True)
class Share:
    """A percentage of something that its key names."""

    percent: Fraction

    def of(self, whole: int) -> int:
        """Return the share of `whole`, rounded up, so that `at least` stays true."""
        return -(-self.percent * whole // 100).__floor__()

    def __str__(self) -> str:
        return f"{float(self.percent):g}%"


@dataclass(frozen=True, slots=True)
class Duration:
    """A span of time, in seconds."""

    seconds: int

    def __str__(self) -> str:
        unit = next(u for u in "dhms" if self.seconds % _SECONDS[u] == 0)
        return f"{self.seconds // _SECONDS[unit]}{unit}"


@dataclass(frozen=True, slots=True)
class ByteSize:
    """A number of bytes."""

    bytes: int

    def __str__(self) -> str:
        return f"{self.bytes}B"


def share(value: object) -> Share:
    """Read a share such as `10%`."""
    if not isinstance(value, str) or not re.fullmatch(SHARE_PATTERN, value):
        raise ValueError("expected a share such as 10%")
    percent = Fraction(value.removesuffix("%"))
    if percent > 100:  # noqa: PLR2004 - per cent
        raise ValueError("expected a share of at most 100%")
    return Share(percent)


def amount(value: object) -> int | Share:
    """Read a number of tokens, or a share of the context window."""
    if _is_count(value):
        return value  # type: ignore[return-value]
    if isinstance(value, str) and value.endswith("%"):
        return share(value)
    raise ValueError("expected a whole number of tokens, 0 or more, or a share such as 10%")


def calls(value: object) -> int | Share:
    """Read a number of model calls, or a share of those that were made."""
    if _is_count(value) or (isinstance(value, str) and value.endswith("%")):
        return amount(value)
    raise ValueError("expected a whole number of calls, 0 or more, or a share such as 25%")


def ratio(value: object) -> Fraction:
    """Read a ratio from 0 to 1, or a share such as `20%`, exactly as it was written."""
    if isinstance(value, str) and value.endswith("%"):
        return share(value).percent / 100
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
        return Fraction(str(value))
    raise ValueError("expected a number from 0 to 1 or a share such as 20%")


def duration(value: object, *, such: str = "90s, 5m, 3h or 30d") -> Duration:
    """Read a duration such as `90s`, `5m`, `3h` or `30d`."""
    if not isinstance(value, str) or not re.fullmatch(DURATION_PATTERN, value):
        raise ValueError(f"expected a duration such as {such}")
    return Duration(int(value[:-1]) * _SECONDS[value[-1]])


def idle_time(value: object) -> Duration | str:
    """Read a duration, or `cache_ttl` for the provider's."""
    return "cache_ttl" if value == "cache_ttl" else duration(value, such="90s or 5m, or cache_ttl")


def cache_ttl(value: object) -> Duration | str:
    """Read a duration, or `recorded` for that of the writes which the provider billed."""
    return "recorded" if value == "recorded" else duration(value, such="5m or 1h, or recorded")


def byte_size(value: object) -> ByteSize:
    """Read a size such as `512KiB` or `5GB`."""
    found = re.fullmatch(BYTES_PATTERN, value) if isinstance(value, str) else None
    if found is None:
        raise ValueError("expected a size such as 512KiB or 5GB")
    unit = found[1]
    number = found[0].removesuffix(unit)
    base = 1024 if "i" in unit else 1000
    return ByteSize(int(number) * base ** _POWERS[unit.rstrip("iB")])


def shrink_limit(value: object) -> Share | bool:
    """Read `false`, or the share that a summary may be of what it replaces."""
    return False if value is False else share(value)


def short_form(key: str, kind: type, said: str) -> Callable[[Any], Any]:
    """Return a check that reads a bare value of `kind` as a map with that `key` alone."""

    def checked(value: PlainValue) -> PlainValue:
        if isinstance(value, kind) and not isinstance(value, bool):
            return {key: value}
        if isinstance(value, dict):
            return value
        raise ValueError(f"expected {said} or a map")

    return checked


def flag_globs_or_map(value: PlainValue) -> PlainValue:
    """Read `true` as a map with the `tools` of that name, all; a glob or several as those tools.

    `false` is no map at all. A text that is meant as true or false is not a tool's name.
    """
    if value is None or value is False:
        return None
    if value is True:
        return {"tools": ["*"]}
    if isinstance(value, dict):
        return value
    if isinstance(value, list) or (isinstance(value, str) and value.lower() not in _FLAG_WORDS):
        return {"tools": value}
    raise ValueError("expected true, false, globs of tools or a map")


def flag_or_map(value: PlainValue) -> PlainValue:
    """Read `true` as an empty map, and `false` as none."""
    if value is None or isinstance(value, bool):
        return {} if value else None
    if isinstance(value, dict):
        return value
    raise ValueError("expected true, false or a map")


def template_of(fields: tuple[str, ...]) -> Callable[[Any], Any]:
    """Return a check that a text uses none but these fields."""

    def checked(value: PlainValue) -> PlainValue:
        if isinstance(value, str):
            parsed_template(value, fields)
        return value

    return checked


def secret_pattern(value: PlainValue) -> PlainValue:
    """Check a pattern that finds a secret."""
    if isinstance(value, str):
        linear_pattern(value)
    return value


def store_root(value: PlainValue) -> PlainValue:
    """Check the root of a store: a folder with known fields, or a URL that is one of a store."""
    checked = template_of(ROOT_FIELDS)(value)
    if isinstance(checked, str) and is_url(checked) and (problem := url_problem(checked)):
        raise ValueError(problem)
    return checked


def folder_path(value: PlainValue) -> PlainValue:
    """Check the path of a folder of this computer: no URL."""
    if isinstance(value, str) and is_url(value):
        raise ValueError("expected the path of a folder of this computer, not a URL")
    return value


def path_template(value: PlainValue) -> PlainValue:
    """Check a file's path below the root: known fields, and no part that leads out of it."""
    checked = template_of(PATH_FIELDS)(value)
    if isinstance(checked, str) and {"", ".", ".."} & set(checked.split("/")):
        raise ValueError("expected a path below the root, without empty parts or dots")
    return checked


def file_mode(value: PlainValue) -> PlainValue:
    """Check a quoted octal mode that leaves the owner able to read and write."""
    if not isinstance(value, str) or not re.fullmatch(MODE_PATTERN, value):
        raise ValueError('expected a quoted octal mode such as "0600"')
    return value


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


@dataclass(frozen=True, slots=True)
class Template:
    """A parsed text: literals and field names in turn, beginning and ending with a literal."""

    pieces: tuple[str, ...]
    fields: frozenset[str] = field(init=False, compare=False, repr=False)
    """The names of the fields that the text uses."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", frozenset(self.pieces[1::2]))

    def render(self, values: Mapping[str, object]) -> str:
        """Return the text with each field's value in its place; `values` holds every field."""
        found = list(self.pieces)
        for i in range(1, len(found), 2):
            found[i] = str(values[found[i]])
        return "".join(found)


class TemplateError(ValueError):
    """A text has unknown fields or lone braces.

    `problems` has a sentence for each of them, as it is in the text and in that order; `known` the
    fields there are.
    """

    def __init__(self, problems: Mapping[str, str], known: list[str]) -> None:
        self.problems = dict(problems)
        self.known = tuple(known)
        super().__init__("; ".join(problems.values()))


def braces_in(text: str) -> Iterator[tuple[str, int]]:
    """Yield each field and each other brace of a text as it is written, and where it begins."""
    return ((match.group(), match.start()) for match in _PIECE.finditer(text))


def parsed_template(text: str, known: Iterable[str]) -> Template:
    """Parse `text`; raises `TemplateError` with all its lone braces and unknown fields."""
    known = sorted(known)
    pieces: list[str] = [""]
    problems: dict[str, str] = {}
    end = 0
    for match in _PIECE.finditer(text):
        pieces[-1] += text[end : match.start()]
        end = match.end()
        found = match.group()
        if found in ("{{", "}}"):
            pieces[-1] += found[0]
        elif match.group(1) is None:
            problems[found] = f"a lone {found!r}: close it, or write it twice for a literal brace"
        elif match.group(1) in known:
            pieces += [match.group(1), ""]
        else:
            is_first = not any(field.startswith("{") and field != "{" for field in problems)
            problems.setdefault(found, _unknown(match.group(1), known, is_first=is_first))
    if problems:
        raise TemplateError(problems, known)
    pieces[-1] += text[end:]
    return Template(tuple(pieces))


def _unknown(field: str, known: list[str], *, is_first: bool) -> str:
    """Say what is wrong with a field; the first sentence about a text lists the fields."""
    name = re.split(r"[^A-Za-z0-9_]", field.strip(), maxsplit=1)[0]
    if name in known:
        return f"{{{field}}} is more than a field; write {{{name}}}"
    likely = nearest(field.lower(), known)
    meant = f"; did you mean {{{likely}}}?" if likely else ""
    if not is_first:
        return f"unknown field {{{field}}}{meant}"
    fields = (
        f" The fields are {', '.join(known)}" if likely else f"; the fields are {', '.join(known)}"
    )
    return f"unknown field {{{field}}}{meant}{fields}"
