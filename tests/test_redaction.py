"""`redact`: secrets leave messages before anything else reads them."""

from __future__ import annotations

import asyncio
import copy
import json
import re
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from openai.types.chat import ChatCompletionMessage

from policyctx import Session
from policyctx.errors import StoreError
from policyctx.integrations.tools import ReadBackTools
from policyctx.messages.door import Door
from policyctx.messages.shapes.built_in import BUILT_IN
from policyctx.patterns import Secrets
from policyctx.policy.loading import load_policy
from tests.cli.running import policyctx
from tests.conversations import call, results, session_of, thinking, user
from tests.growing import grows_at_most
from tests.hosts.test_boxed_messages import Box, BoxShape
from tests.integrations.claude_code import bash, event, hook, new_output
from tests.policies import policy
from tests.proxy.running import posted, proxy, upstream

KEY = "sk-abcdefghijklmnopqrstuvwx"
MARK = "[redacted:api_key]"
REDACTING = """\
    redact: {api_key: 'sk-[A-Za-z0-9]{20,}', password: 'password=(\\S+)'}
    min_chars: 100
    items: {tool_result: {offload: true}}
    steps: [{name: s, do: offload}]
    """


def everything_in(root: Path) -> str:
    files = (path for path in root.rglob("*") if path.is_file())
    return "\n".join(path.read_bytes().decode("utf-8", "replace") for path in files)


def patterns_of(path: Path) -> dict[str, str]:
    return {name: secret.pattern for name, secret in load_policy(path).redact.items()}


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(policy(REDACTING), root=tmp_path, session_id="s", record=tmp_path / "r.jsonl")


def test_no_secret_is_sent_saved_or_recorded(session: Session, tmp_path: Path) -> None:
    before = session_of(f"{KEY} " * 30, tool="Bash")
    before[1]["content"][0]["input"] = {"command": f"curl -H {KEY}", "id": KEY, "n": [1, KEY]}
    messages = [*before, user(f"use {KEY}, password=hunter2!")]
    given = copy.deepcopy(messages)
    result = session.apply(messages)
    session.observe({"input_tokens": 5, "output_tokens": 1})
    session.close()
    sent = json.dumps(result.messages)
    assert messages == given
    assert KEY not in sent + everything_in(tmp_path)
    assert "hunter2" not in sent + everything_in(tmp_path)
    assert result.messages[-1]["content"] == f"use {MARK}, password=[redacted:password]"
    assert result.messages[1]["content"][0]["input"] == {
        "command": f"curl -H {MARK}",
        "id": MARK,
        "n": [1, MARK],
    }
    assert session.read("c0") == f"{MARK} " * 30


def test_a_message_without_a_secret_is_the_same_object(session: Session) -> None:
    messages = [user("one"), user(f"my {KEY}"), user("three")]
    result = session.apply(messages)
    assert result.messages[0] is messages[0]
    assert result.messages[2] is messages[2]
    clean = [user("one"), user("two")]
    assert session.apply(clean).messages is clean


def test_later_turns_and_restarted_sessions_return_the_same(
    session: Session, tmp_path: Path
) -> None:
    messages = [*session_of(f"{KEY} " * 30), user(KEY)]
    first = session.apply(messages).messages
    longer = [*messages, user("go on")]
    assert session.apply(longer).messages[:-1] == first
    assert session.apply([*first, user("go on")]).messages[:-1] == first
    again = Session(policy(REDACTING), root=tmp_path, session_id="s")
    assert again.apply(copy.deepcopy(longer)).messages[:-1] == first
    assert asyncio.run(again.apply_async(longer)).messages[:-1] == first


def test_previews_and_plans_know_no_secret(session: Session) -> None:
    messages = [user(f"my {KEY}")]
    assert session.preview(messages) == [user(f"my {MARK}")]
    assert session.plan(messages).items[0].text == f"my {MARK}"


def test_a_result_is_redacted_on_arrival_with_its_call(tmp_path: Path) -> None:
    session = Session(policy(REDACTING), root=tmp_path)
    messages = [user("go")]
    session.apply(messages)
    messages.append(call("a", "Bash", {"command": f"echo {KEY}"}))
    result = session.on_tool_result(results(("a", f"it is {KEY}")))
    assert result.messages == [results(("a", f"it is {MARK}"))]
    assert result.plan.items[0].tool == "Bash"
    assert KEY not in str(result.plan.items)


