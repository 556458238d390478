"""Content encodings, the usage in encoded responses, and the secrets of the proxy."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Any

import pytest
import zstandard

from policyctx.errors import SettingsError, StoreError
from policyctx.proxy.command import root_key, token_in
from policyctx.proxy.encodings import BodyTooLargeError, decoded, decoder, readable
from policyctx.proxy.scanning import UntouchableError
from policyctx.tokens.usage import BodyUsage

TEXT = b'{"messages":[]}' * 50
GZIPPED = gzip.compress(TEXT, mtime=0)


@pytest.mark.parametrize(
    ("encoding", "raw"),
    [
        pytest.param("", TEXT, id="none"),
        pytest.param("identity", TEXT, id="identity"),
        pytest.param("gzip", GZIPPED, id="gzip"),
        pytest.param("X-GZIP ", GZIPPED, id="x-gzip"),
        pytest.param("zstd", zstandard.compress(TEXT), id="zstd"),
    ],
)
def test_a_body_is_decoded_up_to_the_limit(encoding: str, raw: bytes) -> None:
    assert decoded(raw, encoding, len(TEXT), 100) == TEXT


@pytest.mark.parametrize("encode", [gzip.compress, zstandard.compress])
def test_a_body_above_the_limit_is_refused_without_decoding_all(encode: Any) -> None:
    encoding = "gzip" if encode is gzip.compress else "zstd"
    assert decoded(encode(b" " * 1000), encoding, 1000, 100) == b" " * 1000
    with pytest.raises(BodyTooLargeError):
        decoded(encode(b" " * 1001), encoding, 1000, 100)


@pytest.mark.parametrize(
    ("encoding", "encode"), [("gzip", gzip.compress), ("zstd", zstandard.compress)]
)
def test_a_dense_body_is_left_alone_above_a_megabyte(encoding: str, encode: Any) -> None:
    """A body of a few KB may not take megabytes; larger than all limits it is refused."""
    assert decoded(encode(b" " * 2**20), encoding, 2**30, 100) == b" " * 2**20
    with pytest.raises(UntouchableError, match="larger"):
        decoded(encode(b" " * 2**24), encoding, 2**30, 100)
    with pytest.raises(BodyTooLargeError):
        decoded(encode(b" " * 2**24), encoding, 2**23, 100)


def test_both_frames_of_a_body_are_read() -> None:
    raw = zstandard.compress(TEXT) + zstandard.compress(b"more")
    assert decoded(raw, "zstd", 10_000, 100) == TEXT + b"more"


@pytest.mark.parametrize(
    ("encoding", "encode"),
    [("gzip", gzip.compress), ("deflate", zlib.compress), ("zstd", zstandard.compress)],
)
def test_a_piece_of_a_response_that_is_decoded_too_large_is_not_read(
    encoding: str, encode: Any
) -> None:
    decode = decoder(encoding)
    assert decode is not None
    with pytest.raises((zlib.error, zstandard.ZstdError)):
        decode(encode(b" " * 2**27))


@pytest.mark.parametrize(
    ("encoding", "raw"),
    [
        pytest.param("br", b"text", id="br"),
        pytest.param("gzip, gzip", GZIPPED, id="gzip twice"),
        pytest.param("gzip", b"text", id="no gzip"),
        pytest.param("gzip", GZIPPED[:-9], id="gzip cut off"),
        pytest.param("gzip", GZIPPED * 2, id="two gzip members"),
        pytest.param("zstd", b"text", id="no zstd"),
    ],
)
def test_a_body_that_cannot_be_decoded_is_left_alone(encoding: str, raw: bytes) -> None:
    with pytest.raises(UntouchableError):
        decoded(raw, encoding, 10_000, 100)


@pytest.mark.parametrize(
    ("encoding", "encode"),
    [
        ("", bytes),
        ("gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("zstd", zstandard.compress),
    ],
)
def test_a_response_is_decoded_in_pieces(encoding: str, encode: Any) -> None:
    decode = decoder(encoding)
    assert decode is not None
    raw = encode(TEXT)
    assert b"".join(decode(raw[i : i + 7]) for i in range(0, len(raw), 7)) == TEXT


def test_encodings_that_cannot_be_read_are_not_asked_for() -> None:
    assert decoder("br") is None
    assert readable("gzip, deflate, br, zstd;q=0.5") == "gzip, deflate, zstd;q=0.5"
    assert readable("br") == "identity"


def test_the_key_of_a_root_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    root = tmp_path / "a" / "b"
    key = root_key(root)
    assert len(key) == 32
    assert root_key(root) == key
    assert root_key(tmp_path / "c") != key
    assert (root / "proxy.key").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in root.iterdir()] == ["proxy.key"]
    (root / "proxy.key").write_bytes(b"short")
    with pytest.raises(StoreError, match="damaged"):
        root_key(root)


def test_a_token_is_long_enough_to_be_secret(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("0123456789abcdef\n")
    assert token_in(path) == "0123456789abcdef"
    for text in ("short", "0123456789\n0123456789", "0123456789abcdeé"):
        path.write_text(text)
        with pytest.raises(SettingsError, match="16"):
            token_in(path)
    with pytest.raises(SettingsError, match="cannot read"):
        token_in(tmp_path / "nothing")


def test_a_response_or_an_event_that_is_too_large_is_not_kept() -> None:
    usage = b'{"usage":{"input_tokens":7,"output_tokens":1}}'
    whole, events = BodyUsage("application/json"), BodyUsage("text/event-stream")
    for _ in range(9):
        assert whole.after(b" " * 2**20) is None
        assert events.after(b"x" * 2**20) is None
    assert whole.after(usage) is None
    assert whole.at_end() is None
    found = events.after(b"\ndata: " + usage + b"\n\n")
    assert found is not None
    assert found.input == 7
