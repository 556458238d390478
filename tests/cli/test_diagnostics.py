from __future__ import annotations

import json

from policyctx.cli.output import Format, shown
from policyctx.errors import Diagnostic, Location


def diagnostic(line: str, column: int, hint: str = "") -> Diagnostic:
    place = Location("a,b:c.yaml", 7, column, line)
    return Diagnostic(place, "PC101", "100% wrong", hint)


def carets(line: str, column: int) -> str:
    """What is under the line, from its first character on."""
    text = shown([diagnostic(line, column)], Format.TEXT)
    return text.splitlines()[2].removeprefix("      | ")


def test_people_see_the_line_and_a_caret_under_the_word() -> None:
    assert shown([diagnostic("items: {tool: 1}", 9, "did you mean 'x'?")], Format.TEXT) == (
        "a,b:c.yaml:7:9: PC101: 100% wrong; did you mean 'x'?\n"
        "    7 | items: {tool: 1}\n"
        "      |         ^^^^"
    )


def test_the_caret_is_as_long_as_the_word() -> None:
    assert carets("a: 'two words', b", 4) == "   ^^^^^^^^^^^"
    assert carets("mcp__*: x", 1) == "^^^^^^"
    assert carets("a: {b: c}", 4) == "   ^"
    assert carets("a: x", 5) == "    ^"
    assert carets("a: in {pth} b", 7) == "      ^^^^^"
    assert carets("a: 'in {pth'}", 8) == "       ^"


def test_wide_characters_and_tabs_keep_the_caret_in_place() -> None:
    assert carets("名前: 値段", 5) == "      ^^^^"
    assert carets("a:\tb", 4) == "  \t^"


def test_a_very_long_line_is_shown_around_the_place() -> None:
    text = shown([diagnostic("x" * 5000 + " word " + "y" * 5000, 5002)], Format.TEXT)
    assert max(map(len, text.splitlines())) < 140
    assert text.splitlines()[2].strip().endswith("^^^^")


def test_a_diagnostic_without_a_line_has_no_excerpt() -> None:
    file = Diagnostic(Location("p.yaml"), "PC001", "cannot be read")
    assert shown([file], Format.TEXT) == "p.yaml: PC001: cannot be read"
    assert shown([file], Format.GITHUB) == "::error file=p.yaml,title=PC001::cannot be read"


def test_github_gets_workflow_commands() -> None:
    assert shown([diagnostic("x", 1, "a\nb")], Format.GITHUB) == (
        "::error file=a%2Cb%3Ac.yaml,title=PC101,line=7,col=1::100%25 wrong; a%0Ab"
    )


def test_the_json_option_prints_json() -> None:
    assert json.loads(shown([diagnostic("x", 1)], Format.JSON)) == [
        {
            "file": "a,b:c.yaml",
            "line": 7,
            "column": 1,
            "code": "PC101",
            "severity": "error",
            "sentence": "100% wrong",
            "hint": "",
        }
    ]
    assert shown([], Format.JSON) == "[]"
