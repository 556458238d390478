"""Which of the user's sentences are orders, and whether a text says one, or its opposite."""

from __future__ import annotations

import pytest

from policyctx.compaction.assembly import History
from policyctx.compaction.points import PointKind, Seen, points_of
from tests.conversations import user

BESIDE = "- Never touch the vault.\n- {}\n- Do not skip the review."


def is_missing(order: str, text: str) -> bool:
    [point] = points_of(History([user(order)]))
    return Seen(BESIDE.format(text)).lacks(point)


@pytest.mark.parametrize(
    "order",
    [
        "I don't want mocks in the unit tests.",
        "I don\u2019t want any inline styles.",
        "Stop apologising in every answer.",
        "No wildcard imports in this project.",
        "No inline styles, please.",
        "Ask me before installing anything.",
        "Timestamps need to be ISO 8601.",
        "All endpoints have to return JSON.",
        "I want you to always run mypy.",
        "Run the formatter before you commit.",
        "The upload limit is 10 files.",
        "Leave the schema as it is.",
        "提交代码前一定要运行检查。",
        "请勿删除备份。",
        "Bitte lösche nichts im Archiv.",
        "Bitte keine neuen Bibliotheken.",
        "don't touch the lock file without asking me first",
        "and please, no emojis in commit messages",
        "commit after each step, small commits",
        "use uv instead of pip",
        "Make sure you never log a token",
        "let me know before you install a package",
        "the sdk must stay backwards compatible",
        "every new endpoint needs a test",
        "tests should never hit the network",
        "Only read, run nothing that writes.",
        "No matter what, never push",
        "If you are not sure how to do it, ask me first",
        "Maybe it is slow, but don't cache it",
        "没有我的同意不要推送",
        "默认用英文回答",
        "Die API darf sich nicht ändern",
        "Niemals ohne Rückfrage pushen",
        "ne modifie jamais les tests",
        "il ne faut pas pousser sur main",
    ],
)
def test_an_order_in_everyday_words_is_a_point(order: str) -> None:
    [point] = points_of(History([user(order)]))
    assert point.kind is PointKind.ORDER


@pytest.mark.parametrize(
    "value", ["The discount is 12.5%.", "The quota is 40 GB.", "It is $18,400."]
)
def test_a_share_a_size_and_a_sum_are_exact_values(value: str) -> None:
    [point] = points_of(History([user(value)]))
    assert point.kind is PointKind.VALUE


@pytest.mark.parametrize(
    "talk",
    [
        "Fix the test.",
        "Add a button to the form.",
        "Stop the server.",
        "No idea why.",
        "No, that is all for now.",
        "It has to do with caching.",
        "I have to leave at five.",
        "I want you to add a login page.",
        "What needs to be done here.",
        "I don't want to cancel it.",
        "这个接口特别慢。",
        "Ich habe keine Ahnung.",
        "The report lists only 2 of the 7 checks.",
        "it is not clear without an example",
        "the author never wrote down why",
        "Edges are always resolved by name",
        "by default it reads the home folder",
        "the first half must have been broken by that",
        "run the tests again without coverage",
        "update the readme and make sure the links work",
        "move the parser into a file but dont bother to rename it",
        "show me the plan, don't implement it yet",
        "let's make sure the build is green",
        "maybe we should only store the hash",
        "why should I never use global state",
        "whether this should be closed",
        "the page crashes every time you load it",
        "what it needs to be is open",
        "No fixes applied.",
        "it said Forbidden, method not allowed",
        "现在只能看到第一页",
        "先不要改代码,告诉我原因",
        "为什么不能保存",
        "Es werden nur die ersten Zeilen angezeigt",
        "Der Test ist immer noch rot",
        "Mach erst den Plan, noch nichts umsetzen",
        "ça affiche toujours la vieille version",
    ],
)
def test_a_task_and_a_remark_are_no_order(talk: str) -> None:
    assert points_of(History([user(talk)])) == []


