"""The settings files of Claude Code: add the entries of the hook, and remove them again.

The text of a file is edited in place, so everything else in it stays byte for byte. A file that is
not valid JSON, or whose `hooks` have another form than Claude Code documents, is not touched.
"""

import json
import os
import re
import secrets
import shlex
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from policyctx.errors import SettingsError
from policyctx.integrations.claude_code import DEFAULT_POLICY, MATCHER
from policyctx.planning.compiled import OffloadPolicy

# By event, what the entry's `matcher` says; empty for an event that has none.
_ARRIVAL = {"PostToolUse": MATCHER}
_COMPACTION = {"PreCompact": "", "SessionStart": "compact|resume", "UserPromptSubmit": ""}
# Seconds after which Claude Code stops the hook and shows the result as it is.
TIMEOUT = 60
# The text of a file with no settings, and of one that is made here: the user's own stays.
EMPTY, MADE = "{}\n", "{}\n\n"
_OWN_MODE = 0o600
_BLANK = re.compile(r"[ \t\r\n]*")
_INDENT = re.compile(r"\{\r?\n([ \t]+)\"")
_DECODER = json.JSONDecoder()
_NAMES = (["policyctx-hook", "claude-code"], ["policyctx", "hook", "claude-code"])


class JsonSpan(NamedTuple):
    """The place of a value in a JSON text, and of the member or element that it is."""

    start: int
    end: int
    member: int
    """Where the key of the value begins; of an element, where the value does."""


def idle_reason(policy: OffloadPolicy, *, compaction: bool) -> str:
    """Return why the hook does nothing with a policy; empty if it does something."""
    said = policy.policy
    if policy.steps("arrival") or said.redact or (compaction and said.carry is not None):
        return ""
    return (
        "the hook does nothing with this policy, which has no step with `on: arrival`"
        f"{' and no `carry`' if compaction else ''}; the preset {DEFAULT_POLICY} has such steps"
    )


def settings_path(*, project: bool) -> Path:
    """Return the user's settings file, or that of the project in the working directory."""
    if project:
        return Path(".claude/settings.json")
    folder = os.environ.get("CLAUDE_CONFIG_DIR")
    return (Path(folder) if folder else Path("~/.claude").expanduser()) / "settings.json"


def entry(command: str, matcher: str = MATCHER) -> dict[str, Any]:
    """Return an entry of the hook in the list of an event in `hooks`."""
    hook = {"type": "command", "command": command, "timeout": TIMEOUT}
    return {**({"matcher": matcher} if matcher else {}), "hooks": [hook]}


def is_own(command: object) -> bool:
    """Return whether a command runs this hook, with any options and from any folder."""
    try:
        words = shlex.split(command) if isinstance(command, str) else []
    except ValueError:
        return False
    named = [Path(words[0]).name, *words[1:]] if words else []
    return any(named[: len(name)] == name for name in _NAMES)


def installed(text: str, command: str, *, compaction: bool = True) -> str:
    """Return the text of a settings file with the entries; the same text if it has them already.

    The command of an entry of this hook is replaced if it is another one. Without `compaction` the
    entries of the events around a compaction are removed. Raises `ValueError`.
    """
    for event, matcher in {**_ARRIVAL, **(_COMPACTION if compaction else {})}.items():
        settings = _parsed(text)
        own = [*_own_hooks(settings, event)]
        if not own:
            text = _added(text, settings, event, entry(command, matcher))
        for group, hook in own:
            if settings["hooks"][event][group]["hooks"][hook]["command"] != command:
                place = _span(text, ("hooks", event, group, "hooks", hook, "command"))
                text = text[: place.start] + json.dumps(command) + text[place.end :]
    return text if compaction else _without_own(text, _COMPACTION)


def uninstalled(text: str) -> str:
    """Return the text of a settings file without the entries; the same text if it has none.

    A list or map that held nothing else is removed with it. Raises `ValueError`.
    """
    return _without_own(text, {**_ARRIVAL, **_COMPACTION})


def _without_own(text: str, events: Iterable[str]) -> str:
    settings = _parsed(text)
    for event in reversed([*events]):
        for group, hook in reversed([*_own_hooks(settings, event)]):
            hooks: Any = settings["hooks"]
            groups = hooks[event]
            keys: tuple[str | int, ...] = ("hooks", event, group, "hooks", hook)
            if len(groups[group]["hooks"]) == 1:
                keys = keys[:3]
                if len(groups) == 1:
                    keys = keys[:2] if len(hooks) > 1 else keys[:1]
            text = _without(text, keys)
            settings = _parsed(text)
    return text


def read_settings(path: Path) -> str | None:
    """Return the text of a settings file, None if there is none. Raises `SettingsError`."""
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise SettingsError(f"{path} cannot be read: {reason}", path=str(path)) from error


def is_left_of_own(path: Path, text: str) -> bool:
    """Return whether `text` says nothing, and `path` has the mode of a file that was made here."""
    return text == MADE and stat.S_IMODE(path.lstat().st_mode) == _OWN_MODE


