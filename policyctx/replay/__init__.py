"""Recorded sessions: transcripts as the tools that made them wrote them."""
