"""What a model call costs, and what an edit costs and saves under a provider's prompt cache."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from policyctx.policy.models import Model, Prices
    from policyctx.tokens.usage import Usage

_MILLION = 1_000_000


def dollars(usage: Usage, price: Prices) -> float:
    """Return what the tokens of one call, or the sum of several, cost in $."""
    return (
        usage.cache_read * price.cache_read
        + usage.cache_write * price.cache_write
        + usage.input * price.input
        + usage.output * price.output
    ) / _MILLION


def calls_to_pay_back(*, rewritten: int, freed: int, model: Model) -> float:
    """Return how many model calls it takes until an edit has paid for itself.

    `rewritten` are the tokens behind the first change that the provider holds in its cache, and
    must be written to it anew; `freed` are those that no later call reads any more. Infinity when
    nothing is saved. The policy gives `model.price`, or was refused when it was read.
    """
    price = model.price
    if price is None or freed <= 0:
        return math.inf
    write, read = Fraction(str(price.cache_write)), Fraction(str(price.cache_read))
    cost = max(0, rewritten) * (write - read)
    if cost <= 0:
        return 0
    saving = freed * read
    return math.inf if saving == 0 else math.ceil(cost / saving)
