"""A request through the proxy, against a bare pass-through on the same web library.

Both sides read the body whole, send it on, and send each part of the answer on when it comes; the
client, the provider and the connections are the same. A provider on the loopback address answers
at once, so that the figure holds no model's time. Each timing has a session of its own whose first
requests are not timed; then it takes a few turns, each with a message more.

    python -m benchmarks.proxy      processor time, first bytes, sessions per core, memory
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from statistics import median
from tempfile import mkdtemp
from time import perf_counter, process_time
from urllib.parse import urlsplit

from benchmarks.runner import Ratio, markdown_table

# Bytes of the body, tool results in it, turns of one timing, and the name of the size.
SIZES = (
    (10_000, 20, 20, "10 KB"),
    (1_000_000, 200, 5, "1 MB"),
    (10_000_000, 200, 1, "10 MB"),
)
# Goals for a request as a multiple of the bare pass-through: what is new alone is read, the whole
# list is read, and messages are replaced.
MATCHED, UNMATCHED, CHANGED, FIRST_BYTE = 1.3, 1.7, 2.2, 1.1
# The turns of a session that are not timed.
_WARM_UP = 2
_ROUNDS, _FIRST_ROUNDS = 9, 25
# What `python -m benchmarks.proxy` measures with.
SESSIONS, SESSION_BYTES, SESSION_RESULTS, SESSION_TURNS = 100, 300_000, 60, 5

_WATCHES = """\
apiVersion: policyctx/v1
name: watches
model: {context_window: 1000000000}
items: {tool_result: {offload: true}}
steps:
  - name: offload-old-results
    do: offload
    when: {tokens: {at_least: 90%}}
    select: {types: [tool_result], keep_recent: {items: 3}}
"""
# Replaces the older results.
_REPLACES = """\
apiVersion: policyctx/v1
name: replaces
model: {context_window: 1000000000}
min_tokens: 20
store: {sync: never}
items: {tool_result: {offload: true}}
steps:
  - name: offload-old-results
    do: offload
    select: {types: [tool_result], keep_recent: {items: KEPT}}
