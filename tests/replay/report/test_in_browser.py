"""The page as a person works it, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from selenium.common.exceptions import StaleElementReferenceException, TimeoutException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

from benchmarks.browser import chromium, emulated
from policyctx.errors import visible
from tests.conversations import user
from tests.drawing import rotated
from tests.policies import policy
from tests.replay.report.sessions import HOSTILE, PRICED, STEPS, as_replayed, replayed, report
from tests.replay.test_audit import ORDER, SEALED, compacted, summary

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver
    from selenium.webdriver.remote.webelement import WebElement

pytestmark = pytest.mark.browser

LONG, SHORT, TAKING = "Long work", "Short work", "</script>"
# A day in November 2026, in seconds since 1970.
A_DAY = 1_795_348_800.0
# What has a name for who cannot see it.
NAMED = {
    "button",
    "combobox",
    "searchbox",
    "image",
    "link",
    "navigation",
    "region",
    "table",
    "figure",
}
CONTRAST = """
const luminance = (colour) => {
  const [r, g, b] = colour.match(/[\\d.]+/g).map(Number).map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = (node) => {
  for (let at = node; at; at = at.parentElement) {
    const colour = getComputedStyle(at).backgroundColor;
    if (!/, 0\\)$/.test(colour)) return colour;
  }
  return "rgb(255, 255, 255)";
};
const low = [];
for (const node of document.querySelectorAll("body *")) {
  const says = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
  if (!says || !node.checkVisibility() || node.closest("svg, :disabled")) continue;
  const [one, other] = [getComputedStyle(node).color, behind(node)].map(luminance);
  const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
  if (ratio < 4.5) low.push([node.tagName, node.textContent.slice(0, 40), ratio]);
}
return low;
"""

# The places of what these selectors find, in one exchange with the browser.
RECTANGLES = """
const found = [...arguments].flatMap((selector) => [...document.querySelectorAll(selector)]);
return found.map((node) => node.getBoundingClientRect().toJSON());
"""

# What is unfolded is written in the next turn of the browser's loop.
UNFOLDED = """
for (const details of document.querySelectorAll("details")) details.open = true;
setTimeout(arguments[0], 50);
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[WebDriver]:
    with ExitStack() as stack:
        try:
            opened = stack.enter_context(chromium())
        except FileNotFoundError as error:
            pytest.skip(str(error))
        yield opened


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sessions = (
        replayed(30, name="long.jsonl", task=LONG),
        replayed(3, name="short.jsonl", task=SHORT),
        replayed(6, name="<b>taking.jsonl", task=HOSTILE, text=HOSTILE, tool="<b>Tool"),
    )
    return report(tmp_path_factory.mktemp("report") / "out.html", *sessions)


@pytest.fixture
def page(browser: WebDriver, written: Path) -> Iterator[WebDriver]:
    """The page of three sessions; a test that leaves an error in its console fails.

    It is the same from test to test, and draws all of its sections anew when one is picked.
    """
    if browser.current_url != written.as_uri():
        emulated(browser)
        browser.get(written.as_uri())
    pick(browser, "All")
    yield browser
    assert browser.get_log("browser") == []  # type: ignore[no-untyped-call]


def pick(page: WebDriver, name: str) -> None:
    choice = Select(page.find_element(By.ID, "session"))
    texts: list[str] = page.execute_script(
        "return [...arguments[0].options].map((option) => option.text)", choice._el
    )
    [text] = [text for text in texts if text.startswith(name)]
    choice.select_by_visible_text(text)


def wait_for_title(page: WebDriver, title: str) -> None:
    """Wait until the page has a title; while it is drawn anew, the old one goes."""
    WebDriverWait(page, 5, ignored_exceptions=[StaleElementReferenceException]).until(
        lambda _: page.find_element(By.CSS_SELECTOR, "main h2").text == title, f"no title {title!r}"
    )


def part(page: WebDriver, title: str) -> WebElement:
    return page.find_element(By.XPATH, f"//section[h2[.='{title}']]")


def column(page: WebDriver, title: str, number: int) -> list[str]:
    # In one exchange with the browser, not one for each cell.
    script = "return [...arguments[0].querySelectorAll(arguments[1])].map((it) => it.innerText)"
    cells: list[str] = page.execute_script(
        script, part(page, title), f"tbody td:nth-child({number})"
    )
    return [cell.strip() for cell in cells]


