"""The proxy's own pages: what they show, and that nothing in them is taken for HTML."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from benchmarks.browser import chromium, emulated
from policyctx.messages.json_text import compact_json
from policyctx.proxy.clients import OwnTexts
from policyctx.proxy.metrics import Counts, metrics
from policyctx.proxy.page import Pages
from policyctx.proxy.turning import Turning
from policyctx.testing.faults import FULL, refusing_writes
from policyctx.turns.money import Spent
from tests.conversations import session_of
from tests.drawing import rotated
from tests.proxy.running import OFFLOADS_OLD
from tests.proxy.test_turning import TEXTS, Proxied
from tests.test_session_failing_disk import FAULTS, UNREADABLE, Fault

HOSTILE = "</style><script>alert(1)</script>&amp;\"'"
CHINESE = "读取文件\u202e"
USAGE = {
    "input_tokens": 10,
    "cache_read_input_tokens": 5_000,
    "cache_creation_input_tokens": 800,
    "output_tokens": 7,
}


class Read(HTMLParser):
    """The elements of a page, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.links: list[str | None] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links += [value for name, value in attrs if name == "href"]

    def handle_data(self, data: str) -> None:
        self.text += data


def pages_of(proxied: Proxied, **options: Any) -> Pages:
    return Pages(proxied.turning, **options)


def shown(pages: Pages, name: str = "", query: str = "") -> str:
    answer = pages.answer(name, query)
    assert answer is not None
    return answer.body.decode()


