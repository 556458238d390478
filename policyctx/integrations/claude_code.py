"""The hook of Claude Code: large results leave the context as they arrive.

Claude Code starts the hook after each call of a tool (`PostToolUse`), with an event as JSON on
stdin. A hook that prints `updatedToolOutput` replaces the result that the model sees. It must have
the shape of the tool's own output; Claude Code ignores any other. The results of Bash, of Read and
of MCP tools can be replaced.

The hook never stops Claude Code. If anything fails, the result stays as it is, nothing is printed,
the reason is on stderr, and the exit code is 0. For a result that is too small to be taken the
process ends in a fraction of the time that the library needs: an earlier hook has remembered from
which size on the policy may take a result of the tool.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from policyctx.definitions.items import FileLines, PlainValue
    from policyctx.integrations.arrival_bounds import ClaimedCompaction
    from policyctx.planning.compiled import OffloadPolicy

DEFAULT_POLICY = "claude-code"
# The tools whose results can be replaced.
MATCHER = "Bash|Read|mcp__.*"

# Events to which a text can be added.
_ADDING = frozenset({"PostToolUse", "SessionStart", "UserPromptSubmit"})

Event: TypeAlias = "dict[str, Any]"


class Options(NamedTuple):
    """The options of the hook's command."""

    policy: str = DEFAULT_POLICY
    root: str | None = None
    """Replaces the policy's `store.root`."""


class Text(NamedTuple):
    """One text of a tool's output: its keys from the outside in, and its own id."""

    keys: tuple[str | int, ...]
    text: str
    tool_use_id: str


class Place(NamedTuple):
    """Where the files of all sessions are."""

    store: str
    """The folder, links followed."""
    key: str
    """The root as it was given, by which the errors of a session are remembered."""


class _LeftAloneError(Exception):
    """The event or the call of the hook is wrong; the result stays as it is."""


def main() -> None:
    """Run `policyctx-hook claude-code`; the exit code is always 0."""
    name, *arguments = [*sys.argv[1:], ""]
    if name != "claude-code":
        _report("usage: policyctx-hook claude-code [--policy POLICY] [--root FOLDER]")
        return
    run_and_exit(arguments[:-1])


def run_and_exit(arguments: Sequence[str]) -> NoReturn:
    """Run the hook, and end the process with exit code 0.

    The process does not live long enough to collect garbage, and taking the interpreter down would
    take a tenth of its time. Whatever it has written is at the operating system by then.
    """
    gc.disable()
    run(arguments)
    os._exit(0)


def run(arguments: Sequence[str]) -> None:
    """Read an event from stdin, and print the output that replaces its result, if any does."""
    try:
        delivered: list[ClaimedCompaction] = []
        answer = _answer(options_of(arguments), _read_all(0), delivered)
        if answer:
            said = answer if isinstance(answer, str) else json.dumps(answer)
            _write_all(1, said.encode("utf-8", "backslashreplace"))
        for one in delivered:
            one.forget()
    except BaseException as error:  # noqa: BLE001 - Claude Code must not be stopped
        _report(f"the result is left as it is: {_reason(error)}")


def options_of(arguments: Sequence[str]) -> Options:
    """Return the options on a command line. Raises `_LeftAloneError` for any other word."""
    given: dict[str, str] = {}
    words = iter(arguments)
    for word in words:
        name, has_value, value = word.partition("=")
        if name not in {"--policy", "--root"}:
            raise _LeftAloneError(f"unknown option {word!r}")
        given[name[2:]] = value if has_value else next(words, "")
        if not given[name[2:]]:
            raise _LeftAloneError(f"the option {name} needs a value")
    return Options(**given)


def _answer(
    options: Options, raw: bytes, delivered: list[ClaimedCompaction]
) -> dict[str, Any] | str | None:
    """Return what to print for an event, None for nothing; `delivered` gets what it delivers."""
    event = json.loads(raw)
    if not isinstance(event, dict):
        raise _LeftAloneError("expected an event: a JSON object")
    name = event.get("hook_event_name")
    if name == "PreCompact":
        return _at_compaction(event, options, delivered)
    said: dict[str, Any] = {}
    if name == "PostToolUse" and (output := _new_output(event, options)) is not None:
        said["updatedToolOutput"] = output
    if name in _ADDING and (context := _at_compaction(event, options, delivered)):
        said["additionalContext"] = context
    return {"hookSpecificOutput": {"hookEventName": name, **said}} if said else None