def count(page: WebDriver, title: str) -> str:
    return part(page, title).find_element(By.TAG_NAME, "output").text


def header(page: WebDriver, title: str, name: str) -> WebElement:
    path = f".//th[button[normalize-space()='{name}']]"
    return part(page, title).find_element(By.XPATH, path)


def test_all_sessions_are_shown_first_and_each_can_be_picked(page: WebDriver) -> None:
    names = column(page, "Sessions", 1)
    assert [name[: len(TAKING)] for name in names] == [LONG[:9], SHORT[:9], TAKING]
    part(page, "Sessions").find_element(By.XPATH, f".//button[.='{SHORT}']").click()
    wait_for_title(page, SHORT)
    assert Select(page.find_element(By.ID, "session")).first_selected_option.text.startswith(SHORT)
    pick(page, "All")
    wait_for_title(page, "All sessions")


def test_the_charts_are_drawn_and_stand_in_words_and_tables_too(page: WebDriver) -> None:
    pick(page, LONG)
    charts = page.find_elements(By.CSS_SELECTOR, "main .chart, main .bars")
    drawn = [chart.find_elements(By.CSS_SELECTOR, "polyline, .part") for chart in charts]
    assert [(chart.get_attribute("aria-label") or "").partition(".")[0] for chart in charts] == [
        "Context over turns",
        "Tokens by item type",
        "Cost under the prompt cache",
    ]
    assert all(drawn)
    shown = part(page, "Context over turns")
    assert "the window holds 4,000" in shown.text
    shown.find_element(By.TAG_NAME, "summary").click()
    WebDriverWait(page, 5).until(
        lambda _: len(shown.find_elements(By.CSS_SELECTOR, "tbody tr")) == 20
    )
    assert "of 31 calls" in count(page, "Context over turns")


def test_the_decisions_are_sorted_by_a_click_or_by_a_key(page: WebDriver) -> None:
    pick(page, LONG)
    assert column(page, "Decisions", 1) == [str(number) for number in range(4, 24)]
    title = header(page, "Decisions", "Before call")
    title.find_element(By.TAG_NAME, "button").click()
    assert title.get_attribute("aria-sort") == "descending"
    assert column(page, "Decisions", 1)[:4] == ["31", "31", "31", "30"]
    title.find_element(By.TAG_NAME, "button").send_keys(Keys.ENTER)
    assert title.get_attribute("aria-sort") == "ascending"
    assert column(page, "Decisions", 1)[:2] == ["4", "5"]


def test_the_decisions_are_searched_and_paged(page: WebDriver) -> None:
    pick(page, LONG)
    assert count(page, "Decisions") == "1–20 of 30 decisions"
    part(page, "Decisions").find_element(By.XPATH, ".//button[.='Next']").click()
    assert count(page, "Decisions") == "21–30 of 30 decisions"
    search = part(page, "Decisions").find_element(By.TAG_NAME, "input")
    search.send_keys("C0 retire")
    assert count(page, "Decisions") == "1 decision, of 30"
    assert column(page, "Decisions", 8) == ["call 31"]
    search.send_keys(" nothing")
    assert column(page, "Decisions", 1) == []


def test_kept_items_are_listed_with_their_reason_and_can_be_filtered(page: WebDriver) -> None:
    pick(page, LONG)
    choice = Select(part(page, "Decisions").find_element(By.TAG_NAME, "select"))
    assert [one.text for one in choice.options] == ["All (30)", "Removed (28)", "Kept (2)"]
    part(page, "Decisions").find_element(By.TAG_NAME, "select").send_keys("Kept")
    assert column(page, "Decisions", 3) == ["keep", "keep"]
    assert [text.splitlines()[0] for text in column(page, "Decisions", 7)] == [
        "recent: 2nd newest of Read, 2 kept",
        "recent: 1st newest of Read, 2 kept",
    ]
    header(page, "Decisions", "Why").find_element(By.TAG_NAME, "button").click()
    assert column(page, "Decisions", 7)[0].startswith("recent: 1st")
    part(page, "Decisions").find_element(By.TAG_NAME, "input").send_keys("2nd newest")
    assert count(page, "Decisions") == "1 decision, of 30"
    choice.select_by_visible_text("Removed (28)")
    assert count(page, "Decisions") == "0 decisions, of 30"


