from __future__ import annotations

import gzip
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import policyctx
from policyctx.errors import VocabularyError
from policyctx.tokens.counter import counter_for
from policyctx.tokens.vocabulary import VOCABULARIES, encoding

# As published with the encodings.
PUBLISHED = [
    ("cl100k_base", "hello world", [15339, 1917]),
    ("cl100k_base", "tiktoken is great!", [83, 1609, 5963, 374, 2294, 0]),
    ("cl100k_base", "rer", [38149]),
    ("cl100k_base", "today\n ", [31213, 198, 220]),
    ("o200k_base", "hello world", [24912, 2375]),
]

# What the patterns tell apart: numbers, cases, endings, runs of space, scripts.
CHUNKS = (
    "12345", "7", "word", "Word", "WORD", "'s", "'LL", " ", "  ", "\t", "\n", "\r\n", "//", "._-",
    "é", "e\u0301", "字か", "한국", "\u0661\u0662", "👩\u200d👧", "\0", "\u2028",
)  # fmt: skip


@pytest.mark.parametrize(("name", "text", "ids"), PUBLISHED)
def test_a_text_has_the_published_tokens(name: str, text: str, ids: list[int]) -> None:
    assert encoding(name).encode_ordinary(text) == ids


@pytest.mark.parametrize(("name", "size"), [("o200k_base", 199_998), ("cl100k_base", 100_256)])
def test_the_whole_vocabulary_is_there(name: str, size: int) -> None:
    assert encoding(name).n_vocab == size


@pytest.mark.parametrize("name", VOCABULARIES)
@given(text=st.text(max_size=200))
def test_a_text_survives_encoding(name: str, text: str) -> None:
    built = encoding(name)
    assert built.decode(built.encode_ordinary(text)) == text


@pytest.mark.parametrize("name", VOCABULARIES)
@given(text=st.lists(st.sampled_from(CHUNKS), max_size=40).map("".join) | st.text())
def test_the_count_is_the_one_of_another_implementation(name: str, text: str) -> None:
    toktok = pytest.importorskip("toktok")
    # The two disagree by one on a letter that folds to an ASCII s.
    assume("\u017f" not in text)
    assert counter_for(name).count(text) == toktok.batch_count([text], name, threads=1)[0]


def test_an_encoding_is_built_once() -> None:
    assert encoding("cl100k_base") is encoding("cl100k_base")


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
        "from policyctx.tokens.vocabulary import encoding\n"
        "try: encoding('cl100k_base')\n"
        "except VocabularyError as error: print(error.vocabulary)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (ran.stdout.strip(), ran.stderr) == (b"cl100k_base", b"")
