"""What `docs/diagnostics.md` says of each code: the text below its heading, or its line."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "diagnostics.md"
_ERRORS, _, _WARNINGS = PAGE.read_text(encoding="utf-8").partition("\n## Warnings\n")

ERRORS = dict(re.findall(r"^### (PC\d+): .*\n\n((?:(?!###).*\n)+)", _ERRORS, re.MULTILINE))
FINDINGS = dict(re.findall(r"^- (PC\d+): (.*(?:\n  .*)*)$", _WARNINGS, re.MULTILINE))