def test_the_message_of_a_kept_item_shows_the_reason(page: WebDriver) -> None:
    pick(page, "All")
    Select(part(page, "Decisions").find_element(By.TAG_NAME, "select")).select_by_index(2)
    part(page, "Decisions").find_element(By.CSS_SELECTOR, "td button").click()
    wait_for_title(page, LONG)
    [opened] = part(page, "Messages").find_elements(By.CSS_SELECTOR, "details[open]")
    WebDriverWait(page, 5).until(lambda _: opened.find_elements(By.TAG_NAME, "pre"))
    why = "Kept at call 31, by step retire: recent: 2nd newest of Read, 2 kept"
    assert why in opened.text
    assert "steps.retire.select.keep_recent" in opened.text


def test_regret_shows_its_evidence(page: WebDriver) -> None:
    pick(page, LONG)
    found = part(page, "Regret")
    assert "1 removed item was needed again" in found.text
    found.find_element(By.TAG_NAME, "summary").click()
    WebDriverWait(page, 5).until(lambda _: "again: asked again" in found.text)
    assert "src/f0.py" in found.find_element(By.TAG_NAME, "pre").text


def test_a_message_unfolds_with_its_text_and_its_fate(page: WebDriver) -> None:
    pick(page, LONG)
    part(page, "Decisions").find_element(By.CSS_SELECTOR, "td button").click()
    [opened] = part(page, "Messages").find_elements(By.CSS_SELECTOR, "details[open]")
    WebDriverWait(page, 5).until(lambda _: opened.find_elements(By.TAG_NAME, "pre"))
    assert page.switch_to.active_element == opened.find_element(By.TAG_NAME, "summary")
    assert "Out of the context from call 4 on: offload by step retire" in opened.text
    assert "a line of output, number 29" not in opened.text
    assert "more characters not shown" in opened.text


def test_messages_are_searched(page: WebDriver) -> None:
    pick(page, LONG)
    search = part(page, "Messages").find_element(By.TAG_NAME, "input")
    search.send_keys("number 3005", Keys.ENTER)
    assert count(page, "Messages") == "1 message, of 63"


def test_session_contents_are_shown_as_text(page: WebDriver) -> None:
    pick(page, TAKING)
    first = part(page, "Messages").find_element(By.CSS_SELECTOR, "details.message")
    first.find_element(By.TAG_NAME, "summary").click()
    WebDriverWait(page, 5).until(lambda _: first.find_elements(By.TAG_NAME, "pre"))
    script = "return arguments[0].querySelector('pre').textContent.toWellFormed()"
    text = page.execute_script(script, first)
    assert text == visible(HOSTILE)
    assert column(page, "Decisions", 2)[0] == "<b>Tool\ntool_result"
    Select(part(page, "Decisions").find_element(By.TAG_NAME, "select")).select_by_index(2)
    assert column(page, "Decisions", 7)[0].startswith("recent: 2nd newest of <b>Tool, 2 kept")
    assert page.title == "test: a replay"
    assert page.find_elements(By.CSS_SELECTOR, "main img, main script, main b") == []


def test_the_page_fetches_nothing_and_may_not(page: WebDriver) -> None:
    pick(page, LONG)
    assert page.execute_script("return performance.getEntriesByType('resource').length") == 0
    blocked = page.execute_async_script("""
        const told = ([done]) => (event) => done(event.effectiveDirective);
        document.addEventListener("securitypolicyviolation", told(arguments), { once: true });
        document.body.append(Object.assign(new Image(), { src: "http://127.0.0.1:9/x.png" }));
    """)
    assert blocked == "img-src"
    assert len(page.get_log("browser")) == 1  # type: ignore[no-untyped-call] # and that is read


