"""What is installed works like what is checked out."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# What the page of a replay is made of.
PAGE = {".html", ".css", ".js"}
PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")

pytestmark = pytest.mark.slow


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env={**os.environ, "PATH": os.defpath},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(*PIP, "wheel", "--no-deps", "--wheel-dir", folder, ROOT, cwd=folder)
    [built] = folder.glob("*.whl")
    return built


def test_the_wheel_carries_presets_features_vocabularies_and_licences(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for folder in ("policies", "features"):
        shipped = {f"policyctx/shipped/{p.relative_to(ROOT)}" for p in (ROOT / folder).rglob("*.*")}
        assert shipped
        assert shipped <= names
    assert "policyctx/tokens/vocabularies/o200k_base.tiktoken.gz" in names
    assert "policyctx/py.typed" in names
    page = {p for p in (ROOT / "policyctx/replay/report").iterdir() if p.suffix in PAGE}
    assert {p.suffix for p in page} == PAGE
    assert {str(p.relative_to(ROOT)) for p in page} <= names
    assert sum("/licenses/" in name for name in names) == 2


def test_the_demo_runs_from_an_installed_wheel(wheel: Path, tmp_path: Path) -> None:
    environment = tmp_path / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", environment, cwd=tmp_path)
    programs = next(
        path for path in (environment / "bin", environment / "Scripts") if path.is_dir()
    )
    run(*PIP, "--python", environment, "install", "--no-compile", wheel, cwd=tmp_path)
    where = run(
        programs / "python", "-c", "import policyctx; print(policyctx.__file__)", cwd=tmp_path
    )
    assert Path(where.strip()).is_relative_to(environment)
    shown = run(programs / "policyctx", "demo", "--dir", tmp_path / "demo", cwd=tmp_path)
    assert "tokens sent in" in shown
    # What it says to try next works as it stands, though the command is not on the path.
    commands = [line.split() for line in shown.splitlines() if line.startswith("  /")]
    assert len(commands) == 2
    for command in commands:
        run(*command, cwd=tmp_path)
    features = (
        "from policyctx.resources import shipped_folder as f; print(*f('features').iterdir())"
    )
    assert "context-offload" in run(programs / "python", "-c", features, cwd=tmp_path)
