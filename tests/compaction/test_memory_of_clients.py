"""What a compaction takes in memory with the preset and the clients of the SDKs.

The size of the messages is the memory that the list takes when it is read, whatever Python needs
for a character. The SDK encodes its request itself: what a bare client takes to send
the same request is not counted.
"""

from __future__ import annotations

import gc
import json
import pickle
import random
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from http.server import ThreadingHTTPServer
from itertools import product
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from policyctx import Session, Shape, compact_messages
from policyctx.compaction.sdk_summarizers import OpenAISummarizer
from tests.compaction.huge_messages import huge
from tests.compaction.messages_server import Scripted, messages_server, saying
from tests.conversations import Message, session_of, user
from tests.drawing import IS_LONG, in_profile
from tests.policies import policy
from tests.serving import Answer, serving

SECTIONS = (
    "Goals & Decisions",
    "File Operations",
    "Tool Calls",
    "Task Status",
    "Errors & Resolutions",
)
SUMMARY = "\n\n".join(f"## {name}\nThe agent read the parser and its tests." for name in SECTIONS)
COMPLETION = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "gpt-some",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": SUMMARY},
            "finish_reason": "stop",
            "logprobs": None,
        }
    ],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}
# Models with a window that all of these conversations fit into.
MODELS = {"anthropic": "claude-opus-4-6", "openai": "gpt-4.1"}
LETTERS = {
    "ASCII": "abcdefgh .",
    "Chinese": "的一是不了人我在有他",
    "emoji": "的一是不了人我在有😀",
}


class _Discarding(Answer):
    """Reads a request without keeping it, so that only the client's memory is measured."""

    def do_POST(self) -> None:  # noqa: N802 - the name that http.server calls
        left = int(self.headers["content-length"])
        while left:
            left -= len(self.rfile.read(min(left, 1 << 16)))
        is_chat = self.path.endswith("/chat/completions")
        self.send_json(200, (json.dumps(COMPLETION) if is_chat else saying(SUMMARY).body).encode())


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), _Discarding)) as server:
        yield f"http://127.0.0.1:{server.server_address[1]}"