def _at_compaction(event: Event, options: Options, delivered: list[ClaimedCompaction]) -> str:
    """Return the text that an event adds around a compaction; a failure adds none.

    A sub-agent has none of it. Most events come without a compaction, which costs a look at a file.
    """
    if event.get("agent_id"):
        return ""
    try:
        text = _text_at_compaction(event, options, delivered)
    except Exception as error:  # noqa: BLE001 - the output of a tool is replaced all the same
        _report(f"nothing is added: {_reason(error)}")
        return ""
    if text and event.get("source") == "compact":
        _remember_compaction(event)
    return text


def _text_at_compaction(event: Event, options: Options, delivered: list[ClaimedCompaction]) -> str:
    made = None
    if event["hook_event_name"] in {"PostToolUse", "UserPromptSubmit"}:
        from policyctx.integrations.arrival_bounds import claimed_compaction  # noqa: PLC0415 - see above

        if (made := claimed_compaction(session_id_of(event))) is None:
            return ""
        delivered.append(made)
    from policyctx.integrations import claude_code_compaction as of  # noqa: PLC0415 - slow

    os.chdir(_project_folder(event))
    if made is None:
        asked = event["hook_event_name"] == "PreCompact"
        return (of.asked_of_summary if asked else of.reminder)(event, options.policy)
    text = of.missing(event, options.policy, made.size)
    if text is None:
        delivered.remove(made)
    return text or ""


def _remember_compaction(event: Event) -> None:
    """Have the next event look for what the summary lacks."""
    from policyctx.integrations.arrival_bounds import mark_compaction  # noqa: PLC0415 - see above

    try:
        mark_compaction(session_id_of(event), os.path.getsize(event["transcript_path"]))
    except (OSError, _LeftAloneError) as error:
        _report(f"what the summary lacks is not added: {_reason(error)}")


def _new_output(event: Event, options: Options) -> PlainValue:
    """Return the output that replaces that of a tool, None to leave the result as it is."""
    texts = texts_of(event)
    if not texts:
        return None
    folder = _project_folder(event)
    os.chdir(folder)
    new = _replaced(event, texts, options, folder)
    if not new:
        return None
    output = event["tool_response"]
    for text in texts:
        output = _with(output, text.keys, new.get(text.tool_use_id, text.text))
    return output


def texts_of(event: Event) -> list[Text]:
    """Return the texts of a tool's output that can be replaced; none for an unknown shape.

    The output of Bash is left alone if it is an image, or if Claude Code itself has put it in a
    file and shows a preview.
    """
    tool, output = event.get("tool_name"), event.get("tool_response")
    tool_use_id = event.get("tool_use_id")
    if not isinstance(tool, str) or not isinstance(tool_use_id, str) or not tool_use_id:
        return []
    if tool.startswith("mcp__"):
        return _texts_of_mcp(output, tool_use_id)
    shapes = {"Bash": _texts_of_bash, "Read": _texts_of_read}
    return shapes[tool](output, tool_use_id) if tool in shapes and isinstance(output, dict) else []


def _texts_of_mcp(output: object, tool_use_id: str) -> list[Text]:
    """Return the string, or the text of each text block; versions of Claude Code differ here."""
    if isinstance(output, str):
        return [Text((), output, tool_use_id)]
    found: list[Text] = []
    for number, block in enumerate(output if isinstance(output, list) else []):
        text = block.get("text") if isinstance(block, dict) else None
        if isinstance(text, str) and block.get("type") == "text":
            own_id = f"{tool_use_id}-{number + 1}" if found else tool_use_id
            found.append(Text((number, "text"), text, own_id))
    return found


def _texts_of_bash(output: Mapping[str, Any], tool_use_id: str) -> list[Text]:
    if output.get("isImage") or output.get("persistedOutputPath"):
        return []
    ids = {"stdout": tool_use_id, "stderr": f"{tool_use_id}-stderr"}
    found = [(key, output.get(key), ids[key]) for key in ids]
    return [Text((key,), text, i) for key, text, i in found if isinstance(text, str) and text]


