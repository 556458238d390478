"""Sessions with a need planted in them, or something that only looks like one.

Each has results of which a policy clears all but the newest two, then a reply. What the reply says
is either held by one result alone that is gone by then, or comes from somewhere else.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from policyctx.replay.recording import Recording
from tests.conversations import call, results, user
from tests.policies import policy
from tests.replay.sessions import turn_by_turn

CLEARS_OLD = policy("""
    items: {tool_result: {offload: true}}
    steps: [{name: clear-old, do: clear, select: {types: [tool_result], keep_recent: 2}}]
    placeholder: "[gone]"
""")
KEEPS_ALL = policy("items: {tool_result: {offload: true}}")

_RESULTS = 6
_GONE = range(_RESULTS - 2)

_TALK = """the build ran and most of it passed while a few cases waited for the network to come
back so nobody looked at them until later that day when someone asked why it took so long and what
could be done about it in the coming weeks without changing more than needed for now"""
_ENGLISH = _TALK.split()
_CHINESE = [
    "系统运行正常", "没有发现异常", "日志已经写入", "任务排队等待", "网络恢复之后继续",
    "结果如下所示", "请稍后再查看", "本次检查结束", "缓存已经刷新", "其余部分保持不变",
]  # fmt: skip
_VERBS = ["recompute", "flatten", "migrate", "reconcile", "throttle", "hydrate", "quarantine"]
_NOUNS = ["bracket", "ledger", "shipment", "voucher", "manifest", "tariff", "beacon"]
_PLACES = ["余杭区", "海淀区", "浦东新区", "天河区", "武侯区", "雁塔区"]
_ROADS = ["文一西路", "中关村北大街", "世纪大道", "天府三街", "科技二路", "珠江东路"]
_RULES = [
    "每周三凌晨两点执行全量备份", "退款审批必须由两名主管签字", "夜间不得重启结算服务",
    "客户姓名一律以拼音首字母存档", "旧版接口保留到明年六月底", "仓库温度始终低于零下十八度",
]  # fmt: skip
_SENTENCES = [
    "Audit rows must outlive every other table by ninety days.",
    "Only the harbour office may reopen a sealed container.",
    "Never restart the settlement worker while it drains.",
    "The smallest tenant pays for the largest index rebuild.",
    "Refunds above the limit need two different signatures.",
    "Keep the old gateway reachable until the vendor confirms.",
]


def _name(rng: random.Random) -> str:
    words = rng.choice(_VERBS), rng.choice(_NOUNS), rng.choice(_NOUNS)
    camel = words[0] + "".join(word.title() for word in words[1:])
    return rng.choice(["_".join(words), camel])


FACTS: dict[str, Callable[[random.Random], str]] = {
    "path": lambda r: f"src/{r.choice(_NOUNS)}/{r.choice(_VERBS)}_{r.randrange(100)}.py",
    "absolute path": lambda r: f"/srv/{r.choice(_NOUNS)}/{r.choice(_VERBS)}.d/{r.choice(_NOUNS)}",
    "windows path": lambda r: f"C:\\data\\{r.choice(_NOUNS)}\\{r.choice(_VERBS)}_log.txt",
    "url": lambda r: (
        f"https://{r.choice(_NOUNS)}.example.org/{r.choice(_VERBS)}/{r.randrange(999)}"
    ),
    "order": lambda r: f"ORD-{r.randrange(10_000, 99_999)}-{r.choice('KXQ')}{r.choice('ZJ')}",
    "hash": lambda r: f"{r.getrandbits(40):010x}",
    "uuid": lambda r: f"{r.getrandbits(32):08x}-{r.getrandbits(16):04x}-4{r.getrandbits(12):03x}",
    "account": lambda r: f"acct_{r.randrange(10, 99)}KD{r.randrange(100, 999)}",
    "mail": lambda r: f"{r.choice(_NOUNS)}.{r.choice(_VERBS)}{r.randrange(99)}@northwind.example",
    "address": lambda r: f"10.{r.randrange(11, 99)}.{r.randrange(101, 255)}.{r.randrange(11, 99)}",
    "version": lambda r: f"{r.randrange(3, 9)}.{r.randrange(11, 99)}.{r.randrange(11, 99)}-rc2",
    "amount": lambda r: f"{r.randrange(11, 99)},{r.randrange(101, 999)}.{r.randrange(11, 99)}",
    "number": lambda r: str(r.randrange(10_000, 9_999_999) * 10 + r.randrange(1, 9)),
    "date": lambda r: f"{r.randrange(1971, 2040)}-{r.randrange(10, 12)}-{r.randrange(11, 28)}",
    "function": _name,
    "sentence": lambda r: r.choice(_SENTENCES),
    "rule": lambda r: r.choice(_RULES),
    "bank": lambda r: f"DE{r.randrange(11, 99)} {r.randrange(10_000_001, 99_999_999)}",
    "phone": lambda r: f"+49 30 {r.randrange(1_000_001, 9_999_999)}",
    "branch": lambda r: f"feature/{r.choice(_VERBS)}-{r.choice(_NOUNS)}-{r.randrange(11, 99)}",
    "variable": lambda r: f"MAX_{r.choice(_VERBS).upper()}_PER_{r.choice(_NOUNS).upper()}",
    "error": lambda r: f"E{r.randrange(1_001, 9_998)}",
    "host": lambda r: f"db-{r.choice(_NOUNS)}-{r.randrange(11, 99)}.internal.example.net:5433",
    "command": lambda r: f"make {r.choice(_VERBS)} TARGET={r.choice(_NOUNS)} -j4 --keep-going",
    "chinese order": lambda r: f"订单{r.randrange(2021, 2029)}-{r.randrange(10_001, 99_999)}",
    "chinese amount": lambda r: f"合计{r.randrange(1_001, 9_999)}.{r.randrange(11, 99)}元",
    "street": lambda r: f"{r.choice(_PLACES)}{r.choice(_ROADS)}{r.randrange(101, 999)}号",
}


@dataclass(frozen=True, slots=True)
class Case:
    """A session, and the ids of the items that it needs after they are gone."""

    what: str
    recording: Recording
    needed: frozenset[str] = frozenset()


@dataclass(slots=True)
class _Draft:
    rng: random.Random
    fact: str
    chinese: bool
    bodies: list[str]
    task: str
    reply: str
    inputs: dict[int, Any]
    again: dict[str, Any] | None = None


def planted(seed: int) -> Case:
    """A session whose last reply draws on one result that is gone."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    kind = rng.choice([*FACTS, "asked again", "other lines"])
    target = rng.choice(_GONE)
    if kind in FACTS:
        draft = _draft(rng, FACTS[kind](rng))
        draft.bodies[target] = _among(rng, draft.fact, draft.bodies[target])
        draft.reply = _saying(rng, draft.fact, chinese=draft.chinese)
    else:
        draft = _draft(rng, "")
        draft.again = dict(draft.inputs[target])
        if kind == "other lines":
            draft.again |= {"offset": rng.randrange(100), "limit": 40}
    return Case(kind, _recording(draft), frozenset({f"r{target}"}))