def write_settings(path: Path, text: str | None, *, before: str | None) -> None:
    """Put a text in the place of `before`, in one step; None removes the file. A link stays one.

    Raises `SettingsError` if the file is read-only, holds another text than `before`, or cannot be
    written.
    """
    target = path.resolve()
    if read_settings(target) != before:
        raise SettingsError(f"{path} was changed meanwhile; try again", path=str(path))
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        mode = _OWN_MODE
        if before is None:
            target.parent.mkdir(parents=True, exist_ok=True)
        else:
            mode = stat.S_IMODE(target.stat().st_mode)
            if not mode & stat.S_IWUSR or not os.access(target, os.W_OK):
                raise SettingsError(f"{path} is read-only", path=str(path))
        if text is None:
            target.unlink()
            return
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "wb") as file:
            temporary.chmod(mode)
            file.write(text.encode())
            file.flush()
            os.fsync(descriptor)
        temporary.replace(target)
    except OSError as error:
        reason = f"{path} cannot be written: {error.strerror}"
        raise SettingsError(reason, path=str(path)) from error
    finally:
        with suppress(OSError):
            temporary.unlink()


def _parsed(text: str) -> dict[str, Any]:
    """Return the settings; raises `ValueError` for another form than that of settings."""
    try:
        settings = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"it is not valid JSON: {error}") from error
    if not isinstance(settings, dict):
        raise ValueError("it is not a JSON object")  # noqa: TRY004 - the form of a file
    hooks = settings.get("hooks", {})
    for event in (*_ARRIVAL, *_COMPACTION):
        groups = hooks.get(event, []) if isinstance(hooks, dict) else None
        if not isinstance(groups, list):
            raise ValueError(f"its hooks.{event} is not a list")  # noqa: TRY004 - a file's form
    return settings


def _own_hooks(settings: Mapping[str, Any], event: str) -> Iterator[tuple[int, int]]:
    """Yield the position of each entry of this hook: of its group, and in the group."""
    for number, group in enumerate(settings.get("hooks", {}).get(event, [])):
        hooks = group.get("hooks") if isinstance(group, dict) else None
        for position, hook in enumerate(hooks if isinstance(hooks, list) else []):
            if isinstance(hook, dict) and is_own(hook.get("command")):
                yield number, position


def _added(text: str, settings: Mapping[str, Any], event: str, new: Mapping[str, Any]) -> str:
    hooks = settings.get("hooks")
    if hooks is None or "hooks" not in settings:
        return _appended(text, (), "hooks", {event: [new]})
    if event not in hooks:
        return _appended(text, ("hooks",), event, [new])
    return _appended(text, ("hooks", event), None, new)


def _appended(text: str, keys: tuple[str | int, ...], key: str | None, value: object) -> str:
    """Return the text with a member or element at the end of the container at `keys`."""
    outer = _span(text, keys)
    children = [*_children(text, outer.start)]
    style = _INDENT.search(text)
    step = style.group(1) if style is not None else "  "
    newline = "\r\n" if "\r\n" in text else "\n"
    inner = step * (len(keys) + 1)
    lines = json.dumps(value, indent=step, ensure_ascii=False).split("\n")
    shown = (newline + inner).join(lines)
    shown = shown if key is None else f"{json.dumps(key)}: {shown}"
    if not children:
        body = f"{newline}{inner}{shown}{newline}{step * len(keys)}"
        return text[: outer.start + 1] + body + text[outer.end - 1 :]
    last = children[-1][1].end
    return f"{text[:last]},{newline}{inner}{shown}{text[last:]}"


def _without(text: str, keys: tuple[str | int, ...]) -> str:
    """Return the text without the member or element at `keys`, and without its comma."""
    outer = _span(text, keys[:-1])
    children = [*_children(text, outer.start)]
    # Of two members with one key, JSON means the last.
    at = max(number for number, (key, _) in enumerate(children) if key == keys[-1])
    place = children[at][1]
    if len(children) == 1:
        return text[: outer.start + 1] + text[outer.end - 1 :]
    if at > 0:
        return text[: children[at - 1][1].end] + text[place.end :]
    return text[: place.member] + text[children[1][1].member :]


def _span(text: str, keys: tuple[str | int, ...]) -> JsonSpan:
    """Return the place of the value at `keys`, from the outside in."""
    start = _next(text, 0)
    found = JsonSpan(start, _DECODER.raw_decode(text, start)[1], start)
    for key in keys:
        found = [place for name, place in _children(text, found.start) if name == key][-1]
    return found


def _children(text: str, start: int) -> Iterator[tuple[str | int, JsonSpan]]:
    """Yield the key, or the position, and the place of each value in the container at `start`."""
    is_map, at, number = text[start] == "{", _next(text, start + 1), 0
    while text[at] not in "}]":
        member, key = at, number
        name: str | int = key
        if is_map:
            name, at = _DECODER.raw_decode(text, at)
            at = _next(text, _next(text, at) + 1)
        end = _DECODER.raw_decode(text, at)[1]
        yield name, JsonSpan(at, end, member)
        number += 1
        at = _next(text, end)
        if text[at] == ",":
            at = _next(text, at + 1)


def _next(text: str, at: int) -> int:
    """Return the position of the next character that is not blank."""
    found = _BLANK.match(text, at)
    return at if found is None else found.end()
