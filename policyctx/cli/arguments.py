"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

Policy: TypeAlias = Annotated[
    str, typer.Argument(metavar="POLICY", help="A preset's name or a policy file's path.")
]
Messages: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="MESSAGES",
        help="A JSON file: an array of messages, a request body, or a recorded session of"
        " Claude Code, Codex and others. `-` is stdin.",
    ),
]
Root: TypeAlias = Annotated[
    Path | None, typer.Option(help="Folder for offloaded content, in place of the policy's own.")
]
Directory: TypeAlias = Annotated[
    Path,
    typer.Option(
        help="A folder in place of the working directory.",
        exists=True,
        file_okay=False,
        show_default=False,
    ),
]
ExtendsFrom: TypeAlias = Annotated[
    list[Path],
    typer.Option(
        help="A folder outside of the project that `extends` may read from, also given by"
        " POLICYCTX_EXTENDS_FROM. May be repeated.",
        show_default=False,
    ),
]
SessionId: TypeAlias = Annotated[
    str | None, typer.Option(help="The session's id; a new one by default.")
]
Recorded: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--session",
        metavar="NAME",
        help="Which session of a file with several: its name, the part after `#`, or its number;"
        " the first by default. `?` lists them.",
        show_default=False,
    ),
]
Call: TypeAlias = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="The list that call N of a recorded session was made with; by default the list at the"
        " session's end.",
        show_default=False,
    ),
]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Report as JSON.")]
