"""Which lost items hold a string or a phrase, and which replies use one."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from policyctx.replay.regret.strings import (
    PATCH,
    PATCH_MARK,
    SURE,
    Distinct,
    Memo,
    distinct_in,
    plain,
    stands_in,
    words,
)
from policyctx.replay.timeline import SessionPart

# A word in more items than this tells nothing apart.
COMMON = 64


class TextPlace(NamedTuple):
    """Where a text stands: in an item, or in its place in an absence of it."""

    position: int
    """Of the item; below 0 for what was sent beside the messages."""
    absence: int = -1


class Texts:
    """What the items of a part say, and the placeholders in it, as a person would read them."""

    def __init__(self, part: SessionPart, memo: Memo) -> None:
        self._part = part
        self._plain = memo.of(plain)
        self._values, self._words_of = memo.of(_values), memo.of(_words)
        self._at: dict[int, str] = {}
        self._words: dict[TextPlace, frozenset[str]] = {}
        self._keys: dict[tuple[str, ...], str] = {}

    def at(self, place: TextPlace) -> str:
        """Return what is at a place."""
        position, absence = place
        if absence >= 0:
            return self._part.absences[position][absence].left
        text = self._at.get(position)
        if text is None:
            said = self.shown(position) if position >= 0 else self._part.beside[-1 - position]
            text = self._at[position] = self._plain(said)
        return text

    def shown(self, position: int) -> str:
        """Return the text of an item."""
        return self._part.items[position].counted

    def written(self, position: int) -> str:
        """Return what a model wrote in an item; the names of a call's fields are its tool's."""
        item = self._part.items[position]
        if item.kind != "tool_call":
            return self.at(TextPlace(position))
        return self._values(item.counted)

    def places(self) -> Iterator[TextPlace]:
        """Yield where anything stands, in the order of the items."""
        absences = self._part.absences
        yield from (TextPlace(-1 - i) for i in range(len(self._part.beside)))
        for position, item in enumerate(self._part.items):
            if item.counted:
                yield TextPlace(position)
            for i, absence in enumerate(absences.get(position, ())):
                if absence.left:
                    yield TextPlace(position, i)

    @cached_property
    def lost(self) -> frozenset[str]:
        """The words of all items that were out at any time."""
        return frozenset(self._lost)

    def rare(self, most: int) -> frozenset[str]:
        """The words that are in at most so many of the items that were out at any time."""
        if len(self._part.absences) <= most:
            return self.lost
        return frozenset(word for word, count in self._lost.items() if count <= most)

    def key(self, known: tuple[str, ...]) -> str:
        """Return the word by which to look for a string with these: likely the rarest."""
        if len(known) == 1:
            return known[0]
        found = self._keys.get(known)
        if found is None:
            counts = self._lost
            found = self._keys[known] = min(known, key=lambda word: (counts[word], -len(word)))
        return found

    @cached_property
    def _lost(self) -> Counter[str]:
        """In how many of the items that were out each word stands."""
        absences = self._part.absences
        return Counter(
            chain.from_iterable(self.words(TextPlace(position)) for position in absences)
        )

    def words(self, place: TextPlace, among: frozenset[str] | None = None) -> frozenset[str]:
        """Return the words at a place, or those `among` some."""
        if place not in self._words:
            self._words[place] = self._words_of(self.at(place))
        return self._words[place] if among is None else among & self._words[place]


def _values(text: str) -> str:
    said = plain(text, keys=False)
    return PATCH_MARK.sub("", said) if PATCH in said else said


def _words(text: str) -> frozenset[str]:
    return frozenset(words(text))


def _known_by(text: str) -> tuple[str, ...]:
    """Return the words of a text in their order; see `Distinct.words`."""
    return tuple(words(text))


class Holders:
    """The places of a part by the words in them, of those words that are `wanted`."""

    def __init__(self, texts: Texts, wanted: frozenset[str]) -> None:
        self._texts = texts
        self._by_word: dict[str, list[TextPlace]] = defaultdict(list)
        for place in texts.places() if wanted else ():
            for word in texts.words(place, among=wanted):
                # One more than may be is enough to know that there are too many.
                if len(found := self._by_word[word]) <= COMMON:
                    found.append(place)

    def with_word(self, word: str, *, most: int = COMMON) -> Sequence[TextPlace]:
        """Return the places that have a word, in order; none where there are more than `most`."""
        found = self._by_word.get(word, ())
        return () if len(found) > most else found

    def of(self, one: Distinct) -> Sequence[TextPlace]:
        """Return the places that may hold a string, in order; see `Texts.key`."""
        return self.with_word(self._texts.key(one.words))

    def holds(self, place: TextPlace, one: Distinct) -> bool:
        """Does the text at one of these places hold the string."""
        return one.words == (one.text,) or stands_in(one.text, self._texts.at(place))


# So many words in a row are no chance, when they are not shorter than this together.
WORDS, CHARS = 5, 28
# Longer ones are shown up to here; a line may have a whole file in it.
_MOST = 40
# A phrase that nothing else holds has a word that hardly anything else holds.
RARE = 4
# Shorter words stand everywhere.
_ANCHOR = 5
# What is around a word and is none of it.
MARKS = "\"'`.,;:!?()[]{}<>*_“”«»\u2018\u2019"


class Run(NamedTuple):
    """What of a text may be a phrase: words in a row that all stand in what was lost."""

    said: Sequence[str]
    """The words, with the marks around them."""
    anchors: Sequence[tuple[int, str]]
    """The words by which it may be found, without their marks, and where in it they stand."""


def may_anchor(word: str) -> bool:
    """Is this long enough, and one word to an index."""
    if len(word) < _ANCHOR:
        return False
    if word.isascii():
        return word.isalnum() or word.replace("_", "").isalnum()
    return words(word) == [word]


def phrases(
    runs: Sequence[Run], part: SessionPart, texts: Texts, holders: Holders, call: int
) -> Iterator[Distinct]:
    """Yield the phrases that are in an item which a call did not have."""
    for said, anchors in runs:
        end = 0
        for i, word in anchors:
            if i < end:
                continue
            for place in holders.with_word(word, most=RARE):
                if place.absence >= 0 or part.absence(place.position, call) is None:
                    continue
                found = _longest(said, i, texts.at(place))
                if found is not None:
                    start, end = found
                    known = tuple(word for at, word in anchors if start <= at < end)
                    yield Distinct(_joined(said, start, end), SURE, known)
                    break


def _longest(said: Sequence[str], i: int, text: str) -> tuple[int, int] | None:
    """Return where the longest run of words around one stands that a text holds too."""
    start, end = i, i + 1
    while end < min(len(said), i + _MOST) and _joined(said, start, end + 1) in text:
        end += 1
    while start > max(0, end - _MOST) and _joined(said, start - 1, end) in text:
        start -= 1
    is_long = end - start >= WORDS and len(_joined(said, start, end)) >= CHARS
    return (start, end) if is_long else None


def _joined(said: Sequence[str], start: int, end: int) -> str:
    return " ".join(said[start:end]).strip(MARKS)


_LINE_LENGTH, _LINE_WORDS = 30, 4
# What is quoted is taken from somewhere word by word, so less of it tells as much as a line.
_QUOTED = re.compile(r"(?<!\w)([\"`'])([^\"`'\n]{20,200})\1(?!\w)")
# A quotation may have marks of another kind in it, as a message about a file's name has.
_QUOTING = re.compile(r"(?<!\w)([\"`])((?:(?!\1)[^\n]){20,200})\1(?!\w)")
# Between sentences and words that are written without spaces.
_WIDE_MARKS = re.compile("[\u3001\u3002\u300c-\u300f\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f]")


class ReplyTexts(NamedTuple):
    """What of a reply may come from what was lost."""

    strings: Sequence[Distinct]
    """Each once; lines last."""
    runs: Sequence[Run]


class _Reply(NamedTuple):
    """What a reply says, whatever was lost."""

    said: tuple[str, ...]
    """What is between spaces, each once."""
    lines: tuple[tuple[str, tuple[str, ...]], ...]
    """Those that may be a phrase, each with what is between spaces in it."""
    quotations: tuple[Distinct, ...]
    """What is in quotation marks and has several words."""


def _reply(text: str) -> _Reply:
    spaced = text if text.isascii() else _WIDE_MARKS.sub(" ", text)
    lines = [
        (line.strip(), tuple(in_it))
        for line, parted in zip(text.split("\n"), spaced.split("\n"), strict=True)
        if len(line) >= CHARS and len(in_it := parted.split()) >= _LINE_WORDS
    ]
    quotations = [
        Distinct(said, SURE, _known_by(said))
        for _, said in dict.fromkeys((*_QUOTED.findall(text), *_QUOTING.findall(text)))
        if said.count(" ") + 1 >= _LINE_WORDS
    ]
    return _Reply(tuple(dict.fromkeys(spaced.split())), tuple(lines), tuple(quotations))


class Replies:
    """Reads the replies of one part, which mostly say what others said before them.

    `lost` are the words of all that was out at any time. What has no `rare` one of them is not
    looked for, nor a phrase without one by which phrases are found, the `anchors`.
    """

    def __init__(
        self, lost: frozenset[str], memo: Memo, *, rare: frozenset[str], anchors: frozenset[str]
    ) -> None:
        self._lost, self._rare, self._anchoring = lost, rare, anchors
        self._reply, self._distinct_in = memo.of(_reply), memo.of(distinct_in)
        self._known_by = memo.of(_known_by)
        self._seen: set[str] = set()
        """What stood between spaces so far; the others are of these."""
        self._strings: dict[str, Sequence[Distinct]] = {}
        self._anchors: dict[str, str] = {}
        """The bare word of each that may anchor a phrase."""
        self._unknown: set[str] = set()
        """What is in nothing that was lost, and so parts runs."""
        self._stands: dict[str, int] = {}
        """By string and line: in reply to which call it was said first, where that reply stays."""

    def read(self, text: str, call: int, *, stays: bool) -> ReplyTexts:
        """Return what of a text, which replies to a call, may come from what was lost.

        Replies are read in their order. What one of them said that `stays` in the list is had by
        all that come after it.
        """
        said, lines, quotations = self._reply(text)
        self._look_at({*said} - self._seen)
        strings = chain.from_iterable(self._strings[s] for s in said if s in self._strings)
        quoted = (
            one
            for one in quotations
            if self._may_come(one.words) and not self._anchoring.isdisjoint(one.words)
        )
        found = dict.fromkeys(chain(strings, self._whole_lines(lines), quoted))
        new = [one for one in found if self._stands.get(one.text, call) >= call]
        if stays:
            for one in new:
                self._stands.setdefault(one.text, call)
        return ReplyTexts(new, [run for _, line in lines for run in self._runs(line)])

    def _look_at(self, new: AbstractSet[str]) -> None:
        """Find out once what each is; most are bare words, of which sets say it together."""
        self._seen |= new
        bare = {said for said in new if said.isascii() and said.isalnum()}
        self._unknown |= bare - self._lost
        self._anchors.update((word, word) for word in bare & self._anchoring if may_anchor(word))
        for said in new - bare:
            word = said.strip(MARKS)
            if word in self._anchoring and may_anchor(word):
                self._anchors[said] = word
            elif not self._is_known(word):
                self._unknown.add(said)
        for said in new:
            found = [one for one in self._distinct_in(said) if self._may_come(one.words)]
            if found:
                self._strings[said] = found

    def _may_come(self, known: Sequence[str]) -> bool:
        return self._lost.issuperset(known) and not self._rare.isdisjoint(known)

    def _is_known(self, word: str) -> bool:
        """Was this lost, or was all that an index cuts it into; what is no word is in no index."""
        if word in self._lost or not word.isalnum():
            return True
        return not word.isascii() and self._lost.issuperset(words(word))

    def _whole_lines(self, lines: Sequence[tuple[str, Sequence[str]]]) -> Iterator[Distinct]:
        """Yield the lines of which every word was lost."""
        for line, said in lines:
            if len(line) >= _LINE_LENGTH and self._unknown.isdisjoint(said):
                known = self._known_by(line)
                if self._may_come(known):
                    yield Distinct(line, SURE, known)

    def _runs(self, line: Sequence[str]) -> Iterator[Run]:
        """Yield the words in a row that were all lost, of those rows that have an anchor."""
        if self._anchors.keys().isdisjoint(line):
            return
        start = 0
        parted = (i for i, said in enumerate(line) if said in self._unknown)
        for end in chain(parted, (len(line),)):
            if end - start >= WORDS:
                said = line[start:end]
                anchors = [(i, self._anchors[s]) for i, s in enumerate(said) if s in self._anchors]
                if anchors:
                    yield Run(said, anchors)
            start = end + 1


_SEPARATORS = b"_- \t\r\n\"'`\\*,;:()[]{}<>|+="
_PATH_PARTS = re.compile(r"[/\\:#@?&=]+")
# A test is named after what it tests.
_TEST = re.compile(r"(?i)(?:^|[._-])(?:unit)?(?:tests?|spec)(?=$|[._-])")
_EXTENSION = re.compile(r"(?<=\w)\.[A-Za-z][A-Za-z0-9]{0,4}$")
_WHOLE = re.compile(r"\b\d{1,6}\b")
# A phrase of so many words is known where the call was sent all of it but a word at an end.
_WORDS = 4
# Shorter strings stand within others by chance.
_SURE_CHARS = 6
# Smaller numbers are guessed, and stand everywhere but where a line is meant.
SMALL = 100
_AS_LINE = (
    r"(?:^|\n|\\n|\")[ \t]*(?:{0})(?:[\t\u2192:|-]|\\t)"
    r"|(?:[:#]|\bL|\blines?\W(?:\d+\W+)?)(?:{0})(?!\w)"
)
# A call that says which lines it wants is not longer than this, in characters.
_GIVEN = 400


class SentText:
    """What each call of a part was sent, as a person reads it who ignores separators and case."""

    def __init__(self, part: SessionPart, texts: Texts, memo: Memo) -> None:
        self._part, self._texts = part, texts
        self._bare_of = memo.of(_bare)
        self._sent: tuple[int, Sequence[TextPlace], Sequence[bytes]] = (-1, (), ())

    def has(self, one: Distinct, call: int) -> bool:
        """Whether a call was sent a string in another form, or the parts that it is made of."""
        text = one.text
        bare = _bare(text)
        if len(bare) >= _SURE_CHARS and self._is_sent(bare, call):
            return True
        if " " in text:
            return any(self._is_sent(_bare(rest), call) for rest in _but_a_word(text))
        return self._can_be_joined(text, call)

    def has_line(self, file: str, number: int, call: int) -> bool:
        """Whether something that a call was sent about a file has a line's number.

        It is also known from its neighbours, and as the sum of what an earlier call was given.
        """
        near = [str(number + by) for by in (-1, 0, 1)]
        as_line = re.compile(_AS_LINE.format("|".join(near)))
        for place in self._places(call):
            said = self._texts.at(place)
            asked = self._part.partners.get(place.position)
            is_about = file in said or (
                asked is not None
                and asked < place.position
                and file in self._texts.at(TextPlace(asked))
            )
            if not is_about:
                continue
            if number < SMALL:
                if as_line.search(said) is not None:
                    return True
            elif any(stands_in(one, said) for one in near):
                return True
            if asked is not None and asked > place.position and len(said) <= _GIVEN:
                given = [int(one) for one in set(_WHOLE.findall(said))]
                if any(abs(one + other - number) <= 1 for one in given for other in given):
                    return True
        return False

    def _can_be_joined(self, text: str, call: int) -> bool:
        parts = [part for part in _PATH_PARTS.split(text) if part.strip(".~")]
        if len(parts) <= 1:
            return False
        bare = [self._stem(part) for part in parts]
        telling = [one for one in bare if len(one) > 1]
        if "/" in text or "\\" in text:
            return all(self._is_sent(one, call) for one in telling)
        return any(all(one in sent for one in telling) for sent in self._together(call))

    @staticmethod
    def _stem(part: str) -> bytes:
        return _bare(_TEST.sub("", _EXTENSION.sub("", part)))

    def _is_sent(self, bare: bytes, call: int) -> bool:
        return any(bare in sent for sent in self._to(call)[1])

    def _together(self, call: int) -> Iterator[bytes]:
        """Yield what each item says, a result together with its call."""
        for place, said in zip(*self._to(call), strict=True):
            asked = self._part.partners.get(place.position)
            if asked is not None and asked < place.position:
                yield said + self._bare_at(TextPlace(asked))
            else:
                yield said

    def _to(self, call: int) -> tuple[Sequence[TextPlace], Sequence[bytes]]:
        """Return what a call was sent, and each of these texts bare; calls are asked in order."""
        if self._sent[0] != call:
            places = list(self._places(call))
            self._sent = call, places, list(map(self._bare_at, places))
        return self._sent[1:]

    def _bare_at(self, place: TextPlace) -> bytes:
        return self._bare_of(self._texts.at(place))

    def _places(self, call: int) -> Iterator[TextPlace]:
        """Yield all that a call was sent: beside the messages, items, and what took their place."""
        part = self._part
        yield from (TextPlace(-1 - i) for i in range(len(part.beside)))
        absences = part.absences
        for position in range(part.had(call)):
            number = part.absence_number(position, call) if position in absences else None
            if number is None:
                yield TextPlace(position)
            elif part.absences[position][number].left:
                yield TextPlace(position, number)


def _bare(text: str) -> bytes:
    """Return a text in lower case without separators; bytes lose them much quicker than strings."""
    return text.lower().encode("utf-8", "surrogatepass").translate(None, _SEPARATORS)


def _but_a_word(text: str) -> Iterator[str]:
    """Yield a phrase without its first word and without its last, if that is not a number."""
    said = text.split()
    for word, rest in ((said[0], said[1:]), (said[-1], said[:-1])):
        if not any(map(str.isdigit, word)) and len(rest) >= _WORDS:
            yield " ".join(rest)
