"""The size from which a policy may take a tool's result on arrival, remembered between processes.

To read and compile a policy takes much longer than to start Python. A process asks `remembered`
first, which reads the files of the policy but compiles nothing. What is remembered holds for the
very contents of these files, the values of the environment variables that they use, and the
version of the library; if one of these differs, nothing is known. The policy certainly keeps what
is smaller than the bound, and decides itself on the rest. The reported error of a session whose
writes fail is remembered too, and which session was compacted and waits for what is missing, with
what the compaction's events have found in its transcript so far.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import stat
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import policyctx

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from policyctx.definitions.items import PlainValue
    from policyctx.planning.compiled import OffloadPolicy, SizeThreshold

# The form of the file. What was remembered in another form is found by nobody.
_FORM = 3
# A file with more tools begins anew; the names come from MCP servers.
_MOST_TOOLS = 500
_MOST_BYTES = 1 << 18
_COMPACTED, _PASS = ".compacted", ".pass"
_MOST_DIGITS = 20
_WEEK = 7 * 86_400


class LeastSize(NamedTuple):
    """The least length of a text that may be offloaded; None if no text ever is."""

    unit: str
    """`chars`, or `bytes` of the text in UTF-8, of which a token has one or more."""
    least: int | None

    def excludes(self, text: str) -> bool:
        """Return whether the text is certainly kept."""
        if self.least is None:
            return True
        if self.unit == "chars" or text.isascii():
            return len(text) < self.least
        return len(text.encode("utf-8", "surrogatepass")) < self.least


def remembered(policy: str, tool: str) -> LeastSize | None:
    """Return what an earlier process found for results of a tool, None if nothing holds.

    `policy` is the name of a preset or the path of a file, as in `OffloadPolicy.load`.
    """
    for path in _cache_files(policy):
        found = _read_cache(path, policy)
        if found is not None and tool in found["tools"]:
            return LeastSize(*found["tools"][tool])
    return None


def load_and_remember(policy: str, tool: str) -> tuple[OffloadPolicy, LeastSize]:
    """Compile a policy, and return it with its bound for results of a tool.

    The bound is remembered if that is possible; a failure is ignored. Raises `PolicyError`.
    """
    from policyctx.planning.compiled import OffloadPolicy  # noqa: PLC0415 - slow to import
    from policyctx.policy.loading import completed, extended, validated  # noqa: PLC0415
    from policyctx.policy.sources import environment, policy_source  # noqa: PLC0415

    variables = _RecordingEnvironment(environment())
    read = extended(policy_source(policy), variables)
    tree = completed(read)
    compiled = OffloadPolicy(validated(tree), root=tree)
    bound = least_size(compiled, tool)
    with contextlib.suppress(OSError):
        from policyctx.resources import shipped_folder  # noqa: PLC0415

        shipped = str(shipped_folder("policies")) + os.sep
        paths = [
            source.path if source.path.startswith(shipped) else os.path.abspath(source.name)
            for source in read.sources
            if source.path is not None
        ]
        if len(paths) == len(read.sources) and all(map(os.path.isfile, paths)):
            is_preset = paths[0].startswith(shipped)
            hashes = {s: _digest(t.text) for s, t in zip(paths, read.sources, strict=True)}
            _write_cache(policy, {tool: bound}, hashes, variables.used, is_preset=is_preset)
    return compiled, bound


def reported_error(session_id: str, store: str) -> str:
    """Return the error of the store that an earlier process has reported last; empty for none."""
    try:
        return _text(_error_file(session_id, store))
    except (OSError, ValueError):
        return ""


def remember_error(session_id: str, store: str, error: str) -> None:
    """Remember the error that was reported, empty for none; a failure is ignored."""
    with contextlib.suppress(OSError):
        path = _error_file(session_id, store)
        if error:
            _replace_file(path, error.encode("utf-8", "surrogatepass"))
        else:
            os.unlink(path)


def mark_compaction(session_id: str, size: int) -> None:
    """Remember that a session was compacted at this size of its transcript; raises `OSError`."""
    _replace_file(_compaction_file(session_id), str(size).encode())


def keep_pass(session_id: str, found: str) -> None:
    """Keep what was found in a session's transcript until `forget`; a failure is ignored.

    What was kept for another session more than a week ago is removed.
    """
    with contextlib.suppress(OSError):
        for path in _remembered(_PASS):
            if os.stat(path).st_mtime < time.time() - _WEEK:
                os.unlink(path)
    with contextlib.suppress(OSError):
        content = f"{policyctx.__version__}\n{found}".encode("utf-8", "surrogatepass")
        _replace_file(_compaction_file(session_id) + _PASS, content)


def kept_pass(session_id: str) -> str:
    """Return what `keep_pass` of this version kept; empty for nothing."""
    try:
        # What was found in a long transcript may be longer than the other files.
        content = _read(_compaction_file(session_id) + _PASS, -1).decode()
    except (OSError, ValueError):
        return ""
    version, _, found = content.partition("\n")
    return found if version == policyctx.__version__ else ""


class ClaimedCompaction(NamedTuple):
    """A compaction that is remembered, and that this process alone handles until it ends."""

    path: str
    descriptor: int
    size: int
    """The bytes of the transcript then; 0 if a killed process left it broken."""

    def forget(self) -> None:
        """Forget it, unless another one has been remembered since; a failure is ignored."""
        with contextlib.suppress(OSError):
            if os.path.samestat(os.stat(self.path), os.fstat(self.descriptor)):
                # The user's words first: a killed process leaves none.
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self.path + _PASS)
                os.unlink(self.path)


def claimed_compaction(session_id: str) -> ClaimedCompaction | None:
    """Return the compaction of a session; None for none, or if another process handles it.

    What a killed process did not forget another one gets.
    """
    path = _compaction_file(session_id)
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        number = os.read(descriptor, _MOST_DIGITS)
    except OSError:
        return None
    if not os.fstat(descriptor).st_nlink:
        return None
    try:
        return ClaimedCompaction(path, descriptor, int(number))
    except ValueError:
        return ClaimedCompaction(path, descriptor, 0)


def forget_compactions() -> None:
    """Remove what is remembered of compactions; a failure is ignored."""
    with contextlib.suppress(OSError):
        for path in _remembered(_COMPACTED):
            os.unlink(path)


def _remembered(kind: str) -> Iterator[str]:
    """Yield the files of a kind, also what a killed process left of one. Raises `OSError`."""
    folder = _cache_folder()
    return (f"{folder}/{name}" for name in os.listdir(folder) if kind in name)


def least_size(policy: OffloadPolicy, tool: str) -> LeastSize:
    """Return the least size at which a step on arrival can take a result of a tool."""
    if policy.policy.redact:
        return LeastSize("chars", 0)  # a text of any size may have a secret
    thresholds = [*_thresholds(policy, tool)]
    if not thresholds:
        return LeastSize("chars", None)
    bounds = [_bound(threshold, policy) for threshold in thresholds]
    if len({bound.unit for bound in bounds}) > 1:
        # A character has one byte or more, so a bound in characters holds for bytes as well.
        return LeastSize("bytes", min(bound.least or 0 for bound in bounds))
    return min(bounds, key=lambda bound: bound.least or 0)


def _thresholds(policy: OffloadPolicy, tool: str) -> Iterator[SizeThreshold | None]:
    """Yield the threshold of each step on arrival for each type that a result can have."""
    for step in policy.steps("arrival"):
        for item_type in ("tool_result", "recalled", *policy.items):
            if "tool_result" in policy.types.lineage(item_type):
                treatment = policy.treatment(step, item_type, tool)
                if treatment is not None and treatment.refusal is None:
                    yield treatment.threshold


def _bound(threshold: SizeThreshold | None, policy: OffloadPolicy) -> LeastSize:
    from policyctx.definitions.tokenizers import has_byte_tokens  # noqa: PLC0415 - after the policy

    if threshold is None:
        return LeastSize("chars", 0)
    if threshold.unit == "chars":
        return LeastSize("chars", threshold.amount)
    if not has_byte_tokens(policy.model.tokenizer):
        return LeastSize("bytes", 0)  # such as what a provider counts: no bound is published
    # A token has at least one byte, and the scaled number of tokens is rounded.
    return LeastSize("bytes", max(0, int((threshold.amount - 1) / policy.model.token_scale)))


class _RecordingEnvironment(dict[str, str]):
    """Environment variables, and those of them that a policy has asked for."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        super().__init__(variables)
        self.used: dict[str, str | None] = {}

    def get(self, name: str, default: PlainValue = None) -> PlainValue:
        """Return the value of a variable, and record it."""
        self.used[name] = value = super().get(name)
        return default if value is None else value


