"""What the user's short replies refer to, and replies that say nothing.

"Do the first two" and "let's do that" are orders, and only the agent's words before them tell what
to do. So the entries of the agent's last list, or its offer, become a note on the reply. A reply of
a few words that only says that something was heard is left out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from policyctx.compaction.extractive.sentences import one_line, sentences_in, shortened
from policyctx.compaction.extractive.statements import USER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from policyctx.compaction.extractive.cues import Cues
    from policyctx.compaction.extractive.statements import Said
    from policyctx.definitions.items import Item

# A longer reply says itself what it means.
_LONGEST_REPLY, _LONGEST_AGREEMENT = 90, 40
_LONGEST_NOTE = 400
# Of what the agent said only the end is looked through.
_LOOKED_AT = 6_000
_ENTRY = re.compile(r"^\s*(?:[-*+•]|\(?(\d{1,2}|[A-Za-z])[.):、])\s+(\S[^\n]*)", re.MULTILINE)
_DIGIT = re.compile(r"(?<![\w.,:/-])#?(\d)(?![\w:/%-]|[.,]\d)")
_WORD = re.compile(r"[A-Za-z']+|[\u3400-\u9fff]")
# Beside its numbers a reply that picks from a list has few words.
_MOST_WORDS_BESIDE = 6
_MOST_ACKNOWLEDGING = 4
_NO_LETTER = re.compile(r"[\W_]+")


def resolved(said: Sequence[Said], items: Iterable[Item], cues: Cues) -> list[Said]:
    """Return the sentences, the user's replies with what they refer to, without mere thanks."""
    words = [item for item in items if item.kind == "assistant_message"]
    before = _before(said, words)
    return [
        one if text is None else _resolved(one, text, cues)
        for one, text in zip(said, before, strict=True)
        if one.pasted or not _is_acknowledgement(one, cues)
    ]


def _before(said: Sequence[Said], words: Sequence[Item]) -> Iterator[str | None]:
    """Yield for each sentence of the user what the agent said last before it, else None."""
    at, text = 0, None
    for one in said:
        while at < len(words) and words[at].message < one.message:
            text = words[at].text
            at += 1
        yield text if one.speaker == USER and not one.pasted else None


def _is_acknowledgement(one: Said, cues: Cues) -> bool:
    if one.values or one.statement.answers or len(one.text) > _LONGEST_AGREEMENT:
        return False
    folded = one.text.casefold()
    if len(_WORD.findall(folded)) > _MOST_ACKNOWLEDGING:
        return False
    return not _NO_LETTER.sub("", cues.acknowledged.sub("", folded))


def _resolved(one: Said, agents: str, cues: Cues) -> Said:
    if len(one.text) > _LONGEST_REPLY:
        return one
    folded = one.text.casefold()
    entries = _last_list(agents[-_LOOKED_AT:])
    picked = _picked(folded, entries, cues) if entries else []
    if not picked and len(folded) <= _LONGEST_AGREEMENT and not one.statement.answers:
        picked = _offer(agents, cues) if cues.agreements.found_in(folded) else []
    if not picked:
        return one
    note = shortened("; ".join(one_line(entry) for entry in picked), _LONGEST_NOTE)
    return one._replace(statement=one.statement._replace(answers=note))


def _last_list(text: str) -> list[str]:
    """Return the entries of the last list in a text; of one entry there is no list."""
    entries: list[str] = []
    end = -1
    for found in _ENTRY.finditer(text):
        first = found[1] in ("1", "a", "A")
        between = text[end : found.start()].strip() if end >= 0 else ""
        if first or (between and found[1] is None):
            entries = []
        entries.append(found[2])
        end = found.end()
    return entries if len(entries) > 1 else []


def _picked(folded: str, entries: Sequence[str], cues: Cues) -> list[str]:
    picks = cues.picks
    if (counted := picks.first.search(folded)) is not None:
        return list(entries[: _number(counted, cues)])
    if (counted := picks.last.search(folded)) is not None:
        return list(entries[-_number(counted, cues) :])
    if picks.whole.found_in(folded):
        return list(entries)
    chosen = [picks.ordinals[word] for word in picks.ordinal.findall(folded)]
    if not chosen and len(_WORD.findall(folded)) <= _MOST_WORDS_BESIDE:
        chosen = [int(digit) for digit in _DIGIT.findall(folded)]
    if not chosen or not all(1 <= number <= len(entries) for number in chosen):
        return []
    return [entries[number - 1] for number in dict.fromkeys(chosen)]


def _number(found: re.Match[str], cues: Cues) -> int:
    word = next(group for group in found.groups() if group is not None)
    return int(word) if word.isdigit() else cues.picks.numbers[word]


def _offer(agents: str, cues: Cues) -> list[str]:
    """Return the last sentence in which the agent offers something."""
    sentences = [one.text for one in sentences_in(agents[-_LOOKED_AT:])]
    offers = (text for text in reversed(sentences) if cues.proposals.found_in(text))
    return [text for text in [next(offers, "")] if text]
