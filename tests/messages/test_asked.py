"""Whether two requests are of one conversation."""

from typing import Any

import pytest

from policyctx.messages.asked import Asked, is_alike

TOOLS = [{"name": "grep"}, {"type": "function", "function": {"name": "read"}}]


def asked(content: object, tools: object = None, system: object = "You search.") -> Asked:
    message: dict[str, Any] = {"role": "user", "content": content}
    return Asked(None, [message], system, tools)


@pytest.mark.parametrize("kind", [list, tuple])
def test_tools_in_a_list_or_a_tuple_have_names(kind: type) -> None:
    other = asked("Write.", kind([{"name": "write"}]))
    assert not is_alike(asked("Search.", kind(TOOLS), None), other)
    assert is_alike(asked("Search.", kind(TOOLS)), asked("Go on.", list(TOOLS)))


def test_contents_of_a_host_are_compared_by_their_values() -> None:
    one: dict[str, Any] = {"text": "Search.", "images": []}
    other = {**one, "text": "Write."}
    assert not is_alike(asked(one), asked(other, system="You write."))
    assert is_alike(asked(one), asked(dict(one), system="You find."))
