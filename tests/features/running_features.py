"""Runs features with a change of the package: FUNCTION DEFINITION, then options of pytest.

It runs in a fork that has the package imported. So the change is made there: a function gets the
code of its new definition, whoever imported it by name, and a constant another value in each
module that has it.
"""

from __future__ import annotations

import importlib
import os
import sys
from functools import reduce
from types import FunctionType
from typing import Any

import pytest

PLUGINS = ("-p", "pytest-bdd", "-p", "policyctx", "--policyctx-only")


def change(function: str, definition: str) -> None:
    """Take a definition instead of the function or constant that has its name."""
    name, path = function.split(":")
    module = importlib.import_module(name)
    *classes, name = path.split(".")
    made: dict[str, Any] = {}
    exec(definition, vars(module), made)  # noqa: S102 - the point of it
    old = vars(reduce(getattr, classes, module))[name]
    if isinstance(old, property):
        old = old.fget
    if isinstance(old, FunctionType):
        old.__code__ = made[name].__code__
        return
    new = made["changed"](old)
    for each in [each for each in sys.modules.values() if vars(each).get(name) is old]:
        setattr(each, name, new)


if __name__ == "__main__":
    function, definition, *options = sys.argv[1:]
    if function:
        change(function, definition)
    os.environ |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
    sys.exit(pytest.main([*PLUGINS, *options]))
