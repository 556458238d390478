from __future__ import annotations

import pytest

from policyctx.policy.values import parsed_template


def test_fields_are_filled_in_and_double_braces_are_literal() -> None:
    template = parsed_template("{{{path}}} of {tool}", ["path", "tool"])
    assert template.fields == {"path", "tool"}
    assert template.render({"path": "/x", "tool": "Bash"}) == "{/x} of Bash"


def test_a_value_is_never_read_as_a_template() -> None:
    assert parsed_template("{path}", ["path"]).render({"path": "{tool} {{"}) == "{tool} {{"


@pytest.mark.parametrize(
    "text", ["{", "}", "{path", "path}", "{}", "{0}", "{path!r}", "{path:>3}", "{path[0]}"]
)
def test_anything_else_in_braces_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"lone|unknown field|more than a field"):
        parsed_template(text, ["path"])
