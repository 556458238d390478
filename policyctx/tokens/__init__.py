"""Counting tokens: exact and offline, each text once, corrected by what providers bill."""
