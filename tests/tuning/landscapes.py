"""Made-up landscapes: outcomes that a function gives, so that the best setting is known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache

from policyctx.planning.compiled import OffloadPolicy
from policyctx.tuning.evaluating import Evaluator, Trial, Tried, TunedSession, compiled_text
from policyctx.tuning.outcomes import SessionOutcome

WITHOUT = 10.0


def sessions(projects: int, *, each: int = 2) -> list[TunedSession]:
    """Return sessions of so many projects."""
    return [
        TunedSession(
            number=project * each + i,
            name=f"{project}-{i}.jsonl",
            path=f"/{project}/{i}.jsonl",
            format="test",
            project=f"p{project}",
            calls=10 + project,
            tools=frozenset({"Read"}),
        )
        for project in range(projects)
        for i in range(each)
    ]


def outcome(net: float, regret: int = 0, *, over_window: int = 0) -> SessionOutcome:
    """Return an outcome of a session that costs `WITHOUT` without a policy."""
    return SessionOutcome(WITHOUT, net, regret, 0, over_window, acted=net != 0, calls=10)


@cache
def _compiled(tried: Tried) -> OffloadPolicy:
    return compiled_text(tried.text)


class Landscape(Evaluator):
    """Outcomes by a function of the policy and the session."""

    def __init__(
        self,
        value: Callable[[OffloadPolicy, int], SessionOutcome],
        interrupt_after: int | None = None,
    ) -> None:
        """Press Ctrl-C after so many replays, by default never."""
        super().__init__((), ())
        self.value, self.interrupt_after = value, interrupt_after
        self.asked: list[tuple[str, tuple[int, ...]]] = []
        """What was evaluated, in order."""
        self.batches = 0
        """How often something was evaluated that was not known."""

    def evaluate(self, policies: Iterable[Tried], sessions: Sequence[int]) -> None:
        policies = list(policies)
        self.batches += not all(self.knows(tried.digest, sessions) for tried in policies)
        for tried in policies:
            policy = _compiled(tried)
            self.asked.append((tried.digest, tuple(sessions)))
            for session in sessions:
                if self.knows(tried.digest, [session]):
                    continue
                if self.interrupt_after is not None and self.replays >= self.interrupt_after:
                    raise KeyboardInterrupt
                self.learn(Trial(tried.digest, session), self.value(policy, session))
