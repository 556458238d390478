"""What an agent knew without a removed item: what a call was sent, in this form or another one.

A string counts as known where a call was sent it with other separators or letter case, where a path
can be joined from parts that it was sent, and where a number or a date stands in another notation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from policyctx.replay.regret.holders import TextPlace, Texts
from policyctx.replay.regret.memo import Memo
from policyctx.replay.regret.strings import Distinct, stands_in
from policyctx.replay.timeline import SessionPart

_SEPARATORS = b"_- \t\r\n\"'`\\*,;:()[]{}<>|+="
_PATH_PARTS = re.compile(r"[/\\:#@?&=]+")
# A test is named after what it tests.
_TEST = re.compile(r"(?i)(?:^|[._-])(?:unit)?(?:tests?|spec)(?=$|[._-])")
_EXTENSION = re.compile(r"(?<=\w)\.[A-Za-z][A-Za-z0-9]{0,4}$")
_AMOUNT = re.compile(r"\d[\d,]*(?:\.\d+)?")
_WHOLE = re.compile(r"\b\d{1,6}\b")
_DATE = re.compile(r"(\d{4})[-/](\d{1,2})[-/](\d{1,2})")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
_SCHEMES = frozenset({"http", "https", "file"})
# A phrase of so many words is known where the call was sent all of it but a word at an end.
_WORDS = 4
# Shorter strings stand within others by chance.
_SURE_CHARS = 6


class Knowledge:
    """What each call of a part was sent, as a person reads it who ignores separators and case."""

    def __init__(self, part: SessionPart, texts: Texts, memo: Memo) -> None:
        self._part, self._texts = part, texts
        self._bare_of = memo.of(_bare)
        self._sent: tuple[int, Sequence[TextPlace], Sequence[bytes]] = (-1, (), ())

    def has(self, one: Distinct, call: int) -> bool:
        """Whether a call was sent a string in another form, or the parts that it is made of."""
        text = one.text
        if _AMOUNT.fullmatch(text) or _DATE.fullmatch(text):
            forms = set(_notations(text))
            return any(stands_in(form, said) for said in self._said(call) for form in forms)
        bare = _bare(text)
        if len(bare) >= _SURE_CHARS and self._is_sent(bare, call):
            return True
        if " " in text:
            return any(self._is_sent(_bare(rest), call) for rest in _but_a_word(text))
        return self._has_scheme(text, call) and self._can_be_joined(text, call)

    def has_line(self, file: str, number: int, call: int) -> bool:
        """Whether something that a call was sent about a file has a line's number.

        It is also known from its neighbours, and as the sum of what an earlier call was given.
        """
        near = [str(number + by) for by in (-1, 0, 1)]
        for place in self._places(call):
            said = self._texts.at(place)
            asked = self._part.partners.get(place.position)
            is_about = file in said or (
                asked is not None
                and asked < place.position
                and file in self._texts.at(TextPlace(asked))
            )
            if is_about and any(stands_in(one, said) for one in near):
                return True
            if is_about and asked is not None and asked > place.position:
                given = [int(one) for one in set(_WHOLE.findall(said))]
                if any(abs(one + other - number) <= 1 for one in given for other in given):
                    return True
        return False

    def _has_scheme(self, text: str, call: int) -> bool:
        """Whether a call was sent how an address begins, as `artifact://`; some everybody knows."""
        scheme, found, _ = text.partition("://")
        if not found or scheme in _SCHEMES:
            return True
        return any(scheme + found in said for said in self._said(call))

    def _can_be_joined(self, text: str, call: int) -> bool:
        parts = [part for part in _PATH_PARTS.split(text) if part.strip(".~")]
        if len(parts) < 2:  # noqa: PLR2004 - one part is not joined
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

    def _said(self, call: int) -> Iterator[str]:
        return map(self._texts.at, self._to(call)[0])

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


def _notations(text: str) -> Sequence[str]:
    """Return a number or a date as it may be written."""
    if (date := _DATE.fullmatch(text)) is not None:
        year, month, day = map(int, date.groups())
        if not 1 <= month <= len(_MONTHS):
            return [text]
        name = _MONTHS[month - 1]
        return [
            text, f"{year}-{month:02}-{day:02}", f"{year}/{month:02}/{day:02}",
            f"{year}{month:02}{day:02}", f"{month}/{day}/{year}", f"{month:02}/{day:02}/{year}",
            f"{name} {day}", f"{name[:3]} {day}", f"{day} {name}", f"{name} {day:02}",
            f"{month:02}-{day:02}", f"{month}/{day}",
        ]  # fmt: skip
    plain = text.replace(",", "")
    whole, _, decimals = plain.partition(".")
    short = decimals.rstrip("0")
    grouped = f"{int(whole):,}"
    return [
        f"{one}{end}"
        for one in (whole, grouped)
        for end in {f".{decimals}" if decimals else "", f".{short}" if short else ""}
        | ({".0", ".00", ""} if not short else {f".{short:0<2}"})
    ]
