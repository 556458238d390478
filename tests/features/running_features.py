"""The program that runs features in forks of itself, for `engine_mutations.py`.

A fork starts with the packages imported that policyctx uses, and imports policyctx anew. The
program reads one line of JSON for each run, the arguments of pytest, and answers with the exit
code; what pytest prints goes to the file that the program's only argument names.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
from contextlib import suppress

PRELOADED = (
    *(
        "asyncio",
        "concurrent.futures",
        "http.client",
        "logging",
        "sqlite3",
        "xml.etree.ElementTree",
    ),
    *("_pytest.junitxml", "gherkin.parser", "mako.template", "parse_type", "pygments", "pytest"),
    *("pydantic._internal._generate_schema", "pytest_bdd", "rich.console", "tiktoken", "toktok"),
    *("typer", "yaml", "zstandard"),
)


def serve(printed: str) -> None:
    """Run pytest for each line of stdin, until stdin ends."""
    for name in PRELOADED:
        with suppress(ImportError):
            importlib.import_module(name)
    gc.freeze()  # a collection in a fork would copy every page that it shares with the server
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _run(json.loads(line), printed)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)  # noqa: T201


def _run(arguments: list[str], printed: str) -> None:
    import pytest  # noqa: PLC0415

    output = os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for number in (1, 2):
        os.dup2(output, number)
    code = 3
    try:
        code = int(pytest.main(arguments))
    finally:
        sys.stdout.flush()
        os._exit(code)


if __name__ == "__main__":
    serve(sys.argv[1])
