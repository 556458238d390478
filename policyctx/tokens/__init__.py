"""Counting tokens: exact and offline, each text once."""
