"""Encoders: tiktoken with the shipped vocabularies, or toktok where both give the same counts.

`measure_for` returns a function from texts to their token counts and loads nothing before its first
call. A long text is split where no token is divided: no encoder gets more than 16,384 characters at
once, since some need quadratic time for a long run without a break, and tiktoken panics on a
million spaces.
"""

from __future__ import annotations

import binascii
import gzip
import hashlib
import importlib.resources
import re
import threading
import unicodedata
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from importlib.util import find_spec
from itertools import count, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

from policyctx.definitions.tokenizers import CHARS_PER_TOKEN, TOKENIZERS
from policyctx.errors import VocabularyError

if TYPE_CHECKING:
    import tiktoken

# From texts to the tokens of each, in their order.
Measure: TypeAlias = Callable[[Sequence[str]], list[int]]
# The same for a tokenizer, which is named.
Measured: TypeAlias = Callable[[Sequence[str], str], list[int]]
# Pieces are copies: no more than so many characters of them are in memory together.
_TOGETHER_CHARS = 1 << 16
# From this many texts on they are counted in one call, which lets other threads run meanwhile.
_MANY = 16
_LONG_S = "\u017f"
# Searched by itself: a class of signs is only quick where all are in the first plane.
_BEYOND = re.compile("[\U00010000-\U0010ffff]")
CJK = (
    "[\u1100-\u11ff\u2e80-\u2fdf\u3000-\u30ff\u3100-\u318f\u31a0-\u31bf\u31f0-\u9fff"
    "\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00020000-\U0003ffff]"
)
"""A pattern of a character, or sign, that is a word by itself; it takes long to compile."""


class Vocabulary(NamedTuple):
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
            _first[name].end()
        return _built[name]


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


SPLIT_CHARS = 16_384

# A letter or digit, then white space or punctuation: no alternative of either encoding's pattern
# matches the two together, and none looks back. An apostrophe is no such sign, for the sake of 's.
_LETTER = r"[0-9A-Za-z\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fa5\uac00-\ud7a3]"
_SIGN = (
    r"[\t-\r !-&(-/:-@\[-`{-~"
    r"\u3001-\u3003\u3008-\u3011\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f]"
)


def pieces(text: str, most: int = SPLIT_CHARS) -> Iterator[str]:
    """Cut a text into pieces of at most `most` characters that together are the text.

    A cut stands between a letter or digit and white space or a punctuation mark, as late as it
    can. The encodings part their tokens there too, so the pieces' tokens add up to the text's
    without error. Where so many characters hold no such place, the cut follows them and may
    part a token: measured on 300,000 characters, 16,384 at most, that is +0.012 % on digits,
    +0.008 % on mixed white space, +0.004 % on hex, +0.003 % on random letters, and nothing on
    base64, CJK, spaces or one letter repeated.
    """
    start = 0
    while len(text) - start > most:
        cut = _up_to_cut(most).match(text, start)
        end = cut.end() if cut else start + most
        yield text[start:end]
        start = end
    yield text[start:]


@cache
def _up_to_cut(most: int) -> re.Pattern[str]:
    return re.compile(rf"(?s).{{0,{most - 1}}}{_LETTER}(?={_SIGN})")


def measure_for(tokenizer: str, *, fast: bool | None = None) -> Measure:
    """Return what counts texts for a `model.tokenizer`.

    `fast` says whether toktok counts what it can; by default it does where it is installed, and
    `ByRanks` counts what comes first. The counts are the same.
    """
    if TOKENIZERS[tokenizer].is_approximate:
        return approximate
    if fast is None:
        library = _fast_counts if find_spec("toktok") is not None else exact_counts
        return partial(_first_by_ranks, tokenizer=tokenizer, library=library)
    return partial(_fast_counts if fast else exact_counts, tokenizer=tokenizer)


