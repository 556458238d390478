"""Adapters that put a session into the loops of SDKs, frameworks and agents."""
