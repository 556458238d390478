"""`policyctx test`: run features, with no pytest configuration at all."""

import sys
from collections.abc import Sequence
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path
from typing import Annotated

import typer

from policyctx.cli.output import Json, argument, console, option
from policyctx.errors import install_command, visible

# pytest's exit codes, as this command's: a feature that is broken, or none at all, is wrong input.
_CODES = {0: 0, 1: 1, 2: 1, 4: 2, 5: 1}
_PLUGINS = ("-p", "pytest-bdd", "-p", "policyctx")
# pytest warns that it cannot rewrite the assertions of this package, which has none.
_IMPORTED = ("-W", "ignore::pytest.PytestAssertRewriteWarning")


def run(
    paths: Annotated[
        list[str] | None,
        argument(
            "[PATHS]",
            "Feature files, folders of them, or single scenarios as FILE::NAME; those of the"
            " working directory by default. Arguments after `--` are passed to pytest.",
        ),
    ] = None,
    steps: Annotated[
        bool,
        option(
            "List the steps that a feature may use; with words in place of PATHS, those steps"
            " that have all of them.",
            "--steps",
        ),
    ] = False,
    cov: Annotated[
        bool, option("Report which rules of the policies were covered.", "--cov")
    ] = False,
    cov_of: Annotated[
        list[str] | None,
        option("Report the coverage of this policy only; may be repeated.", metavar="POLICY"),
    ] = None,
    cov_fail_under: Annotated[
        float | None,
        option("Fail when a smaller share of the sides of a policy is covered.", metavar="PERCENT"),
    ] = None,
    cov_json: Annotated[
        str | None, option("Write every rule with the scenarios that cover it.", metavar="FILE")
    ] = None,
    mutate: Annotated[
        str | None,
        option(
            "Change one value of this policy at a time, and list the changes that no scenario"
            " notices.",
            metavar="POLICY",
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        option(
            "How many processes run mutants; by default as many as there are processors.", min=1
        ),
    ] = None,
    accept: Annotated[
        Path | None,
        option(
            "Mutants that need not be noticed: a YAML list of {mutant, reason}.",
            metavar="FILE",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Test policies by feature files, without a line of Python.

    Exits with 0 when every scenario passed; with 1 when one failed, a feature is broken, there is
    none, too few sides are covered, or a mutant is not noticed; with 2 for wrong usage.

    Examples: policyctx test features -- -k offload -x

    policyctx test features --cov-of mine.yaml --cov-fail-under 90

    policyctx test features --mutate mine.yaml

    policyctx test --steps failed result
    """
    if find_spec("pytest_bdd") is None:
        console(stderr=True).print(f"error: features need pytest-bdd: {install_command('bdd')}")
        raise typer.Exit(2)
    if mutate is not None:
        from policyctx.cli.mutating import print_mutants  # noqa: PLC0415 - needs pytest

        noticed = print_mutants(mutate, paths or (), jobs=jobs, accept=accept, as_json=as_json)
        raise typer.Exit(0 if noticed else 1)
    # pytest would send their characters to the terminal as they are.
    if odd := [path for path in paths or () if visible(path) != path]:
        raise typer.BadParameter(f"{odd[0]} has control or hidden characters; name its folder")
    _require_features(() if steps else paths or ())
    options = ["--policyctx-only", "--continue-on-collection-errors", "-q"]
    if steps:
        words = [one for one in paths or () if not Path(one.partition("::")[0]).exists()]
        paths = [one for one in paths or () if one not in words]
        options += [f"--policyctx-steps={'json' if as_json else 'text'}", "-q"]
        options.append(f"--policyctx-steps-with={' '.join(words)}")
    elif as_json:
        raise typer.BadParameter(
            "goes with --steps and --mutate; for results, pass `-- --junit-xml=FILE`"
        )
    if cov:
        options.append("--policyctx-cov=")
    options += [f"--policyctx-cov={policy}" for policy in cov_of or ()]
    if cov_fail_under is not None:
        options.append(f"--policyctx-cov-fail-under={cov_fail_under}")
    if cov_json is not None:
        options.append(f"--policyctx-cov-json={cov_json}")
    import pytest  # noqa: PLC0415 - only installed for features

    if not sys.flags.safe_path:
        sys.path.insert(0, str(Path.cwd()))  # as `python -m pytest` does
    code = int(pytest.main([*_PLUGINS, *_IMPORTED, *options, *(paths or ())]))
    raise typer.Exit(_CODES.get(code, code))


def _require_features(paths: Sequence[str]) -> None:
    """Raise `typer.BadParameter` for a path that is not there, or a file that has no features."""
    # Options of pytest come after the paths, with values of their own.
    for path in takewhile(lambda one: not one.startswith("-"), paths):
        name = path.partition("::")[0]
        if not Path(name).exists():
            raise typer.BadParameter(f"{name}: no such file or folder")
        if Path(name).is_file() and Path(name).suffix in (".yaml", ".yml"):
            way = "name FILE.feature or a folder; a scenario in it names the policy by"
            given = f'`Given the policy "{Path(name).name}"`'
            raise typer.BadParameter(f"{name} is not a feature file: {way} {given}")