# The characters that are counted by the ranks alone: that takes less time than to load a library.
_FIRST_CHARS = 1 << 18
_LONGEST_WORD = 64
_SPACE = r" \t-\r"
# What a part of a pattern matches in ASCII; `\s` is white space as the libraries have it.
_IN_ASCII = {
    r"\p{L}": "A-Za-z", r"\p{Lu}": "A-Z", r"\p{Ll}": "a-z", r"\p{Lt}": "", r"\p{Lm}": "",
    r"\p{Lo}": "", r"\p{M}": "", r"\p{N}": "0-9", r"\s": _SPACE,
}  # fmt: skip
_CLASS = re.compile(r"\\p\{\w+\}|\\s")
_PART = re.compile(rf"\[(?:\\.|[^\]])*\]|{_CLASS.pattern}|\\S|\$")


class ByRanks:
    """Counts short ASCII texts with the ranks alone: they load in a third of a library's time."""

    def __init__(self, name: str) -> None:
        self._ranks = dict(zip(_ranks_file(name).split()[::2], count()))
        """By the token in base64, as the file has it: in the order of the ranks, from 0."""
        self._words = re.compile(_PART.sub(_in_ascii, VOCABULARIES[name].pattern))
        self._known: dict[str, int] = {}

    def tokens(self, text: str) -> int | None:
        """Return the tokens of a text, None for one that a library has to count."""
        if not text.isascii() or len(text) > SPLIT_CHARS:
            return None
        words, known = self._words.findall(text), self._known
        for word in set(words).difference(known):
            if len(word) > _LONGEST_WORD:
                return None
            known[word] = self._parts_of(word.encode())
        return sum(map(known.__getitem__, words))

    def _parts_of(self, word: bytes) -> int:
        """Merge the two parts that make the token of the least rank, as long as there are any."""
        ranks, coded = self._ranks, partial(binascii.b2a_base64, newline=False)
        if coded(word) in ranks:
            return 1
        parts = [word[i : i + 1] for i in range(len(word))]
        while True:
            pairs = ((ranks.get(coded(a + b)), i) for i, (a, b) in enumerate(pairwise(parts)))
            found = min(((rank, i) for rank, i in pairs if rank is not None), default=None)
            if found is None:
                return len(parts)
            at = found[1]
            parts[at : at + 2] = [parts[at] + parts[at + 1]]


def _in_ascii(part: re.Match[str]) -> str:
    found = part.group()
    if found.startswith("["):
        return _CLASS.sub(lambda name: _IN_ASCII[name.group()], found)
    if found == "$":  # which stands for the end of the text alone
        return r"\Z"
    return rf"[^{_SPACE}]" if found == r"\S" else f"[{_IN_ASCII[found]}]"


class _First:
    """What a process counts before it loads a library."""

    def __init__(self) -> None:
        self.left = _FIRST_CHARS
        """Characters that may still be; negative once the library is loaded."""
        self.by_ranks: ByRanks | None = None

    def end(self) -> None:
        """Count no more, since a library is loaded."""
        self.left, self.by_ranks = -1, None


_first = {name: _First() for name in VOCABULARIES}


def _first_by_ranks(texts: Sequence[str], tokenizer: str, library: Measured) -> list[int]:
    """Count by the ranks alone as long as little was counted, then with a library for good."""
    first, chars = _first[tokenizer], sum(map(len, texts))
    with _building:
        first.left -= chars
        by_ranks = first.by_ranks = (
            (first.by_ranks or ByRanks(tokenizer)) if first.left >= 0 else None
        )
    if by_ranks is None:
        return library(texts, tokenizer)
    counts = list(map(by_ranks.tokens, texts))
    if None not in counts:
        return cast("list[int]", counts)
    found = iter(library([t for t, n in zip(texts, counts, strict=True) if n is None], tokenizer))
    return [next(found) if tokens is None else tokens for tokens in counts]


