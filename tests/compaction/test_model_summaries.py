"""What a model answers instead of a summary, what a busy provider asks for, and what it bills."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import pairwise
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from policyctx import (
    CompactResult,
    Session,
    SummaryUsage,
    compact_messages,
    compact_messages_async,
    load_policy,
)
from policyctx.compaction.prompt import missing_sections
from policyctx.compaction.summarizers import summarizer_for
from policyctx.policy.lookup import compaction_of
from policyctx.policy.models.compaction import Summary
from policyctx.turns.result import Result
from tests.cli.running import policyctx
from tests.compaction.compacting import SUMMARY, conversation
from tests.compaction.messages_server import (
    MessagesServer,
    Scripted,
    failing,
    messages_server,
    saying,
)
from tests.conversations import Message, calls, results, user
from tests.policies import policy

anthropic = pytest.importorskip("anthropic")

SECTIONS = [section.name for section in Summary().sections]
NOT_SUMMARIES = (
    "ok",
    "I'm sorry, I can't help with that.",
    "Sure! Let me run pytest now to see whether the tests pass after the change.",
)
LONG_WAIT = 120.0


def written_summary(mark: str = "All is well.", heading: str = "## {}") -> str:
    """Return a summary as a model writes it when it does what it is asked."""
    words = "The port moved from 8080 to 8081 in src/port.py. Never touch legacy/."
    parts = [f"{heading.format(name)}\n{words}" for name in SECTIONS]
    return "\n\n".join([*parts[:-1], f"{parts[-1]} {mark}"])


def long_conversation() -> list[Message]:
    asked = user("Move the port to 8081. Never touch legacy/.")
    ids = [f"c{i}" for i in range(30)]
    work = ([calls((one, "Bash")), results((one, "x" * 40))] for one in ids)
    return [asked, *(message for pair in work for message in pair)]


@pytest.fixture
def server() -> Iterator[MessagesServer]:
    with messages_server() as running:
        yield running


def applied(
    root: Path,
    server: MessagesServer,
    more: str = "",
    *,
    model: str = "",
    backoff: str = "0s",
    messages: list[Message] | None = None,
    is_async: bool = False,
) -> Result:
    """Compact through the real SDK, whose client would try again by itself."""
    compiled = policy(f"""\
        model: {{tokenizer: approximate{model}}}
        store: {{sync: never}}
        compaction: {{summary: {{by: anthropic, backoff: {backoff}, timeout: 10s{more}}}}}
        steps: [{{name: summarise, do: compact}}]
        """)
    given = long_conversation() if messages is None else messages
    options: dict[str, Any] = {"base_url": server.url, "api_key": "sk-ant-k", "max_retries": 5}

    async def in_a_loop() -> Result:
        async with anthropic.AsyncAnthropic(**options) as client:
            made = summarizer_for("anthropic", client)
            return await Session(compiled, root=root, summarizer=made).apply_async(given)

    if is_async:
        return asyncio.run(in_a_loop())
    with anthropic.Anthropic(**options) as client:
        made = summarizer_for("anthropic", client)
        return Session(compiled, root=root, summarizer=made).apply(given)


def content_of(result: Result) -> str:
    return str(result.messages[0]["content"])


def waits(server: MessagesServer) -> list[float]:
    return [later - earlier for earlier, later in pairwise(server.times)]


class TestContent:
    @pytest.mark.parametrize("answer", NOT_SUMMARIES)
    def test_an_answer_that_is_not_a_summary_replaces_nothing(
        self, answer: str, tmp_path: Path, server: MessagesServer
    ) -> None:
        server.script = [saying(answer)] * 3
        messages = long_conversation()
        result = applied(tmp_path, server, messages=messages)
        assert result.messages is messages
        assert not result.compacted
        assert result.warnings[0].startswith("not compacted, after ")

    @pytest.mark.parametrize(
        "answer",
        [
            *(saying(text) for text in NOT_SUMMARIES),
            saying('{"name": "Bash", "input": {}}'),
            saying("The port moved to 8081. " * 1500),
            saying("<analysis>Much.</analysis><summary>Half a", stop_reason="max_tokens"),
        ],
    )
    def test_compact_messages_takes_any_answer_of_a_client(
        self, answer: Scripted, tmp_path: Path, server: MessagesServer
    ) -> None:
        server.script = [answer]
        with anthropic.Anthropic(base_url=server.url, api_key="sk-ant-k") as client:
            result = compact_messages(
                long_conversation(), client=client, threshold=1, output_dir=tmp_path
            )
        assert (result.compacted, len(server.requests), result.warnings) == (True, 1, ())

    @pytest.mark.parametrize(
        "answer",
        [
            saying(" \n"),
            saying("<analysis>Much.</analysis>"),
            saying("<analysis>Much", stop_reason="max_tokens"),
        ],
    )
    def test_compact_messages_with_a_client_takes_no_empty_answer(
        self, answer: Scripted, tmp_path: Path, server: MessagesServer
    ) -> None:
        server.script = [answer, saying("ok")]
        with anthropic.Anthropic(base_url=server.url, api_key="sk-ant-k") as client:
            result = compact_messages(
                long_conversation(), client=client, threshold=1, output_dir=tmp_path
            )
        assert (result.summary, len(server.requests)) == ("ok", 2)

    @pytest.mark.parametrize("answer", NOT_SUMMARIES)
    def test_compact_messages_checks_the_answer_when_it_is_told_to(
        self, answer: str, tmp_path: Path, server: MessagesServer
    ) -> None:
        server.script = [saying(answer)] * 3
        with anthropic.Anthropic(base_url=server.url, api_key="sk-ant-k") as client:
            result = compact_messages(
                long_conversation(),
                client=client,
                threshold=1,
                output_dir=tmp_path,
                summary_check=True,
            )
        assert not result.compacted
        assert result.warnings

    def test_a_full_summary_is_accepted(self, tmp_path: Path, server: MessagesServer) -> None:
        server.script = [saying(written_summary())]
        result = applied(tmp_path, server)
        assert (content_of(result), result.warnings) == (f"{SUMMARY}{written_summary()}", ())

    @pytest.mark.parametrize(
        "heading",
        [
            *("# {}", "**{}**", "### 3. {}:", "{}", "- **{}:**", "1. **{}**", "__{}__"),
            *("3) {} - none", "3\N{FULLWIDTH FULL STOP}{}", "(3) {}", "[3] {}", "III. {}", "c) {}"),
            *("\N{CIRCLED DIGIT THREE} {}", "3\ufe0f\u20e3 {}", "3.1 {}", "Section 3: {}"),
            *("\N{CIRCLED DIGIT ONE} {}", "\N{CIRCLED DIGIT FOUR}{}"),
            *("三、{}", "第三部分\N{FULLWIDTH COLON}{}", "【{}】"),
            *("{}\n=====", "{}\n---", "{} (3 in all)", "{} \N{EM DASH} none", "| {} | none |"),
            *("<{}>", "<{}>The port moved.", '<section name="{}">'),
            *("<h2>{}</h2>", "\N{DIRECT HIT} {}", "**{}** none", "{}\N{FULLWIDTH COLON} none"),
        ],
    )
    def test_headings_may_be_written_in_other_ways(self, heading: str) -> None:
        text = written_summary(heading=heading)
        assert missing_sections(text, SECTIONS) == []
        assert missing_sections(text.replace("&", "and").upper(), SECTIONS) == []

    @pytest.mark.parametrize(
        "headings",
        [
            ["## 目标", "## 文件", "## 工具", "## 状态", "## 错误"],
            ["# Zusammenfassung", "## Ziele", "## Dateien", "## Aufrufe", "## Stand", "## Fehler"],
            ["一、目标", "二、文件", "三、工具", "四、状态", "五、错误"],
            ["1. Objetivos:", "2. Archivos:", "3. Llamadas:", "4. Estado:", "5. Errores:"],
            [
                "1) \u0426\u0435\u043b\u0438",
                "2) \u0424\u0430\u0439\u043b\u044b",
                "3) \u0412\u044b\u0437\u043e\u0432\u044b",
                "4) \u0421\u0442\u0430\u0442\u0443\u0441",
                "5) \u041e\u0448\u0438\u0431\u043a\u0438",
            ],
            ["**Goals**", "**Files**", "**Tools**", "**Task**", "**Errors**"],
            ["Buts\n====", "Fichiers\n====", "Appels\n====", "Etat\n====", "Erreurs\n===="],
            ["【目标】", "【文件】", "【工具】", "【状态】", "【错误】"],
            [
                "目标\N{FULLWIDTH COLON}",
                "文件\N{FULLWIDTH COLON}",
                "工具\N{FULLWIDTH COLON}",
                "状态\N{FULLWIDTH COLON}",
                "错误\N{FULLWIDTH COLON}",
            ],
            [
                "Goals & Decisions\n===",
                "**File operations**",
                "3) Tool Calls - x",
                "**Task**",
                "# Errors",
            ],
            *(
                [style.format(word) for word in ("Ziele", "Dateien", "Aufrufe", "Stand", "Fehler")]
                for style in (
                    *("<{0}>\n</{0}>", "<{0}>The port moved.</{0}>", '<section name="{0}">'),
                    *("<h2>{}</h2>", "<b>{}</b>", "== {} ==", "[{}]", "{}", "_{}_", "> {}"),
                    *("\N{DIRECT HIT} {}", "\N{CIRCLED DIGIT THREE} {}", "| {} |"),
                )
            ),
        ],
    )
    def test_headings_may_have_other_words(self, headings: list[str]) -> None:
        text = "\n\n".join(f"{heading}\nThe port moved to 8081." for heading in headings)
        assert missing_sections(text, SECTIONS) == []

    @pytest.mark.parametrize(
        "section",
        [
            *("3) {} - none", "3) {} \N{EM DASH}\N{EM DASH} 无", "{}\N{EM DASH}\N{EM DASH}无"),
            *("3. {} -- none", "c) {}\N{EM DASH}none", "* {} - none"),
            *("- {}: none", "\N{BULLET} {}\N{FULLWIDTH COLON}无"),
        ],
    )
    def test_a_section_in_other_words_may_be_one_line(self, section: str) -> None:
        words = ("Ziele", "文件", "Aufrufe", "状态", "Fehler")
        assert missing_sections("\n".join(map(section.format, words)), SECTIONS) == []

    def test_a_line_above_a_list_is_not_a_heading(self) -> None:
        """Before, the line break and the sign of the list were the dash behind a heading."""
        words = ("Ziele", "Dateien", "Aufrufe", "Stand", "Fehler")
        text = "\n".join(f"{word}:\n" + "es gilt nun\n- Port 8081\n" * 3 for word in words)
        assert missing_sections(text, SECTIONS) == []
        assert missing_sections("es gilt nun\n- Port 8081\n" * 6, SECTIONS) != []

    @pytest.mark.parametrize(
        "text",
        [
            "## Goals & Decisions\nx\n## File Operations\ny\n## Task\nz",
            "1. Run the tests\n2. Read the log\n3. Fix it\n4. Run them again\n5. Commit",
            "\n".join(f"## Step {i}\nx" for i in range(11)),
            "The port moved.\n\nThe tests pass.\n\nNothing is left.\n\nGood.\n\nDone.",
            "\n".join(f'<parameter name="{name}">src/port.py</parameter>' for name in "abcde"),
            "run the tests\n\nread the log\n\nfix it\n\nrun them again\n\ncommit\n\nthat is all",
            "- run the tests\n- read the well-known log\n- fix it\n- run them again\n- commit",
            "".join(f"- a.py, line {i}: moved\n* b.py: moved\n" for i in range(4)),
        ],
    )
    def test_headings_that_are_too_few_too_many_or_a_list_are_not_the_sections(
        self, text: str
    ) -> None:
        assert missing_sections(text, SECTIONS) != []

    def test_a_heading_may_be_followed_by_its_text(self) -> None:
        assert missing_sections("**Tool Calls:** none\nTask Status: done", SECTIONS[2:4]) == []

    def test_a_section_that_is_only_mentioned_is_missing(self) -> None:
        text = "The file operations and tool calls are done, as is the task status of all."
        assert missing_sections(text, SECTIONS) == SECTIONS

    def test_the_next_attempt_names_the_missing_sections(
        self, tmp_path: Path, server: MessagesServer
    ) -> None:
        half = written_summary().partition("## Task Status")[0]
        server.script = [saying(half), saying(written_summary())]
        assert applied(tmp_path, server).compacted
        first, second = (sent["messages"][0]["content"] for sent in server.requests)
        assert "not accepted" not in first
        assert "lacks the sections Task Status, Errors & Resolutions" in second
        assert second.startswith(first)

    def test_the_sections_are_those_that_the_policy_asks_for(
        self, tmp_path: Path, server: MessagesServer
    ) -> None:
        text = "## Aims\n" + "The port is to be moved to 8081, and legacy/ is not touched. " * 5
        server.script = [saying(written_summary()), saying(text)]
        result = applied(tmp_path, server, ", sections: [Aims]")
        assert content_of(result) == f"{SUMMARY}{text.strip()}"

    def test_a_summary_may_be_too_short(self, tmp_path: Path, server: MessagesServer) -> None:
        bare = "\n".join(f"## {name}" for name in SECTIONS)
        server.script = [saying(bare)] * 3
        assert "words; at least 30 are required" in applied(tmp_path, server).warnings[0]

    def test_the_policy_sets_the_minimum_of_words(
        self, tmp_path: Path, server: MessagesServer
    ) -> None:
        server.script = [saying(written_summary())] * 3
        result = applied(tmp_path, server, ", check: {min_words: 500}")
        assert "words; at least 500 are required" in result.warnings[0]

    def test_no_more_words_are_required_than_may_be_written(
        self, tmp_path: Path, server: MessagesServer
    ) -> None:
        server.script = [saying("The port has moved to 8081 and legacy was left alone.")]
        more = ", sections: [], max_words: 10, check: {min_words: 500}"
        assert applied(tmp_path, server, more).compacted

    def test_the_check_can_be_switched_off(self, tmp_path: Path, server: MessagesServer) -> None:
        server.script = [saying("The port moved.")]
        assert applied(tmp_path, server, ", check: {sections: false, min_words: 0}").compacted

    @pytest.mark.parametrize("refusal", [
        "I'm sorry, I can't help with that.",
        "I\N{RIGHT SINGLE QUOTATION MARK}m unable to assist with this request.",
        "**I cannot** continue with this conversation.",
        "As an AI, I won't do that.",
    ])  # fmt: skip
    def test_a_refusal_is_not_asked_for_again(
        self, refusal: str, tmp_path: Path, server: MessagesServer
    ) -> None:
        server.script = [saying(refusal), saying(written_summary())]
        result = applied(tmp_path, server, ", check: {sections: false, min_words: 0}")
        assert not result.compacted
        assert "after 1 attempt: no summary: the model declined" in result.warnings[0]
        assert len(server.requests) == 1

    def test_a_summary_may_begin_like_a_refusal(
        self, tmp_path: Path, server: MessagesServer
    ) -> None:
        text = f"I'm sorry to say that it is long.\n{written_summary()}"
        server.script = [saying(text)]
        assert applied(tmp_path, server).compacted

    def test_pinned_texts_do_not_count_as_summary(
        self, tmp_path: Path, server: MessagesServer
    ) -> None:
        compiled = policy("""\
            model: {tokenizer: approximate}
            store: {sync: never}
            tools: {todo: {pin: true}}
            compaction: {summary: {by: anthropic, attempts: 1, sections: []}}
            steps: [{name: summarise, do: compact}]
            """)
        server.script = [saying("The work goes on.")]
        pinned = [calls(("a", "todo")), results(("a", "mend the port " * 40))]
        with anthropic.Anthropic(base_url=server.url, api_key="sk-ant-k") as client:
            made = summarizer_for("anthropic", client)
            used = Session(compiled, root=tmp_path, summarizer=made)
            result = used.apply([*long_conversation(), *pinned])
        assert "the answer has 4 words" in result.warnings[0]


class TestCallables:
    """What code writes is checked only where the policy says so."""

    @pytest.mark.parametrize(
        ("check", "accepted"),
        [
            ("false", True),
            ("true", False),
            ("{}", False),
            ("{min_words: 2}", False),
            ("{sections: true}", False),
            ("{sections: false, min_words: 1}", True),
        ],
    )
    def test_a_callable_is_checked_as_the_policy_says(
        self, check: str, accepted: bool, tmp_path: Path
    ) -> None:
        compiled = policy(f"""\
            model: {{tokenizer: approximate}}
            compaction: {{summary: {{by: mine, backoff: 0s, check: {check}}}}}
            steps: [{{name: summarise, do: compact}}]
            """)
        used = Session(compiled, root=tmp_path, summarizer=lambda _: "shortly")
        assert used.apply(conversation()).compacted is accepted

    def test_the_extractive_summary_is_never_checked(self, tmp_path: Path) -> None:
        compiled = policy("""\
            compaction: {summary: {check: {sections: true, min_words: 1000}}}
            steps: [{name: summarise, do: compact}]
            """)
        assert Session(compiled, root=tmp_path).apply(conversation()).compacted


class TestFallback:
    @pytest.mark.parametrize(
        ("script", "cause"),
        [
            ([failing(401)], "after 1 attempt: no summary: the provider answered 401"),
            ([failing(503)] * 3, "after 3 attempts: no summary: the provider answered 503"),
            ([saying("I'm sorry, I can't help with that.")], "the model declined"),
        ],
    )
    def test_the_extractive_summary_comes_with_the_cause(
        self, script: list[Scripted], cause: str, tmp_path: Path, server: MessagesServer
    ) -> None:
        server.script = list(script)
        result = applied(tmp_path, server, ", on_failure: extractive")
        assert "Never touch legacy/." in content_of(result)
        [warning] = result.warnings
        assert warning.startswith("the summary is the extractive one, after")
        assert cause in warning

    @pytest.mark.slow
    def test_the_extractive_summary_after_a_timeout_comes_with_the_cause(
        self, tmp_path: Path, server: MessagesServer
    ) -> None:
        server.script = [Scripted(hangs=True)]
        more = ", on_failure: extractive, attempts: 1, total_timeout: 1s"
        [warning] = applied(tmp_path, server, more).warnings
        assert "there was no answer within" in warning


class TestAttempts:
    @pytest.mark.slow
    @pytest.mark.parametrize("is_async", [False, True])
    @pytest.mark.parametrize(
        "headers", [{"retry-after": "1"}, {"retry-after-ms": "1000", "retry-after": "90"}]
    )
    def test_the_providers_retry_delay_is_respected(
        self, headers: dict[str, str], is_async: bool, tmp_path: Path, server: MessagesServer
    ) -> None:
        busy = failing(429, "rate_limit_error", headers=headers)
        server.script = [busy, saying(written_summary())]
        assert applied(tmp_path, server, is_async=is_async).compacted
        assert len(server.requests) == 2
        assert waits(server)[0] >= 1

    @pytest.mark.slow
    @pytest.mark.parametrize("with_date", [False, True])
    def test_the_retry_delay_may_be_a_date(
        self, with_date: bool, tmp_path: Path, server: MessagesServer
    ) -> None:
        now = datetime.now(UTC)
        until = format_datetime(now + timedelta(seconds=3), usegmt=True)
        headers = {"retry-after": until}
        if with_date:  # the clock of a provider that is an hour ahead
            headers = {
                "retry-after": format_datetime(now + timedelta(hours=1, seconds=2), usegmt=True),
                "date": format_datetime(now + timedelta(hours=1), usegmt=True),
            }
        server.script = [
            failing(529, "overloaded_error", headers=headers),
            saying(written_summary()),
        ]
        assert applied(tmp_path, server).compacted
        assert 1 <= waits(server)[0] <= 5

    def test_a_delay_beyond_the_total_limit_ends_the_attempts_at_once(
        self, tmp_path: Path, server: MessagesServer
    ) -> None:
        server.script = [failing(429, "rate_limit_error", headers={"retry-after": "3600"})]
        result = applied(tmp_path, server, ", total_timeout: 20s")
        assert len(server.requests) == 1
        assert "after 1 attempt: no summary: the provider answered 429" in result.warnings[0]
        assert (
            "; the provider asks to wait 3600 s, and `total_timeout` leaves" in result.warnings[0]
        )

    @pytest.mark.parametrize("given", ["soon", "-5", "nan", "inf", ""])
    def test_an_unreadable_retry_delay_falls_back_to_the_policys(
        self, given: str, tmp_path: Path, server: MessagesServer
    ) -> None:
        server.script = [
            failing(503, headers={"retry-after": given}),
            saying(written_summary()),
        ]
        assert applied(tmp_path, server, ", total_timeout: 60s").compacted

    @pytest.mark.slow
    def test_the_delays_grow_and_vary(self, tmp_path: Path, server: MessagesServer) -> None:
        server.script = [failing(529, "overloaded_error"), failing(500), saying(written_summary())]
        assert applied(tmp_path, server, backoff="1s").compacted
        first, second = waits(server)
        assert 0.75 <= first < 1.5 <= second < 3.5
        assert first != pytest.approx(1, abs=1e-6)

    @pytest.mark.slow
    def test_all_attempts_together_have_a_limit(
        self, tmp_path: Path, server: MessagesServer
    ) -> None:
        server.script = [Scripted(hangs=True)] * 9
        result = applied(tmp_path, server, ", attempts: 9, total_timeout: 2s")
        assert len(server.requests) == 1
        assert "there was no answer within 2 s" in result.warnings[0]

    @pytest.mark.slow
    @pytest.mark.parametrize("is_async", [False, True])
    @pytest.mark.parametrize(
        "script",
        [
            [Scripted(hangs=True)],
            [Scripted(drips=True)],
            [saying(""), Scripted(hangs=True), saying("Too late.")],
            [failing(500), saying("Too late.")],
            [failing(429, "rate_limit_error", headers={"retry-after": "30"})],
        ],
    )
    def test_compact_messages_ends_in_time_whatever_the_model_does(
        self, script: list[Scripted], is_async: bool, tmp_path: Path, server: MessagesServer
    ) -> None:
        server.script = list(script)
        messages = long_conversation()
        given: Any = {"threshold": 1, "output_dir": tmp_path, "summary_timeout": "1s"}
        options: dict[str, Any] = {"base_url": server.url, "api_key": "sk-ant-k", "max_retries": 5}

        async def in_a_loop() -> CompactResult:
            async with anthropic.AsyncAnthropic(**options) as client:
                return await compact_messages_async(messages, client=client, **given)

        started = monotonic()
        if is_async:
            result = asyncio.run(in_a_loop())
        else:
            client = anthropic.Anthropic(**options)
            result = compact_messages(messages, client=client, **given)
        assert monotonic() - started < 10
        assert (result.messages is messages, len(result.warnings)) == (True, 1)

    def test_by_default_all_attempts_of_the_document_take_less_than_its_30_seconds(self) -> None:
        policy = load_policy("context-compact")
        summary = compaction_of(policy, policy.steps[-1]).summary
        assert summary.total_timeout.seconds <= 25
        assert summary.timeout.seconds <= summary.total_timeout.seconds

    @pytest.mark.parametrize("status", [400, 401])
    def test_compact_messages_does_not_repeat_what_the_provider_refuses(
        self, status: int, tmp_path: Path, server: MessagesServer
    ) -> None:
        server.script = [failing(status), saying("Never asked for.")]
        with anthropic.Anthropic(base_url=server.url, api_key="sk-ant-k") as client:
            result = compact_messages(
                long_conversation(), client=client, threshold=1, output_dir=tmp_path
            )
        assert (result.compacted, len(server.requests)) == (False, 1)

    def test_a_provider_that_cannot_be_reached_is_asked_again(self, tmp_path: Path) -> None:
        with messages_server() as gone:
            pass
        result = applied(tmp_path, gone)
        assert "after 3 attempts: no summary: the provider cannot be reached" in result.warnings[0]

    @pytest.mark.parametrize(
        ("status", "requests"),
        [(status, 1) for status in (400, 401, 402, 403, 404, 413)]
        + [(status, 3) for status in (408, 409, 429, 500, 503, 529)],
    )
    def test_the_status_determines_whether_the_request_is_repeated(
        self, status: int, requests: int, tmp_path: Path, server: MessagesServer
    ) -> None:
        server.script = [failing(status)] * 9
        assert not applied(tmp_path, server).compacted
        assert len(server.requests) == requests

    @pytest.mark.parametrize("reason", ["refusal", "model_context_window_exceeded"])
    def test_the_same_request_is_not_sent_after_a_refusal(
        self, reason: str, tmp_path: Path, server: MessagesServer
    ) -> None:
        server.script = [saying("Half", stop_reason=reason), saying(written_summary())]
        assert not applied(tmp_path, server).compacted
        assert len(server.requests) == 1

    def test_a_truncated_answer_is_retried_with_twice_the_tokens(
        self, tmp_path: Path, server: MessagesServer
    ) -> None:
        server.script = [
            saying("Half", stop_reason="max_tokens"),
            failing(529, "overloaded_error"),
            saying(written_summary()),
        ]
        assert applied(tmp_path, server, ", max_words: 500").compacted
        first, *later = (sent["max_tokens"] for sent in server.requests)
        assert later == [2 * first, 2 * first]

    def test_the_doubled_limit_has_a_maximum(self, tmp_path: Path, server: MessagesServer) -> None:
        server.script = [saying("Half", stop_reason="max_tokens")] * 9
        result = applied(tmp_path, server, ", attempts: 9")
        rooms = [sent["max_tokens"] for sent in server.requests]
        assert rooms == sorted(set(rooms))
        assert rooms[-1] == 32_000
        assert "had not finished its answer" in result.warnings[0]

    def test_a_rejected_answer_is_retried_without_delay(
        self, tmp_path: Path, server: MessagesServer
    ) -> None:
        server.script = [saying("ok"), saying(written_summary())]
        assert applied(tmp_path, server, backoff="90s").compacted


class TestBills:
    PRICE = ", price: {input: 1.0, cache_write: 1.25, cache_read: 0.1, output: 5.0}"
    USAGE = {  # noqa: RUF012 - never changed
        "input_tokens": 1000,
        "output_tokens": 200,
        "cache_read_input_tokens": 30,
        "cache_creation_input_tokens": 4,
    }

    @pytest.mark.parametrize("is_async", [False, True])
    def test_usage_and_cost_are_in_the_statistics(
        self, is_async: bool, tmp_path: Path, server: MessagesServer
    ) -> None:
        server.script = [saying(written_summary(), usage=self.USAGE)]
        result = applied(tmp_path, server, model=self.PRICE, is_async=is_async)
        assert result.compaction is not None
        usage = result.compaction.stats.summary
        assert usage == result.summary_usage
        assert (usage.attempts, usage.input_tokens, usage.output_tokens) == (1, 1000, 200)
        assert (usage.cache_read_tokens, usage.cache_write_tokens) == (30, 4)
        assert usage.dollars == pytest.approx((1000 + 30 * 0.1 + 4 * 1.25 + 200 * 5) / 1e6)

    def test_rejected_and_unfinished_answers_are_billed_too(
        self, tmp_path: Path, server: MessagesServer
    ) -> None:
        server.script = [
            saying("ok", usage=self.USAGE),
            saying("Half", stop_reason="max_tokens", usage=self.USAGE),
            failing(529, "overloaded_error"),
            saying(written_summary(), usage=self.USAGE),
        ]
        usage = applied(tmp_path, server, ", attempts: 4").summary_usage
        assert (usage.attempts, usage.input_tokens, usage.output_tokens) == (4, 3000, 600)

    @pytest.mark.parametrize("more", ["", ", on_failure: extractive"])
    def test_the_cost_of_rejected_summaries_is_reported(
        self, more: str, tmp_path: Path, server: MessagesServer
    ) -> None:
        server.script = [saying("ok", usage=self.USAGE)] * 3
        result = applied(tmp_path, server, more, model=self.PRICE)
        assert result.summary_usage.input_tokens == 3000
        assert result.summary_usage.dollars == pytest.approx(3 * 0.002008)

    def test_without_prices_there_are_no_dollars(
        self, tmp_path: Path, server: MessagesServer
    ) -> None:
        server.script = [saying(written_summary(), usage=self.USAGE)]
        assert applied(tmp_path, server).summary_usage.dollars is None

    def test_the_summarys_own_price_takes_precedence(
        self, tmp_path: Path, server: MessagesServer
    ) -> None:
        server.script = [saying(written_summary(), usage=self.USAGE)]
        own = ", price: {input: 0, cache_write: 0, cache_read: 0, output: 10}"
        usage = applied(tmp_path, server, own, model=self.PRICE).summary_usage
        assert usage.dollars == pytest.approx(0.002)

    def test_the_extractive_summary_costs_nothing(self, tmp_path: Path) -> None:
        compiled = policy(f"""\
            model: {{tokenizer: approximate{self.PRICE}}}
            steps: [{{name: summarise, do: compact}}]
            """)
        result = Session(compiled, root=tmp_path).apply(conversation())
        assert result.summary_usage == SummaryUsage(attempts=1)
        assert compact_messages(conversation()).stats.summary == SummaryUsage()

    def test_compact_messages_reports_the_usage_of_a_failed_summary(
        self, tmp_path: Path, server: MessagesServer
    ) -> None:
        server.script = [saying("", usage=self.USAGE)] * 3
        with anthropic.Anthropic(base_url=server.url, api_key="sk-ant-k") as client:
            result = compact_messages(
                long_conversation(), client=client, threshold=1, output_dir=tmp_path
            )
        assert not result.compacted
        assert (result.stats.original_token_count, result.stats.summary.input_tokens) == (0, 3000)

    def test_a_callable_can_report_its_usage(self, tmp_path: Path) -> None:
        def summarise(request: Any) -> str:
            request.billed({"prompt_tokens": 50, "completion_tokens": 7})
            return "the summary"

        result = compact_messages(
            conversation(), threshold=1, output_dir=tmp_path, summarizer=summarise
        )
        assert (result.stats.summary.input_tokens, result.stats.summary.output_tokens) == (50, 7)

    @pytest.mark.slow
    @pytest.mark.parametrize("form", [[], ["--json"]])
    def test_apply_prints_usage_and_cost(
        self,
        form: list[str],
        tmp_path: Path,
        server: MessagesServer,
        monkeypatch: pytest.MonkeyPatch,
        written: Callable[[str, str], Path],
    ) -> None:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-k")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        server.script = [saying(written_summary(), usage=self.USAGE)]
        chosen = written("p.yaml", f"""\
apiVersion: policyctx/v1
name: p
model: {{tokenizer: approximate{self.PRICE}}}
compaction: {{summary: {{by: anthropic, must_shrink_to: false}}}}
steps: [{{name: summarise, do: compact}}]
""")  # fmt: skip
        messages = written("m.json", '[{"role": "user", "content": "hello"}]')
        run = policyctx("apply", chosen, messages, "--root", tmp_path / "store", *form)
        assert run.returncode == 0, run.stderr
        if form:
            assert '"dollars": 0.002008' in run.stderr
        else:
            assert "summary: 1 attempt, 1,000 input and 200 output tokens" in run.stderr
            assert "30 read from the cache, 4 written to it, $0.0020" in run.stderr


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str, str], Path]:
    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write
