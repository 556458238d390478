"""A server on the loopback address that checks and answers requests as the Gemini API."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tests.integrations.scripted import Body, Reply, ScriptedAPI, billed
from tests.serving import serving

_PATH = re.compile(r"/v1beta/models/[^:/]+:(generateContent|streamGenerateContent)")


class GoogleAPI(ScriptedAPI):
    """The two methods of the Gemini API that generate."""

    def serves(self, path: str) -> bool:
        return _PATH.fullmatch(path) is not None

    def refusal(self, path: str, body: Body) -> str | None:  # noqa: ARG002
        return problem(body["contents"])

    def tokens_of(self, body: Body) -> int:
        return billed(body.get(name) for name in ("contents", "systemInstruction", "tools"))

    def over(self, tokens: int) -> str:
        most = f"the maximum number of tokens allowed ({self.window})"
        return f"The input token count ({tokens}) exceeds {most}."

    def failure(self, status: int, text: str) -> Body:
        return {"error": {"code": status, "message": text, "status": "FAILED"}}

    def answer(self, path: str, body: Body, reply: Reply) -> Body | Iterable[str]:
        prompt, parts = self.tokens_of(body), _parts(reply)
        if path.endswith(":generateContent"):
            return _response(parts, prompt)
        events = [_response([part], prompt, last=part is parts[-1]) for part in parts]
        return (f"data: {json.dumps(event)}\r\n\r\n" for event in events)


def signed(call: Any) -> str:
    """Return the signature of the thought before a call."""
    text = json.dumps([call["name"], call.get("args")])
    # Base64 of hexadecimal digits is the same in both of its alphabets.
    return base64.b64encode(hashlib.sha256(text.encode()).hexdigest().encode()).decode()


def problem(contents: Sequence[Any]) -> str | None:
    """Return why the API would refuse the contents, None if it would not."""
    return next(_problems(contents), None)


def _problems(contents: Sequence[Any]) -> Iterator[str]:
    if not contents or contents[0].get("role") != "user" or _responses(contents[0]):
        yield "the first content is not a message of the user"
    if contents and contents[-1].get("role") != "user":
        yield "the last content is not of the user"
    asked: list[str] = []
    for content in contents:
        parts = content.get("parts")
        if not parts or any(part.get("text") == "" or not part for part in parts):
            yield "a part is empty"
            return
        found = [response["name"] for response in _responses(content)]
        if found != asked:
            yield f"the calls {asked} have the responses {found}"
        calls = [part for part in parts if "functionCall" in part]
        asked = [part["functionCall"]["name"] for part in calls]
        if asked and content["role"] != "model":
            yield "a call is not of the model"
        for part in calls:
            signature = part.get("thoughtSignature")
            if signature is not None and signature != signed(part["functionCall"]):
                yield "a signature was changed"
    if asked:
        yield f"the calls {asked} have no response"


def _responses(content: Any) -> list[Any]:
    return [p["functionResponse"] for p in content.get("parts", ()) if "functionResponse" in p]


def results(body: Body) -> list[str]:
    """Return the texts of the results in a request."""
    found = [response["response"] for each in body["contents"] for response in _responses(each)]
    return [str(next(iter(response.values()))) for response in found]


def _parts(reply: Reply) -> list[Any]:
    parts: list[Any] = [{"text": reply.text}] if reply.text else []
    for id_, tool, arguments in reply.calls:
        call = {"id": id_, "name": tool, "args": json.loads(arguments)}
        parts.append({"functionCall": call})
        if reply.reasons and len(parts) == 1:
            parts[0]["thoughtSignature"] = signed(call)
    return parts


def _response(parts: list[Any], prompt: int, *, last: bool = True) -> Body:
    content = {"role": "model", "parts": parts}
    candidate = {"content": content, "index": 0, **({"finishReason": "STOP"} if last else {})}
    usage = {
        "promptTokenCount": prompt,
        "cachedContentTokenCount": prompt // 2,
        "candidatesTokenCount": 10,
        "totalTokenCount": prompt + 10,
    }
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini"}


@contextmanager
def google_api(window: int | None = None) -> Iterator[GoogleAPI]:
    """Serve in a thread until the block ends."""
    with serving(GoogleAPI(window)) as server:
        yield server
