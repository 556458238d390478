"""The tokens of a request, counted from its messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from policyctx.messages.editing import request_content
from policyctx.tokens.counter import TokenCounter, counter_for
from policyctx.tokens.sizes import ProviderModel

COUNTER = counter_for("o200k_base")


def request_tokens(
    messages: Sequence[Mapping[str, Any]],
    tools: object = None,
    system: object = None,
    *,
    model: ProviderModel | None = None,
    counter: TokenCounter = COUNTER,
) -> int:
    return counter.count_request(request_content(messages, system), tools, model=model)
