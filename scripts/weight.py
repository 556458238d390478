"""Weigh the package: modules, lines, heads, suppressions, circles, names used twice, and tests.

    python scripts/weight.py [PACKAGE] [--tests] [--ci-minutes MINUTES] [--json]

PACKAGE is a folder with Python modules (default: `policyctx`). A head is what comes before a
module's first statement of its own: its docstring and its imports. The import of a circle counts
"at run time" when Python executes it with the module, and "with types" also under `TYPE_CHECKING`.

The lines of tests are those of Python in the folder `tests` beside the package. `--tests` counts
the tests too: pytest collects them, which takes a minute. The time of CI is in the log of a whole
run alone, so nothing here can measure it; `--ci-minutes` puts it beside the other figures.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path


def is_type_checking(node: ast.AST) -> bool:
    """Return whether the statement is `if TYPE_CHECKING:`."""
    return isinstance(node, ast.If) and getattr(node.test, "id", None) == "TYPE_CHECKING"


def head_lines(tree: ast.Module) -> int:
    """Return the lines of a module's head."""
    end = 0
    for node in tree.body:
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        is_import = isinstance(node, ast.Import | ast.ImportFrom) or is_type_checking(node)
        if not (is_import or (is_text and node is tree.body[0])):
            break
        end = node.end_lineno or end
    return end


def imported(body: list[ast.stmt], *, types: bool) -> Iterator[str]:
    """Yield what a module's own statements import, as `module` and `module.name`."""
    for node in body:
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for name in node.names:
                yield f"{node.module}.{name.name}"
                yield node.module
        elif isinstance(node, ast.If):
            if types or not is_type_checking(node):
                yield from imported(node.body, types=types)
            yield from imported(node.orelse, types=types)
        elif isinstance(node, ast.Try):
            yield from imported(node.body, types=types)


def circles(trees: Mapping[str, ast.Module], *, types: bool) -> list[set[str]]:
    """Return the sets of modules that import each other."""
    graph: dict[str, set[str]] = {}
    for name, tree in trees.items():
        found: set[str] = set()
        skip = ""
        for one in imported(tree.body, types=types):
            if one in trees and one not in (name, skip):
                found.add(one)
                # A module that is imported from its package does not need the package's names.
                skip = one.rpartition(".")[0]
        graph[name] = found
    parts: list[set[str]] = []
    while True:
        try:
            list(TopologicalSorter(graph).static_order())
        except CycleError as error:
            circle = set(error.args[1])
            joined = [part for part in parts if part & circle]
            parts = [part for part in parts if not part & circle] + [circle.union(*joined)]
            first, second = error.args[1][:2]
            # Static orders name the imported module first.
            graph[second].discard(first)
        else:
            return parts


def collected(folder: Path) -> int:
    """Return how many tests pytest collects in a folder, without those that it leaves out."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603
    found = re.search(r"^(\d+)(?:/\d+)? tests? collected", run.stdout, re.MULTILINE)
    if run.returncode or found is None:
        raise SystemExit(f"pytest cannot collect the tests:\n{run.stdout[-2000:]}{run.stderr}")
    return int(found[1])


def weight(package: Path) -> dict[str, float]:
    """Return the figures of a package by their names."""
    sources = {path: path.read_text(encoding="utf-8") for path in sorted(package.rglob("*.py"))}
    trees: dict[str, ast.Module] = {}
    for path, source in sources.items():
        parts = path.relative_to(package.parent).with_suffix("").parts
        trees[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = ast.parse(source)
    nodes = [node for tree in trees.values() for node in ast.walk(tree)]
    lines = sum(source.count("\n") for source in sources.values())
    noqa = sum(len(re.findall(r"# noqa\b", source)) for source in sources.values())
    tests = (package.parent / "tests").rglob("*.py")
    classes = Counter(node.name for node in nodes if isinstance(node, ast.ClassDef))
    return {
        "modules": len(sources),
        "lines": lines,
        "statements": sum(isinstance(node, ast.stmt) for node in nodes),
        "head lines, % of lines": round(100 * sum(map(head_lines, trees.values())) / lines, 1),
        "noqa": noqa,
        "noqa per 1,000 lines": round(1000 * noqa / lines, 1),
        "TYPE_CHECKING blocks": sum(map(is_type_checking, nodes)),
        "circles at run time": len(circles(trees, types=False)),
        "circles with types": len(circles(trees, types=True)),
        "class names used twice": sum(count > 1 for count in classes.values()),
        "lines of tests": sum(path.read_text(encoding="utf-8").count("\n") for path in tests),
    }


def main() -> None:
    """Print the figures of a package."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("package", nargs="?", type=Path, default=Path("policyctx"))
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    parser.add_argument("--tests", action="store_true", help="count the tests too")
    parser.add_argument("--ci-minutes", type=float, help="the time of a run of CI, from its log")
    options = parser.parse_args()
    figures = weight(options.package)
    if options.tests:
        figures["tests"] = collected(options.package.resolve().parent)
    if options.ci_minutes is not None:
        figures["minutes of CI"] = options.ci_minutes
    if options.json:
        print(json.dumps(figures))
        return
    for name, figure in figures.items():
        print(f"{name:<24} {figure:>10,}")


if __name__ == "__main__":
    main()
