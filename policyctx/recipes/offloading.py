"""`offload_tool_results` and `offload_tool_result`: each applies one preset to messages once.

The preset defines what is offloaded, when, under which name and with which wording. The caller's
own writer may write the files.
"""

import asyncio
import copy
import inspect
import os
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from policyctx.definitions.items import Message
from policyctx.errors import Location, MessagesError, PolicyError, StoreError
from policyctx.messages.json_text import JSON
from policyctx.messages.reading import items_of
from policyctx.messages.shapes.built_in import Shapes
from policyctx.messages.shapes.shape import Shape
from policyctx.paths import File, FreePaths
from policyctx.planning.placeholders import content_hash
from policyctx.policy.agent_options import checks_options
from policyctx.policy.diagnosing import not_one_of
from policyctx.policy.loading import load_policy, parsed_policy
from policyctx.policy.models import Policy
from policyctx.policy.nodes import Node
from policyctx.policy.sources import PolicySource
from policyctx.session import Session
from policyctx.store.backend import absolute_root
from policyctx.store.content import Content, Origin
from policyctx.store.filesystem import ContextFileSystem
from policyctx.turns.result import Result

Paths: TypeAlias = Literal["output_dir", "cwd", "absolute"]
# The field of a placeholder that shows the path in each form.
_FIELDS: dict[Paths, str] = {"output_dir": "relative_path", "cwd": "cwd_path", "absolute": "path"}

# Characters of the longest path that systems take.
_LONGEST_PATH = 4096
# A caller that passes a single result has decided that it is too long.
_SINGLE_RESULT = PolicySource(
    "offload_tool_result",
    """\
apiVersion: policyctx/v1
name: offload-tool-result
extends: tool-direct-offload
min_chars: 0
""",
)


class FileWriter(Protocol):
    """The caller's own way to write files: to memory, an archive, a remote store."""

    def write(self, path: str, text: str) -> None:
        """Write the whole `text` under an absolute path, over a file that is there.

        The writer makes the folder itself. An exception that it raises is a failed write.
        """
        ...


class AsyncFileWriter(Protocol):
    """A `FileWriter` whose `write` is awaited."""

    async def write(self, path: str, text: str) -> None:
        """Write as a `FileWriter` does."""
        ...


