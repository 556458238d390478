"""The answer of a replay: what a policy is worth, where it loses, what it missed, and advice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from heapq import nlargest
from typing import Any

from policyctx.replay.advice import Advice, advice
from policyctx.replay.simulated import Regret, SimulatedSession
from policyctx.replay.summing import Figures

_SESSIONS, _REGRETS = 5, 5
# Of each string that shows a need.
_FOUND = 200


@dataclass(frozen=True, slots=True)
class DearerSession:
    """A session that the policy makes dearer, and what of: all in $."""

    session: int
    """Its place among the sessions, from 0 on."""
    net: float
    share: float
    """Of what it costs without the policy."""
    prompts: float
    """What its recorded calls cost more; below 0 what they cost less."""
    summaries: float
    re_reads: float


@dataclass(frozen=True, slots=True)
class MissedItem:
    """A removed item that was needed afterwards."""

    session: int
    """The place of its session among the sessions, from 0 on."""
    part: int
    position: int
    """Of the item in its part."""
    what: str
    """The tool, or else the item type."""
    tokens: int
    """To read again."""
    item_tokens: int
    left: int
    """The number of the call before which it left."""
    step: str
    needed: int
    """The number of the call that first needed it."""
    kind: str
    """`used` or `asked again`."""
    found: str
    """What shows it, shortened."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What people want to know first, beside the figures of all sessions together."""

    dearer: tuple[DearerSession, ...]
    """The sessions that lose most, the worst first; not all of them."""
    missed: tuple[MissedItem, ...]
    """The items with most to read again, the largest first; not all of them."""
    advice: tuple[Advice, ...]

    def values(self) -> dict[str, Any]:
        """Return it as plain values, for JSON."""
        return asdict(self)


def answer_of(
    sessions: Sequence[SimulatedSession], figures: Sequence[Figures], whole: Figures
) -> Answer:
    """Return the answer; `figures` are those of each session, `whole` those of all together."""
    dearer = nlargest(
        _SESSIONS,
        ((i, one) for i, one in enumerate(figures) if one.dearer),
        key=lambda one: one[1].net.dollars,
    )
    missed = nlargest(_REGRETS, _missed(sessions), key=lambda one: one.tokens)
    return Answer(
        tuple(_dearer_session(i, one) for i, one in dearer),
        tuple(missed),
        advice(sessions, figures, whole),
    )


def _dearer_session(session: int, figures: Figures) -> DearerSession:
    net = figures.net
    return DearerSession(
        session,
        net.dollars,
        net.share,
        net.edited.dollars.prompt - net.without.dollars.prompt,
        net.summaries.dollars.total,
        net.re_reads.dollars.total,
    )


def _missed(sessions: Sequence[SimulatedSession]) -> Iterator[MissedItem]:
    """Yield each item that was needed, once: by the time out of the context that cost most."""
    for number, session in enumerate(sessions):
        most: dict[tuple[int, int], Regret] = {}
        for regret in session.regrets:
            place = regret.removal.part, regret.removal.position
            if place not in most or regret.tokens > most[place].tokens:
                most[place] = regret
        yield from (_missed_item(number, regret) for regret in most.values())


def _missed_item(session: int, regret: Regret) -> MissedItem:
    gone = regret.removal
    need = max(regret.needs, key=lambda one: one.tokens)
    found = next((" ".join(text.split()) for text in need.found), "")
    return MissedItem(
        session=session,
        part=gone.part,
        position=gone.position,
        what=gone.tool or gone.item_type,
        tokens=regret.tokens,
        item_tokens=gone.tokens,
        left=gone.call,
        step=gone.step,
        needed=need.call,
        kind=need.kind,
        found=found if len(found) <= _FOUND else f"{found[:_FOUND]}…",
    )


def titles(sessions: Sequence[SimulatedSession]) -> list[str]:
    """Return the title of each session: its first words, without any its name; no two are alike."""
    found = [session.first_words or session.name for session in sessions]
    times = Counter(zip(found, map(day_of, sessions), strict=True))
    seen = Counter[tuple[str, str | None]]()
    named = []
    for title, day in zip(found, map(day_of, sessions), strict=True):
        seen[title, day] += 1
        is_one = times[title, day] == 1
        named.append(title if is_one else f"{title} ({seen[title, day]})")
    return named


def day_of(session: SimulatedSession) -> str | None:
    """Return the day on which a session began, in UTC, as `2026-11-23`; None without times."""
    if session.began is None:
        return None
    try:
        return datetime.fromtimestamp(session.began, UTC).date().isoformat()
    except (OverflowError, OSError, ValueError):
        return None