def test_the_text_of_a_restored_file_is_redacted(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work/a.txt").write_text(f"key {KEY}\n", encoding="utf-8")
    text = f"""\
    redact: {{api_key: 'sk-[A-Za-z0-9]{{20,}}'}}
    tools: {{Read: {{reads_file: path}}}}
    compaction: {{restore: {{max_files: 2, work_dir: {tmp_path / "work"}}}}}
    steps: [{{name: c, do: compact}}]
    """
    session = Session(policy(text), root=tmp_path / "s")
    messages = [user("go"), call("a", "Read", {"path": "a.txt"}), results(("a", "x " * 5000))]
    sent = json.dumps(session.apply([*messages, user("more")]).messages)
    assert f"key {MARK}" in sent
    assert KEY not in sent + everything_in(tmp_path / "s")


SIGNED = {**thinking(f"hm {KEY}"), "signature": KEY}
IMAGE = {"type": "base64", "media_type": "image/png", "data": KEY}
SHAPES: dict[str, tuple[list[Any], list[Any]]] = {
    "chat": (
        [
            {"role": "system", "content": f"a {KEY}"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "a",
                        "type": "function",
                        "function": {"name": "f", "arguments": json.dumps({"x\n": f"b\n{KEY}"})},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": KEY}]},
        ],
        ["a [redacted:api_key]", "b\\\\n[redacted:api_key]", '"text": "[redacted:api_key]"'],
    ),
    "responses": (
        [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": KEY}]},
            {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "gAAA"},
            {"type": "function_call", "call_id": "a", "name": "f", "arguments": f'{{"x":"{KEY}"}}'},
            {"type": "function_call_output", "call_id": "a", "output": f"c {KEY}"},
            {"role": "user", "content": "go"},
        ],
        ['"text": "[redacted:api_key]"', '\\"x\\":\\"[redacted:api_key]\\"', "c [redacted"],
    ),
    "gemini": (
        [
            {"role": "user", "parts": [{"text": f"d {KEY}"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"id": KEY}}}]},
            {
                "role": "user",
                "parts": [{"functionResponse": {"name": "f", "response": {"result": KEY}}}],
            },
        ],
        ["d [redacted", '"id": "[redacted:api_key]"', '"result": "[redacted:api_key]"'],
    ),
    "anthropic": (
        [
            user("go"),
            {"role": "assistant", "content": [*call("a", "Bash", {"name": KEY})["content"]]},
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "a",
                        "content": [
                            {"type": "text", "text": f"e {KEY}"},
                            {"type": "text", "text": "f"},
                        ],
                    }
                ],
            },
        ],
        ['{"name": "[redacted:api_key]"}', "e [redacted:api_key]", '"text": "f"'],
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_each_shape_is_redacted_and_stays_valid(tmp_path: Path, shape: str) -> None:
    messages, wanted = SHAPES[shape]
    result = Session(policy(REDACTING), root=tmp_path).apply(copy.deepcopy(messages))
    sent = json.dumps(result.messages)
    assert KEY not in sent
    assert [text for text in wanted if text not in sent] == []
    assert len(result.messages) == len(messages)


def test_thinking_signatures_and_media_keep_their_bytes(tmp_path: Path) -> None:
    blocks = [SIGNED, {"type": "text", "text": KEY}]
    picture = {"type": "image", "source": IMAGE}
    messages = [user("go"), {"role": "assistant", "content": blocks}]
    messages += [{"role": "user", "content": [picture, {"type": "text", "text": KEY}]}]
    sent = Session(policy(REDACTING), root=tmp_path).apply(messages).messages
    assert sent[1]["content"] == [SIGNED, {"type": "text", "text": MARK}]
    assert sent[2]["content"] == [picture, {"type": "text", "text": MARK}]


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ('{"password": "hunter2"}', '{"redacted":"{\\"[redacted:word]"}'),
        ('{"x": "a", "hunter2": 1}', '{"x": "a", "[redacted:name]": 1}'),
        ('{"x": "hunter2", "hunter2": 1}', '{"x": "[redacted:name]", "[redacted:name]": 1}'),
        ("hunter2, which is no JSON", "[redacted:name], which is no JSON"),
    ],
)
def test_the_input_of_a_call_stays_an_object_whatever_a_pattern_matches(
    given: str, sent: str, tmp_path: Path
) -> None:
    keys = r"redact: {word: 'password.*', name: hunter2}"
    asked = {"id": "a", "type": "function", "function": {"name": "f", "arguments": given}}
    call = {"role": "assistant", "content": None, "tool_calls": [asked]}
    messages = [user("go"), call, {"role": "tool", "tool_call_id": "a", "content": "done"}]
    session = Session(policy(keys), root=tmp_path)
    found = session.apply(messages).messages
    assert found[1]["tool_calls"][0]["function"]["arguments"] == sent
    assert session.apply([*found, user("more")]).messages[:-1] == found


