"""`KnownTags`: which tags scenarios may bear."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from policyctx.policy.diagnosing import nearest

if TYPE_CHECKING:
    import pytest

# A requirements document's own ids: features, use cases, business rules.
PATTERNS = (r"F-\d+", r"UC-\d+", r"BR-[\w.-]+")


class KnownTags:
    """The markers of the ini and the plugins, and the patterns: `policyctx_tags` and our own."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        patterns = (*PATTERNS, *config.getini("policyctx_tags"))
        self._patterns = re.compile("|".join(f"(?:{pattern})" for pattern in patterns))

    def problem(self, tag: str) -> tuple[str, str] | None:
        """Return what is wrong with a tag, and what may have been meant; None for a known one."""
        markers = self._markers()
        if tag in markers or self._patterns.fullmatch(tag):
            return None
        likely = nearest(tag, markers)
        meant = f"did you mean @{likely[0]}? " if likely else ""
        return (
            f"unknown tag @{tag}",
            f"{meant}Register it as a marker in pytest's ini, or its pattern under policyctx_tags",
        )

    def register(self, tag: str) -> None:
        """Make a tag a marker, so that `-m` knows it and strict markers accept it."""
        if tag not in self._markers():
            self._config.addinivalue_line("markers", f"{tag}: a tag of the features")

    def _markers(self) -> set[str]:
        lines = self._config.getini("markers")
        return {re.split(r"[:(]", line, maxsplit=1)[0].strip() for line in lines}
