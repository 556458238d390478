"""The tokenizers that `model.tokenizer` may name, and how each counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Tokenizer: TypeAlias = Literal["o200k_base", "cl100k_base", "approximate", "anthropic"]
DEFAULT_TOKENIZER: Tokenizer = "o200k_base"
# The characters of a token where no vocabulary is asked.
CHARS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Counting:
    """How a tokenizer counts: with a vocabulary of tiktoken, unless one of these says otherwise.

    `is_approximate`: a token for every `CHARS_PER_TOKEN` characters begun. `is_remote`: the API of
    a provider counts, for the language model of the policy.
    """

    is_approximate: bool = False
    is_remote: bool = False


TOKENIZERS: dict[str, Counting] = {
    "o200k_base": Counting(),
    "cl100k_base": Counting(),
    "approximate": Counting(is_approximate=True),
    "anthropic": Counting(is_remote=True),
}
