from __future__ import annotations

import json
import re

import pytest

from policyctx.replay.report.page import inline_script, json_script, visible_values
from tests.replay.report.sessions import HOSTILE


@pytest.mark.parametrize(
    "text", ["</script>", "<!--", "&amp;", "<script>", "]]>", "\u2028\u2029", "中文", "\0\r\n\"\\'"]
)
def test_values_round_trip_and_are_not_markup(text: str) -> None:
    found = re.fullmatch(
        r'<script type="application/json" id="x">([^<>&]*)</script>',
        json_script("x", {text: [text]}),
    )
    assert found
    assert not {"\u2028", "\u2029"} & {*found[1]}
    assert json.loads(found[1]) == {text: [text]}


def test_a_page_shows_hidden_and_control_characters_as_escapes() -> None:
    odd = "a\x1b[2J\u202e\nb"
    shown = "a\\x1b[2J\\u202e\nb"
    assert visible_values({odd: [odd, 1, None, True, 2.5]}) == {shown: [shown, 1, None, True, 2.5]}


def test_a_lone_surrogate_can_be_written() -> None:
    written = json_script("x", HOSTILE).encode("utf-8", "backslashreplace").decode()
    assert json.loads(written.partition(">")[2].rpartition("<")[0]) == HOSTILE


@pytest.mark.parametrize("source", ["a</script>", "a</SCRIPT ", "<!--", "'<script>'"])
def test_a_script_that_would_end_too_early_is_refused(source: str) -> None:
    with pytest.raises(ValueError, match="is not allowed in a page"):
        inline_script(source)


def test_a_script_is_hashed_as_a_browser_reads_it() -> None:
    assert inline_script("a\r\nb\rc") == inline_script("a\nb\nc")
