"""`Memory`: what a session knows from its turns before, and from before a restart."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from policyctx.planning.ledger import Entry, Ledger
from policyctx.tokens.correction import Correction, correction_of
from policyctx.turns.replacements import Replacement, Replacements

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from policyctx.planning.conversation import Arrived, Conversation
    from policyctx.planning.facts import Facts
    from policyctx.tokens.usage import Usage
    from policyctx.turns.known_list import KnownList


@dataclass(slots=True)
class Memory:
    """The ledger, the list of the last turn, and when a model was called last."""

    ledger: Ledger = field(default_factory=Ledger)
    known: KnownList | None = None
    judged: Counter[Arrived] = field(default_factory=Counter)
    """What the steps on arrival have seen in any list of the session."""
    called_at: float | None = None
    """Seconds since 1970."""
    correction: Correction = field(default_factory=Correction)
    """What the usage of responses has taught of the list's total."""
    replacements: Replacements = field(default_factory=Replacements)
    """What compactions have replaced."""
    sent: tuple[Conversation, Facts] | None = None
    """The conversation that was handed out last, until its usage was observed."""

    @classmethod
    def of(cls, records: Sequence[Mapping[str, Any]]) -> Memory:
        """Return the memory that the records of a session hold; others are passed over."""
        entries = (Entry.of(record) for record in records)
        calls = [record["at"] for record in records if record.get("record") == "call"]
        learnt = [record for record in records if record.get("record") == "usage"]
        made = (Replacement.of(record) for record in records)
        return cls(
            Ledger(entry for entry in entries if entry is not None),
            replacements=Replacements([one for one in made if one is not None]),
            called_at=calls[-1] if calls else None,
            correction=correction_of(learnt[-1]) if learnt else Correction(),
        )

    @property
    def has_decided(self) -> bool:
        """Was anything decided, so that the session is worth remembering."""
        return bool(len(self.ledger) or self.replacements.made)

    def call_record(self) -> dict[str, Any]:
        """Return the record of the last call of a model."""
        return {"record": "call", "at": self.called_at}

    def usage_record(self) -> dict[str, Any]:
        """Return the record of what usage has taught."""
        return {"record": "usage", **self.correction.as_record()}

    def observe(self, usage: Usage) -> None:
        """Learn from the usage of the response to the list that was handed out last."""
        if self.sent is not None:
            conversation, facts = self.sent
            self.sent = None
            self.correction = self.correction.observed(conversation.counted(facts), usage)
