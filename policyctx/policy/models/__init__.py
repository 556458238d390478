"""The keys of a policy: their only list, from which errors, schema and docs derive."""

from typing import Annotated, Literal, get_args

from pydantic import Field, Strict

from policyctx.definitions.names import DEFAULT
from policyctx.definitions.tokenizers import DEFAULT_TOKENIZER, Rounding
from policyctx.policy.models.base import CacheTtl, Prices, Section, Text, such
from policyctx.policy.models.compaction import Carry, Compaction
from policyctx.policy.models.rules import (
    Globs,
    ItemRule,
    KeepRecent,
    Placeholder,
    Redaction,
    Rule,
    Threshold,
    ToolRule,
    Wording,
)
from policyctx.policy.models.steps import Select, Step, Store
from policyctx.policy.values import ASSUMED_TTL
from policyctx.policy.values import Duration as DurationValue

__all__ = [
    "VERSIONS", "ItemRule", "KeepRecent", "Policy", "Prices", "Rule", "Section", "Select", "Step",
    "Threshold", "ToolRule",
]  # fmt: skip
Version = Literal["policyctx/v1"]
VERSIONS: tuple[str, ...] = get_args(Version)


class PromptCache(Section):
    """The provider's prompt cache."""

    ttl: CacheTtl = "recorded"
    """How long a prefix stays cached after its last use; `recorded`: that of the last billed write,
    and five minutes before one is known."""
    min_tokens: Annotated[int, Field(ge=0)] = 1024
    """A shorter prefix is not cached. A replay takes that of the recorded model unless it is
    set."""
    breakpoints: Literal["keep", "auto"] = "keep"
    """Where Anthropic's cache breakpoints go: `keep` leaves the caller's, `auto` sets them so that
    an edit is billed for its tail alone."""

    def seconds(self, last_write: int | None = None) -> int:
        """Return the TTL in force; `last_write` is that of the last billed write, if known."""
        if isinstance(self.ttl, DurationValue):
            return self.ttl.seconds
        return ASSUMED_TTL if last_write is None else last_write


class CharTokens(Section):
    """Tokens reckoned from the number of characters."""

    chars_per_token: Annotated[float, Field(gt=0, le=100, examples=[4, 3.5])]
    """Characters of a token."""
    round: Rounding = "up"
    """How the tokens of a text become a whole number; of `nearest`, a half goes up."""
    per_message: Annotated[int, Field(ge=0)] = 0
    """Tokens that each message of the list adds to the gate `tokens` and to `until.tokens`."""


class Model(Section):
    """What sizes are measured against."""

    name: Annotated[str | None, Field(min_length=1, examples=["claude-sonnet-4-5"])] = None
    """The language model, whose rules size images and documents and whose count `anthropic` asks
    for. Default: images and documents by the shape of the messages."""
    context_window: Annotated[int, Field(gt=0)] = 200_000
    """Tokens that the model can see; unless set, the window of the called or, in a replay, the
    recorded model."""
    tokenizer: Annotated[
        Text | CharTokens, such("cl100k_base", {"chars_per_token": 4, "per_message": 3})
    ] = DEFAULT_TOKENIZER
    """What counts tokens: `o200k_base`, `cl100k_base`, `approximate` (characters ÷ 4, rounded up),
    `anthropic` (the provider's own count), a name registered in code, or a map."""
    token_scale: Annotated[float, Field(gt=0, le=10)] = 1.0
    """Provider tokens per counted token; each count is multiplied by it."""
    cache: PromptCache = PromptCache()
    """The provider's prompt cache."""
    price: Annotated[
        Prices | None, such({"input": 3.0, "cache_write": 3.75, "cache_read": 0.3, "output": 15.0})
    ] = None
    """What a call costs. Default: none; what needs it is an error without it, and a replay takes
    the prices of the recorded model."""


class Policy(Threshold):
    """One policy document."""

    apiVersion: Version  # noqa: N815 - the key's name in the file
    """The version of this language."""
    name: Annotated[str, Field(min_length=1, examples=["coding-agent"])]
    """What the policy is called."""
    description: str = ""
    """What it is for, in a sentence."""
    extends: Annotated[Globs, such("coding-agent", ["context-filesystem", "./team.yaml"])] = ()
    """Presets and fragments by name, files by path; later ones win, and this file wins over all."""
    model: Model = Model()
    """What sizes are measured against."""
    items: Annotated[
        dict[str, ItemRule], such({"tool_result": {"offload": True, "keep_recent": 3}})
    ] = {}
    """Rules by item type; with `match`, a type of your own."""
    tools: Annotated[dict[str, ToolRule], such({"mcp__*": {"min_tokens": 500}})] = {}
    """Rules by tool name or glob: exact names first, then globs in the order written."""
    redact: Annotated[
        dict[str, Redaction],
        such(
            {"api_key": "sk-[A-Za-z0-9_-]{20,}"},
            {"customer": {"pattern": "CUST-[0-9]{8}", "keep": True}},
        ),
    ] = {}
    """Secrets by name, as regular expressions of RE2. A match, or the group of the pattern, becomes
    `[redacted:NAME]` before anything else reads the message. Needs `policyctx[redact]`."""
    placeholder: Wording = Placeholder(text=DEFAULT)
    """The wording where nothing nearer says otherwise."""
    store: Store = Store()
    """Where offloaded content goes, and how it is written."""
    compaction: Compaction = Compaction()
    """How history is replaced by a summary."""
    carry: Annotated[Carry | None, such({"max_tokens": 2000, "files": 10})] = None
    """What the hook of Claude Code adds at a compaction that the host makes by itself. Default:
    nothing."""
    on_broken: Literal["keep", "repair", "refuse"] = "keep"
    """A list that the provider would refuse as given. `keep` leaves it. `repair` drops calls
    without results and empty messages, makes a result without a call a message of the user, and
    warns. `refuse` raises an error."""
    steps: Annotated[
        tuple[Step, ...], Strict(strict=False), such([{"name": "retire", "do": "offload"}])
    ] = ()
    """The pipeline, in this order."""