def decisions(pages: Pages, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(shown(pages, "decisions.json", query))["decisions"]
    return found


def run(proxied: Proxied, *, tool: str = "Bash", turns: int = 4, session: str = "s") -> None:
    """Run a session of some turns, each with a usage."""
    for n in range(1, turns + 1):
        text = compact_json(session_of(*TEXTS[:n])).replace('"Bash"', json.dumps(tool))
        raw = '{"model":"claude-sonnet-4-5","messages":%s}' % text  # noqa: UP031 - braces
        turned = proxied.turned(raw.encode(), session)
        proxied.observe(turned, USAGE)


def test_the_page_has_the_tokens_the_dollars_and_the_reasons(tmp_path: Path) -> None:
    proxied = Proxied(tmp_path)
    run(proxied)
    text = Read(shown(pages_of(proxied))).text
    spent = proxied.turning.counts.spent
    assert spent.usage.prompt == 4 * 5810
    assert f"{spent.usage.prompt:,}" in text
    assert f"{spent.spared:,}" in text
    assert spent.spared > 0
    assert f"about ${spent.without:,.4f} without the policy" in text
    assert ">= 20 tokens; 2nd newest of Bash" in text
    assert "No failures" in text


def test_the_page_says_what_the_dollars_leave_out(tmp_path: Path) -> None:
    proxied = Proxied(tmp_path)
    for model in ("claude-sonnet-4-5", "gpt-6.2-sol"):
        raw = json.dumps({"model": model, "messages": session_of(TEXTS[0])}).encode()
        proxied.observe(proxied.turned(raw, model), {**USAGE, "service_tier": "priority"})
    text = Read(shown(pages_of(proxied))).text
    assert "1 call without a known price" in text
    assert "1 call of another service tier at standard prices" in text


def test_failures_and_errors_of_upstreams_are_in_the_health(tmp_path: Path) -> None:
    proxied = Proxied(tmp_path)
    counts = proxied.turning.counts
    counts.request("failed_open")
    counts.error("KeyError")
    for status in ("200", "529", "cut"):
        counts.response("openai", status)
    pages = pages_of(proxied)
    text = Read(shown(pages)).text
    for said in (
        "1 request sent unchanged, since the policy failed",
        "1 internal error: KeyError",
        "1 response of openai: status 529",
        "1 response of openai: cut",
    ):
        assert said in text
    assert "status 200" not in text
    health = json.loads(shown(pages, "health"))
    assert health["responses"] == {"openai": {"200": 1, "529": 1, "cut": 1}}


@pytest.mark.parametrize("tool", [HOSTILE, CHINESE, "a\n# HELP x\n"])
@pytest.mark.parametrize("session", [HOSTILE, CHINESE])
@pytest.mark.parametrize("show_content", [True, False])
def test_names_of_clients_are_text(
    tmp_path: Path, tool: str, session: str, *, show_content: bool
) -> None:
    proxied = Proxied(tmp_path)
    run(proxied, tool=tool, session=session)
    pages = pages_of(proxied, show_content=show_content)
    read = Read(shown(pages, query="session=" + HOSTILE))
    assert "script" not in read.tags
    read = Read(shown(pages))
    assert read.tags.isdisjoint({"script", "iframe", "img", "link", "form"})
    assert not any(name.startswith("on") for name in read.attributes)
    made = decisions(pages)
    assert [one["tool"] for one in made] == [tool] * 3
    if tool.isprintable():
        assert tool in read.text
    assert read.text.count("retire") >= 3


def test_text_of_messages_is_shown_only_if_it_is_asked_for(tmp_path: Path) -> None:
    proxied = Proxied(
        tmp_path,
        """\
apiVersion: policyctx/v1
name: old
min_tokens: 20
items: {tool_result: {offload: true, keep_recent: 1}}
placeholder: {text: "{head} in {path}", head: {chars: 6}}
steps: [{name: retire, do: offload}]
""",
    )
    run(proxied)
    plain, full = pages_of(proxied), pages_of(proxied, show_content=True)
    for name in ("", "decisions.json", "health", "metrics"):
        assert "line 0" not in shown(plain, name)
    assert TEXTS[0] in Read(shown(full)).text
    assert decisions(full)[0]["placeholder"].startswith("line 0 in /")


def test_a_session_that_has_left_memory_keeps_its_decisions(tmp_path: Path) -> None:
    before = Proxied(tmp_path)
    run(before)
    before.registry.close()
    after = Proxied(tmp_path)
    run(after, session="other", turns=2)
    pages = pages_of(after)
    assert len(decisions(pages)) == 4
    [name] = {one["session"] for one in decisions(pages)} - {
        one.name for one in after.registry.live()
    }
    assert len(decisions(pages, f"session={name}")) == 3
    text = Read(shown(pages, query=f"session={name}")).text
    assert text[text.index("Decisions of") :].count("min_tokens") == 3
    for other in ("../root", "proxy.key", "%00", ".."):
        assert decisions(pages, f"session={other}") == []
        assert "None yet." in Read(shown(pages, query=f"session={other}")).text


def test_sessions_that_left_memory_are_on_the_page_with_what_they_sent(tmp_path: Path) -> None:
    before = Proxied(tmp_path)
    run(before)
    before.registry.close()
    text = Read(shown(pages_of(Proxied(tmp_path)))).text
    assert "None yet." not in text
    assert text.count("2nd newest of Bash") == 3
    assert "left memory" in text
    assert f"{4 * 5810:,}" in text


def test_the_page_has_fifty_sessions_and_links_to_the_others(tmp_path: Path) -> None:
    proxied = Proxied(tmp_path)
    for number in range(53):
        run(proxied, session=f"n{number}", turns=2)
    first, last = (Read(shown(pages_of(proxied), query=f"page={n}")) for n in (1, 2))
    assert [page.text.count("claude-sonnet-4-5") for page in (first, last)] == [50, 3]
    assert "?page=2" in first.links
    assert "?page=1" in last.links
    for odd in ("0", "-3", "99", "x"):
        assert "claude-sonnet-4-5" in Read(shown(pages_of(proxied), query=f"page={odd}")).text


def test_each_rule_has_its_decisions_and_what_they_freed(tmp_path: Path) -> None:
    proxied = Proxied(tmp_path)
    run(proxied)
    made = decisions(pages_of(proxied))
    [rule] = {one["rule"] for one in made}
    page = shown(pages_of(proxied))
    table = page[page.index("What each rule did") :].split("</table>")[0]
    assert [rule, "3", f"{sum(one['freed_tokens'] for one in made):,}"] == re.findall(
        r"<td[^>]*><span>([^<]*)</span></td>", table
    )[1:]


@pytest.mark.parametrize(
    ("billed", "without", "said"),
    [(1.0, 4.5, "saved $3.50"), (4.5, 1.0, "lost $3.50"), (1.0, 1.0, "$0.00")],
)
def test_what_was_saved_or_lost_is_said_in_words_and_colour(
    tmp_path: Path, billed: float, without: float, said: str
) -> None:
    proxied = Proxied(tmp_path)
    run(proxied, turns=1)
    proxied.turning.counts.spent = Spent(1, priced=1, billed=billed, without=without)
    word = said.partition(" ")[0]
    found = f'<dd class="{word}">{said}' if " " in said else f"<dd>{said}"
    assert found in shown(pages_of(proxied))


def test_a_journal_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    proxied = Proxied(tmp_path)
    run(proxied)
    [name] = proxied.folders
    folder = proxied.root / name
    folder.rename(tmp_path / "moved")
    folder.write_text("no folder")
    pages = pages_of(proxied)
    assert f"the journal of session {name} cannot be read" in Read(shown(pages)).text


def test_the_metrics_are_read_by_prometheus(tmp_path: Path) -> None:
    proxied = Proxied(tmp_path)
    run(proxied)
    found = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(shown(pages_of(proxied), "metrics"))
        for sample in family.samples
    }
    spent = proxied.turning.counts.spent
    prefix = "policyctx_proxy_"
    assert found[prefix + "sessions",] == 1
    assert found[prefix + "requests_total", ("outcome", "edited")] == 3
    assert found[prefix + "decisions_total", ("action", "offloaded"), ("step", "retire")] == 3
    assert found[prefix + "tokens_total", ("kind", "cache_read")] == 20_000
    assert found[prefix + "spared_tokens_total",] == spent.spared
    assert found[prefix + "net_dollars",] == pytest.approx(spent.net)


