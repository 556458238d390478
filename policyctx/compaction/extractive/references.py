"""What the user's short replies refer to, and replies that say nothing.

"Do the first two" and "let's do that" are orders, and only the agent's words before them tell what
to do. So the entries of the agent's last list, or its offer, become a note on the reply. A reply of
a few words that only says that something was heard is left out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from policyctx.compaction.extractive.revisions import subject_words
from policyctx.compaction.extractive.sentences import one_line, sentences_in, shortened
from policyctx.compaction.extractive.statements import USER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from policyctx.compaction.extractive.cues import Cues
    from policyctx.compaction.extractive.statements import Said
    from policyctx.definitions.items import Item

# A longer reply says itself what it means.
_LONGEST_REPLY, _LONGEST_AGREEMENT = 90, 60
_LONGEST_NOTE = 400
# Of what the agent said only the end is looked through.
_LOOKED_AT = 6_000
_ENTRY = re.compile(r"^\s*(?:[-*+•]|\(?(\d{1,2}|[A-Za-z])[.):、])\s+(\S[^\n]*)", re.MULTILINE)
_DIGIT = re.compile(r"(?<![\w.,:/-])#?(\d)(?![\w:/%-]|[.,]\d)")
_WORD = re.compile(r"[A-Za-z']+|[\u3400-\u9fff]")
# Beside its numbers a reply that picks from a list has few words.
_MOST_WORDS_BESIDE = 6
_MOST_ACKNOWLEDGING = 4
# Words of a question that does not say what it is about; sentences that then do; and how far above
# the question a list may end, in characters.
_LONGEST_NAME = 40
# Words that a reply may have beside its agreement.
_MOST_BESIDE_AGREEMENT = 2
_LITTLE, _MOST_SENTENCES, _NEAR = 2, 2, 400
# Characters of each entry in a note with many, and the entries of which so much is shown.
_LEAST_OF_ENTRY, _MOST_ENTRIES = 60, 12
_ENDS_CLAUSE = re.compile(r"\s*(?:$|[,.;!?])")
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
        refers = one.speaker == USER and not (one.pasted or one.answered)
        yield text if refers else None


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
    lists = _lists(agents[-_LOOKED_AT:])
    entries = lists[-1] if lists else []
    # "The first five" are not of a list of four.
    picks = (_picked(folded, one, cues) for one in reversed(lists))
    picked = next(filter(None, picks), [])
    agrees = len(folded) <= _LONGEST_AGREEMENT and _agrees(folded, cues)
    if not picked and agrees and not one.statement.answers:
        picked = _proposed_list(agents, entries, cues) or _offer(agents, cues)
    asked = one.statement.answers or " ".join(picked)
    if not picked and asked and not agrees and _says_little(asked, cues):
        picked = [entry for entry in entries if folded.strip(" .!\"'") in _begins(entry)]
        picked = [asked, *picked] if len(picked) == 1 else []
    if not asked and _only_agrees(folded, cues):
        picked = _proposal(agents, "", entries)
    if agrees and asked and _says_little(asked, cues):
        picked = [*_proposal(agents, asked, entries), asked]
    if not picked:
        return one
    note = _note_of(picked)
    return one._replace(statement=one.statement._replace(answers=note))


def _note_of(picked: Sequence[str]) -> str:
    """Return the entries in one line, each shortened alike if they are too long together."""
    entries = [one_line(entry) for entry in picked]
    most = max(_LEAST_OF_ENTRY, _LONGEST_NOTE // len(entries) - 2)
    if len("; ".join(entries)) > _LONGEST_NOTE:
        entries = [shortened(entry, most) for entry in entries]
    return shortened("; ".join(entries), max(_LONGEST_NOTE, _LEAST_OF_ENTRY * _MOST_ENTRIES))


def _proposed_list(agents: str, entries: Sequence[str], cues: Cues) -> list[str]:
    """Return the entries of the list with which the agent's words end, if it offers something."""
    at = agents.rfind(entries[-1]) if entries else -1
    is_last = at >= 0 and len(agents) - at - len(entries[-1]) <= _NEAR
    if not is_last or not cues.proposals.found_in(agents[-_LOOKED_AT:]):
        return []
    # An offer behind the list is what the reply is about, unless it means the list.
    behind = [one.text for one in sentences_in(agents[at + len(entries[-1]) :])]
    offers = [text for text in behind if cues.proposals.found_in(text)]
    return [] if any(not _says_little(text, cues) for text in offers) else list(entries)


