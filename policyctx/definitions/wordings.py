"""The wording of a placeholder, and the signs in it, where a policy gives none."""

from __future__ import annotations

DEFAULT = "[Content offloaded]\nPath: {path}"
# Follows a line that is cut, and a line's number, where a policy does not say.
CUT_MARK = "…"
NUMBER_SEPARATOR = "\t"
# Follows the default wording when the session knows a tool that reads the file.
HOW_TO_READ = "\nUse {tool} tool to view details."