"""


def ratios() -> list[Ratio]:
    """The figures of this module; a call is a few turns of a session."""
    return [
        Ratio(
            f"{name} / bare pass-through",
            ours=side.ours,
            baseline=side.bare,
            bound=bound,
            setup=side.session,
        )
        for name, bound, side in _sides()
    ]


def _sides() -> Iterator[tuple[str, float | None, Turns]]:
    """Yield what is measured: its name, the goal of its ratio, and the turns of both sides."""
    for size, results, turns, name in SIZES:
        replaces = _REPLACES.replace("KEPT", str(results // 2))
        matched = Turns(size, results, turns, _WATCHES)
        unmatched = Turns(size, results, turns, _WATCHES, moves_marker=True)
        yield f"{name}: the prefix matched, nothing changed", MATCHED, matched
        yield f"{name}: a marker moved, nothing else changed", UNMATCHED, unmatched
        changed = Turns(size, results, turns, replaces)
        yield f"{name}: half of the results replaced", CHANGED, changed
    yield "a stream's first event", FIRST_BYTE, Turns(10_000, 20, 20, _WATCHES, events=0)
    yield "a stream of 20,000 events", None, Turns(10_000, 20, 1, _WATCHES, events=20_000)


class Turns:
    """Turns of a session, through the proxy with a policy and through the bare pass-through.

    With `events` the answer is a stream of one event and this many more. With `moves_marker` the
    first message gets and loses a cache marker from turn to turn, so that no prefix matches.
    """

    def __init__(
        self,
        size: int,
        results: int,
        turns: int,
        policy: str,
        *,
        moves_marker: bool = False,
        events: int | None = None,
    ) -> None:
        self._begin = _messages(size, results)
        self._turns = turns
        self._moves_marker, self._events = moves_marker, events
        self._proxy, self._bare = _proxy(policy), _bare()
        self._server = _proxy_server(policy)
        self._names = count()
        self._name = ""
        self._bodies: list[bytes] = []

    @contextmanager
    def session(self) -> Iterator[None]:
        """Begin a session on both sides: their first turns are not timed."""
        self._name = f"{id(self)}-{next(self._names)}"
        turns = range(_WARM_UP + self._turns)
        bodies = [body(self._begin, turn, moves_marker=self._moves_marker) for turn in turns]
        for client in (self._proxy, self._bare):
            for one in bodies[:_WARM_UP]:
                client.post(one, self._name, self._events)
        self._bodies = bodies[_WARM_UP:]
        yield

    def ours(self) -> None:
        """Take the turns through the proxy."""
        self._take(self._proxy)

    def bare(self) -> None:
        """Take the turns through the bare pass-through."""
        self._take(self._bare)

    def processor_times(self) -> tuple[float, float]:
        """Return the seconds of processor time of a turn on both sides, in a session of its own.

        Those of the client, of the server in between and of the provider are added up.
        """
        with self.session():
            found = []
            for server, take in ((self._server, self.ours), (_bare_server(), self.bare)):
                before = server.cpu_seconds() + _upstream().cpu_seconds() + process_time()
                take()
                after = server.cpu_seconds() + _upstream().cpu_seconds() + process_time()
                found.append((after - before) / self._turns)
        return found[0], found[1]

    def first_bytes(self) -> list[tuple[float, float]]:
        """Return the seconds until the first byte of each turn's answer has come on both sides.

        The turns of both sides take turns, and each of them begins every second time.
        """
        found = []
        with self.session():
            for number, one in enumerate(self._bodies):
                sides = (self._proxy, self._bare)
                order = sides if number % 2 else sides[::-1]
                took = {id(side): side.post(one, self._name, self._events) for side in order}
                found.append((took[id(self._proxy)], took[id(self._bare)]))
        return found

    def _take(self, client: Client) -> None:
        for one in self._bodies:
            client.post(one, self._name, self._events)


def _messages(size: int, results: int) -> list[bytes]:
    """Return the JSON of messages with `results` tool results, of `size` bytes in all."""
    line = "src/module.py:120: a line that a tool printed, with a number and a name\n"
    # A call and the fields of both messages take some 200 bytes.
    text = line * max(1, (size // results - 200) // len(line))
    found = [_json({"role": "user", "content": [{"type": "text", "text": "Do the task."}]})]
    for number in range(results):
        called = f"t{number}"
        call = {"type": "tool_use", "id": called, "name": "Bash", "input": {"n": number}}
        result = {"type": "tool_result", "tool_use_id": called, "content": f"{number}: {text}"}
        found += [
            _json({"role": "assistant", "content": [call]}),
            _json({"role": "user", "content": [result]}),
        ]
    return found


def body(messages: list[bytes], turn: int, *, moves_marker: bool) -> bytes:
    """Return the body of a turn: the messages of a session, and two more for each turn."""
    new = [
        one
        for number in range(turn)
        for one in (
            _json({"role": "assistant", "content": f"I said {number}."}),
            _json({"role": "user", "content": f"Go on with {number}."}),
        )
    ]
    first = messages[0]
    if moves_marker and turn % 2:
        block = {"type": "text", "text": "Do the task.", "cache_control": {"type": "ephemeral"}}
        first = _json({"role": "user", "content": [block]})
    joined = b",".join([first, *messages[1:], *new])
    return b'{"model":"m","max_tokens":9,"messages":[' + joined + b"]}"


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


class Client:
    """One connection that stays open."""

    def __init__(self, url: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc)

    def post(self, raw: bytes, session: str, events: int | None = None) -> float:
        """Send a body, and read the answer; returns the seconds until its first byte has come."""
        headers = {
            "content-type": "application/json",
            "x-api-key": "k",
            "anthropic-version": "2023-06-01",
            "x-claude-code-session-id": session,
        }
        if events is not None:
            headers["x-events"] = str(events)
            raw = b'{"stream":true,' + raw[1:]
        began = perf_counter()
        self._connection.request("POST", "/v1/messages", raw, headers)
        answer = self._connection.getresponse()
        first = answer.read(1)
        took = perf_counter() - began
        content = first + answer.read()
        if answer.status != 200:  # noqa: PLR2004
            raise RuntimeError(answer.status, content[:500])
        return took


class Server:
    """A server in a process of its own, which prints its URL when it listens."""

    def __init__(self, *arguments: str, environment: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(  # noqa: S603 - this interpreter
            [sys.executable, *arguments],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **(environment or {})},
        )
        weakref.finalize(self, _end, self.process)
        if self.process.stdout is None:
            raise AssertionError
        self.url = self.process.stdout.readline().split()[-1]

    def cpu_seconds(self) -> float:
        """Return the processor time that all threads of the server have used."""
        tasks = Path(f"/proc/{self.process.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text(encoding="utf-8").split()[0]) for task in tasks) / 1e9

    def memory(self) -> int:
        """Return the bytes of memory that the server holds."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) * 1024