@pytest.fixture
def _traced(
    by: str, url: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    # The memo of token counts that earlier tests filled could be moved to a larger table meanwhile.
    monkeypatch.setattr("policyctx.tokens.counter._counters", {})
    # What is imported, compiled and built once is no part of a compaction.
    warm(by, url, tmp_path_factory.getbasetemp())
    gc.freeze()  # what is there already need not be looked through by each collection
    tracemalloc.start()
    yield
    tracemalloc.stop()
    gc.unfreeze()


@cache
def warm(by: str, url: str, root: Path) -> None:
    """Compact once with what `compact` needs."""
    compact(by, strings(LETTERS["emoji"], 20_000), url, root / f"warm_{by}")


def text_of(letters: str, length: int, seed: int = 1) -> str:
    chance = random.Random(seed)  # noqa: S311 - no secret
    drawn = chance.randbytes(length).decode("latin-1")
    return drawn.translate({i: letters[i % len(letters)] for i in range(256)})


def strings(letters: str, *lengths: int) -> list[Message]:
    """A user and an assistant that only exchange texts."""
    texts = (text_of(letters, length, seed) for seed, length in enumerate(lengths))
    answered = {"role": "assistant", "content": "Noted."}
    return [message for text in texts for message in (user(text), answered)]


def lines(letters: str, *lengths: int) -> list[Message]:
    """A user who gives texts of lines of 80 characters, and an assistant."""
    found = strings(letters, *lengths)
    for message in found[::2]:
        text = message["content"]
        message["content"] = "\n".join(text[at : at + 80] for at in range(0, len(text), 80))
    return found


def results(letters: str, *lengths: int) -> list[Message]:
    """Calls of a tool, each with a text as its result."""
    return session_of(*(text_of(letters, length, seed) for seed, length in enumerate(lengths)))


def lists(letters: str, *lengths: int) -> list[Message]:
    """Calls of a tool, each with a list of one text block as its result."""
    return _lists(letters, 1, lengths)


def lists_of_four(letters: str, *lengths: int) -> list[Message]:
    """Calls of a tool, each with a list of four text blocks as its result."""
    return _lists(letters, 4, lengths)


def _lists(letters: str, blocks: int, lengths: Sequence[int]) -> list[Message]:
    return session_of(
        *(
            [
                {"type": "text", "text": text_of(letters, length // blocks, seed * blocks + i)}
                for i in range(blocks)
            ]
            for seed, length in enumerate(lengths)
        )
    )


def many_blocks(letters: str) -> list[Message]:
    """A reply and a question, each of many text blocks, and a result of many."""
    text, question, answer = (
        [{"type": "text", "text": text_of(letters, 1_000, seed + i)} for i in range(100)]
        for seed in (0, 100, 200)
    )
    return [
        *session_of(answer),
        {"role": "assistant", "content": text},
        {"role": "user", "content": question},
        *_END,
    ]


def parallel_results(letters: str) -> list[Message]:
    """Many calls in one reply, and all their results in one message."""
    calls = [{"type": "tool_use", "id": f"t{i}", "name": "q", "input": {}} for i in range(60)]
    found = [
        {"type": "tool_result", "tool_use_id": f"t{i}", "content": text_of(letters, 6_000, i)}
        for i in range(60)
    ]
    return [
        user("go"),
        {"role": "assistant", "content": calls},
        {"role": "user", "content": found},
        *_END,
    ]


def many_inputs(letters: str) -> list[Message]:
    """Calls whose inputs are the texts."""
    found = session_of(*["ok"] * 60)
    blocks = [block for m in found if isinstance(m["content"], list) for block in m["content"]]
    for i, call in enumerate(block for block in blocks if block["type"] == "tool_use"):
        call["input"] = {"file_path": f"{i}.py", "content": text_of(letters, 6_000, i)}
    return found


_END = [{"role": "assistant", "content": "Noted."}, user("and now?")]


@cache
def client_of(by: str, url: str) -> Any:
    if by == "anthropic":
        return anthropic.Anthropic(api_key="sk-none", base_url=url)
    return openai.OpenAI(api_key="sk-none", base_url=f"{url}/v1")


def compact(
    by: str, messages: list[Message], url: str, root: Path, shapes: Sequence[Shape] = ()
) -> bool:
    """Compact with the preset and a client, or with a callable; say whether that was done."""
    if by in {"callable", "extractive"}:
        how: dict[str, Any] = {"summarizer": lambda _: SUMMARY} if by == "callable" else {}
        return compact_messages(
            messages, threshold=1, output_dir=root, shapes=shapes, summary_timeout="10m", **how
        ).compacted
    if by == "anthropic":
        return compact_messages(
            messages, threshold=1, output_dir=root, client=client_of(by, url), model=MODELS[by]
        ).compacted
    text = f"""\
        extends: context-compact
        compaction: {{summary: {{by: openai, model: {MODELS[by]}}}}}
        steps: [{{name: summarise, do: compact, when: {{messages: {{over: 1}}}}}}]
        """
    session = Session(policy(text), root=root, summarizer=OpenAISummarizer(client_of(by, url)))
    return session.apply(messages).compacted


def peak_of(measured: Callable[[], object]) -> int:
    """The bytes that are in memory at once meanwhile, beside what was there before."""
    gc.collect()
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    assert measured()
    return tracemalloc.get_traced_memory()[1] - before


def times_of(
    by: str, messages: list[Message], url: str, root: Path, shapes: Sequence[Shape] = ()
) -> float:
    """The peak of a compaction without the SDK's own share, in times of the messages."""
    written = pickle.dumps(messages)
    # What a process loads once is no part of a compaction's memory.
    compact(by, session_of("warm", "up"), url, root / "warm-up")
    if shapes:
        compact(by, pickle.loads(written), url, root / "warm-up", shapes)  # noqa: S301 - our own
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    given = pickle.loads(written)  # noqa: S301 - our own
    size = tracemalloc.get_traced_memory()[0] - before
    whole = peak_of(lambda: compact(by, given, url, root / "measured", shapes))
    return (whole - share_of_sdk(by, given, root)) / size


def share_of_sdk(by: str, messages: list[Message], root: Path) -> int:
    """The bytes that a bare client takes to send the same request, without the request."""
    if by not in MODELS:
        return 0
    with messages_server() as server:
        answer = saying(SUMMARY) if by == "anthropic" else Scripted(json.dumps(COMPLETION))
        server.script = [answer]
        assert compact(by, messages, server.url, root / "recorded")
    request = server.requests[0]
    del request["path"]
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), _Discarding)) as bare:
        client = client_of(by, f"http://127.0.0.1:{bare.server_address[1]}")
        create = client.messages.create if by == "anthropic" else client.chat.completions.create
        create(**{**request, "messages": [user()]})
        return peak_of(lambda: create(**request))


