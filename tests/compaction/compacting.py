"""Sessions that compact, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from policyctx import OffloadPolicy, Session
from policyctx.compaction.assembly import SummaryRequest
from tests.conversations import Message, user
from tests.policies import policy

SYSTEM: Message = {"role": "system", "content": "rules"}
SUMMARY = "[Conversation compressed]\n\n"
REPLY = "Understood. I have the context from the compressed conversation. Continuing work."


def said(text: str = "done") -> Message:
    return {"role": "assistant", "content": text}


def compacting(more: str = "{}", *, over: int = 5, before: str = "") -> OffloadPolicy:
    """Compile a policy that compacts when there are more messages than that."""
    text = f"""\
        model: {{tokenizer: approximate}}
        store: {{sync: never}}
        {before}
        compaction: {more}
        steps: [{{name: summarise, do: compact, when: {{messages: {{over: {over}}}}}}}]
        """
    return policy(text)


def session(root: Path, *more: str, summary: Any = None, **keywords: Any) -> Session:
    answer = (lambda _: "the summary") if summary is None else summary
    return Session(compacting(*more, **keywords), root=root, session_id="s", summarizer=answer)


def conversation(turns: int = 3) -> list[Message]:
    return [SYSTEM, *(m for i in range(turns) for m in (user(f"ask {i}"), said(f"answer {i}")))]


class Failing:
    """A summarizer that fails so often, then answers."""

    def __init__(self, times: int, error: Exception | str = "") -> None:
        self.times, self.error, self.asked = times, error or RuntimeError("overloaded"), 0

    def __call__(self, _: SummaryRequest) -> str:
        self.asked += 1
        if self.asked <= self.times:
            if isinstance(self.error, str):
                return self.error
            raise self.error
        return "at last"
