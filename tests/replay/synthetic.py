"""One small session as each known format records it: file contents by the name of the format."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator, Sequence
from typing import Any

Record = dict[str, Any]
TURNS = 7
_AT = "2026-01-01T00:00:0{}Z"


def _result(turn: int) -> str:
    lines = (f"{n}: value QX-{turn}{n:04}-B of /srv/data/{turn}/{n}.txt" for n in range(30))
    return "\n".join(lines)


def _input(turn: int) -> Record:
    return {"path": f"/srv/data/{turn % 3}.txt", "offset": turn}


def _answer(turn: int) -> str:
    return f"Now /srv/data/{turn}/7.txt, as QX-{turn}0007-B says."


def _usage(turn: int) -> Record:
    return {"prompt_tokens": 900 + 800 * turn, "completion_tokens": 20}


def _chat() -> list[Record]:
    messages: list[Record] = [
        {"role": "system", "content": "You are an agent."},
        {"role": "user", "content": "Read the files."},
    ]
    for turn in range(TURNS):
        function = {"name": "read_file", "arguments": json.dumps(_input(turn))}
        call = {"id": f"c{turn}", "type": "function", "function": function}
        messages += [
            {"role": "assistant", "content": _answer(turn), "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{turn}", "content": _result(turn)},
        ]
    return [*messages, {"role": "assistant", "content": "Done."}]


def _claude_code() -> Iterator[Record]:
    links = {"sessionId": "s", "isSidechain": False, "timestamp": _AT.format(1)}
    asked = {"role": "user", "content": "Read the files."}
    yield {"type": "user", "uuid": "u", "parentUuid": None, "message": asked, **links}
    before = "u"
    for turn in range(TURNS):
        usage = {
            "input_tokens": 100,
            "cache_read_input_tokens": 800 * (turn + 1),
            "output_tokens": 20,
        }
        call = {"type": "tool_use", "id": f"c{turn}", "name": "Read", "input": _input(turn)}
        content = [{"type": "text", "text": _answer(turn)}, call]
        message = {
            "id": f"m{turn}",
            "role": "assistant",
            "model": "claude-x",
            "content": content,
            "usage": usage,
        }
        this = {"type": "assistant", "uuid": f"a{turn}", "parentUuid": before}
        yield {**this, "message": message, **links}
        block = {"type": "tool_result", "tool_use_id": f"c{turn}", "content": _result(turn)}
        this = {"type": "user", "uuid": f"r{turn}", "parentUuid": f"a{turn}"}
        yield {**this, "message": {"role": "user", "content": [block]}, **links}
        before = f"r{turn}"
    summary = {"type": "system", "subtype": "compact_boundary", "uuid": "b", "parentUuid": None}
    yield {**summary, "logicalParentUuid": before, **links}


def _codex() -> Iterator[Record]:
    def item(kind: str, **more: Any) -> Record:
        payload = {"type": kind, **more}
        return {"timestamp": _AT.format(2), "type": "response_item", "payload": payload}

    base = {"base_instructions": {"text": "You are an agent."}, "id": "s"}
    yield {"timestamp": _AT.format(1), "type": "session_meta", "payload": base}
    asked = [{"type": "input_text", "text": "Read the files."}]
    yield item("message", role="user", content=asked)
    for turn in range(TURNS):
        yield item("reasoning", summary=[{"type": "summary_text", "text": "hm"}])
        said = [{"type": "output_text", "text": _answer(turn)}]
        yield item("message", role="assistant", content=said)
        arguments = json.dumps(_input(turn))
        yield item("function_call", name="read", arguments=arguments, call_id=f"c{turn}")
        yield item("function_call_output", call_id=f"c{turn}", output=_result(turn))
        size = 800 * (turn + 1)
        last = {"input_tokens": size, "cached_input_tokens": size - 100, "output_tokens": 20}
        info = {"total_token_usage": {"input_tokens": size * turn}, "last_token_usage": last}
        yield {"type": "event_msg", "payload": {"type": "token_count", "info": info}}


def _pi() -> Iterator[Record]:
    yield {"type": "session", "id": "s", "cwd": "/srv", "timestamp": _AT.format(1)}
    asked = [{"type": "text", "text": "Read the files."}]
    before = "u"
    yield {
        "type": "message",
        "id": "u",
        "parentId": None,
        "message": {"role": "user", "content": asked},
    }
    for turn in range(TURNS):
        call = {"type": "toolCall", "id": f"c{turn}", "name": "read", "arguments": _input(turn)}
        content = [{"type": "text", "text": _answer(turn)}, call]
        usage = {"input": 100, "cacheRead": 800 * (turn + 1), "cacheWrite": 10, "output": 5}
        message = {
            "role": "assistant",
            "content": content,
            "usage": usage,
            "stopReason": "toolUse",
            "timestamp": 1_767_225_601_000 + turn,
        }
        yield {"type": "message", "id": f"a{turn}", "parentId": before, "message": message}
        text = [{"type": "text", "text": _result(turn)}]
        shown = {"role": "toolResult", "toolCallId": f"c{turn}", "content": text, "isError": False}
        before = f"r{turn}"
        yield {"type": "message", "id": before, "parentId": f"a{turn}", "message": shown}
    yield {
        "type": "compaction",
        "id": "k",
        "parentId": before,
        "summary": "All was read.",
        "firstKeptEntryId": "a3",
        "firstKeptEntryIndex": 3,
    }


def _gemini() -> Record:
    messages: list[Record] = [{"id": "u", "type": "user", "content": "Read the files."}]
    for turn in range(TURNS):
        response = {"id": f"c{turn}", "name": "read", "response": {"output": _result(turn)}}
        call: Record = {"id": f"c{turn}", "name": "read", "args": _input(turn)}
        call["result"] = [{"functionResponse": response}]
        tokens = {"input": 800 * (turn + 1), "cached": 60, "output": 5, "thoughts": 2}
        messages.append(
            {
                "id": f"a{turn}",
                "type": "gemini",
                "content": _answer(turn),
                "tokens": tokens,
                "model": "gemini-x",
                "toolCalls": [call],
                "timestamp": _AT.format(turn),
            }
        )
    return {"sessionId": "s", "projectHash": "p", "messages": messages}


def _gemini_lines() -> list[Record]:
    document = _gemini()
    messages = document.pop("messages")
    return [document, *messages, {"$rewindTo": "a5"}, {"$set": {"messages": messages[:3]}}]


def _copilot() -> Iterator[Record]:
    def event(kind: str, **fields: Any) -> Record:
        return {"type": kind, "id": "e", "timestamp": _AT.format(1), "data": fields}

    yield event("session.start", sessionId="s")
    yield event("session.model_change", newModel="gpt-x")
    yield event("user.message", content="Read the files.")
    for turn in range(TURNS):
        call = {"toolCallId": f"c{turn}", "name": "view", "arguments": _input(turn)}
        yield event("assistant.message", content=_answer(turn), toolRequests=[call], outputTokens=5)
        shown = {"content": _result(turn)}
        yield event("tool.execution_complete", toolCallId=f"c{turn}", success=True, result=shown)
    yield event("session.compaction_complete", success=True, summaryContent="All was read.")
    yield event("assistant.message", content="Done.")
    metrics = {"gpt-x": {"usage": {"inputTokens": 9000, "outputTokens": 50}}}
    yield event("session.shutdown", modelMetrics=metrics)


def _copilot_chat() -> Record:
    rounds, results = [], {}
    for turn in range(TURNS):
        call = {"id": f"c{turn}", "name": "read_file", "arguments": json.dumps(_input(turn))}
        rounds.append({"response": _answer(turn), "toolCalls": [call]})
        results[f"c{turn}"] = {"content": [{"value": _result(turn)}]}
    metadata = {"toolCallRounds": rounds, "toolCallResults": results}
    request = {
        "message": {"text": "Read the files."},
        "response": [{"value": "Done."}],
        "result": {"metadata": metadata},
        "modelId": "copilot/gpt-x",
        "timestamp": 1_767_225_601_000,
    }
    return {"version": 3, "requests": [request]}


def _copilot_chat_lines() -> list[Record]:
    document = _copilot_chat()
    return [
        {"kind": 0, "v": {"version": 3, "requests": []}},
        {"kind": 2, "k": ["requests"], "v": document["requests"]},
        {"kind": 1, "k": ["requests", 0, "message", "text"], "v": "Read them."},
    ]


def _swe_agent() -> Record:
    history = [{**message, "agent": "main"} for message in _chat()]
    for message in history:
        if message["role"] == "tool":
            message["tool_call_ids"] = [message.pop("tool_call_id")]
    stats = {"model_stats": {"tokens_sent": 9000, "tokens_received": 90, "api_calls": TURNS}}
    config = json.dumps({"agent": {"model": {"name": "gpt-x"}}})
    return {"trajectory": [], "history": history, "info": stats, "replay_config": config}


def _mini_swe() -> Record:
    messages = _chat()
    for turn, message in enumerate(m for m in messages if m["role"] == "assistant"):
        response = {"usage": _usage(turn), "model": "gpt-x", "created": 86_400 + turn}
        message["extra"] = {"response": response}
    return {"trajectory_format": "mini-swe-agent-1", "messages": messages}


def _openhands() -> Record:
    def happened(number: int, **more: Any) -> Record:
        return {"id": number, "timestamp": _AT.format(1), "source": "agent", **more}

    events: list[Record] = [
        happened(0, action="system", args={"content": "You are an agent.", "tools": []}),
        happened(1, source="user", action="message", args={"content": "Read the files."}),
    ]
    for turn in range(TURNS):
        function = {"name": "read", "arguments": json.dumps(_input(turn))}
        message = {
            "role": "assistant",
            "content": _answer(turn),
            "tool_calls": [{"id": f"c{turn}", "function": function}],
        }
        response = {
            "id": f"r{turn}",
            "model": "gpt-x",
            "usage": _usage(turn),
            "choices": [{"message": message}],
        }
        origin = {"tool_call_id": f"c{turn}", "function_name": "read", "model_response": response}
        number = 2 * turn + 2
        events += [
            happened(number, action="run", args=_input(turn), tool_call_metadata=origin),
            happened(
                number + 1,
                observation="run",
                content=_result(turn),
                extras={"metadata": {"prefix": "[", "suffix": "]"}},
                tool_call_metadata=origin,
            ),
        ]
    forgotten = {"forgotten_event_ids": [2, 3], "summary": "Some was read."}
    events.append(happened(90, action="condensation", args=forgotten))
    events.append(happened(91, action="message", args={"content": "Done."}))
    return {"instance_id": "i", "history": events}


def _openhands_sdk() -> Iterator[Record]:
    def event(kind: str, number: int, **more: Any) -> Record:
        who = {"source": "agent", "timestamp": _AT.format(1), "id": str(number)}
        return {"kind": kind, **who, **more}

    prompt = {"type": "text", "text": "You are an agent."}
    yield event("SystemPromptEvent", 0, system_prompt=prompt, tools=[{"name": "read"}])
    asked = {"role": "user", "content": [{"type": "text", "text": "Read the files."}]}
    yield event("MessageEvent", 1, source="user", llm_message=asked)
    for turn in range(TURNS):
        call = {"id": f"c{turn}", "name": "read", "arguments": json.dumps(_input(turn))}
        yield event(
            "ActionEvent",
            2 * turn + 2,
            tool_call_id=f"c{turn}",
            tool_name="read",
            tool_call=call,
            llm_response_id=f"r{turn}",
            thought=[{"type": "text", "text": _answer(turn)}],
        )
        seen = {"content": [{"type": "text", "text": _result(turn)}]}
        yield event("ObservationEvent", 2 * turn + 3, tool_call_id=f"c{turn}", observation=seen)
    yield event(
        "Condensation", 90, forgotten_event_ids=["2", "3"], summary="Some.", summary_offset=1
    )


def _atif() -> Record:
    steps: list[Record] = [
        {"step_id": 1, "source": "system", "message": "You are an agent."},
        {"step_id": 2, "source": "user", "message": "Read the files."},
    ]
    for turn in range(TURNS):
        call = {"tool_call_id": f"c{turn}", "function_name": "read", "arguments": _input(turn)}
        result = {"source_call_id": f"c{turn}", "content": _result(turn)}
        step = {"step_id": turn + 3, "source": "agent", "message": _answer(turn)}
        step |= {"tool_calls": [call], "observation": {"results": [result]}}
        steps.append({**step, "metrics": _usage(turn), "timestamp": _AT.format(turn)})
    agent = {"name": "lyre", "version": "1", "model_name": "gpt-x"}
    return {"schema_version": "ATIF-v1.6", "session_id": "s", "agent": agent, "steps": steps}


def _attribute(key: str, value: object) -> Record:
    kind = "intValue" if isinstance(value, int) else "stringValue"
    return {"key": key, "value": {kind: str(value) if kind == "intValue" else value}}


def _part(message: Record) -> list[Record]:
    if message["role"] == "tool":
        shown = {"id": message["tool_call_id"], "response": message["content"]}
        return [{"type": "tool_call_response", **shown}]
    calls = [
        {"type": "tool_call", "id": one["id"], **one["function"]}
        for one in message.get("tool_calls", ())
    ]
    return [{"type": "text", "content": message["content"]}, *calls]


def _otel() -> Record:
    messages = _chat()
    told = [{"role": message["role"], "parts": _part(message)} for message in messages]
    spans: list[Record] = [{"traceId": "ab", "spanId": "00", "name": "agent", "attributes": []}]
    replies = [n for n, message in enumerate(messages) if message["role"] == "assistant"]
    for turn, place in enumerate(replies):
        said = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "gpt-x",
            "gen_ai.input.messages": json.dumps(told[:place]),
            "gen_ai.output.messages": json.dumps(told[place : place + 1]),
            "gen_ai.usage.input_tokens": _usage(turn)["prompt_tokens"],
            "gen_ai.usage.output_tokens": 20,
        }
        attributes = [_attribute(key, value) for key, value in said.items()]
        span = {"traceId": "ab", "spanId": f"0{turn + 1}", "parentSpanId": "00", "name": "chat"}
        end = str(1_767_225_600_000_000_000 + turn)
        spans.append({**span, "endTimeUnixNano": end, "attributes": attributes})
    return {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}


def _opencode() -> Record:
    def message(role: str, number: int, parts: list[Record], **more: Any) -> Record:
        created = 1_767_225_600_000 + 1_000 * number
        info = {"id": f"{role}{number}", "sessionID": "ses_1", "role": role}
        return {"info": {**info, "time": {"created": created}, **more}, "parts": parts}

    messages = [message("user", 0, [{"type": "text", "text": "Read the files."}])]
    for turn in range(TURNS):
        cache = {"read": 800 * turn, "write": 0}
        tokens = {"input": 900, "output": 20, "reasoning": 3, "cache": cache}
        state = {"status": "completed", "input": _input(turn), "output": _result(turn)}
        parts: list[Record] = [
            {"type": "step-start"},
            {"type": "text", "text": _answer(turn)},
            {"type": "tool", "callID": f"c{turn}", "tool": "read", "state": state},
            {"type": "step-finish", "tokens": tokens},
        ]
        messages.append(message("assistant", turn + 1, parts, modelID="gpt-x", tokens=tokens))
    info = {"id": "ses_1", "directory": "/srv", "title": "Files"}
    return {"info": info, "messages": messages}


def _claude_stream() -> Iterator[Record]:
    beside = {"session_id": "s", "parent_tool_use_id": None, "uuid": "u"}
    yield {"type": "system", "subtype": "init", "cwd": "/srv", "tools": ["Read"], **beside}
    for turn in range(TURNS):
        call = {"type": "tool_use", "id": f"c{turn}", "name": "Read", "input": _input(turn)}
        usage = {"input_tokens": 100, "cache_read_input_tokens": 800 * turn, "output_tokens": 1}
        for block in ({"type": "text", "text": _answer(turn)}, call):
            said = {"id": f"m{turn}", "role": "assistant", "content": [block], "usage": usage}
            yield {"type": "assistant", "message": {**said, "model": "claude-x"}, **beside}
        block = {"type": "tool_result", "tool_use_id": f"c{turn}", "content": _result(turn)}
        yield {"type": "user", "message": {"role": "user", "content": [block]}, **beside}
    yield {"type": "result", "subtype": "success", "usage": {"input_tokens": 9}, **beside}


def _gemini_stream() -> Iterator[Record]:
    def event(kind: str, **more: Any) -> Record:
        return {"type": kind, "timestamp": _AT.format(1), **more}

    yield event("init", session_id="s", model="gemini-x")
    yield event("message", role="user", content="Read the files.")
    for turn in range(TURNS):
        yield event("message", role="assistant", content=_answer(turn), delta=True)
        yield event("tool_use", tool_name="read", tool_id=f"c{turn}", parameters=_input(turn))
        yield event("tool_result", tool_id=f"c{turn}", status="success", output=_result(turn))
    sums = {"input_tokens": 9000, "output_tokens": 50, "cached": 4000, "total_tokens": 9060}
    yield event("result", status="success", stats=sums)


def _qwen() -> Iterator[Record]:
    def record(kind: str, uuid: str, before: str | None, part: Record, **more: Any) -> Record:
        links = {"uuid": uuid, "parentUuid": before, "sessionId": "s", "timestamp": _AT.format(1)}
        role = "model" if kind == "assistant" else "user"
        return {**links, "type": kind, "message": {"role": role, "parts": [part]}, **more}

    yield record("user", "u", None, {"text": "Read the files."})
    before = "u"
    for turn in range(TURNS):
        usage = {"promptTokenCount": 900 + 800 * turn, "cachedContentTokenCount": 800 * turn}
        said = record("assistant", f"a{turn}", before, {"text": _answer(turn)}, model="qwen-x")
        call = {"id": f"c{turn}", "name": "read_file", "args": _input(turn)}
        said["message"]["parts"].append({"functionCall": call})
        yield {**said, "usageMetadata": {**usage, "candidatesTokenCount": 20}}
        answer = {"id": f"c{turn}", "name": "read", "response": {"output": _result(turn)}}
        yield record("tool_result", f"r{turn}", f"a{turn}", {"functionResponse": answer})
        before = f"r{turn}"
    kept = [{"role": "user", "parts": [{"text": "All was read."}]}]
    small = record("system", "k", before, {}, subtype="chat_compression")
    yield {**small, "message": None, "systemPayload": {"compressedHistory": kept}}


def _cline() -> list[Record]:
    details = {"type": "text", "text": "<environment_details>\n# Files\n</environment_details>"}
    asked = {"type": "text", "text": "<task>\nRead the files.\n</task>"}
    messages: list[Record] = [{"role": "user", "content": [asked, details]}]
    for turn in range(TURNS):
        call = {"type": "tool_use", "id": f"c{turn}", "name": "read_file", "input": _input(turn)}
        text = {"type": "text", "text": _answer(turn)}
        tokens = {"prompt": 100, "completion": 20, "cached": 800 * turn}
        said = {"role": "assistant", "content": [text, call], "metrics": {"tokens": tokens}}
        messages.append({**said, "modelInfo": {"modelId": "claude-x"}})
        result = {"type": "text", "text": f"[read_file for '{turn}'] Result:\n{_result(turn)}"}
        messages.append({"role": "user", "content": [result, details]})
    return messages


def _cline_cli() -> Record:
    messages: list[Record] = [{"role": "user", "content": [{"type": "text", "text": "Read."}]}]
    for turn in range(TURNS):
        call = {"type": "tool_use", "id": f"c{turn}", "name": "read_files", "input": _input(turn)}
        text = {"type": "text", "text": _answer(turn)}
        bill = {"inputTokens": 900 + 800 * turn, "cacheReadTokens": 800 * turn, "outputTokens": 20}
        said = {"role": "assistant", "content": [text, call], "metrics": bill}
        messages.append({**said, "modelInfo": {"id": "claude-x"}, "ts": 1_767_225_601_000})
        given = [{"query": f"{turn}.py", "result": _result(turn), "success": True}]
        result = {"type": "tool_result", "tool_use_id": f"c{turn}", "content": given}
        messages.append({"role": "user", "content": [result]})
    head = {"version": 1, "agent": "lead", "sessionId": "s", "origin": {"source": "cli"}}
    return {**head, "messages": messages, "system_prompt": "Working Directory: /srv\n"}


def _tau2() -> Record:
    messages: list[Record] = []
    for turn, message in enumerate(_chat()[1:]):
        if calls := message.get("tool_calls"):
            given = json.loads(calls[0]["function"]["arguments"])
            called = {"id": calls[0]["id"], "name": "read", "arguments": given}
            message |= {
                "tool_calls": [{**called, "requestor": "assistant"}],
                "usage": _usage(turn),
            }
        if message["role"] == "tool":
            message |= {"id": message.pop("tool_call_id"), "requestor": "assistant"}
        messages.append(message)
    info = {"agent_info": {"llm": "gpt-x"}, "environment_info": {"policy": "Be kind."}}
    return {"info": info, "simulations": [{"task_id": "8", "trial": 3, "messages": messages}]}


def _tau_bench() -> list[Record]:
    return [{"task_id": n, "trial": 0, "traj": _chat()} for n in (1, 2)]


def _inspect() -> Record:
    messages: list[Record] = []
    events: list[Record] = []
    for turn, message in enumerate(_chat()):
        if message["role"] == "assistant":
            message |= {"id": f"m{turn}", "source": "generate"}
            usage = {"input_tokens": 900 + 400 * turn, "output_tokens": 5, "total_tokens": 9}
            output = {"choices": [{"message": {"id": f"m{turn}"}}], "usage": usage}
            events.append({"event": "model", "timestamp": _AT.format(1), "output": output})
        if calls := message.get("tool_calls"):
            given = json.loads(calls[0]["function"]["arguments"])
            message["tool_calls"] = [{"id": calls[0]["id"], "function": "read", "arguments": given}]
        messages.append(message)
    messages[1]["content"] = [{"type": "text", "text": "attachment://a"}]
    sample = {"id": 1, "epoch": 1, "messages": messages, "events": events}
    sample["attachments"] = {"a": "Read the files."}
    return {"version": 2, "eval": {"model": "openai/gpt-x"}, "samples": [sample]}


def _request_log() -> Iterator[Record]:
    messages = _chat()
    replies = [n for n, message in enumerate(messages) if message["role"] == "assistant"]
    for turn, place in enumerate(replies):
        response = {
            "choices": [{"message": messages[place]}],
            "usage": _usage(turn),
            "created": 86_400 + turn,
        }
        request = {"model": "gpt-x", "messages": messages[:place]}
        yield {"request": request, "response": response}


def documents() -> dict[str, object]:
    """Return a document of each format that has one."""
    return {
        "cline": _cline(),
        "cline-cli": _cline_cli(),
        "gemini-cli": _gemini(),
        "copilot-chat": _copilot_chat(),
        "swe-agent": _swe_agent(),
        "mini-swe-agent": _mini_swe(),
        "atif": _atif(),
        "otel": _otel(),
        "opencode": _opencode(),
        "openhands": _openhands(),
        "tau2": _tau2(),
        "tau-bench": _tau_bench(),
        "inspect": _inspect(),
        "chat": _chat(),
    }


def line_records() -> dict[str, list[Record]]:
    """Return the records of each format that is written as JSON lines."""
    return {
        "claude-code": list(_claude_code()),
        "claude-stream-json": list(_claude_stream()),
        "codex": list(_codex()),
        "pi": list(_pi()),
        "gemini-cli": _gemini_lines(),
        "gemini-stream-json": list(_gemini_stream()),
        "qwen-code": list(_qwen()),
        "copilot-cli": list(_copilot()),
        "copilot-chat": _copilot_chat_lines(),
        "openhands": list(_openhands_sdk()),
        "atif": [_atif(), {**_atif(), "session_id": "t"}],
        "request-log": list(_request_log()),
        "chat": _chat(),
    }


def archived(document: object) -> bytes:
    """Return a log of inspect as an `.eval` archive."""
    fields = dict(document) if isinstance(document, dict) else {}
    samples = fields.pop("samples", ())
    files = {"header.json": fields}
    files |= {
        f"samples/{n}.json": one
        for n, one in enumerate(samples if isinstance(samples, list) else ())
    }
    return packed({name: encoded(value) for name, value in files.items()})


def packed(files: dict[str, bytes]) -> bytes:
    """Return a zip archive of these files."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return content.getvalue()


def encoded(value: object) -> bytes:
    """Return JSON in UTF-8; lone surrogates are escaped."""
    return json.dumps(value).encode()


def encoded_lines(records: Sequence[object]) -> bytes:
    """Return JSON lines in UTF-8."""
    return b"\n".join(map(encoded, records)) + b"\n"
