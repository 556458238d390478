"""Slow modules of the standard library, each imported when it is first used: `lazy.asyncio`."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio
    import logging
    import shutil
    import tarfile
    from concurrent import futures

__all__ = ["asyncio", "futures", "logging", "shutil", "tarfile"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any of these modules
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module("concurrent.futures" if name == "futures" else name)
    globals()[name] = module
    return module
