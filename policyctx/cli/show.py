"""`policyctx show`: a policy with all that it extends merged in."""

from __future__ import annotations

from typing import Annotated

import typer

from policyctx.cli import arguments
from policyctx.cli.output import console, json_text, table
from policyctx.policy.loading import resolved, validated
from policyctx.policy.showing import origins, resolved_yaml
from policyctx.policy.sources import policy_source


def show(
    policy: arguments.Policy,
    with_origins: Annotated[
        bool, typer.Option("--origins", help="Show where each value was written.")
    ] = False,
    as_json: arguments.Json = False,
) -> None:
    """Show a policy with all that it extends, as YAML.

    The output loads to the same policy again. A value from the environment is shown as its
    expression, such as ${NAME}, never as what the variable holds.

    Example: policyctx show coding-agent --origins
    """
    root = resolved(policy_source(policy))
    validated(root)
    out = console()
    if with_origins:
        rows = origins(root)
        if as_json:
            report = [{"key": k, "value": v, "place": str(place)} for k, v, place in rows]
            out.out(json_text(report), highlight=False)
            return
        cells = ((key, json_text(value, indent=None), place) for key, value, place in rows)
        columns, whole = ("key", "value", "written at"), {"key", "written at"}
        out.print(table(columns, cells, numeric=set(), whole=whole))
        return
    out.out(
        json_text(root.as_written()) if as_json else resolved_yaml(root).rstrip(), highlight=False
    )