def _texts_of_read(output: Mapping[str, Any], tool_use_id: str) -> list[Text]:
    file = output.get("file")
    if output.get("type") != "text" or not isinstance(file, dict):
        return []
    text = file.get("content")
    return [Text(("file", "content"), text, tool_use_id)] if isinstance(text, str) else []


def _replaced(event: Event, texts: Sequence[Text], options: Options, folder: str) -> dict[str, str]:
    """Return the new texts by their ids; empty if the policy keeps all of them."""
    from policyctx.integrations import arrival_bounds  # noqa: PLC0415 - not for every event

    tool = event["tool_name"]
    bound = arrival_bounds.remembered(options.policy, tool)
    policy = None
    if bound is None:
        policy, bound = arrival_bounds.load_and_remember(options.policy, tool)
    if all(bound.excludes(text.text) for text in texts):
        return {}
    if policy is None:
        from policyctx.planning.compiled import OffloadPolicy  # noqa: PLC0415 - slow to import

        policy = OffloadPolicy.load(options.policy)
    session_id = session_id_of(event)
    root = os.path.expanduser(policy.store.root if options.root is None else options.root)
    key = os.path.abspath(root)
    try:
        store = _store_folder(root, session_id, folder)
    except _LeftAloneError as error:
        if arrival_bounds.reported_error(session_id, key) != str(error):
            arrival_bounds.remember_error(session_id, key, str(error))
            _report(f"the result is left as it is: {error}")
        return {}
    if tool == "Read" and _is_inside(_file_path(event), store):  # it is read back
        return {}
    return _offloaded(event, texts, policy, options, Place(store, key))


def _result(text: Text) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": text.tool_use_id, "content": text.text}


def _offloaded(
    event: Event, texts: Sequence[Text], policy: OffloadPolicy, options: Options, place: Place
) -> dict[str, str]:
    """Run the policy's steps on arrival, and return the placeholders by the ids of the texts.

    While nothing can be written, every process finds the same damage: only the first reports it.
    """
    import logging  # noqa: PLC0415 - not for every event

    from policyctx.errors import StoreError  # noqa: PLC0415 - slow to import
    from policyctx.integrations.arrival_bounds import (  # noqa: PLC0415 - not for every event
        remember_error,
        reported_error,
    )
    from policyctx.session import Session  # noqa: PLC0415 - slow to import

    logging.getLogger("policyctx").addHandler(logging.NullHandler())  # the warnings have it all
    tool, given = event["tool_name"], event.get("tool_input")
    calls = [
        {"type": "tool_use", "id": text.tool_use_id, "name": tool, "input": given or {}}
        for text in texts
    ]
    results = [_result(text) for text in texts]
    session = Session(policy, root=options.root, session_id=session_id_of(event))
    session.writes.said = before = reported_error(session.session_id, place.key)
    found = None
    try:
        found = session.on_tool_result(
            {"role": "user", "content": results},
            call={"role": "assistant", "content": calls},
            sources=_sources(event),
        )
    except StoreError:
        if not session.writes.problem:
            raise
    warnings = tuple(session.writes.news()) if found is None else found.warnings
    if session.writes.said != before:
        remember_error(session.session_id, place.key, session.writes.said)
    if session.writes.said != before or not before:
        for warning in warnings:
            _report(warning)
    if found is None:
        return {}
    if found.files:
        _keep_out_of_repository(place.store)
    new = [block["content"] for block in found.messages[-1]["content"]]
    pairs = zip(texts, new, strict=True)
    return {text.tool_use_id: shown for text, shown in pairs if shown != text.text}


def session_id_of(event: Event) -> str:
    """Return the session's id, with a sub-agent's behind it; raises `_LeftAloneError` for none."""
    session_id, agent_id = event.get("session_id"), event.get("agent_id")
    if not isinstance(session_id, str) or not session_id:
        raise _LeftAloneError("the event has no session_id")
    return f"{session_id}.{agent_id}" if isinstance(agent_id, str) and agent_id else session_id


def _sources(event: Event) -> Mapping[str, FileLines]:
    """Return the file that a call of Read has read, with its lines."""
    from policyctx.definitions.items import FileLines  # noqa: PLC0415 - not for every event

    if event["tool_name"] != "Read":
        return {}
    file = event["tool_response"]["file"]
    first, count = file.get("startLine"), file.get("numLines")
    if not (type(first) is int and type(count) is int and (path := _file_path(event))):
        return {}
    return {event["tool_use_id"]: FileLines(path, first, first + max(count, 1) - 1)}


