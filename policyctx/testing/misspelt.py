"""Misspelt keywords: to Gherkin, a line that begins with none is part of a description."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyctx.testing.keywords import keywords_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policyctx.errors import Diagnostic
    from policyctx.testing.definitions import Definitions
    from policyctx.testing.gherkin import FeatureSource
    from policyctx.testing.keywords import Keywords

# Words of English prose that are only one letter away from a keyword.
_PROSE = frozenset(
    {"a", "add", "an", "any", "as", "bit", "buy", "by", "end", "even", "give", "gives", "hand"}
    | {"in", "land", "out", "put", "than", "that", "the", "them", "they", "thin", "what", "who"}
)
# A keyword of a language without spaces has so many characters at the most.
_MOST_CHARS = 4


def misspelt_keywords(source: FeatureSource, definitions: Definitions) -> Iterator[Diagnostic]:
    """Yield a problem for each line of a description that was surely meant to be more."""
    keywords = keywords_of(source.tree.language)
    for line, text, is_prose in _described(source):
        found = _meant(text, keywords, definitions, is_prose=is_prose)
        if found is not None:
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
