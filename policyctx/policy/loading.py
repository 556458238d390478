"""From a policy's name or path to a checked `Policy`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import ValidationError

from policyctx.errors import PolicyError
from policyctx.policy.diagnostics import problems
from policyctx.policy.models import Policy
from policyctx.policy.sources import Source, policy_source
from policyctx.policy.yaml_document import read_yaml

if TYPE_CHECKING:
    from policyctx.policy.sources import PolicyName


def load_policy(name: PolicyName) -> Policy:
    """Read the preset or the file called `name`; raises `PolicyError` listing every mistake."""
    return parsed_policy(policy_source(name))


def parsed_policy(source: Source) -> Policy:
    """Parse the text of a policy; raises `PolicyError` listing every mistake with its place."""
    document = read_yaml(source)
    if not isinstance(document.value, dict):
        raise PolicyError([document.problem((), "a policy is a map of keys; see README.md")])
    try:
        return Policy.model_validate(document.value)
    except ValidationError as error:
        raise PolicyError(problems(document, error.errors())) from None
