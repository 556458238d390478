"""What `docs/diagnostics.md` says of each code."""

import re
from pathlib import Path
from typing import NamedTuple


class Code(NamedTuple):
    """The section of a code: its title, and the text below it."""

    title: str
    text: str


PAGE = Path(__file__).parents[2] / "docs" / "diagnostics.md"


def _codes(heading: str) -> dict[str, Code]:
    _, _, below = PAGE.read_text(encoding="utf-8").partition(f"\n## {heading}\n")
    part = below.partition("\n## ")[0]
    found = re.findall(r"^### (PC\d+): (.*)\n\n((?:(?!###).*\n)+)", part, re.MULTILINE)
    return {code: Code(title, text.strip()) for code, title, text in found}


ERRORS, FINDINGS = map(_codes, ("Errors", "Warnings"))