def decoy(seed: int) -> Case:
    """A session whose last reply needs nothing that is gone."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    kind, make = rng.choice(list(DECOYS.items()))
    draft = _draft(rng, FACTS[rng.choice(list(FACTS))](rng))
    draft.reply = _saying(rng, draft.fact, chinese=draft.chinese)
    make(draft, rng.choice(_GONE))
    return Case(kind, _recording(draft))


def _told(draft: _Draft, target: int) -> None:
    draft.bodies[target] = _among(draft.rng, draft.fact, draft.bodies[target])
    draft.task += f"\n{draft.fact}"


def _seen_again(draft: _Draft, target: int) -> None:
    for i in (target, _RESULTS - 1):
        draft.bodies[i] = _among(draft.rng, draft.fact, draft.bodies[i])


def _invented(draft: _Draft, target: int) -> None:
    """Leave it at a reply with what nothing holds."""
    del draft, target


def _still_there(draft: _Draft, target: int) -> None:
    del target
    draft.bodies[-1] = _among(draft.rng, draft.fact, draft.bodies[-1])


def _part_of_a_word(draft: _Draft, target: int) -> None:
    number = str(draft.rng.randrange(100_000, 999_999))
    draft.bodies[target] = _among(draft.rng, f"9{number}7", draft.bodies[target])
    draft.reply = _saying(draft.rng, number, chinese=draft.chinese)


def _common(draft: _Draft, target: int) -> None:
    words = ["in 2024", "100 seconds", "2000 rows", "about 50%", "and/or", "e.g. UTF-8", "sha256"]
    draft.bodies[target] = _among(draft.rng, " ".join(words), draft.bodies[target])
    said = " and ".join(draft.rng.sample(words, 3))
    draft.reply = _saying(draft.rng, said, chinese=draft.chinese)


def _code(draft: _Draft, target: int) -> None:
    lines = ["import os", "return None", 'if __name__ == "__main__":', "def main() -> None:"]
    lines += ["from typing import Any", "git status", "npm install", "SELECT * FROM users"]
    draft.bodies[target] = _among(draft.rng, draft.rng.choice(lines), draft.bodies[target])
    draft.reply = "\n".join(draft.rng.sample(lines, 4))


def _small_talk(draft: _Draft, target: int) -> None:
    said = ["The tests pass now.", "Everything is in order.", "Let me check the logs first."]
    said += ["好的，我来看一下。", "测试全部通过了。"]
    draft.bodies[target] = _among(draft.rng, draft.rng.choice(said), draft.bodies[target])
    draft.reply = " ".join(draft.rng.sample(said, 3))


def _own_words(draft: _Draft, target: int) -> None:
    # The agent wrote it down while the result was there.
    draft.bodies[target] = _among(draft.rng, draft.fact, draft.bodies[target])
    draft.inputs[target + 1] = {"note": draft.fact}


def _asked_again_while_there(draft: _Draft, target: int) -> None:
    # Asked each time while the last answer is still there.
    for i in range(target, _RESULTS):
        draft.inputs[i] = dict(draft.inputs[target])
    draft.again = dict(draft.inputs[target])


def _other_question(draft: _Draft, target: int) -> None:
    draft.again = {"path": f"{draft.inputs[target]['path']}x"}


DECOYS: dict[str, Callable[[_Draft, int], None]] = {
    "told by the user": _told,
    "seen again": _seen_again,
    "invented": _invented,
    "still there": _still_there,
    "part of a word": _part_of_a_word,
    "common": _common,
    "code": _code,
    "small talk": _small_talk,
    "own words": _own_words,
    "asked again while there": _asked_again_while_there,
    "other question": _other_question,
}


def _draft(rng: random.Random, fact: str) -> _Draft:
    chinese = rng.random() < 0.5
    bodies = [_filler(rng, chinese=chinese) for _ in range(_RESULTS)]
    inputs = {i: {"path": f"part{chr(97 + i)}"} for i in range(_RESULTS)}
    task = "请检查并修复。" if chinese else "look into it and repair it"
    return _Draft(rng, fact, chinese, bodies, task, "", inputs)


def _filler(rng: random.Random, *, chinese: bool) -> str:
    words = _CHINESE if chinese else _ENGLISH
    lines = []
    for _ in range(rng.randrange(4, 12)):
        chosen = rng.choices(words, k=rng.randrange(3, 9))
        lines.append("，".join(chosen) + "。" if chinese else " ".join(chosen))
    return "\n".join(lines)


def _among(rng: random.Random, fact: str, body: str) -> str:
    """Put a fact into a body: a line of its own, within one, or as JSON."""
    lines = body.split("\n")
    at = rng.randrange(len(lines))
    form = rng.randrange(3)
    if form == 0:
        lines.insert(at, fact)
    elif form == 1:
        lines[at] = f"{lines[at]} ({fact}) {lines[at]}"
    else:
        return json.dumps({"output": body, "found": [{"value": fact}]}, ensure_ascii=False)
    return "\n".join(lines)


def _saying(rng: random.Random, fact: str, *, chinese: bool) -> str:
    if chinese:
        return rng.choice([f"根据记录，{fact}，我先处理这一项。", f"接下来看{fact}。", fact])
    return rng.choice([f"As found before: {fact}", f"I go on with {fact}, then stop.", fact])


def _recording(draft: _Draft) -> Recording:
    messages = [user(draft.task)]
    for i, body in enumerate(draft.bodies):
        messages += [call(f"r{i}", "look", draft.inputs[i]), results((f"r{i}", body))]
    if draft.again is not None:
        messages.append(call("last", "look", draft.again))
    elif draft.rng.random() < 0.5:
        messages.append(call("last", "write", {"target": "notes", "text": draft.reply}))
    else:
        messages.append({"role": "assistant", "content": draft.reply})
    return turn_by_turn(messages)
