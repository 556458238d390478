"""What is carried behind a host's summary: of planted sentences those that it lacks, and no others.

    python -m benchmarks.carrying ../shared/traces ../shared/traces-2026
    python -m benchmarks.carrying --planted FILE

Recordings are cut at 60 places. Before each, the user says twelve of the sentences below. The
summary is an extractive one of the recording without them, and holds half of the sentences, half of
these in other words. Prints how many that are missing are carried, how many that are there are not,
and the size of what is carried. Then the summary says the opposite of three of six more, each
below another that it holds: what is turned around has to be carried.

FILE has planted compactions by another author, a JSON object a line: `recording`, a path; `share`,
where it is cut; `planted`, what the user says before, each with `said` and its `fate` in the
`summary`: `out`, `turned` around, there in the `same` or in `other` words.
"""

from __future__ import annotations

import json
import random
import statistics
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from policyctx.compaction.assembly import History
from policyctx.compaction.extractive import extractive_summary
from policyctx.compaction.points import carried, delivery, points_of
from policyctx.definitions.items import Message
from policyctx.policy.models.compaction import Carry, Summary
from policyctx.replay.places import RecordingFile
from policyctx.replay.reading import files_in
from policyctx.replay.running import worked
from policyctx.tokens.counter import counter_for

CUTS, PLANTED = 60, 12
# Messages of a recording that is cut.
_LEAST = 20
# Each with how a summary may say it in other words.
SENTENCES = (
    ("Never push to the main branch.", "Pushing to main is not allowed"),
    (
        "Don't touch the generated files under build/.",
        "Generated files in build/ must not be changed",
    ),
    ("Do not add new dependencies.", "No new dependencies may be added"),
    (
        "Never delete a migration, even an empty one.",
        "Migrations must not be deleted, even empty ones",
    ),
    (
        "Don't rename public functions without asking me.",
        "Renaming public functions is off limits unless the user agrees",
    ),
    ("Never print secrets in the logs.", "Secrets must not appear in logs"),
    (
        "Don't reformat files that you did not change.",
        "Leave the formatting of untouched files alone, do not reformat them",
    ),
    ("Do not use mocks in the tests.", "Tests without mocks"),
    ("Never commit on my behalf.", "The user commits himself, the agent must never commit"),
    (
        "Don't run the integration tests on the staging database.",
        "Staging database: integration tests must not run there",
    ),
    ("Avoid global state in the scheduler.", "The scheduler should have no global state"),
    ("Never answer in German.", "Answers must not be in German"),
    ("Always write the changelog entry in the same commit.", "Each commit has its changelog entry"),
    ("Use at most 3 retries for a request.", "Requests are retried 3 times at most"),
    ("Every function should have a type annotation.", "Functions need type annotations"),
    ("From now on answer in English.", "Answers in English"),
    (
        "Keep each module, which should stay under 400 lines, free of circular imports.",
        "Modules: under 400 lines, no circular imports",
    ),
    (
        "Make sure that the parser accepts empty files.",
        "Empty files have to be accepted by the parser",
    ),
    ("The cache must survive a restart.", "A restart keeps the cache"),
    (
        "Only edit files in the folder services/billing.",
        "Work is limited to services/billing; edit only files there",
    ),
    (
        "Prefer composition over inheritance in the renderer.",
        "Renderer: composition is preferred to inheritance",
    ),
    ("Errors should be shown in a banner, not in an alert.", "Show errors as a banner, no alert"),
    (
        "The export has to finish in 20 seconds, and must use no more than 512 MB.",
        "Export limits: 20 seconds, 512 MB",
    ),
    ("Whenever a test is slow, mark it with slow_test.", "Slow tests get the mark slow_test"),
    ("The staging port is 8081.", "Staging listens on port 8081"),
    ("Our customer number is KD-48213.", "Customer number: KD-48213"),
    ("The release is called v2.7.1-rc3.", "Release v2.7.1-rc3"),
    ("The design is in docs/design/queue.md.", "Design document: docs/design/queue.md"),
    ("The ticket is PROJ-1187.", "Ticket PROJ-1187"),
    ("The bucket is named acme-exports-eu.1", "Bucket acme-exports-eu.1"),
    ("The contact is maria.k@example.org.", "Contact person: maria.k@example.org"),
    ("The endpoint is /api/v3/orders/search.", "Orders are searched at /api/v3/orders/search"),
    ("The budget for this quarter is $18,400.", "Budget: $18,400 this quarter"),
    ("The feature flag is ENABLE_FAST_PATH.", "Behind the flag ENABLE_FAST_PATH"),
    ("The deadline is 2026-12-18.", "Due on 2026-12-18"),
    ("The broken commit is 4f9c2ab1.", "Commit 4f9c2ab1 broke it"),
)

