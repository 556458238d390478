"""`policyctx mcp`, spoken to by a real client over stdio."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from policyctx import AmbiguousSessionError, Session
from policyctx.errors import MissingExtraError, StoreError, install_command
from policyctx.integrations.mcp_server import FixedStore, McpOverHttp
from tests.conversations import session_of
from tests.policies import policy

LARGE = "x" * 400
POLICY = """\
    items: {tool_result: {offload: true}}
    store: {sync: never}
    steps: [{name: a, do: offload, select: {types: [tool_result], min_chars: 300}}]
    """
COMMAND = "from policyctx.cli import main; main()"


def offloaded(root: Path, session: str = "s", text: str = LARGE) -> Session:
    made = Session(policy(POLICY), root=root, session_id=session)
    made.apply(session_of(text))
    return made


def server(root: Path | str, *session: str) -> StdioServerParameters:
    names = ["--session", session[0]] if session else []
    return StdioServerParameters(
        command=sys.executable, args=["-c", COMMAND, "mcp", "--root", str(root), *names]
    )


async def called(client: Client, tool: str, **given: Any) -> tuple[str, bool]:
    result: Any = await client.call_tool(tool, given)
    [text] = result.content
    return text.text, bool(result.is_error)


@pytest.mark.slow
def test_a_client_lists_reads_and_searches(tmp_path: Path) -> None:
    session = offloaded(tmp_path)

    async def run() -> None:
        async with Client(server(tmp_path, "s")) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert set(tools) == {"read_offloaded", "search_offloaded"}
            given = tools["read_offloaded"].input_schema["properties"]
            assert set(given) == {"path", "offset", "limit", "char"}
            path = f"{session.store.root}/tool_result/Bash/c0.md"
            assert await called(client, "read_offloaded", path=path) == (LARGE, False)
            found, _ = await called(client, "search_offloaded", query="XXX")
            assert found.startswith("tool_result/Bash/c0.md:1: xxx")
            for wrong in ({"path": "/etc/passwd"}, {"path": "c0", "offset": 0}, {"offset": 1}):
                text, is_error = await called(client, "read_offloaded", **wrong)
                assert (is_error, "root:" in text) == (True, False)
            # What the session saves later is there without a restart.
            session.apply(session_of(LARGE, "later " * 100))
            assert (await called(client, "read_offloaded", path="c1"))[0] == "later " * 100

    asyncio.run(run())


@pytest.mark.slow
def test_the_server_may_start_before_the_session(tmp_path: Path) -> None:
    root = tmp_path / "later"

    async def run() -> None:
        async with Client(server(root, "s")) as client:
            text, is_error = await called(client, "read_offloaded", path="c0")
            assert (is_error, "nothing is offloaded yet" in text) == (True, True)
            assert not root.exists()
            offloaded(root)
            assert await called(client, "read_offloaded", path="c0") == (LARGE, False)

    asyncio.run(run())


@pytest.mark.slow
def test_two_clients_read_at_once_each_its_own_session(tmp_path: Path) -> None:
    for name in ("one", "two"):
        offloaded(tmp_path, name, f"{name} {LARGE}")

    async def run(name: str, other: str) -> None:
        async with Client(server(tmp_path, name)) as client:
            reads = [called(client, "read_offloaded", path="c0") for _ in range(20)]
            for text, _ in await asyncio.gather(*reads):
                assert text == f"{name} {LARGE}"
            found, _ = await called(client, "search_offloaded", query=other)
            assert found == f"[nothing offloaded contains {other!r}]"

    async def both() -> None:
        await asyncio.gather(run("one", "two"), run("two", "one"))

    asyncio.run(both())


@pytest.mark.slow
def test_the_server_ends_when_its_client_is_killed(tmp_path: Path) -> None:
    offloaded(tmp_path)
    client = (
        "import subprocess, sys, time\n"
        "made = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        "made.stdin.write(b'{}')\n"
        "print(made.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    made = server(tmp_path, "s")
    run = subprocess.Popen(
        [sys.executable, "-c", client, made.command, *made.args], stdout=subprocess.PIPE, text=True
    )
    assert run.stdout is not None
    pid = int(run.stdout.readline())
    time.sleep(0.5)
    run.kill()
    run.wait()
    run.stdout.close()
    deadline = time.monotonic() + 20
    while _runs(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _runs(pid)


def _runs(pid: int) -> bool:
    found = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(pid)],  # noqa: S607 - wherever it is
        capture_output=True,
        text=True,
        check=False,
    )
    return found.stdout.strip()[:1] not in {"", "Z"}


def test_the_root_may_hold_the_name_of_the_session(tmp_path: Path) -> None:
    session = Session(policy(POLICY), root=tmp_path / "s", session_id="s")
    session.apply(session_of(LARGE))
    store = FixedStore(f"{tmp_path}/{{session_id}}", "s")
    assert store.answer(lambda s: type_of(s.read("c0"))).text == LARGE
    assert FixedStore(f"{tmp_path}/{{session_id}}", "t").answer(lambda _: type_of("")).is_error


@pytest.mark.parametrize(
    ("kept", "served"),
    [
        ("{session_id}", ""),
        ("{session_id}", "{session_id}"),
        ("{session_id}", "s"),
        ("{session_id}/kept", "{session_id}/kept"),
        ("", ""),
    ],
)
def test_a_session_is_found_by_the_root_of_its_policy_and_by_the_folder_above(
    tmp_path: Path, kept: str, served: str
) -> None:
    session = Session(policy(POLICY), root=tmp_path / kept, session_id="s")
    session.apply(session_of(LARGE))
    store = FixedStore(tmp_path / served, "s")
    assert store.answer(lambda s: type_of(s.read("c0"))).text == LARGE
    assert FixedStore(tmp_path / served, "t").answer(lambda s: type_of(s.read("c0"))).is_error


def test_the_state_of_a_session_comes_before_that_of_a_folder_with_its_name(tmp_path: Path) -> None:
    kept = Session(policy(POLICY), root=tmp_path / "{session_id}", session_id="s")
    kept.apply(session_of("y" + LARGE))
    offloaded(tmp_path / "s", "s")
    assert FixedStore(tmp_path, "s").answer(lambda s: type_of(s.read("c0"))).text == LARGE


def test_a_folder_of_folders_of_sessions_needs_one_of_them(tmp_path: Path) -> None:
    FixedStore(tmp_path)
    for one in "ab":
        offloaded(tmp_path / one, one)
    with pytest.raises(AmbiguousSessionError, match=r"choose one .*: a, b"):
        FixedStore(tmp_path)


def test_a_root_with_the_field_of_the_session_needs_one(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="choose a session with `session`"):
        FixedStore(tmp_path / "{session_id}")


def type_of(text: str) -> Any:
    from policyctx.store.excerpts import Answer  # noqa: PLC0415

    return Answer(text)


def test_without_a_session_the_folder_must_hold_one_alone(tmp_path: Path) -> None:
    offloaded(tmp_path, "one")
    assert FixedStore(tmp_path).answer(lambda s: type_of(s.read("c0"))).text == LARGE
    offloaded(tmp_path, "two")
    with pytest.raises(AmbiguousSessionError, match="one, two"):
        FixedStore(tmp_path)


def test_a_session_that_does_not_exist_has_nothing_offloaded(tmp_path: Path) -> None:
    offloaded(tmp_path, "one")
    answer = FixedStore(tmp_path, "other").answer(lambda s: type_of(s.read("c0")))
    assert answer == ("nothing is offloaded yet", True)


def test_without_the_package_the_command_says_what_to_install(tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules['mcp'] = None\n"
        f"sys.argv = ['policyctx', 'mcp', '--root', {str(tmp_path)!r}]\n{COMMAND}"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr == f"error: the MCP server needs a package: {install_command('mcp')}\n"


def test_without_the_package_the_server_of_the_proxy_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(MissingExtraError, match="the MCP server needs a package"):
        McpOverHttp()


@pytest.mark.slow
def test_the_package_is_imported_only_by_its_command() -> None:
    script = (
        "import json, sys, policyctx, policyctx.cli.hosts, policyctx.integrations.tools\n"
        "print(json.dumps([name for name in sys.modules if name.split('.')[0] == 'mcp']))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert json.loads(run.stdout) == []
