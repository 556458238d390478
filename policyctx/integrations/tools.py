"""`ReadBackTools`: two tools with which a model reads offloaded content back.

tools = ReadBackTools(session)
client.messages.create(…, tools=[*own_tools, *tools.for_anthropic])
results = [tools.answer(call) or own_answer(call) for call in calls]

The session offloads what these tools return only when it has become old, and makes no copy then.
"""

import json
from collections.abc import Callable, Mapping
from itertools import accumulate, takewhile
from typing import Any

from policyctx.definitions.items import NOTHING_FOUND, READ_TOOL, SEARCH_TOOL, HostObject
from policyctx.messages.markers import field_of
from policyctx.session import Session
from policyctx.store.excerpts import (
    MOST_CHARS,
    Answer,
    ReadableStore,
    read_offloaded,
    root_of,
    search_offloaded,
)

READ = (
    "Read a text that was moved out of the context to a file. Long texts come in pages; the last"
    " line of a page says how to ask for the next one."
)
SEARCH = (
    "Find the lines of all texts that were moved out of the context that contain the query, in any"
    " case, the best text first; if none does, those with most of its words. Each match begins with"
    " path:line, to read on from with read_offloaded."
)
PATH = "The path that the placeholder shows, or the id of the item."
OFFSET = "The first line to read, from 1 on."
LIMIT = "The number of lines to read."
CHAR = "The first character of that line, for a line that is longer than a page."
QUERY = "The text to look for, as it is, or words that a line has."

_PARAMETERS: dict[str, tuple[str, dict[str, Any]]] = {
    READ_TOOL: (
        READ,
        {
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": PATH},
                "offset": {"type": "integer", "minimum": 1, "description": OFFSET},
                "limit": {"type": "integer", "minimum": 1, "description": LIMIT},
                "char": {"type": "integer", "minimum": 1, "description": CHAR},
            },
            "required": ["path"],
            "additionalProperties": False,
        },
    ),
    SEARCH_TOOL: (
        SEARCH,
        {
            "type": "object",
            "properties": {"query": {"type": "string", "description": QUERY}},
            "required": ["query"],
            "additionalProperties": False,
        },
    ),
}


