from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from policyctx.planning.compiled import OffloadPolicy
from policyctx.replay.simulated import StepUse
from policyctx.replay.simulation import SESSION_ID, replay_root, simulated
from policyctx.replay.summing import figures_of
from policyctx.replay.unwritten_store import UnwrittenStore
from policyctx.session import Session
from policyctx.tokens.usage import Usage
from tests.conversations import call, results, session_of, user
from tests.policies import HEAD, policy
from tests.replay.sessions import recording, turn_by_turn

LONG = "one more line of some output\n" * 20
KEEP_TWO = """
    items: {tool_result: {offload: true}}
    store: {root: %s}
    steps: [{name: retire, do: offload, select: {types: [tool_result], keep_recent: 2}}]
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


def test_each_call_sends_the_same_tokens_as_a_session(root: Path) -> None:
    keep_two = policy(KEEP_TWO % root)
    messages = session_of(*[LONG + str(i) for i in range(6)])
    store = UnwrittenStore(replay_root(keep_two), keep_two.store)
    session, sent = Session(keep_two, store=store), []
    for end in range(1, len(messages), 2):
        plan = session.apply(messages[:end]).plan
        sent.append((plan.tokens_before, plan.tokens_after))
    replayed = simulated(turn_by_turn(messages), keep_two)
    assert [(call.unedited.tokens, call.edited.tokens) for call in replayed.calls] == sent


def removed_under(root: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, str]]:
    """Return the tokens that each removal frees for a user with this home, and its reason."""
    home.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("CONTEXT_ROOT", str(home / "context"))
    monkeypatch.chdir(home)
    text = KEEP_TWO.replace("offload: true", 'offload: true, placeholder: "{cwd_path}, {path}"')
    (home / "p.yaml").write_text(HEAD + dedent(text % root), encoding="utf-8")
    messages = session_of(*[LONG + str(i) for i in range(6)])
    found = simulated(turn_by_turn(messages), OffloadPolicy.load(home / "p.yaml")).removals
    return [(removal.freed, removal.reason) for removal in found]


@pytest.mark.parametrize(
    "root",
    [
        '"~/.agent/context/{session_id}"',
        '"~"',
        ".offload",
        ".",
        '"../{session_id}"',
        '"${CONTEXT_ROOT:-~/.agent}"',
        '"${HOME:-/x}"',
    ],
)
def test_the_home_and_the_working_directory_change_no_figure(
    root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    homes = [tmp_path / "u", tmp_path / "a user's folder" / "with an Ä in its name" / "x" / "y"]
    short, long = (removed_under(root, home, monkeypatch) for home in homes)
    assert len(short) == 3
    assert short == long


@pytest.mark.parametrize(
    ("written", "replayed"),
    [
        ("~/.agent/context/{session_id}", f"/home/user/.agent/context/{SESSION_ID}"),
        ("~somebody/files", "/home/user/files"),
        (".offload", "/home/user/project/.offload"),
        ("/srv/files", f"/home/user/.agent/context/{SESSION_ID}"),
        ("s3://bucket/{session_id}", f"s3://bucket/{SESSION_ID}"),
    ],
)
def test_the_root_of_a_replay_is_that_of_no_machine(written: str, replayed: str) -> None:
    assert str(replay_root(policy(KEEP_TWO % f'"{written}"'))) == replayed


def test_nothing_is_written(root: Path) -> None:
    replayed = simulated(turn_by_turn(session_of(LONG, LONG, LONG, LONG)), policy(KEEP_TWO % root))
    assert replayed.files == 1
    assert not root.exists()


def test_files_and_bytes_are_those_of_the_texts(root: Path) -> None:
    texts = [f"{i} 一行输出\n" * 40 for i in range(5)]
    replayed = simulated(turn_by_turn(session_of(*texts)), policy(KEEP_TWO % root))
    assert replayed.files == 2
    assert replayed.bytes == sum(len(text.encode()) for text in texts[:2])
    assert [removal.bytes for removal in replayed.removals] == [len(t.encode()) for t in texts[:2]]


def test_each_step_has_its_number_of_uses_including_zero(root: Path) -> None:
    two_steps = policy(
        f"""
        items: {{tool_result: {{offload: true}}}}
        store: {{root: {root}}}
        steps:
          - {{name: retire, do: offload, select: {{types: [tool_result], keep_recent: 2}}}}
          - {{name: never, do: drop, when: {{messages: {{over: 900}}}}}}
        """
    )
    replayed = simulated(turn_by_turn(session_of(*[LONG] * 6)), two_steps)
    assert replayed.steps == {"retire": StepUse(3, 3), "never": StepUse(0, 0)}


def test_a_removal_has_its_call_and_reason(root: Path) -> None:
    replayed = simulated(turn_by_turn(session_of(*[LONG] * 4)), policy(KEEP_TWO % root))
    [removal] = replayed.removals
    assert (removal.call, removal.item_id, removal.message) == (4, "c0", 2)
    assert removal.reason == "3rd newest of Bash, 2 kept"
    assert removal.tokens - removal.freed == (
        replayed.calls[3].edited.tokens - replayed.calls[3].unedited.tokens + removal.tokens
    )


def test_a_decision_is_counted_once_though_every_call_carries_it_out(root: Path) -> None:
    each_alone = policy(KEEP_TWO % f"{root}, state: none")
    replayed = simulated(turn_by_turn(session_of(*[LONG] * 6)), each_alone)
    assert [removal.item_id for removal in replayed.removals] == ["c0", "c1", "c2"]
    assert replayed.files == 3


def test_the_recordings_own_compaction_begins_another_part(root: Path) -> None:
    before = session_of(*[LONG] * 4)
    recorded = recording(before, [user("the summary"), *before[1:3]], anew=[1])
    replayed = simulated(recorded, policy(KEEP_TWO % root))
    assert replayed.begun_anew == 1
    assert [call.anew for call in replayed.calls] == [False, True]
    assert replayed.calls[1].unedited.messages == 3
    assert replayed.calls[1].edited.tokens < replayed.calls[1].unedited.tokens


def test_decisions_carry_over_to_the_next_part(root: Path) -> None:
    messages = session_of(*[LONG] * 4)
    replayed = simulated(recording(messages, messages, anew=[1]), policy(KEEP_TWO % root))
    assert [removal.part for removal in replayed.removals] == [0, 0]
    assert replayed.calls[0].edited.tokens == replayed.calls[1].edited.tokens


def test_the_session_observes_the_estimated_usage_of_its_own_list(root: Path) -> None:
    at_window = policy(f"""
        model: {{context_window: 10000}}
        items: {{tool_result: {{offload: true}}}}
        store: {{root: {root}}}
        steps:
          - {{name: full, do: offload, when: {{tokens: {{over: 80%}}}}, select: {{order: oldest}}}}
    """)
    messages = session_of(*[LONG] * 5)
    silent = simulated(turn_by_turn(messages), at_window)
    # A system prompt of 9,000 tokens that no message shows.
    usages = [Usage(call.unedited.tokens + 9_000) for call in silent.calls]
    told = simulated(turn_by_turn(messages, usages=usages), at_window)
    assert silent.removals == ()
    assert told.removals[0].call == 2


def test_time_passes_as_the_recording_says(root: Path) -> None:
    after_pause = policy(f"""
        items: {{tool_result: {{offload: true}}}}
        store: {{root: {root}}}
        steps: [{{name: paused, do: offload, when: {{idle: {{over: 10m}}}}}}]
    """)
    messages = session_of(*[LONG] * 3)
    replayed = simulated(turn_by_turn(messages, times=[0, 60, 900]), after_pause)
    assert {removal.call for removal in replayed.removals} == {3}
    assert simulated(turn_by_turn(messages), after_pause).removals == ()
    # Before the first time stamp no time passes, and none has passed since 1970.
    late = turn_by_turn(messages, times=[None, 1_800_000_000, 1_800_000_060])
    assert simulated(late, after_pause).removals == ()


def test_a_session_without_calls_has_empty_figures(root: Path) -> None:
    replayed = simulated(recording(), policy(KEEP_TWO % root))
    assert replayed.calls == ()
    assert replayed.removals == ()


def test_tokens_are_reported_by_type(root: Path) -> None:
    replayed = simulated(turn_by_turn(session_of(*[LONG] * 4)), policy(KEEP_TWO % root))
    results = replayed.types["tool_result"]
    assert (results.items, results.removed) == (4, 1)
    assert results.freed == replayed.removals[0].freed
    assert replayed.types["tool_call"].removed == 0


def test_a_compaction_is_reported_with_the_following_call(root: Path) -> None:
    compact = policy(
        f"""
        model: {{context_window: 1000}}
        compaction: {{summary: {{by: extractive}}}}
        store: {{root: {root}}}
        steps: [{{name: summarise, do: compact, when: {{tokens: {{at_least: 80%}}}}}}]
        """
    )
    replayed = simulated(turn_by_turn(session_of(*[f"{i} {LONG}" for i in range(9)])), compact)
    compacted = [i for i, call in enumerate(replayed.calls) if call.compacted]
    assert replayed.compactions == replayed.steps["summarise"].calls == len(compacted) > 0
    assert replayed.steps["summarise"].items > len(compacted)
    assert all(
        replayed.calls[i].edited.tokens < replayed.calls[i - 1].edited.tokens for i in compacted
    )


def test_a_prompt_over_the_window_is_refused_and_sent_again(root: Path) -> None:
    text = f"""
        model: {{context_window: 600}}
        items: {{tool_result: {{offload: true}}}}
        store: {{root: {root}}}
        steps:
          - name: too-long
            on: overflow
            do: drop
            select: {{unit: group, types: ["*"], until: {{tokens: {{under: 60%}}}}}}
    """
    messages = turn_by_turn(session_of(*[f"{i} {LONG}" for i in range(9)]))
    replayed = simulated(messages, policy(text))
    assert replayed.steps["too-long"].calls > 1
    assert all(call.edited.tokens <= 600 for call in replayed.calls)
    assert any("refused a prompt of about" in warning for warning in replayed.warnings)
    # With room for the prompt nothing is refused.
    large = simulated(messages, policy(text.replace("600", "60000")))
    assert large.removals == ()


def test_an_item_that_is_needed_before_and_after_a_rewind_is_regretted_once(root: Path) -> None:
    begun = session_of(f"{LONG}src/core/tax_rates.py", *[f"{LONG}{i}" for i in range(3)])
    asks = [call(f"again{i}", "look", {"at": "src/core/tax_rates.py"}) for i in range(2)]
    recorded = recording(
        begun,
        [asks[0], results(("again0", "gone"))],
        [*begun, user("no")],
        after=asks[1:],
        anew=[2],
    )
    found = simulated(recorded, policy(KEEP_TWO % root))
    assert found.begun_anew == 1
    (regret,) = found.regrets
    assert regret.removal.item_id == "c0"
    assert [need.call for need in regret.needs] == [1, 3]
    assert figures_of(found).regretted == 1
