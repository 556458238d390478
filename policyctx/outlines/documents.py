"""Outlines of JSON and of tables: the shape, how many of what, and the rows that differ."""

import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from policyctx.outlines.lines import Row

MakeRow = Callable[[int, str, int], Row]

# A string and the key before it.
_STRING = re.compile(r'(?:"([^"\\]*(?:\\.[^"\\]*)*)"\s*:\s*)?("[^"\\]*(?:\\.[^"\\]*)*")', re.DOTALL)
_CHARACTER = re.compile(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u.{4}|\\.|.", re.DOTALL)
_BETWEEN = re.compile(r"[\s,:]*")
_DECODER = json.JSONDecoder(strict=False)
_DELIMITERS = "\t|;,"
_MOST_FAILED = 12
_MOST_COLUMNS = 24
_MOST_DEPTH = 5
_LEAST_ROWS = 3
_FEW = 5
_TOGETHER = 8
_MOSTLY = 0.5
# Characters of a row of JSON or of a table. A string that would take more than half of one has rows
# of its own.
WIDEST_JOINED = 400
_LONG_CHARS, _SHOWN_CHARS, _SHORT_CHARS = WIDEST_JOINED // 2, 70, 40


class Placed(NamedTuple):
    """A value and where it is in the text."""

    key: str
    value: Any
    at: int


def documents(text: str) -> tuple[list[int], list[Placed]] | None:
    """Return the values of a text that is mostly JSON, and where the lines between them begin."""
    between: list[int] = []
    found: list[Placed] = []
    at = size = failed = 0
    while at < len(text):
        value, end = None, at
        if text[at] in "{[":
            try:
                value, end = _DECODER.raw_decode(text, at)
            except (ValueError, RecursionError):
                failed += 1
        if failed > _MOST_FAILED:
            return None
        if end > at:
            found.append(Placed("", value, at))
            size += end - at
            at = _next(text, end)
        else:
            between.append(at)
            at = text.find("\n", at) + 1 or len(text)
    return (between, found) if size > len(text) * _MOSTLY else None


def records(lines: Sequence[str], starts: Sequence[int]) -> list[Placed]:
    """Return the rows of a table whose first line names the columns, nothing for another text."""
    for delimiter in _DELIMITERS if len(lines) > _FEW else "":
        count = lines[0].count(delimiter)
        if count > 1 and all(line.count(delimiter) == count for line in lines):
            try:
                names, *cells = csv.reader(lines, delimiter=delimiter, strict=True)
            except (csv.Error, ValueError):
                continue
            if len(cells) == len(lines) - 1:
                rows = (dict(zip(names, map(str.strip, row), strict=False)) for row in cells)
                return [Placed(str(i), row, starts[i + 1]) for i, row in enumerate(rows)]
    return []


def document_rows(text: str, values: Sequence[Placed], row: MakeRow) -> Iterator[Row]:
    """Yield the rows of values in a text; `row` makes one of a place, a text and a weight."""
    if len(values) >= _LEAST_ROWS:
        yield from table_rows("", values, row, are_records=True)
        return
    for one in values:
        yield from _of(text, one, "", 0, row)


def long_strings(text: str) -> Iterator[tuple[str, str, list[int]]]:
    """Yield the key and the value of each long string, and where each character of it is."""
    for found in _STRING.finditer(text):
        if len(found[2]) > _LONG_CHARS:
            with suppress(ValueError):
                value, begin = _DECODER.decode(found[2]), found.start(2) + 1
                places = [one.start() + begin for one in _CHARACTER.finditer(found[2][1:-1])]
                yield found[1] or "", value, places


def _of(text: str, placed: Placed, path: str, depth: int, row: MakeRow) -> Iterator[Row]:
    """Yield the rows of an object or a list: what it holds itself, then what is in that."""
    inner = list(_inner(text, placed)) if depth < _MOST_DEPTH else []
    deep = [one for one in inner if isinstance(one.value, dict | list) and _flat(one.value)]
    if len(deep) == len(inner) >= _LEAST_ROWS and _are_alike(inner):
        yield from table_rows(path, inner, row, is_keyed=isinstance(placed.value, dict))
        return
    if all(len(_shown(one.value)) < _SHOWN_CHARS for one in deep):
        deep = []
    places = {one.at for one in deep}
    flat = [one for one in inner if one.at not in places]
    yield from _flat_rows(placed, flat, path, row, weight=max(9 - 2 * depth, 5))
    for one in deep:
        yield from _of(text, one, f"{path}.{one.key}".lstrip("."), depth + 1, row)


def _flat_rows(
    placed: Placed, flat: Sequence[Placed], path: str, row: MakeRow, *, weight: int
) -> Iterator[Row]:
    """Yield rows of the values in an object or a list that are shown in one line each."""
    name = f"{path}: " if path else ""
    if isinstance(placed.value, list):
        shown = [_shown(one.value) for one in flat]
        shown = [*shown[:_FEW], "…", shown[-1]] if len(shown) > _FEW else shown
        if shown or len(placed.value) > 1:
            yield row(placed.at, f"{path}[{len(placed.value)}] {', '.join(shown)}", weight)
    for at in range(0, len(flat) if isinstance(placed.value, dict) else 0, _TOGETHER):
        cells = (f"{one.key}={_shown(one.value)}" for one in flat[at : at + _TOGETHER])
        yield row(flat[at].at, name + ", ".join(cells), weight)


def _inner(text: str, placed: Placed) -> Iterator[Placed]:
    """Yield what is in an object or a list, with its place."""
    number, at = 0, _next(text, placed.at + 1)
    while text[at] not in "}]":
        key: object = number
        if isinstance(placed.value, dict):
            key, at = _DECODER.raw_decode(text, at)
            at = _next(text, at)
        value, end = _DECODER.raw_decode(text, at)
        yield Placed(str(key), value, at)
        number, at = number + 1, _next(text, end)


def _next(text: str, at: int) -> int:
    found = _BETWEEN.match(text, at)
    return at if found is None else found.end()


def _are_alike(values: Sequence[Placed]) -> bool:
    """Whether most of the values have a key in common."""
    keys = Counter(key for one in values for key in _flat(one.value))
    return max(keys.values(), default=0) > len(values) * _MOSTLY


def _flat(value: object, path: str = "", depth: int = 0) -> dict[str, Any]:
    """Return the scalars in a value by their paths."""
    inner: Mapping[Any, Any] = {}
    if isinstance(value, dict) and depth < _LEAST_ROWS:
        inner = value
    elif isinstance(value, list) and depth < _LEAST_ROWS and isinstance((value or [0])[0], dict):
        inner = dict(enumerate(value))
    if not inner:
        return {path: value} if value not in ({}, []) else {}
    found: dict[str, Any] = {}
    for key, one in inner.items():
        found |= _flat(one, f"{path}.{key}".lstrip("."), depth + 1)
    return found


def table_rows(
    path: str,
    values: Sequence[Placed],
    row: MakeRow,
    *,
    is_keyed: bool = False,
    are_records: bool = False,
) -> Iterator[Row]:
    """Yield what the rows of a table share and span, then the rows, the odd ones first.

    A row of a record names its values and begins with the short ones.
    """
    flat = [{key: _shown(cell) for key, cell in _flat(one.value).items()} for one in values]
    counts: dict[str, Counter[str]] = {}
    for cells in flat:
        for key, cell in cells.items():
            counts.setdefault(key, Counter())[cell] += 1
    same = [key for key, count in counts.items() if count[flat[0].get(key, "")] == len(flat) > 1]
    odd = {key: _odd(count, len(flat)) for key, count in counts.items()}
    varying = [key for key in counts if key not in same]
    columns = [key for key in varying if counts[key].total() > len(flat) * _MOSTLY]
    shared = "; ".join(f"{key}={flat[0][key]}" for key in same)
    head = f"{path or 'rows'}: {len(values)} rows" + (f", all {shared}" if shared else "")
    yield row(values[0].at, head, 9)
    spans = [key for key in columns if not are_records or _span(counts[key], len(flat))]
    yield row(values[0].at, _headed(spans, counts, len(flat)), 9 if spans else 0)
    columns = [] if are_records else columns
    for one, cells in zip(values, flat, strict=True):
        shown = [cells.get(key, "") for key in columns[:_MOST_COLUMNS]]
        shown += [f"{key}={cells[key]}" for key in varying if key not in columns and key in cells]
        shown = [cell for cell in shown if not (is_keyed and cell == one.key)]
        shown = sorted(shown, key=lambda cell: len(cell) > _SHORT_CHARS) if are_records else shown
        is_odd = any(cells.get(key, "") in odd[key] for key in varying)
        name = f"{one.key}: " if is_keyed else ""
        yield row(one.at, name + (", " if are_records else " | ").join(shown), 8 if is_odd else 7)


def _odd(counts: Counter[str], rows: int) -> set[str]:
    """Return the cells that nearly no row has; "" where nearly all have one."""
    have, few = counts.total(), max(1, rows // 20)
    most = max(counts.values())
    odd = {cell for cell in counts if have <= few or (counts[cell] <= few and most >= rows * 0.8)}
    return odd | {""} if rows - few <= have < rows else odd


def _headed(columns: Sequence[str], counts: Mapping[str, Counter[str]], rows: int) -> str:
    """Return the names of columns with what each spans; what several begin with is said once."""
    shown, last = [], ""
    for key in columns:
        folder, dot, name = key.rpartition(".")
        shown.append((name if folder == last and dot else key) + _span(counts[key], rows))
        last = folder
    return " | ".join(shown)


def _span(counts: Counter[str], rows: int) -> str:
    """Return what the values of a column are together, "" where each row says it best itself."""
    if 1 < len(counts) < _FEW and rows > _FEW:
        return f" ({', '.join(f'{value} ×{count}' for value, count in counts.most_common())})"
    try:
        numbers = sorted(counts, key=float)
    except ValueError:
        return ""
    return f" ({numbers[0]}..{numbers[-1]})" if rows > _FEW else ""


def _shown(value: object) -> str:
    """Return a value without the quotes and brackets that say nothing."""
    if isinstance(value, str):
        text = " ".join(value[:WIDEST_JOINED].split())
        return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"
    if isinstance(value, dict | list):
        return _shown(json.dumps(value, ensure_ascii=False).replace('"', ""))
    return json.dumps(value)
