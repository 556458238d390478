"""`pieces`: a long text, cut where no token is parted.

No encoder need see more than 16,384 characters at once: some take quadratic time for a long run
without a break, and tiktoken panics on a million spaces.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    without error. Where so many characters hold no such place, the cut stands behind them and may
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
