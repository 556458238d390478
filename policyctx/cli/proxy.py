"""`policyctx proxy`: the policy for any agent that takes a base URL."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from policyctx.errors import InputError, MissingExtraError
from policyctx.store.roots import store_root

_UPSTREAMS = {"anthropic": "https://api.anthropic.com", "openai": "https://api.openai.com"}
_SHOWN_UPSTREAMS = ",".join(f"{name}={url}" for name, url in _UPSTREAMS.items())


def proxy(
    policy: Annotated[str, typer.Option(help="A preset's name or a policy file's path.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for any that is free.")] = 8377,
    host: Annotated[
        str, typer.Option(help="Another address than the loopback one needs --token-file.")
    ] = "127.0.0.1",
    token_file: Annotated[
        Path | None,
        typer.Option(help="A file with the token that clients have to send.", show_default=False),
    ] = None,
    upstream: Annotated[
        str, typer.Option(metavar="NAME=URL,…", help="Of `anthropic` and `openai`.")
    ] = _SHOWN_UPSTREAMS,
    agents: Annotated[
        Path | None,
        typer.Option(help="A policyctx.yaml with policies by agent.", show_default=False),
    ] = None,
    root: Annotated[Path, typer.Option(help="Folder with a folder for each session.")] = Path(
        "~/.policyctx/proxy"
    ),
    client: Annotated[
        Literal["same", "other"] | None,
        typer.Option(
            help="Whether agents run on this machine, and can read its files. Without it: `same` if"
            " the proxy listens on the loopback address.",
            show_default=False,
        ),
    ] = None,
    read_back: Annotated[
        Literal["mcp", "tool"] | None,
        typer.Option(
            help="`mcp`: serve the texts at /_policyctx/mcp, and let placeholders name the tool"
            " there in place of a path. `tool` is refused, with the reason.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing, and show what a turn would do.")
    ] = False,
    show_content: Annotated[
        bool, typer.Option("--show-content", help="Show text of messages on /_policyctx/.")
    ] = False,
    max_body: Annotated[int, typer.Option(min=1, metavar="MB", help="Refuse larger bodies.")] = 128,
    max_messages: Annotated[
        int, typer.Option(min=1, metavar="N", help="Send longer lists as they came.")
    ] = 20_000,
) -> None:
    """Apply a policy to the requests of any agent that takes a base URL.

    Prints its URL once it listens. SIGTERM or Ctrl-C stops it. See docs/proxy.md.

    Example: policyctx proxy --policy coding-agent
    """
    try:
        from policyctx.proxy.command import Options, serve  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingExtraError("the proxy", extra="proxy") from error
    endpoint = None
    if read_back == "mcp":
        from policyctx.integrations.mcp_http import McpOverHttp  # noqa: PLC0415 - an extra

        endpoint = McpOverHttp()
    serve(
        Options(
            policy=policy,
            host=host,
            port=port,
            token_file=token_file,
            upstreams=_UPSTREAMS | _upstreams(upstream),
            agents=agents,
            root=Path(store_root(root)),
            client=client,
            read_back=read_back,
            dry_run=dry_run,
            show_content=show_content,
            max_body_bytes=max_body * 10**6,
            max_messages=max_messages,
        ),
        say=lambda url: typer.echo(f"policyctx proxy listens on {url}"),
        endpoint=endpoint,
    )


def _upstreams(text: str) -> dict[str, str]:
    """Return the URLs of upstreams by name; raises `InputError`."""
    found = {}
    for one in filter(None, map(str.strip, text.split(","))):
        name, _, url = one.partition("=")
        if name not in _UPSTREAMS or not url.startswith(("http://", "https://")):
            names = " and ".join(f"`{known}=URL`" for known in _UPSTREAMS)
            raise InputError(f"--upstream takes {names}, got {one!r}")
        found[name] = url
    return found
