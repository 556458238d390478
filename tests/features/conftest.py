"""The steps of `features/`."""

from __future__ import annotations

import copy
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pytest_bdd import given, parsers, then, when

from policyctx import PolicyctxError, Result, Session
from tests.conversations import Message, calls, results, user


def pytest_bdd_apply_tag(tag: str) -> bool | None:
    """Take a document's own ids as they are; any other tag must be a marker that is registered."""
    return True if re.fullmatch(r"(F|UC)-\d{3}", tag) else None


@dataclass
class World:
    """What a scenario has said so far, and what came of it."""

    root: Path
    policy: str = ""
    session_id: str = "s"
    messages: list[Message] = field(default_factory=list)
    before: list[Message] = field(default_factory=list)
    result: Result | None = None
    error: PolicyctxError | None = None
    session: Session | None = None

    def run(self, *, arriving: bool = False) -> None:
        """Apply the policy to the messages, or let the last message arrive."""
        self.before = copy.deepcopy(self.messages)
        if self.session is None:
            self.session = Session(self.policy, root=self.root, session_id=self.session_id)
        try:
            if arriving:
                self.result = self.session.on_tool_result(self.messages[-1])
            else:
                self.result = self.session.apply(self.messages)
        except PolicyctxError as error:
            self.error = error

    @property
    def done(self) -> Result:
        assert self.result is not None, f"it failed: {self.error}"
        return self.result


def content_of(messages: Any, result_id: str) -> Any:
    """The content of the newest result with this id."""
    return next(
        block["content"]
        for message in reversed(messages)
        for block in message["content"]
        if isinstance(block, dict) and block.get("tool_use_id") == result_id
    )


def text(size: int) -> str:
    return ("abcdefghi\n" * (size // 10 + 1))[:size]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(root=tmp_path / "root")


@given(parsers.parse('the policy "{name}"'))
def _(world: World, name: str) -> None:
    world.policy = name


@given(parsers.parse('the session "{session_id}"'))
def _(world: World, session_id: str) -> None:
    world.session_id = session_id


@given(parsers.parse('the root is the folder "{name}"'))
def _(world: World, name: str) -> None:
    world.root = world.root / name


@given("the root is below a file")
def _(world: World) -> None:
    world.root.write_text("", encoding="utf-8")
    world.root = world.root / "below"


@given(parsers.parse("a user message of {size:d} characters"))
def _(world: World, size: int) -> None:
    world.messages.append(user(text(size)))


@given(parsers.re(r'a result "(?P<id_>\w+)" of (?P<size>\d+) characters from (?P<tool>\w+)'))
def _(world: World, id_: str, size: str, tool: str) -> None:
    world.messages += [calls((id_, tool)), results((id_, text(int(size))))]


@given(parsers.parse('a result "{id_}" of one text block of {size:d} characters from {tool}'))
def _(world: World, id_: str, size: int, tool: str) -> None:
    block = {"type": "text", "text": text(size)}
    world.messages += [calls((id_, tool)), results((id_, [block]))]


@when("the policy is applied")
def _(world: World) -> None:
    world.run()


@when(parsers.re(r'a result "(?P<id_>\w+)" of (?P<size>\d+) characters arrives'))
def _(world: World, id_: str, size: str) -> None:
    world.messages.append(results((id_, text(int(size)))))
    world.run(arriving=True)


@when(parsers.parse('a result "{id_}" of one text block of {size:d} characters arrives'))
def _(world: World, id_: str, size: int) -> None:
    world.messages.append(results((id_, [{"type": "text", "text": text(size)}])))
    world.run(arriving=True)


@then(parsers.re(r'the result "(?P<id_>\w+)" reads "(?P<expected>[^"]*)"'))
def _(world: World, id_: str, expected: str) -> None:
    assert content_of(world.done.messages, id_) == expected


@then(
    parsers.re(r'the result "(?P<id_>\w+)" reads "(?P<start>[^"]*)" and the file\'s absolute path')
)
def _(world: World, id_: str, start: str) -> None:
    [path] = world.done.files
    assert Path(path).is_absolute()
    assert content_of(world.done.messages, id_) == f"{start}{path}]"


@then(parsers.parse('the result "{id_}" is the same object as before'))
def _(world: World, id_: str) -> None:
    assert content_of(world.done.messages, id_) is content_of(world.messages, id_)


@then(parsers.parse('the file "{name}" holds what the result "{id_}" held'))
def _(world: World, name: str, id_: str) -> None:
    saved = (world.root / name).read_text(encoding="utf-8")
    assert saved == content_of(world.messages, id_)


@then(parsers.parse('the file "{name}" is the JSON of the blocks'))
def _(world: World, name: str) -> None:
    saved = (world.root / name).read_text(encoding="utf-8")
    blocks = world.messages[-1]["content"][0]["content"]
    assert saved == json.dumps(blocks, separators=(",", ":"))


@then(parsers.parse('the files are "{one}" and "{other}"'))
def _(world: World, one: str, other: str) -> None:
    assert [Path(path).name for path in world.done.files] == [one, other]
    assert {path.name for path in world.root.iterdir()} == {one, other}


@then(parsers.parse("{count:d} results are offloaded"))
def _(world: World, count: int) -> None:
    assert world.done.offloaded_count == count


@then(parsers.parse("{count:d} characters are freed"))
def _(world: World, count: int) -> None:
    assert world.done.freed_chars == count


@then("the paths of the files are absolute")
def _(world: World) -> None:
    assert world.done.files
    assert all(Path(path).is_absolute() for path in world.done.files)


@then("the same list is returned")
def _(world: World) -> None:
    assert world.done.messages is world.messages


@then("no file is written")
def _(world: World) -> None:
    assert not world.root.exists()


@then(parsers.parse("it fails with a {name}"))
def _(world: World, name: str) -> None:
    assert type(world.error).__name__ == name


@then("the messages are as they were")
def _(world: World) -> None:
    assert world.messages == world.before
