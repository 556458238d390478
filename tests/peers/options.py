"""The options that the page names, each with settings and the number of equal calls.

Below the row that links a policy, a row of an option is
`| OPTION | SETTING, SETTING | CALLS, CALLS |`. The settings run over the sessions of Claude
Code, the defaults over all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tests.peers.comparing import Form, Ours, Side, changed, tally
from tests.peers.said import conversations

PAGE = Path(__file__).parents[2] / "docs" / "coming-from.md"
_ROW = re.compile(r"^\| `(\w+)` \| (.+) \| ([\d, ]+|all) \|$", re.MULTILINE)
_ALL = 603
_FEWEST = 3


@dataclass(frozen=True, slots=True)
class Setting:
    """A value of an option of a library, and what it is in the policy."""

    policy: str
    option: str
    value: object
    library: Callable[[], Side]
    passages: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.policy}, {self.option}={self.value}"


def settings(
    policy: str,
    option: str,
    library: Callable[[Any], Side],
    passages: Callable[[Any], Mapping[str, str]],
    values: Sequence[Any],
) -> list[Setting]:
    """Return the settings of one option, each with what it is in the policy."""
    return [
        Setting(policy, option, value, partial(library, value), passages(value)) for value in values
    ]


def on_the_page(policy: str) -> dict[tuple[str, str], int]:
    """Return the equal calls that the page gives, by option and setting."""
    text = PAGE.read_text(encoding="utf-8")
    rows = text[text.index(f"/{policy}.yaml)") :].partition("\n\n")[0].partition("\n| [")[0]
    found: dict[tuple[str, str], int] = {}
    for option, values, calls in _ROW.findall(rows):
        settings_of = values.split(", ")
        equal = [_ALL] * len(settings_of) if calls == "all" else map(int, calls.split(", "))
        found |= {(option, value): n for value, n in zip(settings_of, equal, strict=True)}
    return found


def assert_equal_as_the_page_says(setting: Setting, form: Form, root: Path, **session: Any) -> None:
    """Run both sides with a setting; fail if the page has another number of equal calls."""
    policy = changed(f"peers/{setting.policy}", setting.passages)
    found = tally(
        conversations(("claude-code",)),
        form,
        setting.library,
        lambda number: Ours(policy, root / str(number), **session),
    )
    assert found.edited, f"{setting} edits nothing"
    said = on_the_page(setting.policy).get((setting.option, str(setting.value)))
    assert found.equal == said, f"{setting}: {found.equal} of {found.calls}, {found.first}"


def assert_all_are_compared(compared: Iterable[Setting]) -> None:
    """Fail unless the page has just these settings, three of each option."""
    by_policy: dict[str, set[tuple[str, str]]] = {}
    for one in compared:
        by_policy.setdefault(one.policy, set()).add((one.option, str(one.value)))
    for policy, pairs in by_policy.items():
        assert pairs == on_the_page(policy).keys()
        options = [option for option, _ in pairs]
        assert all(options.count(option) >= _FEWEST for option in options)
