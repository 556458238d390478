"""`serve`: a proxy by the options of its command, its token and the key for credentials."""

import asyncio
import logging
import os
import re
import resource
import secrets
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Lock

from policyctx.errors import InputError, SettingsError, StoreError, visible
from policyctx.proxy.clients import Client, Endpoint, ReadBack, is_elsewhere, is_loopback
from policyctx.proxy.conversations import Registry
from policyctx.proxy.history import saved_end
from policyctx.proxy.limits import ProxyLimits
from policyctx.proxy.page import Pages
from policyctx.proxy.policies import Policies
from policyctx.proxy.server import Proxy, Settings
from policyctx.proxy.turning import Turning
from policyctx.store.opening import names_session

_KEY_BYTES = 32
_LEAST_TOKEN_CHARS = 16
_NO_TOOL = (
    "the proxy adds no tool to requests: it would have to hold back every response until it knows"
    " which tools it calls, and to put its own calls back into every later request. Say --read-back"
    " mcp, and give the agent the MCP server of the proxy (docs/proxy.md)"
)

# How often a line is logged in so many seconds, and how many different ones are counted.
_MOST_ALIKE, _LOG_SECONDS, _MOST_COUNTED = 3, 60.0, 1000
_MOST_CHARS = 2000  # of a line
# Names and paths, with which a warning about each session is another line.
_NAMES = re.compile(r"'[^']*'|\S*/\S*")


def root_key(root: Path) -> bytes:
    """Return the key in `proxy.key` below the root, made and readable by its owner alone.

    Raises `StoreError` if it can be neither read nor written.
    """
    path = root / "proxy.key"
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            _write_once(path)
        key = path.read_bytes()
    except OSError as error:
        raise StoreError(f"cannot keep the key of the proxy: {error}", path=str(path)) from error
    if len(key) != _KEY_BYTES:
        raise StoreError("the key of the proxy is damaged; remove the file", path=str(path))
    return key


def _write_once(path: Path) -> None:
    """Write a new key, unless another process does so first."""
    number, name = tempfile.mkstemp(dir=path.parent, prefix=".proxy-key-")
    try:
        with os.fdopen(number, "wb") as file:
            file.write(secrets.token_bytes(_KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(name, path)
    finally:
        Path(name).unlink()


def token_in(path: Path) -> str:
    """Return the token in a file; raises `SettingsError` for one that is too short to be secret."""
    try:
        token = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"cannot read the token file: {error}", path=str(path)) from error
    if len(token) < _LEAST_TOKEN_CHARS or not token.isascii() or not token.isprintable():
        raise SettingsError(
            f"the token has to be {_LEAST_TOKEN_CHARS} or more printable ASCII characters",
            path=str(path),
        )
    return token


class Seldom(logging.Filter):
    """Lets a line pass a few times in a minute, cut. The next minute says how many were left out.

    Without files left, asyncio logs a thousand equal lines in a second, and each new session one.
    Warnings about sessions are alike if they differ only in names and paths.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock, self._guard, self._end = clock, Lock(), 0.0
        self._seen: Counter[str] = Counter()
        self._before: Counter[str] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is logged; its text gets the number of those left out before it."""
        text = record.getMessage()
        if len(text) > _MOST_CHARS:
            record.msg, record.args = (text := f"{text[:_MOST_CHARS]}…"), ()
        kind = text
        if record.levelno >= logging.WARNING and text.startswith("session "):
            kind = _NAMES.sub("", text.partition(": ")[2])
        with self._guard:
            if self._clock() >= self._end:
                self._end = self._clock() + _LOG_SECONDS
                self._seen, self._before = Counter(), self._seen
            if kind in self._seen or len(self._seen) < _MOST_COUNTED:
                self._seen[kind] += 1
            if self._seen[kind] > _MOST_ALIKE:
                return False
            left_out = self._before.pop(kind, 0) - _MOST_ALIKE
        if left_out > 0:
            record.msg, record.args = f"{text} ({left_out:,} more of these were not logged)", ()
        return True


@dataclass(frozen=True, slots=True)
class ProxyOptions:
    """The options of `policyctx proxy`."""

    policy: str
    host: str
    port: int
    token_file: Path | None
    upstreams: Mapping[str, str]
    agents: Path | None
    root: Path
    """Absolute."""
    client: Client | None
    """Where the clients run; None to tell it from the host."""
    read_back: ReadBack | None
    """How agents read offloaded texts, beside the paths in placeholders; None for no other way."""
    dry_run: bool
    record: Path | None
    """Where the calls are written as a recording."""
    show_content: bool
    max_body_bytes: int
    max_messages: int


def serve(
    options: ProxyOptions, *, say: Callable[[str], None], endpoint: Endpoint | None = None
) -> None:
    """Serve until SIGTERM or SIGINT, and read the policies again on SIGHUP.

    `say` is called with the URL once the proxy listens. `endpoint` is the MCP server with which
    agents read offloaded texts, where `read_back` asks for it.
    Raises `PolicyError` for a wrong policy, and `InputError` for an address that others can reach
    without a token, or for placeholders that name files which a client on another machine does not
    have. Nothing listens then.
    """
    if options.token_file is None and not is_loopback(options.host):
        raise InputError(
            f"{options.host} can be reached from other machines; give a token by --token-file, or"
            " listen on 127.0.0.1"
        )
    if names_session(str(options.root)):
        raise InputError("--root is the folder of all sessions; leave {session_id} out")
    if options.read_back == "tool":
        raise InputError(_NO_TOOL)
    if options.record and options.dry_run:
        raise InputError(
            "--record writes requests as a policy edits them, and a dry run sends them unchanged;"
            " to record without a change, give a policy that has no steps"
        )
    elsewhere = is_elsewhere(options.client, options.host)
    over_mcp = options.read_back == "mcp"
    policies = Policies(options.policy, options.agents, elsewhere=elsewhere, over_mcp=over_mcp)
    limits = replace(
        ProxyLimits(), body_bytes=options.max_body_bytes, messages=options.max_messages
    )
    settings = Settings(
        upstreams=options.upstreams,
        root=options.root,
        key=root_key(options.root),
        host=options.host,
        port=options.port,
        token="" if options.token_file is None else token_in(options.token_file),
        is_elsewhere=elsewhere,
        limits=limits,
    )
    registry = Registry(
        memory_bytes=limits.memory_bytes,
        idle_seconds=limits.idle_seconds,
        is_saved=lambda name: (options.root / name).exists(),
        end_of=partial(saved_end, options.root),
    )
    turning = Turning(
        registry,
        policies,
        options.root,
        dry_run=options.dry_run,
        record=options.record,
        limits=limits,
    )
    pages = Pages(turning, elsewhere=elsewhere, show_content=options.show_content)
    logging.basicConfig(level=logging.WARNING)
    for handler in logging.getLogger().handlers:
        handler.setFormatter(_Formatter("%(asctime)s %(levelname)s %(message)s"))
        handler.addFilter(Seldom())
    if options.dry_run:
        logging.getLogger("policyctx.proxy").setLevel(logging.INFO)
    # It logs the lines of requests that it refuses, which may have a credential.
    logging.getLogger("aiohttp").setLevel(logging.CRITICAL)
    _allow_many_connections()
    asyncio.run(Proxy(settings, turning, pages, endpoint=endpoint).run(say))


class _Formatter(logging.Formatter):
    """Shows control characters, which names of agents and paths may have, as escapes."""

    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))


def _allow_many_connections() -> None:
    """Let this process have as many open files as it may; a request takes two."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with suppress(ValueError, OSError):  # some systems allow fewer than they say
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
