"""The command `policyctx`: one module a command."""

import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TextIO

import policyctx
from policyctx import lazy
from policyctx.errors import PolicyctxError, PolicyError, visible

# With one of these options, `policyctx hook claude-code` is a command for people.
_HOOK_COMMANDS = frozenset({"-h", "--help", "--install", "--uninstall"})
# What typer prints where a line has room for it; `scripts/docs` writes it.
_HELP, _HELP_COLUMNS = Path(__file__).with_name("help.txt"), 80


def main() -> None:
    """Run the command line.

    Exit codes: 0 done, 1 the input was wrong or the output had no room (said on stderr), 2 usage.
    """
    if sys.argv[1:3] == ["hook", "claude-code"] and _HOOK_COMMANDS.isdisjoint(sys.argv[3:]):
        from policyctx.integrations import claude_code  # noqa: PLC0415 - seldom needed

        claude_code.run_and_exit(sys.argv[3:])
    # A shell may have closed either.
    sys.stdout, sys.stderr = sys.stdout or _nowhere(), sys.stderr or _nowhere()
    for stream in (sys.stdout, sys.stderr):
        # A console or pipe that lacks a character shows a question mark for it.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        try:
            code = _run(sys.argv[1:])
        finally:
            sys.stdout.flush()
        sys.exit(code if isinstance(code, int) else 0)
    except PolicyctxError as error:
        print(visible(_said(error)), file=sys.stderr)  # noqa: T201 - the one place that says it
        sys.exit(1)
    except OSError as error:
        _give_up_output()
        if not isinstance(error, BrokenPipeError):  # who reads it has enough
            of = f": {error.filename}" if error.filename else ""
            print(visible(f"error: {error.strerror or error}{of}"), file=sys.stderr)  # noqa: T201
        sys.exit(1)
    except Exception as error:
        # Wrong usage, which may quote an argument such as the name of a file.
        if (show := getattr(error, "show", None)) is None:
            raise
        said = io.StringIO()
        show(said)
        said.write(_presets(error))
        sys.stderr.write(visible(said.getvalue()))
        sys.exit(getattr(error, "exit_code", 1))


def _run(arguments: Sequence[str]) -> object:
    """Run a command, and return its exit code if it has one."""
    if arguments == ["--version"]:  # without typer, whose import takes nearly all of the time
        print_version()
        return 0
    is_help = arguments in (["-h"], ["--help"]) and Path(sys.argv[0]).name == "policyctx"
    if is_help and lazy.shutil.get_terminal_size().columns >= _HELP_COLUMNS:
        sys.stdout.write(_HELP.read_text(encoding="utf-8"))
        return 0
    from typer import Abort  # noqa: PLC0415 - needed by no one else

    from policyctx.cli.app import app  # noqa: PLC0415

    try:
        return app(standalone_mode=False)
    except Abort:
        sys.exit("Aborted!")


def print_version() -> None:
    """Print the version of the package."""
    print(f"policyctx {policyctx.__version__}")  # noqa: T201


def _nowhere() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8")


def _give_up_output() -> None:
    """Let what a full disk did not take go nowhere; Python would try it again at its end."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _said(error: PolicyctxError) -> str:
    """The error for people: a policy's mistakes with their lines, any other in a paragraph."""
    if not isinstance(error, PolicyError):
        return f"error: {error}"
    from policyctx.cli.output import Format, shown  # noqa: PLC0415 - seldom needed

    return "\n".join((shown(error.diagnostics, Format.TEXT), *getattr(error, "__notes__", ())))


def _presets(error: Exception) -> str:
    """Return which presets there are, for wrong usage that gives no policy; else empty."""
    wanted = getattr(getattr(error, "param", None), "name", "")
    if wanted != "policy" or getattr(error, "message", ""):
        return ""
    from policyctx.cli.app import A_POLICY  # noqa: PLC0415
    from policyctx.policy.sources import preset_names  # noqa: PLC0415

    return f"{A_POLICY}; the presets are {', '.join(preset_names())}\n"
