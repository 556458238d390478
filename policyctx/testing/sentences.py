"""`StepSentence`: a step's wording with typed places, as English as it is read.

In a template `{name:kind}` is a value and `{name=one|other}` one of these words; `(words)` may be
left out, and of `(one|other)` one is said. A colon at the end of a step is passed over:
`Given the messages:`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pytest_bdd.parsers import StepParser

from policyctx.testing.kinds import KINDS, Kind
from policyctx.testing.pieces import PIECES
from policyctx.testing.selecting import ITEMS

if TYPE_CHECKING:
    from collections.abc import Iterator

_ALL_KINDS = {**KINDS, "pieces": PIECES, "items": ITEMS}
_TOKEN = re.compile(r"\{(?P<name>\w+)(?P<kind>[:=][^}]+)\}|(?P<sign>[()|])|(?P<words>[^{()|]+)")


class StepSentence(StepParser):
    """Matches the steps that say what `template` says; what was left out is no argument."""

    def __init__(self, template: str, examples: tuple[str, ...] = ()) -> None:
        super().__init__(template)
        self.examples = examples
        self._regex = re.compile(_pattern(template) + ":?")
        self._converters = {m["name"]: _kind(m["kind"]) for m in _tokens(template) if m["name"]}

    def is_matching(self, name: str) -> bool:
        """Does the step say this."""
        return self._regex.fullmatch(name) is not None

    def parse_arguments(self, name: str) -> dict[str, Any] | None:
        """Return the values in the step, None when it says something else."""
        match = self._regex.fullmatch(name)
        if match is None:
            return None
        return {
            place: kind.convert(match[place])
            for place, kind in self._converters.items()
            if match[place] is not None
        }


def _tokens(template: str) -> Iterator[re.Match[str]]:
    return _TOKEN.finditer(template)


def _kind(name: str) -> Kind:
    """The kind after `:`; the words after `=` are a kind of their own."""
    sign, words = name[0], name[1:]
    if sign == ":":
        return _ALL_KINDS[words]
    return Kind("|".join(map(re.escape, words.split("|"))), str, f"one of {words}")


def _pattern(template: str) -> str:
    """The regular expression of a template."""
    groups: list[tuple[list[str], bool]] = [([], False)]
    for token in _tokens(template):
        parts, has_choice = groups[-1]
        if token["sign"] == "(":
            groups.append(([], False))
        elif token["sign"] == "|":
            parts.append("|")
            groups[-1] = (parts, True)
        elif token["sign"] == ")":
            groups.pop()
            body = f"(?:{''.join(parts)})"
            groups[-1][0].append(body if has_choice else f"{body}?")
        elif token["name"]:
            parts.append(f"(?P<{token['name']}>{_kind(token['kind']).regex})")
        else:
            parts.append(re.escape(token["words"]))
    return "".join(groups[0][0])