def test_the_skip_link_is_first_in_tab_order_and_focus_is_visible(page: WebDriver) -> None:
    page.refresh()
    body = page.find_element(By.TAG_NAME, "body")
    body.send_keys(Keys.TAB)
    assert page.switch_to.active_element.text == "Skip to the session"
    page.switch_to.active_element.send_keys(Keys.TAB)
    focused = page.switch_to.active_element
    assert focused.tag_name in {"button", "select", "summary"}
    assert focused.value_of_css_property("outline-style") == "solid"
    assert float(focused.value_of_css_property("outline-width").removesuffix("px")) >= 2


def test_every_control_and_chart_has_an_accessible_name(page: WebDriver) -> None:
    def nodes() -> list[dict[str, Any]]:
        tree: dict[str, Any] = page.execute_cdp_cmd("Accessibility.getFullAXTree", {})
        shown = (node for node in tree["nodes"] if not node["ignored"])
        return [node for node in shown if node["role"]["value"] in NAMED]

    def unnamed(_: WebDriver) -> list[dict[str, Any]]:
        return [node for node in nodes() if not node.get("name", {}).get("value", "").strip()]

    page.refresh()
    pick(page, LONG)
    # While the page is drawn anew, the tree may be a step behind.
    with suppress(TimeoutException):
        WebDriverWait(page, 10).until_not(unnamed)
    assert unnamed(page) == []
    assert len({node["role"]["value"] for node in nodes()}) >= 7


@pytest.mark.parametrize("width", [390, 768, 1280])
def test_no_figure_stands_alone_in_a_row_that_it_does_not_fill(page: WebDriver, width: int) -> None:
    emulated(page, width=width)
    try:
        for name in (LONG, "All"):
            pick(page, name)
            *tiles, area = page.execute_script(RECTANGLES, "main .figures > div", "main .figures")
            last = [tile for tile in tiles if tile["y"] == tiles[-1]["y"]]
            assert len(last) > 1 or last[0]["width"] > 0.9 * area["width"]
    finally:
        emulated(page)


@pytest.mark.parametrize(
    ("screen", "scheme"), rotated([(390, 844), (1280, 900)], ["dark", "light"], one_in=2)
)
def test_it_is_legible_on_small_and_large_screens_in_light_and_dark_mode(
    page: WebDriver, screen: tuple[int, int], scheme: str
) -> None:
    width, height = screen
    emulated(page, width=width, height=height, scheme=scheme)
    try:
        for name in (LONG, "All"):
            pick(page, name)
            assert page.execute_script("return document.documentElement.scrollWidth") <= width
            page.execute_async_script(UNFOLDED)
            assert page.execute_script("return document.documentElement.scrollWidth") <= width
            assert page.execute_script(CONTRAST) == []
    finally:
        emulated(page)


def test_a_chart_is_as_wide_as_its_screen_or_paper(page: WebDriver) -> None:
    pick(page, LONG)
    widths = []
    try:
        for width in (1280, 660, 390):
            emulated(page, width=width)
            drawing, line = (
                page.find_element(By.CSS_SELECTOR, f"main .area{inside}").size["width"]
                for inside in ("", " > svg")
            )
            assert 0.7 * width < drawing + 64 < width
            assert line == drawing
            widths.append(drawing)
    finally:
        emulated(page)
    assert len(set(widths)) == 3


