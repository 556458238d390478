from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from policyctx.replay.readers.registered import readers
from tests.cli.running import policyctx

READER = """
from policyctx.replay.readers.building import RecordingBuilder

FORMAT = "diary"

def recognises(record):
    return isinstance(record, dict) and "dear_diary" in record

def recordings(source):
    builder = RecordingBuilder()
    for record in source.objects():
        builder.records += 1
        builder.add({"role": "user", "content": record["dear_diary"]})
    yield builder.recording(source.name, FORMAT)
"""
READ = """
import sys
from pathlib import Path
from policyctx.replay.reading import recordings_in
for one in recordings_in(Path(sys.argv[1])):
    print(one.format, one.name, one.messages())
"""


def register_reader(site: Path, module: str, point: str = "diary = diaries") -> None:
    """Install a package that registers `module` as a reader by this entry point."""
    path = site.joinpath(*point.split(" = ")[1].split(".")).with_suffix(".py")
    path.parent.mkdir(exist_ok=True)
    path.write_text(module, encoding="utf-8")
    info = site / "diaries-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: diaries\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[policyctx.readers]\n{point}\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder from which commands import."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


def read(site: Path, record: object) -> subprocess.CompletedProcess[str]:
    path, program = site / "days.jsonl", site / "reads.py"
    path.write_text(json.dumps(record), encoding="utf-8")
    program.write_text(READ, encoding="utf-8")
    return policyctx(path, program=program, cwd=site)


def test_a_package_may_register_a_reader(site: Path) -> None:
    register_reader(site, READER)
    run = read(site, {"dear_diary": "a fine day"})
    assert run.stdout == "diary days.jsonl [{'role': 'user', 'content': 'a fine day'}]\n"


@pytest.mark.parametrize("command", [("tokens",), ("plan", "coding-agent"),
                                     ("replay", "coding-agent")])  # fmt: skip
def test_a_defect_of_a_reader_is_told_as_a_failure_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    register_reader(tmp_path, READER)
    (tmp_path / "days.jsonl").write_text('{"dear_diary": 1}\n{"no": "diary"}\n', encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    run = policyctx(*command, "days.jsonl", cwd=tmp_path)
    assert "unexpected KeyError: 'dear_diary' in diaries.py, line 13" in " ".join(
        run.stderr.split()
    )
    assert "Traceback" not in run.stderr
    assert run.returncode != 0


ROOT = Path(__file__).parents[2]
RECORDINGS, READERS = "docs/recordings.md", "policyctx/replay/readers/README.md"


def blocks(page: str, kind: str) -> list[str]:
    """The blocks of one language on a page."""
    text = ROOT.joinpath(page).read_text(encoding="utf-8")
    return re.findall(rf"^```{kind}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def test_the_worked_example_of_the_docs_is_read_by_every_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [[session], [module], [project]] = [
        blocks(READERS, kind) for kind in ("jsonl", "python", "toml")
    ]
    [(name, path)] = tomllib.loads(project)["project"]["entry-points"]["policyctx.readers"].items()
    register_reader(tmp_path, module, f"{name} = {path}")
    (tmp_path / "act1.jsonl").write_text(session + '{"speaker": "all"}\n', encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    refused = policyctx("replay", "coding-agent", "act1.jsonl", cwd=tmp_path)
    assert "read as play, 17% of the records" in refused.stderr
    assert "1 × line of all" in refused.stderr
    (tmp_path / "act1.jsonl").write_text(session, encoding="utf-8")
    told = policyctx("tokens", "act1.jsonl", "--json", cwd=tmp_path)
    assert [call["billed"] for call in json.loads(told.stdout)["billed"]["calls"]] == [900, 960]
    run = policyctx("replay", "coding-agent", "act1.jsonl", "--json", cwd=tmp_path)
    total = json.loads(run.stdout)["total"]
    assert (total["calls"], total["tokens_without"]) == (2, 1_860)
    assert total["types"]["tool_result"]["items"] == 1


@pytest.mark.slow
def test_the_code_of_the_docs_runs(tmp_path: Path) -> None:
    folder = tmp_path / "sessions"
    folder.mkdir()
    (folder / "a.json").write_text('[{"role": "user", "content": "go"}]', encoding="utf-8")
    program = [sys.executable, "-c", blocks(RECORDINGS, "python")[1]]
    run = subprocess.run(program, capture_output=True, check=True, cwd=tmp_path, encoding="utf-8")
    assert run.stdout == "a.json chat 0 {}\n"


def test_the_shipped_readers_stay(site: Path) -> None:
    register_reader(site, READER)
    assert read(site, [{"role": "user", "content": "go"}]).stdout.startswith("chat ")


@pytest.mark.parametrize(
    ("module", "why"),
    [
        ("raise OSError('gone')", "the reader 'diary', registered by another package, cannot be"),
        ("FORMAT = 'diary'", "lacks recognises and recordings"),
    ],
)
def test_an_invalid_reader_is_reported_by_name(module: str, why: str, site: Path) -> None:
    register_reader(site, module)
    run = read(site, {"dear_diary": "a fine day"})
    assert run.returncode == 1
    assert why in run.stderr


def test_each_shipped_format_is_in_the_table_of_the_page() -> None:
    page = ROOT.joinpath(RECORDINGS).read_text(encoding="utf-8")
    table = page.partition("| format | what is read |")[2].partition("\n\n")[0]
    for reader in readers():
        found = sum(f"`{reader.FORMAT}`" in row.split(" | ")[0] for row in table.splitlines())
        assert found == 1, f"docs/recordings.md needs {reader.FORMAT}"


HOMES = """
from policyctx.replay.readers.home import Home

HOMES = (Home("~/.diary/days", "**/*.jsonl", "DIARY_HOME", "~/.diary"),)
"""


@pytest.mark.slow
@pytest.mark.parametrize("command", [["sessions"], ["replay", "coding-agent", "--agent", "diary"]])
def test_the_home_of_a_registered_reader_is_looked_in(
    site: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    called = READER.replace("        builder.add", "        builder.called()\n        builder.add")
    register_reader(site, HOMES + called)
    (site / "days").mkdir()
    (site / "days/monday.jsonl").write_text(json.dumps({"dear_diary": "fine"}))
    monkeypatch.setenv("DIARY_HOME", str(site))
    monkeypatch.setenv("HOME", str(site))
    run = policyctx(*command, "--json")
    report = json.loads(run.stdout)
    assert run.returncode == 0, run.stderr
    assert [one["name"] for one in report["sessions"]] == ["monday.jsonl"]