class ReadBackTools:
    """The tools `read_offloaded` and `search_offloaded` over the files of a session or a store.

    From then on, new placeholders of the session in the default wording name `read_offloaded`. The
    files of sessions that this one `shares` are found by a search, and read by their absolute path.
    """

    def __init__(self, session: Session | ReadableStore) -> None:
        self._store: ReadableStore
        self._shared: tuple[ReadableStore, ...] = ()
        if isinstance(session, Session):
            session.announce_tool(READ_TOOL)
            self._store = session.store
            self._shared = tuple(each.store for each in session.shares)
        else:
            self._store = session

    @property
    def for_anthropic(self) -> list[dict[str, Any]]:
        """The tools for `tools=` of Anthropic's Messages API."""
        return [
            {"name": name, "description": text, "input_schema": schema}
            for name, (text, schema) in _PARAMETERS.items()
        ]

    @property
    def for_chat(self) -> list[dict[str, Any]]:
        """The tools for `tools=` of OpenAI's Chat Completions API."""
        return [{"type": "function", "function": function} for function in _functions()]

    @property
    def for_responses(self) -> list[dict[str, Any]]:
        """The tools for `tools=` of OpenAI's Responses API."""
        return [{"type": "function", **function, "strict": False} for function in _functions()]

    @property
    def functions(self) -> tuple[Callable[..., str], Callable[..., str]]:
        """The tools as functions, for hosts that make a tool of one.

        Such hosts are Anthropic's `beta_tool` and the `function_tool` of OpenAI Agents.
        """
        return self.read_offloaded, self.search_offloaded

    def read_offloaded(self, path: str, offset: int = 1, limit: int = 1000, char: int = 1) -> str:
        """Read a text that was moved out of the context to a file.

        Long texts come in pages; the last line of a page says how to ask for the next one.

        Args:
            path: The path that the placeholder shows, or the id of the item.
            offset: The first line to read, from 1 on.
            limit: The number of lines to read.
            char: The first character of that line, for a line that is longer than a page.

        """
        return self._read(path=path, offset=offset, limit=limit, char=char).text

    def search_offloaded(self, query: str) -> str:
        """Find the lines of all texts that were moved out of the context that contain the query.

        The best text comes first. If no line contains the query, lines with most words of it do.
        Each match begins with path:line, to read on from with read_offloaded.

        Args:
            query: The text to look for, in any case.

        """
        return self._search(query).text

    def answer(self, call: object) -> dict[str, Any] | None:
        """Return the result of a call of one of the tools, None for a call of another tool.

        `call` is a dict or an SDK's object: a `tool_use` block, a tool call of the chat API, or a
        `function_call` item. The result has the shape that the same API takes: a `tool_result`
        block, a message with the role `tool`, or a `function_call_output` item. Input that a model
        got wrong is answered with a text that says so.
        """
        kind = field_of(call, "type")
        function = field_of(call, "function") if kind == "function" else call
        name = field_of(function, "name")
        if name not in _PARAMETERS or kind not in {"tool_use", "function", "function_call"}:
            return None
        given = field_of(function, "input" if kind == "tool_use" else "arguments")
        text, is_error = self._answer(str(name), given)
        if kind == "tool_use":
            result = {"type": "tool_result", "tool_use_id": field_of(call, "id"), "content": text}
            return {**result, "is_error": True} if is_error else result
        if kind == "function":
            return {"role": "tool", "tool_call_id": field_of(call, "id"), "content": text}
        call_id = field_of(call, "call_id")
        return {"type": "function_call_output", "call_id": call_id, "output": text}

    def _answer(self, name: str, given: object) -> Answer:
        if isinstance(given, str):
            try:
                given = json.loads(given or "{}")
            except (ValueError, RecursionError) as error:
                return Answer(f"the input is not JSON: {error}", is_error=True)
        if not isinstance(given, Mapping):
            return Answer("the input is not a JSON object", is_error=True)
        known = _PARAMETERS[name][1]["properties"]
        values = {key: value for key, value in given.items() if value is not None}
        if unknown := sorted(map(str, values.keys() - known.keys())):
            text = f"unknown input {', '.join(unknown)[:200]}; {name} has {', '.join(known)}"
            return Answer(text, is_error=True)
        if name == SEARCH_TOOL:
            return self._search(values.get("query"))
        return self._read(**{"path": None, **values})

    def _read(self, **given: HostObject) -> Answer:
        """Read from the store of the session, else from those that it shares."""
        first = read_offloaded(self._store, **given)
        path = given["path"]
        if not first.is_error or not (isinstance(path, str) and path.startswith("/")):
            return first
        others = (read_offloaded(store, **given, before=root_of(store)) for store in self._shared)
        return next((answer for answer in others if not answer.is_error), first)

    def _search(self, query: object) -> Answer:
        """Search the store of the session, then those that it shares, as far as there is room."""
        for by_words in (False, True):
            answers = [search_offloaded(self._store, query, by_words=by_words)]
            answers += (
                search_offloaded(store, query, before=root_of(store), by_words=by_words)
                for store in self._shared
            )
            found = [answer.text for answer in answers if not answer.text.startswith(NOTHING_FOUND)]
            if found:
                break
        if answers[0].is_error or not found:
            return answers[0]
        kept = takewhile(lambda size: size <= MOST_CHARS, accumulate(map(len, found)))
        return Answer("\n".join(found[: max(1, len([*kept]))]))


def _functions() -> list[dict[str, Any]]:
    return [
        {"name": name, "description": text, "parameters": schema}
        for name, (text, schema) in _PARAMETERS.items()
    ]
