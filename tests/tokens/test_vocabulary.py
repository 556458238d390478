from __future__ import annotations

import gzip
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import policyctx
from policyctx.errors import VocabularyError
from policyctx.tokens.counter import LONGEST_TOKEN
from policyctx.tokens.encoders import VOCABULARIES, encoding

# As published with the encodings.
PUBLISHED = [
    ("cl100k_base", "hello world", [15339, 1917]),
    ("cl100k_base", "tiktoken is great!", [83, 1609, 5963, 374, 2294, 0]),
    ("cl100k_base", "rer", [38149]),
    ("cl100k_base", "today\n ", [31213, 198, 220]),
    ("o200k_base", "hello world", [24912, 2375]),
]


@pytest.mark.parametrize(("name", "text", "ids"), PUBLISHED)
def test_a_text_has_the_published_tokens(name: str, text: str, ids: list[int]) -> None:
    assert encoding(name).encode_ordinary(text) == ids


@pytest.mark.parametrize(("name", "size"), [("o200k_base", 199_998), ("cl100k_base", 100_256)])
def test_the_whole_vocabulary_is_there(name: str, size: int) -> None:
    assert encoding(name).n_vocab == size


@pytest.mark.parametrize("name", VOCABULARIES)
def test_no_token_is_longer_than_the_bounds_take_it_for(name: str) -> None:
    assert max(map(len, encoding(name).token_byte_values())) == LONGEST_TOKEN


@pytest.mark.parametrize("name", VOCABULARIES)
@given(text=st.text(max_size=200))
def test_a_text_survives_encoding(name: str, text: str) -> None:
    built = encoding(name)
    assert built.decode(built.encode_ordinary(text)) == text


def test_an_encoding_is_built_once() -> None:
    assert encoding("cl100k_base") is encoding("cl100k_base")


def test_two_threads_that_need_an_encoding_at_once_build_one(tmp_path: Path) -> None:
    # A process of its own, in which nothing is built yet.
    program = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from threading import Barrier\n"
        "from policyctx.tokens.encoders import encoding\n"
        "together = Barrier(4)\n"
        "def built(_):\n"
        "    together.wait()\n"
        "    return id(encoding('cl100k_base'))\n"
        "with ThreadPoolExecutor(4) as threads:\n"
        "    print(len(set(threads.map(built, range(4)))))\n"
    )
    run = [sys.executable, "-c", program]
    assert subprocess.run(run, capture_output=True, check=True, cwd=tmp_path).stdout == b"1\n"


def test_a_vocabulary_that_is_not_there_is_named_with_the_cure() -> None:
    with pytest.raises(VocabularyError, match="pip install --force-reinstall") as caught:
        encoding("not_shipped")
    assert caught.value.vocabulary == "not_shipped"


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def not_packed(path: Path) -> None:
    path.write_bytes(b"aGVsbG8= 0\n")


def scrambled(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[1000:1100] = b"\xff" * 100
    path.write_bytes(raw)


def another(path: Path) -> None:
    path.write_bytes(gzip.compress(b"aGVsbG8= 0\n"))


@pytest.mark.parametrize("damage", [cut_short, not_packed, scrambled, another, Path.unlink])
def test_a_damaged_file_is_refused(tmp_path: Path, damage: object) -> None:
    assert callable(damage)
    copy = tmp_path / "policyctx"
    shutil.copytree(Path(policyctx.__file__).parent, copy)
    damage(copy / "tokens" / "vocabularies" / "cl100k_base.tiktoken.gz")
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from policyctx.errors import VocabularyError\n"
        "from policyctx.tokens.encoders import encoding\n"
        "try: encoding('cl100k_base')\n"
        "except VocabularyError as error: print(error.vocabulary, '; `' in str(error))\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (ran.stdout.strip(), ran.stderr) == (b"cl100k_base True", b"")
