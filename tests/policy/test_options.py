"""Unknown options of the public functions are rejected with the nearest name."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import pytest

import policyctx
from policyctx import (
    PolicyctxError,
    Session,
    UnknownOptionError,
    compact_messages,
    compact_messages_async,
    for_agent,
    offload_tool_result,
    offload_tool_result_async,
    offload_tool_results,
    offload_tool_results_async,
)
from policyctx.policy.agent_options import checks_options


def outcome(function: Callable[..., Any], *args: object, **options: object) -> object:
    """What a call returns, awaited where it has to be."""
    made = function(*args, **options)
    return asyncio.run(made) if inspect.iscoroutine(made) else made


@pytest.mark.parametrize(
    ("function", "option", "nearest"),
    [
        (compact_messages, "treshold", "threshold"),
        (compact_messages, "maxRestoreFiles", "max_restore_files"),
        (compact_messages, "maxRestoreTokensPerFile", "max_restore_tokens_per_file"),
        (compact_messages, "maxRestoreTokensTotal", "max_restore_tokens_total"),
        (compact_messages, "fileReader", "file_reader"),
        (compact_messages, "workDir", "work_dir"),
        (compact_messages, "quality", None),
        (compact_messages_async, "contextWindow", "context_window"),
        (offload_tool_results, "outputDir", "output_dir"),
        (offload_tool_results_async, "output_dirs", "output_dir"),
        (offload_tool_result, "sessionId", "session_id"),
        (offload_tool_result_async, "outputDir", "output_dir"),
        (Session, "sesion_id", "session_id"),
        (Session, "onInvalid", "on_invalid"),
        (for_agent, "direktory", "directory"),
    ],
)
def test_unknown_option_is_rejected_with_the_nearest_name(
    function: Callable[..., Any], option: str, nearest: str | None
) -> None:
    with pytest.raises(UnknownOptionError) as raised:
        outcome(function, [], **{option: 1})
    error = raised.value
    assert (error.function, error.name) == (function.__name__, option)
    assert error.nearest == nearest
    assert error.removed == ""
    said = f"{function.__name__}() has no option {option!r}; "
    said += "the options are " if nearest is None else f"did you mean {nearest!r}? The options are "
    assert str(error) == said + ", ".join(error.known)


def test_the_error_is_a_type_error_and_one_of_the_library() -> None:
    for expected in (TypeError, PolicyctxError):
        with pytest.raises(expected):
            compact_messages([], treshold=1)  # type: ignore[call-arg]


@pytest.mark.parametrize("name", ["tail_retention_ratio", "tailRetentionRatio"])
def test_removed_option_error_names_the_replacement(name: str) -> None:
    options: dict[str, Any] = {name: 0.2}
    with pytest.raises(UnknownOptionError, match="it was removed: no tail") as raised:
        compact_messages([], **options)
    assert raised.value.nearest is None
    assert "max_restore_files" in raised.value.removed
    assert "keep_recent" in raised.value.removed


def test_every_public_function_with_options_checks_them() -> None:
    public = [getattr(policyctx, name) for name in policyctx.__all__]
    functions = [value for value in public if inspect.isfunction(value)]
    takes_options = [
        value
        for value in functions
        if any(p.kind is p.KEYWORD_ONLY for p in inspect.signature(value).parameters.values())
    ]
    assert len(takes_options) >= 5
    for function in takes_options:
        with pytest.raises(UnknownOptionError):
            outcome(function, no_such_option=1)


def test_a_checked_function_keeps_its_name_signature_and_kind() -> None:
    async def waits(*, seconds: int) -> int:
        await asyncio.sleep(0)
        return seconds

    def waited(*, seconds: int) -> int:
        return seconds

    for function in (waits, waited):
        checked = checks_options(function)
        assert checked.__name__ == function.__name__
        assert inspect.signature(checked) == inspect.signature(function)
        assert inspect.iscoroutinefunction(checked) is inspect.iscoroutinefunction(function)
    assert asyncio.run(checks_options(waits)(seconds=3)) == 3
    assert checks_options(waited)(seconds=3) == 3
