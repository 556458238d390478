"""The public functions that a scenario may call, with its context as their input."""

import asyncio
import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Event, get_ident
from typing import Any

from policyctx import recipes
from policyctx.errors import PolicyctxError
from policyctx.messages.reading import items_of
from policyctx.policy.nodes import read_yaml
from policyctx.policy.sources import PolicySource
from policyctx.testing.failures import WordingError
from policyctx.testing.faults import LONGEST_WAIT, DiskWriter, environment
from policyctx.testing.selecting import Returned, TurnEvent
from policyctx.testing.world import World

FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "compact_messages": recipes.compact_messages,
    "compact_messages_async": recipes.compact_messages_async,
    "offload_tool_result": recipes.offload_tool_result,
    "offload_tool_result_async": recipes.offload_tool_result_async,
    "offload_tool_results": recipes.offload_tool_results,
    "offload_tool_results_async": recipes.offload_tool_results_async,
}
_NAMES = ", ".join(FUNCTIONS)


class AsyncDiskWriter:
    """An `AsyncFileWriter` that writes to the disk, and remembers the paths.

    As a client of a network does, it works in one event loop alone: that of its maker's thread.
    """

    def __init__(self, paths: list[str]) -> None:
        self._writer = DiskWriter(paths)
        self._thread = get_ident()

    async def write(self, path: str, text: str) -> None:
        """Write as a `DiskWriter` does; raises `RuntimeError` in another thread's event loop."""
        await asyncio.sleep(0)
        if get_ident() != self._thread:
            raise RuntimeError("the writer is of another event loop")
        self._writer.write(path, text)


@dataclass(frozen=True, slots=True)
class Raising:
    """A writer and a reader of the caller's that is broken."""

    paths: list[str] = field(default_factory=list)

    def write(self, path: str, text: str) -> None:
        """Raise an error of the writer's own."""
        del path, text
        raise ConnectionError("the archive is sealed")

    def resolve(self, path: str, work_dir: str) -> str:
        """Return the path below the working directory."""
        return f"{work_dir}/{path}"

    def read(self, resolved: str, most_bytes: int) -> str:
        """Raise an error of the reader's own."""
        del resolved, most_bytes
        raise ConnectionError("the archive is sealed")


class LostReader(Raising):
    """A reader of the caller's that raises when it looks for a file."""

    def resolve(self, path: str, work_dir: str) -> str:
        """Raise an error of the reader's own."""
        return self.read(f"{work_dir}/{path}", 0)


class HalfCharacter(Raising):
    """A reader of the caller's that returns what UTF-8 cannot encode."""

    def read(self, resolved: str, most_bytes: int) -> str:
        """Return a lone surrogate."""
        del resolved, most_bytes
        return "\ud800"


class HangingReader(Raising):
    """A reader of the caller's that answers after ten seconds."""

    def read(self, resolved: str, most_bytes: int) -> str:
        """Wait, and return an empty file."""
        del resolved, most_bytes
        Event().wait(LONGEST_WAIT)
        return ""


_BY_CALLER: Mapping[str, Mapping[str, Callable[[list[str]], object]]] = {
    "writer": {"synchronous": DiskWriter, "asynchronous": AsyncDiskWriter, "raising": Raising},
    "file_reader": {
        "raising": Raising,
        "lost": LostReader,
        "half a character": HalfCharacter,
        "hanging": HangingReader,
    },
}


def call(name: str, options: Mapping[str, str], world: World) -> None:
    """Call a function with the context, as one event of the scenario.

    `options` are the arguments that a step gives, as YAML; the folders, the session and the
    summarizer of the scenario are the defaults. Raises `WordingError` for an unknown function, and
    when there is no message for it.
    """
    if name not in FUNCTIONS:
        raise WordingError(f"no public function is called {name!r}; there are {_NAMES}")
    if _takes_one(name) and not world.messages:
        raise WordingError(f"{name} takes a message; the context has none")
    given = list(world.messages[-1:] if _takes_one(name) else world.messages)
    before = copy.deepcopy(given)
    with world.event():
        try:
            with environment(world.variables):
                arguments = {**_defaults(name, world), **_read(options, world)}
                value = FUNCTIONS[name](given[0] if _takes_one(name) else given, **arguments)
                returned = Returned(asyncio.run(value) if asyncio.iscoroutine(value) else value)
        except PolicyctxError as error:
            turn = TurnEvent("function", given, before, error=error)
            world.error_is_known = False
        else:
            turn = TurnEvent("function", given, before, returned=returned, items=items_of(before))
            if world.passes_edited_back:
                earlier = world.messages[: len(world.messages) - len(given)]
                world.messages = [*earlier, *turn.messages]
    world.turns.append(turn)


def _takes_one(name: str) -> bool:
    return name.removesuffix("_async") == "offload_tool_result"


def _defaults(name: str, world: World) -> dict[str, Any]:
    folder: dict[str, Any] = {"output_dir": world.root}
    if _takes_one(name):
        return {**folder, "session_id": world.session_id}
    if not name.startswith("compact"):
        return folder
    summarizer = {} if world.summarizer is None else {"summarizer": world.summarizer}
    return {**folder, "work_dir": world.work, **summarizer}


def yaml_values(texts: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of texts in YAML, such as `1000`, `"80%"` or `{Read: path}`."""
    return {name: read_yaml(PolicySource(name, text)).plain() for name, text in texts.items()}


def _read(options: Mapping[str, str], world: World) -> dict[str, Any]:
    found = yaml_values(options)
    for name in found.keys() & _BY_CALLER.keys():
        kind, kinds = found[name], _BY_CALLER[name]
        if kind not in kinds:
            raise WordingError(f"no {name} is {kind!r}; there are {', '.join(kinds)}")
        found[name] = kinds[kind](world.paths_of_writer)
    if "work_dir" in found:
        found["work_dir"] = world.work / found["work_dir"]
    return found