CLIENTS = ("anthropic", "openai", "callable")
BY = pytest.mark.parametrize("by", CLIENTS)


def each(*conversations: Callable[..., list[Message]]) -> pytest.MarkDecorator:
    """Combine clients, letters and conversations; in CI a third, which has every pair of two."""
    combined = [
        (CLIENTS[i], letters, conversation)
        for (i, (j, letters)) in product(range(3), enumerate(LETTERS))
        for k, conversation in enumerate(conversations)
        if IS_LONG or (i + j + k) % 3 == 0
    ]
    return pytest.mark.parametrize(("by", "letters", "conversation"), combined)


def lettered(*whats: str) -> list[tuple[str, str]]:
    """Combine texts with letters; in CI each text has letters of one kind."""
    return [
        (what, letters)
        for i, what in enumerate(whats)
        for j, letters in enumerate(LETTERS)
        if IS_LONG or (i + j) % 3 == 0
    ]


@each(strings, lines, results, lists, lists_of_four)
@pytest.mark.usefixtures("_traced")
def test_one_huge_text_takes_at_most_twice_its_memory(
    by: str,
    letters: str,
    conversation: Callable[..., list[Message]],
    url: str,
    tmp_path: Path,
) -> None:
    assert times_of(by, conversation(LETTERS[letters], 300_000), url, tmp_path) < 2


@each(strings, results, lists_of_four)
@pytest.mark.usefixtures("_traced")
def test_many_messages_take_at_most_twice_their_memory(
    by: str,
    letters: str,
    conversation: Callable[..., list[Message]],
    url: str,
    tmp_path: Path,
) -> None:
    messages = conversation(LETTERS[letters], *[4_000] * 60)
    assert times_of(by, messages, url, tmp_path) < 2


