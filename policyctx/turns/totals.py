"""`Totals`: what a session has sent, spared and stored, for the operator of an agent.

Tokens are those of the calls whose usage was observed: what was sent is what the provider counted,
and what was spared is counted by the policy's tokenizer while the usage is observed, so that a turn
itself counts nothing for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from policyctx.definitions.actions import Action
from policyctx.planning.conversation import Conversation
from policyctx.planning.facts import Facts
from policyctx.planning.ledger import Ledger
from policyctx.tokens.usage import Usage


@dataclass(frozen=True, slots=True)
class Totals:
    """What a session has done so far.

    `calls`, the tokens and `failed_writes` are those since the `Session` object was made. The rest
    includes what earlier objects with the same `session_id` and root did.
    """

    calls: int = 0
    """Model calls whose usage was observed."""
    tokens_sent: int = 0
    """Tokens of their prompts, as the provider counted them, whether cached or not."""
    tokens_spared: int = 0
    """Tokens that their prompts would have had in addition without the policy."""
    items: Mapping[str, int] = field(default_factory=dict)
    """Number of items by what was done with them, such as `{"offloaded": 12, "dropped": 3}`."""
    files: int = 0
    """Number of files with the content of an item, archives of compactions not included."""
    compactions: int = 0
    failed_writes: int = 0
    """Number of writes to the store that failed; what they would have saved stayed in the list."""


@dataclass(slots=True)
class Tallied:
    """The sums of a session that goes on, up to the last observed call."""

    calls: int = 0
    sent: int = 0
    spared: int = 0
    compacted: int = 0
    """Tokens that the compactions have taken out of the list."""
    _conversation: Conversation | None = None
    _changes: int = 0
    _freed: dict[int, int] = field(default_factory=dict)
    """Tokens that each item of the conversation frees, by position."""
    _sum: int = 0

    def observe(self, conversation: Conversation, facts: Facts, usage: Usage) -> None:
        """Add a call with this conversation; counts the items whose fate is new."""
        self.calls += 1
        self.sent += usage.prompt
        if conversation is not self._conversation:
            self._conversation, self._changes, self._freed, self._sum = conversation, 0, {}, 0
        changed = {position for position, _ in conversation.history[self._changes :]}
        self._changes = len(conversation.history)
        inner = {i for position in changed for i in conversation.inside(position)}
        for position in changed | inner.intersection(conversation.fates):
            freed = _freed(conversation, position, facts)
            self._sum += freed - self._freed.get(position, 0)
            self._freed[position] = freed
        self.spared += self.compacted + self._sum

    def totals(self, ledger: Ledger, compactions: int) -> Totals:
        """Return the sums, with what the ledger knows of the whole session."""
        entries = [e for e in ledger.entries.values() if e.action is not Action.KEEP]
        return Totals(
            calls=self.calls,
            tokens_sent=self.sent,
            tokens_spared=self.spared,
            items=dict(Counter(entry.action.past for entry in entries)),
            files=len({entry.relative_path for entry in entries} - {None}),
            compactions=compactions,
        )


def _freed(conversation: Conversation, position: int, facts: Facts) -> int:
    """Return the tokens of an item less those of its placeholder.

    An item inside one that left is counted with that one. Of an item that came back as its
    placeholder the tokens are not known.
    """
    fate = conversation.fates[position]
    if fate.item.inside in conversation.fates or fate.placeholder == fate.item.text:
        return 0
    left = 0 if fate.placeholder is None else facts.length(fate.placeholder, "tokens")
    return facts.tokens(fate.item) - left
