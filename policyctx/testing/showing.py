"""How problems of feature files are shown: place, sentence, the line, and what was meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import pytest

    from policyctx.errors import Diagnostic


def shown_path(path: Path, config: pytest.Config) -> str:
    """Return a path as people name it: from where pytest was started, when it is below that."""
    base = config.invocation_params.dir
    return str(path.relative_to(base) if path.is_relative_to(base) else path)


def shown_problems(problems: Iterable[Diagnostic]) -> str:
    """Return the problems, each led by `file:line:`, without a newline at the end."""
    return "\n".join(map(_shown, problems))


def _shown(problem: Diagnostic) -> str:
    place = problem.place
    where = f"{place.file}:{place.line}" if place.line else place.file
    lines = [f"{where}: {problem.sentence}"]
    if place.source_line.strip():
        lines.append(f"{place.line:5} | {place.source_line.rstrip()}")
    lines += [f"        {line}" for line in problem.hint.splitlines()]
    return "\n".join(lines)
