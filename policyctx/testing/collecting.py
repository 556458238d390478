"""Feature files as pytest collects them: each scenario, or row of an outline, is one test."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pytest_bdd import scenario

from policyctx.errors import visible
from policyctx.testing.gherkin import BrokenFeatureError, KnownTags, read_feature
from policyctx.testing.guards import problems_in
from policyctx.testing.reporting import finish, shown_path, shown_problems
from policyctx.testing.step_definitions import Definitions, visible_definitions

if TYPE_CHECKING:
    from pytest_bdd.parser import Feature


class FeatureCollection:
    """Collects the feature files below some folders."""

    NAME = "policyctx-features"
    """What the plugin that it is goes by."""

    def __init__(self, config: pytest.Config, folders: tuple[Path, ...]) -> None:
        self._folders = folders
        self._only: bool = config.known_args_namespace.policyctx_only
        self._tags = KnownTags(config)
        self.files: list[FeatureFile] = []
        """The feature files found so far."""

    def pytest_collect_file(
        self, file_path: Path, parent: pytest.Collector
    ) -> pytest.Collector | None:
        """Take a feature file that is below one of the folders."""
        if file_path.suffix != ".feature" or not any(map(file_path.is_relative_to, self._folders)):
            return None
        file: FeatureFile = FeatureFile.from_parent(parent, path=file_path, tags=self._tags)
        self.files.append(file)
        return file

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Leave Python tests to pytest itself where only features are asked for."""
        return True if self._only and collection_path.suffix == ".py" else None


class FeatureFile(pytest.Module):
    """A feature file. It stands where pytest has a Python module, and holds a function a scenario.

    What would let a broken scenario pass is a collection error; see `guards`.
    """

    def __init__(self, *, tags: KnownTags, **options: object) -> None:
        super().__init__(**options)  # type: ignore[arg-type]
        self._tags = tags
        self.definitions: Definitions | None = None
        """The steps that its scenarios can see, once it is collected."""

    def _getobj(self) -> types.ModuleType:
        return types.ModuleType(self.path.stem)

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        """Yield the scenarios in their order; raises `BrokenFeatureError` for what is broken."""
        self.definitions = visible_definitions(self)
        source = read_feature(self.path, shown_path(self.path, self.config))
        if problems := problems_in(source, self.definitions, self._tags):
            raise BrokenFeatureError(problems)
        for tag in source.tags():
            self._tags.register(tag.name.removeprefix("@"))
        for name, function in _functions(self.path, source.feature).items():
            setattr(self.obj, name, function)
            yield from self._genfunctions(name, function)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException]) -> str:  # type: ignore[override]
        """Tell each problem with its file and line; anything else as pytest does."""
        if isinstance(excinfo.value, BrokenFeatureError):
            return shown_problems(excinfo.value.problems)
        return str(super().repr_failure(excinfo))


def _functions(path: Path, feature: Feature | None) -> dict[str, Callable[..., object]]:
    """Return a test function for each scenario, by the name that its node ids have."""
    functions: dict[str, Callable[..., object]] = {}
    for name in feature.scenarios if feature else ():

        def body(request: pytest.FixtureRequest) -> None:
            finish(request.node)

        decorate = scenario(path.name, name, features_base_dir=str(path.parent))
        # `::` parts a node id.
        functions[visible(name.replace("::", ":"))] = decorate(body)
    return functions
