"""`ArrivalRule`: what a policy makes of a tool's results as they arrive, as plain values.

Most policies offload a result on arrival by its length in characters alone. For these a rule holds
everything that the decision needs, so a process that has remembered it neither reads the policy nor
imports its models. The rule is derived from the compiled policy, and placeholder and path come from
the same functions as those of a plan. Whatever a rule does not cover is for a plan to decide.

The classes are named tuples, since a process that makes one decision spends most of its time on
imports, and a dataclass takes several times as long to define.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from policyctx.definitions.actions import Action
from policyctx.definitions.items import FileLines, Item
from policyctx.definitions.names import recall_tool
from policyctx.paths import File, item_path, path_parts
from policyctx.planning import placeholders
from policyctx.planning.facts import Facts
from policyctx.planning.ledger import ItemKey, Ledger, LedgerEntry

if TYPE_CHECKING:
    from policyctx.planning.compiled import OffloadPolicy, SizeThreshold, Treatment
    from policyctx.policy.models import Step
    from policyctx.tokens.counter import TokenCounter


_KIND = "tool_result"


class ArrivalExtent(NamedTuple):
    """How much of a text is shown."""

    lines: int | None
    chars: int | None
    tokens: None = None


class ArrivalLineNumbers(NamedTuple):
    """The format of the number before each line."""

    width: int | None
    separator: str


class ArrivalShown(NamedTuple):
    """The text of a placeholder, and how much of the item it shows."""

    text: str
    head: ArrivalExtent | None
    tail: ArrivalExtent | None
    max_line_chars: int | None
    cut_mark: str
    gap: str
    line_numbers: ArrivalLineNumbers | None


_INNER: Mapping[str, type[ArrivalExtent | ArrivalLineNumbers]] = {
    "head": ArrivalExtent,
    "tail": ArrivalExtent,
    "line_numbers": ArrivalLineNumbers,
}


class StoreRule(NamedTuple):
    """The settings of the session's store."""

    root: str
    path: str
    escape: Literal["percent", "_"]
    format: Literal["text", "envelope"]
    on_conflict: Literal["suffix", "overwrite", "error"]
    state: Literal["kept", "none"]
    sync: Literal["always", "never"]
    mode: str
    compress: Literal["none", "zstd"]

    @property
    def spill_to(self) -> None:
        """None: whoever goes by a rule saves to folders alone, and a folder is never away."""
        return


class ArrivalRule(NamedTuple):
    """The offloading of one tool's results on arrival, by their length in characters."""

    tool: str
    step: str
    policy: str
    """The digest of the policy."""
    least: int
    """The least number of characters."""
    must_shrink: bool
    shown: ArrivalShown
    read_tool: str
    """The tool that the default wording names; empty if none is known."""
    store: StoreRule

    @classmethod
    def of(cls, policy: OffloadPolicy, tool: str) -> ArrivalRule | None:
        """Return the rule for a tool, None if only a plan can decide on its results."""
        steps = policy.steps("arrival")
        if len(steps) != 1 or recall_tool(tool) is not None:
            return None
        [step], treatment = steps, policy.treatment(steps[0], _KIND, tool)
        if treatment is None or not _is_simple(policy, step, treatment):
            return None
        threshold: SizeThreshold | None = treatment.threshold
        settings = policy.store
        return cls(
            tool=tool,
            step=step.name,
            policy=policy.digest,
            least=0 if threshold is None else threshold.amount,
            must_shrink=step.must_shrink,
            shown=_shown(treatment.wording.shown),
            read_tool=policy.read_tool(),
            store=StoreRule(**{name: getattr(settings, name) for name in StoreRule._fields}),
        )

    def as_json(self) -> dict[str, Any]:
        """Return the rule as plain values for JSON, without its tool; tools may share a rule."""
        parts = {name: getattr(self.shown, name) for name in _INNER}
        shown = {name: None if part is None else part._asdict() for name, part in parts.items()}
        inner = {"shown": {**self.shown._asdict(), **shown}, "store": self.store._asdict()}
        return {
            name: inner.get(name, value) for name, value in self._asdict().items() if name != "tool"
        }

    @classmethod
    def of_json(cls, value: Mapping[str, Any], tool: str) -> ArrivalRule:
        """Return the rule of which `as_json` made these values.

        Raises `TypeError` or `KeyError` for values of another form.
        """
        shown = dict(value["shown"])
        for name, kind in _INNER.items():
            shown[name] = None if shown[name] is None else kind(**shown[name])
        inner = {"shown": ArrivalShown(**shown), "store": StoreRule(**value["store"])}
        return cls(tool=tool, **{**value, **inner})

    def arrival(
        self, text: str, tool_use_id: str, given: str, ledger: Ledger, where: Place
    ) -> Arrival | None:
        """Return what becomes of a result, None if only a plan can decide on it.

        `given` is the input of the call as JSON, `ledger` what the session has decided so far.
        """
        known = any(key.tool_use_id == tool_use_id for key in ledger.entries)
        if known or not text or ledger.may_name_file(given):
            return None
        item = Item(
            message=1,
            path=("content", 0, "content"),
            kind=_KIND,
            type=_KIND,
            role="user",
            texts=text,
            counted_texts=text,
            tool=self.tool,
            tool_use_id=tool_use_id,
            call_message=0,
        )
        path = item_path(
            item,
            path_parts(self.store.path),
            session_id=where.session_id,
            file_format=self.store.format,
            escape=self.store.escape,
        )
        if path in ledger.paths:
            return None
        found = Arrival(self, item, File(path, f"{where.root}/{path}"), where)
        return None if len(text) < self.least or found.stays else found


