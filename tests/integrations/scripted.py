"""What the servers that check and answer requests as the API of a provider have in common.

Such a server refuses what its API refuses and prompts over its window, bills a prompt by its bytes,
and answers from a script, plain or as server-sent events.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from threading import Event, Lock
from types import MappingProxyType
from typing import Any

from tests.serving import Answer, Server

Body = dict[str, Any]
# The bytes of a prompt that are billed as one token, and the tokens that no request shows.
BYTES_PER_TOKEN = 3
HIDDEN_TOKENS = 300
_CHUNK = 40


@dataclass(frozen=True, slots=True)
class Reply:
    """One scripted answer: a text, calls of (id, tool, arguments), or both.

    `reasons` puts reasoning before it, with that text in the Messages API; `searches` puts a hosted
    search before it, in the Responses API only. `cut_after` ends the connection after so many
    events of a stream. Another `status` than 200 answers with an error.
    """

    text: str | None = None
    calls: tuple[tuple[str, str, str], ...] = ()
    reasons: bool | str = False
    searches: bool = False
    status: int = 200
    cut_after: int | None = None
    headers: dict[str, str] = field(default_factory=dict)

    def cut(self, after: int) -> Reply:
        """Return this reply, cut off after some events of the stream."""
        return replace(self, cut_after=after)


def saying(text: str) -> Reply:
    """Return a reply with one text."""
    return Reply(text)


def calling(*calls: tuple[str, str, dict[str, Any]], reasons: bool | str = False) -> Reply:
    """Return a reply with a call for each (id, tool, arguments), after reasoning if wanted."""
    made = tuple((i, name, json.dumps(given)) for i, name, given in calls)
    return Reply(None, made, reasons)


# The SDK waits for as long as the header says, and then tries again.
OVERLOADED = Reply(status=529, headers={"retry-after-ms": "1"})
BROKEN = Reply(status=500, headers={"retry-after-ms": "1"})


def chunks(text: str) -> list[str]:
    """Return a text in the pieces of a stream."""
    return [text[i : i + _CHUNK] for i in range(0, len(text), _CHUNK)]


def billed(parts: Iterable[Any]) -> int:
    """Return the tokens that a server bills for the parts of a prompt."""
    size = sum(len(json.dumps(part, ensure_ascii=False).encode()) for part in parts if part)
    return HIDDEN_TOKENS + size // BYTES_PER_TOKEN


class ScriptedAnswer(Answer):
    server: ScriptedAPI

    def do_POST(self) -> None:  # noqa: N802 - the name that http.server calls
        self.close_connection = True
        raw, api, path = self.received(), self.server, self.path.partition("?")[0]
        if not api.serves(path):
            self.fail(404, path)
            return
        body = json.loads(raw)
        api.bodies.append(body)
        api.raw.append(raw)
        api.paths.append(path)
        api.headers.append({name.lower(): text for name, text in self.headers.items()})
        if (reason := api.refusal(path, body)) is not None:
            self.refuse(reason)
            return
        prompt = api.tokens_of(body)
        if api.window is not None and prompt > api.window:
            self.refuse(api.over(prompt))
            return
        reply = api.reply_to(body)
        if reply.status != 200:
            self.fail(reply.status, "scripted", reply.headers)
            return
        api.prompts.append(prompt)
        answer = api.answer(path, body, reply)
        if isinstance(answer, dict):
            self.send_json(200, json.dumps(answer).encode(), reply.headers)
        else:
            self.send_events(answer, cut_after=reply.cut_after, holds=api.holds)

    def refuse(self, reason: str) -> None:
        self.server.refused.append(reason)
        self.fail(400, reason)

    def fail(
        self, status: int, text: str, headers: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self.send_json(status, json.dumps(self.server.failure(status, text)).encode(), headers)


class ScriptedAPI(Server):
    """Answers with `script`: replies in order, then `Done.`, or a function of the request's body.

    `bodies` holds each body that came, `raw` their bytes, `paths` their paths, and `refused` the
    reasons for which requests were refused. `prompts` are the billed tokens of each accepted
    prompt.
    """

    answers: type[ScriptedAnswer] = ScriptedAnswer

    def __init__(self, window: int | None = None) -> None:
        super().__init__(self.answers)
        self.window = window
        self.script: list[Reply] | Callable[[Body], Reply] = []
        self.bodies: list[Body] = []
        self.raw: list[bytes] = []
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.refused: list[str] = []
        self.prompts: list[int] = []
        self.holds: Event | None = None
        """If set, a stream waits for it after its first event."""
        self.lock = Lock()

    @abstractmethod
    def serves(self, path: str) -> bool:
        """Return whether the API has the path."""

    @abstractmethod
    def refusal(self, path: str, body: Body) -> str | None:
        """Return why the API refuses a request, None if it accepts it."""

    @abstractmethod
    def tokens_of(self, body: Body) -> int:
        """Return the tokens that the server bills for a prompt."""

    @abstractmethod
    def over(self, tokens: int) -> str:
        """Return what the API says of a prompt over its window."""

    @abstractmethod
    def answer(self, path: str, body: Body, reply: Reply) -> Body | Iterable[str]:
        """Return a reply as a document, or as the frames of the stream that was asked for."""

    @abstractmethod
    def failure(self, status: int, text: str) -> Body:
        """Return an error."""

    def reply_to(self, body: Body) -> Reply:
        """Return the next reply of the script."""
        with self.lock:
            if not isinstance(self.script, list):
                return self.script(body)
            return self.script.pop(0) if self.script else saying("Done.")
