"""`policyctx mcp`: a server over stdio with which an agent reads offloaded content back."""

from __future__ import annotations

from typing import Annotated

import typer

from policyctx.integrations.mcp_server import read_back_server


def mcp(
    root: Annotated[
        str, typer.Option(help="A store's folder, as in `store.root`; may hold {session_id}.")
    ],
    session: Annotated[
        str | None, typer.Option(help="One session, where several share the folder.")
    ] = None,
) -> None:
    """Serve the tools read_offloaded and search_offloaded to an agent, over stdio.

    Both only read what this one session has offloaded. The server ends when its input does.

    Example: policyctx mcp --root ~/.agent/context --session session_20260101_120000_abc123
    """
    read_back_server(root, session).run("stdio")
