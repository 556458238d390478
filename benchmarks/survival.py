"""How many planted facts survive compactions, by kind, language, round and budget.

    python -m benchmarks.survival SET… [--budget 10 20 30] [--rounds 3] [--baseline] [--json]
        [--write DIR]

A set is a JSON file with one history, a file with one a line (`.jsonl`), or a folder of JSON files;
`planted/` has two. A history has `messages` and the `facts` that are planted in them. A fact has
`id`, `kind`, `language`, `value` (a text, or several spellings, any of which is enough),
`superseded` (old values that no longer hold), `message` (the position of the message that states
it), `question` and `answer`.

A budget is a share of the history: tokens of the summary, headings included, over tokens of what it
replaces. After each round the facts of the messages so far are looked for. The automatic count
needs a value in the summary, and no superseded value asserted. A superseded value is asserted by a
statement that is newer than every statement with the value, or by any if the summary lacks the
value. An older statement that stays beside the newer one is counted as `old kept`: the summary says
that the later of two holds. The count does not judge polarity and scope. For that,
`--write` writes each last summary with its questions, for a reader who answers them from the
summary alone, and a key with the answers.

`--baseline` measures the forty lines of `benchmarks.forty` in place of the extractive summary. The
interval is Wilson's, of 95 %.
"""

from __future__ import annotations

import argparse
import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.forty import forty_lines
from policyctx.compaction.extractive import SummaryLine
from policyctx.compaction.extractive.said import ASKED
from policyctx.compaction.extractive.summary import summary_lines
from policyctx.compaction.extractive.writing import Group
from policyctx.compaction.rounds import SourcedLine, rounds
from policyctx.definitions.items import Message
from policyctx.policy.models.compaction import Summary
from policyctx.tokens.counter import counter_for

if TYPE_CHECKING:
    LinesOf = Callable[..., Sequence[SummaryLine]]

