"""`policyctx hook claude-code`: run the hook of Claude Code, or edit its settings."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Callable
from difflib import unified_diff
from pathlib import Path
from typing import Annotated

import typer

from policyctx.errors import SettingsError, visible
from policyctx.integrations import claude_code_settings as settings
from policyctx.integrations.claude_code import DEFAULT_POLICY, run
from policyctx.policy.loading import load_policy
from policyctx.policy.sources import is_shipped

app = typer.Typer(
    name="hook",
    help="Offload results as they arrive in an agent that runs hooks.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.callback()
def hooks() -> None:
    """Take the options that belong to no hook."""


@app.command("claude-code")
def claude_code(
    policy: Annotated[
        str, typer.Option(metavar="POLICY", help="A preset's name or a policy file's path.")
    ] = DEFAULT_POLICY,
    root: Annotated[
        str | None, typer.Option(help="Folder for the files, in place of the policy's own.")
    ] = None,
    install: Annotated[
        bool, typer.Option("--install", help="Add the hook to the settings of Claude Code.")
    ] = False,
    uninstall: Annotated[
        bool, typer.Option("--uninstall", help="Remove the hook from the settings.")
    ] = False,
    project: Annotated[
        bool,
        typer.Option(
            "--project",
            help="Edit .claude/settings.json in the working directory, not the user's settings.",
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Edit without a question.")] = False,
) -> None:
    """Run as a PostToolUse hook of Claude Code: event on stdin, new output on stdout.

    Large results of Bash, Read and MCP tools leave the context as they arrive. --install shows how
    it changes the settings, and asks. Whatever fails in the hook leaves the result as it is: the
    exit code is 0, and stderr has the reason.

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
        return
    load_policy(policy)
    command = _command(policy, root, project=project)
    _edit(path, lambda text: settings.installed(text, command), yes=yes)
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
    """Show how a settings file changes, ask, and write it."""
    before = settings.read_settings(path)
    try:
        after = edited("{}\n" if before is None or not before.strip() else before)
    except ValueError as error:
        raise SettingsError(f"{path} cannot be edited: {error}", path=str(path)) from error
    if after == ("{}\n" if before is None else before):
        typer.echo(visible(f"nothing to change in {path}"))
        return
    lines = unified_diff(
        (before or "").splitlines(), after.splitlines(), str(path), str(path), lineterm=""
    )
    typer.echo(visible("\n".join(lines)))
    if not yes and not typer.confirm(f"Write {path}?"):
        raise typer.Exit(1)
    settings.write_settings(path, after, before=before)
    typer.echo(visible(f"wrote {path}"))
