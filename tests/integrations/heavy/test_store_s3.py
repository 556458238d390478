"""The contract of stores on S3, by moto's server, and what a service may do wrong.

`POLICYCTX_AZURITE` is the program `azurite-blob` of the npm package azurite; with it the contract
runs on Azure's API too.
"""

from __future__ import annotations

import base64
import email.utils
import hashlib
import hmac
import http.client
import itertools
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from policyctx.errors import StoreError
from policyctx.store.filesystem import ContextFileSystem
from policyctx.store.remote import backend
from policyctx.store.remote.backend import PACK_SEGMENTS
from tests.store.contents import result
from tests.store.contract import StoreContract, offloaded
from tests.store.faulty import Faults, faulty

BUCKET = "bucket"
NUMBERS = itertools.count()
pytestmark = pytest.mark.slow


@contextmanager
def environment(**values: str) -> Iterator[None]:
    """Set variables for this process and those that it starts."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in values.items():
            patch.setenv(name, value)
        yield


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def served(command: list[str], port: int) -> Iterator[int]:
    """Run a server of a port, from when it answers."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            for _ in range(300):
                with socket.socket() as trying:
                    if trying.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.1)
            yield port
        finally:
            server.kill()


@pytest.fixture(scope="module")
def s3_port() -> Iterator[int]:
    port = free_port()
    with served([sys.executable, "-m", "moto.server", "-p", str(port)], port):
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("PUT", f"/{BUCKET}")
        assert connection.getresponse().status == 200
        connection.close()
        yield port


def s3(endpoint: str) -> dict[str, str]:
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "id",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
    }


def new_url(scheme: str) -> str:
    return f"{scheme}://{BUCKET}/{next(NUMBERS)}"


class TestS3(StoreContract):
    @pytest.fixture
    def root(self, s3_port: int) -> Iterator[str]:
        with environment(**s3(f"http://127.0.0.1:{s3_port}")):
            yield new_url("s3")


@pytest.fixture
def faults(s3_port: int) -> Iterator[Faults]:
    """S3 through a proxy; what goes wrong is set in the test."""
    with faulty(s3_port) as (endpoint, faults), environment(**s3(endpoint)):
        yield faults


def test_one_failure_in_seven_and_lost_answers_change_nothing(faults: Faults) -> None:
    url = new_url("s3")
    faults.fails_every, faults.loses_every = 7, 5
    store = ContextFileSystem(url)
    for number in range(15):
        offloaded(store, (f"call_{number}", f"text {number}"), (f"more_{number}", f"more {number}"))
    again = ContextFileSystem(url)
    assert len(again.list()) == 30
    assert len(again.records()) == 30
    assert again.verify().is_clean
    assert again.notices == ()


def test_a_service_that_ignores_the_condition_is_refused(
    faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend, "_CREATES", set())
    faults.ignores_conditions = True
    with pytest.raises(StoreError, match="the service ignores `If-None-Match"):
        ContextFileSystem(new_url("s3")).save([result("call_1", "one")])


def test_a_listing_that_comes_late_hides_nothing(faults: Faults) -> None:
    url = new_url("s3")
    store = ContextFileSystem(url)
    writes = 2 * PACK_SEGMENTS + 3
    for number in range(writes):
        store.remember([{"n": number}])
    for hidden in (f"packs/{PACK_SEGMENTS:010}", "packs/"):
        faults.hides = hidden
        again = ContextFileSystem(url)
        assert again.records() == [{"n": number} for number in range(writes)]
        assert again.notices == ()
    again.remember([{"n": writes}])
    with pytest.raises(StoreError, match="another process"):
        store.remember([{"n": "late"}])


def test_a_service_that_is_away_is_an_error_within_the_time_limit(faults: Faults) -> None:
    url = new_url("s3")
    store = ContextFileSystem(url, timeout=1)
    [file] = offloaded(store, ("call_1", "one"))
    faults.is_away = True
    began = time.monotonic()
    with pytest.raises(StoreError, match="cannot be written"):
        offloaded(store, ("call_2", "two"))
    assert time.monotonic() - began < 5
    faults.is_away = False
    offloaded(store, ("call_3", "three"))
    assert [store.read(key) for key in (file.path, "call_3")] == ["one", "three"]


def test_a_turn_is_two_requests_one_after_the_other(faults: Faults) -> None:
    store = ContextFileSystem(new_url("s3"))
    offloaded(store, ("call_0", "0"))
    faults.seen.clear()
    offloaded(store, ("call_1", "1"), ("call_2", "2"), ("call_3", "3"))
    methods = [method for method, _ in faults.seen]
    names = [path.rpartition("/")[2] for _, path in faults.seen]
    assert methods == ["PUT"] * 4
    assert sorted(names[:3]) == ["call_1.md", "call_2.md", "call_3.md"]
    assert names[3] == f"{1:010}"


def test_a_taken_name_costs_one_more_request(faults: Faults) -> None:
    url = new_url("s3")
    one, two = (ContextFileSystem(url, session=session) for session in "ab")
    for store in (one, two):
        store.remember([{"n": 0}])
    names = [(f"call_{number}", f"text {number}") for number in range(3)]
    offloaded(one, *names)
    faults.seen.clear()
    files = offloaded(two, *((item_id, f"another {text}") for item_id, text in names))
    assert [method for method, _ in faults.seen] == ["PUT"] * 7
    assert faults.seen[-1][1].endswith(f"/b/journal.jsonl/{1:010}")
    assert [two.read(file.path) for file in files] == [f"another {text}" for _, text in names]


AZURITE = os.environ.get("POLICYCTX_AZURITE")
ACCOUNT = "devstoreaccount1"
# The account of the emulator, which its documentation states.
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

if AZURITE is not None:

    def make_container(port: int) -> None:
        date = email.utils.formatdate(usegmt=True)
        headers = {"x-ms-date": date, "x-ms-version": "2021-08-06"}
        lines = ["PUT", *[""] * 11, *(f"{name}:{value}" for name, value in headers.items())]
        lines += [f"/{ACCOUNT}/{ACCOUNT}/{BUCKET}", "restype:container"]
        digest = hmac.new(base64.b64decode(KEY), "\n".join(lines).encode(), hashlib.sha256).digest()
        headers["Authorization"] = f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}"
        headers["Content-Length"] = "0"
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("PUT", f"/{ACCOUNT}/{BUCKET}?restype=container", headers=headers)
        assert connection.getresponse().status == 201
        connection.close()

    @pytest.fixture(scope="module")
    def azure_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
        folder: Path = tmp_path_factory.mktemp("azurite")
        assert AZURITE is not None
        port = free_port()
        options = ["--location", str(folder), "--blobPort", str(port), "--skipApiVersionCheck"]
        with served([AZURITE, *options], port):
            make_container(port)
            yield port

    class TestAzure(StoreContract):
        @pytest.fixture
        def root(self, azure_port: int) -> Iterator[str]:
            with environment(
                AZURE_STORAGE_ACCOUNT_NAME=ACCOUNT,
                AZURE_STORAGE_ACCOUNT_KEY=KEY,
                AZURE_STORAGE_ENDPOINT=f"http://127.0.0.1:{azure_port}/{ACCOUNT}",
                AZURE_ALLOW_HTTP="true",
            ):
                yield new_url("az")
