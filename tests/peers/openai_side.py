"""The filter of OpenAI Agents that a run calls with the items of each model call."""

from __future__ import annotations

from typing import Any

from agents.extensions import ToolOutputTrimmer
from agents.run import CallModelData, ModelInputData


class Trimming:
    """The filter that trims old outputs in a copy of the items."""

    def __init__(self, **options: Any) -> None:
        self._trimmer = ToolOutputTrimmer(**options)
        self._items: list[Any] = []

    def sent(self, new: list[Any]) -> list[Any]:
        self._items += new
        data: Any = CallModelData(ModelInputData(list(self._items), None), None, None)  # type: ignore[arg-type]
        return self._trimmer(data).input
