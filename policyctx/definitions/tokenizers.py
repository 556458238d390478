"""The tokenizers that `model.tokenizer` may name."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

# A vocabulary of tiktoken, a division of the characters, or the count of a provider's API.
Tokenizer: TypeAlias = Literal["o200k_base", "cl100k_base", "approximate", "anthropic"]
TOKENIZERS: tuple[Tokenizer, ...] = get_args(Tokenizer)
DEFAULT_TOKENIZER: Tokenizer = "o200k_base"
