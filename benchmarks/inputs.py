"""Texts to measure with: what tools print, made anew and the same each time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

_ENGLISH = """
agent batch buffer cache client config count cursor decode error fetch file handle index item key
limit list merge node offset order parse path plan policy query queue read result retry schema
session size state step store stream table token turn update value worker write
"""
_CHINESE_JAPANESE_KOREAN = """
設定 ファイル 読み込み 失敗しました 再試行 索引 更新 完了 请求 超时 正在重试 缓存 配置文件
不存在 会话 已保存 파일을 찾을 수 없습니다 저장됨
"""
_WRITTEN = """
a about after always and are at because before below but by change do each fails for from if in is
it keep leave less limit may more must need never no not now of on only or please run seconds should
so than that the then this to until use we when where which with without you 8081 42 20 300
"""
_WRITTEN_CHINESE = """
的 了 请 不要 必须 只 保留 改成 因为 所以 如果 之前 之后 接下来 超过 最多 缓存 端口 配置 文件 目录
测试 失败 超时 服务 数据 秒 个 每 在 到 是 用 和 或 8081 42 20 三天 运行 提交 文档 接口 用户 上限
"""
_WORDS = tuple(_ENGLISH.split())
_PROSE = (*_WRITTEN.split(), *_WORDS)
_CHINESE_PROSE = tuple(_WRITTEN_CHINESE.split())
_CJK_WORDS = tuple(_CHINESE_JAPANESE_KOREAN.split())


def tool_outputs(sizes: Iterable[int], *, seed: int) -> list[str]:
    """Return one text like a tool's result for each size, in characters; the same each time.

    They are code, logs, matches of a search and, one in eight, lines in Chinese, Japanese and
    Korean.
    """
    chance = Random(seed)  # noqa: S311 - input to measure with, no secret
    kinds = (_code, _code, _code, _log, _log, _match, _match, _cjk)
    return [_text(chance, chance.choice(kinds), size) for size in sizes]


def sentences(count: int, *, seed: int, chinese: bool = False) -> list[str]:
    """Return sentences like those that people write, without sense; the same each time."""
    chance = Random(seed)  # noqa: S311 - input to measure with, no secret
    between, words, end = ("", _CHINESE_PROSE, "。") if chinese else (" ", _PROSE, ".")
    lengths = (chance.randrange(6, 19) for _ in range(count))
    return [between.join(chance.choices(words, k=k)).capitalize() + end for k in lengths]


def _text(chance: Random, line: Callable[[Random], str], chars: int) -> str:
    lines: list[str] = []
    missing = chars
    while missing > 0:
        lines.append(line(chance))
        missing -= len(lines[-1]) + 1
    return "\n".join(lines)[:chars]


def _code(chance: Random) -> str:
    target, source, call, key = chance.sample(_WORDS, 4)
    indent = " " * chance.choice((4, 8, 12))
    form = chance.choice(
        (
            '{indent}{target}_{key} = self._{source}.{call}({key}="{target}", limit={number})',
            "{indent}if {target} is None or len({source}.{key}) > {number}:",
            "{indent}    return [{call}({key}) for {key} in {source} if {key}.{target}]",
            "{indent}# The {target} of a {source} may {call} twice before its {key} does.",
        )
    )
    return form.format(
        indent=indent,
        target=target,
        source=source,
        call=call,
        key=key,
        number=chance.randrange(999),
    )


def _log(chance: Random) -> str:
    level = chance.choice(("INFO", "INFO", "DEBUG", "WARNING", "ERROR"))
    service, verb, thing = chance.sample(_WORDS, 3)
    minute, second = chance.randrange(60), chance.randrange(60)
    return (
        f"2025-03-14T09:{minute:02}:{second:02}Z {level:7} [{service}-{chance.randrange(9)}]"
        f" {verb} {thing} id={chance.getrandbits(48):012x} took={chance.randrange(5_000)}ms"
    )


def _match(chance: Random) -> str:
    folder, module, name, value = chance.sample(_WORDS, 4)
    line = chance.randrange(1, 900)
    return f"src/{folder}/{module}.py:{line}:    def {name}_{value}(self, {value}: int) -> None:"


def _cjk(chance: Random) -> str:
    words = " ".join(chance.choices(_CJK_WORDS, k=6))
    return f"{words}: {chance.choice(_WORDS)}.yaml ({chance.randrange(500)})"
