"""The wording of a placeholder where a policy gives none."""

from __future__ import annotations

DEFAULT = "[Content offloaded]\nPath: {path}"
# Follows the default wording when the session knows a tool that reads the file.
HOW_TO_READ = "\nUse {tool} tool to view details."
