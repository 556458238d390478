"""The stand-in for a worker with which the site's search runs from the file system."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.browser import chromium

pytestmark = pytest.mark.browser

SCRIPT = Path(__file__).parents[1] / "docs" / "javascripts" / "iframe-worker.js"
PAGE = """\
<!doctype html><html><body><script src="{script}"></script><script>
const sent = {{words: ["one"]}}, worker = new Worker("./worker.js"), answers = [];
worker.onmessage = (event) => answers.push(event.data);
worker.postMessage(sent);
worker.postMessage(sent);
</script></body></html>
"""
WORKER = """\
self.onmessage = (event) => { event.data.words.push("two"); self.postMessage(event.data); };
"""


def test_a_worker_on_the_disk_answers_and_changes_nothing_of_the_page(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(PAGE.format(script=SCRIPT.as_uri()))
    (tmp_path / "worker.js").write_text(WORKER)
    try:
        with chromium() as browser:
            browser.set_script_timeout(20)
            browser.get((tmp_path / "page.html").as_uri())
            answers, sent = browser.execute_async_script("""
                const done = arguments[0], look = () => answers.length === 2
                    ? done([answers, sent]) : setTimeout(look, 20);
                look();
            """)
    except FileNotFoundError as error:
        pytest.skip(str(error))
    assert answers == [{"words": ["one", "two"]}] * 2
    assert sent == {"words": ["one"]}
