"""The release script refuses a tree that is not ready, and writes the notes of one version."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from scripts.release import notes_of, version_of, wrong_in_tree

ROOT = Path(__file__).parents[1]
CHANGELOG = """\
# Changelog

## [Unreleased]

## [1.2.0] - 2026-01-02

### Added

- A thing.

## [1.1.0]

- Another.
"""


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=n", "-c", "user.email=n@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["/usr/bin/env", "git", *who, *words], cwd=folder, check=True)


def test_the_notes_are_the_section_of_the_version() -> None:
    assert notes_of(CHANGELOG, "1.2.0") == "### Added\n\n- A thing."
    assert notes_of(CHANGELOG, "1.1.0") == "- Another."
    assert notes_of(CHANGELOG, "Unreleased") == notes_of(CHANGELOG, "1.3.0") == ""


def test_a_tree_that_is_not_ready_is_refused_with_each_reason(tmp_path: Path) -> None:
    files = {
        "pyproject.toml": '[project]\nversion = "1.2.0"\n',
        "CITATION.cff": "version: 1.2.0\n",
        "CHANGELOG.md": CHANGELOG,
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "one")
    assert wrong_in_tree(tmp_path) == []
    git(tmp_path, "tag", "v1.2.0")
    (tmp_path / "CITATION.cff").write_text("version: 1.1.0\n", encoding="utf-8")
    unreleased = CHANGELOG.replace("[Unreleased]\n", "[Unreleased]\n\n- More.\n")
    (tmp_path / "CHANGELOG.md").write_text(unreleased.replace("1.2.0", "1.3.0"), encoding="utf-8")
    assert wrong_in_tree(tmp_path) == [
        "the tree has changes that are not committed",
        "the tag v1.2.0 is there already",
        "CITATION.cff has another version than 1.2.0",
        "CHANGELOG.md has no section [1.2.0], or an empty one",
        "CHANGELOG.md has entries under [Unreleased]",
    ]


def test_the_citation_has_the_version_and_the_licence_of_the_package() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {version_of(ROOT)}\n" in citation
    assert "\nlicense: MIT\n" in citation
    assert re.search(r'^date-released: "\d{4}-\d\d-\d\d"$', citation, re.MULTILINE)