def test_the_call_below_the_pointer_is_said(page: WebDriver) -> None:
    pick(page, LONG)
    area = page.find_element(By.CSS_SELECTOR, "main .area")
    pointer = ActionChains(page)
    pointer.move_to_element_with_offset(area, area.size["width"] // 2 - 12, 0).perform()
    said = page.find_element(By.CSS_SELECTOR, "main .readout").text
    assert said.startswith("call 31: ")
    assert "tokens without the policy" in said


def test_with_a_price_the_cost_is_shown_in_dollars(browser: WebDriver, tmp_path: Path) -> None:
    priced = report(tmp_path / "out.html", replayed(under=PRICED))
    browser.get(priced.as_uri())
    assert "Messages" in [title.text for title in browser.find_elements(By.TAG_NAME, "h2")]
    sentence = part(browser, "Cost").find_element(By.TAG_NAME, "figcaption").text
    values = [
        one.text for one in part(browser, "Cost").find_elements(By.CSS_SELECTOR, ".bar-value")
    ]
    assert sentence.startswith(f"{values[0]} without the policy, {values[1]} with it: net ")
    assert browser.get_log("browser") == []  # type: ignore[no-untyped-call]


def test_a_single_call_is_drawn_as_a_point_and_a_window_far_away_is_not(
    browser: WebDriver, tmp_path: Path
) -> None:
    under = policy(STEPS + "model: {context_window: 100000}")
    browser.get(report(tmp_path / "out.html", replayed(0, under=under)).as_uri())
    context = part(browser, "Context over turns")
    assert len(context.find_elements(By.CSS_SELECTOR, ".area .mark")) == 2
    legend = [one.text for one in context.find_elements(By.CSS_SELECTOR, ".legend > span")]
    assert legend == ["without the policy", "with the policy"]
    assert browser.get_log("browser") == []  # type: ignore[no-untyped-call]


def test_a_report_without_sessions_states_that(browser: WebDriver, tmp_path: Path) -> None:
    browser.get(report(tmp_path / "out.html").as_uri())
    assert browser.find_element(By.TAG_NAME, "h1").text == "test: no session was replayed"
    assert browser.get_log("browser") == []  # type: ignore[no-untyped-call]


def answered(browser: WebDriver, title: str) -> list[str]:
    entries = part(browser, title).find_elements(By.CSS_SELECTOR, "li, p:not(.muted)")
    return [one.text for one in entries]


@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_opens_with_the_answer(browser: WebDriver, tmp_path: Path, width: int) -> None:
    dearer = replayed(4, under=PRICED, task="Short work", name="short.jsonl", began=A_DAY)
    emulated(browser, width=width)
    browser.get(report(tmp_path / "out.html", replayed(under=PRICED), dearer).as_uri())
    try:
        title = browser.find_element(By.TAG_NAME, "h1")
        assert title.text.startswith("test ")
        assert title.rect["y"] < 200
        titles = [one.text for one in browser.find_elements(By.TAG_NAME, "h2")]
        assert titles[:3] == [
            "Context over turns: the task",
            "Worst regrets",
            "What to change in the policy",
        ]
        [drawing] = browser.find_elements(By.CSS_SELECTOR, "#answer .chart")
        WebDriverWait(browser, 5).until(
            lambda _: drawing.find_elements(By.CSS_SELECTOR, "polyline")
        )
        assert drawing.rect["y"] < 1_000
        assert titles[-2:] == ["How these figures are known", "Not in this report"]
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        regrets = answered(browser, "Worst regrets")
        assert regrets[0].splitlines()[0].endswith("of Read, asked again in call 13:")
        assert regrets[0].splitlines()[1] == '{"path":"src/f0.py"}'
        assert browser.get_log("browser") == []  # type: ignore[no-untyped-call]
    finally:
        emulated(browser)


def test_sessions_are_named_by_words_and_day_and_found_by_their_file(
    browser: WebDriver, tmp_path: Path
) -> None:
    sessions = [
        replayed(4, name="a.jsonl", task="修复登录页面", began=A_DAY),
        replayed(4, name="b.jsonl", task="修复登录页面", began=A_DAY),
        replayed(4, name="c.jsonl", task=" "),
    ]
    browser.get(report(tmp_path / "out.html", *sessions).as_uri())
    assert column(browser, "Sessions", 1) == [
        "修复登录页面 (1)\nNov 22, 2026",
        "修复登录页面 (2)\nNov 22, 2026",
        "c.jsonl",
    ]
    search = part(browser, "Sessions").find_element(By.TAG_NAME, "input")
    search.send_keys("b.jsonl")
    assert column(browser, "Sessions", 1) == ["修复登录页面 (2)\nNov 22, 2026"]
    named = part(browser, "Sessions").find_element(By.CSS_SELECTOR, "td button")
    assert named.get_attribute("title") == "b.jsonl"


def test_a_title_with_a_long_path_stays_in_its_card(browser: WebDriver, tmp_path: Path) -> None:
    path = f"/Users/somebody/repositories/{'a_folder_with_a_long_name/' * 4}file.py"
    sessions = [replayed(task=path, began=A_DAY), replayed(4, task=f"Read @{path}", began=A_DAY)]
    emulated(browser, width=390, height=844)
    try:
        browser.get(report(tmp_path / "out.html", *sessions).as_uri())
        cards = part(browser, "Sessions").find_elements(By.CSS_SELECTOR, "tbody tr")
        assert len(cards) == 2
        for card in cards:
            titled = card.find_elements(By.CSS_SELECTOR, "td button, td .muted")
            assert len(titled) == 2
            end = card.rect["x"] + card.rect["width"]
            assert all(one.rect["x"] + one.rect["width"] <= end for one in titled)
    finally:
        emulated(browser)


def test_the_net_of_each_session_is_drawn_with_its_summaries_and_re_reads(
    browser: WebDriver, tmp_path: Path
) -> None:
    sessions = [replayed(n, under=PRICED, task=f"work {n}") for n in (4, 20)]
    browser.get(report(tmp_path / "out.html", *sessions).as_uri())
    shown = part(browser, "Net cost by session")
    assert len(shown.find_elements(By.CSS_SELECTOR, ".bar")) == 2
    shown.find_element(By.TAG_NAME, "summary").click()
    WebDriverWait(browser, 5).until(lambda _: shown.find_elements(By.TAG_NAME, "tbody"))
    headers = [one.text for one in shown.find_elements(By.CSS_SELECTOR, "th button")]
    assert headers == ["Session", "Without", "Prompts", "Summary calls", "Re-reads", "Net"]
    nets = column(browser, "Net cost by session", 6)
    assert nets == column(browser, "Sessions", 10)


@pytest.mark.parametrize("lengths", [(4, 5), (20, 21), (4, 20)])
def test_the_sum_names_only_sessions_that_there_are(
    browser: WebDriver, tmp_path: Path, lengths: tuple[int, ...]
) -> None:
    sessions = [replayed(n, under=PRICED, task=f"work {n}") for n in lengths]
    browser.get(report(tmp_path / "out.html", *sessions).as_uri())
    caption = part(browser, "Net cost by session").find_element(By.TAG_NAME, "figcaption").text
    assert "0 sessions" not in caption
    assert "$0.00" not in caption
    assert caption.endswith(".")


def test_evidence_that_is_cut_ends_with_a_mark_at_a_whole_line(
    browser: WebDriver, tmp_path: Path
) -> None:
    session = replayed(under=PRICED)
    long = f"/{'folder/' * 25}file.py"
    regrets = tuple(
        replace(one, needs=tuple(replace(need, found=(long,)) for need in one.needs))
        for one in session.regrets
    )
    emulated(browser, width=390)
    try:
        browser.get(report(tmp_path / "out.html", replace(session, regrets=regrets)).as_uri())
        [found] = browser.find_elements(By.CSS_SELECTOR, "code.found")
        shown, whole, line, mark = browser.execute_script(
            """
            const [found] = arguments, style = getComputedStyle(found);
            const inside = (height) => height - parseFloat(style.paddingTop) * 2;
            return [inside(found.clientHeight), inside(found.scrollHeight),
              parseFloat(style.lineHeight), style.webkitLineClamp];
            """,
            found,
        )
        assert shown < whole
        assert (round(shown / line, 1), mark) == (3.0, "3")
    finally:
        emulated(browser)


def test_a_policy_that_never_acts_is_said_to_remove_nothing(
    browser: WebDriver, tmp_path: Path
) -> None:
    browser.get(report(tmp_path / "out.html", replayed(1, under=PRICED)).as_uri())
    assert browser.find_element(By.TAG_NAME, "h1").text == "test removed nothing"
    assert answered(browser, "Worst regrets") == ["The policy removed nothing."]
    titles = [one.text for one in browser.find_elements(By.TAG_NAME, "h2")]
    assert "Sessions that got dearer" not in titles


def test_a_compaction_of_the_recording_is_no_new_beginning(
    browser: WebDriver, tmp_path: Path
) -> None:
    session = replayed(6)
    calls = [
        one._replace(why_anew="compaction", anew=True) if i == 3 else one
        for i, one in enumerate(session.calls)
    ]
    browser.get(report(tmp_path / "out.html", replace(session, calls=tuple(calls))).as_uri())
    context = part(browser, "Context over turns")
    assert "Once the recording summarised its history." in context.text
    legend = [one.text for one in context.find_elements(By.CSS_SELECTOR, ".legend > span")]
    assert "the recording summarised its history" in legend
    assert "anew" not in browser.find_element(By.TAG_NAME, "main").text


def test_it_prints_on_white_also_on_a_dark_system(page: WebDriver) -> None:
    pick(page, LONG)
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {
        "media": "print",
        "features": [{"name": "prefers-color-scheme", "value": "dark"}],
    })  # fmt: skip
    try:
        paper = page.find_element(By.TAG_NAME, "body").value_of_css_property("background-color")
        assert paper == "rgba(255, 255, 255, 1)"
        assert page.execute_script(CONTRAST) == []
    finally:
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
        emulated(page)


