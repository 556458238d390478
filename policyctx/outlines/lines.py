"""Outlines of lines: code, prose, output of programs, diffs, search hits and listings."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

LOOKED_AT_CHARS = 240
_PART_CHARS, _LEAST_PART = 300, 60
_MOSTLY, _ENOUGH, _FEW_MESSAGES = 0.5, 0.35, 0.2
_SHALLOW, _SENTENCE_WORDS = 4, 8
_TOGETHER = 8
_FEW_HITS = 5

_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？])|(?<=, )")
_SAYS_NOTHING = re.compile(
    r"[\W_]*(?:(?:end|else|try|finally|do|then|fi|done|begin|pass|break|continue)\b)?[\W_]*$"
)
_HOST = re.compile(r"[A-Z][\w ]{2,30}(?::\s*[\w.,]{0,16}(?: \w+)?| \w+ \w+ 0)$")

_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@")
_FILE = re.compile(r"diff --git a/(\S+)|\+\+\+ (?:b/)?(\S+)")
_HIT = re.compile(r"(?:((?:[\w.@+~/\\-]*[./\\])?[\w@+~-][\w.@+~-]*)[:-])?(\d{1,7})[:-](?!\d)")
_ENTRY = re.compile(
    r"(?P<type>[-dlbcps])[-rwxsStT]{9}\S*\s+\d+\s+\S+\s+\S+\s+(?P<size>[\d.]+[KMGT]?)\s+\w+\s+\d+\s+"
    r"[\d:]+\s+(?P<name>.+)|\s*(?P<path>\S+(?: => \S+)?)\s+\|\s+(?P<changes>\d+|Bin\b).*"
    r"|\s*(?P<folder>(?:[\w.@+()\[\]!-]*/)*)(?P<file>[\w.@+()\[\]!-]*)$"
)

_ERROR = re.compile(
    r"\b(?:error|fatal|fail(?:ed|ure|ures|s|ing)?|panic|exception|traceback|cannot|denied|"
    r"refused|undefined|not found|no such|unexpected|missing|invalid|timed? ?out)\b|"
    r"\w(?:Error|Exception)\b|[✗✘×❌]|^E  ",
    re.IGNORECASE,
)
_MESSAGE = re.compile(r"\b(?:error|warning)\b(?: \w+)?[:\[]|(?:Error|Exception): |^(?:FAIL|E  )")
# A message with its place, and the names in one.
_LOCATED = re.compile(r"\S{1,200}[:(]\d+[:,]\d+\)?:? ")
_NAME = re.compile(r"['\"`\u2018\u201c]([^'\"`\u2019\u201d]{1,80})['\"`\u2019\u201d]")
# A line of code that a message quotes.
_FRAME = re.compile(r"^\s*(?:>\s*)?\d*\s*[│|](?:\s|$)")
_WARNING = re.compile(r"\bwarn(?:ing|ed)?\b|\bdeprecat|\bTODO\b|\bFIXME\b|⚠|^!", re.IGNORECASE)
_TOTAL = re.compile(
    r"\b\d+ (?:passed|failed|errors?|warnings?|problems?|tests?|files?|issues|insertions?|"
    r"packages?|examples|matches|skipped|total)\b|\bTests run:|^(?:ok|FAIL|PASS)\b|"
    r"\bexit(?:ed)?\b.*\bcode [1-9]|\bBUILD (?:SUCCESS|FAILURE)|^Ran \d|^total\b|^Found \d|"
    r"^[✅✓🎉]",
    re.IGNORECASE,
)
_COUNT = re.compile(r"(?i)\s*(?:\w+ )?(?:tests|passed|failed|failures|errors|skipped): *\d")
_SECTION = re.compile(r"(?:[=#~*-]){2,}>?\s*\w|[>$+] \S|\[\w+\] ?[-A-Z]|\S.{0,60}:$")
_HEADING = re.compile(r"^#{1,6} \S|^\*\*[^*]+\*\*:?$")
_FENCE = re.compile(r"```+ *(\w[\w+#.-]*)?")
_ITEM = re.compile(r"^\s*(?:[-*•✓✗✅⚠]|\d{1,3}[.)])\s+\S|^\s*\|")

_DEFINITION = re.compile(
    r"\s*(?:(?:export|default|pub(?:\([a-z]+\))?|public|private|protected|static|abstract|final|"
    r"async|override|virtual|inline|extern|const|unsafe|open|sealed|data|internal|declare|"
    r"readonly)\s+)*"
    r"(?:(?:class|def\w*|func|fn|function\*?|interface|struct|enum|trait|impl|type|module|namespace|"
    r"protocol|object|record|macro_rules!|mod|union|typedef|#define)\s+(?:\([^)]*\)\s*)?([\w.:$]+)"
    r"|(?:CREATE|ALTER)\s+\w+\s+(\w+)|(?:describe|it|test)\("
    r"|const (\w+) = (?:async )?(?:\(.*=>|function)"
    r")"
)
# `int name(…) {`, `public void name(…)`, `name(…) {` and `int name(…);` as in C, Java, TypeScript.
_SIGNATURE = re.compile(
    r"\s*(?!(?:if|for|while|switch|return|else|catch|do|try|throw|new|await|elif|case|with|yield|"
    r"assert|raise|not|and|or|in)\b)"
    r"(?:(?:[\w<>\[\]:,?.~@]+[\s*&]+){1,6}(\w+)\s*\([^=]*[{,(;)]\s*$"
    r"|(?:async )?(\w+)\([^;=]*\{\s*$)"
)
_IMPORT = re.compile(
    r"\s*(?:import|from \S+ import|use|using|#include|require|alias|package|export \* from)\b"
)
_CONSTANT = re.compile(
    r"\s*(?:(?:export|const|static|final|let|var|val|pub|@)\s*)*[A-Z][A-Z0-9_]{2,}\b\S* ?[:=]"
)
_COMMENT = re.compile(
    r"\s*(?://|/\*|\*(?!/)\s*\S|#(?!include|define|!)|\"\"\"|'''|--\s|<!--|;;|@\w*doc)"
)
_TELLING = re.compile(r"\s*(?:return|raise|throw|panic|yield|@\w+|if|elif|for|while|case|switch)\b")
_CODE = re.compile(
    r"[{};]\s*$|\)\s*:\s*$|^\s*(?:def|class|import|from|return|if|for|func|fn|use|let|const|var|end|#include)\b"
    r"|^\s*[\w.]+\(.*\)\s*$|^\s*[\w.\[\]\"']+ [-+*|]?= |^\s*(?://|/\*|\*)|^\s*</?\w"
)
_PATH = re.compile(r"(?<![\w.-])[\w.-]*/[\w./-]+")
_PAIR = re.compile(r"[\w -]{2,20}:\s+\S")
_VARYING = re.compile(
    r"\d+(?:\.\d+)?|\[[^]]{20,}\]|['\"`\u2018“][^'\"`\u2019”]{0,80}['\"`\u2019”](?!:)|(?<![\w$.])[\w$]+(?:\.[\w$]+){3,}"
)


class Row(NamedTuple):
    """A part of a text that an outline may show."""

    line: int
    """From 1; `char` is the character of the line, and 1 at its start."""
    char: int
    text: str
    weight: int
    """Rows of a larger weight are shown first; of 0, never."""
    short: str = ""
    """The name of the row in a list that has no space for its text."""


def line_rows(lines: Sequence[str], *, is_file: bool) -> tuple[str, list[Row]]:
    """Return what kind of text these lines are, and their rows."""
    looked = [line[:LOOKED_AT_CHARS] for line in lines]
    fences = sum(map(bool, map(_FENCE.match, looked)))
    is_markdown = fences > 1 and any(map(_HEADING.match, looked))
    filled = [line for line in looked if not (is_markdown or _SAYS_NOTHING.match(line))]
    most = max(1, len(filled)) * _MOSTLY

    def share(pattern: re.Pattern[str]) -> float:
        return sum(bool(pattern.search(line)) for line in filled) / max(1, len(filled))

    if not is_file and any(map(_HUNK.match, filled)):
        return "a diff", list(_diff_rows(looked))
    messages = share(_MESSAGE) + share(_FRAME)
    messages += share(_ERROR) / 2 if messages else 0
    if not is_file and sum(map(bool, map(_HIT.match, filled))) >= most and messages < _MOSTLY / 2:
        return "search hits", list(_hit_rows(looked))
    if sum(map(bool, map(_ENTRY.match, filled))) >= most:
        return "a listing", list(_listing_rows(looked))
    says = sum(
        len(line.split()) >= _SENTENCE_WORDS and line.rstrip()[-1:] in ".:!?" for line in filled
    )
    prose = says / max(1, len(filled)) + share(_ITEM) / 2 + share(_HEADING) * 3 + is_markdown
    code = share(_CODE)
    if code >= _ENOUGH and code > messages and (is_file or code > prose):
        return "code", list(_code_rows(looked))
    if prose >= _ENOUGH and messages < _FEW_MESSAGES:
        return "prose", list(prose_rows(lines))
    return ("code", list(_code_rows(looked))) if is_file else ("output", list(_output_rows(lines)))


def _squeezed(line: str) -> str:
    """Return the line with a narrow indent and single spaces."""
    wide = line[:LOOKED_AT_CHARS].expandtabs(4)
    return " " * min((len(wide) - len(wide.lstrip())) // 4, 6) + " ".join(line.split())


def _diff_rows(lines: Sequence[str]) -> Iterator[Row]:
    files: list[tuple[int, str, Counter[str]]] = []
    changes: list[Row] = []
    in_hunk = False
    for number, line in enumerate(lines, 1):
        weight, shown = 6, line.strip()
        if found := _FILE.match(line) if not in_hunk or line.startswith("diff") else None:
            if found[1] or not files or files[-1][1] != found[2]:
                files.append((number, found[1] or found[2], Counter()))
            in_hunk, weight = False, 0
        elif _HUNK.match(line):
            in_hunk, weight = True, 2 if line.endswith("@@") else 6
        elif in_hunk:
            if files:
                files[-1][2][line[:1]] += 1
            is_change = line[:1] in {"+", "-"} and not _SAYS_NOTHING.match(line)
            weight = (5 if _DEFINITION.match(line[1:]) else 4) if is_change else 0
            shown = line[:1] + _squeezed(line[1:])
        else:
            is_noise = line.startswith(("index ", "--- ")) or _HOST.match(line)
            weight = 0 if is_noise or _SAYS_NOTHING.match(line) else 5
            shown = _squeezed(line).rstrip("+-")
        changes.append(Row(number, 1, shown, weight))
    names = _short_names(path for _, path, _ in files)
    for number, path, counts in files:
        name = names[path]
        yield Row(number, 1, f"{path} +{counts['+']} −{counts['-']}", 9, name)
    yield from changes


def _short_names(paths: Iterable[str]) -> dict[str, str]:
    """Return the last part of each path, with its folder where several have the same."""
    last = {path: path.rpartition("/")[2] for path in paths}
    counts = Counter(last.values())
    return {
        path: name if counts[name] == 1 else "/".join(path.split("/")[-2:])
        for path, name in last.items()
    }


def _hit_rows(lines: Sequence[str]) -> Iterator[Row]:
    """Yield a row for each file with the number of its hits, and one for each hit."""
    files: dict[str, list[tuple[int, str, str]]] = {}
    found = [_HIT.match(line) for line in lines]
    # `grep -C` puts a colon behind the number of a hit, and a hyphen in the lines around it.
    around = "-" if any(one and one[0][-1] == ":" for one in found) else ""
    for number, (line, one) in enumerate(zip(lines, found, strict=True), 1):
        shown = " ".join(line[one.end() :].split()) if one else line.strip()
        if one and one[0][-1] != around:
            files.setdefault(one[1] or "", []).append((number, one[2], shown))
        elif not _SAYS_NOTHING.match(shown) and not _HOST.match(line):
            yield Row(number, 1, f" {one[2]}- {shown}" if one else shown, 2 if one else 5)
    names, seen = _short_names(files), set[str]()
    for path, hits in files.items():
        if path:
            numbers = ", ".join(hit[1] for hit in hits[:_FEW_HITS])
            more = "…" if len(hits) > _FEW_HITS else ""
            shown = f"{path}: {len(hits)}: {numbers}{more}"
            yield Row(hits[0][0], 1, shown, 9, names[path])
        for number, at, shown in hits:
            weight = 0 if _SAYS_NOTHING.match(shown) else 6 if _DEFINITION.match(shown) else 5
            weight -= weight > 0 and shown in seen
            seen.add(shown)
            yield Row(number, 1, f" {at}: {shown}", weight, "" if path else at)


def _listing_rows(lines: Sequence[str]) -> Iterator[Row]:
    """Yield the entries of a listing, several a row; a folder is said where it changes."""
    together: list[str] = []
    first, last = 0, ""
    for number, line in enumerate(lines, 1):
        found = _ENTRY.match(line) if line.strip() else None
        if found and not _HOST.match(line):
            folder = found["folder"] or ""
            name = found["name"] or found["path"] or found["file"] or ""
            size = "/" if found["type"] == "d" else f" {found['size'] or found['changes'] or ''}"
            first = first if together else number
            together.append(f"{folder if folder != last else ''}{name}{size}".rstrip())
            last = folder
        elif not _SAYS_NOTHING.match(line):
            yield Row(number, 1, _squeezed(line), 2 if _HOST.match(line) else 7)
            last = ""
        if len(together) == _TOGETHER or (together and not found):
            yield Row(first, 1, ", ".join(together), 5)
            together, last = [], ""
    yield Row(first, 1, ", ".join(together), 5 if together else 0)


def _code_rows(lines: Sequence[str]) -> Iterator[Row]:
    imports: list[tuple[int, str]] = []
    seen = set[str]()
    is_after = True
    for number, line in enumerate(lines, 1):
        depth = len(line) - len(line.lstrip())
        found = _DEFINITION.match(line) or _SIGNATURE.match(line[:_PART_CHARS])
        short = next(filter(None, found.groups()), "") if found else ""
        if _IMPORT.match(line):
            imports.append((number, " ".join(line.split()).rstrip(";")))
            continue
        if _SAYS_NOTHING.match(line):
            continue
        is_definition = bool(found) and (
            _DEFINITION.match(line) or not depth or line.rstrip()[-1:] in "{:"
        )
        if is_definition:
            weight = 9 if not depth else 8 if depth <= _SHALLOW else 6
        elif _COMMENT.match(line):
            weight, short = 5 if is_after else 3, ""
        elif _HOST.match(line):
            weight, short = 1, ""
        else:
            weight, short = 4 if depth == 0 or _CONSTANT.match(line) else 2, ""
            weight = 5 if _WARNING.search(line) else 3 if _TELLING.match(line) else weight
        weight = weight if is_definition or line not in seen else 1
        seen.add(line)
        is_after = bool(is_definition)
        yield Row(number, 1, _squeezed(line).removesuffix(" {"), weight, short)
    if imports:
        shown = "; ".join(line for _, line in imports)
        size = imports[-1][0] - imports[0][0] + 1
        yield Row(imports[0][0], 1, f"imports in {size} lines: {shown}", 7)


def _parts(line: str) -> Iterator[tuple[int, str]]:
    """Yield the parts of a long line, of whole sentences where it has some, and their places."""
    at, size = 0, len(line) if len(line) > _PART_CHARS else 0
    while at < size:
        ends = (found.end() for found in _SENTENCE_END.finditer(line, at, at + _PART_CHARS))
        end = next((end for end in ends if end > at + _LEAST_PART), at + _PART_CHARS)
        yield at + 1, line[at:end]
        at = end
    if not size:
        yield 1, line


def prose_rows(lines: Sequence[str]) -> Iterator[Row]:
    """Yield the rows of prose: headings, items and the beginnings of paragraphs first."""
    after_blank = in_code = False
    for number, line in enumerate(lines, 1):
        if found := _FENCE.match(line.lstrip()):
            in_code = not in_code
            if in_code and found[1]:
                yield Row(number, 1, found[0], 6)
            continue
        for at, part in _parts(line):
            looked = part[:LOOKED_AT_CHARS]
            weight = 5 if after_blank or _ITEM.match(looked) else 4
            if in_code or at > 1 or _HOST.match(looked):
                weight = 3
            elif _HEADING.match(looked):
                weight = 8
            elif any(p.search(looked) for p in (_TOTAL, _ERROR, _WARNING)) or _PAIR.match(looked):
                weight = 6
            if _SAYS_NOTHING.match(looked) or looked.startswith("<!--"):
                weight = 0
            short = part.strip("#* ") if _HEADING.match(looked) and weight else ""
            yield Row(number, at, _squeezed(part), weight, short)
        after_blank = not line.strip()


def _output_rows(lines: Sequence[str]) -> Iterator[Row]:
    """Yield the rows of a log, or of what a program printed; lines that differ little are one."""
    alike: dict[str, list[int]] = {}
    told: dict[str, set[str]] = {}
    names = [_name(line[:LOOKED_AT_CHARS]) for line in lines]
    shapes = [_shape(line[:LOOKED_AT_CHARS]) for line in lines]
    for number, shape in enumerate(shapes, 1):
        alike.setdefault(shape, []).append(number)
    filled = [number for number, line in enumerate(shapes, 1) if not _SAYS_NOTHING.match(line)]
    ends = {*filled[:2], *filled[-3:]}
    for number, (line, shape) in enumerate(zip(lines, shapes, strict=True), 1):
        same = alike[shape]
        for at, part in _parts(line):
            weight = _output_weight(part[:LOOKED_AT_CHARS], is_begin=at == 1, is_end=number in ends)
            shown = _squeezed(part)
            if number != same[0]:
                name = names[number - 1] if at == 1 else ""
                known = told.setdefault(shape, {names[same[0] - 1]})
                weight = min(weight, 1)
                if name and name not in known:
                    known.add(name)
                    place = line.split(maxsplit=1)[0][:LOOKED_AT_CHARS]
                    yield Row(number, 1, f"{place} … {name}", 6, name)
                    break
            elif len(same) > 1 and at == 1:
                shown = (
                    f"{shown[: _PART_CHARS // 2]} (×{len(same)} in {same[-1] - number + 1} lines)"
                )
            yield Row(number, at, shown, weight)


def _shape(line: str) -> str:
    """Return what lines that differ in numbers, quotations and the like have in common."""
    return _VARYING.sub("#", _PATH.sub("#", line) if _MESSAGE.search(line) else line)


def _name(line: str) -> str:
    """Return what tells a message from others of its kind, "" for another line."""
    if not _MESSAGE.search(line) and not _LOCATED.match(line):
        return ""
    return ", ".join(_NAME.findall(line)) or "".join(_PATH.findall(line)[:1])


def _output_weight(part: str, *, is_begin: bool, is_end: bool) -> int:
    if _SAYS_NOTHING.match(part):
        return 0
    if not is_begin:
        return 5 if _ERROR.search(part) else 3
    if _HOST.match(part) and not _COUNT.match(part):
        return 1
    if _COUNT.match(part) or _TOTAL.search(part) or _ERROR.search(part):
        return 8
    if is_end or _WARNING.search(part):
        return 7 if is_end else 6
    return 5 if _SECTION.match(part) or _DEFINITION.match(part) else 3
