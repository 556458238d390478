"""Writes the files that are derived from the models; run by `scripts/docs`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from policyctx.policy.agents_schema import agents_schema
from policyctx.policy.codes import code_pages
from policyctx.policy.presets import preset_record, record_path
from policyctx.policy.reference import reference
from policyctx.policy.schema import policy_schema
from policyctx.policy.sources import policy_source, preset_names
from policyctx.testing.listing import steps_page

ROOT = Path(__file__).resolve().parents[1]


def derived_files() -> dict[str, str]:
    """Return the text of every derived file by its path in the checkout."""
    return {
        "policies/policy.schema.json": schema_text(),
        "policies/policyctx.schema.json": text_of(agents_schema()),
        "docs/policy-reference.md": reference(),
        "docs/diagnostics.md": code_pages(),
        "docs/steps.md": steps_page(),
    } | {f"policies/{record_path(name)}": record_text(name) for name in preset_names()}


def record_text(name: str) -> str:
    """Return the values of a preset as they are committed."""
    record = preset_record(policy_source(name))
    return json.dumps(record, ensure_ascii=False, indent=1) + "\n"


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
    """Write the files, or with `--check` only say which are out of step; return the exit code."""
    stale = stale_files(ROOT)
    if "--check" in sys.argv[1:]:
        for path in stale:
            print(f"{path} is out of step: run scripts/docs", file=sys.stderr)
        return 1 if stale else 0
    for path in stale:
        (ROOT / path).parent.mkdir(exist_ok=True)
        (ROOT / path).write_text(derived_files()[path], encoding="utf-8", newline="\n")
        print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
