"""Mutants that nobody has to notice, listed in a file with the reason for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field, RootModel, ValidationError

from policyctx.errors import MutationError
from policyctx.policy.sources import read_source
from policyctx.policy.yaml_reader import read_yaml

if TYPE_CHECKING:
    from pathlib import Path


class Accepted(BaseModel):
    """One mutant, as the command tells it, and why no scenario can notice it."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    mutant: str
    reason: Annotated[str, Field(min_length=1)]


class _List(RootModel[list[Accepted]]):
    """The whole file."""


def accepted(file: Path) -> dict[str, str]:
    """Return the reasons by the mutants that a YAML file lists, as `{mutant, reason}` each.

    Raises `PolicyError` for what is not YAML, `MutationError` for any other list.
    """
    try:
        entries = _List.model_validate(read_yaml(read_source(file, str(file))).plain()).root
    except ValidationError as error:
        place = ".".join(map(str, error.errors()[0]["loc"]))
        raise MutationError(
            f"{file}: expected a list of maps of `mutant` and `reason`; {place or 'it'}:"
            f" {error.errors()[0]['msg']}"
        ) from error
    return {entry.mutant: entry.reason for entry in entries}
