"""The summary that needs no model: lines picked from the history by its structure."""

from policyctx.compaction.extractive.cues import CHINESE, ENGLISH, SHIPPED, Language
from policyctx.compaction.extractive.summary import extractive_summary

__all__ = ["CHINESE", "ENGLISH", "SHIPPED", "Language", "extractive_summary"]