def _file_path(event: Event) -> str:
    """Return the path of the file that Read has read, empty if it is not known."""
    path = event["tool_response"]["file"].get("filePath")
    return path if isinstance(path, str) else ""


def _project_folder(event: Event) -> str:
    """Return the project's folder, below which relative paths are."""
    folder = os.environ.get("CLAUDE_PROJECT_DIR") or event.get("cwd")
    if not isinstance(folder, str) or not os.path.isabs(folder):
        raise _LeftAloneError("the event has no working directory")
    return folder


def _store_folder(root: str, session_id: str, folder: str) -> str:
    """Return the folder that holds the files of all sessions.

    Raises `_LeftAloneError` if it is below the project and a link leads out of it, and if the
    session's own folder in it is a link: a checkout may have brought the link.
    """
    from policyctx.paths import safe_part  # noqa: PLC0415 - not for every event

    if "://" in root:
        raise _LeftAloneError("the hook saves to folders, and store.root is a URL")
    parts = root.split("/")
    ids = (number for number, part in enumerate(parts) if "{session_id}" in part)
    first = next(ids, len(parts))
    wanted = os.path.abspath("/".join(parts[:first]) or "/")
    found = os.path.realpath(wanted)
    if _is_below(wanted, folder) and not _is_inside(found, folder):
        raise _LeftAloneError(f"{wanted} leads out of {folder} by a link")
    name = safe_part(session_id)
    own = os.path.join(found, *(part.replace("{session_id}", name) for part in parts[first:]))
    if os.path.realpath(own) != os.path.normpath(own):
        raise _LeftAloneError(f"{own} is a link")
    return found


def _is_below(path: str, folder: str) -> bool:
    """Return whether a path is the folder or in it as it is written."""
    return os.path.join(path, "").startswith(os.path.join(os.path.normpath(folder), ""))


def _is_inside(path: str, folder: str) -> bool:
    """Return whether a path is the folder or in it, links followed."""
    if not path:
        return False
    found, outer = os.path.realpath(path), os.path.realpath(folder)
    return found == outer or found.startswith(outer.rstrip("/") + "/")


def _keep_out_of_repository(store: str) -> None:
    """Write a `.gitignore` into the store's folder if it is in the project."""
    if store == os.getcwd() or not _is_inside(store, os.getcwd()):
        return
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        descriptor = os.open(f"{store}/.gitignore", flags, 0o600)
    except FileExistsError:
        return
    except OSError as error:
        _report(f"{store}/.gitignore cannot be written: {error.strerror}")
        return
    os.write(descriptor, b"# Results of tools, kept by policyctx.\n*\n")
    os.close(descriptor)


def _with(value: PlainValue, keys: tuple[str | int, ...], text: str) -> PlainValue:
    """Return a copy of a value with a text at its keys."""
    if not keys:
        return text
    copy = value.copy()
    copy[keys[0]] = _with(value[keys[0]], keys[1:], text)
    return copy


def _reason(error: BaseException) -> str:
    """Return what is wrong, in one line."""
    if isinstance(error, _LeftAloneError):
        return str(error)
    if isinstance(error, ValueError) and type(error).__name__ == "JSONDecodeError":
        return f"stdin is not JSON: {error}"
    says = next(_lines(error), "")
    return (
        says
        if type(error).__module__.startswith("policyctx")
        else f"{type(error).__name__}: {says}"
    )


def _lines(error: BaseException) -> Iterator[str]:
    return (line for line in str(error).splitlines() if line.strip())


def _report(text: str) -> None:
    """Write a line to stderr, which Claude Code shows in its debug log."""
    from policyctx.errors import visible  # noqa: PLC0415 - for a message only

    try:
        _write_all(2, f"policyctx: {visible(text)}\n".encode("utf-8", "backslashreplace"))
    except OSError:
        return


def _read_all(descriptor: int) -> bytes:
    pieces = []
    while piece := os.read(descriptor, 1 << 20):
        pieces.append(piece)
    return b"".join(pieces)


def _write_all(descriptor: int, content: bytes) -> None:
    """Write every byte. Python's own streams would try again at the end of the process."""
    while content:
        content = content[os.write(descriptor, content) :]
