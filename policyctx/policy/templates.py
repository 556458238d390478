"""Texts with fields, such as `Path: {path}`.

`{name}` is a field, and `{{` and `}}` are literal braces; nothing else is evaluated.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from policyctx.errors import nearest

_PIECE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


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

    `problems` has one sentence for each, in the order of the text; `known` the fields there are.
    """

    def __init__(self, problems: list[str], known: list[str]) -> None:
        self.problems = tuple(problems)
        self.known = tuple(known)
        super().__init__("; ".join(problems))


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
        raise TemplateError([*problems.values()], known)
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