def test_the_objects_of_an_sdk_and_of_a_host_are_redacted(tmp_path: Path) -> None:
    given = json.dumps({"x": KEY})
    asked = {"id": "a", "type": "function", "function": {"name": "f", "arguments": given}}
    reply = ChatCompletionMessage.model_validate({"role": "assistant", "tool_calls": [asked]})
    messages = [user("go"), reply, {"role": "tool", "tool_call_id": "a", "content": KEY}]
    sent = Session(policy(REDACTING), root=tmp_path / "a").apply(messages).messages
    assert sent[1]["tool_calls"][0]["function"]["arguments"] == json.dumps({"x": MARK})
    assert sent[2]["content"] == MARK
    boxes = [Box(one) for one in [*session_of(f"it is {KEY}"), user(KEY), user("so")]]
    boxes[1].inner["content"][0]["input"] = {"command": KEY}
    session = Session(policy(REDACTING), root=tmp_path / "b", shapes=[BoxShape()])
    found = session.apply(boxes).messages
    assert KEY not in str([box.inner for box in found])
    assert found[-1] is boxes[-1]
    assert session.apply([*boxes, Box(user("more"))]).messages[:-1] == found


def test_explain_says_what_was_redacted(tmp_path: Path) -> None:
    written = tmp_path / "p.yaml"
    written.write_text(f"apiVersion: policyctx/v1\nname: p\nredact: {{api_key: '{KEY[:9]}\\w+'}}\n")
    session = tmp_path / "session.json"
    session.write_text(json.dumps([user(f"{KEY} and {KEY}")]))
    run = policyctx("explain", str(written), str(session))
    assert f"redacted: api_key, 2 × ({written}:3)" in run.stdout
    assert KEY not in run.stdout


def test_the_hook_redacts_a_short_result(tmp_path: Path) -> None:
    written = tmp_path / "p.yaml"
    text = "apiVersion: policyctx/v1\nname: p\nextends: [claude-code, secrets]\n"
    written.write_text(text, encoding="utf-8")
    shown = bash(f"TOKEN=ghp_{'a1B2' * 9}", f"{KEY}")
    for _ in range(2):  # the second hook knows from which size on the policy takes results
        output = new_output(hook(event("Bash", shown, cwd=tmp_path), "--policy", str(written)))
        assert output["stdout"] == "TOKEN=[redacted:github_token]"
        assert output["stderr"] == "[redacted:openai_key]"


@pytest.mark.slow
def test_a_request_through_the_proxy_is_redacted(tmp_path: Path) -> None:
    text = "apiVersion: policyctx/v1\nname: p\nextends: secrets\n"
    with upstream() as api, proxy(tmp_path, api.url, policy=text) as running:
        messages = [user(f"my {KEY}")]
        for i in range(3):
            body = {"model": "m", "messages": messages, "max_tokens": 5}
            assert posted(running.url + "/v1/messages", body)[0] == 200
            messages = [*messages, {"role": "assistant", "content": "ok"}, user(f"{i} {KEY}")]
        for seen in api.seen:
            assert KEY.encode() not in seen.raw
        assert api.seen[2].body["messages"][-1] == user("1 [redacted:openai_key]")


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("anthropic_key", "sk-ant-" + "api03-" + "x9" * 20),
        ("openai_key", "sk-" + "proj-" + "Ab1_" * 10),
        ("aws_access_key_id", "AKIA" + "IOSFODNN7EXAMPLE"),
        ("github_token", "ghp_" + "a1B2" * 9),
        ("json_web_token", "eyJhbGciOiJI." + "eyJzdWIiOiIx." + "SflKxwRJSMeK"),
        ("slack_token", "xoxb-" + "1234567890-abc"),
        ("private_key", "-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----"),
        ("stripe_key", "sk_live_" + "abcdefgh12345678"),
    ],
)
def test_the_fragment_knows_common_secrets(tmp_path: Path, name: str, secret: str) -> None:
    written = tmp_path / "p.yaml"
    written.write_text("apiVersion: policyctx/v1\nname: p\nextends: secrets\n", encoding="utf-8")
    found = Session(written, root=tmp_path / "s").apply([user(f"it is {secret}, so")])
    assert found.messages == [user(f"it is [redacted:{name}], so")]