def test_a_disk_that_fails_shows_on_the_page_in_the_metrics_and_once_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    proxied = Proxied(tmp_path)
    with refusing_writes(proxied.root, FULL):
        for number in range(2, 6):
            proxied.turn(session_of(*TEXTS[:number]))
        pages = pages_of(proxied)
        page, found = Read(shown(pages)).text, shown(pages, "metrics")
    assert "offloading has stopped in session" in page
    assert "No space left on device" in page
    assert "policyctx_proxy_failed_writes_total 4\n" in found
    assert "policyctx_proxy_sessions_stopped 1\n" in found
    assert json.loads(shown(pages, "health"))["failed_writes"] == 4
    proxied.turn(session_of(*TEXTS[:6]))
    assert "offloading has stopped" not in Read(shown(pages)).text
    assert "policyctx_proxy_sessions_stopped 0\n" in shown(pages, "metrics")
    said = [one.partition(": ")[2][:24] for one in caplog.messages if ": offloading" in one]
    assert said == ["offloading has stopped: ", "offloading works again: "]


@pytest.mark.parametrize(
    ("is_new", "session"),
    [(False, "s"), (True, "s"), (False, None)],
    ids=["running", "restarted", "unnamed"],
)
@pytest.mark.parametrize(("words", "fault"), FAULTS.values(), ids=FAULTS)
def test_each_failure_of_a_folder_is_logged_once(
    tmp_path: Path,
    words: str,
    fault: Fault,
    caplog: pytest.LogCaptureFixture,
    session: str | None,
    *,
    is_new: bool,
) -> None:
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(folder.stat().st_mode | 0o011)
    proxied = Proxied(tmp_path)
    proxied.turn(session_of(*TEXTS[:3]), session)
    [name] = proxied.folders
    if is_new:
        proxied = Proxied(tmp_path)
    caplog.clear()
    with fault(proxied.root / name):
        proxied.turn(session_of(*TEXTS[:4]), session)
        assert [
            said for said in caplog.messages if f"{words}; nothing more leaves the list" in said
        ]
        caplog.clear()
        for number in (5, 6):
            given = session_of(*TEXTS[:number])
            assert proxied.turn(given, session)[-5:] == given[-5:]
        assert caplog.messages == []
    page = Read(shown(pages_of(proxied))).text
    assert "offloading has stopped in session" in page
    proxied.turn(session_of(*TEXTS[:7]), session)
    assert [said for said in caplog.messages if ": offloading works again: " in said]
    assert "offloading has stopped" not in Read(shown(pages_of(proxied))).text


UNLISTED = {
    "EACCES": UNREADABLE["EACCES"],
    "ENOTDIR": FAULTS["ENOTDIR"],
    "ELOOP": ("leads back to itself", FAULTS["ELOOP, root"][1]),
}


@pytest.mark.parametrize(("words", "fault"), UNLISTED.values(), ids=UNLISTED)
def test_the_page_says_why_the_folder_of_the_sessions_cannot_be_read(
    tmp_path: Path, words: str, fault: Fault
) -> None:
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(folder.stat().st_mode | 0o011)
    proxied = Proxied(tmp_path)
    proxied.turn(session_of(*TEXTS[:3]))
    [name] = proxied.folders
    pages = pages_of(proxied, show_content=True)
    with fault(proxied.root):
        proxied.turn(session_of(*TEXTS[:4]))
        proxied.turn(session_of(*TEXTS[:4]), session="new")
        for query in ("", f"session={name}", "session=left"):
            text = Read(shown(pages, query=query)).text
            assert f"offloading has stopped in session {name}" in text
            assert "offloading has stopped in session claude-code-new" in text
            assert "sessions that left memory are not shown: " in text
            assert words in text
        found = json.loads(shown(pages, "decisions.json"))
        assert name in found["unreadable_sessions"]
        assert words in found["unreadable_root"]
        assert json.loads(shown(pages, "health"))["failed_writes"]
        assert "policyctx_proxy_sessions_stopped 2\n" in shown(pages, "metrics")
        assert OwnTexts(proxied.root, ["k"]).search("line", name).is_error


