"""What language models cost, and how their prompt caches work."""