def test_the_fragment_finds_the_part_that_is_secret(tmp_path: Path) -> None:
    written = tmp_path / "p.yaml"
    written.write_text("apiVersion: policyctx/v1\nname: p\nextends: secrets\n", encoding="utf-8")
    secrets = Secrets(patterns_of(written))
    text = "postgres://me:" + "s3cr3t@db/x and AWS_SECRET_ACCESS_KEY=" + "abcd/EFGH1" * 4
    assert secrets.replaced(text) == (
        "postgres://me:[redacted:url_password]@db/x and "
        "AWS_SECRET_ACCESS_KEY=[redacted:aws_secret_access_key]"
    )
    plain = "the task-list sk-learn 0123 eyJ https://example.com:80/a @b def sk_live_ AKIA"
    assert secrets.replaced(plain) is plain


@pytest.mark.parametrize("text", ["password=a password=b", f"password={KEY}", "é\ud800 password=x"])
def test_what_is_redacted_stays_as_it_is(text: str) -> None:
    secrets = Secrets({"api_key": "sk-[A-Za-z0-9]{20,}", "password": r"password=(\S+)"})
    once = secrets.replaced(text)
    assert "[redacted:" in once
    assert secrets.replaced(once) == once


@pytest.mark.parametrize("pattern", ["[a-f]+", r"\w{4,}", "redacted", r"=(\S{5})", "x:.{4}"])
@pytest.mark.parametrize("text", ["the fed=abcd", "x:[redacted:b] x:y", "key=[redacted:x]abc"])
def test_a_pattern_that_matches_a_part_of_a_mark_leaves_marks_whole(
    pattern: str, text: str
) -> None:
    secrets = Secrets({"x": pattern})
    once = secrets.replaced(text)
    assert secrets.replaced(once) == once
    assert "[" not in re.sub(r"\[redacted:\w+\]", "", once)


@pytest.mark.slow
def test_no_pattern_takes_more_than_linear_time() -> None:
    secrets = Secrets({"one": "(?:a+)+b", "two": r"(?:\w+\s?)*:$"})
    assert grows_at_most(lambda size: partial(secrets.replaced, "a" * size), 100_000)


@pytest.mark.slow
@pytest.mark.parametrize("edits", [0, 20])
def test_a_pass_is_a_small_part_of_a_turn(tmp_path: Path, edits: int) -> None:
    written = tmp_path / "p.yaml"
    written.write_text("apiVersion: policyctx/v1\nname: p\nextends: secrets\n", encoding="utf-8")
    door = Door(patterns_of(written), "keep", BUILT_IN)
    text = (
        "items: {tool_result: {offload: true, keep_recent: 3}}\nsteps: [{name: s, do: offload}]\n"
    )
    session = Session(policy(text), root=tmp_path, session_id="s")
    messages = session_of(*(f"line {i} of an output\n" * 40 for i in range(400)))
    passes, turns = 0.0, 0.0
    for i in range(50):
        begin = time.process_time()
        door.let_in(messages)
        passed = time.process_time()
        session.apply(messages)
        turns += time.process_time() - passed
        passes += passed - begin
        messages = [*messages, *session_of(f"result {i}\n" * 40)[1:]]
        made = [{"old": f"line {n} of {i}", "new": f"other {n}"} for n in range(edits)]
        messages[-2]["content"][0]["input"] = {"edits": made}
    assert passes < turns * 0.1


@pytest.mark.slow
def test_a_list_that_is_made_anew_is_not_searched_again(tmp_path: Path) -> None:
    written = tmp_path / "p.yaml"
    written.write_text("apiVersion: policyctx/v1\nname: p\nextends: secrets\n", encoding="utf-8")
    door = Door(patterns_of(written), "keep", BUILT_IN)
    said = json.dumps(session_of(*(f"line {i} of an output\n" * 40 for i in range(1000))))
    times = []
    for _ in range(9):
        messages = json.loads(said)
        begin = time.process_time()
        door.let_in(messages)
        times.append(time.process_time() - begin)
    assert min(times[1:]) < times[0] / 4


