"""Checks policies for the action: annotations on stdout, counts in `$GITHUB_OUTPUT`.

Reads `POLICIES`, globs separated by white space, and `STRICT`. A `policyctx.yaml` in the working
directory is checked too. Exits with 1 for an error, and for a warning if it is strict.
"""

from __future__ import annotations

import os
import subprocess
import sys
from glob import glob
from pathlib import Path


def annotations(command_name: str, *files: str) -> list[str]:
    """Return the lines that a command prints for GitHub; each is a diagnostic."""
    words = [command_name, "--format", "github", *(["--", *files] if files else [])]
    command = [sys.executable, "-m", "policyctx", *words]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)  # noqa: S603
    if done.returncode not in {0, 1} or (done.returncode and not done.stdout):
        sys.exit(done.stderr or f"policyctx {command_name} failed with {done.returncode}")
    # Not `splitlines`: only a newline ends a command, and a message may hold any other sign.
    return done.stdout.removesuffix("\n").split("\n") if done.stdout else []


def main() -> int:
    """Check the policies; return the exit code."""
    globs = os.environ["POLICIES"].split()
    # Unlike `Path.glob` this leaves hidden folders out, such as `.venv`.
    matches = {pattern: glob(pattern, recursive=True) for pattern in globs}  # noqa: PTH207
    files = sorted({path for found in matches.values() for path in found})
    lines = [
        f"::error title=policyctx::no file matches {pattern.replace('%', '%25')}"
        for pattern, found in matches.items()
        if not found
    ]
    if files:
        lines += annotations("check", *files)
    if Path("policyctx.yaml").exists():
        lines += [line for line in annotations("agents") if line not in lines]
    for line in lines:
        print(line)
    errors = sum(line.startswith("::error ") for line in lines)
    warnings = sum(line.startswith("::warning ") for line in lines)
    print(f"{len(files)} policies: {errors} errors, {warnings} warnings")
    with Path(os.environ["GITHUB_OUTPUT"]).open("a", encoding="utf-8") as output:
        output.write(f"errors={errors}\nwarnings={warnings}\n")
    return 1 if errors or (os.environ["STRICT"] == "true" and warnings) else 0


if __name__ == "__main__":
    sys.exit(main())
