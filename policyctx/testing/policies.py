"""The policies that scenarios name: found beside the feature, compiled once for all scenarios."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from policyctx.errors import UnknownPolicyError
from policyctx.planning.compiled import OffloadPolicy
from policyctx.policy.loading import resolved, validated
from policyctx.policy.sources import PolicySource, policy_source
from policyctx.testing.mutants import Change


@dataclass(frozen=True, slots=True)
class ChangedPolicy:
    """A policy, by the file that it is read from, and what is changed in it."""

    path: str
    change: Change


# pytest sets it anew for each test.
_EVER_CHANGING = "PYTEST_CURRENT_TEST"
_CHANGED: ContextVar[ChangedPolicy | None] = ContextVar("changed", default=None)
_HEAD = ("apiVersion: policyctx/v1", "name: scenario")


def named_source(name: str, folders: Sequence[Path]) -> PolicySource:
    """Find a policy: a preset's name, or a path from one of the folders, the first one first.

    It may be anywhere: features are tests, and run code. Raises `UnknownPolicyError` when it is in
    none, `PolicyError` when it cannot be read.
    """
    *others, last = folders
    for folder in others:
        try:
            return _named_from(folder, name)
        except UnknownPolicyError:
            continue
    return _named_from(last, name)


def _named_from(folder: Path, name: str) -> PolicySource:
    here = PolicySource("", "", str(folder / "a.feature"), within=(folder.absolute().anchor,))
    return policy_source(name, beside=here)._replace(within=())


def written_source(text: str, feature: Path, line: int, *, shown: str) -> PolicySource:
    """Return a policy written in a feature from this line on, so that errors name its lines.

    `shown` is what errors call the feature. `apiVersion` and `name`, without which no policy is
    one, may be left out.
    """
    head = [key for key in _HEAD if not re.search(rf"^{key.split(':')[0]}\s*:", text, re.MULTILINE)]
    above = "\n" * max(0, line - 1 - len(head))
    return PolicySource(shown, above + "".join(f"{key}\n" for key in head) + text, str(feature))


def compiled(source: PolicySource, variables: Mapping[str, str]) -> OffloadPolicy:
    """Compile a policy with these variables for its environment.

    Scenarios write to a folder that is thrown away, so none waits for stable storage
    (`store.sync`). Raises `PolicyError`.
    """
    changed = _CHANGED.get()
    change = changed.change if changed is not None and changed.path == source.path else None
    # Of the many scenarios of one policy, only the first compiles it.
    kept = {name: value for name, value in variables.items() if name != _EVER_CHANGING}
    return _compiled(source, tuple(sorted(kept.items())), change)


@contextmanager
def changed_policy(changed: ChangedPolicy) -> Iterator[None]:
    """Have scenarios that run this policy run it with the change."""
    token = _CHANGED.set(changed)
    try:
        yield
    finally:
        _CHANGED.reset(token)


@lru_cache(maxsize=64)
def _compiled(
    source: PolicySource, variables: tuple[tuple[str, str], ...], change: Change | None
) -> OffloadPolicy:
    root = resolved(source, variables=dict(variables))
    if change is not None:
        root = change.applied(root)
    policy = validated(root)
    store = policy.store.model_copy(update={"sync": "never"})
    return OffloadPolicy(policy.model_copy(update={"store": store}), root=root)
