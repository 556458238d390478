"""Replays recordings for the action, and publishes their total.

Reads `RECORDINGS`, a path a line, `POLICY` and `PUBLISH_SESSIONS`. Writes a table to
`$GITHUB_STEP_SUMMARY`, counts to `$GITHUB_OUTPUT` and one annotation to stdout. Recordings are
private: without `PUBLISH_SESSIONS=true` no name of a file and no message of the command is shown.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

# Signs that would end a cell of a table or begin markup in it.
_MARKUP = {ord(sign): f"\\{sign}" for sign in "\\`*_[]<>|#!&~"} | {10: " ", 13: " "}


def main() -> int:
    """Replay the recordings; return the exit code of the replay."""
    paths = [line for line in os.environ["RECORDINGS"].splitlines() if line.strip()]
    shows_sessions = os.environ["PUBLISH_SESSIONS"] == "true"
    words = ["replay", "--json", "--", os.environ["POLICY"], *paths]
    command = [sys.executable, "-m", "policyctx", *words]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)  # noqa: S603
    if shows_sessions:
        print(done.stderr, end="", file=sys.stderr)
    try:
        report = json.loads(done.stdout)
    except ValueError:
        print("::error title=policyctx replay::nothing was replayed; see publish-sessions")
        return done.returncode or 1
    counts = counts_of(report)
    append("GITHUB_OUTPUT", "".join(f"{name}={value}\n" for name, value in counts.items()))
    append("GITHUB_STEP_SUMMARY", "\n".join([*table(counts), *sessions(report, shows_sessions)]))
    print(f"::notice title=policyctx replay::{sentence(counts)}")
    if counts["failed-files"]:
        failed = f"{counts['failed-files']} files could not be read or replayed"
        print(f"::error title=policyctx replay::{failed}")
    return done.returncode


def counts_of(report: dict[str, Any]) -> dict[str, Any]:
    """Return the outputs of the action by their names; an unknown one is empty."""
    total = report["total"]
    net = total["net"]["dollars"]
    return {
        "sessions": total["sessions"],
        "calls": total["calls"],
        "tokens-without": total["tokens_without"],
        "tokens-with": total["tokens_with"],
        "removed-items": total["removed_items"],
        "regretted-items": total["regretted_items"],
        "net-dollars": "" if net is None else round(net, 2),
        "dearer-sessions": total["dearer_sessions"],
        "failed-files": len(report["failures"]),
    }


def table(counts: dict[str, Any]) -> list[str]:
    """Return the lines of a table in Markdown with the counts."""
    rows = [f"| {name.replace('-', ' ')} | {shown(value)} |" for name, value in counts.items()]
    policy = os.environ["POLICY"].translate(_MARKUP)
    return [f"### Replay under {policy}", "", "| | |", "|---|---:|", *rows, ""]


def sessions(report: dict[str, Any], is_wanted: bool) -> list[str]:  # noqa: FBT001
    """Return the lines of a table with the sessions, if they are to be shown."""
    if not is_wanted:
        return []
    rows = [
        f"| {str(one['name']).translate(_MARKUP)} | {one['calls']:,} | {one['tokens_without']:,} |"
        f" {one['tokens_with']:,} | {one['regretted_items']:,} |"
        for one in report["sessions"]
    ]
    return ["| session | calls | sent | with it | regret |", "|---|---:|---:|---:|---:|", *rows, ""]


def sentence(counts: dict[str, Any]) -> str:
    """Return the counts that matter most, as one line of text."""
    before, after = counts["tokens-without"], counts["tokens-with"]
    change = f" ({(after - before) / before:+.0%})" if before else ""
    net = f", net ${counts['net-dollars']:,.2f}" if counts["net-dollars"] != "" else ""
    return (
        f"{counts['sessions']:,} sessions, {counts['calls']:,} calls: {before:,} to {after:,}"
        f" tokens{change}{net}; {counts['regretted-items']:,} of {counts['removed-items']:,}"
        f" removed items were needed again; dearer in {counts['dearer-sessions']:,} sessions"
    ).replace("%", "%25")


def shown(value: object) -> str:
    """Return a count with separators, or the word unknown."""
    return f"{value:,}" if isinstance(value, int | float) else str(value) or "unknown"


def append(variable: str, text: str) -> None:
    """Add text to the file that a variable of the runner names."""
    with Path(os.environ[variable]).open("a", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    sys.exit(main())
