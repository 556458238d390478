"""The results that headroom makes smaller beside the outlines of the same results."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from headroom.compress import compress

from policyctx import Session
from policyctx.policy.loading import parsed_policy
from policyctx.policy.sources import PolicySource
from tests.peers import anthropic_messages
from tests.peers.said import Call, Result, Said, conversations

_POLICY = """
apiVersion: policyctx/v1
name: outlines
model: {tokenizer: approximate}
store: {sync: never}
items: {tool_result: {offload: true}}
steps:
  - name: outline
    do: offload
    select: {types: [tool_result], min_tokens: LEAST}
    placeholder: {text: "{relative_path}\\n{outline}", outline: {tokens: SIZE}}
"""


def results(least: int) -> list[tuple[Call, Result]]:
    """Return the results of at least so many tokens, four characters each, with their calls."""
    said = [one for each in conversations(("claude-code",)) for one in each.messages]
    found = []
    for before, after in pairwise(said):
        for call, result in zip(before.calls, after.results, strict=False):
            if len(result.text) >= least * 4:
                found.append((call, result))
    return found


def conversation(call: Call, result: Result, tool: str) -> list[Said]:
    call = replace(call, tool=tool or call.tool)
    return [
        Said("user", "Go on with the task."),
        Said("assistant", calls=(call,)),
        Said("tool", results=(result,)),
        Said("assistant", "I have seen it."),
        Said("user", "Go on."),
    ]


def text_of(messages: list[dict[str, object]]) -> str:
    [found] = [
        block
        for _, blocks in anthropic_messages.plain(messages)
        for block in blocks
        if block[0] == "result"
    ]
    return found[-1]


# At least so many tokens, and the name of the tool if all are of one; results, how many headroom
# changes, the tokens of all, of what headroom leaves, and of outlines of 100 and of 400 tokens.
FOUND = [
    ((500, ""), (172, 11, 366_545, 364_799, 18_039, 68_980)),
    ((500, "run_command"), (172, 18, 366_545, 344_937, 18_352, 69_293)),
    ((2000, "run_command"), (49, 5, 250_002, 232_337, 5_237, 19_902)),
]


@pytest.mark.parametrize(("setting", "found"), FOUND, ids=str)
def test_tokens_that_are_left(
    setting: tuple[int, str], found: tuple[int, ...], tmp_path: Path
) -> None:
    least, tool = setting
    given = results(least)
    lists = [anthropic_messages.written(conversation(*one, tool)) for one in given]
    theirs = [text_of(compress(messages, protect_recent=0).messages) for messages in lists]
    outlined = []
    for size in (100, 400):
        text = _POLICY.replace("LEAST", str(least)).replace("SIZE", str(size))
        policy = parsed_policy(PolicySource("outlines.yaml", text))
        total = 0
        for number, messages in enumerate(lists):
            session = Session(policy, root=tmp_path / f"{size}", session_id=f"s{number}")
            total += len(text_of(list(session.apply(messages).messages)))
        outlined.append(total // 4)
    changed = sum(a != b.text for a, (_, b) in zip(theirs, given, strict=True))
    before = sum(len(one.text) for _, one in given) // 4
    left = sum(map(len, theirs)) // 4
    assert (len(given), changed, before, left, *outlined) == found
