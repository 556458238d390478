"""`CompactStats`: what a compaction came to, in numbers (PRD context-compact F-009)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SummaryUsage:
    """What the model calls for a summary used, those of failed attempts included.

    All tokens are 0 if no model was asked, as by the extractive summarizer, or if the provider did
    not say what it billed.
    """

    attempts: int = 0
    """Attempts at the summary; 0 if none was asked for."""
    input_tokens: int = 0
    """Neither read from the prompt cache nor written to it."""
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    dollars: float | None = None
    """By `summary.price`, else `model.price`; None without prices or without a model call."""


@dataclass(frozen=True, slots=True)
class CompactStats:
    """Counts of one compaction; all 0 if none was made. Tokens are those of the messages.

    `summary` holds what the provider billed for the summary, also if none was accepted.
    """

    original_token_count: int = 0
    compacted_token_count: int = 0
    compacted_message_count: int = 0
    """Messages that the summary stands for."""
    retained_message_count: int = 0
    """Messages that stay as they were: the head, and what the settings of `compaction` keep."""
    restored_file_count: int = 0
    restored_token_count: int = 0
    """Of the files' contents alone."""
    summary: SummaryUsage = SummaryUsage()

    @property
    def compaction_ratio(self) -> float:
        """What is left of the tokens: 0.25 is a quarter; 0 where nothing was compacted."""
        if not self.original_token_count:
            return 0.0
        return self.compacted_token_count / self.original_token_count