def test_a_list_that_is_made_anew_is_redacted_as_before(tmp_path: Path) -> None:
    session = Session(policy(REDACTING), root=tmp_path)
    messages = [user(f"my {KEY}"), *session_of("a", KEY, f"{KEY} " * 30)[1:], user("b")]
    first = [*session.apply(messages).messages]
    messages.append(user("c"))
    for given in (copy.deepcopy(messages), messages[:3], copy.deepcopy(messages[:2]), messages):
        output = session.apply(given).messages
        assert [*output] == [*first, user("c")][: len(given)]
    messages[-1] = user(KEY)
    assert session.apply(copy.deepcopy(messages)).messages == [*first, user(MARK)]
    unchanged = copy.deepcopy(messages)
    assert session.apply(unchanged).messages[-3] is unchanged[-3] or KEY in str(unchanged[-3])


class Counted(str):
    """A text that counts how often texts of its kind are compared."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


@pytest.mark.parametrize("key", ["", KEY])
def test_a_list_that_is_made_anew_is_compared_once(tmp_path: Path, key: str) -> None:
    session = Session(policy(REDACTING), root=tmp_path)
    for turn in range(20, 24):
        given = [user(f"{key} {i}") for i in range(turn)]
        given[:20] = [user(Counted(one["content"])) for one in given[:20]]
        Counted.compared = 0
        output = session.apply(given).messages
        assert turn == 20 or Counted.compared == 20
        assert key or output is given
        assert all((new is one) == (not key) for new, one in zip(output, given, strict=True))


def test_a_message_that_was_changed_in_place_is_redacted_in_a_copy(tmp_path: Path) -> None:
    session = Session(policy(REDACTING), root=tmp_path / "a")
    messages = [user("a"), *session_of("b")[1:], user("d")]
    session.apply(messages)
    messages[-1]["content"] = KEY
    assert KEY not in str(session.apply(copy.deepcopy(messages)).messages)
    session = Session(policy(REDACTING), root=tmp_path / "b", shapes=[BoxShape()])
    boxes = [Box(user("a")), Box(user("b"))]
    session.apply(boxes)
    boxes[-1].inner["content"] = KEY
    found = session.apply(copy.deepcopy(boxes)).messages
    assert KEY not in str([box.inner for box in found])


def test_patterns_with_groups_of_one_name_are_all_looked_for() -> None:
    secrets = Secrets({"a": "(?P<x>a1)", "b": "b(?P<x>2)", "c": r"c\(3"})
    assert secrets.replaced("a1 b2 c(3") == "[redacted:a] b[redacted:b] [redacted:c]"


KEEPING = """\
    redact:
      api_key: {pattern: 'sk-[A-Za-z0-9]{20,}', keep: true}
      password: 'password=(\\S+)'
    min_chars: 100
    items: {tool_result: {offload: true}}
    steps: [{name: s, do: offload}]
    """


def originals_in(root: Path, session_id: str = "s") -> list[tuple[str, str]]:
    journal = root / ".policyctx" / session_id / "journal.jsonl"
    lines = map(json.loads, journal.read_text(encoding="utf-8").splitlines())
    records = (line.get("record", {}) for line in lines)
    return [(r["name"], r["text"]) for r in records if r.get("record") == "redacted"]


def keeping(root: Path, more: str = "", **options: Any) -> Session:
    return Session(policy(KEEPING + more), root=root, session_id="s", **options)


def test_an_original_is_saved_once_where_no_tool_reads_it(tmp_path: Path) -> None:
    session = keeping(tmp_path, record=tmp_path / "r.jsonl")
    messages = [*session_of(f"{KEY} " * 30, tool="Bash"), user(f"{KEY} password=hunter2!")]
    sent = session.apply(messages).messages
    session.observe({"input_tokens": 5, "output_tokens": 1})
    session.apply([*messages, user(f"again {KEY}")])
    session.close()
    assert originals_in(tmp_path) == [("api_key", KEY)]
    journal = tmp_path / ".policyctx/s/journal.jsonl"
    assert journal.stat().st_mode & 0o077 == 0
    tools = ReadBackTools(session)
    shown = [json.dumps(sent), tools.search_offloaded(KEY[:9]), tools.search_offloaded("redacted")]
    for path in ("journal.jsonl", ".policyctx/s/journal.jsonl", ".policyctx/s/index.json"):
        shown += [tools.read_offloaded(path), tools.read_offloaded(str(tmp_path / path))]
    shown += [path.read_text("utf-8") for path in (tmp_path / "tool_result").rglob("*.md")]
    shown += [(tmp_path / "r.jsonl").read_text("utf-8")]
    assert [text for text in shown if KEY in text] == []
    assert "hunter2" not in everything_in(tmp_path)


def test_an_original_is_not_saved_again_after_a_restart(tmp_path: Path) -> None:
    keeping(tmp_path).apply([user(KEY)])
    again = keeping(tmp_path)
    assert again.apply([user(KEY)]).messages == [user(MARK)]
    asyncio.run(again.apply_async([user(f"{KEY}, and {KEY}2")]))
    again.on_tool_result(results(("a", f"{KEY}3")), call=call("a", "Bash", {"command": KEY}))
    again.compact([user(f"{KEY}4")])
    assert [text for _, text in originals_in(tmp_path)] == [
        KEY + end for end in ("", "2", "3", "4")
    ]
    assert KEY not in str(again.plan([user(f"{KEY}5")]).items)
    assert len(originals_in(tmp_path)) == 4
    again.apply([user("go on")])
    assert originals_in(tmp_path)[-1] == ("api_key", f"{KEY}5")


def test_two_sessions_of_one_folder_keep_the_originals_of_both(tmp_path: Path) -> None:
    one, other = keeping(tmp_path), keeping(tmp_path)
    for i, session in enumerate((one, other, one, other)):
        session.apply([user(f"{KEY}{i}")])
    assert sorted(text for _, text in originals_in(tmp_path)) == [f"{KEY}{i}" for i in range(4)]


def test_what_is_kept_has_no_secret_that_is_not(tmp_path: Path) -> None:
    text = """\
    redact: {line: {pattern: 'set .*', keep: true}, api_key: 'sk-[A-Za-z0-9]{20,}'}
    """
    sent = Session(policy(text), root=tmp_path, session_id="s").apply([user(f"set x={KEY}")])
    assert sent.messages == [user("[redacted:line]")]
    assert originals_in(tmp_path) == [("line", f"set x={MARK}")]


def test_a_full_disk_keeps_no_original_and_sends_none(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("in the way of the folder", encoding="utf-8")
    session = keeping(tmp_path / "s")
    result = session.apply([user(KEY)])
    assert result.messages == [user(MARK)]
    assert "cannot be written" in str(result.warnings)
    (tmp_path / "s").unlink()
    session.apply([user("go on")])
    assert originals_in(tmp_path / "s") == [("api_key", KEY)]
    raising = keeping(tmp_path / "t", "store: {on_failure: raise}\n")
    (tmp_path / "t").write_text("in the way of the folder", encoding="utf-8")
    for _ in range(2):
        with pytest.raises(StoreError):
            raising.apply([user(KEY)])


def test_a_secret_may_be_kept_that_a_policy_inherits(tmp_path: Path) -> None:
    written = tmp_path / "p.yaml"
    text = (
        "apiVersion: policyctx/v1\nname: p\nextends: secrets\nredact: {openai_key: {keep: true}}\n"
    )
    written.write_text(text, encoding="utf-8")
    session = Session(written, root=tmp_path / "r", session_id="s")
    assert session.apply([user(KEY)]).messages == [user("[redacted:openai_key]")]
    assert originals_in(tmp_path / "r") == [("openai_key", KEY)]


def test_explain_says_where_originals_are_kept(tmp_path: Path) -> None:
    written = tmp_path / "p.yaml"
    text = f"name: p\nredact: {{api_key: {{pattern: '{KEY[:9]}\\w+', keep: true}}}}\n"
    written.write_text(f"apiVersion: policyctx/v1\n{text}", encoding="utf-8")
    given = tmp_path / "session.json"
    given.write_text(json.dumps([user(KEY)]), encoding="utf-8")
    root = tmp_path / "root"
    run = policyctx("explain", written, given, "--root", root)
    said = " ".join(run.stdout.split())
    assert f"({written}:3); the original is kept in {root}/.policyctx/SESSION/journal.jsonl" in said
    run = policyctx("explain", written, given, "--root", root, "--session-id", "a")
    assert f"{root}/.policyctx/a/journal.jsonl" in " ".join(run.stdout.split())
    assert not root.exists()
