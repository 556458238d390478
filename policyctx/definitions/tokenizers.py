"""The tokenizers that `model.tokenizer` may name, and how each counts."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, NamedTuple, Protocol, TypeAlias

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

Rounding: TypeAlias = Literal["up", "down", "nearest"]


class ByChars(Protocol):
    """The map that `model.tokenizer` may be."""

    @property
    def chars_per_token(self) -> float:
        """The characters of a token."""

    @property
    def round(self) -> Rounding:
        """How the tokens of a text become a whole number."""

    @property
    def per_message(self) -> int:
        """The tokens that each message adds."""


class CharRule(NamedTuple):
    """Counting by the number of characters alone; see `ByChars`."""

    chars_per_token: Fraction
    round: Rounding
    per_message: int

    @classmethod
    def of(cls, given: ByChars) -> "CharRule":
        """Return the rule that a policy gives, its number as it was written."""
        return cls(Fraction(str(given.chars_per_token)), given.round, given.per_message)

    def tokens(self, chars: int) -> int:
        """Return the tokens of so many characters."""
        over, under = chars * self.chars_per_token.denominator, self.chars_per_token.numerator
        if self.round == "up":
            return -(-over // under)
        return over // under if self.round == "down" else (2 * over + under) // (2 * under)

    def chars(self, tokens: int) -> int:
        """Return the most characters that have at most so many tokens."""
        rounded = {"up": Fraction(0), "down": Fraction(1), "nearest": Fraction(1, 2)}[self.round]
        limit = (tokens + rounded) * self.chars_per_token
        # Of what is rounded down or to the nearest, the limit itself has one token more.
        return int(limit) if self.round == "up" else -(-limit.numerator // limit.denominator) - 1


def fewest_tokens(tokenizer: str | ByChars, chars: int) -> int:
    """Return the fewest tokens that so many characters can be, without a vocabulary to ask."""
    if not isinstance(tokenizer, str):
        return CharRule.of(tokenizer).tokens(chars)
    if tokenizer not in TOKENIZERS:
        return 0  # code has registered it
    return chars // CHARS_PER_TOKEN if TOKENIZERS[tokenizer].is_approximate else min(chars, 1)


def is_remote(tokenizer: str | ByChars) -> bool:
    """Return whether the API of a provider counts."""
    return isinstance(tokenizer, str) and TOKENIZERS.get(tokenizer, Counting()).is_remote


def has_byte_tokens(tokenizer: str | ByChars) -> bool:
    """Return whether each token is known to be one byte or more."""
    return isinstance(tokenizer, str) and tokenizer in TOKENIZERS and not is_remote(tokenizer)
