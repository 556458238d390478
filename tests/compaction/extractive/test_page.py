from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

PAGE = (Path(__file__).parents[3] / "docs/extractive.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def test_the_example_prints_the_output_on_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    exec(blocks("python")[0], {})  # noqa: S102 - the page's own example
    assert capsys.readouterr().out == blocks("text")[0]


def test_the_table_of_another_language_can_be_used() -> None:
    names: dict[str, object] = {}
    exec(blocks("python")[1], names)  # noqa: S102 - the page's own example
    assert callable(names["summarise"])
