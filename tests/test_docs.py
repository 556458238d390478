"""The documents say what is so."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from policyctx import OffloadPolicy, Session
from policyctx.policy.loading import parsed_policy
from policyctx.policy.sources import PolicySource, preset_names
from policyctx.testing.observing import MISSING
from tests.cli.running import policyctx
from tests.conversations import calls, results, session_of

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("[!.]*/README.md")]
_EDGE = re.compile(r"(?<!\\)\|")  # between two cells; one in a text has a backslash before it


def block(language: str, page: str = README) -> str:
    found = re.search(rf"^```{language}\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert found
    return found.group(1)


def test_the_hook_answers_the_event_on_its_page(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "claude-code.md").read_text(encoding="utf-8")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    run = subprocess.run(
        ["/bin/sh", "-c", block("sh", page)],
        cwd=tmp_path,
        env={**os.environ, "PATH": path, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "updatedToolOutput" in run.stdout
    assert [*tmp_path.rglob("t1*.md")]


@pytest.mark.slow
def test_the_page_of_the_demo_shows_its_output(tmp_path: Path) -> None:
    # The demo reads this library's own source, so its figures move with every change of it. The
    # page says that they may differ a little.
    def shape(text: str) -> list[str]:
        lines = re.sub(r"\d[\d,]*", "0", re.sub(r"/\S+/", "/", text)).splitlines()
        return [" ".join(line.split()) for line in lines if line.strip()]

    page = (ROOT / "docs" / "demo.md").read_text(encoding="utf-8")
    shown = policyctx("demo", "--dir", tmp_path / "policyctx-demo").stdout
    stale = "run `policyctx demo --dir /tmp/policyctx-demo`, paste what it shows"
    assert shape(block("text", page)) == shape(shown), stale
    # How long the folder's own path is changes what the offloaded results leave behind.
    sums = [re.search(r"([\d,]+) → [\d,]+ tokens", text) for text in (page, shown)]
    told, real = (int(found[1].replace(",", "")) for found in sums if found)
    assert told == pytest.approx(real, rel=0.01), stale


def test_the_policy_in_the_readme_decides_as_described(tmp_path: Path) -> None:
    policy = OffloadPolicy(parsed_policy(PolicySource("README.md", block("yaml"))))
    assert len(block("yaml").splitlines()) == 10
    few, enough = 600, 30_000
    for words, tools in ((few, []), (enough, ["Bash", "mcp__web__get"])):
        messages = session_of(*[f"{words} " * words] * 4)
        for tool in ("mcp__web__get",) * 4 + ("update_todo",) * 4:
            messages += [calls((f"m{len(messages)}", tool))]
            messages += [results((f"m{len(messages) - 1}", "word " * 300))]
        decisions = Session(policy, root=tmp_path, session_id=f"{words}").plan(messages).to_save
        assert [d.item.tool for d in decisions] == tools


@pytest.mark.parametrize("path", [*ROOT.glob("docs/*.md")], ids=lambda path: path.name)
def test_a_page_installs_from_a_clone_while_no_index_has_the_package(path: Path) -> None:
    page = path.read_text("utf-8")
    assert "pip install 'policyctx" not in page
    found = re.search(r"^    pip install '\.\[.*", page, re.MULTILINE)
    assert found is None or found[0].endswith("   # in your clone")


@pytest.mark.parametrize("preset", preset_names())
def test_every_preset_is_on_its_page(preset: str) -> None:
    assert f"| `{preset}` |" in (ROOT / "docs" / "presets.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_has_a_target(path: Path) -> None:
    code = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)  # it holds no links
    text = code.sub("", path.read_text(encoding="utf-8"))
    links = re.findall(r"\]\(([^)#]+)\)", text)
    local = [link for link in links if "://" not in link]
    assert [link for link in local if not (path.parent / link).exists()] == []


def uneven_tables(page: str) -> list[str]:
    """Return the heads of the tables of which a row has more or fewer cells than the head."""
    text = re.sub(r"^```.*?^```", "", page, flags=re.DOTALL | re.MULTILINE)
    tables = [found[0].splitlines() for found in re.finditer(r"(?:^\|.*\n?)+", text, re.MULTILINE)]
    return [rows[0] for rows in tables if len({len(_EDGE.findall(row)) for row in rows}) > 1]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_row_of_a_table_has_as_many_cells(path: Path) -> None:
    assert uneven_tables(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("row", ["| 1 |", "| 1 | 2 | 3 |", "| 1 | `a|b` |", "| 1 | 2"])
def test_a_row_with_more_or_fewer_cells_is_found(row: str) -> None:
    head = "| a | b |\n|---|---|\n| `x \\| y` | 2 |\n"
    assert uneven_tables(head) == []
    assert uneven_tables(f"{head}{row}\n") == ["| a | b |"]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_picture_is_closed(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    pictures = re.findall(
        r"<picture>(?:(?!\n\n).)*?<img\s[^>]*\balt=\"[^\"]+\"[^>]*>\s*</picture>", text, re.DOTALL
    )
    assert len(pictures) == text.count("<picture>")


@pytest.mark.slow
def test_the_policy_and_the_feature_of_the_page_on_testing_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    page = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
    for language, name in (("yaml", "retire.yaml"), ("gherkin", "retire.feature")):
        (tmp_path / name).write_text(block(language, page), encoding="utf-8")
    assert policyctx("test", cwd=tmp_path).returncode == 0
    wrong = block("gherkin", page).replace("2 results", "3 results")
    (tmp_path / "retire.feature").write_text(wrong, encoding="utf-8")
    run = policyctx("test", cwd=tmp_path)
    shown = "\n".join(line.rstrip() for line in run.stdout.splitlines())
    assert block("text", page).rstrip() in shown


@pytest.mark.slow
def test_the_page_on_testing_shows_the_output_of_coverage_and_of_mutants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    page = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
    for language, name in (("yaml", "retire.yaml"), ("gherkin", "retire.feature")):
        (tmp_path / name).write_text(block(language, page), encoding="utf-8")
    _, covered, mutants = re.findall(r"^```text\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    options = ("--cov-of", "retire.yaml", "--cov-fail-under", "90")
    assert covered in policyctx("test", *options, cwd=tmp_path).stdout
    mutate = ("test", "--mutate", "retire.yaml", "--jobs", "1")
    assert policyctx(*mutate, cwd=tmp_path).stdout == mutants
    [outline] = re.findall(
        r"^```gherkin\n(  Scenario Outline.*?)^```", page, re.DOTALL | re.MULTILINE
    )
    with (tmp_path / "retire.feature").open("a", encoding="utf-8") as feature:
        feature.write(f"\n{outline}")
    assert policyctx(*mutate, cwd=tmp_path).stdout == "9 of 9 mutants noticed\n"


def test_the_page_on_coverage_lists_every_side() -> None:
    page = (ROOT / "docs" / "rule-coverage.md").read_text(encoding="utf-8")
    listed = re.findall(r"(?:: |; )`([^`]+)` \(", page)
    assert {*listed} == MISSING.keys()
