"""`window_of`: the context window that the shares of a policy are measured against."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from policyctx.policy.models import Model


def window_of(model: Model, called: str | None = None, *, at: float | None = None) -> int:
    """Return the tokens that the called model can see; `model` is the policy's.

    A window that the policy writes comes first. Otherwise it is that of the row of `called`, the
    name as a request or a recording spells it, or of the policy's `model.name` where no model is
    named. A model without a row has the default of `model.context_window`. `at` is as in `row_of`.
    """
    name = called or model.name
    if not name or "context_window" in model.model_fields_set:
        return model.context_window
    return _of_row(name, at) or model.context_window


@lru_cache(maxsize=256)  # a session names the same model in every call
def _of_row(name: str, at: float | None) -> int | None:
    from policyctx.pricing.rows import row_of  # noqa: PLC0415 - it reads the table of models

    row = row_of(name, at=at)
    return None if row is None else row.context_window
