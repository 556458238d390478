"""The answer of a replay: what a policy is worth, where it loses, what it missed, and advice."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from heapq import nlargest
from statistics import median
from typing import Any, Literal, NamedTuple, TypeAlias

from policyctx.definitions.actions import Action
from policyctx.errors import counted
from policyctx.replay.running import SUMMARISE_ONLY
from policyctx.replay.simulated import Regret, SimulatedSession
from policyctx.replay.summing import Figures, contradicting, margin

About: TypeAlias = Literal[
    "contradiction", "breakpoints", "baseline", "dearer", "regret", "window", "untouched"
]

# A tool is named from so many regretted items and such a share of the regretted tokens on.
_ITEMS, _OF_TOKENS, _TOOLS = 2, 0.2, 2
# Of the sessions, where the policy never acted.
_MANY = 0.5
_SESSIONS, _REGRETS = 5, 5
# Of each string that shows a need.
_FOUND = 200


@dataclass(frozen=True, slots=True)
class Advice:
    """One change of the policy, and the figures that speak for it."""

    about: About
    sentence: str
    dollars: float | None = None
    """What it would save by the figures of this replay; None where they do not say."""


def advice(
    sessions: Sequence[SimulatedSession], figures: Sequence[Figures], whole: Figures
) -> tuple[Advice, ...]:
    """Return what the figures speak for; empty where nothing stands out.

    What saves most comes first; what lowers regret is a trade, and has no dollars.

    `figures` are those of each session, `whole` those of all together. What contradicts the
    recordings comes before everything else, since it falsifies the other figures.
    """
    first = [Advice("contradiction", f"{one}.") for one in contradicting(whole)]
    found = [
        *_breakpoints(whole),
        *_baseline(whole),
        *_dearer(figures),
        *_regrets(sessions, whole),
        *_window(whole),
        *_untouched(whole),
    ]
    found.sort(key=lambda one: -(one.dollars or 0))
    return (*first, *found)


def _breakpoints(whole: Figures) -> Iterator[Advice]:
    costs = whole.costs
    if not whole.priced or "auto" not in costs.layouts:
        return
    now, then = costs.edited.dollars.prompt, costs.of("auto").edited.dollars.prompt
    if now - then > margin(whole.net.without.dollars.prompt):
        yield Advice(
            "breakpoints",
            "Let the policy place its cache breakpoints, where the provider takes markers"
            f" (`model.cache.breakpoints: auto`): its prompts then cost ${then:,.2f} in place of"
            f" ${now:,.2f}.",
            now - then,
        )


def _baseline(whole: Figures) -> Iterator[Advice]:
    alone = whole.baselines.get(SUMMARISE_ONLY)
    if alone is None or not whole.priced:
        return
    more = whole.net.dollars - alone.net.dollars
    if more > margin(whole.net.without.dollars.prompt):
        yield Advice(
            "baseline",
            "Gate the steps that remove items, for example with `when: {idle: …}` or"
            " `when: {frees: …}`, or leave them out: summaries alone would cost"
            f" ${more:,.2f} less.",
            more,
        )


def _dearer(figures: Sequence[Figures]) -> Iterator[Advice]:
    dearer = [one for one in figures if one.dearer]
    others = [one for one in figures if one.priced and not one.dearer and one.removed]
    if not dearer or not others:
        return
    lengths = [median(one.calls for one in those) for those in (dearer, others)]
    if lengths[0] < lengths[1]:
        dollars = sum(one.net.dollars for one in dearer)
        of = "1 session gets" if len(dearer) == 1 else f"{len(dearer):,} sessions get"
        yield Advice(
            "dearer",
            f"Let the steps act later, for example with `when: {{tokens: …}}`: {of} dearer, by"
            f" ${dollars:,.2f} in all, the most that this saves. Short sessions lose: their median"
            f" is {lengths[0]:,.0f} calls, that of the others in which it acted {lengths[1]:,.0f}.",
            dollars,
        )


class _Taken(NamedTuple):
    """What was taken from where."""

    step: str
    what: str
    """The tool, or else the item type."""
    action: Action


def _regrets(sessions: Sequence[SimulatedSession], whole: Figures) -> Iterator[Advice]:
    found: dict[_Taken, list[Regret]] = defaultdict(list)
    for session in sessions:
        for regret in session.regrets:
            gone = regret.removal
            found[_Taken(gone.step, gone.tool or gone.item_type, gone.action)].append(regret)
    most = sorted(found.items(), key=lambda one: -sum(regret.tokens for regret in one[1]))
    for taken, regrets in most[:_TOOLS]:
        tokens = sum(regret.tokens for regret in regrets)
        if len(regrets) >= _ITEMS and tokens >= _OF_TOKENS * whole.regretted_tokens:
            yield Advice("regret", _regret_sentence(taken, regrets, tokens, whole))


def _regret_sentence(taken: _Taken, regrets: Sequence[Regret], tokens: int, whole: Figures) -> str:
    after = median(one.needs[0].call - one.removal.call for one in regrets)
    within = "at once" if after < 1 else f"within {counted(round(after), 'call')}"
    return (
        f"{len(regrets):,} items of {taken.what} were needed after step {taken.step} had"
        f" {taken.action.past} them, {tokens:,} of {whole.regretted_tokens:,} tokens to read again;"
        f" half of them {within}. A trade: {_way_to_keep(taken, regrets)} means less to read again"
        " and larger prompts; what it costs is not measured here."
    )


def _way_to_keep(taken: _Taken, regrets: Sequence[Regret]) -> str:
    """Return the key by which a step keeps more.

    Its own `select` comes before every rule of a tool or an item type. At arrival a `keep_recent`
    has no effect.
    """
    if taken.action.takes_messages:
        return "a larger `compaction.keep_recent`"
    key = "min_tokens" if regrets[0].removal.on_arrival else "keep_recent"
    return f"a larger `{key}` in the `select` of step {taken.step}"


def _window(whole: Figures) -> Iterator[Advice]:
    over = whole.edited.over_window
    if over:
        of = f"{counted(over, 'call')} of {whole.calls:,}"
        yield Advice(
            "window",
            f"Let a step act earlier: with the policy {of} would still be larger than the window.",
        )


def _untouched(whole: Figures) -> Iterator[Advice]:
    if not whole.untouched:
        return
    sessions = sum(whole.untouched.values())
    if sessions < _MANY * whole.sessions:
        return
    why, number = min(whole.untouched.items(), key=lambda one: (-one[1], one[0]))
    yield Advice(
        "untouched",
        f"The policy never acted in {sessions:,} of {counted(whole.sessions, 'session')}; the most"
        f" frequent reason ({number:,}): {why}.",
    )


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
class ReplayAnswer:
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
) -> ReplayAnswer:
    """Return the answer; `figures` are those of each session, `whole` those of all together."""
    dearer = nlargest(
        _SESSIONS,
        ((i, one) for i, one in enumerate(figures) if one.dearer),
        key=lambda one: one[1].net.dollars,
    )
    missed = nlargest(_REGRETS, _missed(sessions), key=lambda one: one.tokens)
    return ReplayAnswer(
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


def verdict(policy: str, whole: Figures, sessions: str = "") -> str:
    """Return in a sentence what a policy saves or costs, and in how many sessions it acts.

    `sessions` says which ones, such as `20 newest sessions`.
    """
    where = f"in the {sessions or counted(whole.sessions, 'session')}"
    acted, net = whole.sessions - sum(whole.untouched.values()), whole.net
    if not acted:
        return f"{policy} would have changed nothing {where}"
    where += f"; it acted in {acted:,}"
    if not whole.priced:
        tokens = f"{whole.edited.tokens:,} in place of {whole.unedited.tokens:,} tokens"
        return f"{policy} would have sent {tokens} {where}; no session has prices"
    verb = "saved" if net.dollars <= 0 else "added"
    of = f"${abs(net.dollars):,.2f} of the ${net.without.dollars.prompt:,.2f} of prompts"
    change = f"{100 * net.share:+.0f} %".replace("-", "−")
    dearer = f"{whole.dearer:,} are" if whole.dearer > 1 else f"{whole.dearer or 'none'} is"
    return f"{policy} would have {verb} {of} ({change}) {where}; {dearer} dearer"


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
