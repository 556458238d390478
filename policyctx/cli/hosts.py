"""Commands that hosts start: the hook of Claude Code, the MCP server and the proxy."""

import shlex
import shutil
import sys
from collections.abc import Callable
from difflib import unified_diff
from pathlib import Path
from typing import Annotated, Literal

import typer

from policyctx.cli.output import group, option
from policyctx.errors import InputError, MissingExtraError, SettingsError, visible
from policyctx.integrations import claude_code_settings as settings
from policyctx.integrations.arrival_bounds import forget_compactions
from policyctx.integrations.claude_code import DEFAULT_POLICY, run
from policyctx.integrations.mcp_server import McpOverHttp, read_back_server
from policyctx.planning.compiled import OffloadPolicy
from policyctx.policy.sources import is_shipped
from policyctx.store.backend import store_root

app = group()
_UPSTREAMS = {"anthropic": "https://api.anthropic.com", "openai": "https://api.openai.com"}


@app.command("claude-code")
def claude_code(
    policy: Annotated[
        str, option("A preset's name or a policy file's path.", metavar="POLICY")
    ] = DEFAULT_POLICY,
    root: Annotated[
        str | None, option("Folder for the files, in place of the policy's own.")
    ] = None,
    install: Annotated[
        bool, option("Add the hook to the settings of Claude Code.", "--install")
    ] = False,
    uninstall: Annotated[bool, option("Remove the hook from the settings.", "--uninstall")] = False,
    project: Annotated[
        bool,
        option(
            "Edit .claude/settings.json in the working directory, not the user's settings.",
            "--project",
        ),
    ] = False,
    without: Annotated[
        Literal["compaction"] | None,
        option(
            "Install the hook for results alone: what a compaction loses is not put back.",
            "--without",
        ),
    ] = None,
    yes: Annotated[bool, option("Edit without a question.", "--yes", "-y")] = False,
) -> None:
    """Run as a hook of Claude Code: event on stdin, what it adds or replaces on stdout.

    Large results of Bash, Read and MCP tools leave the context as they arrive. What a compaction of
    Claude Code's own loses of your orders, exact values, open tasks and edited files is put back.
    --install shows how it changes the settings, and asks. Whatever fails in the hook leaves
    everything as it is: the exit code is 0, and stderr has the reason.

    Example: policyctx hook claude-code --install
    """
    if install and uninstall:
        raise typer.BadParameter("give --install or --uninstall", param_hint="--uninstall")
    if not install and not uninstall:
        run([f"--policy={policy}", *([f"--root={root}"] if root is not None else [])])
        return
    path = settings.settings_path(project=project)
    if project and not path.resolve().is_relative_to(Path.cwd().resolve()):
        raise SettingsError(f"{path} is a link and leads out of the project", path=str(path))
    if uninstall:
        _edit(path, settings.uninstalled, yes=yes)
        forget_compactions()
        return
    reason = settings.idle_reason(OffloadPolicy.load(policy), compaction=without is None)
    if reason:
        typer.echo(visible(f"warning: {policy}: {reason}"), err=True)
    command = _command(policy, root, project=project)
    _edit(path, lambda text: settings.installed(text, command, compaction=without is None), yes=yes)
    if without is not None:
        forget_compactions()
    if project and shutil.which("policyctx-hook") is None:
        typer.echo("policyctx-hook is not on the PATH; the project's command needs it there")


def _command(policy: str, root: str | None, *, project: bool) -> str:
    """Return the command line of the hook.

    A project's settings are shared, so they name the command; the user's settings name its file.
    """
    beside = Path(sys.executable).with_name("policyctx-hook")
    words = [str(beside) if beside.exists() and not project else "policyctx-hook", "claude-code"]
    if not project and not is_shipped(policy):
        policy = str(Path(policy).absolute())
    if policy != DEFAULT_POLICY:
        words += ["--policy", policy]
    if root is not None:
        words += ["--root", root]
    return shlex.join(words)


