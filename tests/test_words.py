"""The repository has few of the phrases over which readers stumbled."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST = 5
# Each phrase, and what to write instead.
PHRASES = {
    r"\bthat (?:is|are) no (?!longer\b|more\b|less\b|other\b)\w+": "that is not a …",
    r"\bpass(?:es|ed) over\b": "skip",
    r"\bsurely\b": "certainly, probably",
    r"\bcan be had\b": "is possible, is available",
    r"\bbut for (?:the|its|one|a|what|those)\b": "except",
    r"\b[Ww]hat stands\b(?! for\b)": "what is, what comes",
    r"\bstands? (?:in|at|beside|behind) (?:a|an|it|its|one|the(?! place))\b": "is in, is at",
    r"\b(?:it|they|that|which) (?:is|are) told\b(?! to\b| not\b)": "is reported, is listed",
    r"\btold (?:elsewhere|beforehand|with its)\b": "reported",
    r"\bgoes about it\b": "works",
    r"\bof which (?:the first|any) (?:that|is)\b": "the first of which",
    r"\bcomes? to under\b": "costs under",
    r"\bin vain\b": "without success",
    r"\bfor want of\b": "without",
    r"\b(?:there|here|where)(?:of|upon|from|in|by)\b": "of it, from it",
}
# Material that imitates what people and models write.
MATERIAL = (
    "tests/compaction/",
    "tests/test_words.py",
    "benchmarks/planted/",
)
READ = (".md", ".py", ".feature", ".yaml", ".js", ".html")


def phrases_in(text: str) -> list[str]:
    """Return the phrases of the list that a text has, as often as it has them."""
    return [match[0] for phrase in PHRASES for match in re.finditer(phrase, text)]


def test_the_repository_has_few_of_the_phrases() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],  # noqa: S607
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    paths = [name for name in listed.splitlines() if name.endswith(READ)]
    found = {
        name: phrases
        for name in paths
        if not name.startswith(MATERIAL)
        and (ROOT / name).is_file()
        and (phrases := phrases_in((ROOT / name).read_text(encoding="utf-8")))
    }
    assert sum(map(len, found.values())) <= MOST, found


def test_the_list_finds_a_phrase_and_leaves_plain_words() -> None:
    found = phrases_in("Files that are no recordings are passed over, and it is told.")
    assert found == ["that are no recordings", "passed over", "it is told"]
    assert not phrases_in("A file that is no longer there is skipped; the model is told to wait.")
