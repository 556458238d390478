"""`Common`: what all replays of one recording have in common, found once."""

from collections.abc import Mapping, Sequence

from policyctx.planning.facts import Facts
from policyctx.replay.cost import UneditedCosts
from policyctx.replay.recording import Recording
from policyctx.replay.regret.needs import Lost, needs_of
from policyctx.replay.regret.strings import Memo
from policyctx.replay.sent_list import MessageBlocks
from policyctx.replay.simulated import Need
from policyctx.replay.timeline import SessionPart

# Of so many policies what was needed is kept.
_MOST_NEEDS = 32


class Common:
    """Sizes, costs without a policy and read texts of one recording, kept from replay to replay.

    A replay gives the same figures with it and without it. It belongs to one thread.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._blocks: dict[tuple[object, float], MessageBlocks] = {}
        self._memo = Memo()
        self._needs: dict[tuple[object, ...], Mapping[Lost, Sequence[Need]]] = {}
        self.unedited = UneditedCosts()

    def blocks(self, facts: Facts) -> MessageBlocks:
        """Return the blocks of all messages, counted together, for one replay to add to."""
        key = facts.counter, facts.token_scale
        if key not in self._blocks:
            self._blocks[key] = MessageBlocks()
            messages = (message for call in self._recording.calls for message in call.new)
            self._blocks[key].measure(messages, facts)
        return self._blocks[key].branched()

    def needs(self, part: SessionPart, facts: Facts) -> Mapping[Lost, Sequence[Need]]:
        """Return what was needed of a part's items while they were out; see `needs_of`.

        Policies that take the same items at the same calls, as two with other breakpoints do, share
        what is found.
        """
        absences = tuple((at, tuple(found)) for at, found in sorted(part.absences.items()))
        key = facts.counter, facts.token_scale, part.first_call, tuple(part.known), absences
        if key not in self._needs:
            while len(self._needs) >= _MOST_NEEDS:
                del self._needs[next(iter(self._needs))]
            self._needs[key] = needs_of(part, lambda text: facts.length(text, "tokens"), self._memo)
        return self._needs[key]
