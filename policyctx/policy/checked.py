"""What every check looks at: the policy beside the tree that it was read from."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, Any, TypeVar

from policyctx.definitions.item_types import BUILT_IN_TYPES
from policyctx.errors import Diagnostic
from policyctx.policy.lookup import lineage
from policyctx.policy.nodes import words
from policyctx.policy.values import Share, byte_size, duration, ratio, share

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from policyctx.policy.models import Policy, Step
    from policyctx.policy.nodes import Node, Path


T = TypeVar("T")

# More questions than any policy that a person wrote needs; a larger one is not looked at further.
_MOST_ASKED = 1_000


def _edge(character: str, *, after: bool = False) -> str:
    """A pattern for where a value ends: a number is not a part of a longer one."""
    if not re.match(r"[\w.%]", character):
        return ""
    return r"(?![\w%]|\.\d)" if after else r"(?<![\w.])"


class TooLargeError(Exception):
    """Looking at all of this policy would take too long."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A policy that was found right, and its resolved tree, which knows the lines."""

    root: Node
    policy: Policy
    answers: dict[Hashable, Any] = field(default_factory=dict)

    def answered(self, key: Hashable, question: Callable[[], T]) -> T:
        """Return the answer to a question, asked once; raises `TooLargeError` after too many."""
        if key not in self.answers:
            if len(self.answers) >= _MOST_ASKED:
                raise TooLargeError
            self.answers[key] = question()
        found: T = self.answers[key]
        return found

    def warning(self, code: str, path: Path, sentence: str, hint: str) -> Diagnostic:
        """Warn at the key at `path`, or as deep as the tree has it.

        A value that comes from the environment is replaced by its expression.
        """
        _, node = self.root.deepest(path)
        texts = self.without_values(sentence), self.without_values(hint)
        return Diagnostic(node.key or node.place, code, *texts, "warning")

    def without_values(self, text: str) -> str:
        """Return a text with each value from the environment replaced by its expression."""
        if "values" not in self.answers:
            self.answers["values"] = dict(self._values())
        values: dict[str, str] = self.answers["values"]
        if not values:
            return text
        # The longest first, since one value may be part of another.
        forms = sorted(values, key=len, reverse=True)
        pattern = "|".join(f"{_edge(f[0])}{re.escape(f)}{_edge(f[-1], after=True)}" for f in forms)
        return re.sub(pattern, lambda found: values[found.group()], text)

    def _values(self) -> Iterator[tuple[str, str]]:
        """Yield the ways to write each value from the environment, with its expression.

        The words of the language and the names that the file itself has are public.
        """
        public = {*words(), *BUILT_IN_TYPES, *self.policy.items, *self.policy.tools}
        for _, node in self.root.leaves():
            if node.variable is not None and not {node.value, node.raw} & public:
                for form in self._forms(node):
                    yield form, node.variable

    def _forms(self, node: Node) -> Iterator[str]:
        raw = node.raw or ""
        yield from filter(None, (raw, str(node.value), repr(raw)[1:-1], repr(node.value)))
        for read in (share, duration, byte_size, ratio):
            with suppress(ValueError):
                value = read(node.value)
                yield f"{float(value):g}" if isinstance(value, Fraction) else str(value)
                if isinstance(value, Share):
                    yield f"{float(self.exact(value)):.10g}"
                    yield str(self.tokens(value))

    def is_written(self, path: Path) -> bool:
        """Does the file say something at `path`."""
        return self.root.deepest(path)[0] == path

    @property
    def steps(self) -> Iterator[tuple[Path, Step]]:
        """The steps with their paths, but for `compact`."""
        return (
            (("steps", i), step)
            for i, step in enumerate(self.policy.steps)
            if not step.action.takes_messages
        )

    @property
    def compact(self) -> tuple[Path, Step] | None:
        """The step that compacts, with its path."""
        found = (
            (("steps", i), s) for i, s in enumerate(self.policy.steps) if s.action.takes_messages
        )
        return next(found, None)

    @property
    def own_types(self) -> list[str]:
        """The types that the policy defines, in the order in which they are tried."""
        return [name for name, rule in self.policy.items.items() if rule.match]

    @property
    def types(self) -> list[str]:
        """All item types."""
        return [*BUILT_IN_TYPES, *self.own_types]

    def lineage(self, item_type: str) -> tuple[str, ...]:
        """Return the type, then the types that it refines, the nearest first."""
        return lineage(item_type, self.policy.items)

    def kind(self, item_type: str) -> str:
        """Return what items of a type are by themselves: the last of its lineage."""
        return self.lineage(item_type)[-1]

    def tokens(self, amount: int | Share) -> int:
        """Return a number of tokens, or a share of the window, as whole tokens, rounded up."""
        return ceil(self.exact(amount))

    def exact(self, amount: int | Share) -> Fraction:
        """Return a number of tokens, or a share of the window, as tokens."""
        if isinstance(amount, Share):
            return amount.percent * self.policy.model.context_window / 100
        return Fraction(amount)

    def shown(self, amount: int | Share) -> str:
        """Return an amount as it was written, and a share also in tokens."""
        if isinstance(amount, Share):
            return f"{amount} ({float(self.exact(amount)):.10g} tokens)"
        return str(amount)
