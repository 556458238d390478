"""`policyctx schema`: the JSON Schema of policies, or one key explained."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from policyctx.cli import arguments
from policyctx.cli.output import console, json_text
from policyctx.policy.agents_schema import agents_schema
from policyctx.policy.reference import explained
from policyctx.policy.schema import policy_schema, schema_of

_Key = Annotated[
    str | None,
    typer.Argument(
        metavar="[KEY]",
        help="A key by its dotted path; names of types, tools and steps may be left out.",
        show_default=False,
    ),
]


def schema(
    key: _Key = None,
    agents: Annotated[
        bool, typer.Option("--agents", help="Print the JSON Schema of a policyctx.yaml.")
    ] = False,
    as_json: arguments.Json = False,
) -> None:
    """Print the JSON Schema of a policy, or explain one key.

    The end of a path is enough: of a key that several maps have, the full paths are listed.

    Example: policyctx schema items.keep_recent
    """
    out = console()
    if agents:
        if key is not None:
            raise typer.BadParameter("--agents goes without a KEY")
        out.out(json_text(agents_schema()), highlight=False)
    elif key is None:
        out.out(json_text(policy_schema()), highlight=False)
    elif as_json:
        out.out(json_text(schema_of(key)), highlight=False)
    else:
        text = Text(explained(key))
        text.stylize("bold", 0, text.plain.find("\n"))
        text.highlight_regex(r"`[^`]+`", "cyan")
        out.print(text, soft_wrap=True)
