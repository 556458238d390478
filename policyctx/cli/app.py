"""The list of commands."""

from typing import Annotated

import typer

import policyctx
from policyctx.cli import (
    audit,
    demo,
    diff,
    explain,
    exporting,
    hosts,
    policies,
    replay,
    sessions,
    summary,
    test,
    tokens,
    tune,
)
from policyctx.cli.store.upkeep import app as store

app = typer.Typer(
    name="policyctx",
    help="Decide what stays in an agent's context window, by a policy written in YAML.",
    epilog="Start with: policyctx demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("sessions")(sessions.sessions)
app.command("apply")(explain.apply)
app.command("plan")(explain.plan)
app.command("explain")(explain.explain)
app.command("replay")(replay.replay)
app.command("audit")(audit.audit)
app.command("tune")(tune.tune)
app.command("diff")(diff.diff)
app.command("demo")(demo.demo)
app.command("check")(policies.check)
app.command("show")(policies.show)
app.command("summary")(summary.summary)
app.command("tokens")(tokens.tokens)
app.command("init")(policies.init)
app.command("agents")(policies.agents)
app.command("schema")(policies.schema)
app.command("test")(test.run)
app.command("mcp")(hosts.mcp)
app.command("proxy")(hosts.proxy)
app.add_typer(store)
app.add_typer(hosts.app)
app.add_typer(exporting.export_app)
app.add_typer(exporting.import_app)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"policyctx {policyctx.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """Take the options that belong to no command."""
