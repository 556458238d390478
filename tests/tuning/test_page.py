"""The page of a study in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from selenium.webdriver.common.by import By

from benchmarks.browser import chromium, emulated
from policyctx.cli.tune import page
from policyctx.replay.report.page import write_page
from tests.drawing import rotated
from tests.replay.report.test_in_browser import CONTRAST

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

pytestmark = pytest.mark.browser

HOSTILE = "</script><b>min_tokens 1500"


@pytest.fixture(scope="module")
def browser() -> Iterator[WebDriver]:
    with ExitStack() as stack:
        try:
            opened = stack.enter_context(chromium())
        except FileNotFoundError as error:
            pytest.skip(str(error))
        yield opened


def found(setting: object, net: float, regret: int, **more: Any) -> dict[str, Any]:
    figures = {"net": net, "regret_tokens": regret, "dearer": 1, "never_acted": 2}
    return {"setting": setting, **figures, **more}


def study(**more: Any) -> dict[str, Any]:
    """The plain values of a study whose winner is tested on other projects."""
    winner = found({"min_tokens": 1_500}, -50.0, 20_000, name=HOSTILE)
    tally = {"wins": 20, "losses": 1, "ties": 0}
    against = {"against": "incumbent", "difference": -29.62, "interval": [-33.2, -26.34]}
    return {
        "incumbent": "/a/long/folder/mine.yaml",
        "version": "1",
        "seed": 0,
        "prices_of": "genai-prices 0.2.3",
        "projects": 10,
        "sessions": [{"name": "a"}] * 20,
        "sessions_without_prices": 3,
        "interrupted": False,
        "settings": 91,
        "replays": 873,
        "rows": [
            found("nothing", 0.0, 0, kind="baseline", on_front=True),
            found("mine.yaml", -20.0, 100_000, kind="incumbent", on_front=False),
            found(HOSTILE, -50.0, 20_000, kind="front", on_front=True),
        ],
        "legend": ["min_tokens N: smaller items stay"],
        "judged": [winner],
        "best": winner,
        "winner": winner,
        "comparisons": [{**against, "tally": tally}],
        "tested": {**against, "tally": tally, "holds": True},
        "diff": "-min_tokens: 800\n+min_tokens: 1500",
        **more,
    }


def opened(browser: WebDriver, tmp_path: Path, values: dict[str, Any]) -> str:
    """Open the page of a study; return its heading."""
    write_page(tmp_path / "out.html", page(values))
    browser.get((tmp_path / "out.html").as_uri())
    return browser.find_element(By.TAG_NAME, "h1").text


def test_the_page_opens_with_the_change_and_its_test(browser: WebDriver, tmp_path: Path) -> None:
    assert opened(browser, tmp_path, study()) == f"Change mine.yaml: {HOSTILE}"
    lead = browser.find_element(By.ID, "about").text
    assert "On projects left out of the search the choice saves $29.62 more than mine.yaml" in lead
    assert "tokens to read again: 100,000 → 20,000" in lead
    assert "sessions dearer than without a policy: 1 → 1" in lead
    assert "min_tokens N: smaller items stay." in browser.find_element(By.ID, "main").text
    assert "3 sessions without prices left out" in browser.find_element(By.ID, "kicker").text
    titles = [one.text for one in browser.find_elements(By.TAG_NAME, "h2")]
    assert titles[:3] == ["On projects left out of the search", "What to change", "The front"]
    assert browser.find_elements(By.TAG_NAME, "b") == []
    assert browser.get_log("browser") == []  # type: ignore[no-untyped-call]


def test_each_point_for_comparison_has_its_own_mark(browser: WebDriver, tmp_path: Path) -> None:
    opened(browser, tmp_path, study())
    legend = [one.text for one in browser.find_elements(By.CSS_SELECTOR, ".legend > span")]
    assert legend == ["tried", "the front", "nothing", "mine.yaml", "the best setting"]


def test_the_line_passes_through_each_row_on_the_front_and_no_label_breaks(
    browser: WebDriver, tmp_path: Path
) -> None:
    rows = study()["rows"]
    stays = found("mine.yaml", -20.0, 10_000, kind="incumbent", on_front=True)
    emulated(browser, width=390)
    try:
        opened(browser, tmp_path, study(rows=[rows[0], stays, rows[2]]))
        [way] = browser.find_elements(By.CSS_SELECTOR, "polyline")
        corners = [
            tuple(map(float, at.split(","))) for at in str(way.get_attribute("points")).split()
        ]
        assert corners == sorted(corners)
        assert len({y for _, y in corners}) == 3
        labels = browser.find_elements(By.CSS_SELECTOR, ".tick-x")
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
        assert len({label.rect["height"] for label in labels}) == 1
    finally:
        emulated(browser)


def test_the_policy_stays_where_the_choice_is_the_policy(
    browser: WebDriver, tmp_path: Path
) -> None:
    stays = study(winner=found({}, -20.0, 1, name="mine.yaml"), diff="")
    assert opened(browser, tmp_path, stays) == "Keep mine.yaml as it is"


def test_with_few_projects_the_cheapest_preset_comes_first(
    browser: WebDriver, tmp_path: Path
) -> None:
    few = study(winner=None, best=None, tested=None, comparisons=[], judged=[], diff="")
    assert opened(browser, tmp_path, few) == f"{HOSTILE} costs least: net −$50.00"
    assert "too few projects" in browser.find_element(By.ID, "about").text
    assert browser.get_log("browser") == []  # type: ignore[no-untyped-call]


@pytest.mark.parametrize(("width", "scheme"), rotated([390, 1280], ["light", "dark"], one_in=2))
def test_it_fits_the_screen_and_is_legible(
    browser: WebDriver, tmp_path: Path, width: int, scheme: str
) -> None:
    emulated(browser, width=width, scheme=scheme)
    try:
        opened(browser, tmp_path, study())
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        assert browser.execute_script(CONTRAST) == []
    finally:
        emulated(browser)