# Each with what a summary may say that turns it around.
TURNED = (
    ("Never squash the release branch.", "The release branch may be squashed"),
    ("Don't cache user profiles in memory.", "Cache user profiles in memory, no disk"),
    ("Never send mail to customers without my approval.", "Mail customers without approval"),
    ("Ask me before you drop a table.", "Tables may be dropped without asking the user"),
    ("Leave the licence headers alone.", "The licence headers may be rewritten"),
    ("Use at most 4 worker threads.", "More than 4 worker threads are fine"),
    ("Comments mustn't be longer than 80 signs.", "Comments may be longer than 80 signs"),
    ("Don't disable the linter rules, fix the code.", "Disable rules instead of fixing code"),
    ("Avoid recursion in the tree walker.", "Use recursion in the tree walker"),
    ("Stop logging the access tokens.", "The access tokens are to be logged"),
    ("不要删除 archive 目录里的日志。", "archive 目录里的日志可以删除"),
    ("Bitte ändere nichts an den Vorlagen.", "Die Vorlagen dürfen geändert werden"),
)  # fmt: skip
OPPOSITES = 3


def histories(paths: Sequence[str], *, least: int = _LEAST) -> Iterator[list[Message]]:
    """Yield the contexts at the end of recorded sessions that have some length."""
    files = [RecordingFile(each, named=False) for each in files_in(map(Path, paths))]
    for outcome in worked(files, lambda recording, _: recording.messages()):
        if isinstance(outcome, list) and len(outcome) >= least:
            yield outcome


def judged(file: str) -> None:
    """Print the figures over the compactions of another author."""
    settings, count = Carry(), counter_for("o200k_base").count
    there, delivered = Counter[str](), Counter[str]()
    recognised = 0
    for line in Path(file).read_text(encoding="utf-8").splitlines():
        one = json.loads(line)
        [whole, *_] = histories([one["recording"]], least=0)
        kept = whole[: int(one["share"] * len(whole))]
        said: list[Message] = [{"role": "user", "content": each["said"]} for each in one["planted"]]
        points = points_of(History([*kept, *said]))
        known = {point.message for point in points}
        given = {point.message for point in carried(points, one["summary"], settings, count)}
        for number, each in enumerate(one["planted"], len(kept)):
            there[each["fate"]] += 1
            delivered[each["fate"]] += number in given
            recognised += number in known
    for name, verb, fates in (
        ("missing", "carried", ("out", "turned")),
        ("present", "left out", ("same", "other")),
    ):
        for wanted in (*((fate,) for fate in fates), fates):
            of, made = (sum(table[fate] for fate in wanted) for table in (there, delivered))
            _print_share(
                f"{name} ({', '.join(wanted)})", made if name == "missing" else of - made, of, verb
            )
    _print_share("no point", there.total() - recognised, there.total(), "sentences")


def _print_share(name: str, number: int, of: int, what: str) -> None:
    print(f"{name}: {number} of {of} {what} ({number / max(1, of):.1%})")


def main(paths: Sequence[str]) -> None:
    """Print the figures."""
    chance, settings = random.Random(44), Carry()  # noqa: S311 - the same draws each time
    count = counter_for("o200k_base").count
    found = list(histories(paths))
    missing = present = carried_missing = silent = 0
    turned_count = 0
    tokens: list[int] = []
    for number in range(CUTS):
        whole = found[number % len(found)]
        kept = whole[: chance.randrange(_LEAST // 2, len(whole))]
        planted = chance.sample(SENTENCES, PLANTED)
        out, stays = planted[: PLANTED // 2], planted[PLANTED // 2 :]
        half = len(stays) // 2
        told = [one[0] for one in stays[:half]] + [one[1] for one in stays[half:]]
        summary = extractive_summary(History(kept), Summary()) + "\n" + "\n".join(told)
        said: list[Message] = [{"role": "user", "content": one[0]} for one in planted]
        chance.shuffle(said)
        points = carried(points_of(History([*kept, *said])), summary, settings, count)
        texts = {point.text for point in points}
        missing += len(out)
        present += len(stays)
        carried_missing += sum(one[0] in texts for one in out)
        silent += sum(one[0] not in texts for one in stays)
        turned = chance.sample(TURNED, 2 * OPPOSITES)
        held = [one[0] for one in turned[OPPOSITES:]]
        opposite = [one[1] for one in turned[:OPPOSITES]]
        lines = [line for pair in zip(held, opposite, strict=True) for line in pair]
        said_too: list[Message] = [{"role": "user", "content": one[0]} for one in turned]
        other = "\n".join([extractive_summary(History(kept), Summary()), *lines])
        back = carried(points_of(History([*kept, *said_too])), other, settings, count)
        orders = {point.text for point in back}
        turned_count += sum(one[0] in orders for one in turned[:OPPOSITES])
        tokens.append(count(delivery(points, lambda point: f"line {point.message}", "t.jsonl")))
    tokens.sort()
    print(f"{CUTS} compactions of {len(found)} recordings, {missing + present} planted sentences")
    print(f"missing: {carried_missing} of {missing} carried ({carried_missing / missing:.1%})")
    print(f"present: {silent} of {present} left out ({silent / present:.1%})")
    whole_turned = CUTS * OPPOSITES
    share = turned_count / whole_turned
    print(f"turned around: {turned_count} of {whole_turned} carried ({share:.1%})")
    p95 = tokens[int(0.95 * len(tokens))]
    print(f"carried: {statistics.median(tokens):.0f} tokens, 95th percentile {p95}")


if __name__ == "__main__":
    judged(sys.argv[2]) if sys.argv[1:2] == ["--planted"] else main(sys.argv[1:])
