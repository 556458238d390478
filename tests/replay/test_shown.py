"""Sessions of a table: their figures alone, added up where a file has one line."""

from __future__ import annotations

from functools import reduce
from pathlib import Path

from benchmarks.scale.generating import sessions
from benchmarks.scale.writing import write_sessions
from policyctx.replay.reading import files_in, recordings_in
from policyctx.replay.recording import Recording
from policyctx.replay.running import FEW, PassedOver, ShownSessions, in_one_line, replayed, shown
from policyctx.replay.summing import Figures, figures_of, total

POLICY = "small-context"


def recordings(folder: Path) -> list[tuple[Recording, str]]:
    return [(one, str(path)) for path in files_in([folder]) for one in recordings_in(path)]


def test_what_is_shown_has_the_figures_of_the_session_and_sums_up_as_one_by_one(
    tmp_path: Path,
) -> None:
    write_sessions(sessions(FEW + 1, seed=2, coding=0), tmp_path, "files")
    shorts = [shown(POLICY, *one) for one in recordings(tmp_path)]
    wholes = [replayed(POLICY, *one) for one in recordings(tmp_path)]
    for short, whole in zip(shorts, wholes, strict=True):
        assert (short.name, short.format, short.path) == (whole.name, whole.format, whole.path)
        assert short.figures.net == figures_of(whole).net
        assert short.figures.unedited == figures_of(whole).unedited
    figures = [short.figures for short in shorts]
    assert total(figures) == reduce(lambda some, one: total([some, one]), figures, Figures())
    assert total([]) == Figures()
    other = PassedOver("notes.txt")
    assert in_one_line([*shorts[:FEW], other]) == [*shorts[:FEW], other]
    [kept, one] = in_one_line([shorts[0], other, *shorts[1:]])
    assert kept == other
    assert isinstance(one, ShownSessions)
    assert (one.path, one.figures) == (shorts[0].path, total(figures))
