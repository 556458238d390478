"""Prepares a release and uploads nothing; run by `scripts/release`.

Checks the tree and the version, builds sdist and wheel into `dist/`, tries the wheel in a clean
environment, writes `dist/notes-VERSION.md` out of CHANGELOG.md, and prints what is left to do.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
POLICY = """\
apiVersion: policyctx/v1
name: retire
items: {tool_result: {offload: true, keep_recent: 1}}
steps: [{name: retire, do: offload}]
"""


def wrong_in_tree(root: Path) -> list[str]:
    """Return what speaks against a release of the checkout, a sentence each."""
    version = version_of(root)
    found = []
    if said("git", "status", "--porcelain", cwd=root):
        found.append("the tree has changes that are not committed")
    if f"v{version}" in said("git", "tag", cwd=root).splitlines():
        found.append(f"the tag v{version} is there already")
    cited = re.search(r"^version: (\S+)$", text_of(root, "CITATION.cff"), re.MULTILINE)
    if not cited or cited[1] != version:
        found.append(f"CITATION.cff has another version than {version}")
    changelog = text_of(root, "CHANGELOG.md")
    if not notes_of(changelog, version):
        found.append(f"CHANGELOG.md has no section [{version}], or an empty one")
    if notes_of(changelog, "Unreleased"):
        found.append("CHANGELOG.md has entries under [Unreleased]")
    return found


def version_of(root: Path) -> str:
    """Return the version in pyproject.toml."""
    found: str = tomllib.loads(text_of(root, "pyproject.toml"))["project"]["version"]
    return found


def notes_of(changelog: str, version: str) -> str:
    """Return the section of a version without its heading; empty if there is none."""
    heading = rf"^## \[{re.escape(version)}\][^\n]*\n"
    found = re.search(rf"{heading}(.*?)(?=^## \[|\Z)", changelog, re.MULTILINE | re.DOTALL)
    return found[1].strip() if found else ""


def text_of(root: Path, name: str) -> str:
    """Return the text of a file of the checkout; empty if it is not there."""
    path = root / name
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def said(*command: str | Path, cwd: Path) -> str:
    """Run a command and return its stdout; end with its stderr if it fails."""
    words = list(map(str, command))
    done = subprocess.run(words, cwd=cwd, capture_output=True, encoding="utf-8", check=False)  # noqa: S603
    if done.returncode:
        sys.exit(f"{' '.join(words)} failed with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def built(dist: Path) -> tuple[Path, Path]:
    """Build the sdist, and the wheel out of it; return their paths."""
    with tempfile.TemporaryDirectory() as folder:
        tools = environment(Path(folder) / "tools")
        said(*PIP, "--python", tools, "install", "build", cwd=dist)
        said(tools, "-m", "build", "--outdir", dist, ROOT, cwd=dist)
    [sdist], [wheel] = dist.glob("*.tar.gz"), dist.glob("*.whl")
    return sdist, wheel


def environment(folder: Path) -> Path:
    """Make an empty environment; return its interpreter."""
    venv.create(folder, with_pip=False)
    return folder / "bin" / "python"


def tried(wheel: Path, version: str) -> None:
    """Import, check, apply, restore, show the demo and uninstall, with the wheel alone."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        python = environment(folder / "env")
        said(*PIP, "--python", python, "install", wheel, cwd=folder)
        command = python.with_name("policyctx")
        shown = said(
            python, "-c", "import policyctx as p; print(p.__version__, p.__file__)", cwd=folder
        )
        assert shown.split()[0] == version, shown  # noqa: S101
        assert str(folder) in shown, shown  # noqa: S101
        (folder / "retire.policy.yaml").write_text(POLICY, encoding="utf-8")
        messages = conversation()
        (folder / "messages.json").write_text(json.dumps(messages), encoding="utf-8")
        said(command, "check", "retire.policy.yaml", "coding-agent", "--strict", cwd=folder)
        apply = (command, "apply", "retire.policy.yaml", "messages.json", "--root", "root")
        said(*apply, "-o", "edited.json", cwd=folder)
        edited = json.loads((folder / "edited.json").read_text(encoding="utf-8"))
        assert edited != messages, "the policy took nothing"  # noqa: S101
        restored = json.loads(said(command, "store", "restore", "root", "edited.json", cwd=folder))
        assert restored == messages, "the restored messages differ"  # noqa: S101
        said(command, "demo", "--dir", "demo", cwd=folder)
        said(*PIP, "--python", python, "uninstall", "--yes", "policyctx", cwd=folder)
        left = [path for path in (folder / "env").rglob("policyctx*") if path.suffix != ".pyc"]
        assert not left, left  # noqa: S101


def conversation() -> list[dict[str, object]]:
    """Return a list of messages with two results."""
    found: list[dict[str, object]] = [{"role": "user", "content": "Read both."}]
    for n in range(2):
        call = {"type": "tool_use", "id": f"toolu_{n}", "name": "Bash", "input": {}}
        result = {
            "type": "tool_result",
            "tool_use_id": f"toolu_{n}",
            "content": f"{n} line\n" * 500,
        }
        found += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    return found


def looked_into(sdist: Path, wheel: Path) -> None:
    """End if a file that users need is missing, or one of this machine is in a package."""
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {
        "LICENSE",
        "README.md",
        "CHANGELOG.md",
        "SECURITY.md",
        "scripts/release",
        "pyproject.toml",
    }
    if missing := wanted - names:
        sys.exit(f"{sdist.name} lacks {', '.join(sorted(missing))}")
    with zipfile.ZipFile(wheel) as packed:
        names |= set(packed.namelist())
    hidden = [
        name for name in names if re.search(r"(^|/)(\.venv|\.env|__pycache__)(/|$)|\.pyc$", name)
    ]
    if hidden:
        sys.exit(f"the packages contain {', '.join(sorted(hidden))}")


def left_to_do(version: str) -> str:
    """Return the steps that a person does."""
    return f"""
Nothing was uploaded. What is left:

  1. Read dist/notes-{version}.md.
  2. See that CI is green for {said("git", "rev-parse", "--short", "HEAD", cwd=ROOT).strip()}.
  3. git tag --sign v{version} --message "policyctx {version}" && git push origin v{version}
  4. python -m twine upload dist/policyctx-{version}*
  5. Make a release of the tag, with the notes and both files.
  6. Open [Unreleased] in CHANGELOG.md, if it is not there.
"""


def main() -> int:
    """Prepare the release; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check-tree", action="store_true", help="check tree and version alone")
    only_tree = parser.parse_args().check_tree
    version = version_of(ROOT)
    if wrong := wrong_in_tree(ROOT):
        print(*wrong, sep="\n", file=sys.stderr)
        return 1
    print(f"the tree is ready for {version}")
    if only_tree:
        return 0
    dist = ROOT / "dist"
    dist.mkdir(exist_ok=True)
    for old in dist.glob("policyctx-*"):
        old.unlink()
    sdist, wheel = built(dist)
    looked_into(sdist, wheel)
    print(f"built {sdist.name} and {wheel.name}")
    tried(wheel, version)
    print("the wheel works in a clean environment: import, check, apply, restore, demo, uninstall")
    notes = dist / f"notes-{version}.md"
    notes.write_text(notes_of(text_of(ROOT, "CHANGELOG.md"), version) + "\n", encoding="utf-8")
    print(f"wrote {notes.relative_to(ROOT)}")
    print(left_to_do(version))
    return 0


if __name__ == "__main__":
    sys.exit(main())