@pytest.mark.parametrize(("by", "model"), [("anthropic", "claude-haiku-4-5"), ("openai", "gpt-4o")])
@pytest.mark.usefixtures("_traced")
def test_a_text_cut_for_the_window_of_the_model_takes_less_than_its_memory(
    by: str, model: str, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mark of a cut is in ASCII: any other character in it would double the whole text."""
    monkeypatch.setitem(MODELS, by, model)
    prose = "the quick brown fox jumps over the lazy dog and "
    assert times_of(by, session_of(prose * 17_000), url, tmp_path) < 1


def _in_short_lines(what: str, letters: str) -> list[Message]:
    # Of a text of user or agent 400,000 characters are read.
    drawn = text_of(letters, 1_200_000 if what in {"user", "assistant"} else 400_000)
    log = "\n".join(drawn[at : at + 20] for at in range(0, len(drawn), 20))
    if what == "result":
        return session_of(log)
    if what == "user":
        return [user(log), *_END]
    if what == "assistant":
        return [user("go"), {"role": "assistant", "content": log}, *_END]
    change = {
        "written": {"file_path": "a.py", "content": log},
        "edited": {"file_path": "a.py", "old_string": "x = 1", "new_string": log},
        "patched": {"input": f"*** Begin Patch\n*** Update File: a.py\n+{log}\n*** End Patch"},
    }[what]
    messages = session_of("ok")
    messages[1]["content"][0] |= {"name": "Write" if what == "written" else "edit", "input": change}
    return messages


@pytest.mark.parametrize(
    ("what", "letters"),
    lettered("user", "result", "assistant", "written", "edited", "patched"),
)
@pytest.mark.parametrize("by", ["extractive"])
@pytest.mark.usefixtures("_traced")
def test_an_extractive_summary_of_short_lines_takes_at_most_twice_their_memory(
    by: str, what: str, letters: str, url: str, tmp_path: Path
) -> None:
    """Python needs more for a short line than for its characters."""
    assert times_of(by, _in_short_lines(what, LETTERS[letters]), url, tmp_path) < 2


_BETWEEN = {
    "led": "\n",
    "listed": "\n- ",
    "closed": "\n}\n",
    "valued": "\nx=1\n",
    "sentences": ". ",
}


def _short_lines(what: str, letters: str, length: int) -> str:
    """A text of lines of 3 or 10 characters, of orders, or of lines that belong to each other."""
    if what == "orders":
        return "\n".join(f"Never push to main{i}." for i in range(length // 24))
    if what.isdecimal():
        drawn = text_of(letters, length)
        return "\n".join(drawn[at : at + int(what)] for at in range(0, len(drawn), int(what)))
    drawn = text_of(letters.translate(dict.fromkeys(map(ord, " ."))), length)
    between = _BETWEEN[what]
    step = 5 + len(between)
    words = (drawn[at : at + 5].capitalize() for at in range(0, len(drawn), step))
    return ("Rules:\n" if what in {"led", "listed"} else "") + between.join(words)


# What a summary takes of the short lines does not grow with their number. So a text that is only
# large enough for all else is the stricter test.
LENGTHS = {"ASCII": 150_000, "Chinese": 150_000, "emoji": 100_000}
# CI has each kind of lines, those that take long in the shortest text.
KINDS = [
    *product(["user 10", "user sentences"], ["ASCII"]),
    ("assistant 10", "Chinese"),
    *product(["user led", "user valued", "assistant listed", "assistant closed"], ["emoji"]),
    ("user 3", "emoji"),
]
ALL_KINDS = [
    *product(["user 10", "assistant 10", "user led"], LETTERS),
    *product(["user valued", "user sentences", "user listed", "user closed"], ["ASCII"]),
    *product(["assistant listed", "assistant closed", "assistant 3"], ["Chinese"]),
    ("user 3", "emoji"),
]


@pytest.mark.parametrize(("what", "letters"), in_profile(KINDS, ALL_KINDS))
@pytest.mark.parametrize("by", ["extractive"])
@pytest.mark.usefixtures("_traced")
def test_an_extractive_summary_of_a_text_of_short_lines_takes_at_most_twice_its_memory(
    by: str, what: str, letters: str, url: str, tmp_path: Path
) -> None:
    messages = _said(what, 300_000 if IS_LONG else LENGTHS[letters], LETTERS[letters])
    assert times_of(by, messages, url, tmp_path) < 2


def _said(what: str, length: int, letters: str = LETTERS["ASCII"]) -> list[Message]:
    who, kind = what.split()
    text = _short_lines(kind, letters, length)
    first = [user(text)] if who == "user" else [user("go"), {"role": who, "content": text}]
    return [*first, *_END]


@pytest.mark.parametrize(
    ("what", "length"),
    in_profile(
        [("user orders", 200_000)],
        [("user orders", 390_000), ("user orders", 300_000), ("user 10", 390_000)],
    ),
)
@pytest.mark.parametrize("by", ["extractive"])
@pytest.mark.usefixtures("_traced")
def test_an_extractive_summary_of_a_long_text_takes_at_most_twice_its_memory(
    by: str, what: str, length: int, url: str, tmp_path: Path
) -> None:
    assert times_of(by, _said(what, length=length), url, tmp_path) < 2


@pytest.mark.parametrize(
    "what",
    ["user orders", "assistant 10", "assistant orders", "user 10"][: in_profile(2, 4)],
)
@pytest.mark.parametrize("by", ["extractive"])
@pytest.mark.usefixtures("_traced")
def test_a_shorter_text_takes_at_most_twice_its_memory_beside_what_any_compaction_takes(
    by: str, what: str, url: str, tmp_path: Path
) -> None:
    """A session, its policy and its files take as much for two words, in a process that goes on."""
    times_of(by, session_of("warm", "up"), url, tmp_path / "warm")
    of_any = peak_of(lambda: compact(by, session_of("warm", "up"), url, tmp_path / "small"))
    assert of_any < 150_000
    written = pickle.dumps(_said(what, length=100_000))
    given = pickle.loads(written)  # noqa: S301 - our own
    size = len(written)
    assert peak_of(lambda: compact(by, given, url, tmp_path / "text")) - of_any < 2 * size


@BY
@pytest.mark.usefixtures("_traced")
def test_some_large_results_take_at_most_twice_their_memory(
    by: str, url: str, tmp_path: Path
) -> None:
    messages = lists_of_four(LETTERS["ASCII"], *[30_000] * 10)
    assert times_of(by, messages, url, tmp_path) < 2


@pytest.mark.parametrize("wide", ["→", "😀"])
@pytest.mark.parametrize("by", ["anthropic", "callable"])
@pytest.mark.usefixtures("_traced")
def test_one_wide_character_does_not_widen_the_other_messages(
    by: str, wide: str, url: str, tmp_path: Path
) -> None:
    """Python holds a text with it in two or four bytes a character."""
    texts = (text_of(LETTERS["ASCII"], 10_000, seed) for seed in range(60))
    assert times_of(by, session_of(*texts, f"done {wide} next"), url, tmp_path) < 2


@BY
@pytest.mark.usefixtures("_traced")
def test_small_messages_take_at_most_twice_their_memory(by: str, url: str, tmp_path: Path) -> None:
    messages = results(LETTERS["Chinese"], *[60] * in_profile(250, 500))
    assert times_of(by, messages, url, tmp_path) < 2


# Of few messages a compaction takes more for each, so that few are the stricter test.
PAIRS = in_profile(500, 2_000)


@pytest.mark.parametrize(
    ("by", "pairs"), [*((by, PAIRS) for by in CLIENTS), ("extractive", in_profile(1_000, 2_000))]
)
@pytest.mark.usefixtures("_traced")
def test_many_short_messages_take_at_most_twice_their_memory(
    by: str, pairs: int, url: str, tmp_path: Path
) -> None:
    texts = (f"{role} {i} short" for i in range(pairs) for role in ("user", "assistant"))
    blocks = (
        {"role": text.split()[0], "content": [{"type": "text", "text": text}]} for text in texts
    )
    assert times_of(by, [*blocks, user("go on")], url, tmp_path) < 2


@each(many_blocks, parallel_results, many_inputs)
@pytest.mark.usefixtures("_traced")
def test_many_blocks_results_or_inputs_take_at_most_twice_their_memory(
    by: str, letters: str, conversation: Callable[[str], list[Message]], url: str, tmp_path: Path
) -> None:
    assert times_of(by, conversation(LETTERS[letters]), url, tmp_path) < 2


# Two clients read these shapes. In CI each has every other content of them.
TWICE = {
    "callable": {"anthropic": 0, "responses": 0},
    "anthropic": {"anthropic": 1},
    "openai": {"responses": 1},
}


@pytest.mark.parametrize(
    ("by", "shape"),
    [
        ("callable", "anthropic"),
        ("callable", "chat"),
        ("callable", "responses"),
        ("callable", "google"),
        ("callable", "google objects"),
        ("callable", "bedrock"),
        ("callable", "langchain"),
        ("callable", "pydantic_ai"),
        ("anthropic", "anthropic"),
        ("openai", "responses"),
    ],
)
@pytest.mark.usefixtures("_traced")
def test_one_huge_content_of_any_kind_takes_at_most_twice_its_memory(
    by: str, shape: str, url: str, tmp_path: Path
) -> None:
    lists, shapes = huge(shape)
    if (first := TWICE.get(by, {}).get(shape)) is not None and not IS_LONG:
        lists = dict([*lists.items()][first::2])
    times = {
        what: times_of(by, messages, url, tmp_path / what, shapes)
        for what, messages in lists.items()
    }
    assert {what: found for what, found in times.items() if found >= 2} == {}


@pytest.mark.parametrize("by", ["callable"])
@pytest.mark.usefixtures("_traced")
def test_control_characters_take_at_most_twice_their_memory(
    by: str, url: str, tmp_path: Path
) -> None:
    assert times_of(by, strings("\x01\x02\x03a", 300_000), url, tmp_path) < 2
