"""Many sessions: made by a generator, replayed, restarted, and live in one service."""
