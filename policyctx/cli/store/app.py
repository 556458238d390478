"""The list of the commands of `policyctx store`."""

from __future__ import annotations

import typer

from policyctx.cli.store import archives, commands, upkeep

app = typer.Typer(
    name="store",
    help="Look at what was offloaded, and keep it in order.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.command("ls")(commands.ls)
app.command("cat")(commands.cat)
app.command("restore-archive")(archives.restore_archive)
app.command("search")(commands.search)
app.command("history")(commands.history)
app.command("verify")(commands.verify)
app.command("gc")(upkeep.gc)
app.command("rebuild")(upkeep.rebuild)
app.command("export")(upkeep.export)
app.command("import")(upkeep.import_)
