from __future__ import annotations

import copy
import inspect
import pickle
import re

import pytest

from policyctx import compact_messages, errors, offload_tool_results
from policyctx.errors import (
    AmbiguousSessionError,
    Diagnostic,
    Location,
    PolicyctxError,
    PolicyError,
    StoreError,
    UnknownOptionError,
    UnknownPolicyError,
)
from policyctx.policy.loading import load_policy


def unknown_option() -> UnknownOptionError:
    with pytest.raises(UnknownOptionError) as caught:
        offload_tool_results([], output_dir="x", treshold=1)  # type: ignore[call-arg]
    return caught.value


def unknown_policy() -> UnknownPolicyError:
    with pytest.raises(UnknownPolicyError) as caught:
        load_policy("coding-agnt")
    return caught.value


def pickled(error: PolicyctxError) -> object:
    return pickle.loads(pickle.dumps(error))  # noqa: S301 - it was pickled here


ERRORS: list[PolicyctxError] = [
    AmbiguousSessionError("c0", ["a", ""], path="/root"),
    PolicyError([Diagnostic(Location("p.yaml", 1, 2), "PC101", "unknown key")]),
    StoreError("no such file", path="/root/x"),
    unknown_option(),
    unknown_policy(),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, pickled])
def test_an_error_can_be_copied_and_pickled(error: PolicyctxError, again: object) -> None:
    assert callable(again)
    copied = again(error)
    assert type(copied) is type(error)
    assert str(copied) == str(error)
    assert vars(copied) == vars(error)


def test_readers_that_are_not_a_map_are_a_policy_error() -> None:
    with pytest.raises(PolicyError, match=r"reads_file: PC103: expected a map such as"):
        compact_messages([], reads_file=["Read"])  # type: ignore[arg-type]


def test_a_root_of_sessions_is_named_as_one(tmp_path: object) -> None:
    error = AmbiguousSessionError(None, ["one"], path=str(tmp_path))
    assert f"{tmp_path} is a folder for several sessions; choose one" in str(error)


def drawn_errors() -> dict[str, str]:
    """The class and its parent of each line of the drawing in the docstring of the module."""
    parents = {-1: "Exception"}
    found = {}
    lines = re.finditer(r"^([│├└─ ]*)(\w+Error)\b", errors.__doc__ or "", re.MULTILINE)
    for line in lines:
        indent, name = line.groups()
        depth = len(indent) // 4
        found[name] = parents[depth - 1]
        parents[depth] = name
    return found


def test_the_drawing_of_the_error_tree_shows_each_class_below_its_base() -> None:
    classes = {
        name: value.__bases__[0].__name__
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, BaseException)
    }
    assert drawn_errors() == classes
    assert list(drawn_errors()) == list(classes), "the classes are in the order of the drawing"


@pytest.mark.parametrize(
    ("branch", "classes"),
    [
        (
            errors.InputError,
            {
                "BrokenMessagesError",
                "MessagesError",
                "ShapeError",
                "SettingsError",
                "UnknownOptionError",
                "UnknownTokenizerError",
                "UsageError",
            },
        ),
        (
            errors.StoreError,
            {"CorruptContentError", "AmbiguousSessionError", "UnknownArchiveError"},
        ),
        (
            errors.CompactionError,
            {"SummaryError", "UnknownSummarizerError", "UnrestorableFileError"},
        ),
        (
            errors.ReplayError,
            {"UnreadableRecordingError", "ReaderError", "ReportError", "ClusterError"},
        ),
        (errors.InstallationError, {"VocabularyError", "MissingExtraError"}),
    ],
)
def test_errors_are_caught_by_branch(branch: type[PolicyctxError], classes: set[str]) -> None:
    caught = [one for one in vars(errors).values() if inspect.isclass(one)]
    below = {one.__name__ for one in caught if issubclass(one, branch) and one is not branch}
    assert below == classes
