"""A Chinese page has the structure of its English one: headings, code, tables, links."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAIRS = [
    ("README.md", "README.zh.md"),
    *((f"docs/{p.name}", f"docs/zh/{p.name}") for p in sorted((ROOT / "docs/zh").glob("*.md"))),
]
_FENCED = re.compile(r"^```([^\n]*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_COMMENT = re.compile(r"\s*(?<!\S)#\s.*$", re.MULTILINE)


@dataclass(frozen=True)
class Structure:
    """What the translation of a page keeps."""

    headings: list[int]
    code: list[tuple[str, str]]
    rows: list[int]
    links: set[str]

    @classmethod
    def of(cls, page: Path) -> Structure:
        """Return the structure of a page; links are relative to the root of the repository."""
        text = page.read_text(encoding="utf-8")
        prose = _FENCED.sub("", text)
        links = re.findall(r"\]\(([^)\s]+)\)", prose)
        return cls(
            headings=[len(marks) for marks in re.findall(r"^(#+) ", prose, re.MULTILINE)],
            code=[(opening, _COMMENT.sub("", code)) for opening, code in _FENCED.findall(text)],
            rows=[line.count("|") for line in prose.splitlines() if line.startswith("|")],
            links={_target(page, link) for link in links},
        )


def _target(page: Path, link: str) -> str:
    """Return where a link leads; a page and its translation are one target."""
    if "://" in link:
        return link
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve().relative_to(ROOT) if path else page.relative_to(ROOT)
    name = target.as_posix().replace("docs/zh/", "docs/").replace("README.zh.md", "README.md")
    return f"{name}#" if anchor else name


@pytest.mark.parametrize(("english", "chinese"), PAIRS, ids=[chinese for _, chinese in PAIRS])
def test_a_translation_has_the_structure_of_its_original(english: str, chinese: str) -> None:
    original, translation = Structure.of(ROOT / english), Structure.of(ROOT / chinese)
    assert translation.headings == original.headings
    assert translation.code == original.code
    assert translation.rows == original.rows
    assert translation.links == original.links
