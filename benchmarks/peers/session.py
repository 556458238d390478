"""A session of an agent that reads files and runs commands, made up and always the same."""

from __future__ import annotations

from random import Random

from tests.peers.said import Call, Conversation, Result, Said

_WORDS = ("the", "error", "of", "a", "test", "in", "file", "line", "value", "is", "not", "path")
_TOOLS = ("read_text", "run_command", "search_code")
# The user speaks before each 25th reply, and each 5th reply makes three calls.
_USER, _PARALLEL = 25, 5


def session(replies: int = 250, seed: int = 1) -> Conversation:
    """Return a session of this many replies with tool calls; the results differ in length."""
    random = Random(seed)  # noqa: S311 - the same session each time
    messages: list[Said] = []
    calls = 0
    for reply in range(replies):
        if reply % _USER == 0:
            messages.append(Said("user", _text(random, 300)))
        made = []
        for _ in range(3 if reply % _PARALLEL == 0 else 1):
            calls += 1
            made.append(Call(f"call_{calls}", random.choice(_TOOLS), {"path": f"src/{calls}.py"}))
        messages.append(Said("assistant", _text(random, 150), tuple(made)))
        results = (
            Result(call.id, call.tool, _text(random, random.choice((200, 1000, 3000, 8000))))
            for call in made
        )
        messages.append(Said("tool", results=tuple(results)))
    return Conversation("made up", tuple(messages))


def _text(random: Random, chars: int) -> str:
    words: list[str] = []
    while chars > 0:
        words.append(random.choice(_WORDS))
        chars -= len(words[-1]) + 1
    lines = [" ".join(words[i : i + 12]) for i in range(0, len(words), 12)]
    return "\n".join(lines)
