"""Texts as an index sees them: plain, and cut into words; Chinese, Japanese and Korean in grams."""

from __future__ import annotations

import re
import string

from policyctx.replay.readers.json_text import value_of

# Characters of languages that are written without spaces, and Hangul.
CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"
_FIRST_CJK = "\u3040"
# So many of them in a row are as telling as a rare word.
GRAM = 6

_PARTING = str.maketrans(dict.fromkeys(set(string.punctuation) - {"_"}, " "))
_ASCII, _UTF_8 = bytes(range(128)), ("utf-8", "surrogatepass")
_ASCII_RUN = re.compile(r"[\x00-\x7f]+")
_LETTER = re.compile(r"\w")
_OTHER_WORD = re.compile(rf"[^\W\x00-\x7f{CJK}]+")
_RUN = re.compile(rf"[{CJK}]{{{GRAM},}}")


def plain(text: str) -> str:
    """Return what a person would read: of JSON, its keys and values, one a line."""
    if not text.startswith(("{", "[")) or not text.rstrip().endswith(("}", "]")):
        return text
    try:
        value = value_of(text)
    except ValueError:
        return text
    found: list[str] = []
    waiting: list[object] = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            for key, inner in reversed(value.items()):
                waiting += (inner, key)
        elif isinstance(value, list):
            waiting += reversed(value)
        elif value is not None and not isinstance(value, bool):
            found.append(str(value))
    return "\n".join(found)


def words(text: str) -> list[str]:
    """Return the words of a text, each as often as it stands there; letters, digits and `_`.

    A word with letters outside of ASCII is cut where they begin and end.
    """
    if text.isascii():
        # Most short texts are one word, which need not be cut.
        return [text] if text.isalnum() else text.translate(_PARTING).split()
    found = text.encode("ascii", "replace").decode().translate(_PARTING).split()  # `?` parts words
    if _LETTER.search(text.encode(*_UTF_8).translate(None, _ASCII).decode(*_UTF_8)):
        # A pass over what is not ASCII alone is quicker than one word by word.
        others = _ASCII_RUN.sub("\n", text)
        found += [*_OTHER_WORD.findall(others), *grams(others)]
    return found


def grams(text: str) -> list[str]:
    """Return each `GRAM` characters in a row of a language written without spaces."""
    return [run[i : i + GRAM] for run in _RUN.findall(text) for i in range(len(run) - GRAM + 1)]


def stands_in(wanted: str, text: str) -> bool:
    """Does a text hold a string, and not merely as a part of longer words."""
    start = text.find(wanted)
    while start >= 0:
        end = start + len(wanted)
        if not (
            (start > 0 and _is_wordy(text[start - 1]) and _is_wordy(text[start]))
            or (end < len(text) and _is_wordy(text[end - 1]) and _is_wordy(text[end]))
        ):
            return True
        start = text.find(wanted, start + 1)
    return False


def _is_wordy(sign: str) -> bool:
    """May a word go on beside this sign; signs of languages without spaces stand alone."""
    return sign == "_" or (sign < _FIRST_CJK and sign.isalnum())
