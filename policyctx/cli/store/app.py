"""The list of the commands of `policyctx store`."""

from __future__ import annotations

import typer

from policyctx.cli.store import look, restoring, upkeep

app = typer.Typer(
    name="store",
    help="Look at what was offloaded, and keep it in order.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.command("ls")(look.ls)
app.command("cat")(look.cat)
app.command("restore")(restoring.restore)
app.command("restore-archive")(look.restore_archive)
app.command("search")(look.search)
app.command("history")(look.history)
app.command("verify")(look.verify)
app.command("gc")(upkeep.gc)
app.command("rebuild")(upkeep.rebuild)
app.command("export")(upkeep.export)
app.command("import")(upkeep.import_)
app.command("copy")(upkeep.copy)
app.command("upload")(upkeep.upload)
