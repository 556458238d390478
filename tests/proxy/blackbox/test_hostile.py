"""Clients that mean harm: what they take from the proxy, and how long others wait meanwhile."""

from __future__ import annotations

import asyncio
import json
import resource
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.proxy.blackbox.proxies import EAGER, proxied
from tests.proxy.blackbox.test_faults import body, posted

if TYPE_CHECKING:
    from tests.proxy.blackbox.upstream import Upstream

pytestmark = pytest.mark.slow
MODULE_POLICY = EAGER


def test_a_proxy_without_files_left_logs_a_few_lines_and_recovers(
    own_provider: Upstream, tmp_path: Path
) -> None:
    with proxied(own_provider.url, tmp_path / "proxy", policy=EAGER) as proxy:
        used = len([*Path(f"/proc/{proxy.process.pid}/fd").iterdir()]) + 10
        resource.prlimit(proxy.process.pid, resource.RLIMIT_NOFILE, (used, used))
        clients = [socket.create_connection(("127.0.0.1", proxy.port)) for _ in range(60)]
        time.sleep(3)
        assert "out of system resource" in proxy.logged
        assert len(proxy.logged) < 10_000
        for client in clients:
            client.close()
        assert asyncio.run(posted(proxy.url, json.dumps(body()).encode()))[0] == 200
