from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyctx.replay.regret.holders import Replies
from policyctx.replay.regret.strings import (
    GRAM,
    HINT,
    LIKELY,
    SURE,
    Distinct,
    Memo,
    plain,
    stands_in,
    words,
)

EVERYTHING = st.text() | st.text(st.characters(codec=None), max_size=80)


def strings_of(text: str) -> Sequence[Distinct]:
    """What is particular in a text of which all words were lost, and are rare."""
    known = frozenset(words(text))
    return Replies(known, Memo(), rare=known, anchors=known).read(text, 1, stays=True).strings


def weights(text: str) -> dict[str, float]:
    return {one.text: one.weight for one in strings_of(text)}


@pytest.mark.parametrize(
    "token",
    [
        "src/core/tax_rates.py",
        "./notes.d/today",
        "C:\\data\\beacon\\flatten_log.txt",
        "https://beacon.example.org/flatten/12",
        "ORD-58213-KX",
        "b7e41f9a02",
        "mira.holt@northwind.example",
        "10.20.131.74",
        "2031-11-17",
        "38,451.20",
        "7348213",
        "reconcile_the_old_ledger",
        "53.47",
        "RWQK5T",
        "LQWVRT",
    ],
)
def test_unique_names_are_sure_evidence(token: str) -> None:
    assert weights(f"see {token}, then stop.")[token] == SURE


@pytest.mark.parametrize(
    "token", ["tax_rates", "flattenLedger", "8081", "v1.2b", "RTK204", ".ledger-rules"]
)
def test_names_that_could_coincide_are_likely_evidence(token: str) -> None:
    assert weights(f"see {token}, then stop.")[token] == LIKELY


@pytest.mark.parametrize("token", ["166", "263", "900px", "35ms"])
def test_short_numbers_and_measures_are_hints(token: str) -> None:
    assert weights(f"see {token}, then stop.")[token] == HINT


@pytest.mark.parametrize("token", ["100", "404", "511", "512", "1023", "4096", "2024", "1st"])
def test_familiar_numbers_are_not_even_hints(token: str) -> None:
    assert weights(f"see {token}, then stop.") == {}


@pytest.mark.parametrize(
    "text",
    [
        "in 2024", "100 rows", "2,000 rows", "2,0001 rows", "50%", "and/or", "read/write",
        "e.g. this", "i.e.", "UTF-8", "sha256", "python3", "anchor.type", "Map.new", "the word",
        "__name__", "x = 1", "BASE64", "SELECT", "3.47",
    ],
)  # fmt: skip
def test_common_text_is_not_evidence(text: str) -> None:
    assert sum(weights(text).values()) < SURE


def test_a_line_of_several_words_is_sure_evidence() -> None:
    line = "Refunds above the limit need two signatures."
    assert weights(f"rules:\n  {line}\n")[line] == SURE


def test_a_line_of_punctuation_is_not_evidence() -> None:
    assert weights("== == == ==== ==== ==== ==== ==== ====") == {}


def test_text_without_spaces_is_split_into_grams() -> None:
    text = "退款审批必须由主管签字"
    grams = [text[i : i + GRAM] for i in range(len(text) - GRAM + 1)]
    assert list(weights(text)) == grams
    assert sum(weights(text[: GRAM + 1]).values()) < SURE <= sum(weights(text[: GRAM + 2]).values())


def test_only_strings_of_known_words_are_found() -> None:
    known = frozenset({"ORD", "58213", "KX"})
    replies = Replies(known, Memo(), rare=known, anchors=known)
    found, _ = replies.read("see ORD-58213-KX and ORD-11111-ZZ", 1, stays=True)
    assert [one.text for one in found] == ["ORD-58213-KX"]


@pytest.mark.parametrize(
    "text",
    ["see ORD-58213-KX", "Refunds above the limit need two signatures.", "退款审批必须由主管"],
)
@pytest.mark.parametrize(("call", "stays", "again"), [(2, True, 0), (2, False, 1), (1, True, 1)])
def test_strings_of_an_earlier_visible_reply_are_not_searched_again(
    text: str, call: int, stays: bool, again: int
) -> None:
    known = frozenset(words(text))
    replies = Replies(known, Memo(), rare=known, anchors=known)
    first = replies.read(text, 1, stays=stays).strings
    assert first
    # The items of one reply were written without one another.
    assert list(replies.read(f"so: {text}\n{text}", call, stays=True).strings) == [*first] * again


def test_a_string_of_only_common_words_is_not_evidence() -> None:
    text = "see ORD-58213-KX"
    replies = Replies(frozenset(words(text)), Memo(), rare=frozenset(), anchors=frozenset())
    assert replies.read(text, 1, stays=True) == ([], [])


def test_a_string_that_is_a_part_of_several_words_is_found_once() -> None:
    text = "first.parse_row() and second.parse_row()"
    found = strings_of(text)
    assert [one.text for one in found] == ["parse_row"]


@pytest.mark.parametrize(
    ("wanted", "text", "found"),
    [
        ("58213", "order 58213.", True),
        ("58213", "order 582134", False),
        ("58213", "order 158213", False),
        ("58213", "158213 58213", True),
        ("58213", "订单58213号", True),
        ("a_b", "xa_b", False),
        ("src/x", "/repo/src/x/y", True),
    ],
)
def test_a_string_matches_only_at_word_boundaries(wanted: str, text: str, found: bool) -> None:
    assert stands_in(wanted, text) is found


def test_json_is_read_as_its_keys_and_values() -> None:
    text = '{"path": "a\\nb", "n": 7, "deep": [{"x": null, "y": true, "z": 1.5}]}'
    assert plain(text) == "path\na\nb\nn\n7\ndeep\nx\ny\nz\n1.5"


@pytest.mark.parametrize("text", ["[1, 2", "{not json}", "[" * 5_000 + "]" * 5_000, "plain"])
def test_text_that_is_not_json_is_unchanged(text: str) -> None:
    assert plain(text) == text


@given(EVERYTHING)
def test_any_text_has_strings_that_stand_in_it(text: str) -> None:
    for one in strings_of(text):
        assert one.text in text
        assert 0 < one.weight <= SURE
        assert one.words


@given(EVERYTHING, EVERYTHING)
def test_words_are_found_again_wherever_they_stand(before: str, after: str) -> None:
    text = f"{before} ORD-58213-KX 退款审批必须 {after}"
    assert {"ORD", "58213", "KX", "退款审批必须"} <= set(words(text))
