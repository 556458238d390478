"""The summary that needs no model: lines picked from the history by its structure."""

from policyctx.compaction.extractive.digest import Group
from policyctx.compaction.extractive.languages import (
    CHINESE,
    ENGLISH,
    FRENCH,
    GERMAN,
    SHIPPED,
    Language,
)
from policyctx.compaction.extractive.layout import SummaryLine
from policyctx.compaction.extractive.ranking import Unit
from policyctx.compaction.extractive.summary import (
    extractive_summary,
    ranked_units,
    summary_lines,
)

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
