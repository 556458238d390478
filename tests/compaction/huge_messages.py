"""Lists that are little but one huge content, in the shapes of four APIs."""

from __future__ import annotations

import base64
import json
import random
from typing import Any

from tests.conversations import Message, user

Block = dict[str, Any]

CHARS = 300_000


def _text(seed: int = 1, chars: int = CHARS) -> str:
    drawn = random.Random(seed).randbytes(chars).decode("latin-1")  # noqa: S311 - no secret
    return drawn.translate({i: "abcdefgh ."[i % 10] for i in range(256)})


def _four() -> list[str]:
    return [_text(seed, CHARS // 4) for seed in range(4)]


def _photo() -> str:
    head = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\4\0\0\0\3\0"
    noise = random.Random(1).randbytes(CHARS * 3 // 4)  # noqa: S311 - no secret
    return base64.b64encode(head + noise).decode()


def _edits() -> Block:
    return {"path": "a.py", "edits": [{"old": "x", "new": text} for text in _four()]}


def _anthropic() -> dict[str, list[Message]]:
    call = {"type": "tool_use", "id": "t", "name": "q", "input": {}}
    search = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    source = {"type": "base64", "media_type": "image/png", "data": _photo()}
    image = {"type": "image", "source": source}
    source = {"type": "text", "media_type": "text/plain", "data": _text()}
    document = {"type": "document", "source": source}
    thinking = {"type": "thinking", "thinking": _text(), "signature": "s"}
    hit = {"type": "web_search_result", "title": "x", "url": "u", "encrypted_content": _text()}

    def said(*blocks: Block) -> Message:
        return {"role": "assistant", "content": [*blocks]}

    def shown(*blocks: Block) -> Message:
        return {"role": "user", "content": [*blocks]}

    def result(content: object, tool_input: Block | None = None) -> list[Message]:
        found = {"type": "tool_result", "tool_use_id": "t", "content": content}
        return [user("go"), said(call | {"input": tool_input or {}}), shown(found)]

    def text(of: str) -> Block:
        return {"type": "text", "text": of}

    return {
        "a text": [user(_text())],
        "four texts": [shown(*map(text, _four()))],
        "an input": result("ok", {"path": "a.py", "content": _text()}),
        "an input of edits": result("ok", _edits()),
        "an image": [shown(text("see"), image)],
        "an image in a result": result([text("see"), image]),
        "a document": [shown(text("see"), document)],
        "a result": result(_text()),
        "a result of four texts": result([*map(text, _four())]),
        "a result of an unknown block": result([{"type": "odd", "value": _text()}]),
        "an unknown block beside a text": result([text("x"), {"type": "odd", "value": _text()}]),
        "thinking": [user("go"), said(thinking, text("done"))],
        "a web search": [
            user("go"),
            said(search, {"type": "web_search_tool_result", "tool_use_id": "s", "content": [hit]}),
        ],
    }


def _chat() -> dict[str, list[Message]]:
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{_photo()}"}}

    def result(content: object, arguments: str = "{}") -> list[Message]:
        function = {"name": "q", "arguments": arguments}
        call = {"id": "t", "type": "function", "function": function}
        return [
            user("go"),
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "t", "content": content},
        ]

    return {
        "an input": result("ok", json.dumps({"path": "a.py", "content": _text()})),
        "an image": [{"role": "user", "content": [{"type": "text", "text": "see"}, image]}],
        "a result": result(_text()),
        "a result of four texts": result([{"type": "text", "text": one} for one in _four()]),
        "reasoning": [
            user("go"),
            {"role": "assistant", "content": "x", "reasoning_content": _text()},
        ],
    }


def _responses() -> dict[str, list[Message]]:
    url = f"data:image/png;base64,{_photo()}"
    image = {"type": "input_image", "image_url": url}

    def answered(kind: str, output: object, **fields: object) -> list[Message]:
        return [
            user("go"),
            {"type": f"{kind}_call", "call_id": "t", **fields},
            {"type": f"{kind}_call_output", "call_id": "t", "output": output},
        ]

    def result(output: object, arguments: str = "{}") -> list[Message]:
        return answered("function", output, name="q", arguments=arguments)

    def thought(**fields: object) -> list[Message]:
        reasoning = {"type": "reasoning", "id": "r", "summary": [], **fields}
        return [user("go"), reasoning, {"role": "assistant", "content": "x"}]

    patch = {"type": "create_file", "path": "a.py", "diff": _text()}
    shell = {"stdout": _text(), "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}
    return {
        "an input": result("ok", json.dumps({"path": "a.py", "content": _text()})),
        "a patch": answered("apply_patch", "ok", operation=patch, status="completed"),
        "an image": [{"role": "user", "content": [{"type": "input_text", "text": "see"}, image]}],
        "an image in a result": result([{"type": "input_text", "text": "see"}, image]),
        "a screenshot": answered(
            "computer",
            {"type": "computer_screenshot", "image_url": url},
            id="c",
            action={"type": "screenshot"},
            pending_safety_checks=[],
            status="completed",
        ),
        "a result": result(_text()),
        "a result of four texts": result([{"type": "input_text", "text": one} for one in _four()]),
        "a shell's output": answered("shell", [shell], action={"commands": ["a"]}),
        "reasoning": thought(summary=[{"type": "summary_text", "text": _text()}]),
        "encrypted reasoning": thought(encrypted_content=_text()),
    }


def _google() -> dict[str, list[Message]]:
    def content(role: str, *parts: Block) -> Message:
        return {"role": role, "parts": [*parts]}

    def result(response: Block, args: Block | None = None) -> list[Message]:
        call = {"id": "t", "name": "q", "args": args or {}}
        return [
            content("user", {"text": "go"}),
            content("model", {"functionCall": call}),
            content("user", {"functionResponse": {"id": "t", "name": "q", "response": response}}),
        ]

    image = {"inlineData": {"mimeType": "image/png", "data": _photo()}}
    thought = {"text": _text(), "thought": True}
    return {
        "a text": [content("user", {"text": _text()})],
        "an input": result({"output": "ok"}, {"path": "a.py", "content": _text()}),
        "an image": [content("user", {"text": "see"}, image)],
        "a result": result({"output": _text()}),
        "a result of several fields": result({"stdout": _text(), "code": 0}),
        "thinking": [content("user", {"text": "go"}), content("model", thought, {"text": "x"})],
    }


_SHAPES = {
    "anthropic": _anthropic,
    "chat": _chat,
    "responses": _responses,
    "google": _google,
}
_END = [{"role": "assistant", "content": "Noted."}, user("and now?")]
_END_OF_CONTENTS = [
    {"role": "model", "parts": [{"text": "Noted."}]},
    {"role": "user", "parts": [{"text": "and now?"}]},
]


def huge(shape: str) -> dict[str, list[Message]]:
    """Conversations in this shape by what is huge in them."""
    end = _END_OF_CONTENTS if shape == "google" else _END
    return {what: [*messages, *end] for what, messages in _SHAPES[shape]().items()}
