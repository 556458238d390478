"""Turns: the known list, the memory, the effects and their drivers, the result, compaction."""
