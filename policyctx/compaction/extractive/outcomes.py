"""The words of a result that are quoted: exit code, errors, counts, or its beginning and end."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from policyctx.compaction.extractive.files import RAISED, REPORTED, Call, parts_in
from policyctx.compaction.extractive.texts import GAP, lines_in, marked, one_line, shortened

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
# Commands that change the work or check it.
GIT = re.compile(
    r"git (?:-\S+ (?:\S*/\S* )?)*(add|commit|push|pull|clone|checkout|switch|merge|rebase|reset"
    r"|restore|revert|cherry-pick|stash(?! (?:list|show))|am|worktree(?! list)|tag(?= -[am])"
    r"|(?:tag|branch)(?=(?: -[CDFMcdfmsu]\S*| --(?:delete|force|move))?\s+[^-\s]))(?![\w-])"
)
CHECKING = re.compile(
    r"(?:py|unit)?tests?|runtests(?:\.py)?|jest|vitest|mocha|tox|nox|rspec|phpunit|ctest|check|lint"
    r"|eslint|ruff|flake8|mypy|pyright|tsc|clippy|vet|credo|typecheck|build|compile|verify|make|ninja"
    r"|gradlew?|mvn|javac?|msbuild|xcodebuild",
    re.IGNORECASE,
)
# A command that only shows something, or makes room for another.
SHOWS = re.compile(
    r"#|\S+ version\b|\S.* --(?:help|version|dry-run)\b|git\b|(?:awk|cat|cd|chmod|date"
    r"|df|diff|du|echo|file|find|grep|head|jq|ls|mkdir|nl|open|pgrep|printf|ps|pwd|rg|sed(?! -i)"
    r"|sleep|sort|source|stat|tail|test(?= -)|true|wc|which)\b"
)
_PASSED = re.compile(r"^exit code 0(?: of the last command)?(?:: |$)")

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
_VERDICT = re.compile(
    r"\W*(?:RESULT|VERDICT|FAIL(?:ED|URE)?|PASS(?:ED)?|Tests?)\b:? .{1,160}$|EXIT\b.{0,40}$"
)
# What only surrounds what was printed.
_TAGS = re.compile(r"^</?[\w-]+>|</?[\w-]+>$", re.MULTILINE)
_FRAME = re.compile(
    r"Output:|\(Bash completed with|# [\w.-]+/[\w./-]+$"
    r"|(?:Wall time|Chunk ID|Original token count|Script completed|Total output lines)\b"
    r"|\((?:Open file|Current directory): .*\)$|bash-\$\s*$|Warning: truncated output"
    r"|.*\bexit\w*\W{1,3}(?:undefined|null|none)\b"
)
# What git says of what could be run next.
_HINT = re.compile(r'\s*\(use "git |no changes added to commit')
# What leads the text of an error or a warning, and what a program prints of a failure.
_ALARM = re.compile(
    r"(?i:error|fatal|warning)(?:\[\w+\]|\s+[A-Z]+\d+)?:\s?\S|\b(?:ERROR|FATAL|WARN(?:ING)?)\b"
)
_WARNS = re.compile(r"\bwarn(?:ing)?\b", re.IGNORECASE)
_PROBLEM = re.compile(rf"{_ALARM.pattern}|{RAISED}|{REPORTED.pattern}", re.MULTILINE)
# What programs print of a test that failed, and of what it expected.
_ERROR = re.compile(
    r"FAILED .+|E \S.*|--- FAIL: .+|[×✕●] .+|not ok \d+.*|AssertionError.*"
    rf"|(?:\[[\w:.-]+\] )?[\w./-]+\.\w+:\d+(?::\d+)?:? \S.*|.*(?:{_PROBLEM.pattern})",
    re.MULTILINE,
)
# The last command of a chain whose exit code says nothing of those before it.
_CLOSES = re.compile(r"(?:;|\|\|)(?:true|echo|:)(?!\S)|\S{1,2}(?:pkill|kill|killall)\b")
_MOST_ERRORS, _LAST_LINES = 3, 2
# So many missing lines are counted in the summary, unless the client cut lines out.
_COUNTED = 10
_CUT_OUT = re.compile(r"^\[\.\.\.|\b(?:truncated|omitted|clipped)\b", re.MULTILINE)
NOT_MADE = re.compile(r"failed|exit code [1-9]")


def outcome_of(call: Call, command: str, most: int = 0) -> str:
    """Return words of a result: its exit code, errors, the lines that tell the outcome.

    Without such a line the last ones are quoted, if only one command was run. A result of at most
    `most` characters is quoted whole, and of a notice its beginning.
    """
    if call.result is None:
        return NO_RESULT
    text = call.result
    is_long = len(text) > 2 * LOOKED_AT
    # A line between them may tell of another program.
    ends = f"{text[:LOOKED_AT]} …\n{text[-LOOKED_AT:]}" if is_long else text
    codes = _EXIT_CODE.findall(ends)
    runs = not codes and RUNS_ON.search(ends)
    code = "failed" if call.failed and not runs else ""
    code = f"exit code {max(codes, key=int)}" if codes else code
    # The end of a long command may be in what was cut out.
    parts = [f"{sign}{plain}" for sign, plain, _ in parts_in(call.command or command)]
    if len(parts) > 1 and _CLOSES.match(parts[-1]):
        code = ""
    elif code == "exit code 0" and re.search("[;|]", " ".join(parts)):
        code += " of the last command"
    if is_long:
        found = islice(_ALARM.finditer(text, LOOKED_AT, len(text) - LOOKED_AT), _LAST_LINES)
        alarms = (_line_at(text, one.start()) for one in found)
        ends = "\n… ".join((f"{text[:LOOKED_AT]} …", *alarms, text[-LOOKED_AT:]))
    said = _without_frame([line for line in ends.split("\n") if not _HINT.match(line)])
    whole = " / ".join(map(one_line, said))
    if (most >= len(whole) or not call.tool) and not (runs and not code):
        return ": ".join(filter(None, (code, shortened(whole, most)))) or NO_OUTPUT
    said = [one_line(line) for line in said if re.search(r"\w", line)]
    told = [line for line in said if not _EXIT_CODE.search(line) and not _FRAME.match(line)]
    warned = [*filter(_is_warning, told)]
    told = [line for line in told if line not in warned] or told
    shown = [*filter(_NAMES.search, told)] or [*filter(_COUNTS.search, told)]
    shown = shown or [*filter(_VERDICT.match, told)]
    before = ""
    is_error = _ERROR.match if call.failed else _PROBLEM.search
    errors = [line for line in filter(is_error, told) if line not in warned][:_MOST_ERRORS]
    if runs and not code:
        ids = ((line, ID_SAID.search(line)) for line in told)
        shown = [line[: one.end()] for line, one in ids if one][:1] or told[-_LAST_LINES:]
        shown += (line for line in errors if line not in shown)
        code, errors, warned, said = STARTED, [], [], []
    elif call.failed:
        shown = [*shown[-1:], *told[-_LAST_LINES:]]
    elif not shown and (len(told) <= _LAST_LINES or _is_of_last(parts)):
        before = GAP if len(told) > _LAST_LINES and not errors else ""
        shown = told[-_LAST_LINES:]
        missing = sum(not _surrounds(line) for line in lines_in(text)) - len(shown)
        is_counted = before and missing >= _COUNTED and not _CUT_OUT.search(text)
        before += f"{missing} lines … " if is_counted else ""
    shown = [*errors, *shown]
    words = before + (marked(shown, said) or " … ".join(shown))
    first = (line.removeprefix(GAP) for line in warned[: not errors])
    words = shortened(" … ".join(dict.fromkeys(filter(None, (words, *first)))), LONGEST_WORDS)
    return ": ".join(filter(None, (code, words))) or (UNQUOTED if told else NO_OUTPUT)


def _is_warning(line: str) -> bool:
    is_count = _COUNTS.search(line) or REPORTED.search(line)
    return bool(_ALARM.search(line) and _WARNS.search(line) and not is_count)


def _line_at(text: str, at: int) -> str:
    """Return the text around a position in its line."""
    before = text[max(0, at - _LONGEST_LINE // 2) : at].rpartition("\n")[2]
    return before + text[at : at + _LONGEST_LINE // 2].partition("\n")[0]


def _is_of_last(parts: Sequence[str]) -> bool:
    """Whether the end of what a chain printed is of its last command, which does not only show."""
    if not parts[1:]:
        return True
    is_chain, last = all(one.startswith("&&") for one in parts[1:]), parts[-1].lstrip("&")
    return is_chain and not (SHOWS.match(last) and not GIT.match(last))


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


def shown_of(call: Call, command: str) -> str:
    """Return a result, of a long one its ends if it failed, or is of a check or git's status."""
    is_kept = (call.failed and not call.command) or any(map(CHECKING.fullmatch, call.name_words))
    is_kept = is_kept or command.startswith("git status")
    if len(call.result or "") > LONGEST_RESULT and not is_kept:
        return ""
    return _PASSED.sub("", outcome_of(call, command, LONGEST_RESULT))
