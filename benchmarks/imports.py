"""Importing the library, and a first turn under a preset, against importing pydantic.

Each timing starts a Python of its own, with its byte code compiled, as an installed package has it.
Most programs that call a language model import pydantic anyway. A first turn counts the tokens of a
short list, which loads the vocabulary.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import weakref
from functools import partial
from pathlib import Path
from tempfile import mkdtemp

from benchmarks.runner import Ratio

_IMPORT = "from policyctx import Session"
_SESSION = f"{_IMPORT}; session = Session('coding-agent', root='store')"
_TURN = f"{_SESSION}; session.apply([{{'role': 'user', 'content': 'List the files.'}}])"
_PROGRAMS = {
    "importing Session / importing pydantic": (_IMPORT, 5),
    "a Session of a preset / importing pydantic": (_SESSION, None),
    "a Session and its first turn / importing pydantic": (_TURN, None),
}


def ratios() -> list[Ratio]:
    """The figures of this module; a call starts one process."""
    programs = Programs()
    baseline = partial(programs.run, "import pydantic; pydantic.BaseModel")
    for program, _ in _PROGRAMS.values():
        programs.run(program)
    return [
        Ratio(name, ours=partial(programs.run, program), baseline=baseline, bound=bound)
        for name, (program, bound) in _PROGRAMS.items()
    ]


class Programs:
    """Programs of one line, run in a folder with a cache of byte code of its own."""

    def __init__(self) -> None:
        self._folder = Path(mkdtemp(prefix="policyctx-bench-"))
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        path = os.pathsep.join([str(Path(__file__).parents[1]), kept.get("PYTHONPATH", "")])
        compiled = {"PYTHONPYCACHEPREFIX": str(self._folder / "compiled")}
        self._environment = compiled | kept | {"PYTHONPATH": path}

    def run(self, program: str) -> None:
        """Start Python with the program, and wait for its end."""
        command = [sys.executable, "-c", program]
        subprocess.run(  # noqa: S603 - this interpreter
            command, check=True, env=self._environment, cwd=self._folder
        )