def _end(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGTERM)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


@cache
def _upstream() -> Server:
    return Server("-m", "benchmarks.bare_proxy")


@cache
def _bare() -> Client:
    return Client(_bare_server().url)


@cache
def _bare_server() -> Server:
    return Server("-m", "benchmarks.bare_proxy", _upstream().url)


@cache
def _proxy(policy: str) -> Client:
    return Client(_proxy_server(policy).url)


@cache
def _proxy_server(policy: str) -> Server:
    folder = Path(mkdtemp(prefix="policyctx-bench-"))
    weakref.finalize(_upstream(), shutil.rmtree, folder, ignore_errors=True)
    (folder / "policy.yaml").write_text(policy, encoding="utf-8")
    return Server(
        *("-c", "from policyctx.cli import main; main()", "proxy", "--port", "0"),
        *("--policy", str(folder / "policy.yaml"), "--root", str(folder / "root")),
        *("--upstream", f"anthropic={_upstream().url},openai={_upstream().url}"),
        environment={"HOME": str(folder), "PYTHONUNBUFFERED": "1"},
    )


def main() -> int:
    """Print what requests and sessions cost in processor time, and sessions in memory.

    A busy machine stretches seconds, and hardly processor time.
    """
    rows = [_processor_row(name, goal, turns) for name, goal, turns in _sides()]
    columns = ("processor time of a request, client and provider included", "ours", "bare")
    print(markdown_table((*columns, "ratio", "goal"), rows, numeric=range(1, 5)))
    columns = ("by the clock, the first byte of an answer after", "ours", "bare")
    print("\n" + markdown_table((*columns, "ratio", "goal"), [*_first_rows()], numeric=range(1, 5)))
    print(f"\n{SESSIONS} sessions of {SESSION_BYTES / 1e3:.0f} KB; each asks every ten seconds.\n")
    columns = ("server", "processor time of a turn", "sessions per core")
    # A server of its own: another one has room in its memory that earlier bodies left.
    rows = [_session_row("policyctx proxy", _proxy_server(_WATCHES + "description: sessions\n"))]
    rows.append(_session_row("bare pass-through", _bare_server()))
    print(markdown_table((*columns, "memory per session"), rows, numeric=range(1, 4)))
    return 0


def _processor_row(name: str, goal: float | None, turns: Turns) -> tuple[str, ...]:
    pairs = [turns.processor_times() for _ in range(_ROUNDS)]
    ours, bare = (median(times) for times in zip(*pairs, strict=True))
    ratio = median(one / other for one, other in pairs)
    numbers = (f"{ours * 1e3:.1f} ms", f"{bare * 1e3:.1f} ms", f"{ratio:.2f}")
    return (name, *numbers, "none" if goal is None else f"{goal}")


def _first_rows() -> Iterator[tuple[str, ...]]:
    for name, events in (("a request of 10 KB", None), ("the same, a stream of 20 events", 19)):
        turns = Turns(10_000, 20, 20, _WATCHES, events=events)
        pairs = [pair for _ in range(_FIRST_ROUNDS) for pair in turns.first_bytes()]
        ours, bare = (median(times) for times in zip(*pairs, strict=True))
        ratio = median(one / other for one, other in pairs)
        yield (
            name,
            f"{ours * 1e3:.2f} ms",
            f"{bare * 1e3:.2f} ms",
            f"{ratio:.2f}",
            f"{FIRST_BYTE}",
        )


def _session_row(name: str, server: Server) -> tuple[str, ...]:
    """Begin the sessions, then let each take some turns."""
    begin = _messages(SESSION_BYTES, SESSION_RESULTS)
    client = Client(server.url)
    client.post(body(begin, 0, moves_marker=False), "first")
    held = server.memory()
    _take_turns(client, begin, range(1))
    first = server.cpu_seconds()
    _take_turns(client, begin, range(1, SESSION_TURNS + 1))
    turn = (server.cpu_seconds() - first) / SESSIONS / SESSION_TURNS
    memory = (server.memory() - held) / SESSIONS
    return (name, f"{turn * 1e3:.2f} ms", f"{10 / turn:,.0f}", f"{memory / 1e3:,.0f} KB")


def _take_turns(client: Client, begin: list[bytes], turns: range) -> None:
    for turn in turns:
        raw = body(begin, turn, moves_marker=False)
        for number in range(SESSIONS):
            client.post(raw, f"session-{number}")


if __name__ == "__main__":
    sys.exit(main())