LOST = "What the recorded compactions lost"
# A quotation that a page must not take for its own, and that has an exact value.
QUOTED = "The port is 8081, <b>not</b> <img src=x onerror=alert(1)>\u202e."


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lossy = compacted([user(ORDER), user(QUOTED)], [summary()], times=[A_DAY, 1e300])
    sessions = (
        as_replayed(replace(lossy, name="lossy.jsonl")),
        as_replayed(compacted(*SEALED, name="sealed.jsonl")),
        as_replayed(compacted([user(ORDER)], [summary(ORDER)], name="whole.jsonl")),
        replayed(3, name="short.jsonl", task=SHORT),
    )
    named = [replace(one, first_words="") for one in sessions]
    return report(tmp_path_factory.mktemp("audited") / "out.html", *named)


def test_what_each_compaction_lost_is_a_row_of_its_session(
    browser: WebDriver, audited: Path
) -> None:
    browser.get(audited.as_uri())
    assert column(browser, LOST, 1)[:2] == ["lossy.jsonl\nNov 22, 2026", "sealed.jsonl"]
    assert [column(browser, LOST, number) for number in range(2, 9)] == [
        ["2", "2", "2"],
        ["2", "2", "1"],
        ["1/1", "?/1", "0/1"],
        ["1/1", "?/1", "0/0"],
        ["0/0", "?/0", "0/0"],
        ["0/0", "?/0", "0/0"],
        ["0", "unreadable", "0"],
    ]
    assert part(browser, LOST).find_elements(By.TAG_NAME, "details") == []
    part(browser, LOST).find_element(By.CSS_SELECTOR, "td button").click()
    wait_for_title(browser, "lossy.jsonl")
    assert browser.get_log("browser") == []  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("width", [390, 1280])
