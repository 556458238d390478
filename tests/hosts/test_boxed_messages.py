"""Messages in boxes: a host whose objects hold a dict each fares exactly as the dicts do."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from policyctx import Part, Session, Shape
from policyctx.definitions.items import Message, Path
from policyctx.messages.json_text import JSON
from policyctx.messages.shapes.built_in import ANTHROPIC, BUILT_IN
from policyctx.planning.compiled import OffloadPolicy
from policyctx.testing.strategies.messages import growing_lists
from tests.messages.odd_lists import odd_lists
from tests.policy_strategies import policies, stored


class Box:
    def __init__(self, inner: Message) -> None:
        self.inner = inner

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Box) and other.inner == self.inner

    __hash__ = None  # type: ignore[assignment]


class BoxShape(Shape):
    def recognises(self, message: object) -> bool:
        return isinstance(message, Box)

    def role(self, message: Box) -> str:
        return BUILT_IN.role(message.inner)

    def parts(self, message: Box) -> Iterable[Part]:
        return BUILT_IN.shaped(message.inner).shape.parts(message.inner)

    def replaced(self, message: Box, texts: Mapping[Path, str | None]) -> Box | None:
        new = BUILT_IN.shaped(message.inner).shape.replaced(message.inner, texts)
        return None if new is None else Box(new)

    def written(self, role: str, text: str) -> Box:
        return Box(ANTHROPIC.written(role, text))

    def plain(self, message: Box) -> JSON:
        return BUILT_IN.shaped(message.inner).shape.plain(message.inner)

    def block(self, message: Box, path: Path) -> JSON:
        return BUILT_IN.shaped(message.inner).shape.block(message.inner, path)

    def is_empty(self, message: Box) -> bool:
        return BUILT_IN.shaped(message.inner).shape.is_empty(message.inner)


def turns(
    lists: list[list[Message]], under: OffloadPolicy, form: str, folder: str, *shapes: Shape
) -> Iterator[object]:
    """Yield what each turn comes to; with a shape, all messages are in boxes."""

    def session() -> Session:
        return Session(
            under,
            root=folder,
            session_id="s",
            shapes=shapes,
            clock=lambda: 0.0,
            on_invalid="keep",
        )

    one, known, given = session(), 0, list[Any]()
    for whole in lists:
        new = whole[known:]
        given, known = [*given, *(map(Box, new) if shapes else new)], len(whole)
        result = one.apply(given)
        messages = [m.inner for m in result.messages] if shapes else list(result.messages)
        reasons = [decision.reason for decision in result.plan.new]
        yield messages, reasons, result.files, result.compacted, result.warnings
        if form == "returned":
            given = list(result.messages)
        if form == "anew":
            one, given = session(), [Box(m.inner) for m in given] if shapes else given


@pytest.mark.slow
@given(
    lists=st.one_of(growing_lists(), odd_lists().map(lambda messages: [messages])),
    policy=policies(),
    form=st.sampled_from(["kept", "returned", "anew"]),
)
def test_boxes_fare_as_the_messages_in_them(
    lists: list[list[Message]], policy: OffloadPolicy, form: str
) -> None:
    # One shape for all boxes cannot say of some that they split a reply.
    assume(not any(BUILT_IN.shaped(one).shape.splits_replies for one in lists[-1]))
    under = stored(policy, state="kept")
    with TemporaryDirectory() as parent:
        folder = f"{parent}/root"  # the same for both, since a placeholder has its tokens
        expected = list(turns(lists, under, form, folder))
        shutil.rmtree(folder, ignore_errors=True)
        assert list(turns(lists, under, form, folder, BoxShape())) == expected
