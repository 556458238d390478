"""The judge of regret: labels joined with what the detector says."""

from __future__ import annotations

import json
import math
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from benchmarks.regret.judge import (
    Found,
    Judgement,
    covered,
    detected,
    found_in,
    judgements,
    judging,
    kappa,
    majority,
    report,
    share,
    wrong,
)
from benchmarks.regret.sample import DRAWS, HERE, WHOLE, units_drawn
from policyctx.replay.simulation import simulated
from tests.conversations import call, results, user
from tests.policies import policy
from tests.replay.sessions import turn_by_turn


def said(labeller: str, *, needed: bool, lines: tuple[int, int] | None = None) -> Judgement:
    return Judgement(labeller, needed, "used" if needed else None, lines)


def unit(name: str, *, session: str = "s", probability: float = 1.0) -> dict[str, Any]:
    return {"id": name, "file": "f", "session": session, "probability": probability}


USED = Found(frozenset({"used"}), ((1, 4),))
ASKED = Found(frozenset({"asked"}), ((1, 4),))
NOTHING = Found()


def test_labels_of_a_folder_are_by_the_names_of_its_files(tmp_path: Path) -> None:
    line = {"id": "u1", "needed": True, "kind": "used", "range": [3, 5]}
    (tmp_path / "labels-A1.jsonl").write_text(json.dumps(line | {"needed": False}) + "\n")
    (tmp_path / "labels-A2.jsonl").write_text(json.dumps(line) + "\n\n")
    (tmp_path / "labels-B1.jsonl").write_text(json.dumps(line | {"labeller": "C"}) + "\n")
    found = judgements(tmp_path)
    assert found == {
        "u1": [
            Judgement("A", needed=True, kind="used", lines=(3, 5)),
            Judgement("C", needed=True, kind="used", lines=(3, 5)),
        ]
    }


def test_kappa_is_agreement_beyond_chance() -> None:
    both = [(True, True), (True, False), (False, False), (False, False)]
    labels = {
        str(i): [said("a", needed=one), said("b", needed=other)]
        for i, (one, other) in enumerate(both)
    }
    [(value, number)] = kappa(labels).values()
    assert value == pytest.approx(0.5)
    assert number == 4


def test_a_third_labeller_settles_a_tie() -> None:
    tie = [said("a", needed=True), said("b", needed=False)]
    assert majority(tie) is None
    settled = majority([*tie, said("c", needed=True)])
    assert settled is not None
    assert (settled.needed, settled.kind) == (True, "used")


def test_units_without_a_label_or_a_majority_are_left_out() -> None:
    labels = {"u1": [said("a", needed=True), said("b", needed=False)]}
    judged = judging(labels, [(unit("u1"), USED), (unit("u2"), USED)])
    assert (list(judged.units), judged.ties) == ([], 1)


def test_units_whose_item_stays_are_left_out_and_counted() -> None:
    labels = {name: [said("a", needed=True)] for name in ("u1", "u2")}
    judged = judging(labels, [(unit("u1"), USED), (unit("u2"), Found(is_out=False))])
    assert [one.id for one in judged.units] == ["u1"]
    assert next(report(judged, labels)).endswith("left out: 0 ties, 1 no longer removed")


@pytest.mark.parametrize(
    ("since", "found"), [(3, Found(frozenset({"used"}), ((1, 1),))), (1, Found(is_out=False))]
)
def test_what_is_found_in_a_unit_is_of_its_absence(since: int, found: Found) -> None:
    messages = [user("the task")]
    for i, text in enumerate(["see ticket QX-48213-B " * 30, "nothing to see " * 30]):
        messages += [call(f"r{i}", "look", {"at": i}), results((f"r{i}", text))]
    messages.append({"role": "assistant", "content": "it is QX-48213-B"})
    clears = policy("""
        items: {tool_result: {offload: true}}
        steps: [{name: clear, do: clear, select: {types: [tool_result], keep_recent: 1}}]
    """)
    session = simulated(turn_by_turn(messages), clears, excerpt=WHOLE)
    [item] = [one for one in session.items if one.absences]
    one = {
        **unit("u1"),
        "part": item.part,
        "position": item.position,
        "since": since,
        "until": since + 1,
        "text_sha256": sha256(item.text.encode()).hexdigest(),
    }
    assert found_in(one, session) == found


