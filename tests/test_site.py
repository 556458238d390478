"""The documentation site: every link leads somewhere, and every page is in the navigation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts.pages import anchors, navigation, site_pages

ROOT = Path(__file__).parents[1]
DOCUMENTS = [*ROOT.glob("*.md"), *ROOT.glob("[!.]*/README.md")]


def site(folder: Path, *listed: str, **pages: str) -> Path:
    (folder / "zensical.toml").write_text(f"[project]\nnav = [{{ Part = {list(listed)} }}]\n")
    (folder / "docs").mkdir()
    for name, text in pages.items():
        (folder / "docs" / f"{name}.md").write_text(text)
    return folder


def test_the_site_has_no_dead_link_and_no_page_outside_the_navigation() -> None:
    pages, problems = site_pages(ROOT)
    assert problems == []
    assert {str(page.place) for page in pages} > set(navigation(ROOT))


def test_a_link_to_another_file_leads_to_a_page_with_its_text(tmp_path: Path) -> None:
    site(tmp_path, "a.md", a="See [it](../more/loop.py) and [all](../more/).")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "loop.py").write_text("while True: ...\n")
    pages, problems = site_pages(tmp_path)
    assert problems == []
    texts = {str(page.place): page.text for page in pages}
    assert texts["a.md"] == "See [it](source/more/loop.py.md) and [all](source/more/index.md)."
    assert "````python\nwhile True: ...\n````" in texts["source/more/loop.py.md"]
    assert "[loop.py](loop.py.md)" in texts["source/more/index.md"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[x](b.md)", "docs/a.md links to b.md, which does not exist"),
        ("[x](../../etc/a.md)", "docs/a.md links to ../../etc/a.md, which does not exist"),
        ("![x](b.svg)", "docs/a.md links to b.svg, which does not exist"),
        ("# One\n[x](#two)", "docs/a.md links to #two, which is not a heading there"),
        (
            "```sh\n# two\n```\n[x](a.md#two)",
            "docs/a.md links to a.md#two, which is not a heading there",
        ),
    ],
)
def test_a_dead_link_is_reported(tmp_path: Path, text: str, problem: str) -> None:
    assert site_pages(site(tmp_path, "a.md", a=text))[1] == [problem]


def test_a_link_in_code_is_left_alone(tmp_path: Path) -> None:
    text = "```md\n[x](b.md)\n```\n"
    pages, problems = site_pages(site(tmp_path, "a.md", a=text))
    assert (pages[0].text, problems) == (text, [])


def test_pages_and_navigation_must_agree(tmp_path: Path) -> None:
    assert site_pages(site(tmp_path, "b.md", a="text"))[1] == [
        "docs/a.md is not in the navigation of zensical.toml",
        "zensical.toml lists b.md, which docs/ does not have",
    ]


def test_the_anchors_of_headings_are_those_of_github() -> None:
    text = "# `steps`, *all* of them\n## A / B\n### [A link](x.md): 10 %\n"
    assert anchors(text) == {"steps-all-of-them", "a--b", "a-link-10-"}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_anchor_in_other_documents_is_a_heading(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    # A diff has lines of other documents, whose links are theirs.
    text = re.sub(r"^```diff$.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    links = re.findall(r"\]\(([^):\s]*)#([^)\s]+)\)", text)
    for file, anchor in links:
        target = path.parent / file if file else path
        assert anchor in anchors(target.read_text(encoding="utf-8")), f"{file}#{anchor}"


def test_the_site_loads_nothing_from_elsewhere() -> None:
    """The theme's fonts and its worker for `file:` addresses would come from other hosts."""
    settings = (ROOT / "zensical.toml").read_text(encoding="utf-8")
    assert "\nfont = false\n" in settings
    assert (ROOT / "docs" / "javascripts" / "iframe-worker.js").is_file()
    assert '\npolyfills = ["javascripts/iframe-worker.js"]\n' in settings
    for picture in (ROOT / "docs" / "pictures").glob("*.svg"):
        text = picture.read_text(encoding="utf-8").replace("http://www.w3.org/", "")
        assert "http" not in re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL), picture.name


def test_the_pictures_are_small() -> None:
    sizes = [path.stat().st_size for path in (ROOT / "docs" / "pictures").iterdir()]
    assert max(sizes) < 200_000
    assert sum(sizes) < 1_000_000
