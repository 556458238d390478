"""A server on the loopback address that checks and answers requests as the Gemini API.

It refuses lists that the API refuses and prompts over its window, bills a prompt by its bytes, and
answers from a script, plain or as server-sent events.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from threading import Lock
from typing import Any

from tests.integrations.openai_api import BYTES_PER_TOKEN, HIDDEN_TOKENS, Reply, saying
from tests.serving import Answer, serving

_PATH = re.compile(r"/v1beta/models/[^:/]+:(generateContent|streamGenerateContent)")


class GoogleAPI(ThreadingHTTPServer):
    """Answers with `script`: replies in order, then `Done.`, or a function of the request's body.

    `bodies` holds each accepted body and `raw` its contents as text, `refused` the reasons for
    which requests were refused. `prompts` are the billed tokens of each accepted prompt.
    """

    def __init__(self, window: int | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.window = window
        self.script: list[Reply] | Callable[[Any], Reply] = []
        self.bodies: list[Any] = []
        self.refused: list[str] = []
        self.prompts: list[int] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self._lock = Lock()

    def reply_to(self, body: Any) -> Reply:
        """Return the next reply of the script."""
        with self._lock:
            if not isinstance(self.script, list):
                return self.script(body)
            return self.script.pop(0) if self.script else saying("Done.")


def tokens_of(body: Any) -> int:
    """Return the tokens that the server bills for a prompt."""
    given = [body.get(name) for name in ("contents", "systemInstruction", "tools")]
    size = sum(len(json.dumps(part, ensure_ascii=False).encode()) for part in given if part)
    return HIDDEN_TOKENS + size // BYTES_PER_TOKEN


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


def results(contents: Sequence[Any]) -> list[str]:
    """Return the texts of the results in a list."""
    found = [response["response"] for content in contents for response in _responses(content)]
    return [str(next(iter(response.values()))) for response in found]


class _Answer(Answer):
    server: GoogleAPI

    def do_POST(self) -> None:  # noqa: N802 - the name that http.server calls
        self.close_connection = True
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        api = self.server
        method = _PATH.fullmatch(self.path.partition("?")[0])
        if method is None:
            self._fail(404, self.path)
            return
        prompt = tokens_of(body)
        reason = problem(body["contents"])
        if reason is None and api.window is not None and prompt > api.window:
            reason = f"The input token count ({prompt}) exceeds the maximum ({api.window})."
        if reason is not None:
            api.refused.append(reason)
            self._fail(400, reason)
            return
        api.bodies.append(body)
        reply = api.reply_to(body)
        if reply.status != 200:
            self._fail(reply.status, "scripted")
            return
        api.prompts.append(prompt)
        if method[1] == "generateContent":
            self.send_json(200, json.dumps(_response(_parts(reply), prompt)).encode())
            return
        parts = _parts(reply)
        events = [_response([part], prompt, last=part is parts[-1]) for part in parts]
        self.send_events(f"data: {json.dumps(event)}\r\n\r\n" for event in events)

    def _fail(self, status: int, text: str) -> None:
        error = {"error": {"code": status, "message": text, "status": "FAILED"}}
        self.send_json(status, json.dumps(error).encode())


def _parts(reply: Reply) -> list[Any]:
    parts: list[Any] = [{"text": reply.text}] if reply.text else []
    for id_, tool, arguments in reply.calls:
        call = {"id": id_, "name": tool, "args": json.loads(arguments)}
        parts.append({"functionCall": call})
        if reply.reasons and len(parts) == 1:
            parts[0]["thoughtSignature"] = signed(call)
    return parts


def _response(parts: list[Any], prompt: int, *, last: bool = True) -> Any:
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
