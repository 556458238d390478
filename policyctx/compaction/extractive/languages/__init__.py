"""The shipped tables of cues, one module for each language."""

from policyctx.compaction.extractive.languages.chinese import CHINESE
from policyctx.compaction.extractive.languages.english import ENGLISH
from policyctx.compaction.extractive.languages.french import FRENCH
from policyctx.compaction.extractive.languages.german import GERMAN
from policyctx.compaction.extractive.languages.language import Language

SHIPPED = (ENGLISH, CHINESE, GERMAN, FRENCH)

__all__ = ["CHINESE", "ENGLISH", "FRENCH", "GERMAN", "SHIPPED", "Language"]