@pytest.mark.parametrize(
    ("order", "text"),
    [
        ("Don't log request bodies.", "Request bodies are not to be logged"),
        ("Never drop a column without my approval.", "Dropping a column needs the user's approval"),
        ("Ask me before you upgrade the compiler.", "Upgrade of the compiler: ask the user first"),
        ("Use at most five threads.", "Threads: 5 at most"),
        ("Answers shouldn't be longer than 200 words.", "Maximum length of answers: 200 words"),
        ("Leave the parser alone.", "The parser stays as it is"),
        ("Never deploy without my OK.", "Deploying needs the user's OK"),
        ("Never hard-code colours.", "Colours must not be hard-coded"),
        ("Only Maria may approve a release.", "Release approval: Maria only"),
        ("All right. Never push to main.", "Pushing to main is not allowed"),
        ("Don't mock the clock, inject it.", "The clock is injected rather than mocked"),
        ("Never sign anything on my account.", "The user signs; the agent must never sign"),
        ("Unit tests must never open a socket.", "Unit tests run in memory, no socket is opened"),
        ("Don't patch the mirror by hand.", "The mirror must not be patched manually"),
        ("Don't touch anything in examples/ during the move.", "examples/ is off limits"),
        ("Quit summarising, just answer.", "No summaries, only answers"),
        ("Stay out of the repo config.", "The repository configuration is taboo"),
        ("Don't release unless I say so.", "Releases only if the user says so"),
        ("Retries must stop after 45 seconds.", "Retries must stop after 45 s"),
        (
            "Use at most 4 workers on this host, colleagues run nightly training jobs there.",
            "Limit: 4 workers on this host",
        ),
        ("A request must time out after 2 minutes.", "Requests time out after 2min"),
        ("Run the formatter before every push.", "Format prior to pushing"),
        ("Bitte keine neuen Tabellen anlegen.", "Neue Tabellen sind nicht erlaubt"),
        ("Niemals ohne Rückfrage löschen.", "Löschen nur nach Rückfrage"),
        ("Ne renomme jamais de colonne.", "Les colonnes ne doivent jamais être renommées"),
        ("每页最多显示五条记录。", "每页最多显示 5 条记录"),
        ("发布之前一定要先检查日志。", "每次发布前需要查看日志"),
        ("不要修改 deploy 目录下的脚本。", "deploy 目录的脚本禁止改动"),
        ("Bitte ändere nichts am Schema.", "Das Schema darf nicht verändert werden"),
    ],
)
def test_a_sentence_says_an_order_in_other_words(order: str, text: str) -> None:
    assert not is_missing(order, text)


@pytest.mark.parametrize(
    ("order", "text"),
    [
        ("Don't log request bodies.", "Request bodies may be logged"),
        ("Don't log request bodies.", "Log request bodies, headers are not needed"),
        ("Never drop a column without my approval.", "A column may be dropped without approval"),
        ("Ask me before you upgrade the compiler.", "Upgrade the compiler without asking"),
        ("Use at most five threads.", "More than 5 threads are fine"),
        ("Answers shouldn't be longer than 200 words.", "Answers may be longer than 200 words"),
        (
            "Answers shouldn't be longer than 200 words.",
            "Answers may be longer than 200 words, up to 300",
        ),
        ("Leave the parser alone.", "The parser may be changed"),
        ("Don't mock the clock, inject it.", "Mock the clock instead of injecting it"),
        ("Don't use global variables.", "Global variables are no longer forbidden"),
        ("Only answer in English.", "Answers may be in any language, not only English"),
        ("Only Maria may approve a release.", "Anyone may approve a release"),
        ("Dates must be stored in UTC.", "Dates may be stored in local time"),
        ("提交信息必须用英文。", "提交信息可以用中文"),
        ("Never deploy without my OK.", "Deploy without waiting for my OK"),
        ("Use pnpm instead of npm.", "There is no npm on this machine"),
        ("Do not use stubs in the tests.", "Tests may not call the mail server"),
        ("Prefer small pages.", "One large page at the end"),
        ("Never print a password.", "If you don't remember the password, ask"),
        ("Only Maria may approve a release.", "The release notes are not printed"),
        ("Never touch the tables.", "The tables were not touched yet"),
        ("Never touch the tables.", "It is no longer forbidden to touch the tables"),
        ("Bitte ändere nichts am Schema.", "Änderungen am Schema sind nicht mehr verboten"),
        ("Use at most 3 threads.", "It uses more than 3 threads"),
        ("Coverage must be at least 80%.", "Coverage may be below 80%"),
        ("Always sign the release.", "The release is never to be signed"),
        ("Do not call the billing service from a test.", "We never called the test"),
        ("不要修改 deploy 目录下的脚本。", "deploy 目录下的脚本可以修改"),
        ("Bitte ändere nichts am Schema.", "Das Schema darf geändert werden"),
    ],
)
def test_a_sentence_that_says_the_opposite_does_not_say_an_order(order: str, text: str) -> None:
    assert is_missing(order, text)


@pytest.mark.parametrize(
    ("order", "text"),
    [
        ("Do not touch the migrations folder.", "No migrations needed"),
        ("Don't edit files in vendor/.", "No files changed"),
        ("Never delete the production database.", "There is no database"),
        ("Never push to main.", "The main branch was not protected"),
        ("Don't change the public API.", "The API does not return 404"),
    ],
)
def test_a_negative_sentence_about_one_thing_of_an_order_does_not_say_it(
    order: str, text: str
) -> None:
    assert is_missing(order, text)


def test_the_title_of_a_list_forbids_its_entries() -> None:
    [point] = points_of(History([user("Never rename a public function.")]))
    assert not Seen("Never do this:\n- rename a public function").lacks(point)


def test_a_number_at_the_end_of_a_sentence_does_not_join_it_with_the_next() -> None:
    text = "The tests run on port 8081. Pushing to main is never allowed."
    [point] = points_of(History([user("Never push to main.")]))
    assert not Seen(text).lacks(point)