def _cache_folder() -> str:
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.expanduser("~/.cache")
    return f"{base}/policyctx/arrival"


def _cache_file(*key: str) -> str:
    stamp = (policyctx.__version__, _FORM, str(policyctx.__file__), *key)
    return f"{_cache_folder()}/{_digest(json.dumps(stamp))[:32]}.json"


def _error_file(session_id: str, store: str) -> str:
    return f"{_cache_folder()}/{_digest(json.dumps((session_id, store)))[:32]}.error"


def _compaction_file(session_id: str) -> str:
    return f"{_cache_folder()}/{_digest(session_id)[:32]}{_COMPACTED}"


def _cache_files(policy: str) -> Iterator[str]:
    """Yield the file of a preset of this name, then that of a policy file."""
    yield _cache_file("preset", policy)
    yield _cache_file("file", os.path.abspath(policy))


def _read_cache(path: str, policy: str) -> dict[str, Any] | None:
    """Return what was remembered, None if it does not hold for the policy as it is now."""
    try:
        found = json.loads(_read(path))
        holds = (
            found["policy"] == policy
            and found["sha256"] == _checksum(found["tools"])
            and isinstance(found["tools"], dict)
            and all(_digest(_text(p)) == sha256 for p, sha256 in found["files"].items())
            and all(
                _variable(os.environ.get(name)) == value
                for name, value in found["variables"].items()
            )
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return found if holds else None


def _checksum(value: object) -> str:
    return _digest(json.dumps(value, sort_keys=True))


def _write_cache(
    policy: str,
    new: Mapping[str, LeastSize],
    files: Mapping[str, str],
    variables: Mapping[str, str | None],
    *,
    is_preset: bool,
) -> None:
    """Add what was found to what is remembered for a policy. Raises `OSError`."""
    path = [*_cache_files(policy)][not is_preset]
    found = _read_cache(path, policy)
    if found is None or len(found["tools"]) >= _MOST_TOOLS:
        found = {"tools": {}}
    tools = {**found["tools"], **new}
    value = {
        "policy": policy,
        "files": files,
        "variables": {name: _variable(variables[name]) for name in variables},
        "tools": tools,
        "sha256": _checksum(tools),
    }
    _replace_file(path, json.dumps(value).encode())


def _replace_file(path: str, content: bytes) -> None:
    """Put a file in the cache. Raises `OSError`."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    temporary = f"{path}.{os.getpid()}"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise


def _variable(value: str | None) -> str | None:
    """Return what stands for the value of a variable, which may be a secret."""
    return None if value is None else _digest(value)


def _text(path: str) -> str:
    return _read(path).decode("utf-8-sig")


def _read(path: str, most: int = _MOST_BYTES) -> bytes:
    """Return the start of a regular file, all of it for -1. Raises `OSError`; waits for no pipe."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise FileNotFoundError(path)
        return file.read(most)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
