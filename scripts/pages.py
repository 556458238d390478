"""Writes the pages of the documentation site to build/docs; run by `scripts/site`.

The site has the pages of docs/. A link from there to another file of the checkout, such as an
example, leads to a page with the text of that file.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TypeAlias

ROOT = Path(__file__).resolve().parents[1]
# The target of a link or a picture, in Markdown and in the few tags that pages use.
TARGET = re.compile(
    r"(?<=\]\()[^)\s]+(?=\))|(?<=src=\")[^\"\s]+(?=\")|(?<=srcset=\")[^\"\s]+(?=\")"
)
FENCE = re.compile(r"^( *)(```+).*?^\1\2[ \t]*$", re.DOTALL | re.MULTILINE)
LANGUAGES = {".py": "python", ".yaml": "yaml", ".toml": "toml", ".feature": "gherkin"}
# A page with the text of a file is not what a search looks for.
NOT_SEARCHED = "---\nsearch:\n  exclude: true\n---\n\n"

# A page of the navigation, or a part of it.
Entry: TypeAlias = "str | list[Entry] | dict[str, Entry]"


@dataclass(frozen=True, slots=True)
class Page:
    """One page of the site: its path in the site, its text, and the sources that it links to."""

    place: PurePosixPath
    text: str
    targets: frozenset[Path]


def site_pages(root: Path) -> tuple[list[Page], list[str]]:
    """Return the pages, and each problem as a sentence.

    Problems are links and anchors that lead nowhere, pages that the navigation lacks, and pages
    that only the navigation has. `root` is the folder with docs/ and zensical.toml.
    """
    seen = set((root / "docs").rglob("*.md"))
    waiting, pages, problems = sorted(seen), list[Page](), _navigation_problems(root)
    while waiting:
        source = waiting.pop()
        page = _page(root, source, problems)
        pages.append(page)
        waiting += sorted(page.targets - seen)
        seen |= page.targets
    return pages, sorted(problems)


def navigation(root: Path) -> list[str]:
    """Return the pages that the navigation lists, in its order."""
    return _leaves(tomllib.loads((root / "zensical.toml").read_text("utf-8"))["project"]["nav"])


def anchors(text: str) -> set[str]:
    """Return the anchors of the headings of a page, as GitHub and the site make them."""
    headings = re.findall(r"^#+ +(.+?) *$", FENCE.sub("", text), re.MULTILINE)
    return {_slug(heading) for heading in headings} | set(re.findall(r'\bid="([^"]+)"', text))


def _slug(heading: str) -> str:
    shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")


def _leaves(entry: Entry) -> list[str]:
    if isinstance(entry, str):
        return [entry]
    values = entry.values() if isinstance(entry, dict) else entry
    return [leaf for value in values for leaf in _leaves(value)]


def _navigation_problems(root: Path) -> list[str]:
    docs, listed = root / "docs", set(navigation(root))
    written = {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")}
    return [
        *(f"docs/{page} is not in the navigation of zensical.toml" for page in written - listed),
        *(f"zensical.toml lists {page}, which docs/ does not have" for page in listed - written),
    ]


def _page(root: Path, source: Path, problems: list[str]) -> Page:
    """Return the page of a file or a folder; add what is wrong with its links to `problems`."""
    place, name = _place(root, source), source.relative_to(root).as_posix()
    text, targets = _markdown(root, source), set[Path]()

    def on_the_site(match: re.Match[str]) -> str:
        file, mark, anchor = match[0].partition("#")
        if re.match(r"[a-z]+:", file):
            return match[0]
        folder = source if source.is_dir() else source.parent
        target = (folder / file).resolve() if file else source
        if not (target.is_relative_to(root) and target.exists()):
            problems.append(f"{name} links to {match[0]}, which does not exist")
            return match[0]
        if anchor and anchor not in anchors(_markdown(root, target)):
            problems.append(f"{name} links to {match[0]}, which is no heading there")
        if not file or (target.is_relative_to(root / "docs") and target.suffix != ".md"):
            return match[0]
        targets.add(target)
        return os.path.relpath(_place(root, target), place.parent) + mark + anchor

    pieces, end = list[str](), 0
    for fence in FENCE.finditer(text):
        pieces += [TARGET.sub(on_the_site, text[end : fence.start()]), fence[0]]
        end = fence.end()
    pieces += [TARGET.sub(on_the_site, text[end:])]
    return Page(place, "".join(pieces), frozenset(targets))


def _place(root: Path, source: Path) -> PurePosixPath:
    """Return the path of a source's page in the site."""
    if source.is_relative_to(root / "docs"):
        return PurePosixPath(source.relative_to(root / "docs"))
    place = PurePosixPath("source") / source.relative_to(root).as_posix()
    if source.is_dir():
        return place / "index.md"
    return place if source.suffix == ".md" else place.with_name(place.name + ".md")


def _markdown(root: Path, source: Path) -> str:
    """Return a page's Markdown: its own, the list of a folder's files, or a file's text."""
    if source.suffix == ".md":
        text = source.read_text(encoding="utf-8")
        return text if source.is_relative_to(root / "docs") else NOT_SEARCHED + text
    title = f"{NOT_SEARCHED}# {source.relative_to(root).as_posix()}\n\n"
    if source.is_dir():
        names = sorted(path.name for path in source.iterdir() if path.suffix in LANGUAGES)
        return title + "".join(f"- [{name}]({name})\n" for name in names)
    language = LANGUAGES.get(source.suffix, "text")
    return f"{title}````{language}\n{source.read_text(encoding='utf-8')}````\n"


def main() -> int:
    """Print the problems, or else write the pages and the other files; return the exit code."""
    pages, problems = site_pages(ROOT)
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems or "--check" in sys.argv[1:]:
        return 1 if problems else 0
    built = ROOT / "build" / "docs"
    shutil.rmtree(built, ignore_errors=True)
    shutil.copytree(ROOT / "docs", built, ignore=shutil.ignore_patterns("*.md"))
    for page in pages:
        (built / page.place).parent.mkdir(parents=True, exist_ok=True)
        (built / page.place).write_text(page.text, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