def test_the_log_says_once_why_nothing_is_written_until_the_end(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    proxied = Proxied(tmp_path)
    proxied.turn(session_of(*TEXTS[:4]))
    with refusing_writes(proxied.root, FULL):
        proxied.turn(session_of(*TEXTS[:5]))
        proxied.registry.close()
    [said] = [one for one in caplog.messages if "No space left on device" in one]
    assert "offloading has stopped" in said


def test_the_page_says_why_auto_sets_no_cache_markers(tmp_path: Path) -> None:
    auto = f"{OFFLOADS_OLD}model: {{cache: {{breakpoints: auto}}}}\n"
    proxied = Proxied(tmp_path, auto)
    proxied.turn(session_of("one"), session="marked", model="claude-sonnet-4-5")
    proxied.turn(session_of("one"), session="bare", model="gpt-5.1", path="/v1/chat/completions")
    page = Read(shown(pages_of(proxied))).text
    assert "no cache markers in session claude-code-bare" in page
    assert "session claude-code-marked:" not in page


def test_a_label_of_any_text_is_one_label() -> None:
    counts = Counts()
    hostile = 'a"} 1\nb\\'
    counts.response(hostile, "200")
    families = text_string_to_metric_families(metrics(counts, sessions=0, reloads=0))
    labels = [s.labels for f in families for s in f.samples if s.name.endswith("responses_total")]
    assert labels == [{"upstream": hostile, "status": "200"}]


def test_a_dry_run_decides_as_the_policy_would(tmp_path: Path) -> None:
    real, dry = Proxied(tmp_path), Proxied(tmp_path)
    dry.root = tmp_path / "dry"
    dry.turning = Turning(dry.registry, dry.policies, dry.root, dry_run=True)
    run(real)
    run(dry)
    pages = pages_of(dry)
    kept = ("call", "item", "step", "rule", "code", "numbers", "freed_tokens", "path")
    expected = [{k: one[k] for k in kept} for one in decisions(pages_of(real))]
    # A path to another folder may be a token longer.
    for one in expected:
        del one["freed_tokens"]
    assert [{k: one[k] for k in expected[0]} for one in decisions(pages)] == expected
    assert not dry.root.exists()
    assert dry.turn(session_of(*TEXTS[:5])) == session_of(*TEXTS[:5])
    spent = dry.turning.counts.spent
    assert (spent.calls, spent.spared) == (4, 0)
    assert "A dry run" in Read(shown(pages)).text


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    try:
        with chromium() as made:
            yield made
    except FileNotFoundError as error:
        pytest.skip(str(error))


@pytest.mark.browser
@pytest.mark.parametrize(("width", "scheme"), rotated([390, 1280], ["light", "dark"], one_in=2))
def test_the_page_fits_and_can_be_read(
    tmp_path: Path, browser: Any, scheme: str, width: int
) -> None:
    proxied = Proxied(tmp_path)
    run(proxied, tool="a" * 200 + HOSTILE, session="n" * 80)
    proxied.turning.counts.response("openai", "529")
    path = tmp_path / "page.html"
    path.write_text(shown(pages_of(proxied, show_content=True)))
    emulated(browser, width=width, scheme=scheme)
    browser.get(path.as_uri())
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.execute_script(_LOW_CONTRAST) == []
    assert browser.get_log("browser") == []


_LOW_CONTRAST = """
const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
const light = (colour) => {
  const [r, g, b] = parts(colour).map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = (node) => {
  for (let at = node; at; at = at.parentElement) {
    const colour = getComputedStyle(at).backgroundColor;
    if (parts(colour)[3] !== 0) return colour;
  }
  return "rgb(255, 255, 255)";
};
return [...document.querySelectorAll("body *")]
  .filter((n) => [...n.childNodes].some((c) => c.nodeType === 3 && c.data.trim()))
  .filter((n) => n.checkVisibility())
  .filter((n) => {
    const [one, other] = [light(getComputedStyle(n).color), light(behind(n))];
    return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05) < 4.5;
  })
  .map((n) => n.textContent.slice(0, 40));
"""


def test_sessions_that_have_to_raise_do_not_keep_others_in_memory(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Their indexes cannot be written when they leave memory; the log names each session."""
    proxied = Proxied(tmp_path, f"{OFFLOADS_OLD}store: {{on_failure: raise}}\n")
    for session in ("one", "two"):
        proxied.turn(session_of(*TEXTS[:4]), session=session)
    names = {one.name for one in proxied.registry.live()}
    for path in proxied.root.rglob("index.json"):
        path.unlink()
    with refusing_writes(proxied.root, FULL):
        proxied.registry.close()
    assert proxied.registry.live() == []
    said = [one for one in caplog.messages if "No space left on device" in one]
    assert len(said) == 2
    assert all(any(name in one for one in said) for name in names)
