from __future__ import annotations

import math
from typing import Any

import pytest

from policyctx.errors import PolicyError
from policyctx.policy.nodes import Node, read_yaml
from policyctx.policy.sources import PolicySource


def read(text: str) -> Node:
    return read_yaml(PolicySource("p.yaml", text))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on", "on"),
        ("no", "no"),
        ("1:30", "1:30"),
        ("1_000", "1_000"),
        ("2026-01-02", "2026-01-02"),
        ("'1'", "1"),
        ("true", True),
        ("False", False),
        ("~", None),
        ("", None),
        ("12", 12),
        ("-7", -7),
        ("007", 7),
        ("0x1F", 31),
        ("0o17", 15),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("-.inf", -math.inf),
        ("10%", "10%"),
        ("9" * 400, "9" * 400),
    ],
)
def test_scalars_follow_the_core_schema_of_yaml_1_2(text: str, value: Any) -> None:
    found = read(f"key: {text}").plain()["key"]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("a: &x 1", "p.yaml:1:4: PC003: anchors and aliases are not allowed"),
        ("a: *x", "p.yaml:1:4: PC003: anchors and aliases are not allowed"),
        ("a: !!str 1", "p.yaml:1:4: PC003: tags are not allowed"),
        ("a:\n  <<: {b: 1}", "p.yaml:2:3: PC003: merge keys are not allowed"),
        ("a: 1\nb: 2\na: 3", "p.yaml:3:1: PC004: the key 'a' stands twice"),
        ("a: {1: 2}", "p.yaml:1:5: PC005: a key must be a string"),
        ("[a]: 2", "p.yaml:1:1: PC005: a key must be a string"),
        ("a: " + "[" * 40, "p.yaml:1:35: PC006: nested deeper than 32 levels"),
        ("a: [1", "p.yaml:2:1: PC002: not YAML: did not find expected ',' or ']'"),
        ("a: 1\n b: 2", "p.yaml:2:3: PC002: not YAML: mapping values are not allowed"),
        ("a: 1\n---\nb: 2", "p.yaml:2:1: PC002: a policy is one document"),
        ("a: \x07", "p.yaml:1:4: PC002: the character U+0007 is not allowed in YAML"),
    ],
)
def test_forbidden_yaml_features_are_rejected_at_their_place(text: str, error: str) -> None:
    with pytest.raises(PolicyError) as raised:
        read(text)
    assert str(raised.value).startswith(error)


def test_every_key_and_value_has_a_place() -> None:
    path, node = read("a:\n  - b: 1\n    c: [x, y]\n").deepest(("a", 0, "c", 1))
    assert path == ("a", 0, "c", 1)
    assert (str(node.place), node.place.source_line) == ("p.yaml:3:12", "    c: [x, y]")
    _, node = read("a:\n  - b: 1\n    c: [x, y]\n").deepest(("a", 0, "c"))
    assert str(node.key) == "p.yaml:3:5"


def test_a_missing_key_has_the_place_of_its_parent() -> None:
    _, node = read("a:\n  b: 1\n").deepest(("a", "missing"))
    assert str(node.place) == "p.yaml:2:3"


def test_an_empty_file_is_nothing() -> None:
    assert read("").plain() is None


def test_recoverable_errors_are_reported_together() -> None:
    with pytest.raises(PolicyError) as raised:
        read("a: &x 1\nb: *x\nb: 2\n<<: {}\nc: !t 1\n1: 2\nb: 3")
    assert [f"{d.place.line} {d.code}" for d in raised.value.diagnostics] == [
        "1 PC003", "2 PC003", "3 PC004", "4 PC003", "5 PC003", "6 PC005", "7 PC004",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("a:\n\tb: 1", "indent with spaces, not with a tab"),
        ("a: @team", "quote a text with '@'"),
        ("a: eight: nine", "quote a text that has a colon and a space in it"),
        ("a: {b: 1\nc: 2", "the { at 1:4 may not be closed"),
        ('a: "open', 'the " at 1:4 may not be closed'),
        ("a: {path} moved\nb: 1", "quote a text that begins with `{` or `[`; indent keys"),
        ("*: 1", "quote a text that begins with `*` or `&`"),
        ('a: "C:\\dir"', "use single quotes where a backslash is meant as one"),
        ("a: {b: 1，c: 2}\nd: {e：1", "'，' is a full-width sign; use ','"),
    ],
)
def test_a_parser_error_has_a_hint(text: str, hint: str) -> None:
    with pytest.raises(PolicyError) as raised:
        read(text)
    assert raised.value.diagnostics[-1].hint.startswith(hint)