def approximate(texts: Sequence[str]) -> list[int]:
    """Count a token for every four characters begun."""
    return [-(-len(text) // CHARS_PER_TOKEN) for text in texts]


def exact_counts(texts: Sequence[str], tokenizer: str) -> list[int]:
    """Count with tiktoken; see `pieces` for texts of more than 16,384 characters.

    Names of special tokens are plain text, and what UTF-8 cannot carry counts as U+FFFD.
    """
    encode = encoding(tokenizer).encode_ordinary
    return [sum(len(encode(piece)) for piece in _copied(text)) for text in texts]


def _fast_counts(texts: Sequence[str], tokenizer: str) -> list[int]:
    """Count with toktok, and with tiktoken the texts on which the two may differ."""
    counts = [0] * len(texts)
    parts: list[tuple[int, str]] = []
    left: list[int] = []
    chars = 0
    for i, text in enumerate(texts):
        if not text.isascii() and _may_differ(text):
            left.append(i)
            continue
        for piece in _copied(text):
            parts.append((i, piece))
            chars += len(piece)
            if chars > _TOGETHER_CHARS:
                _add_counts(counts, parts, tokenizer)
                chars = 0
    _add_counts(counts, parts, tokenizer)
    if left:
        for i, tokens in zip(left, exact_counts([texts[i] for i in left], tokenizer), strict=True):
            counts[i] = tokens
    return counts


def _copied(text: str) -> Iterator[str]:
    """Yield a text in pieces, none of which is a non-ASCII string of the caller.

    An encoder leaves the UTF-8 of such a string in it, which may take more memory than the string.
    """
    if len(text) > SPLIT_CHARS:
        return pieces(text)
    return iter((text if text.isascii() else text[:1] + text[1:],))


def _add_counts(counts: list[int], parts: list[tuple[int, str]], tokenizer: str) -> None:
    """Count the parts with toktok alone, and forget them; each names the text that it is of.

    Each call of its public function looks up how many processors there are, which takes longer than
    to count a short text. Its encoding counts one text without that.
    """
    import toktok  # type: ignore[import-untyped]  # noqa: PLC0415 - only when a count is needed

    _first[tokenizer].end()
    encoding, texts = getattr(toktok, "_encoding", None), list(map(itemgetter(1), parts))
    if encoding is None or len(texts) >= _MANY:
        found = toktok.batch_count(texts, tokenizer, threads=1)
    else:
        found = map(encoding(tokenizer).count, texts)
    for (i, _), tokens in zip(parts, found, strict=True):
        counts[i] += tokens
    parts.clear()


def _may_differ(text: str) -> bool:
    """Say whether toktok may refuse this text or see it otherwise than tiktoken.

    Each library has the letters of its own version of Unicode, so what this Python's version has
    not assigned is left to tiktoken. toktok refuses surrogates, and versions of it have taken the
    long s after an apostrophe for an s.
    """
    if len(text) > SPLIT_CHARS:  # what is made of a text is as large as it
        cuts = range(0, len(text), SPLIT_CHARS)
        return any(_may_differ(text[at : at + SPLIT_CHARS]) for at in cuts)
    signs = text.replace("\n", "").replace("\t", "").replace("\r", "")
    if signs.isprintable():  # the quick test: what is not assigned is not printable
        return _LONG_S in signs
    return _unsettled().search(text) is not None or any(
        unicodedata.category(sign) == "Cn" for sign in set(_BEYOND.findall(text))
    )


@cache
def _unsettled() -> re.Pattern[str]:
    signs = (chr(code) for code in range(0x10000))
    unsettled = (s for s in signs if s == _LONG_S or unicodedata.category(s) in {"Cn", "Cs"})
    return re.compile(f"[{re.escape(''.join(unsettled))}]")


WORD_CHARS = 32
"""Characters of the longest word that counts as one."""


def words_in(text: str) -> int:
    """Return the number of words; a CJK character, or sign, is one, and parts the words beside.

    What has no spaces, such as base64, counts as a word for each `WORD_CHARS` begun.
    """
    others, cjk = re.subn(CJK, " ", text)
    return cjk + sum(-(-len(word) // WORD_CHARS) for word in others.split())
