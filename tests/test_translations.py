"""A Chinese page has the structure of its English one, and a generated one each of its texts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from scripts.generate import CATALOGUE, chinese_reference
from scripts.translation import Translation, catalogue_in

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
    assert translation.links >= original.links
    assert translation.links - original.links <= {english for english, _ in PAIRS}


def test_every_text_of_the_reference_has_a_translation_and_no_other_text_has_one() -> None:
    assert chinese_reference()[1] == []


def test_a_translation_has_the_code_of_its_text() -> None:
    code = re.compile(r"`[^`]*`")
    differ = [
        english
        for english, chinese in catalogue_in(ROOT / CATALOGUE).items()
        if set(code.findall(chinese)) != set(code.findall(english))
    ]
    assert differ == []


PAGE = """\
## What it is

Two
lines, and `code`:

    code: stays

### model, steps.when

- `a` (`x` or [map](#model); none): It is.
    - `b`, `c` (`y` or [map](#steps)): As `a`.
- `d`: as in [steps.when](#stepswhen)

| name | is |
|---|---|
| `a \\| b` | It is. |
"""


def test_a_page_is_translated_piece_by_piece() -> None:
    translation = Translation(
        {
            "What it is": "是什么",
            "Two lines, and `code`:": "两行，和 `code`：",
            "It is.": "是。",
            "As `a`.": "同 `a`。",
            "as in": "同",
            "none": "无",
            "name": "名",
            "is": "是",
            "… or [map](…)": "… 或[映射](…)",
        }
    )
    assert translation.page(PAGE) == (
        "## 是什么\n\n两行，和 `code`：\n\n    code: stays\n\n### model, steps.when\n\n"
        "- `a` (`x` 或[映射](#model); 无): 是。\n"
        "    - `b`, `c` (`y` 或[映射](#steps)): 同 `a`。\n- `d`: 同 [steps.when](#stepswhen)\n\n"
        "| 名 | 是 |\n|---|---|\n| `a \\| b` | 是。 |\n"
    )
    assert (translation.missing, translation.unused) == ([], [])


def test_a_text_without_a_translation_stays_and_is_named() -> None:
    translation = Translation({"Old": "旧"})
    assert translation.page("# New\n") == "# New\n"
    assert (translation.missing, translation.unused) == (["New"], ["Old"])


def test_the_translation_of_a_type_has_all_of_its_parts() -> None:
    translation = Translation({"… or …": "…"})
    with pytest.raises(ValueError, match="needs … as often as it: … or …"):
        translation.page("- `a` (`x` or `y`): It is.\n")


def test_a_text_with_two_translations_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "page.yaml"
    path.write_text("- {en: Old, zh: 旧}\n- {en: Old, zh: 老}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"page\.yaml has two translations of: Old"):
        catalogue_in(path)
