"""Writes the files that are derived from the models and from measures; run by `scripts/docs`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from typer import Context
from typer.main import get_command

from policyctx.cli.app import app
from policyctx.policy.agents import agents_schema
from policyctx.policy.schema import policy_schema
from scripts.figures import pages_with_figures
from scripts.reference import reference
from scripts.steps import steps_page
from scripts.translation import Translation, catalogue_in

ROOT = Path(__file__).resolve().parents[1]
CATALOGUE = "docs/zh/policy-reference.yaml"


def derived_files() -> dict[str, str]:
    """Return the text of every derived file by its path in the checkout."""
    return {
        "policies/policy.schema.json": schema_text(),
        "policies/policyctx.schema.json": text_of(agents_schema()),
        "docs/policy-reference.md": below_title("[中文](zh/policy-reference.md)", reference()),
        "docs/zh/policy-reference.md": below_title(
            "[English](../policy-reference.md)", chinese_reference()[0]
        ),
        "docs/steps.md": steps_page(),
        "policyctx/cli/help.txt": help_text(),
        **pages_with_figures(ROOT),
    }


def help_text() -> str:
    """Return what typer prints for `policyctx --help` with 80 columns or more."""
    command = get_command(app)
    return (
        command.get_help(
            Context(command, info_name="policyctx", terminal_width=78, **command.context_settings)
        )
        + "\n"
    )


def chinese_reference() -> tuple[str, list[str]]:
    """Return the reference in Chinese, and each problem of its catalogue as a sentence.

    Problems are texts without a translation, which the page has in English, and translations of
    texts that the English page does not have.
    """
    translation = Translation(catalogue_in(ROOT / CATALOGUE))
    page = translation.page(reference())
    missing = [f"{CATALOGUE} has no translation of: {text}" for text in translation.missing]
    unused = [f"{CATALOGUE} translates what no page says: {text}" for text in translation.unused]
    return page, missing + unused


def below_title(line: str, page: str) -> str:
    """Return a page with a line below its title."""
    return page.replace("\n\n", f"\n\n{line}\n\n", 1)


def schema_text() -> str:
    """Return the JSON Schema as it is committed."""
    return text_of(policy_schema())


def text_of(schema: dict[str, Any]) -> str:
    """Return a JSON Schema as a file of it is committed."""
    return json.dumps(schema, ensure_ascii=False, indent=2) + "\n"


def stale_files(root: Path) -> list[str]:
    """Return the paths of the derived files below `root` that are missing or out of step."""
    return [
        path
        for path, text in derived_files().items()
        if not (root / path).is_file() or (root / path).read_text(encoding="utf-8") != text
    ]


def main() -> int:
    """Write the files, or with `--check` only say which are out of step; return the exit code.

    The code is 1 as well when a text of the reference has no translation.
    """
    stale, problems = stale_files(ROOT), chinese_reference()[1]
    for problem in problems:
        print(problem, file=sys.stderr)
    if "--check" in sys.argv[1:]:
        for path in stale:
            print(f"{path} is out of step: run scripts/docs", file=sys.stderr)
        return 1 if stale or problems else 0
    for path in stale:
        (ROOT / path).parent.mkdir(exist_ok=True)
        (ROOT / path).write_text(derived_files()[path], encoding="utf-8", newline="\n")
        print(f"wrote {path}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
