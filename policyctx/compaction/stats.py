"""`CompactStats`: what a compaction came to, in numbers (PRD context-compact F-009)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CompactStats:
    """Counts of one compaction; all 0 where none was made. Tokens are those of the messages."""

    original_token_count: int = 0
    compacted_token_count: int = 0
    compacted_message_count: int = 0
    """Messages that the summary stands for."""
    retained_message_count: int = 0
    """Messages that stay as they were: the head, and what the settings of `compaction` keep."""
    restored_file_count: int = 0
    restored_token_count: int = 0
    """Of the files' contents alone."""

    @property
    def compaction_ratio(self) -> float:
        """What is left of the tokens: 0.25 is a quarter; 0 where nothing was compacted."""
        if not self.original_token_count:
            return 0.0
        return self.compacted_token_count / self.original_token_count
