from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyctx.replay.regret.strings import GRAM, plain, rare_strings, start_of

EVERYTHING = st.text() | st.text(st.characters(codec=None), max_size=80)


def strings_of(text: str) -> list[str]:
    return list(rare_strings(text).values())


@pytest.mark.parametrize(
    "token",
    [
        "src/core/tax_rates.py",
        "https://beacon.example.org/flatten/12",
        "ORD-58213-KX",
        "b7e41f9a02",
        "mira.holt@northwind.example",
        "10.20.131.74",
        "2031-11-17",
        "7348213",
        "48213",
        "E4821",
        "NRT418",
        "tax_rates",
        "flattenLedger",
        "bidSize",
        "MAX_LEDGERS",
    ],
)
@pytest.mark.parametrize("around", ["see {}, then stop.", '[{{"value": "{}"}}]', "订单{}号"])
def test_names_with_a_mark_and_numbers_are_rare(token: str, around: str) -> None:
    assert token in strings_of(around.format(token))


@pytest.mark.parametrize(
    "text",
    [
        "in 2024", "100 rows", "2,000 rows", "50%", "and/or", "e.g. this", "i.e.", "UTF-8",
        "python3", "the word", "x = 1", "BASE64", "SELECT", "3.47", "keep-going", "notwithstanding",
        "[A-Za-z_]", "[a-zA-Z0-9]+",
        "== == == ==== ==== ==== ==== ==== ====",
        "|---------|-------------|--------------|", "────────────────────────────────",
    ],
)  # fmt: skip
def test_common_text_is_not_rare(text: str) -> None:
    assert strings_of(text) == []


@pytest.mark.parametrize("before", ["", "  ", "12\t", "  12\u2192", "src/rules.md:12:", "12: "])
def test_a_line_is_rare_without_its_number(before: str) -> None:
    line = "Refunds above the limit need two signatures."
    assert line in strings_of(f"rules:\n{before}{line}\n")
    assert line[:20] not in strings_of(f"rules:\n{before}{line[:20]}\n")


def test_the_parts_of_a_path_are_rare_by_themselves() -> None:
    assert strings_of("src/core/tax_rates.py:48213") == [
        "src/core/tax_rates.py:48213", "tax_rates", "48213",
    ]  # fmt: skip


def test_a_string_is_the_same_with_other_separators_and_in_other_case() -> None:
    [one], [other] = rare_strings("tax_rates_of"), rare_strings("TaxRatesOf")
    assert one == other


def test_text_without_spaces_is_split_into_grams() -> None:
    text = "退款审批必须由主管签字123"
    parts = [text[i : i + GRAM] for i in range(len(text) - GRAM + 1)]
    assert strings_of(text) == parts
    assert strings_of(text[: GRAM - 1]) == []


def test_without_keys_only_the_values_of_json_are_read() -> None:
    text = '{"payment_method": "credit_card_7"}'
    assert set(rare_strings(text).values()) == {"payment_method", "credit_card_7"}
    assert list(rare_strings(text, keys=False).values()) == ["credit_card_7"]


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
    assert (start_of(wanted, text) >= 0) is found


def test_json_is_read_as_its_keys_and_values() -> None:
    text = '{"path": "a\\nb", "n": 7, "deep": [{"x": null, "y": true, "z": 1.5}]}'
    assert plain(text) == "path\na\nb\nn\n7\ndeep\nx\ny\nz\n1.5"


@pytest.mark.parametrize("text", ["[1, 2", "{not json}", "[" * 5_000 + "]" * 5_000, "plain"])
def test_text_that_is_not_json_is_unchanged(text: str) -> None:
    assert plain(text) == text


@given(EVERYTHING)
def test_any_text_has_strings_that_stand_in_it(text: str) -> None:
    for one in strings_of(text):
        assert one in plain(text)


@given(EVERYTHING, EVERYTHING)
def test_strings_are_found_again_wherever_they_stand(before: str, after: str) -> None:
    text = f"{before} ORD-58213-KX 退款审批必须由主管 {after}"
    assert {"ORD-58213-KX", "退款审批必须由主"} <= set(strings_of(text))


@given(
    EVERYTHING, st.lists(st.sampled_from(["ORD-58213-KX", "src/a_b/12345", "taxRates", "x" * 40]))
)
def test_the_wanted_strings_of_a_text_are_those_of_all_that_are_wanted(
    text: str, more: list[str]
) -> None:
    read = "\n".join([text, *more])
    every = rare_strings(read)
    wanted = frozenset([*every][::2])
    assert [*rare_strings(read, wanted=wanted).items()] == [
        (key, one) for key, one in every.items() if key in wanted
    ]