class Place(NamedTuple):
    """Where a session keeps its files, and what the host says of a result."""

    session_id: str
    root: str
    cwd: str
    sources: Mapping[str, FileLines]


class Arrival(NamedTuple):
    """A result that is offloaded as it arrives, and the file that it is expected to get."""

    rule: ArrivalRule
    item: Item
    file: File
    where: Place

    @property
    def stays(self) -> bool:
        """Whether the result is a placeholder itself, or its placeholder would be no shorter."""
        wording = placeholders.Wording.of(self.rule.shown)
        if placeholders.named_path(wording, self.item, self.file, self._facts) is not None:
            return True
        return self.rule.must_shrink and len(self.placeholder(self.file)) >= len(self.item.text)

    def placeholder(self, file: File) -> str:
        """Return the text that takes the place of the result."""
        return placeholders.rendered_placeholder(
            placeholders.Wording.of(self.rule.shown), self.item, file, self._facts
        )

    def entry(self, file: File) -> LedgerEntry:
        """Return the entry of the decision for the ledger."""
        text, item = self.item.text, self.item
        return LedgerEntry(
            key=ItemKey(item.kind, item.tool_use_id, placeholders.content_hash(text), 0),
            chars=len(text),
            item_id=item.item_id,
            item_type=item.type,
            action=Action.OFFLOAD,
            step=self.rule.step,
            policy=self.rule.policy,
            placeholder=self.placeholder(file),
            relative_path=file.relative_path,
            tool=item.tool,
        )

    @property
    def _facts(self) -> Facts:
        where = self.where
        return Facts(
            session_id=where.session_id,
            root=where.root,
            counter=cast("TokenCounter", None),  # a rule counts no tokens
            cwd=where.cwd,
            read_tool=self.rule.read_tool,
            sources=where.sources,
        )


def _is_simple(policy: OffloadPolicy, step: Step, treatment: Treatment) -> bool:
    """Return whether only the length of a result in characters decides on it."""
    threshold, shown = treatment.threshold, treatment.wording.shown
    refined = (name for name in policy.items if name != _KIND)
    return (
        step.action is Action.OFFLOAD
        and treatment.refusal is None
        and not treatment.with_input
        and threshold is not None
        and threshold.unit == "chars"
        and "tokens" not in treatment.wording.template.fields
        and not any(
            extent is not None and extent.tokens is not None for extent in (shown.head, shown.tail)
        )
        and not any(_KIND in policy.types.lineage(name) for name in refined)
        and policy.store.keeps_state
        and not policy.keeps_by_tokens
    )


def _shown(given: placeholders.Shown) -> ArrivalShown:
    return ArrivalShown(
        text=given.text,
        head=_extent(given.head),
        tail=_extent(given.tail),
        max_line_chars=given.max_line_chars,
        cut_mark=given.cut_mark,
        gap=given.gap,
        line_numbers=None
        if (numbers := given.line_numbers) is None
        else ArrivalLineNumbers(numbers.width, numbers.separator),
    )


def _extent(given: placeholders.Extent | None) -> ArrivalExtent | None:
    return None if given is None else ArrivalExtent(given.lines, given.chars)
