"""Prompt caches, simulated request by request: what each kind reads, writes and leaves."""
