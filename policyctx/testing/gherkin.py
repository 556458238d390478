"""Feature files as parsed: keywords of all languages, tags, and misspelt keywords.

`FeatureSource` holds what pytest-bdd runs and the tree with its lines. To Gherkin a line that
begins with no keyword is part of a description, so a misspelt keyword is found and reported here.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from operator import ne
from pathlib import Path
from typing import Final

import pytest
from gherkin.dialect import Dialect
from gherkin.token_matcher import TokenMatcher
from pytest_bdd import feature as known
from pytest_bdd.exceptions import GherkinParseError
from pytest_bdd.gherkin_parser import (
    Background,
    Child,
    GherkinDocument,
    Rule,
    Scenario,
    Tag,
    get_gherkin_document,
)
from pytest_bdd.gherkin_parser import Feature as Tree
from pytest_bdd.parser import Feature, FeatureParser

from policyctx.errors import Diagnostic, Location, nearest, present
from policyctx.policy.sources import is_linked
from policyctx.resources import open_file
from policyctx.testing.step_definitions import Definitions

_SECTION = re.compile(r"\s*([^:]{2,24}):")
# Of two characters one is half of the word: that they differ by one alone says nothing.
_TELLING = 2
_STEPS: Final = ("given", "when", "then", "and", "but")
_SECTIONS: Final = ("feature", "background", "rule", "scenario", "scenarioOutline", "examples")
_GHERKIN = re.compile(r"expected: .*, got '(.*)'")
# Words of English prose that are only one letter away from a keyword.
_PROSE = frozenset(
    {"a", "add", "an", "any", "as", "bit", "buy", "by", "end", "even", "give", "gives", "hand"}
    | {"in", "land", "out", "put", "than", "that", "the", "them", "they", "thin", "what", "who"}
)
# A keyword of a language without spaces has so many characters at the most.
_MOST_CHARS = 4
# A requirements document's own ids: features, use cases, business rules.
PATTERNS = (r"F-\d+", r"UC-\d+", r"BR-[\w.-]+")


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
            return next((k for k in same if sum(map(ne, k, word)) == 1), None)
        return nearest(word.title(), self.steps, 0.74)

    def section_like(self, line: str) -> tuple[str, str] | None:
        """Return what opens a line and the keyword that it is like, such as `Scenario:`."""
        match = _SECTION.match(line)
        near = match and nearest(match[1].title(), self.sections, 0.75)
        return (f"{match[1]}:", f"{near}:") if match and near else None

    def like(self, line: str) -> str | None:
        """Return the keyword that a line may have been meant to begin with."""
        section = self.section_like(line)
        return section[1] if section else self.step_like(line.partition(" ")[0])


@lru_cache
def keywords_of(language: str) -> Keywords:
    """Return the keywords of a language, such as `en` or `zh-CN`; English for an unknown one."""
    spec = present(Dialect.for_name(language) or Dialect.for_name("en")).spec
    steps = [word for name in _STEPS for word in spec[name] if word.strip() != "*"]
    return Keywords(
        steps=tuple(dict.fromkeys(keyword.strip() for keyword in steps)),
        sections=tuple(dict.fromkeys(word for name in _SECTIONS for word in spec[name])),
        spaced=any(keyword.endswith(" ") for keyword in steps),
    )


class BrokenFeatureError(Exception):
    """A feature file cannot be a test as it is; `problems` say where and why."""

    def __init__(self, problems: list[Diagnostic]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, problems)))


@dataclass(frozen=True, slots=True)
class FeatureSource:
    """One feature file."""

    path: Path
    shown: str
    """The path as problems name it."""
    lines: tuple[str, ...]
    tree: Tree
    feature: Feature | None
    """What pytest-bdd runs; None where it refuses, as `refusal` says."""
    refusal: Diagnostic | None = None

    def problem(self, line: int, sentence: str, hint: str = "") -> Diagnostic:
        """Return a problem at a line, which is shown with it."""
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        column = len(text) - len(text.lstrip()) + 1
        return Diagnostic(Location(self.shown, line, column, text), "", sentence, hint)

    def scenarios(self) -> Iterator[tuple[Scenario, Rule | None]]:
        """Yield every scenario with the rule that it is in."""
        for child, rule in self._children():
            if child.scenario:
                yield child.scenario, rule

    def nodes(self) -> Iterator[Tree | Rule | Background | Scenario]:
        """Yield everything that has a description, in the order of the file."""
        yield self.tree
        last: Rule | None = None
        for child, rule in self._children():
            if rule is not None and rule is not last:
                yield rule
                last = rule
            if found := child.background or child.scenario:
                yield found

    def tags(self) -> Iterator[Tag]:
        """Yield every tag: of the feature, its rules, scenarios and examples."""
        yield from self.tree.tags
        for child in self.tree.children:
            if child.rule:
                yield from child.rule.tags
        for scenario, _ in self.scenarios():
            yield from scenario.tags
            for table in scenario.examples:
                yield from table.tags

    def _children(self) -> Iterator[tuple[Child, Rule | None]]:
        for child in self.tree.children:
            if child.rule:
                yield from ((inner, child.rule) for inner in child.rule.children)
            else:
                yield child, None


class _Parser(FeatureParser):
    """pytest-bdd's own parser, with a tree that is there already."""

    def __init__(self, path: Path, document: GherkinDocument) -> None:
        super().__init__(str(path.parent), path.name)
        self._document = document

    def _parse_feature_file(self) -> GherkinDocument:
        return self._document


