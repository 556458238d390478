"""How well the next prompt's size is foreseen in recorded sessions: a table, a line for each.

    python -m benchmarks.accuracy [FOLDER]

FOLDER holds recordings; by default it is `../shared/traces` beside the checkout. Those without
usage are left out. Each call is foreseen from the calls before it: its messages counted, then
corrected by what was billed so far. Exits with 1 when a goal is missed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.runner import markdown_table
from policyctx.errors import UnreadableRecordingError
from policyctx.replay.accuracy import SETTLED_FROM, Accuracy, Prediction, accuracy, predictions
from policyctx.replay.reading import files_in, recordings_in
from policyctx.replay.recording import Recording
from policyctx.tokens.counter import counter_for

TRACES = Path(__file__).parents[2] / "shared" / "traces"
TOKENIZER = "o200k_base"
# The goals: of the errors from the tenth call on, their median and what 95 % are within.
MEDIAN, WITHIN = 0.05, 0.15

COLUMNS = ("recording", "model", "calls", "settled", "scale", "median", "95 % within", "largest",
           "at call", "goals")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Session:
    """One recording's predictions."""

    recording: Recording
    made: Sequence[Prediction]

    @property
    def reached(self) -> Accuracy | None:
        """What the predictions come to; None where the session is too short."""
        return accuracy(self.made)

    @property
    def holds(self) -> bool | None:
        """Are both goals reached."""
        reached = self.reached
        return None if reached is None else reached.median < MEDIAN and reached.within < WITHIN

    @property
    def worst(self) -> Prediction:
        """The settled call that was foreseen worst."""
        settled = [one for one in self.made if one.call >= SETTLED_FROM]
        return max(settled, key=lambda one: abs(one.error))

    @property
    def scale(self) -> float:
        """Tokens billed for each counted one, over the steps in which both grew."""
        steps = [
            (after.counted - before.counted, after.billed - before.billed)
            for before, after in zip(self.made, self.made[1:], strict=False)
        ]
        grown = [(counted, billed) for counted, billed in steps if counted > 0 and billed > 0]
        return sum(b for _, b in grown) / max(1, sum(c for c, _ in grown))


def sessions(folder: Path) -> Iterator[Session]:
    """Yield each recording below `folder` that tells what was billed."""
    counter = counter_for(TOKENIZER)
    for path in files_in([folder]):
        try:
            for recording in recordings_in(path, name=str(path.relative_to(folder))):
                if made := list(predictions(recording, counter)):
                    yield Session(recording, made)
        except UnreadableRecordingError as error:
            print(error, file=sys.stderr)


def main(arguments: Sequence[str]) -> int:
    """Print the table; return 0, or 1 when a goal is missed, 2 when there are no recordings."""
    found = list(sessions(Path(arguments[0]) if arguments else TRACES))
    if not found:
        print("no recordings with usage there", file=sys.stderr)
        return 2
    print(markdown_table(COLUMNS, [_row(one) for one in found], numeric=range(2, 9)))
    return int(any(one.holds is False for one in found))


def _row(one: Session) -> tuple[str, ...]:
    models = sorted({call.language_model or "" for call in one.recording.calls} - {""})
    head = (one.recording.name[:48], ", ".join(models), str(len(one.made)))
    reached = one.reached
    if reached is None:
        return *head, "0", "", "", "", "", "", "too short"
    shares = (reached.median, reached.within, reached.largest)
    verdict = "kept" if one.holds else "**missed**"
    return (
        *head, str(reached.calls), f"{one.scale:.2f}",
        *(f"{100 * share:.2f} %" for share in shares), str(one.worst.call), verdict,
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