def test_what_was_lost_is_quoted_with_its_place_when_it_is_unfolded(
    browser: WebDriver, audited: Path, width: int
) -> None:
    emulated(browser, width=width)
    try:
        browser.get(audited.as_uri())
        pick(browser, "Nov 22, 2026: lossy")
        shown = part(browser, LOST)
        assert ORDER not in shown.text
        [folded] = shown.find_elements(By.TAG_NAME, "summary")
        assert folded.text == "Missing after the compaction before call 2"
        folded.click()
        assert [one.text for one in shown.find_elements(By.TAG_NAME, "li")] == [
            f"order, call 1, Nov 22, 2026, 12:00 UTC: {ORDER}",
            f"exact value, call 1, Nov 22, 2026, 12:00 UTC: {visible(QUOTED)} (missing: 8081)",
        ]
        assert shown.find_elements(By.CSS_SELECTOR, "b, img") == []
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        assert browser.execute_script(CONTRAST) == []
        assert browser.get_log("browser") == []  # type: ignore[no-untyped-call]
    finally:
        emulated(browser)


def test_an_unreadable_summary_counts_nothing_as_lost(browser: WebDriver, audited: Path) -> None:
    browser.get(audited.as_uri())
    pick(browser, "sealed")
    shown = part(browser, LOST)
    assert "Before call 2 the summary is unreadable" in shown.text
    assert "1 of 2 orders, values, tasks and files" in shown.text
    assert shown.find_elements(By.TAG_NAME, "details") == []


def test_a_session_without_a_compaction_has_no_section_of_losses(
    browser: WebDriver, audited: Path
) -> None:
    browser.get(audited.as_uri())
    pick(browser, "short")
    assert LOST not in [one.text for one in browser.find_elements(By.TAG_NAME, "h2")]