def _agrees(folded: str, cues: Cues) -> bool:
    return cues.agreements.found_in(folded) or not _NO_LETTER.sub(
        "", cues.acknowledged.sub("", folded)
    )


def _only_agrees(folded: str, cues: Cues) -> bool:
    """Whether a reply accepts something and says next to nothing else."""
    rest = cues.agreements.parts.sub(" ", cues.agreements.words.sub(" ", folded))
    left = len(_WORD.findall(cues.acknowledged.sub(" ", rest)))
    return rest != folded and left <= _MOST_BESIDE_AGREEMENT


def _says_little(question: str, cues: Cues) -> bool:
    """Whether a question does not name what it asks for: "Shall I proceed?"."""
    return len(subject_words(question, cues)) <= _LITTLE


def _begins(entry: str) -> str:
    """Return the name of an entry: what it begins with."""
    return entry.casefold()[:_LONGEST_NAME]


def _proposal(agents: str, asked: str, entries: Sequence[str]) -> list[str]:
    """Return what the agent proposed before a question: the list right above it, or what it said.

    `entries` are those of the agent's last list.
    """
    before = agents[-_LOOKED_AT:]
    before = before[: before.rfind(asked)] if asked in before else before
    if entries and entries[-1] in before[-_NEAR - len(entries[-1]) :]:
        return list(entries)
    sentences = [one.text for one in sentences_in(before) if not one.pasted]
    return [text for text in sentences if text != asked][-_MOST_SENTENCES:]


def _lists(text: str) -> list[list[str]]:
    """Return the lists in a text, each with its entries; of one entry there is no list."""
    lists: list[list[str]] = []
    end = -1
    for found in _ENTRY.finditer(text):
        first = found[1] in ("1", "a", "A")
        between = text[end : found.start()].strip() if end >= 0 else ""
        if not lists or first or (between and found[1] is None):
            lists.append([])
        lists[-1].append(found[2])
        end = found.end()
    return [entries for entries in lists if len(entries) > 1]


def _picked(folded: str, entries: Sequence[str], cues: Cues) -> list[str]:
    picks = cues.picks
    if (counted := picks.first.search(folded)) is not None:
        number = _number(counted, cues)
        return list(entries[:number]) if number <= len(entries) else []
    if (counted := picks.last.search(folded)) is not None:
        number = _number(counted, cues)
        return list(entries[-number:]) if number <= len(entries) else []
    if picks.whole.found_in(folded):
        return list(entries)
    chosen = [
        picks.ordinals[found[0]]
        for found in picks.ordinal.finditer(folded)
        if not _is_adverb(folded, found, cues)
    ]
    if not chosen and len(_WORD.findall(folded)) <= _MOST_WORDS_BESIDE:
        chosen = [int(digit) for digit in _DIGIT.findall(folded)]
    if not chosen or not all(1 <= number <= len(entries) for number in chosen):
        return []
    return [entries[number - 1] for number in dict.fromkeys(chosen)]


def _is_adverb(folded: str, found: re.Match[str], cues: Cues) -> bool:
    """Whether a word for first, second and so on says when: "if not, commit first"."""
    if not found[0].isascii() or not _ENDS_CLAUSE.match(folded, found.end()):
        return False
    before = _WORD.findall(folded[: found.start()])
    pointed = any(before[-1] in one.articles for one in cues.languages) if before else True
    return not pointed and len(before) >= _MOST_BESIDE_AGREEMENT


def _number(found: re.Match[str], cues: Cues) -> int:
    word = next(group for group in found.groups() if group is not None)
    return int(word) if word.isdigit() else cues.picks.numbers[word]


def _offer(agents: str, cues: Cues) -> list[str]:
    """Return the last sentence in which the agent offers something."""
    sentences = [one.text for one in sentences_in(agents[-_LOOKED_AT:])]
    offers = (text for text in reversed(sentences) if cues.proposals.found_in(text))
    return [text for text in [next(offers, "")] if text]
