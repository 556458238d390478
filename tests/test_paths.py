from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyctx.paths import (
    FreePaths,
    numbered,
    path_from,
    path_parts,
    relative_path,
    safe_part,
)

DEFAULT = "{item_type}/{tool_name}/{item_id}.{ext}"


def given_values(**given: str | None) -> dict[str, str | None]:
    usual = {
        "item_type": "tool_result",
        "tool_name": "Bash",
        "item_id": "toolu_01",
        "tool_use_id": "toolu_01",
        "session_id": "s",
        "ext": "md",
    }
    return {**usual, **given}


def path(template: str, **given: str | None) -> str:
    return relative_path(path_parts(template), given_values(**given))


def test_a_result_without_an_id_is_named_by_its_tool_and_its_content() -> None:
    template = "{session_id}/{tool_use_id}.md"
    first, second = (
        relative_path(
            path_parts(template), given_values(tool_name="get_weather", tool_use_id=None), text
        )
        for text in ("rain", "sun")
    )
    assert first == f"s/get_weather-sha256-{hashlib.sha256(b'rain').hexdigest()[:16]}.md"
    assert second == f"s/get_weather-sha256-{hashlib.sha256(b'sun').hexdigest()[:16]}.md"
    nameless = given_values(tool_name=None, tool_use_id=None)
    assert relative_path(path_parts(template), nameless, "x").startswith("s/sha256-")


def test_the_template_is_filled_in() -> None:
    assert path(DEFAULT) == "tool_result/Bash/toolu_01.md"


def test_a_folder_with_only_an_empty_field_is_left_out() -> None:
    assert path(DEFAULT, tool_name=None) == "tool_result/toolu_01.md"


def test_a_folder_of_more_than_the_field_stays() -> None:
    found = path("x-{tool_name}/{item_id}", tool_name=None)
    assert found.endswith("/toolu_01")
    assert found.startswith("x-sha256-")


@pytest.mark.parametrize(
    ("value", "part"),
    [
        ("toolu_01AbC.x-y", "toolu_01AbC.x-y"),
        ("..", "%2E%2E"),
        (".", "%2E"),
        ("...", "%2E%2E%2E"),
        ("a/b", "a%2Fb"),
        ("C:\\x", "C%3A%5Cx"),
        ("a\0\n", "a%00%0A"),
        ("读", "%E8%AF%BB"),
        ("\ud800", "%ED%A0%80"),
    ],
)
def test_path_separators_and_special_names_are_percent_encoded(value: str, part: str) -> None:
    assert safe_part(value) == part


@pytest.mark.parametrize(
    ("folder", "path", "found"),
    [
        ("/home/me", "/home/me/out/a.md", "out/a.md"),
        ("/home/me/", "/home/me/out/a.md", "out/a.md"),
        ("/", "/out/a.md", "out/a.md"),
        ("/home/me", "/home/me/../out/a.md", "../out/a.md"),
        ("/home/me", "/home/mean/a.md", "/home/mean/a.md"),
        ("/home/me", "/else/a.md", "/else/a.md"),
        ("/home/me", "", ""),
        ("", "/else/a.md", "/else/a.md"),
        ("C:\\me", "C:\\me\\out/a.md", "out/a.md"),
    ],
)
def test_a_path_starts_from_a_folder_that_it_is_in(folder: str, path: str, found: str) -> None:
    assert path_from(folder, path) == found


@pytest.mark.parametrize("value", ["", "x" * 121, "读" * 20])
def test_empty_and_too_long_values_are_named_by_their_hash(value: str) -> None:
    expected = hashlib.sha256(value.encode()).hexdigest()[:16]
    assert safe_part(value) == f"sha256-{expected}"


def test_120_bytes_are_not_too_long() -> None:
    assert safe_part("x" * 120) == "x" * 120


@given(st.text(alphabet=st.characters(codec=None)))
def test_no_value_leaves_its_place_in_the_path(value: str) -> None:
    parts = path(DEFAULT, tool_name=value, item_id=value).split("/")
    assert len(parts) == 3
    assert "".join(parts).isascii()
    assert not {"", ".", ".."} & set(parts)
    assert all(len(part) <= 128 for part in parts)


@given(st.text(), st.text())
def test_two_values_have_two_names(one: str, other: str) -> None:
    assert (safe_part(one) == safe_part(other)) == (one == other)


@pytest.mark.parametrize(
    ("name", "number", "result"),
    [
        ("a/b.md", 0, "a/b.md"),
        ("a/b.md", 2, "a/b-2.md"),
        ("a.d/b", 1, "a.d/b-1"),
        ("a/.md", 1, "a/.md-1"),
        ("b.x.md", 1, "b.x-1.md"),
    ],
)
def test_a_number_stands_before_the_extension(name: str, number: int, result: str) -> None:
    assert numbered(name, number) == result


def test_each_path_is_assigned_once() -> None:
    paths = FreePaths()
    given_out = [paths.take(name) for name in ("a.md", "a.md", "a-1.md", "a.md")]
    assert given_out == ["a.md", "a-1.md", "a-1-1.md", "a-2.md"]


def test_a_rejected_path_is_skipped() -> None:
    assert FreePaths().take("a.md", passes=lambda name: name not in {"a.md", "a-1.md"}) == "a-2.md"


def test_a_hundred_thousand_items_of_one_name_stay_fast_enough_to_finish() -> None:
    paths = FreePaths()
    assert [paths.take("a") for _ in range(100_000)][-1] == "a-99999"


@pytest.mark.parametrize(
    ("value", "part"),
    [
        ("toolu_01AbC.x-y", "toolu_01AbC.x-y"), ("..", "__"), ("a/../b", "a_.._b"),
        ("a\0\n", "a__"), ("C:\\x", "C__x"), ("读a", "_a"), ("\ud800", "_"),
    ],
)  # fmt: skip
def test_unsafe_signs_may_become_an_underscore(value: str, part: str) -> None:
    assert safe_part(value, "_") == part


@given(st.text(alphabet=st.characters(codec=None)))
def test_an_underscore_keeps_every_value_in_its_place(value: str) -> None:
    values = given_values(tool_name=value, item_id=value)
    parts = relative_path(path_parts(DEFAULT), values, escape="_").split("/")
    assert len(parts) in {2, 3}
    assert "".join(parts).isascii()
    assert not {"", ".", ".."} & set(parts)
    assert all(len(part) <= 128 for part in parts)
