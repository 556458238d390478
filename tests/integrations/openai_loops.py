"""Policies, contents and a long script for loops over OpenAI's APIs."""

from __future__ import annotations

from tests.integrations.openai_api import Reply, calling, saying

OLD = """\
    items: {tool_result: {offload: true, keep_recent: 1}}
    min_tokens: 100
    steps: [{name: retire, do: offload}]
    """
GATED = """\
    items: {tool_result: {offload: true}}
    steps: [{name: s, do: offload, when: {tokens: {at_least: 20000}}}]
    """
BIG, SECOND = "alpha " * 400, "beta " * 400

WINDOW = 20_000
LONG = """\
    model: {context_window: 20000}
    min_tokens: 500
    items: {tool_result: {offload: true}}
    compaction: {keep_recent: {messages: 1}, keep_newest_user_message: true}
    steps:
      - {name: retire, do: offload, select: {keep_recent: {items: 2, per: all}}}
      - name: room
        do: offload
        when: {tokens: {at_least: 50%}}
        select: {keep_recent: {messages: 1}}
      - {name: summarise, do: compact, when: {tokens: {at_least: 55%}}}
    """


def long_reply(turn: int) -> Reply:
    """Reason and call one to three tools at once; every tenth turn ends with a text."""
    if turn % 10 == 9:
        return saying(f"Part {turn} is done. " + "We go on with the next part. " * 20)
    asked = [(f"t{turn}_{i}", "Bash", {"n": turn, "i": i}) for i in range(1 + turn % 3)]
    return calling(*asked, reasons=turn % 2 == 0)


def long_results(turn: int) -> list[tuple[str, str]]:
    """Results that are billed with at most 8,000 tokens together."""
    count = 1 + turn % 3
    sizes = [7000 if turn % 7 == 3 else 1500 if i else 300 + 97 * (turn % 23) for i in range(count)]
    scale = min(1.0, 7_500 / sum(sizes))
    texts = [f"{turn}.{i}: " + "output of a command\n" * 4000 for i in range(count)]
    return [
        (f"t{turn}_{i}", text[: int(3 * size * scale)])
        for i, (text, size) in enumerate(zip(texts, sizes, strict=True))
    ]