BUDGETS = (10, 20, 30)
TOKENIZER = "o200k_base"
_Z = 1.959963984540054
_ANY_WORDS = 10**9
# The groups of a summary that hold what somebody said.
_STATEMENTS = frozenset({str(Group.USER), str(Group.AGENT), str(Group.EARLIER)})


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that a history says and that a summary should hold."""

    id: str
    kind: str
    language: str
    values: tuple[str, ...]
    superseded: tuple[str, ...]
    message: int
    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class PlantedHistory:
    """A message list with the facts that are planted in it."""

    id: str
    messages: tuple[Message, ...]
    facts: tuple[Fact, ...]


class Outcome(NamedTuple):
    """What became of a fact in one round."""

    fact: Fact
    history: str
    budget: int
    """In percent."""
    round: int
    rounds: int
    present: bool
    stale: bool
    """Whether a superseded value is asserted."""
    old_kept: bool
    """Whether an older statement with a superseded value stays beside the newer one."""

    @property
    def survived(self) -> bool:
        """Whether the fact survived, as far as its strings tell."""
        return self.present and not self.stale


class Written(NamedTuple):
    """The last summary of a history under a budget."""

    history: PlantedHistory
    budget: int
    summary: str
    share: float
    """Tokens of the summary over those of all that was replaced."""


def histories(paths: Iterable[Path]) -> list[PlantedHistory]:
    """Read the sets; raises `ValueError` for a file that is none, by its name."""
    files = [
        file
        for path in paths
        for file in (sorted(path.glob("*.json")) if path.is_dir() else [path])
    ]
    return [history for file in files for history in _histories_in(file)]


def _histories_in(file: Path) -> Iterator[PlantedHistory]:
    text = file.read_text(encoding="utf-8")
    try:
        for line in filter(None, text.split("\n")) if file.suffix == ".jsonl" else [text]:
            read = json.loads(line)
            facts = tuple(_fact(fact) for fact in read["facts"])
            yield PlantedHistory(str(read.get("id", file.stem)), tuple(read["messages"]), facts)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{file}: not a history with planted facts: {error!r}") from error


def _fact(read: dict[str, Any]) -> Fact:
    return Fact(
        read["id"],
        read["kind"],
        read["language"],
        _texts(read["value"]),
        _texts(read.get("superseded") or ()),
        int(read["message"]),
        read.get("question", ""),
        read.get("answer", ""),
    )


def _texts(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def outcomes(
    history: PlantedHistory, budget: int, count: int, lines_of: LinesOf = summary_lines
) -> tuple[list[Outcome], Written | None]:
    """Compact a history `count` times in a budget, and look for its facts after each round."""
    settings = Summary.model_validate({"max_words": _ANY_WORDS, "max_share": f"{budget}%"})
    counter = counter_for(TOKENIZER)
    found: list[Outcome] = []
    made = list(rounds(history.messages, settings, counter, count=count, lines_of=lines_of))
    for one in made:
        for fact in history.facts:
            if fact.message < one.messages.stop:
                fate = fate_of(fact, one.lines)
                found.append(Outcome(fact, history.id, budget, one.number, len(made), *fate))
    if not made:
        return found, None
    replaced = sum(one.replaced_tokens for one in made) - sum(one.tokens for one in made[:-1])
    last = made[-1]
    return found, Written(history, budget, last.summary, last.tokens / max(1, replaced))


class Fate(NamedTuple):
    """What a summary says of a fact; see `Outcome`."""

    present: bool
    stale: bool
    old_kept: bool


def fate_of(fact: Fact, lines: Sequence[SourcedLine]) -> Fate:
    """Return what became of a fact in a summary of these lines."""
    summary = _plain("\n".join(line.text for line in lines))
    present = any(_plain(value) in summary for value in fact.values)
    newest, old = -1, []
    for line in lines:
        if line.group not in _STATEMENTS or line.message is None:
            continue
        text = _plain(line.text.partition(ASKED)[0])
        if any(_plain(value) in text for value in fact.values):
            newest = max(newest, line.message)
        elif any(_stands_in(_plain(value), text) for value in fact.superseded):
            old.append(line.message)
    stale = any(message > newest for message in old)
    return Fate(present, stale, bool(old) and not stale)


def _stands_in(value: str, text: str) -> bool:
    """Return whether a text has a value as a whole word or number."""
    before = r"(?<![a-z0-9.,:])" if value[:1].isascii() else ""
    behind = r"(?![a-z0-9]|[.,:]\d)" if value[-1:].isascii() else ""
    return re.search(f"{before}{re.escape(value)}{behind}", text) is not None


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """Return the 95 % interval of a share; (0, 1) without a trial."""
    if not trials:
        return 0.0, 1.0
    share, z2 = successes / trials, _Z**2
    centre = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    spread = share * (1 - share) / trials + z2 / (4 * trials**2)
    half = _Z / (1 + z2 / trials) * math.sqrt(spread)
    return max(0.0, centre - half), min(1.0, centre + half)


Row = dict[str, Any]


def report(found: Sequence[Outcome]) -> dict[str, list[Row]]:
    """Return the rows of each table: all facts, and by kind, language and round."""
    last = [one for one in found if one.round == one.rounds]
    return {
        "all": _rows(last, lambda _: "all"),
        "kind": _rows(last, lambda one: one.fact.kind),
        "language": _rows(last, lambda one: one.fact.language),
        "round": _rows(found, lambda one: f"{one.round}"),
    }


def _rows(found: Sequence[Outcome], name_of: Callable[[Outcome], str]) -> list[Row]:
    groups: defaultdict[tuple[str, int], list[Outcome]] = defaultdict(list)
    for one in found:
        groups[name_of(one), one.budget].append(one)
    return [_row(name, budget, groups[name, budget]) for name, budget in sorted(groups)]


def _row(name: str, budget: int, found: Sequence[Outcome]) -> Row:
    survived = sum(one.survived for one in found)
    low, high = wilson(survived, len(found))
    return {
        "name": name,
        "budget": budget,
        "facts": len(found),
        "histories": len({one.history for one in found}),
        "survived": survived,
        "share": survived / len(found),
        "low": low,
        "high": high,
        "stale": sum(one.stale for one in found),
        "old_kept": sum(one.old_kept for one in found),
    }


def table(rows: Iterable[Row]) -> str:
    """Return rows as a table in Markdown."""
    lines = [
        "| | budget | survived | of | share | 95 % | stale | old kept |",
        "|---|--:|--:|--:|--:|---|--:|--:|",
    ]
    lines += [
        f"| {row['name']} | {row['budget']} % | {row['survived']} | {row['facts']} |"
        f" {100 * row['share']:.0f} % | {100 * row['low']:.0f} to {100 * row['high']:.0f} |"
        f" {row['stale']} | {row['old_kept']} |"
        for row in rows
    ]
    return "\n".join(lines)


def write(folder: Path, written: Iterable[Written], found: Sequence[Outcome]) -> None:
    """Write each summary with its questions, and `key.jsonl` with the answers."""
    folder.mkdir(parents=True, exist_ok=True)
    verdicts = {(one.fact.id, one.budget): one.survived for one in found if one.round == one.rounds}
    key: list[str] = []
    for one in written:
        asked = [f"{fact.id}: {fact.question}" for fact in one.history.facts]
        head = f"Answer each question from this summary alone ({100 * one.share:.1f} %)."
        text = "\n".join([head, "", "<<<", one.summary, ">>>", "", "Questions", "", *asked, ""])
        name = f"{one.history.id}-{one.budget}.txt"
        (folder / name).write_text(text, encoding="utf-8")
        for fact in one.history.facts:
            line = {
                "id": fact.id,
                "file": name,
                "budget": one.budget,
                "kind": fact.kind,
                "answer": fact.answer,
                "values": fact.values,
                "superseded": fact.superseded,
                "counted": verdicts[fact.id, one.budget],
            }
            key.append(json.dumps(line, ensure_ascii=False))
    (folder / "key.jsonl").write_text("\n".join([*key, ""]), encoding="utf-8")


def _measured(given: argparse.Namespace) -> Iterator[tuple[list[Outcome], Written | None]]:
    lines_of = forty_lines if given.baseline else summary_lines
    for history in histories(given.sets):
        for budget in given.budget:
            yield outcomes(history, budget, given.rounds, lines_of)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 0, or 2 for a set that cannot be read."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.survival", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("sets", type=Path, nargs="+", metavar="SET")
    parser.add_argument("--budget", type=int, nargs="+", default=list(BUDGETS), metavar="PERCENT")
    parser.add_argument("--rounds", type=int, default=1, metavar="N")
    parser.add_argument("--baseline", action="store_true", help="measure forty lines in its place")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--write", type=Path, metavar="DIR", help="write summaries and questions")
    given = parser.parse_args(arguments)
    try:
        measured = list(_measured(given))
    except (OSError, ValueError) as error:
        parser.error(str(error))
    found = [one for of_history, _ in measured for one in of_history]
    written = [one for _, one in measured if one is not None]
    if given.write is not None:
        write(given.write, written, found)
    tables = report(found)
    shares = {
        budget: max((one.share for one in written if one.budget == budget), default=0.0)
        for budget in given.budget
    }
    if given.json:
        print(json.dumps({**tables, "largest_share": shares}, indent=2))
        return 0
    for name, rows in tables.items():
        print(f"\nBy {name}\n\n{table(rows)}" if name != "all" else table(rows))
    largest = ", ".join(f"{100 * share:.1f} % at {budget} %" for budget, share in shares.items())
    print(f"\nLargest summary: {largest} of what it replaced.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
