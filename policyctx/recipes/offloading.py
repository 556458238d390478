"""Calls that need no policy file and no session: each is one preset, applied once.

What is offloaded, when, under which name and with what words, the presets say.
"""

from __future__ import annotations

import asyncio
import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from policyctx.errors import MessagesError, Place, PolicyError
from policyctx.messages.reading import items_of
from policyctx.policy.diagnosing import not_one_of
from policyctx.policy.loading import load_policy, parsed_policy
from policyctx.policy.nodes import Node
from policyctx.policy.options import checks_options
from policyctx.policy.sources import Source
from policyctx.session import Session
from policyctx.store.writer_store import WriterStore

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from policyctx.messages.items import Message
    from policyctx.policy.models import Policy
    from policyctx.store.writer_store import AsyncFileWriter, FileWriter
    from policyctx.turns.result import Result

Paths: TypeAlias = Literal["output_dir", "cwd", "absolute"]
# The field of a placeholder that shows the file so.
_FIELDS: dict[Paths, str] = {"output_dir": "relative_path", "cwd": "cwd_path", "absolute": "path"}

# Whoever hands over a single result has decided that it is too long.
_SINGLE_RESULT = Source(
    "offload_tool_result",
    """\
apiVersion: policyctx/v1
name: offload-tool-result
extends: tool-direct-offload
min_chars: 0
""",
)


@dataclass(frozen=True, slots=True)
class OffloadResults:
    """What `offload_tool_results` came to.

    `messages` is the very list that was given when nothing was offloaded; else a new one, in which
    a message that holds no offloaded result is the same object and any other a deep copy.
    """

    messages: Sequence[Message]
    offloaded_count: int
    freed_chars: int
    """Characters of all that was offloaded; the placeholders are not deducted."""
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
) -> OffloadResults:
    """Offload the long tool results of a message list, as the preset `context-offload` says.

    The files go below `output_dir`, which is made when something is to be written and it is not
    there; with a `writer` it writes them, and makes what folders it needs. The input is not
    changed, and no call knows of another.

    `paths` says what the paths in the placeholders start from. `output_dir` is for an agent that
    runs in that folder: `./tool-result-ID.md` (PRD context-offload F-003). `cwd` is for one that
    runs in the working directory of this process: `offloaded/tool-result-ID.md`, or an absolute
    path where the folder is elsewhere. `absolute` is right wherever the agent runs.

    Raises `MessagesError` for what is no message list, `StoreError` when a file cannot be written,
    and `PolicyError` for another value of `paths` and for an `OFFLOAD_RATIO_THRESHOLD` that is not
    a ratio. After a `StoreError`, files that already have their names stay, complete, and the next
    call uses them again; all are written before the first gets its name, and a file without a name
    is removed. With a `writer`, whatever it wrote stays.
    """
    session = _session(_many_results(paths), output_dir, writer)
    return _results(session.apply(messages))


@checks_options
async def offload_tool_results_async(
    messages: Sequence[Message],
    *,
    output_dir: str | os.PathLike[str],
    writer: FileWriter | AsyncFileWriter | None = None,
    paths: Paths = "output_dir",
) -> OffloadResults:
    """`offload_tool_results`, with the files written in a thread or by an asynchronous writer."""
    policy = _many_results(paths)
    session = _session(policy, output_dir, writer, loop=asyncio.get_running_loop())
    return _results(await session.apply_async(messages))


@checks_options
def offload_tool_result(
    message: Message,
    *,
    session_id: str,
    output_dir: str | os.PathLike[str],
    writer: FileWriter | None = None,
) -> OffloadResult:
    """Offload the one tool result of a message, of whatever length.

    The preset `tool-direct-offload` says how: the result goes to a file in the folder of the
    session below `output_dir`, over an earlier one of the same id. `writer` is as in
    `offload_tool_results`. The input is not changed.

    A message that an earlier call with the same `session_id` and `output_dir` returned comes back
    with the same content: nothing is written, and the file is the one that it names.

    Raises `MessagesError` for what is no message, or one with no tool result or several, and
    `StoreError` when the file cannot be written.
    """
    session = _session(_single_result(message), output_dir, writer, session_id=session_id)
    return _result(session.on_tool_result(message), session)


@checks_options
async def offload_tool_result_async(
    message: Message,
    *,
    session_id: str,
    output_dir: str | os.PathLike[str],
    writer: FileWriter | AsyncFileWriter | None = None,
) -> OffloadResult:
    """`offload_tool_result`, with the file written in a thread or by an asynchronous writer."""
    policy, loop = _single_result(message), asyncio.get_running_loop()
    session = _session(policy, output_dir, writer, session_id=session_id, loop=loop)
    return _result(await session.on_tool_result_async(message), session)


def _many_results(paths: Paths) -> Policy:
    """The preset with the field for the file that `paths` asks for in its placeholder."""
    if paths not in _FIELDS:
        option = Node(paths, Place("offload_tool_results, option paths"))
        raise PolicyError([not_one_of(option, list(_FIELDS))])
    policy = load_policy("context-offload")
    asked, given = (f"{{{_FIELDS[name]}}}" for name in (paths, "output_dir"))
    text = policy.placeholder.text.replace(given, asked)
    placeholder = policy.placeholder.model_copy(update={"text": text})
    return policy.model_copy(update={"placeholder": placeholder})


def _single_result(message: Message) -> Policy:
    """The policy for the message's one result; raises `MessagesError` when it has not one."""
    count = sum(item.kind == "tool_result" for item in items_of([message]))
    if count != 1:
        raise MessagesError(f"expected a message with one tool result, got {count or 'none'}")
    return parsed_policy(_SINGLE_RESULT)


def _session(
    policy: Policy,
    output_dir: str | os.PathLike[str],
    writer: FileWriter | AsyncFileWriter | None,
    *,
    session_id: str | None = None,
    loop: asyncio.AbstractEventLoop | None = None,
) -> Session:
    if writer is None:
        return Session(policy, root=output_dir, session_id=session_id)
    conflict = policy.store.on_conflict
    store = WriterStore(output_dir, writer, on_conflict=conflict, loop=loop)
    return Session(policy, session_id=session_id, store=store)


def _results(result: Result) -> OffloadResults:
    return OffloadResults(result.messages, result.offloaded_count, result.freed_chars, result.files)


def _result(result: Result, session: Session) -> OffloadResult:
    [message] = result.messages
    if result.files:
        return OffloadResult(message, result.net_freed_chars, result.files[0])
    # The policy takes every result but a placeholder, since its file must not be overwritten.
    reasons = (decision.reason for decision in result.plan.decisions)
    path = next(reason.values["path"] for reason in reasons if reason.code == "placeholder")
    return OffloadResult(copy.deepcopy(message), 0, f"{session.store.root}/{path}")
