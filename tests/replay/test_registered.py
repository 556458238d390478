from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from policyctx.replay.readers.registered import readers

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


def register_reader(site: Path, module: str) -> None:
    """Install a package that registers `module` as a reader."""
    (site / "diaries.py").write_text(module, encoding="utf-8")
    info = site / "diaries-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: diaries\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[policyctx.readers]\ndiary = diaries\n")


def read(site: Path, record: object) -> subprocess.CompletedProcess[str]:
    path = site / "days.jsonl"
    path.write_text(json.dumps(record), encoding="utf-8")
    program = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(site)!r})\n{READ}"]
    return subprocess.run(
        [*program, str(path)], capture_output=True, check=False, encoding="utf-8", cwd=site
    )


def test_a_package_may_register_a_reader(tmp_path: Path) -> None:
    register_reader(tmp_path, READER)
    run = read(tmp_path, {"dear_diary": "a fine day"})
    assert run.stdout == "diary days.jsonl [{'role': 'user', 'content': 'a fine day'}]\n"


def code(page: str, number: int) -> str:
    """The block of Python with this number on a page of the docs."""
    text = (Path(__file__).parents[2] / "docs" / page).read_text(encoding="utf-8")
    found: list[str] = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return found[number]


def test_the_reader_of_the_docs_reads(tmp_path: Path) -> None:
    register_reader(tmp_path, code("recordings.md", 1))
    run = read(tmp_path, [{"speaker": "me", "line": "hello"}, {"speaker": "all", "line": "exit"}])
    assert run.stdout == "play days.jsonl [{'role': 'user', 'content': 'hello'}]\n"


@pytest.mark.slow
def test_the_code_of_the_docs_runs(tmp_path: Path) -> None:
    folder = tmp_path / "sessions"
    folder.mkdir()
    (folder / "a.json").write_text('[{"role": "user", "content": "go"}]', encoding="utf-8")
    program = [sys.executable, "-c", code("recordings.md", 0)]
    run = subprocess.run(program, capture_output=True, check=True, cwd=tmp_path, encoding="utf-8")
    assert run.stdout == "a.json chat 0 {}\n"


def test_the_shipped_readers_stay(tmp_path: Path) -> None:
    register_reader(tmp_path, READER)
    assert read(tmp_path, [{"role": "user", "content": "go"}]).stdout.startswith("chat ")


@pytest.mark.parametrize(
    ("module", "why"),
    [
        ("raise OSError('gone')", "the reader 'diary', registered by another package, cannot be"),
        ("FORMAT = 'diary'", "lacks recognises and recordings"),
    ],
)
def test_an_invalid_reader_is_reported_by_name(module: str, why: str, tmp_path: Path) -> None:
    register_reader(tmp_path, module)
    run = read(tmp_path, {"dear_diary": "a fine day"})
    assert run.returncode == 1
    assert why in run.stderr


def test_each_shipped_format_is_in_both_tables_of_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "recordings.md").read_text(encoding="utf-8")
    rows = [line.split(" | ")[0] for line in page.splitlines() if line.startswith("| `")]
    for reader in readers():
        assert sum(f"`{reader.FORMAT}`" in row for row in rows) == 2
