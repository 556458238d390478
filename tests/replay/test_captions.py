from __future__ import annotations

import pytest

from policyctx.replay.simulated import first_words
from tests.conversations import call, results, user
from tests.replay.sessions import recording


def words(*texts: str) -> str:
    return first_words(recording([user(text) for text in texts]))


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Fix the login.\n\n It fails.", "Fix the login. It fails."),
        ("<env>Linux</env> Fix\tit", "Fix it"),
        ('<env a="b">\nLinux <os>x</os>\n</env>\nFix it', "Fix it"),
        ("<command>clear</command>", "clear"),
        ("<script>alert(1)</script>", "alert(1)"),
        (f"Fix it <notes>{'long ' * 9_000}</notes>", "Fix it"),
        ("if a < b and c > d", "if a < b and c > d"),
        (
            "# Fix: the login\n\n## Context\nIt **fails** in `auth.py`.",
            "Fix: the login Context It fails in auth.py.",
        ),
        ("- Fix it\n> said\n```sh\nls -l\n```", "Fix it said ls -l"),
        (
            "#12 fails: 2 ** 3, a**b, src/** and **/*.py",
            "#12 fails: 2 ** 3, a**b, src/** and **/*.py",
        ),
        ("修复登录页面的错误", "修复登录页面的错误"),
        ("\u202etxt.\u2066exe\ud800\0", "txt.exe"),
        ("", ""),
    ],
)
def test_a_title_is_what_the_user_wrote_in_one_line(text: str, title: str) -> None:
    assert words(text) == title


def test_the_first_message_with_words_of_a_person_counts() -> None:
    assert words("<env>Linux</env>", "", "Fix it", "and that") == "Fix it"


def test_long_words_are_shortened_at_a_space_and_others_in_between() -> None:
    assert words("word " * 40) == f"{'word ' * 15}word…"
    assert words("错" * 200) == f"{'错' * 79}…"
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    assert words("x" * 77 + family * 3) == f"{'x' * 77}\U0001f468…"


def test_a_session_in_which_no_user_speaks_has_no_title() -> None:
    assert first_words(recording([call("a", "Read", {})], [results(("a", "found"))])) == ""
    assert first_words(recording()) == ""
