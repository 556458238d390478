"""LangChain's own tests of context editing, run over `PolicyMiddleware` and the shipped policy."""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import json
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from langchain_core.messages import AIMessage, ToolMessage

from policyctx import Session
from policyctx.integrations.langchain import LangChainShape, PolicyMiddleware
from policyctx.policy.models import Policy
from tests.peers.comparing import changed

if TYPE_CHECKING:
    from langchain.agents.middleware import ClearToolUsesEdit

FILE = "tests/unit_tests/agents/middleware/implementations/test_context_editing.py"


def downloaded(version: str, folder: Path) -> Path:
    """Return LangChain's test file, from the source distribution that pip gets from the index."""
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-binary", "langchain"]
    wanted = f"langchain=={version}"
    command = [sys.executable, "-m", "pip", "download", *options, f"--dest={folder}", wanted]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    with tarfile.open(folder / f"langchain-{version}.tar.gz") as archive:
        member = archive.extractfile(f"langchain-{version}/{FILE}")
        assert member is not None
        path = folder / "langchain_context_editing.py"
        path.write_bytes(member.read())
    return path


def outcomes(file: Path, folder: Path, *, marks: bool) -> dict[str, str]:
    """Return each test of LangChain's file, and how it failed: "" for one that passed."""
    module = _loaded(file)
    tests = [(name, test) for name, test in vars(module).items() if name.startswith("test_")]
    found = {}
    for name, test in tests:

        def middleware(root: Path = folder / name, **options: Any) -> PolicyMiddleware:
            return Editing(root, marks=marks, **options)

        module.ContextEditingMiddleware = middleware  # type: ignore[attr-defined]
        found[name] = _outcome(test)
    return found


def _loaded(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _outcome(test: Callable[[], Any]) -> str:
    try:
        if inspect.iscoroutinefunction(test):
            asyncio.run(test())
        else:
            test()
    except Exception as error:  # noqa: BLE001 - whatever a test raises is its outcome
        return repr(error)
    return ""


def as_policy(edit: ClearToolUsesEdit) -> Policy:
    """Return the shipped policy with the options of an edit."""
    select = [
        f"except_tools: {json.dumps(list(edit.exclude_tools))}" if edit.exclude_tools else "",
        'with_input: {tools: "*", leave: empty}' if edit.clear_tool_inputs else "",
        f"until: {{frees: {{at_least: {edit.clear_at_least}}}}}" if edit.clear_at_least else "",
    ]
    passages = {
        "over: 100000": f"over: {edit.trigger}",
        "items: 3": f"items: {edit.keep}",
        "batches: split}}": ", ".join(["batches: split}", *filter(None, select)]) + "}",
        '"[cleared]"': json.dumps(edit.placeholder),
    }
    return changed("peers/langchain-clear-tool-uses", passages)


class Editing(PolicyMiddleware):
    """`PolicyMiddleware` with the arguments of LangChain's `ContextEditingMiddleware`.

    With `marks` it also writes the notes of LangChain's edit into the metadata of what was edited.
    """

    def __init__(
        self,
        root: Path,
        *,
        marks: bool,
        edits: Iterable[ClearToolUsesEdit],
        token_count_method: Literal["approximate", "model"] = "approximate",  # noqa: S107 - no secret
        token_counter: Callable[[Sequence[Any]], int] | None = None,
    ) -> None:
        [edit] = edits
        self._policy, self._root, self._marks = as_policy(edit), root, marks
        self._by_model, self._count = token_count_method == "model", token_counter  # noqa: S105 - no secret
        super().__init__(self._made)

    def _made(self, request: Any) -> Session:
        count = self._count
        if count is None and self._by_model:
            count = request.model.get_num_tokens_from_messages
        by_text = None if count is None else lambda text: count([AIMessage(text)])
        return Session(
            self._policy,
            root=self._root,
            session_id="s",
            shapes=[LangChainShape()],
            counter=by_text,
            expects_usage=False,
        )

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        return super().wrap_model_call(request, lambda sent: handler(self._noted(request, sent)))

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        async def noted(sent: Any) -> Any:
            return await handler(self._noted(request, sent))

        return await super().awrap_model_call(request, noted)

    def _noted(self, request: Any, sent: Any) -> Any:
        if not self._marks:
            return sent
        pairs = zip(request.messages, sent.messages, strict=True)
        return sent.override(messages=[_marked(before, after) for before, after in pairs])


def _marked(before: Any, after: Any) -> Any:
    """Return an edited message with the note of LangChain's edit in its metadata."""
    if isinstance(after, ToolMessage) and after.content != before.content:
        note: dict[str, Any] = {"cleared": True, "strategy": "clear_tool_uses"}
    elif isinstance(after, AIMessage) and after.tool_calls != before.tool_calls:
        calls = zip(before.tool_calls, after.tool_calls, strict=True)
        note = {"cleared_tool_inputs": sorted(new["id"] for old, new in calls if old != new)}
    else:
        return after
    return after.model_copy(update={"response_metadata": {"context_editing": note}})
