"""`Turn`: one thing that happened in a scenario; `Fate`: what became of one item in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from policyctx.compaction.assembly import CompactStats
from policyctx.definitions.actions import Action
from policyctx.definitions.items import Item
from policyctx.errors import PolicyctxError
from policyctx.messages.shapes.block_texts import joined_text
from policyctx.planning.decisions import Decision
from policyctx.planning.plan import Plan
from policyctx.recipes.compacting import CompactResult
from policyctx.recipes.offloading import OffloadResult, OffloadResults
from policyctx.testing.contents import Message, compact
from policyctx.testing.failures import WordingError
from policyctx.turns.result import Result


@dataclass(frozen=True, slots=True)
class Returned:
    """The value that a public function returned, under the names that `Result` has.

    Each property raises `WordingError` when the value has nothing of the kind.
    """

    value: OffloadResults | OffloadResult | CompactResult

    @property
    def messages(self) -> Sequence[Message]:
        """The messages of the value; a single message is a list of one."""
        value = self.value
        return [value.message] if isinstance(value, OffloadResult) else value.messages

    @property
    def files(self) -> tuple[str, ...]:
        """Absolute paths, in the order of the value."""
        if isinstance(self.value, CompactResult):
            raise self._without("files")
        return (self.value.file,) if isinstance(self.value, OffloadResult) else self.value.files

    @property
    def offloaded_count(self) -> int:
        """How many results were offloaded."""
        if isinstance(self.value, OffloadResults):
            return self.value.offloaded_count
        raise self._without("offloaded_count")

    @property
    def freed_chars(self) -> int:
        """Characters freed, as the function defines them."""
        if isinstance(self.value, CompactResult):
            raise self._without("freed_chars")
        return self.value.freed_chars

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings of a compaction."""
        return self._compaction("warnings").warnings

    @property
    def compacted(self) -> bool:
        """Whether history was replaced by a summary."""
        return self._compaction("compacted").compacted

    @property
    def stats(self) -> CompactStats:
        """The numbers of a compaction."""
        return self._compaction("stats").stats

    def _compaction(self, name: str) -> CompactResult:
        if isinstance(self.value, CompactResult):
            return self.value
        raise self._without(name)

    def _without(self, name: str) -> WordingError:
        return WordingError(f"{type(self.value).__name__} has no `{name}`")


@dataclass(frozen=True, slots=True)
class Turn:
    """One event: the list that went in, and what came of it."""

    kind: Literal["arrival", "model call", "plan", "function"]
    given: Sequence[Message]
    """The very list that the policy was given."""
    before: Sequence[Message]
    """A deep copy of it, made before."""
    plan: Plan | None = None
    result: Result | None = None
    error: PolicyctxError | None = None
    returned: Returned | None = None
    """What a public function returned; it has no plan."""
    items: tuple[Item, ...] = ()
    """The items of a function's input, where its messages have the same places."""

    @property
    def messages(self) -> Sequence[Message]:
        """What a model would be sent: as edited, or as given where nothing was."""
        outcome = self.result or self.returned
        return self.given if outcome is None else outcome.messages

    @property
    def fates(self) -> tuple[Fate, ...]:
        """What became of each item, in their order."""
        if self.plan is None:
            return tuple(Fate(self, item, None) for item in self.items)
        by_place = {(d.item.message, d.item.path): d for d in self.plan.decisions}
        return tuple(
            Fate(self, item, by_place.get((item.message, item.path))) for item in self.plan.items
        )


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of one item; `decision` is None when no step looked at it."""

    turn: Turn
    item: Item
    decision: Decision | None

    @property
    def code(self) -> str:
        """The reason's code."""
        return self.decision.reason.code if self.decision else ""

    @property
    def state(self) -> str:
        """`kept`, `offloaded`, `cleared`, `dropped`, `summarised`.

        A placeholder that an earlier turn left counts as what it stands for: offloaded. So does a
        content that a public function replaced.
        """
        if self.turn.returned is not None:
            seen = value_at(self.turn.messages[self.item.message], self.item.path)
            return Action.KEEP.past if seen == self.original else Action.OFFLOAD.past
        if self.decision is None:
            return Action.KEEP.past
        if self.code == "placeholder":
            return Action.OFFLOAD.past
        return self.decision.action.past

    @property
    def is_new(self) -> bool:
        """Was this decided now, and not in an earlier turn."""
        return self.decision is not None and self.code not in {"decided", "placeholder"}

    @property
    def original(self) -> Any:  # noqa: ANN401 - a text, or blocks
        """The content that the item had when it went in."""
        return value_at(self.turn.before[self.item.message], self.item.path)

    @property
    def original_text(self) -> str:
        """The original as it is saved: blocks are their texts joined, or their JSON."""
        original = self.original
        if isinstance(original, str):
            return original
        whole = compact(original)
        joined = joined_text(original) if isinstance(original, list) else None
        is_json = self.turn.returned is not None or self.item.text == whole
        return whole if joined is None or is_json else joined

    def __str__(self) -> str:
        """Return a line that tells the item, its state and why."""
        item = self.item
        name = item.type.replace("_", " ")
        if item.tool_use_id is not None:
            name += f' "{item.tool_use_id}"'
        source = f" of {item.tool}" if item.tool else ""
        where = f"{name}{source}, message {item.message + 1}, {len(item.text):,} characters"
        if self.decision is None:
            return f"{where}: kept, no step looked at it"
        told = f"{where}: {self.state}, {self.decision.reason}"
        by = [f"step {self.decision.step}" if self.decision.step else "", self.decision.rule]
        return " · ".join([told, *filter(None, by)])


def value_at(message: Message, path: Sequence[str | int]) -> Any:  # noqa: ANN401 - any JSON
    """Return the value in a message to which the path leads."""
    value: Any = message
    for part in path:
        value = value[part] if hasattr(value, "__getitem__") else getattr(value, str(part))
    return value
