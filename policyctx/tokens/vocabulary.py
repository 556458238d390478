"""The vocabularies in the package, and the encodings built from them when a count is first needed.

tiktoken's own loader fetches these files from the network; here they ship with the library and are
checked against the hashes that tiktoken checks.
"""

from __future__ import annotations

import binascii
import hashlib
import threading
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from policyctx.errors import VocabularyError

if TYPE_CHECKING:
    import tiktoken


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What defines an encoding: the hash of its ranks file and the pattern that cuts a text."""

    sha256: str
    pattern: str


_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_LEAD = r"[^\r\n\p{L}\p{N}]?"
_SUFFIX = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"

# Facts of the encodings: a count is only exact when file and pattern are the published ones.
VOCABULARIES = {
    "o200k_base": Vocabulary(
        sha256="446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        pattern="|".join(
            [
                f"{_LEAD}{_UPPER}*{_LOWER}+{_SUFFIX}",
                f"{_LEAD}{_UPPER}+{_LOWER}*{_SUFFIX}",
                r"\p{N}{1,3}",
                r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
                r"\s*[\r\n]+",
                r"\s+(?!\S)",
                r"\s+",
            ]
        ),
    ),
    "cl100k_base": Vocabulary(
        sha256="223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        pattern=(
            r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
            r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
        ),
    ),
}

_built: dict[str, tiktoken.Encoding] = {}
_building = threading.Lock()


def encoding(name: str) -> tiktoken.Encoding:
    """Return the encoding `name`, building it the first time (about 0.3 s), once per process.

    Raises `VocabularyError` when the file in the package is missing or damaged.
    """
    with _building:
        if name not in _built:
            _built[name] = built_encoding(name)
        return _built[name]


_BEFORE_WORDS = frozenset({b" ", b"."})


@cache
def common_words(name: str, most: int) -> Mapping[str, int]:
    """Return the words among the first `most` tokens of an encoding, with their ranks.

    Tokens are numbered about in the order of how common they are. A word is what a token has after
    a space. Raises `VocabularyError` when the file in the package is missing or damaged.
    """
    found: dict[str, int] = {}
    for rank, line in enumerate(_ranks_file(name).splitlines()[:most]):
        token = binascii.a2b_base64(line.split()[0])
        if token[:1] in _BEFORE_WORDS:
            found.setdefault(token[1:].decode("utf-8", "replace"), rank)
    return MappingProxyType(found)


def built_encoding(name: str) -> tiktoken.Encoding:
    """Build an encoding anew; `encoding` is what keeps it."""
    import tiktoken  # noqa: PLC0415 - only when a count is needed

    ranks = {}
    for line in _ranks_file(name).splitlines():
        token, rank = line.split()
        ranks[binascii.a2b_base64(token)] = int(rank)
    return tiktoken.Encoding(
        name, pat_str=VOCABULARIES[name].pattern, mergeable_ranks=ranks, special_tokens={}
    )


def _ranks_file(name: str) -> bytes:
    import gzip  # noqa: PLC0415 - slow to import
    import importlib.resources  # noqa: PLC0415 - slow to import

    packed = importlib.resources.files("policyctx.tokens") / "vocabularies" / f"{name}.tiktoken.gz"
    try:
        raw = gzip.decompress(packed.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise _damaged(name) from error
    if hashlib.sha256(raw).hexdigest() != VOCABULARIES[name].sha256:
        raise _damaged(name)
    return raw


def _damaged(name: str) -> VocabularyError:
    return VocabularyError(
        f"the vocabulary {name} in the installed package is missing or damaged;"
        " `pip install --force-reinstall policyctx` mends it",
        vocabulary=name,
    )
