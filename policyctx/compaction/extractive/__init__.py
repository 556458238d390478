"""The summary that needs no model: quotations, and facts read from calls."""

from policyctx.compaction.extractive.fitting import SummaryLine, Unit
from policyctx.compaction.extractive.languages import (
    CHINESE,
    ENGLISH,
    FRENCH,
    GERMAN,
    SHIPPED,
    Language,
)
from policyctx.compaction.extractive.summary import extractive_summary, ranked_units, summary_lines
from policyctx.compaction.extractive.writing import Group

__all__ = [
    "CHINESE",
    "ENGLISH",
    "FRENCH",
    "GERMAN",
    "SHIPPED",
    "Group",
    "Language",
    "SummaryLine",
    "Unit",
    "extractive_summary",
    "ranked_units",
    "summary_lines",
]
