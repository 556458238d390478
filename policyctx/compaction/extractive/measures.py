"""What a number measures, so that only numbers of one dimension replace each other."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from policyctx.compaction.extractive.meanings import ENGLISH_MEANINGS, KIND_OF
from policyctx.compaction.extractive.statements import NUMBER

if TYPE_CHECKING:
    from policyctx.compaction.extractive.statements import Value

# Numbers of one dimension can replace each other, whatever their unit.
_UNITS = {
    "duration": (
        "ms", "s", "sec", "second", "min", "minute", "h", "hr", "hour", "day", "week", "month",
        "year", "秒", "分", "时", "小", "天", "周", "月", "年", "毫",
    ),
    "size": ("b", "kb", "mb", "gb", "tb", "kib", "mib", "gib", "k", "m", "g", "兆"),
    "money": ("$", "€", "£", "¥", "eur", "usd", "euro", "dollar", "元", "块", "欧"),
    "share": ("%", "percent"),
    "clock": ("am", "pm", "o'clock", "点"),
    "date": ("日", "号", "th", "st", "nd", "rd"),
}  # fmt: skip
_DIMENSIONS = {unit: name for name, units in _UNITS.items() for unit in units}
_MONTHS = frozenset(
    word for group in ENGLISH_MEANINGS if KIND_OF.get(group[0]) == "month" for word in group
) | {"may"}
# Those of a number that is a value without a word that says so: "server budget 3,000 €".
MEASURES = frozenset(("duration", "size", "money", "share"))

_CURRENCIES = "#$€£¥"
_SHAPES = (
    ("date", re.compile(r"\d{4}-\d\d-\d\d|\d{1,2}/\d{1,2}(?:/\d{2,4})?")),
    ("clock", re.compile(r"\d{1,2}:\d\d(?:[ap]m)?")),
    ("version", re.compile(r"v?\d+(?:\.\d+)+|v\d+")),
)
_AFTER = re.compile(r"\s?个?([A-Za-z]+(?:/[A-Za-z]+)?|%|[\u3400-\u9fff])")
_BEFORE = re.compile(rf"([{_CURRENCIES}]|[A-Za-z]+)\s?$")
_ENDING = re.compile(r"[A-Za-z%]+$")
_REACH = 12


def dimension_of(text: str, value: Value) -> tuple[str, int]:
    """Return the dimension of a value, empty without one, and where its unit ends in the text."""
    if value.kind != NUMBER:
        return "", value.end
    inner = _inner_dimension(value.text)
    if inner:
        return inner, value.end
    before = _BEFORE.search(text, max(0, value.start - _REACH), value.start)
    if before is not None and before[1] in _CURRENCIES:
        return _DIMENSIONS.get(before[1], before[1]), value.end
    if before is not None and before[1].casefold() in _MONTHS:
        return "date", value.end
    return _outer_dimension(text, value)


def _inner_dimension(number: str) -> str:
    """Return the dimension that the number itself shows, by its form, sign or ending."""
    for name, shape in _SHAPES:
        if shape.fullmatch(number):
            return name
    if number[0] in _CURRENCIES:
        return _DIMENSIONS.get(number[0], number[0])
    if ending := _ENDING.search(number):
        unit = ending[0].casefold()
        return _known(unit) or unit
    return _DIMENSIONS.get(number[-1], "")


def _outer_dimension(text: str, value: Value) -> tuple[str, int]:
    """Return the dimension of the unit that follows the number."""
    after = _AFTER.match(text, value.end)
    if after is None:
        return "", value.end
    unit = after[1].casefold()
    if unit in _MONTHS or (
        unit == "月" and text[after.end() : after.end() + 2].strip()[:1].isdigit()
    ):
        return "date", after.end()
    known = _known(unit)
    return (known, after.end()) if known else ("", value.end)


def _known(unit: str) -> str:
    return _DIMENSIONS.get(unit) or _DIMENSIONS.get(unit.removesuffix("s"), "")
