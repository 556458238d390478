"""`FeatureSource`: a feature file as parsed: what pytest-bdd runs, and the tree with its lines."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gherkin.token_matcher import TokenMatcher
from pytest_bdd import feature as known
from pytest_bdd.exceptions import GherkinParseError
from pytest_bdd.gherkin_parser import get_gherkin_document
from pytest_bdd.parser import FeatureParser

from policyctx.errors import Diagnostic, Location
from policyctx.resources import open_file
from policyctx.testing.keywords import keywords_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_bdd.gherkin_parser import (
        Background,
        Child,
        GherkinDocument,
        Rule,
        Scenario,
        Tag,
    )
    from pytest_bdd.gherkin_parser import (
        Feature as Tree,
    )
    from pytest_bdd.parser import Feature

_GHERKIN = re.compile(r"expected: .*, got '(.*)'")


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
        """Yield every scenario with the rule that it stands in."""
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
            found = child.background or child.scenario
            if found:
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

    Raises `BrokenFeatureError` when it is no Gherkin, cannot be read or holds nothing.
    """

    def broken(sentence: str) -> BrokenFeatureError:
        return BrokenFeatureError([Diagnostic(Location(shown), "", sentence)])

    try:
        with open_file(path) as file:
            text = file.read().decode("utf-8")
        document = get_gherkin_document(str(path.absolute()))
    except GherkinParseError as error:
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
