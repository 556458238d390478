"""The list of commands. The module of a command is imported when it is used."""

import importlib
from functools import cached_property
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from policyctx.cli import print_version
from policyctx.definitions.items import HostObject
from policyctx.errors import PolicyError

_YAML = (".yaml", ".yml")
A_POLICY = "a policy is a preset's name or a YAML file"


class _Listed(NamedTuple):
    """What the list says of a command, and where it is."""

    home: str
    """A function, or the `Typer` of a group, in a module of `policyctx.cli`."""
    help: str
    """The first sentence of the function's docstring, or the help of the group."""


_COMMANDS = {
    "sessions": _Listed(
        "sessions:sessions",
        "Show what the coding agents on this machine were billed, and what a policy would have"
        " saved.",
    ),
    "apply": _Listed("explain:apply", "Apply a policy: new messages, and files for what left."),
    "plan": _Listed("explain:plan", "Show what a policy would do, and why; write nothing."),
    "explain": _Listed(
        "explain:explain",
        "Explain what a policy would do with each item, and which line says so; write nothing.",
    ),
    "replay": _Listed(
        "replay:replay",
        "Replay recorded sessions turn by turn under a policy; write nothing but a report.",
    ),
    "audit": _Listed(
        "audit:audit",
        "Show what the compactions of recorded sessions lost, and what later turns show of it.",
    ),
    "tune": _Listed(
        "tune:tune", "Search the settings of a policy that cost least over recorded sessions."
    ),
    "diff": _Listed(
        "diff:diff", "Replay recorded sessions under two policies; show what differs, and why."
    ),
    "demo": _Listed("demo:demo", "Watch a policy shrink the context of an agent at work."),
    "check": _Listed(
        "policies:check", "Check policies: every mistake, and what is probably a mistake."
    ),
    "show": _Listed("policies:show", "Show a policy with all that it extends, as YAML."),
    "summary": _Listed(
        "summary:summary", "Print the summary that a compaction would leave of a conversation."
    ),
    "tokens": _Listed("tokens:tokens", "Show what a conversation weighs, by type and by tool."),
    "init": _Listed(
        "starting:init",
        "Write a policy to start from, and a policyctx.yaml that runs every agent under it.",
    ),
    "agents": _Listed("policies:agents", "Show which agent gets which policy, from which line."),
    "schema": _Listed("policies:schema", "Print the JSON Schema of a policy, or explain one key."),
    "test": _Listed("test:run", "Test policies by feature files, without a line of Python."),
    "mcp": _Listed(
        "hosts:mcp", "Serve the tools read_offloaded and search_offloaded to an agent, over stdio."
    ),
    "proxy": _Listed(
        "hosts:proxy", "Apply a policy to the requests of any agent that takes a base URL."
    ),
    "store": _Listed("upkeep:app", "Look at what was offloaded, and keep it in order."),
    "hook": _Listed("hosts:app", "Offload results as they arrive in an agent that runs hooks."),
    "export": _Listed(
        "exporting:export_app", "Write a policy in the words of a server that edits contexts."
    ),
    "import": _Listed(
        "exporting:import_app", "Make a policy of what a server that edits contexts is asked to do."
    ),
}


class Command(TyperCommand):
    """A command by its line in the list; the rest of it is imported when it is used."""

    def __init__(self, name: str, listed: _Listed) -> None:
        super().__init__(name, help=listed.help, rich_markup_mode=None)
        self._listed = listed

    @cached_property
    def imported(self) -> HostObject:
        """The whole command or group, as typer makes it."""
        name, listed = str(self.name), self._listed
        module, attribute = listed.home.split(":")
        found = getattr(importlib.import_module(f"policyctx.cli.{module}"), attribute)
        alone = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)
        if isinstance(found, typer.Typer):
            alone.add_typer(found, name=name, help=listed.help)
        else:
            alone.command(name, cls=_Imported)(found)
        return typer.main.get_group(alone).commands[name]

    def make_context(self, *arguments: HostObject, **options: HostObject) -> HostObject:
        """Return the context of the whole command, which then runs in place of this one."""
        return self.imported.make_context(*arguments, **options)


class _Imported(TyperCommand):
    """A whole command; of a conversation in the place of the policy it says what comes first."""

    def invoke(self, ctx: HostObject) -> HostObject:
        try:
            return super().invoke(ctx)
        except PolicyError as error:
            named, params = error.diagnostics[0].place.file, self.get_params(ctx)
            order = [str(p.metavar) for p in params if p.param_type_name == "argument"]
            policies = [p for p in params if str(p.metavar).startswith("POLICY")]
            is_given = len(order) > 1 and named in [ctx.params[p.name] for p in policies]
            is_other = Path(named).is_dir() or Path(named).is_file()
            if is_given and is_other and Path(named).suffix not in _YAML:
                way = " ".join(("policyctx", *ctx.command_path.split()[1:], *order))
                error.add_note(f"note: the order is `{way}`; {A_POLICY}")
            raise


class _Commands(TyperGroup):
    def __init__(self, **given: HostObject) -> None:
        super().__init__(**given)
        for name, listed in _COMMANDS.items():
            self.add_command(Command(name, listed))


app = typer.Typer(
    name="policyctx",
    cls=_Commands,
    help="Decide what stays in an agent's context window, by a policy written in YAML.",
    epilog="Start with: policyctx demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print_version()
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """Take the options that belong to no command."""
