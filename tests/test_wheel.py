"""What is installed works like what is checked out."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tomllib
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.integrations.heavy.run import install
from tests.serving import serving

ROOT = Path(__file__).parents[1]
# What the page of a replay is made of.
PAGE = {".html", ".css", ".js"}
PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
# What builds the package is installed once, not in an environment of its own for each build.
BUILDS_HERE = "--no-build-isolation"

pytestmark = pytest.mark.slow


def run(*command: str | Path, cwd: Path, builder: Path | None = None) -> str:
    done = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env={**os.environ, "PATH": os.defpath} | ({"PYTHONPATH": str(builder)} if builder else {}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what builds the package."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    folder = tmp_path_factory.mktemp("builder")
    # An editable package also needs the last one.
    wanted = [*project["build-system"]["requires"], "editables"]
    install(Path(sys.executable), ["--target", str(folder), *wanted])
    return folder


@pytest.fixture(scope="module")
def wheel(builder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    options = (BUILDS_HERE, "--no-deps", "--wheel-dir")
    run(*PIP, "wheel", *options, folder, ROOT, cwd=folder, builder=builder)
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


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """A new virtual environment."""
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv", cwd=tmp_path)
    return tmp_path / "venv"


def hint(environment: Path, extra: str) -> str:
    program = f"from policyctx.errors import install_command as c; print(c({extra!r}))"
    return run(environment / "bin/python", "-c", program, cwd=environment).strip()


def test_a_wheel_installs_by_name_from_an_index(
    wheel: Path, environment: Path, tmp_path: Path
) -> None:
    page = tmp_path / "index" / "simple" / "policyctx"
    page.mkdir(parents=True)
    shutil.copy(wheel, page)
    (page / "index.html").write_text(f'<a href="{wheel.name}">{wheel.name}</a>', encoding="utf-8")
    handler = partial(SimpleHTTPRequestHandler, directory=tmp_path / "index")
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), handler)) as server:
        install = (*PIP, "--python", environment, "install", "--no-compile", "--no-deps")
        run(
            *install,
            "--index-url",
            f"http://127.0.0.1:{server.server_port}/simple",
            "policyctx",
            cwd=tmp_path,
        )
    assert hint(environment, "proxy") == "pip install 'policyctx[proxy]'"


def test_a_hint_names_what_was_installed(
    wheel: Path, environment: Path, tmp_path: Path, builder: Path
) -> None:
    install = (*PIP, "--python", environment, "install", "--no-compile", "--no-deps")
    run(*install, wheel, cwd=tmp_path)
    assert hint(environment, "proxy") == f"pip install 'policyctx[proxy] @ {wheel.as_uri()}'"
    run(*install, BUILDS_HERE, "--editable", ROOT, cwd=tmp_path, builder=builder)
    command = hint(environment, "proxy")
    assert command == f"pip install -e {shlex.quote(f'{ROOT}[proxy]')}"
    again = shlex.split(command)[1:]
    options = (BUILDS_HERE, "--dry-run", "--no-deps")
    run(*PIP, "--python", environment, *again, *options, cwd=tmp_path, builder=builder)


def test_the_demo_runs_from_an_installed_wheel(wheel: Path, tmp_path: Path) -> None:
    environment = tmp_path / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", environment, cwd=tmp_path)
    programs = next(
        path for path in (environment / "bin", environment / "Scripts") if path.is_dir()
    )
    install(programs / "python", [str(wheel)])
    where = run(
        programs / "python", "-c", "import policyctx; print(policyctx.__file__)", cwd=tmp_path
    )
    assert Path(where.strip()).is_relative_to(environment)
    shown = run(programs / "policyctx", "demo", "--dir", tmp_path / "demo", cwd=tmp_path)
    assert "tokens sent in" in shown
    # What it says to try next works as it stands, though the command is not on the path.
    lines = [line.split() for line in shown.split("Try next:")[1].splitlines() if line]
    (cd, folder), *commands = lines
    assert (cd, len(commands)) == ("cd", 2)
    for command in commands:
        run(*command, cwd=tmp_path / folder)
    features = (
        "from policyctx.resources import shipped_folder as f; print(*f('features').iterdir())"
    )
    assert "context-offload" in run(programs / "python", "-c", features, cwd=tmp_path)
