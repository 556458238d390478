from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from policyctx.errors import PolicyError
from policyctx.policy.loading import parsed_policy
from policyctx.policy.models import Policy
from policyctx.policy.models.gates import Gates
from policyctx.policy.nodes import keys_below
from policyctx.policy.sources import PolicySource
from tests.policies import HEAD

VARIABLES = {"WORD": "word", "NESTED": "${X}", "BELOW": "-5", "BRACE": "a {b"}


def wrong_policies() -> list[tuple[str, list[str]]]:
    text = (Path(__file__).parent / "wrong_policies.txt").read_text(encoding="utf-8")
    cases = []
    text = text.replace("EVERY GATE", ", ".join(Gates.model_fields))
    for block in text.split("\n\n")[1:]:
        lines = block.strip("\n").split("\n")
        policy = [line for line in lines if not line.startswith("=> ")]
        expected = [line.removeprefix("=> ") for line in lines if line.startswith("=> ")]
        cases.append(("\n".join(policy), expected))
    return cases


def diagnosed(text: str) -> list[str]:
    with pytest.raises(PolicyError) as raised:
        parsed_policy(PolicySource("p.yaml", HEAD + text), variables=VARIABLES)
    return [str(diagnostic).removeprefix("p.yaml:") for diagnostic in raised.value.diagnostics]


@pytest.mark.parametrize(("text", "expected"), wrong_policies(), ids=lambda case: str(case)[:60])
def test_a_wrong_policy_gets_exactly_these_diagnostics(text: str, expected: list[str]) -> None:
    assert diagnosed(text) == expected


def test_the_list_of_wrong_policies_is_long() -> None:
    cases = wrong_policies()
    assert len(cases) >= 60
    assert all(expected for _, expected in cases)


def test_all_errors_of_a_file_are_reported_together_in_order() -> None:
    text = """\
steps:
  - name: a
    do: oflload
    select: {tols: [x], min_tokens: 1, min_chars: x}
stor: 1
items: {tool_reslt: {}}
"""
    places = [diagnostic.split(": ")[1] for diagnostic in diagnosed(text)]
    assert places == ["PC104", "PC101", "PC107", "PC103", "PC101", "PC111"]


@given(st.sampled_from(sorted(keys_below(Policy))), st.data())
def test_a_misspelt_key_is_caught_with_the_right_suggestion(
    key: tuple[str, ...], data: st.DataObject
) -> None:
    *above, name = key
    typo = data.draw(typos(name))
    assume(typo not in {k[-1] for k in keys_below(Policy) if k[:-1] == key[:-1]})
    found = diagnosed(flow([*above, typo]))
    [unknown] = [d for d in found if "PC101" in d and repr(typo) in d]
    assert f"did you mean {name!r}?" in unknown


def flow(path: list[str]) -> str:
    """A policy with nothing in it but the key at this path."""
    text = "1"
    for part in reversed(path):
        in_list = f"[{text}]" if part in {"steps", "sections", "above"} else text
        text = f"{{{'x' if part == '*' else part}: {in_list}}}"
    return text[1:-1]


def typos(word: str) -> st.SearchStrategy[str]:
    """One letter left out of a word, doubled, or swapped; a single letter could mean anything."""
    at = st.integers(0, len(word) - 2)
    return st.one_of(
        at.map(lambda i: word[:i] + word[i + 1 :]),
        at.map(lambda i: word[: i + 1] + word[i:]),
        at.map(lambda i: word[:i] + word[i + 1] + word[i] + word[i + 2 :]),
    ).filter(lambda typo: typo != word and len(typo) > 1)


def is_refused_in_our_words(text: str) -> bool:
    """Parse, and say whether it was refused; nothing but a `PolicyError` may come out."""
    try:
        parsed_policy(PolicySource("p.yaml", text))
    except PolicyError as error:
        return bool(error.diagnostics) and "pydantic" not in str(error)
    return True


@given(st.binary(max_size=200))
def test_random_bytes_are_refused_as_a_policy(raw: bytes) -> None:
    assert is_refused_in_our_words(raw.decode("utf-8", "replace"))


NAMES = sorted({key[-1] for key in keys_below(Policy)})
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(sorted(Policy.model_fields)), VALUES, max_size=6))
def test_random_values_under_known_keys_are_refused_as_a_policy(value: dict[str, object]) -> None:
    assert is_refused_in_our_words(yaml.safe_dump({"apiVersion": "policyctx/v1", **value}))


HOSTILE = (
    "[" * 65_000, "{a: " * 16_000, "- " * 32_000, "a: b\n" * 13_000,
    "a: [" + "x, " * 21_000 + "]", "? " * 32_000, "'" * 65_000, "a: |\n" + " x\n" * 20_000,
    "!" * 65_000, "a" * 65_000 + ": 1",
)  # fmt: skip
# A fork for each text has figures of its own, by the operating system.
MEASURED = """
import json, os, resource, sys
from policyctx.errors import PolicyError
from policyctx.policy.loading import parsed_policy
from policyctx.policy.sources import PolicySource
for text in json.load(sys.stdin):
    child = os.fork()
    if child == 0:
        before = resource.getrusage(resource.RUSAGE_SELF)
        try: parsed_policy(PolicySource('p.yaml', text))
        except PolicyError: pass
        after = resource.getrusage(resource.RUSAGE_SELF)
        print(after.ru_utime - before.ru_utime, after.ru_maxrss - before.ru_maxrss, flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""


@pytest.fixture(scope="module")
def hostile_costs() -> dict[str, tuple[float, float]]:
    """The seconds and the kilobytes that each hostile text takes."""
    run = subprocess.run(
        [sys.executable, "-c", MEASURED],
        input=json.dumps(HOSTILE), capture_output=True, text=True, check=True,
    )  # fmt: skip
    lines = (line.split() for line in run.stdout.splitlines())
    costs = ((float(seconds), float(kilobytes)) for seconds, kilobytes in lines)
    return dict(zip(HOSTILE, costs, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:8])
def test_hostile_texts_take_little_time_and_memory(
    text: str, hostile_costs: dict[str, tuple[float, float]]
) -> None:
    seconds, kilobytes = hostile_costs[text]
    assert seconds < 1
    assert kilobytes < 100_000


def test_a_key_that_has_no_value_is_as_if_it_were_not_there() -> None:
    text = "apiVersion: policyctx/v1\nname: p\nstore: {spill_to: ~}\nredact: {}\n"
    assert parsed_policy(PolicySource("p.yaml", text)).store.spill_to is None
