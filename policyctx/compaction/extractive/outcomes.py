"""The words of a result that are quoted: exit code, errors, counts, or its beginning and end."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from itertools import filterfalse

from policyctx.compaction.extractive.files import (
    EXCEPTION,
    PRINTS,
    REPORTED,
    Call,
    command_parts,
    parts_in,
)
from policyctx.compaction.extractive.texts import lines_in, marked, one_line, shortened

# Of a result only the beginning and the end are looked at.
LOOKED_AT = 2_000
LONGEST_RESULT, LONGEST_WORDS = 600, 300
_LONGEST_LINE = 160

ID_SAID = re.compile(r"(?:\b|_|(?<=[a-z])(?=I))(?:ID|id|Id)[:=]? ?([\w-]*\d[\w-]*|[\w-]{6,})")
# How a result says that the command goes on.
RUNS_ON = re.compile(
    r"\b(?:in (?:the )?background|running with|session[ _]ID\W{1,2}\d+"
    r"|exit(?:[ _]code)?\W{1,3}(?:undefined|null|none))\b",
    re.IGNORECASE,
)
STARTED, NO_RESULT = "started in the background", "called, no result yet"
NO_OUTPUT, UNQUOTED = "no output", "output not quoted"
# Programs and tools that search the files of the work; what they say beside what they found.
_SEARCHES = re.compile(
    r"(?:\S*[_-])?(?:rg|grep|glob|find|fd|ls|tree|git (?:grep|ls-files))(?![\w-])"
)
_FOUND = re.compile(r"\s*(?:Found \d+ files?)?\s*$")
# The changed lines of a diff, and how many are quoted of all hunks.
_DIFF, _MOST_OF_DIFF = re.compile(r"^diff --git ", re.MULTILINE), 50_000
_CHANGED, _MOST_CHANGED = re.compile(r"^[+-].*\w.*", re.MULTILINE), 12
# What a client says before the beginning of a result that it saved to a file.
_PREVIEW = re.compile(r"\n\s*Preview \(first ")

_EXIT_CODE = re.compile(r"\bexit(?:ed)?[ _](?:with )?(?:code|status)\W{1,3}(\d+)", re.IGNORECASE)
# A line that names a commit, branch or request; one that counts what was checked or says that all
# is well.
_NAMES = re.compile(
    r"^\[\S+ (?:\([^)]*\) )?[0-9a-f]{7,40}\] |^[0-9a-f]{7,40} \S|^[0-9a-f]{7,40}\.\.\S+ .* -> "
    r"|^\W*(?:Creat|Open|Clos|Merg|Push|Publish|Deploy|Delet|Updat)ed\b|^\W+\[new |^Switched to"
    r"|nothing to commit"
    r"|https?://\S+/(?:pulls?|issues|merge_requests)/\d"
)
_COUNTS = re.compile(
    r"\b\d+ (?:\w+ ){0,2}(?:passed|passing|(?:tests?|files?)(?![/\w.]| changed)"
    r"|suggestions?|warnings?|issues?|problems?)\b"
    r"|^ok\b|[Aa]ll checks|BUILD SUCCESS|[Ss]uccessful"
)
# A line that says how all of it ended.
_VERDICT = re.compile(r"\W*(?:RESULT|VERDICT|FAIL(?:ED|URE)?|PASS(?:ED)?|Tests?)\b:? .{1,160}$")
# What only surrounds what was printed.
_TAGS = re.compile(r"^</?[\w-]+>|</?[\w-]+>$", re.MULTILINE)
_FRAME = re.compile(
    r"Output:|\(Bash completed with|# [\w.-]+/[\w./-]+$"
    r"|(?:Wall time|Chunk ID|Original token count|Script completed|Total output lines)\b"
    r"|.*\b(?:warning: |exit\w*\W{1,3}(?:undefined|null|none)\b)"
)
# What programs print of a test that failed, and of what it expected.
_ERROR = re.compile(
    r"FAILED .+|E \S.*|--- FAIL: .+|[×✕●] .+|not ok \d+.*|AssertionError.*"
    r"|.*\berror(?:\[\w+\]|\s+[A-Z]+\d+)?: \S.*|[\w./-]+\.\w+:\d+(?::\d+)?:? \S.*"
    rf"|.*(?:{EXCEPTION.pattern}|{REPORTED.pattern})",
    re.MULTILINE,
)
# The last command of a chain whose exit code says nothing of those before it.
_CLOSES = re.compile(r"(?:;|\|\|)(?:true|echo|:)(?!\S)|\S{1,2}(?:pkill|kill|killall)\b")
_MOST_ERRORS, _LAST_LINES = 3, 2
NOT_MADE = re.compile(r"failed|exit code [1-9]")


def outcome_of(call: Call, command: str, most: int = 0) -> str:
    """Return words of a result: its exit code, errors, the lines that tell the outcome.

    Without such a line the last ones are quoted, if only one command was run. With `most` all lines
    of a result are quoted, in at most `most` characters.
    """
    if call.result is None:
        return NO_RESULT
    text = call.result
    is_long = len(text) > 2 * LOOKED_AT
    ends = f"{text[:LOOKED_AT]} …\n… {text[-LOOKED_AT:]}" if is_long else text
    codes = _EXIT_CODE.findall(ends)
    runs = not codes and RUNS_ON.search(ends)
    code = f"exit code {max(codes, key=int)}" if codes else "failed" if call.failed else ""
    parts = [f"{separator}{plain}" for separator, plain, _ in parts_in(command)]
    # The end of a long command may be in what was cut out.
    given = [f"{separator}{plain}" for separator, plain, _ in parts_in(call.command or "")]
    if len(given) > 1 and _CLOSES.match(given[-1]):
        code = ""
    elif code == "exit code 0" and re.search("[;|]", " ".join(parts)):
        code += " of the last command"
    said = _without_frame(ends.split("\n"))
    if most and not (runs and not code):
        whole = " / ".join(map(one_line, said))
        words = shortened(whole, most, 2)
        verdicts = [one_line(line) for line in said if _VERDICT.match(line)][-_LAST_LINES:]
        if missing := [shortened(line, _LONGEST_LINE) for line in verdicts if line not in words]:
            middle = f" … {' … '.join(missing)} … "
            half = (most - len(middle)) // 2
            words = f"{whole[:half].rstrip()}{middle}{whole[-half:].lstrip()}"
        return ": ".join(filter(None, (code, words))) or NO_OUTPUT
    said = [one_line(line) for line in said if re.search(r"\w", line)]
    told = [line for line in said if not _EXIT_CODE.search(line) and not _FRAME.match(line)]
    shown = [*filter(_NAMES.search, told)] or [*filter(_COUNTS.search, told)]
    if runs and not code:
        ids = ((line, ID_SAID.search(line)) for line in told)
        shown = [line[: one.end()] for line, one in ids if one][:1] or told[-_LAST_LINES:]
        code = STARTED
    elif call.failed:
        errors = [line for line in told if _ERROR.match(line)][:_MOST_ERRORS]
        shown = [*errors, *shown[-1:], *told[-_LAST_LINES:]]
    elif not shown and (len(told) <= _LAST_LINES or _is_of_last(parts)):
        shown = told[-_LAST_LINES:]
    words = shortened(marked(shown, said) or " / ".join(shown), LONGEST_WORDS)
    return ": ".join(filter(None, (code, words))) or (UNQUOTED if told else NO_OUTPUT)


def _is_of_last(parts: Sequence[str]) -> bool:
    """Whether the end of what a chain printed is of its last command, which does not only show."""
    shows = _SEARCHES.match(parts[-1].lstrip("&")) or PRINTS.match(parts[-1].lstrip("&"))
    is_chain = all(one.startswith("&&") for one in parts[1:])
    return len(parts) == 1 or (is_chain and not shows)


def _without_frame(lines: Sequence[str]) -> list[str]:
    """Return the lines of a result without those around what was printed."""
    kept = [i for i, line in enumerate(lines) if not _surrounds(line)] or [len(lines)]
    inner = [*lines[kept[0] : kept[-1] + 1]]
    inner[:1] = [_TAGS.sub("", line) for line in inner[:1]]
    inner[-1:] = [_TAGS.sub("", line) for line in inner[-1:]]
    return inner


def _surrounds(line: str) -> bool:
    bare = _TAGS.sub("", line).strip()
    return not bare or bool(_EXIT_CODE.search(bare) or _FRAME.match(bare))


def names_only(call: Call, paths: Container[str]) -> bool:
    """Whether a result only names files that are listed."""
    told = filterfalse(_FOUND.match, lines_in(call.result or ""))
    return next(told, None) in paths and all(line in paths for line in told)


def shown_of(call: Call, command: str, *, is_file: bool) -> str:
    """Return a result, of a diff its hunks.

    Of a long file, and of a long list of what was found in files, nothing is quoted.
    """
    text = call.result or ""
    start = text[:LOOKED_AT]
    if preview := _PREVIEW.search(start):
        return one_line(start[: preview.start()])
    if diff := _DIFF.search(start):
        before = map(one_line, _without_frame(start[: diff.start()].split("\n")))
        hunks = _hunks(text[diff.start() : diff.start() + _MOST_OF_DIFF])
        return shortened(" / ".join(filter(None, (*before, *hunks))), LONGEST_RESULT, 2)
    is_long = len(text) > LONGEST_RESULT and not call.failed
    if is_long and is_file and not call.command:
        return UNQUOTED
    parts = command_parts(call.command or "")
    is_search = any(map(_SEARCHES.match, parts or [call.tool.lower()]))
    is_search = is_search and all(_SEARCHES.match(one) or PRINTS.match(one) for one in parts)
    said = "" if is_long and is_search else outcome_of(call, command, LONGEST_RESULT)
    return said.removeprefix("exit code 0: ")


def _hunks(text: str) -> Iterator[str]:
    """Yield the files of a diff, except new ones, with the first changed lines of each hunk.

    Of many hunks that is one line each, a new one if there is any.
    """
    most = _MOST_CHANGED // max(1, text.count("\n@@ ")) or 1
    for file in text.split("diff --git ")[1:]:
        head, *hunks = file.split("\n@@ ")
        changed = [_CHANGED.findall(hunk.partition("\n")[2]) for hunk in hunks]
        # Where only the end of the last line changed, both sides read the same.
        changed = [found for found in changed if _side("-", found) != _side("+", found)]
        if most == 1:
            changed = [sorted(found, key=lambda line: line[0] == "-") for found in changed]
        shown = (line for found in changed for line in found[:most])
        lines = " … ".join(shortened(one_line(line), _LONGEST_LINE) for line in shown)
        if lines and "\nnew file mode" not in head:
            yield f"{head.split(chr(10))[0].rpartition(' b/')[2]}: {lines}"


def _side(sign: str, lines: Sequence[str]) -> list[str]:
    return [line[1:] for line in lines if line[0] == sign]
