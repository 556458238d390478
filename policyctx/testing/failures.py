"""`OutcomeError`: an outcome that did not come, with the values compared and the plan's reasons."""

from collections.abc import Sequence

# So many items are shown with their reasons; a longer list says how many more there are.
_SHOWN_ITEMS = 12
_SHOWN_CHARS = 2_000


class WordingError(ValueError):
    """A step says something that has no meaning, such as an unknown column; its text says why."""


class OutcomeError(AssertionError):
    """An outcome was another than the step says.

    `expected` and `found` are the values compared, as text; `reasons` is a line for each item
    concerned, and `because` a further paragraph, such as an error that was met instead.
    """

    def __init__(
        self, expected: object, found: object, fates: Sequence[object] = (), *, because: str = ""
    ) -> None:
        self.expected, self.found, self.because = str(expected), str(found), because
        self.reasons = tuple(str(fate) for fate in fates[:_SHOWN_ITEMS])
        if len(fates) > _SHOWN_ITEMS:
            self.reasons += (f"… and {len(fates) - _SHOWN_ITEMS:,} more",)
        super().__init__(f"expected {self.expected}, found {self.found}")

    def __str__(self) -> str:
        """Return the values compared, the reasons below them."""
        lines = [*_told("expected", self.expected), *_told("found", self.found)]
        if self.because:
            lines += self.because.splitlines()
        return "\n".join([*lines, *(f"  {reason}" for reason in self.reasons)])


def _told(name: str, value: str) -> list[str]:
    if len(value) > _SHOWN_CHARS:
        value = f"{value[:_SHOWN_CHARS]}… ({len(value):,} characters)"
    first, *rest = value.split("\n")
    indent = " " * 10
    return [f"{name + ':':<10}{first}", *(f"{indent}{line}" for line in rest)]
