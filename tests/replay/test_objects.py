"""Recordings in an object store are read as those in a folder."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from policyctx.errors import InputError, MissingExtraError
from policyctx.replay.places import RecordingFile, files, place_of
from policyctx.replay.reading import ObjectUrl
from policyctx.replay.running import Done, FailedRecording, PassedOver, worked
from tests.conversations import session_of
from tests.replay.object_server import ObjectServer
from tests.replay.test_running import calls_of, claude_code
from tests.serving import serving


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectServer]:
    """A bucket with two recordings below `team/`, one of them with six sessions, and a text."""
    folder = tmp_path_factory.mktemp("bucket")
    (folder / "team" / "agents").mkdir(parents=True)
    claude_code(folder / "team" / "a.jsonl", "x", "y")
    lines = "\n".join(json.dumps(session_of("x" * 500)) for _ in range(6))
    (folder / "team" / "agents" / "many.jsonl").write_text(lines, encoding="utf-8")
    (folder / "team" / "notes.md").write_text("no recording", encoding="utf-8")
    with serving(ObjectServer(folder)) as server, pytest.MonkeyPatch.context() as patch:
        # The package makes no client without any certificates.
        patch.delenv("SSL_CERT_DIR")
        patch.setenv("AWS_ENDPOINT_URL", server.url)
        patch.setenv("AWS_ALLOW_HTTP", "true")
        patch.setenv("AWS_SKIP_SIGNATURE", "true")
        patch.setenv("AWS_REGION", "us-east-1")
        yield server


def at(url: str) -> list[RecordingFile]:
    return files([place_of(url)])


def test_a_prefix_is_read_like_a_folder(server: ObjectServer) -> None:
    found = [one for one in worked(at("s3://b/team/"), calls_of) if not isinstance(one, Done)]
    many = [(f"many.jsonl#{number}", 1) for number in range(1, 7)]
    assert found == [("a.jsonl", 2), *many, PassedOver("s3://b/team/notes.md")]
    local = files([server.folder])
    assert [file.bytes for file in at("s3://b")] == [file.bytes for file in local]


def test_an_object_is_read_by_its_name(server: ObjectServer) -> None:
    (file,) = at("s3://b/team/a.jsonl")
    assert file == RecordingFile(
        ObjectUrl("s3://b", "team/a.jsonl"),
        named=True,
        bytes=(server.folder / "team" / "a.jsonl").stat().st_size,
    )
    assert next(worked([file], calls_of)) == ("a.jsonl", 2)


def test_a_missing_object_fails_alone(server: ObjectServer) -> None:
    assert server.folder.exists()
    outcomes = [*worked(at("s3://b/none.jsonl"), calls_of)]
    assert outcomes[0] == FailedRecording("s3://b/none.jsonl", "no such object")


def test_a_large_object_is_read_in_pieces(
    server: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("policyctx.replay.reading._FETCHED_WHOLE", 100)
    monkeypatch.setattr("policyctx.replay.reading._PIECE", 512)
    (file,) = at("s3://b/team/agents/many.jsonl")
    server.requests.clear()
    names = [recording.name for recording in file.taken()]
    assert names == [f"many.jsonl#{number}" for number in range(1, 7)]
    pieces = [one.partition("=")[2].split("-") for one in server.requests if "=" in one]
    assert len(pieces) > 2
    assert max(int(last) - int(first) for first, last in pieces) < 512


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a/b.jsonl", Path("a/b.jsonl")),
        ("file:///data/a%20b/", Path("/data/a b")),
        ("gs://b/a/", ObjectUrl("gs://b", "a")),
        ("az://c", ObjectUrl("az://c", "")),
    ],
)
def test_a_place_is_a_path_or_a_url(text: str, place: Path | ObjectUrl) -> None:
    assert place_of(text) == place


@pytest.mark.parametrize("text", ["ftp://host/a", "s3:///a", "s3://id:secret@b/a", "s3://b/a?x=y"])
def test_a_wrong_url_is_an_error_without_its_secret(text: str) -> None:
    with pytest.raises(InputError) as caught:
        place_of(text)
    assert "secret" not in str(caught.value)


def test_a_url_without_the_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(MissingExtraError, match="cloud"):
        at("s3://another/team")
