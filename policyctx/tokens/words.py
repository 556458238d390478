"""Words as a policy's `max_words` counts them."""

from __future__ import annotations

import re

CJK = re.compile(
    "[\u1100-\u11ff\u2e80-\u2fdf\u3000-\u30ff\u3100-\u318f\u31a0-\u31bf\u31f0-\u9fff"
    "\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00020000-\U0003ffff]"
)
"""A character, or sign, that is a word by itself."""


def words_in(text: str) -> int:
    """Return the number of words; a CJK character, or sign, is one, and parts the words beside."""
    others, cjk = CJK.subn(" ", text)
    return cjk + len(others.split())