def test_units_of_recordings_in_another_folder_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "MANIFEST.tsv").write_text("file\tsource_repo\n")
    assert list(detected([unit("u1")], tmp_path, "development")) == []


def test_units_have_a_draw_and_are_labelled_by_their_ids() -> None:
    units = units_drawn()
    assert {unit["draw"] for unit in units} == set(DRAWS)
    assert len({unit["id"] for unit in units}) == len(units)
    for draw in DRAWS:
        assert {unit["id"] for unit in units_drawn(draw)} == {
            unit["id"] for unit in units if unit["draw"] == draw
        }
    labels = judgements(HERE / "labels.jsonl")
    assert set(labels) <= {unit["id"] for unit in units}


@pytest.mark.parametrize(
    ("name", "sessions", "needed"), [("blind.jsonl", 43, 30), ("blind2.jsonl", 39, 33)]
)
def test_every_unit_that_was_labelled_blind_has_a_label(
    name: str, sessions: int, needed: int
) -> None:
    units = units_drawn(file=HERE / name)
    said = judgements(HERE / name)
    assert (len(units), len(said)) == (60, 60)
    assert len({unit["session"] for unit in units}) == sessions
    assert sum(one.needed for [one] in said.values()) == needed


def test_a_weighted_share_counts_a_unit_by_the_inverse_of_its_probability() -> None:
    labels = {name: [said("a", needed=True)] for name in ("u1", "u2")}
    found = [(unit("u1"), USED), (unit("u2", probability=0.25), NOTHING)]
    judged = judging(labels, found)
    plain = share(judged, lambda u: u.needed, lambda u: bool(u.found))
    weighted = share(judged, lambda u: u.needed, lambda u: bool(u.found), weighted=True)
    assert (plain.value, plain.units) == (0.5, 2)
    assert weighted.value == pytest.approx(0.2)


def test_the_interval_is_over_sessions() -> None:
    labels = {f"u{i}": [said("a", needed=i < 10)] for i in range(20)}
    one = [(unit(f"u{i}"), USED) for i in range(20)]
    many = [(unit(f"u{i}", session=str(i)), USED) for i in range(20)]
    alone = share(judging(labels, one), lambda u: bool(u.found), lambda u: u.needed)
    assert (alone.low, alone.value, alone.high) == (0.5, 0.5, 0.5)
    spread = share(judging(labels, many), lambda u: bool(u.found), lambda u: u.needed)
    assert 0.2 < spread.low < spread.value < spread.high < 0.8


def test_a_share_of_nothing_is_not_a_number() -> None:
    assert math.isnan(share(judging({}, []), lambda _: True, lambda _: True).value)


def test_found_lines_are_compared_with_labelled_ones() -> None:
    labels = {"u1": [said("a", needed=True, lines=(3, 10)), said("b", needed=True, lines=(1, 8))]}
    assert covered(judging(labels, [(unit("u1"), USED)])) == (0.5, 1.0, 1)


def test_the_report_has_precision_and_recall_by_kind() -> None:
    labels = {
        "u1": [said("a", needed=True), said("b", needed=True)],
        "u2": [said("a", needed=False), said("b", needed=False)],
        "u3": [
            Judgement("a", needed=True, kind="asked"),
            Judgement("b", needed=True, kind="asked"),
        ],
    }
    judged = judging(labels, [(unit("u1"), USED), (unit("u2"), ASKED), (unit("u3"), NOTHING)])
    text = "\n".join(report(judged, labels))
    assert "needed 2, found 2" in text
    assert "κ a and b: 1.000 over 3 units" in text
    assert "precision, as drawn: 0.500" in text
    assert "used: precision 1.000" in text
    assert "asked: precision 0.000" in text
    assert [line.split(":")[0] for line in wrong(judged)] == ["u2", "u3"]