def _edit(path: Path, edited: Callable[[str], str], *, yes: bool) -> None:
    before = settings.read_settings(path)
    try:
        start = settings.MADE if before is None else before if before.strip() else settings.EMPTY
        after = edited(start)
    except ValueError as error:
        raise SettingsError(f"{path} cannot be edited: {error}", path=str(path)) from error
    if after == start:
        typer.echo(visible(f"nothing to change in {path}"))
        return
    is_over = before is not None and settings.is_left_of_own(path, after)
    new = "" if is_over else after
    lines = unified_diff(
        (before or "").splitlines(), new.splitlines(), str(path), str(path), lineterm=""
    )
    typer.echo(visible("\n".join(lines)))
    try:
        if not yes and not typer.confirm(f"{'Remove' if is_over else 'Write'} {path}?"):
            raise typer.Exit(1)
    except typer.Abort:
        typer.echo(err=True)
        raise InputError("nothing is written; --yes writes without a question") from None
    settings.write_settings(path, new or None, before=before)
    typer.echo(visible(f"{'removed' if is_over else 'wrote'} {path}"))


def mcp(
    root: Annotated[str, option("A store's folder, as in `store.root`; may hold {session_id}.")],
    session: Annotated[str | None, option("One session, where several share the folder.")] = None,
) -> None:
    """Serve the tools read_offloaded and search_offloaded to an agent, over stdio.

    Both only read what this one session has offloaded. The server ends when its input does.

    Example: policyctx mcp --root ~/.agent/context --session session_20260101_120000_abc123
    """
    read_back_server(root, session).run("stdio")


def proxy(
    policy: Annotated[str, option("A preset's name or a policy file's path.")],
    port: Annotated[int, option("0 for any that is free.", min=0, max=65535)] = 8377,
    host: Annotated[
        str, option("Another address than the loopback one needs --token-file.")
    ] = "127.0.0.1",
    token_file: Annotated[
        Path | None, option("A file with the token that clients have to send.")
    ] = None,
    upstream: Annotated[
        str,
        option(
            "Of `anthropic` and `openai`, in place of the providers' own.", metavar="NAME=URL,…"
        ),
    ] = "",
    agents: Annotated[Path | None, option("A policyctx.yaml with policies by agent.")] = None,
    root: Annotated[Path, option("Folder with a folder for each session.")] = Path(
        "~/.policyctx/proxy"
    ),
    client: Annotated[
        Literal["same", "other"] | None,
        option(
            "Whether agents run on this machine, and can read its files. Without it: `same` if"
            " the proxy listens on the loopback address."
        ),
    ] = None,
    read_back: Annotated[
        Literal["mcp", "tool"] | None,
        option(
            "`mcp`: serve the texts at /_policyctx/mcp, and let placeholders name the tool"
            " there in place of a path. `tool` is refused, with the reason."
        ),
    ] = None,
    dry_run: Annotated[
        bool, option("Change nothing, and show what a turn would do.", "--dry-run")
    ] = False,
    record: Annotated[
        Path | None,
        option(
            "Write the calls as a recording that replay reads; may hold {session_id}.",
            metavar="FILE",
        ),
    ] = None,
    show_content: Annotated[
        bool, option("Show text of messages on /_policyctx/.", "--show-content")
    ] = False,
    max_body: Annotated[int, option("Refuse larger bodies.", min=1, metavar="MB")] = 128,
    max_messages: Annotated[
        int, option("Send longer lists as they came.", min=1, metavar="N")
    ] = 20_000,
) -> None:
    """Apply a policy to the requests of any agent that takes a base URL.

    Prints its URL once it listens. SIGTERM or Ctrl-C stops it. See docs/proxy.md.

    Example: policyctx proxy --policy coding-agent
    """
    try:
        from policyctx.proxy.command import ProxyOptions, serve  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingExtraError("the proxy", extra="proxy") from error
    serve(
        ProxyOptions(
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
            record=record,
            show_content=show_content,
            max_body_bytes=max_body * 10**6,
            max_messages=max_messages,
        ),
        say=lambda url: typer.echo(
            f"policyctx proxy listens on {url}\n"
            f"what it did is on {url}{'/_policyctx/token/TOKEN' if token_file else ''}/_policyctx/"
        ),
        endpoint=McpOverHttp() if read_back == "mcp" else None,
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