class WriterStore:
    """A store that saves through a writer, without folder, index or flush.

    The names of the files are below `root`. A name is taken when this store has written another
    text under it, and within one `save` also when an equal text gets it. Names that other stores
    gave out are not known; a session takes those that the placeholders of its list name. `loop` is
    the running event loop in which an asynchronous writer is awaited; `save` is then called in
    another thread.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        writer: FileWriter | AsyncFileWriter,
        *,
        on_conflict: Literal["suffix", "overwrite", "error"] = "suffix",
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self.root = absolute_root(root)
        self._writer = writer
        self._on_conflict = on_conflict
        self._loop = loop
        self._hashes: dict[str, str] = {}
        """Of the text that was written last under each path."""

    def save(self, contents: Sequence[Content], *, recorded: bool = False) -> list[File]:  # noqa: ARG002 - there are no records
        """Write the contents one after the other, and return the file of each.

        Raises `StoreError` when a write fails; what was written before it stays.
        """
        names = FreePaths()
        files = [self._file(names, content) for content in contents]
        for file, content in zip(files, contents, strict=True):
            self._write(file.path, content.text)
            self._hashes[file.relative_path] = content_hash(content.text)
        return files

    def read(self, path: str | os.PathLike[str]) -> str:
        """Raise `StoreError`: a writer cannot read back."""
        raise StoreError(f"{path} cannot be read: a writer only writes", path=str(path))

    def remember(self, records: Sequence[Mapping[str, JSON]], *, flush: bool = True) -> None:
        """Keep nothing: a writer cannot read back."""

    def records(self) -> list[dict[str, JSON]]:
        """Return nothing: no record is kept."""
        return []

    def _file(self, names: FreePaths, content: Content) -> File:
        path, own = content.relative_path, content_hash(content.text)

        def is_free(path: str) -> bool:
            return self._hashes.get(path, own) == own

        if self._on_conflict == "error" and (path in names or not is_free(path)):
            target = str(self.root / path)
            raise StoreError(f"{target} holds another item already", path=target)
        if self._on_conflict != "overwrite":
            path = names.take(path, passes=is_free)
        return File(path, str(self.root / path))

    def _write(self, path: str, text: str) -> None:
        try:
            pending = self._writer.write(path, text)
            if inspect.isawaitable(pending):
                self._await(pending)
        except Exception as error:
            reason = str(error) or type(error).__name__
            raise StoreError(f"{path} cannot be written: {reason}", path=path) from error

    def _await(self, pending: Awaitable[None]) -> None:
        if self._loop is None:
            if inspect.iscoroutine(pending):
                pending.close()
            raise TypeError("the writer is asynchronous, so the call has to be as well")
        asyncio.run_coroutine_threadsafe(_awaited(pending), self._loop).result()


async def _awaited(pending: Awaitable[None]) -> None:
    await pending


@dataclass(frozen=True, slots=True)
class OffloadResults:
    """The outcome of `offload_tool_results`.

    `messages` is the list object that was given if nothing was offloaded. Otherwise it is a new
    list, in which a message without an offloaded result is the same object and any other a deep
    copy.
    """

    messages: Sequence[Message]
    offloaded_count: int
    freed_chars: int
    """Characters of all offloaded results; the placeholders are not deducted."""
    files: tuple[str, ...]
    """Absolute paths, in the order of the results."""


@dataclass(frozen=True, slots=True)
class OffloadResult:
    """The outcome of `offload_tool_result`; `message` is a deep copy."""

    message: Message
    freed_chars: int
    """Characters of the result less those of the placeholder; negative for a very short result.

    0 for a message that was already offloaded.
    """
    file: str
    """Absolute path of the file that `message` names."""


@checks_options
def offload_tool_results(
    messages: Sequence[Message],
    *,
    output_dir: str | os.PathLike[str],
    writer: FileWriter | None = None,
    paths: Paths = "output_dir",
    shapes: Iterable[Shape] = (),
) -> OffloadResults:
    """Offload the long tool results of a message list, as the preset `context-offload` says.

    The files are written below `output_dir`, which is created when the first file is written. A
    `writer` writes them instead, and creates the folders that it needs. The input is not changed,
    and calls are independent of each other.

    `paths` is the base of the paths in the placeholders. `output_dir` is for an agent that runs in
    that folder: `./tool-result-ID.md` (PRD context-offload F-003). `cwd` is for one that runs in
    the working directory of this process: `offloaded/tool-result-ID.md`, or an absolute path if the
    folder is elsewhere. `absolute` is right wherever the agent runs.

    `shapes` read and edit the message objects of a framework, as those of `Session` do.

    Raises `MessagesError` for a value that is not a message list, `StoreError` if a file cannot be
    written, and `PolicyError` for another value of `paths` and for an `OFFLOAD_RATIO_THRESHOLD`
    that is not a ratio. All files are written before the first gets its name. After a `StoreError`,
    files that have their names stay, complete, and the next call uses them again; files without a
    name are removed. With a `writer`, everything that it wrote stays.

    A result whose name is taken gets a file with a number. Taken are the names of the files in the
    folder, and those that placeholders of the list name in the form of these `paths`. A `writer`
    cannot say what is there: it writes over the file of an earlier call whose placeholder is not in
    the list.
    """
    session = _session(_many_results(paths), output_dir, writer, shapes)
    return _results(session.apply(messages))


@checks_options
async def offload_tool_results_async(
    messages: Sequence[Message],
    *,
    output_dir: str | os.PathLike[str],
    writer: FileWriter | AsyncFileWriter | None = None,
    paths: Paths = "output_dir",
    shapes: Iterable[Shape] = (),
) -> OffloadResults:
    """Offload as `offload_tool_results` does, in a thread or with an asynchronous writer."""
    policy = _many_results(paths)
    session = _session(policy, output_dir, writer, shapes, loop=asyncio.get_running_loop())
    return _results(await session.apply_async(messages))


@checks_options
def offload_tool_result(
    message: Message,
    *,
    session_id: str,
    output_dir: str | os.PathLike[str],
    writer: FileWriter | None = None,
    shapes: Iterable[Shape] = (),
) -> OffloadResult:
    """Offload the one tool result of a message, whatever its length.

    As the preset `tool-direct-offload` says, the result is written to a file in the session's
    folder below `output_dir`, and replaces an earlier file of the same id. `writer` and `shapes`
    are as in `offload_tool_results`. The input is not changed.

    A message that an earlier call with the same `session_id` and `output_dir` returned is returned
    with the same content: nothing is written, and the file is the one that it names. If there is no
    such file, the content is written to it like any other; a `writer` cannot say what is there.

    Raises `MessagesError` for a value that is not a message, or a message with no tool result or
    several, and `StoreError` if the file cannot be written.
    """
    shapes = tuple(shapes)
    policy, folder = _single_result(message, shapes, output_dir)
    session = _session(policy, folder, writer, shapes, session_id=session_id)
    return _result(session.on_tool_result(message), session)


@checks_options
async def offload_tool_result_async(
    message: Message,
    *,
    session_id: str,
    output_dir: str | os.PathLike[str],
    writer: FileWriter | AsyncFileWriter | None = None,
    shapes: Iterable[Shape] = (),
) -> OffloadResult:
    """Offload as `offload_tool_result` does, in a thread or with an asynchronous writer."""
    shapes = tuple(shapes)
    (policy, folder), loop = _single_result(message, shapes, output_dir), asyncio.get_running_loop()
    session = _session(policy, folder, writer, shapes, session_id=session_id, loop=loop)
    result = await session.on_tool_result_async(message)
    return await asyncio.to_thread(_result, result, session)


def _many_results(paths: Paths) -> Policy:
    """Return the preset with the form of path in its placeholder that `paths` names."""
    if paths not in _FIELDS:
        option = Node(paths, Location("offload_tool_results, option paths"))
        raise PolicyError([not_one_of(option, list(_FIELDS))])
    policy = load_policy("context-offload")
    asked, given = (f"{{{_FIELDS[name]}}}" for name in (paths, "output_dir"))
    text = policy.placeholder.text.replace(given, asked)
    placeholder = policy.placeholder.model_copy(update={"text": text})
    return policy.model_copy(update={"placeholder": placeholder})


def _single_result(
    message: Message, shapes: Iterable[Shape], output_dir: str | os.PathLike[str]
) -> tuple[Policy, str | os.PathLike[str]]:
    """Return the policy for a single result, and its folder as the message itself names it.

    Raises `MessagesError` unless there is just one result.
    """
    found = [item for item in items_of([message], Shapes(shapes)) if item.kind == "tool_result"]
    if len(found) != 1:
        raise MessagesError(f"expected a message with one tool result, got {len(found) or 'none'}")
    policy = parsed_policy(_SINGLE_RESULT)
    return policy, _folder(found[0].text, policy.placeholder.text, output_dir)


def _folder(
    text: str, placeholder: str, output_dir: str | os.PathLike[str]
) -> str | os.PathLike[str]:
    """Return the folder as a text spells it that is a placeholder and names a file there.

    A result replaces its earlier file, so a placeholder that spells the folder in another way, such
    as by a link, would be written over the only copy.
    """
    before, _, after = placeholder.partition("{path}")
    path = Path(text.removeprefix(before).removesuffix(after)[:_LONGEST_PATH])
    if not text.startswith(before) or not path.is_absolute() or "\0" in text:
        return output_dir
    named = path.parent.parent  # the file is in the folder of the session
    is_same = os.path.realpath(named) == os.path.realpath(absolute_root(output_dir))
    return named if is_same else output_dir


def _session(
    policy: Policy,
    output_dir: str | os.PathLike[str],
    writer: FileWriter | AsyncFileWriter | None,
    shapes: Iterable[Shape],
    *,
    session_id: str | None = None,
    loop: asyncio.AbstractEventLoop | None = None,
) -> Session:
    if writer is None:
        return Session(policy, root=output_dir, session_id=session_id, shapes=shapes)
    conflict = policy.store.on_conflict
    store = WriterStore(output_dir, writer, on_conflict=conflict, loop=loop)
    return Session(policy, session_id=session_id, store=store, shapes=shapes)


def _results(result: Result) -> OffloadResults:
    return OffloadResults(result.messages, result.offloaded_count, result.freed_chars, result.files)


def _result(result: Result, session: Session) -> OffloadResult:
    [message] = result.messages
    if result.files:
        return OffloadResult(message, result.net_freed_chars, result.files[0])
    # The policy skips a result that is a placeholder, since its file must not be overwritten.
    found = next(one for one in result.plan.decisions if one.reason.code == "placeholder")
    path, store = str(found.reason.values["path"]), session.store
    if isinstance(store, ContextFileSystem):
        try:
            store.read(path)
        except StoreError as error:
            # A file that cannot be read may be the only copy.
            if isinstance(error.__cause__, FileNotFoundError):
                origin = Origin.of(found.item, tokens=None, block=None)
                store.save([Content(path, found.item.text, path, origin)])
    return OffloadResult(copy.deepcopy(message), 0, f"{store.root}/{path}")
