"""`AgentOptions`: the settings of the requirements documents change the keys of a policy."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from policyctx import AgentOptions, OffloadPolicy, PolicyError, Session, load_policy
from policyctx.errors import UnknownOptionError
from policyctx.policy.sources import preset_names
from policyctx.recipes import CompactOptions
from tests.conversations import session_of
from tests.policies import policy

PAGE = Path(__file__).parents[2] / "docs/agent-options.md"


def changed(name: str, **options: Any) -> OffloadPolicy:
    return OffloadPolicy.of(name, options=options)


def step(compiled: OffloadPolicy, name: str) -> Any:
    return next(step for step in compiled.all_steps if step.name == name)


def names(compiled: OffloadPolicy) -> list[str]:
    return [step.name for step in compiled.all_steps]


def test_without_offloading_what_is_ephemeral_is_cleared_and_no_other_item_leaves() -> None:
    compiled = changed("context-filesystem", offload_enabled=False)
    assert names(compiled) == ["retire", "summarise"]
    assert step(compiled, "retire").do == "clear"
    assert names(changed("coding-agent", offload_enabled=False)) == ["summarise"]


def test_without_offloading_the_steps_are_those_that_the_page_writes() -> None:
    page = PAGE.read_text(encoding="utf-8")
    [row] = re.findall(r"^\| `offload_enabled=False` \| `(.+)` \|$", page, re.MULTILINE)
    written = policy(f"extends: context-filesystem\n{row}\n")
    assert written.all_steps == changed("context-filesystem", offload_enabled=False).all_steps


@pytest.mark.parametrize(
    "retire",
    [
        "do: offload, placeholder: '[See {path}]', select: {ephemeral: true}",
        "do: offload, placeholder: {head: {lines: 2}}, select: {ephemeral: true, order: largest}",
        "do: drop, select: {ephemeral: true, unit: group}",
    ],
)
def test_without_offloading_any_ephemeral_step_clears(retire: str) -> None:
    written = policy(
        "items: {tool_result: {offload: true, placeholder: 'In {path}'}}\n"
        f"tools: {{Bash: {{keep_recent: 1}}}}\nsteps: [{{name: retire, {retire}}}]"
    )
    session = Session(written, options={"offload_enabled": False})
    result = session.apply(session_of("x" * 2000, "y" * 2000))
    assert [item.destroyed for item in session.items if item.type == "tool_result"] == [True, False]
    assert result.files == ()


@pytest.mark.parametrize("value", [True, None])
def test_offloading_is_on_unless_it_is_switched_off(value: object) -> None:
    compiled = changed("context-filesystem", offload_enabled=value)
    assert compiled.policy == load_policy("context-filesystem")


def test_the_token_threshold_is_that_of_the_step_that_has_one() -> None:
    compiled = changed("context-filesystem", offload_token_threshold=1000)
    assert step(compiled, "make-room").select.min_tokens == 1000
    assert step(compiled, "retire").select.min_tokens == 0


def test_the_token_threshold_is_the_policys_where_no_step_has_one() -> None:
    compiled = changed("coding-agent", offload_token_threshold="5%")  # noqa: S106
    assert str(compiled.policy.min_tokens) == "5%"


def test_a_threshold_in_one_unit_replaces_that_in_the_other() -> None:
    compiled = changed("context-offload", offload_token_threshold=500)
    assert (compiled.policy.min_tokens, compiled.policy.min_chars) == (500, None)
    compiled = changed("context-filesystem", offload_char_threshold=500)
    select = step(compiled, "make-room").select
    assert (select.min_tokens, select.min_chars) == (None, 500)


def test_the_threshold_of_a_step_on_arrival_stays() -> None:
    arriving = policy(
        """\
        min_tokens: 100
        items: {tool_result: {offload: true}}
        steps: [{name: huge, on: arrival, do: offload, select: {min_tokens: 10%}}]
        """
    )
    compiled = OffloadPolicy.of(arriving, options={"offload_token_threshold": 2000})
    assert compiled.policy.min_tokens == 2000
    assert str(step(compiled, "huge").select.min_tokens) == "10%"


def test_the_ratio_is_that_of_the_gate() -> None:
    compiled = changed("context-offload", offload_ratio_threshold=0.5)
    [gates] = step(compiled, "offload-tool-results").when
    assert (float(gates.ratio.at_least), gates.ratio.of) == (0.5, "chars")


def test_the_folder_is_that_of_the_store(tmp_path: Path) -> None:
    options: Any = {"offload_root_path": tmp_path / "kept" / "{session_id}"}
    session = Session("context-filesystem", session_id="s", options=options)
    assert str(session.store.root) == str(tmp_path / "kept" / "s")


def test_one_number_for_all_is_that_of_the_ephemeral_step() -> None:
    compiled = changed("context-filesystem", ephemeral_keep_recent=1)
    select = step(compiled, "retire").select
    assert (select.ephemeral, select.min_tokens, select.keep_recent.items) == (True, 0, 1)
    place = compiled.place(("steps", "retire", "select", "keep_recent"))
    assert str(place) == "Session, option ephemeral_keep_recent"


def test_the_options_of_a_compaction() -> None:
    compiled = changed(
        "context-compact",
        threshold=5000,
        context_window=90_000,
        model="claude-some",
        summary_max_words=300,
        max_restore_files=2,
        max_restore_tokens_per_file=30,
        max_restore_tokens_total=40,
        work_dir=Path("/work"),
        reads_file={"Read": "file_path", "cat": ("path", "file")},
    )
    compaction = compiled.policy.compaction
    assert compiled.model.context_window == 90_000
    assert (compaction.summary.model, compaction.summary.max_words) == ("claude-some", 300)
    restore = compaction.restore
    assert (restore.max_files, restore.max_tokens_per_file) == (2, 30)
    assert (restore.max_tokens_total, restore.work_dir) == (40, "/work")
    [gates] = step(compiled, "summarise").when
    assert gates.tokens.at_least == 5000
    assert compiled.path_fields("Read") == ("file_path",)
    assert compiled.path_fields("cat") == ("path", "file")
    assert compiled.path_fields("read_file") == ("path",)


@pytest.mark.parametrize("name", preset_names())
def test_a_policy_that_was_read_takes_options_too(name: str) -> None:
    options = {"context_window": 77_000}
    from_file = OffloadPolicy.of(name, options=options)
    from_value = OffloadPolicy.of(load_policy(name), options=options)
    from_compiled = OffloadPolicy.of(OffloadPolicy.load(name), options=options)
    assert from_file.policy == from_value.policy == from_compiled.policy
    assert from_file.model.context_window == 77_000


def test_a_policy_that_code_has_changed_keeps_the_change() -> None:
    compiled = OffloadPolicy.load("context-filesystem")
    store = compiled.policy.store.model_copy(update={"sync": "never"})
    other = OffloadPolicy(compiled.policy.model_copy(update={"store": store}), root=compiled.tree)
    assert OffloadPolicy.of(other, options={"context_window": 9000}).store.sync == "never"


def test_an_unknown_option_is_an_error_with_the_nearest_name() -> None:
    with pytest.raises(UnknownOptionError, match="did you mean 'offload_token_threshold'") as error:
        changed("coding-agent", offload_token_treshold=5)
    assert error.value.function == "Session"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"offload_enabled": "no"}, "option offload_enabled: PC103: expected True or False"),
        ({"offload_token_threshold": "many"}, "option offload_token_threshold: PC1"),
        ({"max_restore_files": -1}, "option max_restore_files: PC105: expected 0 or more"),
        ({"reads_file": "Read"}, "option reads_file: PC103: expected a map"),
        ({"ephemeral_keep_recent": -1}, "option ephemeral_keep_recent: PC105: expected 0 or more"),
        ({"context_window": {"tokens": 3}}, "option context_window: PC103"),
    ],
)
def test_a_wrong_value_names_its_option(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(PolicyError, match=re.escape(problem)):
        changed("context-filesystem", **options)


@pytest.mark.parametrize(
    ("name", "option", "value", "problem"),
    [
        (
            "coding-agent",
            "ephemeral_keep_recent",
            1,
            "coding-agent has `select: {ephemeral: true}`",
        ),
        ("context-offload", "threshold", 1, "context-offload has `do: compact`"),
        ("coding-agent", "offload_ratio_threshold", 0.5, "coding-agent has a gate `ratio`"),
    ],
)
def test_an_option_without_effect_is_an_error(
    name: str, option: str, value: float, problem: str
) -> None:
    sentence = f"Session, option {option}: PC107: no step of the policy {problem}"
    with pytest.raises(PolicyError) as error:
        changed(name, **{option: value})
    assert str(error.value) == sentence


def test_a_session_decides_by_its_options(tmp_path: Path) -> None:
    messages = session_of(*[f"{n} " * 200 for n in range(4)], tool="Read")
    hints = {"Read": {"keep_recent": 3}}
    for kept in (0, 1, 2):
        options: AgentOptions = {"ephemeral_keep_recent": kept}
        session = Session(
            "context-filesystem", root=tmp_path / str(kept), hints=hints, options=options
        )
        session.apply(messages)
        assert sum(item.offloaded for item in session.items) == 4 - kept


def test_the_page_lists_each_option_with_the_keys_that_it_sets() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == list(AgentOptions.__annotations__)


def test_compact_messages_takes_each_option_of_its_document_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \|", page[page.index("\n| `threshold`") :], re.MULTILINE)
    assert set(rows) <= CompactOptions.__annotations__.keys()
    assert set(rows) == CompactOptions.__annotations__.keys() & AgentOptions.__annotations__.keys()


@pytest.mark.parametrize("value", [True, False, {"sections": True, "min_words": 5}])
def test_the_check_of_a_summary_is_that_of_the_policy(value: Any) -> None:
    written = f"compaction: {{summary: {{check: {json.dumps(value)}}}}}"
    found = changed("context-compact", summary_check=value).policy.compaction.summary.check
    assert found == policy(written).policy.compaction.summary.check


def test_the_time_of_a_summary_is_that_of_all_attempts_and_of_one() -> None:
    summary = changed("context-compact", summary_timeout="90s").policy.compaction.summary
    assert (str(summary.timeout), str(summary.total_timeout)) == ("90s", "90s")