def read_feature(path: Path, shown: str) -> FeatureSource:
    """Parse a feature file; pytest-bdd's `scenario` finds it parsed.

    Raises `BrokenFeatureError` when it is not Gherkin, cannot be read or holds nothing.
    """

    def broken(sentence: str) -> BrokenFeatureError:
        return BrokenFeatureError([Diagnostic(Location(shown), "", sentence)])

    try:
        with open_file(path) as file:
            text = file.read().decode("utf-8")
        document = get_gherkin_document(str(path.absolute()))
    except GherkinParseError as error:
        if is_linked(path):  # the file may be any, and its lines secret
            raise broken("a link leads to this file, and it is not a feature") from None
        raise BrokenFeatureError([_told(error, shown, _language(text))]) from error
    except (OSError, UnicodeDecodeError) as error:
        raise broken(f"cannot be read: {error}") from error
    except (KeyError, TypeError) as error:
        # pytest-bdd takes it for granted that a file holds a feature.
        raise broken("there is no feature in this file") from error
    lines = tuple(text.splitlines())
    parser = _Parser(path.absolute(), document)
    try:
        feature = parser.parse()
    except GherkinParseError as error:
        refusal = _told(error, shown, document.feature.language)
        return FeatureSource(path, shown, lines, document.feature, None, refusal)
    known.features[parser.abs_filename] = feature
    return FeatureSource(path, shown, lines, document.feature, feature)


def _told(error: GherkinParseError, shown: str, language: str) -> Diagnostic:
    """What the parser refused, without the tokens that it would have taken."""
    text, sentence = error.line_content, error.message
    found = _GHERKIN.search(str(error.__cause__)) if error.__cause__ is not None else None
    if found is not None:
        sentence = f"this line means nothing here: {found[1]}"
    near = keywords_of(language).like(text.strip())
    hint = f"did you mean {near!r}?" if near and not text.strip().startswith(near) else ""
    column = len(text) - len(text.lstrip()) + 1
    return Diagnostic(Location(shown, error.line, column, text), "", sentence, hint)


def _language(text: str) -> str:
    match = TokenMatcher.LANGUAGE_RE.match(text.partition("\n")[0])
    return match[1] if match else "en"


def misspelt_keywords(source: FeatureSource, definitions: Definitions) -> Iterator[Diagnostic]:
    """Yield a problem for each line of a description that was probably meant to be more."""
    keywords = keywords_of(source.tree.language)
    for line, text, is_prose in _described(source):
        if (found := _meant(text, keywords, definitions, is_prose=is_prose)) is not None:
            yield source.problem(line, *found)


def _described(source: FeatureSource) -> Iterator[tuple[int, str, bool]]:
    """Yield the lines of the descriptions, and whether prose is to be expected there."""
    for node in source.nodes():
        wanted = [text.strip() for text in node.description.splitlines() if text.strip()]
        is_prose = bool(getattr(node, "children", ()))
        line = node.location.line
        while wanted and line < len(source.lines):
            text = source.lines[line].strip()
            line += 1
            if text == wanted[0]:
                yield line, wanted.pop(0), is_prose


def _meant(
    text: str, keywords: Keywords, definitions: Definitions, *, is_prose: bool
) -> tuple[str, str] | None:
    """Return what is wrong with a line and what was meant; None for a description."""
    choice = f"the keywords are {', '.join(keywords.steps)}"
    if section := keywords.section_like(text):
        return f"misspelt keyword {section[0]!r}", f"did you mean {section[1]!r}?"
    if definitions.is_known(text):
        return f"a step without its keyword: {text}", choice
    for word, rest in _splits(text, keywords):
        near = keywords.step_like(word)
        if near == word and definitions.is_known(rest):
            return (
                f"a step that belongs to no scenario: {text}",
                "a line such as `Scenario: …`, with its colon, comes before the steps",
            )
        if definitions.is_known(rest) or (near and not is_prose and word.lower() not in _PROSE):
            return f"misspelt keyword {word!r}", f"did you mean {near!r}?" if near else choice
    return None


def _splits(text: str, keywords: Keywords) -> Iterator[tuple[str, str]]:
    """Yield what may be the keyword of a line, and what follows it."""
    if keywords.spaced:
        word, _, rest = text.partition(" ")
        yield word, rest.strip()
        return
    for count in range(1, min(_MOST_CHARS, len(text)) + 1):
        yield text[:count], text[count:].strip()


class KnownTags:
    """The markers of the ini and the plugins, and the patterns: `policyctx_tags` and our own."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        patterns = (*PATTERNS, *config.getini("policyctx_tags"))
        self._patterns = re.compile("|".join(f"(?:{pattern})" for pattern in patterns))

    def problem(self, tag: str) -> tuple[str, str] | None:
        """Return what is wrong with a tag, and what may have been meant; None for a known one."""
        markers = self._markers()
        if tag in markers or self._patterns.fullmatch(tag):
            return None
        likely = nearest(tag, markers)
        meant = f"did you mean @{likely}? " if likely else ""
        return (
            f"unknown tag @{tag}",
            f"{meant}Register it as a marker in pytest's ini, or its pattern under policyctx_tags",
        )

    def register(self, tag: str) -> None:
        """Make a tag a marker, so that `-m` knows it and strict markers accept it."""
        if tag not in self._markers():
            self._config.addinivalue_line("markers", f"{tag}: a tag of the features")

    def _markers(self) -> set[str]:
        lines = self._config.getini("markers")
        return {re.split(r"[:(]", line, maxsplit=1)[0].strip() for line in lines}
