"""The keywords of Gherkin's languages, and which of them a word was meant to be."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache

from gherkin.dialect import Dialect

_SECTION = re.compile(r"\s*([^:]{2,24}):")
# Of two characters one is half of the word: that they differ by one alone says nothing.
_TELLING = 2


@dataclass(frozen=True, slots=True)
class Keywords:
    """The keywords of a language, without the spaces around them and without the star."""

    steps: tuple[str, ...]
    sections: tuple[str, ...]
    spaced: bool
    """Is a step's keyword followed by a space."""

    def step_like(self, word: str) -> str | None:
        """Return the step's keyword that differs from the word by a letter or two, or its case."""
        if not self.spaced:
            same = [k for k in self.steps if len(k) == len(word) > _TELLING]
            return next((k for k in same if _differ(k, word) == 1), None)
        letters = sorted(word.lower())
        swapped = [k for k in self.steps if sorted(k.lower()) == letters]
        near = swapped or get_close_matches(word.title(), self.steps, n=1, cutoff=0.74)
        return near[0] if near else None

    def section_like(self, line: str) -> tuple[str, str] | None:
        """Return what opens a line and the keyword that it is like, such as `Scenario:`."""
        match = _SECTION.match(line)
        near = match and get_close_matches(match[1].title(), self.sections, n=1, cutoff=0.75)
        return (f"{match[1]}:", f"{near[0]}:") if match and near else None

    def like(self, line: str) -> str | None:
        """Return the keyword that a line may have been meant to begin with."""
        section = self.section_like(line)
        return section[1] if section else self.step_like(line.partition(" ")[0])


def _differ(one: str, other: str) -> int:
    return sum(a != b for a, b in zip(one, other, strict=True))


@lru_cache
def keywords_of(language: str) -> Keywords:
    """Return the keywords of a language, such as `en` or `zh-CN`; English for an unknown one."""
    dialect = Dialect.for_name(language) or Dialect.for_name("en")
    assert dialect is not None  # noqa: S101 - English is always there
    raw = (
        *dialect.given_keywords,
        *dialect.when_keywords,
        *dialect.then_keywords,
        *dialect.and_keywords,
        *dialect.but_keywords,
    )
    steps = [keyword for keyword in raw if keyword.strip() != "*"]
    sections = (
        *dialect.feature_keywords,
        *dialect.background_keywords,
        *dialect.rule_keywords,
        *dialect.scenario_keywords,
        *dialect.scenario_outline_keywords,
        *dialect.examples_keywords,
    )
    return Keywords(
        steps=tuple(dict.fromkeys(keyword.strip() for keyword in steps)),
        sections=tuple(dict.fromkeys(sections)),
        spaced=any(keyword.endswith(" ") for keyword in steps),
    )
