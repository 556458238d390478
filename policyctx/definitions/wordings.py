"""The wording of a placeholder, and the signs in it, where a policy gives none."""

from __future__ import annotations

DEFAULT = "[Content offloaded]\nPath: {path}"
# Follows a line that is cut, and a line's number, where a policy does not say.
CUT_MARK = "…"
NUMBER_SEPARATOR = "\t"
# A line after the default wording when the session knows a tool that reads the file.
HOW_TO_READ = "Use {tool} tool to view details."
# What `{how_to_read}` shows while the session knows no tool of its own that does.
READ_AGAIN = "Read that file when you need it again."
