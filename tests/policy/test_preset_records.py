"""The values of presets that are kept as JSON: what reading the preset gives, and when not used."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path

import pytest

from policyctx import OffloadPolicy, Session
from policyctx.definitions.gates import Comparison, Gate
from policyctx.planning.gates import gates_of
from policyctx.policy.loading import parsed_policy
from policyctx.policy.models import Policy
from policyctx.policy.presets import Record, RecordReader, digest_of, preset_record, recorded_preset
from policyctx.policy.sources import PolicySource, policy_source, preset_names


def recorded(name: str) -> Record:
    found = recorded_preset(policy_source(name))
    assert found is not None
    return found.values


@pytest.mark.parametrize("name", preset_names())
def test_a_recorded_preset_is_the_policy_that_its_text_says(name: str) -> None:
    policy = parsed_policy(policy_source(name))
    compiled = OffloadPolicy.load(name)
    assert isinstance(compiled.settings, Record)
    assert compiled.settings == policy
    assert compiled.settings.as_model().model_fields_set == policy.model_fields_set
    assert compiled.digest == digest_of(policy) == OffloadPolicy(policy).digest
    assert compiled.policy == policy
    assert compiled.tree is not None
    for record, step in zip(compiled.all_steps, policy.steps, strict=True):
        assert record.action is step.action
        assert record.model_fields_set == step.model_fields_set
        assert [gate[0::2] for gate in gates_of(record)] == [g[0::2] for g in gates_of(step)]
        for one, other in zip(gates_of(record), gates_of(step), strict=True):
            assert one.given.noted(Comparison) == type(other.given).noted(Comparison)
        for gates, model in zip(record.when, step.when, strict=True):
            assert gates.noted(Gate) == model.noted(Gate)


@pytest.fixture
def preset(tmp_path: Path) -> PolicySource:
    """A preset over a fragment that names a variable, with the file of its values."""
    (tmp_path / "base.yaml").write_text(
        "apiVersion: policyctx/v1\nname: base\nstore: {root: '${PC_ROOT:-elsewhere}'}\n"
    )
    path = tmp_path / "own.yaml"
    path.write_text("apiVersion: policyctx/v1\nname: own\nextends: ./base.yaml\n")
    source = policy_source(path)
    (tmp_path / "records").mkdir()
    text = json.dumps(preset_record(source, tmp_path))
    (tmp_path / "records/own.json").write_text(text)
    return source


def test_the_values_of_a_preset_are_found_beside_it(preset: PolicySource, tmp_path: Path) -> None:
    found = recorded_preset(preset, tmp_path)
    assert found is not None
    assert found.values.store.root == "elsewhere"


def test_a_preset_is_read_where_the_environment_sets_a_variable_that_it_names(
    preset: PolicySource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PC_ROOT", "here")
    assert recorded_preset(preset, tmp_path) is None


@pytest.mark.parametrize("change", ["\n# changed\n", None])
def test_a_preset_is_read_where_a_text_that_it_extends_has_changed(
    preset: PolicySource, tmp_path: Path, change: str | None
) -> None:
    base = tmp_path / "base.yaml"
    if change is None:
        base.unlink()
    else:
        base.write_text(base.read_text() + change)
    assert recorded_preset(preset, tmp_path) is None


def test_another_text_at_the_place_of_a_preset_is_read() -> None:
    source = policy_source("context-offload")
    assert source.path is not None
    changed = PolicySource(source.name, source.text + "\nmin_chars: 7\n", source.path)
    assert recorded_preset(changed) is None


def test_a_file_named_like_a_preset_is_no_preset(tmp_path: Path) -> None:
    path = tmp_path / "coding-agent.yaml"
    path.write_text(policy_source("coding-agent").text, encoding="utf-8")
    assert recorded_preset(policy_source(path)) is None


def test_a_record_is_frozen_copied_and_pickled() -> None:
    record = recorded("coding-agent")
    with pytest.raises(AttributeError, match="frozen"):
        record.name = "other"
    with pytest.raises(AttributeError, match="'Policy' object has no attribute 'nam'"):
        _ = record.nam
    assert pickle.loads(pickle.dumps(record)) == record == copy.deepcopy(record)  # noqa: S301
    renamed = record.model_copy(update={"name": "other"})
    assert renamed != record
    model = renamed.as_model()
    assert isinstance(model, Policy)
    assert renamed.model_dump_json() == model.model_dump_json()


def test_a_session_of_a_recorded_preset_takes_hints(tmp_path: Path) -> None:
    session = Session("coding-agent", root=tmp_path, hints={"Bash": {"keep_recent": 3}})
    [step] = session.policy.steps("model_call")[:1]
    treatment = session.policy.treatment(step, "tool_result", "Bash")
    assert treatment is not None
    assert treatment.keep_recent is not None


def test_every_value_that_is_not_json_is_read_back() -> None:
    text = """
apiVersion: policyctx/v1
name: p
model: {cache: {ttl: 1h}}
store: {retention: {max_age: 30d, max_bytes: 5GB}}
items: {tool_result: {offload: true, min_tokens: 12.5%}}
compaction: {min_new: 20%}
steps: [{name: s, do: offload, when: {ratio: {at_least: 20%}, idle: {over: 90s}}}]
"""
    source = PolicySource("p.yaml", text, "/somewhere/p.yaml")
    record = preset_record(source)
    assert RecordReader(record["models"]).value(record["values"]) == parsed_policy(source)
