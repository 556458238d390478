"""Readers of recorded sessions: one module a format."""
