"""What a plan says: for each item what happens to it and why. Nothing has happened yet."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from policyctx.planning.ledger import Entry
from policyctx.planning.placeholders import content_hash, rendered_placeholder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from policyctx.messages.items import Item
    from policyctx.planning.facts import Facts
    from policyctx.planning.ledger import Key, Ledger
    from policyctx.planning.paths import File
    from policyctx.planning.placeholders import Wording

_SENTENCES = {
    "answer_pending": "a call up to here has no answer yet",
    "batch_recent": "called together with a recent one",
    "below_threshold": "{size:,} < {threshold:,} {unit}",
    "decided": "decided earlier, step {step}",
    "excluded_tool": "{tool} is excepted",
    "failed_result": "a failed result stays",
    "large": "{size:,} >= {threshold:,} {unit}",
    "not_saved": "{error}",
    "offload_off": "its type or tool may not be offloaded",
    "old_and_large": "{size:,} >= {threshold:,} {unit}; {nth} newest of {among}, {kept} kept",
    "pinned": "pinned",
    "placeholder": "is a placeholder already",
    "protected": "{why}",
    "recent": "{nth} newest of {among}, {kept} kept",
    "would_not_shrink": "its placeholder has {placeholder:,} {unit}, it has {size:,}",
}


@dataclass(frozen=True, slots=True)
class Reason:
    """Why an item was decided so, as data: a code, and the values compared."""

    code: str
    values: Mapping[str, str | int] = field(default_factory=dict)

    @property
    def sentence(self) -> str:
        """The reason without its code, for people: `812 < 2000 tokens`."""
        nth = ordinal(int(self.values.get("rank", 0)))
        return _SENTENCES[self.code].format_map({**self.values, "nth": nth})

    def __str__(self) -> str:
        return f"{self.code}: {self.sentence}"


def ordinal(number: int) -> str:
    """Return `1st`, `2nd`, `3rd`, `4th`, …"""
    suffixes = {1: "st", 2: "nd", 3: "rd"}
    in_teens = number % 100 in {11, 12, 13}
    return f"{number}{'th' if in_teens else suffixes.get(number % 10, 'th')}"


@dataclass(frozen=True, slots=True)
class Decision:
    """What happens to one item: kept, or offloaded to `file` and replaced by `placeholder`.

    `step` is the step that decided, `rule` the dotted name of the key that it went by.
    """

    item: Item
    key: Key
    """What the ledger knows the item by."""
    action: Literal["keep", "offload"]
    reason: Reason
    step: str
    rule: str
    placeholder: str | None = None
    wording: Wording | None = None
    file: File | None = None
    wanted_path: str = ""
    """The file's path below the root before names that are taken were passed over."""

    @property
    def is_new(self) -> bool:
        """Is this an offload that an earlier turn had not decided already."""
        return self.action == "offload" and self.reason.code != "decided"


@dataclass(frozen=True, slots=True)
class Plan:
    """The decisions for one message list, in the order of its items.

    Every item that a step has as a candidate, by its type and its tool, has a decision.
    """

    items: tuple[Item, ...]
    decisions: tuple[Decision, ...]
    ledger: Ledger
    facts: Facts

    @property
    def to_save(self) -> tuple[Decision, ...]:
        """The decisions whose content is not on disk yet."""
        return tuple(decision for decision in self.decisions if decision.is_new)

    @property
    def texts(self) -> tuple[tuple[Item, str], ...]:
        """Each item whose text changes, with the text that takes its place."""
        return tuple(
            (d.item, d.placeholder)
            for d in self.decisions
            if d.placeholder is not None and d.placeholder != d.item.text
        )

    @property
    def ledger_after(self) -> Ledger:
        """The ledger once this plan has been carried out."""
        entries = {
            d.key: Entry(d.step, d.placeholder, content_hash(d.item.text), d.file.relative_path)
            for d in self.to_save
            if d.placeholder is not None and d.file is not None
        }
        return self.ledger.with_entries(entries)

    @property
    def tokens_before(self) -> int:
        """Tokens of the whole context as given: messages, system prompt, tool schemas."""
        beside = sum(map(self.facts.counter.count, self.facts.beside))
        # What is inside of a result is counted with it.
        outer = (item for item in self.items if item.inside is None)
        return beside + sum(map(self.facts.tokens, outer))

    @property
    def tokens_after(self) -> int:
        """Tokens of the whole context once this plan has been carried out."""
        freed = sum(
            self.facts.tokens(item) - self.facts.counter.count(text) for item, text in self.texts
        )
        return self.tokens_before - freed

    @property
    def freed_chars(self) -> int:
        """Characters of all that is newly offloaded; what the placeholders take is not deducted."""
        return sum(len(decision.item.text) for decision in self.to_save)

    def settled(self, files: Sequence[File]) -> Plan:
        """Return the plan with the files really written, one for each decision of `to_save`."""
        written = dict(zip((id(d) for d in self.to_save), files, strict=True))
        settled = (self._with_file(d, written.get(id(d))) for d in self.decisions)
        return replace(self, decisions=tuple(settled))

    def unsaved(self, error: str) -> Plan:
        """Return the plan with everything kept that could not be saved, and the error as reason."""
        kept = (
            replace(
                d, action="keep", reason=Reason("not_saved", {"error": error}), placeholder=None
            )
            if d.is_new
            else d
            for d in self.decisions
        )
        return replace(self, decisions=tuple(kept))

    def _with_file(self, decision: Decision, file: File | None) -> Decision:
        if file is None or file == decision.file or decision.wording is None:
            return decision
        text = rendered_placeholder(decision.wording, decision.item, file, self.facts)
        return replace(decision, file=file, placeholder=text)
